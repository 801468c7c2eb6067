# SPDX-License-Identifier: Apache-2.0
"""Checks that switches have one plan of KeyFlow, which etcd has, too.

    whole_plan.py FOLDER

FOLDER has the outputs of `shunt show stateless --json` and `shunt flows dump`, as stateless.N and flows.N for
switch N, and the answer of etcd, as etcd.json. All IDs and keys must be of the stored epoch, and each key must lead
through the switches to the one with the destination.
"""

import base64
import json
import pathlib
import re
import sys

PUSH = re.compile(r"dl_dst=(\S+) actions=push_key\(key=0x([0-9a-f]+),width=64,hops=\d+(?:,epoch=(\d))?\),output:(\d+)$", re.M)
DELIVER = re.compile(r"table=1,priority=\d+,dl_dst=(\S+) actions=output:\d+$", re.M)


def banks_of(folder, epoch):
    """Returns the ID and the ports of the labels of each switch. Each must have exactly the given epoch."""
    found = {}
    for path in folder.glob("stateless.*"):
        banks = json.loads(path.read_text(encoding="utf-8"))["lane"]["bank"]
        epochs = [bank["epoch"] for bank in banks]
        assert epochs == [epoch], f"switch {path.suffix[1:]} has IDs of the epochs {epochs}"
        found[int(path.suffix[1:])] = banks[0]["id"], banks[0]["labels"]
    return found


def stored_in(folder):
    """Returns the record that etcd has. Its plan must be in force."""
    (item,) = json.loads((folder / "etcd.json").read_text(encoding="utf-8"))["kvs"]
    entry = json.loads(base64.b64decode(item["value"]))
    assert entry["next"] is None, "the stored plan is not completed"
    return entry


def check_stored(entry, banks):
    """Checks that the stored IDs are those of the switches. Returns the switches of hosts."""
    stored = {int(name, 16): one["id"] for name, one in entry["current"]["switches"].items()}
    assert stored == {switch: bank[0] for switch, bank in banks.items()}, f"etcd has other IDs: {stored}"
    return {host["mac"]: host["switch"] for host in entry["hosts"]}


def main():
    """Runs all checks."""
    folder = pathlib.Path(sys.argv[1])
    entry = stored_in(folder)
    epoch = entry["current"]["epoch"]
    banks = banks_of(folder, epoch)
    places = check_stored(entry, banks)
    peers = {}
    for line in (folder / "cables").read_text(encoding="utf-8").split():
        (a, a_port), (b, b_port) = (tuple(map(int, end.split(":"))) for end in line.split("-"))
        peers[a, a_port], peers[b, b_port] = (b, b_port), (a, a_port)
    count = 0
    for path in folder.glob("flows.*"):
        switch = int(path.suffix[1:])
        text = path.read_text(encoding="utf-8")
        assert text.count("push_key") == len(PUSH.findall(text)), f"switch {switch} has entries of another form"
        for mac, key, of_epoch, out in PUSH.findall(text):
            assert int(of_epoch or 0) == epoch, f"switch {switch} pushes a key of epoch {of_epoch or 0}"
            at, port = switch, int(out)
            for _ in range(10):
                at, _ = peers[at, port]
                number, labels = banks[at]
                port = labels[int(key, 16) % number]
                if port == "tables":
                    break
            assert (at, port) == (places[mac], "tables"), f"the key of switch {switch} for {mac} ends at switch {at}"
            count += 1
    assert count, "no switch pushes keys"


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        sys.exit(f"whole_plan: {error}")
