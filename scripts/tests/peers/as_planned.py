# SPDX-License-Identifier: Apache-2.0
"""Compares the output of `shunt flows dump` and `shunt show stateless` with a plan.

    as_planned.py FOLDER SHUNT

FOLDER has the files of planned.sh: plan.json, hosts.json, and `names` with one line per switch, its number
and its name.
"""

import json
import pathlib
import subprocess
import sys

from os_ken.ofproto import ofproto_v1_3 as ofp
from shunt_controller.actions import PopKey, PushKey, PushTfWide
from shunt_controller.edges import entries
from shunt_controller.places import read_places
from shunt_controller.planned import read_plan

FIELDS = {"eth_type": "dl_type=%#06x", "ipv4_dst": "nw_dst=%s", "arp_tpa": "arp_tpa=%s"}
WORDS = {"dl_type=0x0800": "ip", "dl_type=0x0806": "arp"}
FLAGS = {"": "", "G_SRV": "server", "G_EXT": "external", "G_ASS": "assists"}


def action_text(action):
    """Returns an action in the flow syntax."""
    if isinstance(action, PopKey):
        return "pop_key"
    if isinstance(action, PushKey):
        digits = action.width_bits // 4
        key = f"0x{action.key:0{digits}x}"
        return f"push_key(key={key},width={action.width_bits},hops={action.hops},epoch={action.epoch})"
    form = "push_tf_wide" if isinstance(action, PushTfWide) else "push_tf"
    return f"{form}({action.qid},{action.up:#x},{action.down:#x})"


def output_text(port):
    """Returns an output as `flows dump` prints it."""
    return "IN_PORT" if port == ofp.OFPP_IN_PORT else f"output:{port}"


def group(group):
    """Returns a group as `flows dump` prints it."""
    kind, weight = ("ff", "") if group.failover else ("select", "weight:1,")
    buckets = []
    for way in group.ways:
        output = output_text(way.port if way.sent_by is None else way.sent_by)
        actions = ",".join([*(action_text(action) for action in way.actions), output])
        buckets.append(f",bucket={weight}watch_port:{way.port},actions={actions}")
    return f"group add_or_mod group_id={group.number},type={kind}{''.join(buckets)}"


def lines(entries_planned):
    """Returns the groups and entries of a switch as `flows dump` prints them."""
    groups = {entry.group.number: entry.group for entry in entries_planned if entry.group is not None}
    return sorted([*map(group, groups.values()), *map(flow, entries_planned)])


def flow(entry):
    """Returns an entry as `flows dump` prints it."""
    match = [f"priority={entry.priority}"]
    for field, value in entry.match.items():
        text = FIELDS[field] % value
        match.append(WORDS.get(text, text))
    actions = [action_text(action) for action in entry.actions]
    actions += [output_text(entry.port)] if entry.port is not None else []
    actions += [f"group:{entry.group.number}"] if entry.group is not None else []
    actions += [f"goto_table:{entry.goto}"] if entry.goto is not None else []
    table = f"table={entry.table}," if entry.table else ""
    return f"{table}{','.join(match)} actions={','.join(actions)}"


def stateless(plan, switch):
    """Returns the sections of a switch, derived from the plan's JSON alone."""
    if plan["kind"] == "tag-and-forward":
        gates = {key: switch[key] for key in ("down_d", "up_d", "external_d")}
        gates["ports"] = sorted([port, gate, FLAGS[flag]] for port, gate, flag, _ in switch["gates"])
        return {"gates": gates | {"server_gate_max": plan["server_gate_max"]}, "bank": []}
    banks = []
    for bank in switch["banks"]:
        (arithmetic,) = {made["arithmetic"] for made in plan["plans"] if made["epoch"] == bank["epoch"]}
        backups = sorted([int(port), backup] for port, backup in bank["backups"].items())
        banks.append(bank | {"arithmetic": arithmetic, "backups": backups})
    return {"gates": None, "bank": banks}


def main():
    """Exits with an explanation if a switch differs from the plan."""
    folder, shunt = pathlib.Path(sys.argv[1]), sys.argv[2]
    plan = read_plan(str(folder / "plan.json"))
    planned = entries(plan, read_places(str(folder / "hosts.json")).hosts)
    switches = {switch["name"]: switch for switch in plan["switches"]}
    for line in (folder / "names").read_text().splitlines():
        number, name = line.split(" ", 1)

        def say(*words, number=number):
            command = [shunt, "--control", f"{folder}/s{number}.sock", *words]
            return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

        flows, wanted = sorted(say("flows", "dump").splitlines()), lines(planned[name])
        if flows != wanted:
            sys.exit(f"{name} has the unplanned groups and flows {set(flows) - set(wanted)} and lacks {set(wanted) - set(flows)}")
        shown = json.loads(say("show", "stateless", "--json"))["lane"]
        ports = []
        for link in plan["network"]["links"]:
            if link["a"] in switches and link["b"] in switches:
                ports += [link[f"{end}_port"] for end in "ab" if link[end] == name]
        wanted = stateless(plan, switches[name]) | {"trusted": sorted(ports), "polka": None, "mtu": []}
        found = {key: shown[key] for key in wanted}
        if found != wanted:
            sys.exit(f"{name} has the stateless sections {found} instead of {wanted}")


if __name__ == "__main__":
    main()
