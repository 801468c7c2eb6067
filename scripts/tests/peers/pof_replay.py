#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `shunt replay` with the interpreter of POF programs, without root.

    pof_replay.py SHUNT [FRAMES [SEED]]

The program of each application is written as a flow file. Frames of the application's tests and copies with
random changes are replayed in both dialects, with and without the express path. The captures must have exactly
the frames that the interpreter sends.
"""

import collections
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import pof_referee as referee

from shunt_controller.pof import Dialect, actions, instructions
from shunt_controller.pof.messages import FlowMod, LowLatency
from shunt_controller.pof.values import METADATA, METADATA_USER, Field

# Places of POF's metadata in Shunt's extended header: the ingress port, and the programs' own metadata.
PORT_SHIFT, USER_SHIFT = 8, 32
# Blocks of a pcapng capture.
SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6
MAGIC, ETHERNET = 0x1A2B3C4D, 1
PCAP_HEADER_BYTES, PCAP_PACKET_BYTES = 24, 16


def sliced(field: Field) -> str:
    """Returns a field in flow syntax."""
    if field.id == METADATA:
        shift = USER_SHIFT if field.offset >= METADATA_USER else PORT_SHIFT
        return f"slice(metadata,{field.offset + shift},{field.length})"
    return f"slice(base,{field.offset},{field.length})"


def action(item: actions.Action) -> str:
    """Returns an action in flow syntax. DROP is the last action, so it is no action there."""
    match item:
        case actions.Output():
            return f"output:{item.port}"
        case actions.SetField():
            return f"set_field:{item.setting.value & item.setting.mask:#x}->{sliced(item.setting.field)}"
        case actions.ModifyField():
            return f"modify_field:{item.increment}->{sliced(item.field)}"
        case actions.AddField():
            return f"add_field({item.offset},{item.length},{item.value:#x})"
        case actions.DeleteField():
            return f"delete_field({item.offset},{item.length})"
        case actions.CalculateChecksum():
            places = (item.checksum_offset, item.checksum_length, item.sum_offset, item.sum_length)
            return f"calculate_checksum({','.join(map(str, places))})"
        case actions.ToController():
            return "controller"
        case actions.Drop():
            return ""
        case _:
            raise SystemExit(f"{item.NAME} has no form in flow syntax")


def step(item: instructions.Instruction) -> list[str]:
    """Returns an instruction in flow syntax."""

    def move(count: object) -> list[str]:
        return [f"move_base({count})"] if count else []

    match item:
        case instructions.GotoTable():
            return [*move(item.packet_offset), f"goto_table:{item.table}"]
        case instructions.GotoDirectTable():
            return [*move(item.packet_offset), f"goto_direct({item.table},{item.index})"]
        case instructions.MovePacketOffset():
            sign = "-" if item.direction == instructions.Direction.BACKWARD else ""
            return move(f"{sign}{item.bytes}")
        case instructions.ApplyActions():
            return [text for text in map(action, item.actions) if text]
        case _:
            raise SystemExit(f"{item.NAME} has no form in flow syntax")


def flow(number: int, entry: FlowMod) -> str:
    """Returns an entry of the table with a global number in flow syntax."""
    marks = {LowLatency.LOW_LATENCY: ["low_latency"], LowLatency.NORMAL: ["low_latency=false"]}
    made = [f"table={number}", *marks.get(LowLatency(entry.low_latency), [])]
    made.append(f"priority={entry.priority}" if entry.matches else f"index={entry.index}")
    made += [f"{sliced(match.field)}={match.value:#x}/{match.mask:#x}" for match in entry.matches]
    steps = [text for item in entry.instructions for text in step(item)]
    return f"{','.join(made)} actions={','.join(steps) or 'drop'}\n"


def block(kind: int, body: bytes) -> bytes:
    """Returns a block of a pcapng capture."""
    body += bytes(-len(body) % 4)
    length = 12 + len(body)
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def capture(given: list[referee.Frame]) -> bytes:
    """Returns a pcapng capture with one interface for each port."""
    made = block(SECTION, struct.pack("<IHHq", MAGIC, 1, 0, -1))
    made += block(INTERFACE, struct.pack("<HHI", ETHERNET, 0, 0)) * referee.HOSTS
    for number, (port, frame) in enumerate(given):
        head = struct.pack("<IIIII", port - 1, 0, number, len(frame), len(frame))
        made += block(PACKET, head + frame)
    return made


def frames_of(path: pathlib.Path) -> list[bytes]:
    """Returns the frames of a pcap capture."""
    data, made, at = path.read_bytes(), [], PCAP_HEADER_BYTES
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        made.append(data[at + PCAP_PACKET_BYTES : at + PCAP_PACKET_BYTES + length])
        at += PCAP_PACKET_BYTES + length
    return made


def replay(shunt: str, rules: str, given: list[referee.Frame], express: str) -> collections.Counter[referee.Frame]:
    """Returns the frames that a switch sends."""
    received: collections.Counter[referee.Frame] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        flows, captured, out = (pathlib.Path(folder, name) for name in ("t.flows", "in.pcapng", "out"))
        flows.write_text(rules)
        captured.write_bytes(capture(given))
        paths = ["--pcap", str(captured), "--flows", str(flows), "--out", str(out)]
        subprocess.run([shunt, "replay", *paths, "--express", express], check=True, stdout=subprocess.DEVNULL)
        for path in out.glob("port-*.pcap"):
            port = int(path.stem.removeprefix("port-"))
            received.update((port, frame) for frame in frames_of(path))
    return received


def main() -> None:
    """Compares all applications."""
    shunt = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    failed = False
    for dialect in Dialect:
        for name, (_, _, base) in referee.APPLICATIONS.items():
            switch = referee.interpreter(name, dialect)
            listed = [(switch.number(key), entry) for key, all_of in switch.entries.items() for entry in all_of.values()]
            rules = "".join(flow(number, entry) for number, entry in listed)
            given = [*base, *referee.changed(base, random.Random(seed), count)]
            expected, _ = referee.expected_of(name, dialect, given)
            for express in ("off", "on"):
                received = replay(shunt, rules, given, express)
                missing, surplus = (expected - received).total(), (received - expected).total()
                failed |= missing + surplus > 0 or expected.total() < 100
                print(
                    f"{name}, dialect {dialect.value}, express path {express}: {len(given)} frames replayed, "
                    f"{received.total()} received, {missing} missing, {surplus} not expected"
                )
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
