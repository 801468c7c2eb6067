# SPDX-License-Identifier: Apache-2.0
"""Entries of edge switches, made of a plan and of where hosts are: they push keys and tags, take keys off, and deliver.

Table 0 sends packets with a key to table 2, without it, and all others to table 1. Table 1 is for what hosts send: to a host
at this switch, or with a key or tag to another. Table 2 is for what has arrived: to a host at this switch or, at a
waypoint, on with the next key. So what was deflected to a switch where it has nothing to do ends there.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from shunt_controller.actions import Action, PopKey, PushKey, PushTf, PushTfWide
from shunt_controller.plan.errors import need
from shunt_controller.plan.gates import SERVER
from shunt_controller.planned import guarded
from shunt_controller.sections import Types

FROM_HOSTS, ARRIVED = 1, 2
PRIORITY = 10

_IPV4, _ARP = 0x0800, 0x0806


class Host(NamedTuple):
    """Where an IPv4 address is."""

    address: str
    switch: str
    port: int


class Entry(NamedTuple):
    """Packets of a table that match are changed, and sent by a port (by `backup` while that is down) or on to a table."""

    table: int
    priority: int
    match: dict[str, Any]
    actions: tuple[Action, ...] = ()
    port: int | None = None
    backup: int | None = None
    goto: int | None = None


def entries(plan: dict[str, Any], hosts: Sequence[Host]) -> dict[str, list[Entry]]:
    """The entries of each switch, by its name. Nobody pushes freeRtr's PolKA here: its entries only take it off."""
    return guarded(plan, lambda: _entries(plan, hosts))


def _entries(plan: dict[str, Any], hosts: Sequence[Host]) -> dict[str, list[Entry]]:
    names = [switch["name"] for switch in plan["switches"]]
    for host in hosts:
        need(host.switch in names, f"{host.address} is at {host.switch}, which is no switch of the plan")
    types = Types()
    tagged = {"keyflow": types.keyflow, "polka-freertr": types.polka}.get(plan["kind"])
    found: dict[str, list[Entry]] = {}
    for name in names:
        found[name] = [Entry(0, 0, {}, goto=FROM_HOSTS)]
        if tagged:
            found[name].append(Entry(0, PRIORITY, {"eth_type": tagged}, (PopKey(),), goto=ARRIVED))
        for host in hosts:
            if host.switch == name:
                found[name] += _to(FROM_HOSTS, host, port=host.port) + _to(ARRIVED, host, port=host.port)
    if plan["kind"] == "keyflow":
        _push_keys(plan, hosts, found)
    if plan["kind"] == "tag-and-forward":
        _push_tags(plan, hosts, found)
    return found


def _to(table: int, host: Host, **how: Any) -> list[Entry]:
    """For packets to a host, and for who asks for its MAC address."""
    matches = {"eth_type": _IPV4, "ipv4_dst": host.address}, {"eth_type": _ARP, "arp_tpa": host.address}
    return [Entry(table, PRIORITY, match, **how) for match in matches]


def _push_keys(plan: dict[str, Any], hosts: Sequence[Host], found: dict[str, list[Entry]]) -> None:
    # The plan of the new epoch, if there are two.
    made = plan["plans"][-1]
    own = {(route["from"], route["to"]): route["segments"][0] for route in made["routes"]}
    on: dict[tuple[str, str], Any] = {}
    for route in made["routes"]:
        for segment in route["segments"][1:]:
            at = segment["path"][0], route["to"]
            on.setdefault(at, own.get(at, segment))
    for table, segments in ((FROM_HOSTS, own), (ARRIVED, on)):
        for (switch, to), segment in segments.items():
            push = PushKey(int(segment["key"], 16), int(made["width_bits"]), int(segment["hop_limit"]), int(made["epoch"]))
            for host in (host for host in hosts if host.switch == to):
                how = {"actions": (push,), "port": segment["out_port"], "backup": segment["backup_port"]}
                found[switch] += _to(table, host, **how)


def _push_tags(plan: dict[str, Any], hosts: Sequence[Host], found: dict[str, list[Entry]]) -> None:
    push = PushTfWide if plan["header"]["name"] == "wide" else PushTf
    switches = {switch["name"]: switch for switch in plan["switches"]}
    for place, host in enumerate(hosts):
        target = switches[host.switch]
        downs = [gate for port, gate, flag, _ in target["gates"] if port == host.port and flag == SERVER]
        need(bool(downs), f"{host.address} is at port {host.port} of {host.switch}, which has no server's gate")
        for number, edge in enumerate(one for one in switches.values() if one["layer"] == "edge"):
            if edge["name"] == host.switch:
                continue
            # Any of these will do; they share the load.
            plane = (number + place) % len(edge["uplinks"])
            ups = plan["ups"][plane]
            up = 0 if edge["pod"] == target["pod"] else ups[(number + place) // len(edge["uplinks"]) % len(ups)]
            actions = (push(0, up, downs[0]),)
            found[edge["name"]] += _to(FROM_HOSTS, host, actions=actions, port=edge["uplinks"][plane])


def messages(datapath: Any, made: Sequence[Entry]) -> list[Any]:
    """Group- and flow-mods that add these entries: with a backup, by way of a fast-failover group."""
    groups: dict[tuple[int, int], int] = {}
    flows = []
    for entry in made:
        actions: list[Any] = list(entry.actions)
        if entry.port is not None and entry.backup is not None:
            group = groups.setdefault((entry.port, entry.backup), len(groups) + 1)
            actions.append(parser.OFPActionGroup(group))
        elif entry.port is not None:
            actions.append(parser.OFPActionOutput(entry.port))
        instructions = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)] if actions else []
        if entry.goto is not None:
            instructions.append(parser.OFPInstructionGotoTable(entry.goto))
        match = parser.OFPMatch(**entry.match)
        where = {"table_id": entry.table, "priority": entry.priority}
        flows.append(parser.OFPFlowMod(datapath, **where, match=match, instructions=instructions))
    return [_group(datapath, number, ports) for ports, number in groups.items()] + flows


def _group(datapath: Any, number: int, ports: tuple[int, int]) -> Any:
    buckets = [
        parser.OFPBucket(watch_port=port, watch_group=ofp.OFPG_ANY, actions=[parser.OFPActionOutput(port)]) for port in ports
    ]
    return parser.OFPGroupMod(datapath, ofp.OFPGC_ADD, ofp.OFPGT_FF, number, buckets)
