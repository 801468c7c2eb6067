# SPDX-License-Identifier: Apache-2.0
"""Entries of edge switches, generated from a plan and the places of hosts. They push keys and tags, pop keys,
and deliver packets to hosts.

If there are several paths, an entry outputs to a group. A select group has the tags that lead to a server,
and each flow gets one of these tags. A fast-failover group has a port and its backup. No group uses a port
that is down.

Table 0 pops the keys of packets and sends these packets to table 2. It sends all other packets to table 1.
Table 1 handles packets from hosts: it sends them to a host at this switch, or with a key or tag to another
switch. Table 2 handles packets whose key ended here: it sends them to a host at this switch or, at a
waypoint, onward with the next key. If packets may have to leave a waypoint by their ingress port, an entry of
higher priority matches this port. A packet that is deflected to a switch without a matching entry is dropped
there. A switch without hosts has no entries, unless it is a waypoint. A waypoint has the entries of table 2,
and the entry of table 0 that leads to table 2.
"""

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from shunt_controller.actions import Action, PopKey, PushKey, PushPolka, PushTf, PushTfWide
from shunt_controller.places import Host, check_hosts
from shunt_controller.plan.errors import need
from shunt_controller.plan.gates import SERVER
from shunt_controller.plan.network import PORT_MAX
from shunt_controller.planned import guarded, whole
from shunt_controller.sections import Types

FROM_HOSTS, ARRIVED = 1, 2
PRIORITY = 10
RETURNS = (1 << 30, 1 << 31)
"""Bits that are added to the number of a group that may send packets back. The first bit is for packets
received at the group's port, the second for packets received at the backup of this port."""

FREERTR_TTL = 255
"""TTL of pushed headers, equal to that of freeRtr."""

GROUPS_MAX, BUCKETS_MAX = 4096, 65_536
"""Maximum number of groups of one type, and of buckets in all groups, that a switch accepts."""

_IPV4, _ARP = 0x0800, 0x0806

_ENTRY = ("key", "hop_limit", "out_port", "backup_port", "return_ports")
"""Keys of a plan's segment that define an entry that pushes a key."""


class Way(NamedTuple):
    """A port and the actions on packets that leave by it. In a group it is a bucket, which is used while the
    port is up."""

    port: int
    actions: tuple[Action, ...] = ()
    sent_by: int | None = None
    """Port number in the output action if it differs from `port`, for example OFPP_IN_PORT."""


class Group(NamedTuple):
    """Alternative ways. A select group uses one way per flow. With `failover`, all packets use the first way
    whose port is up."""

    number: int
    """Number that does not depend on the hosts: the target's gate, or the port that has a backup. A bit of
    :data:`RETURNS` is added for packets that are sent back."""
    ways: tuple[Way, ...]
    failover: bool = False


class Entry(NamedTuple):
    """An entry: it matches packets of a table, changes them, and sends them to a port, a group or another
    table."""

    table: int
    priority: int
    match: dict[str, Any]
    actions: tuple[Action, ...] = ()
    port: int | None = None
    group: Group | None = None
    goto: int | None = None


def entries(plan: dict[str, Any], hosts: Sequence[Host]) -> dict[str, list[Entry]]:
    """Returns the entries of each switch by its name."""
    return guarded(plan, lambda: _entries(plan, hosts))


def _entries(plan: dict[str, Any], hosts: Sequence[Host]) -> dict[str, list[Entry]]:
    check_hosts(plan, hosts)
    found: dict[str, list[Entry]] = {switch["name"]: [] for switch in plan["switches"]}
    at: dict[str, list[Host]] = {}
    for host in hosts:
        at.setdefault(host.switch, []).append(host)
    for name, own in at.items():
        found[name] = [Entry(0, 0, {}, goto=FROM_HOSTS)]
        for host in own:
            found[name] += _to(FROM_HOSTS, host, port=host.port)
    if plan["kind"] == "tag-and-forward":
        # Tags are popped before the link to the server, so no tables need entries for tagged packets.
        _push_tags(plan, at, found)
    else:
        for name, own in at.items():
            for host in own:
                found[name] += _to(ARRIVED, host, port=host.port)
        _push_keys(plan, at, found)
        _pop_keys(plan, found)
    for name, made in found.items():
        count = len(groups(name, made))
        need(count <= GROUPS_MAX, f"{name} needs {count} groups to reach the hosts of other switches; a switch has at most {GROUPS_MAX}")
    return found


def _pop_keys(plan: dict[str, Any], found: dict[str, list[Entry]]) -> None:
    eth_type = Types().keyflow if plan["kind"] == "keyflow" else Types().polka
    for own in found.values():
        if own:
            own.append(Entry(0, PRIORITY, {"eth_type": eth_type}, (PopKey(),), goto=ARRIVED))


def groups(switch: str, made: Iterable[Entry]) -> dict[int, Group]:
    """Returns the groups of a switch's entries by number."""
    found: dict[int, Group] = {}
    for group in (entry.group for entry in made if entry.group is not None):
        before = found.setdefault(group.number, group)
        need(before is group or before == group, f"{switch} has group {group.number} twice, with different buckets")
    return found


def _to(table: int, host: Host, **how: Any) -> list[Entry]:
    """Returns entries for packets to a host and for ARP requests for its address."""
    return [Entry(table, PRIORITY, match, **how) for match in _matches(host.address)]


@lru_cache(1 << 16)
def _matches(address: str) -> tuple[dict[str, Any], ...]:
    # Cached, because large plans have entries for a host at each of hundreds of switches.
    return {"eth_type": _IPV4, "ipv4_dst": address}, {"eth_type": _ARP, "arp_tpa": address}


def _push_keys(plan: dict[str, Any], at: dict[str, list[Host]], found: dict[str, list[Entry]]) -> None:
    # If a KeyFlow plan has two epochs, the new one is used.
    made = plan["plans"][-1] if plan["kind"] == "keyflow" else plan
    done: dict[tuple[int, str, str], list[str]] = {}
    pushed: dict[tuple[int, str, str], dict[str, Any]] = {}
    for route in made["routes"]:
        to = route["to"]
        if route["from"] not in at or to not in at:
            continue
        for number, segment in enumerate(route["segments"]):
            switch, table = segment["path"][0], ARRIVED if number else FROM_HOSTS
            # An entry that pushes a key matches only the destination, so all routes to it on which this
            # switch pushes a key must continue in the same way.
            rest = [name for following in route["segments"][number:] for name in following["path"][1:]]
            before = done.setdefault((table, switch, to), rest)
            need(before == rest, f"two routes to {to} continue differently from {switch}: {before} and {rest}")
            entry = {name: segment.get(name) for name in _ENTRY}
            need(pushed.setdefault((table, switch, to), entry) == entry, f"two routes to {to} need different entries at {switch}")
            if before is not rest:
                continue
            backup = segment["backup_port"] if plan["kind"] == "keyflow" else None
            ports = [_port(port) for port in (segment["out_port"], backup) if port is not None]
            push = (_push(made, segment),)
            returns = segment.get("return_ports", [])
            need(set(returns) <= set(ports), f"{switch} has the return ports {returns}, which are not among its output ports {ports}")
            need(not returns or number > 0, f"{switch} has the return ports {returns} although a route begins there; only waypoints have return ports")
            for host in at[to]:
                found[switch] += _to(table, host, actions=push, **ways_by(ports))
                for port in returns:
                    for entry in _to(table, host, actions=push, **ways_by(ports, port)):
                        match = {"in_port": port, **entry.match}
                        found[switch].append(entry._replace(priority=PRIORITY + 1, match=match))


def _push(made: dict[str, Any], segment: dict[str, Any]) -> Action:
    key = int(segment["key"], 16)
    if made.get("kind") == "polka-freertr":
        return PushPolka(key, FREERTR_TTL)
    return PushKey(key, whole(made["width_bits"]), whole(segment["hop_limit"]), whole(made["epoch"]))


def ways_by(ports: list[int], in_port: int | None = None) -> dict[str, Any]:
    """Sends by the first port that is up. To output by the ingress port, OpenFlow requires OFPP_IN_PORT."""
    ways = tuple(Way(port, sent_by=ofp.OFPP_IN_PORT if port == in_port else None) for port in ports)
    if len(ways) == 1:
        return {"port": ports[0] if in_port is None else ofp.OFPP_IN_PORT}
    # Each port has one backup, so the port identifies the group.
    number = ports[0] if in_port is None else ports[0] | RETURNS[ports.index(in_port)]
    return {"group": Group(number, ways, failover=True)}


def _port(value: Any) -> int:
    need(0 < whole(value) <= PORT_MAX, f"{value} is not a port number")
    return int(value)


def _push_tags(plan: dict[str, Any], at: dict[str, list[Host]], found: dict[str, list[Entry]]) -> None:
    push = PushTfWide if plan["header"]["name"] == "wide" else PushTf
    switches = {switch["name"]: switch for switch in plan["switches"]}
    gate_at = {(name, port): gate for name in switches for port, gate, flag, _ in switches[name]["gates"] if flag == SERVER}
    for host in (host for own in at.values() for host in own):
        has_gate = (host.switch, host.port) in gate_at
        need(has_gate, f"{host.address} is at port {host.port} of {host.switch}, which has no server gate")

    @cache
    def way(port: int, up: int, down: int) -> Way:
        return Way(_port(port), (push(0, whole(up), whole(down)),))

    # Most switches have the same ways to a target. They share the entries, which saves time and memory.
    kinds: dict[tuple[tuple[int, int], ...], int] = {}
    shared: dict[tuple[int, int, Host], list[Entry]] = {}
    for number, edge in enumerate(switches.values()):
        if edge["name"] not in at:
            continue
        elsewhere = [host for name, own in at.items() if name != edge["name"] for host in own]
        targets = {gate_at[host.switch, host.port]: switches[host.switch] for host in elsewhere}
        # The groups of a switch must not have more buckets in total than the switch accepts.
        ways_max = BUCKETS_MAX // max(1, len(targets))
        near, far = _tags(edge, [[0] for _ in plan["ups"]]), _tags(edge, plan["ups"])
        kind = {id(tags): kinds.setdefault(tuple(tags), len(kinds)) for tags in (near, far)}
        for host in elsewhere:
            down = gate_at[host.switch, host.port]
            tags = near if targets[down]["pod"] == edge["pod"] else far
            need(bool(tags), f"the plan has no tags from {edge['name']} to {host.switch}")
            first = 31 * number + down // 2 if len(tags) > ways_max else 0
            place = kind[id(tags)], first, host
            if place not in shared:
                ways = tuple(way(port, up, down) for port, up in spread(tags, ways_max, first))
                shared[place] = _to(FROM_HOSTS, host, **({"group": Group(down, ways)} if len(ways) > 1 else ways[0]._asdict()))
            found[edge["name"]] += shared[place]


def _tags(edge: dict[str, Any], ups: list[list[int]]) -> list[tuple[int, int]]:
    """Returns each uplink of an edge switch, with each UP of its plane."""
    return [(port, up) for port, plane in zip(edge["uplinks"], ups, strict=True) for up in plane]


def spread(tags: list[tuple[int, int]], most: int, first: int) -> list[tuple[int, int]]:
    """Returns at most `most` of the tags. They are spread over all planes and differ for each `first`."""
    count = len(tags)
    return tags if count <= most else [tags[(first + at * count // most) % count] for at in range(most)]


def messages(datapath: Any, made: Sequence[Entry]) -> list[Any]:
    """Returns group-mods and flow-mods that add these entries, groups first."""
    found = [group_message(datapath, group) for group in groups("a switch", made).values()]
    return found + [flow_message(datapath, entry) for entry in made]


def flow_message(datapath: Any, entry: Entry) -> Any:
    """Returns the flow-mod that adds an entry."""
    actions: list[Any] = list(entry.actions)
    if entry.group is not None:
        actions.append(parser.OFPActionGroup(entry.group.number))
    elif entry.port is not None:
        actions.append(parser.OFPActionOutput(entry.port))
    instructions = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)] if actions else []
    if entry.goto is not None:
        instructions.append(parser.OFPInstructionGotoTable(entry.goto))
    match = parser.OFPMatch(**entry.match)
    return parser.OFPFlowMod(datapath, table_id=entry.table, priority=entry.priority, match=match, instructions=instructions)


def group_message(datapath: Any, group: Group) -> Any:
    """Returns the group-mod that adds a group."""
    kind, weight = (ofp.OFPGT_FF, 0) if group.failover else (ofp.OFPGT_SELECT, 1)
    buckets = [
        parser.OFPBucket(weight, way.port, ofp.OFPG_ANY, [*way.actions, parser.OFPActionOutput(way.port if way.sent_by is None else way.sent_by)])
        for way in group.ways
    ]
    return parser.OFPGroupMod(datapath, ofp.OFPGC_ADD, kind, group.number, buckets)
