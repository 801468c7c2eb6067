# SPDX-License-Identifier: Apache-2.0
"""Configurations of switches in the messages of OpenFlow: the messages that change one configuration into
another, and the configuration that is described by statistics.

Messages are bytes. A planned entry keeps its message, because many switches have the same entries."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from shunt_controller.bundles import PROTOCOL, packed
from shunt_controller.edges import Entry, Group
from shunt_controller.live.state import Flow, State, flow_id, present
from shunt_controller.sections import Bank, Gates, Mtu, Polka, Section, Trusted
from shunt_controller.stateless import StatelessMod

GROUP_MODS_MAX = 8192
"""Maximum number of messages for groups that are kept."""
_GROUP_MODS: dict[tuple[int, int], tuple[Group, bytes]] = {}
_COMMANDS_ANY = {"out_port": ofp.OFPP_ANY, "out_group": ofp.OFPG_ANY}


def flow_of(entry: Entry, stage: int = 0, idle_s: int = 0) -> Flow:
    """Returns a planned entry. If `idle_s` is not 0, the switch removes it after that time without packets."""
    return Flow(flow_id(entry.table, entry.priority, entry.match), body(instructions(entry)), idle_s, entry.match, entry, stage)


class PlannedGroup(NamedTuple):
    """A planned group, also in a form that can be compared."""

    group: Group
    body: tuple[Any, ...]


def planned_group(group: Group) -> PlannedGroup:
    """Returns a planned group."""
    return PlannedGroup(group, group_body(*_group_parts(group)))


def of_flows(flows: Iterable[Flow], sections: Iterable[Section], groups: Mapping[int, PlannedGroup] | None = None) -> State:
    """Returns a planned configuration. Without `groups`, it has the groups that its entries use."""
    found = {flow.id: flow for flow in flows}
    if groups is None:
        entries = (flow.entry for flow in found.values())
        groups = {entry.group.number: planned_group(entry.group) for entry in entries if entry and entry.group}
    kept = {section.place: section for section in sections if present(section)}
    bodies = {number: one.body for number, one in groups.items()}
    return State(kept, bodies, found, {number: one.group for number, one in groups.items()})


def of_statistics(sections: Iterable[Section], groups: Iterable[Any], flows: Iterable[Any], kinds: Collection[int]) -> State:
    """Returns the configuration that a switch has reported: sections of some kinds, and items of the replies to
    requests for group descriptions and flow statistics."""
    found = {}
    for one in flows:
        match = dict(one.match.items())
        key = flow_id(one.table_id, one.priority, match)
        found[key] = Flow(key, body(one.instructions), one.idle_timeout, match)
    kept = {section.place: section for section in sections if section.kind in kinds and present(section)}
    return State(kept, {one.group_id: group_body(one.type, one.buckets) for one in groups}, found)


def messages(actual: State, target: State, cookie: int) -> list[bytes]:
    """Returns the messages that change a configuration into another. What is removed is removed last."""
    found: list[bytes] = []
    changed = [section for place, section in target.sections.items() if actual.sections.get(place) != section]
    changed += [_absent(place) for place in actual.sections if place not in target.sections]
    if changed:
        found.append(packed(StatelessMod(PROTOCOL, changed)))
    for number, group in target.groups.items():
        if actual.groups.get(number) != group:
            command = ofp.OFPGC_MODIFY if number in actual.groups else ofp.OFPGC_ADD
            found.append(_group_mod(target.planned[number], command))
    for key, flow in target.flows.items():
        before = actual.flows.get(key)
        if before is not flow and before != flow and flow.entry is not None:
            found.append(_added(flow, cookie))
    for key, flow in actual.flows.items():
        if key not in target.flows:
            found.append(packed(_flow_mod(flow, ofp.OFPFC_DELETE_STRICT, 0, [])))
    for number in actual.groups:
        if number not in target.groups:
            found.append(packed(parser.OFPGroupMod(PROTOCOL, ofp.OFPGC_DELETE, 0, number, [])))
    return found


def _added(flow: Flow, cookie: int) -> bytes:
    """Returns the message that adds a planned entry."""
    if flow.added is None or flow.added[0] != cookie:
        assert flow.entry is not None
        message = packed(_flow_mod(flow, ofp.OFPFC_ADD, cookie, instructions(flow.entry)))
        object.__setattr__(flow, "added", (cookie, message))
    assert flow.added is not None
    return flow.added[1]


def _group_mod(group: Group, command: int) -> bytes:
    """Returns the message that adds or modifies a group. Messages are kept, because switches share groups."""
    kept = _GROUP_MODS.get((id(group), command))
    if kept is None:
        if len(_GROUP_MODS) >= GROUP_MODS_MAX:
            _GROUP_MODS.clear()
        kind, buckets = _group_parts(group)
        # Keep the group as well: Python could give its identity to another object otherwise.
        kept = group, packed(parser.OFPGroupMod(PROTOCOL, command, kind, group.number, buckets))
        _GROUP_MODS[id(group), command] = kept
    return kept[1]


def _absent(place: tuple[int, int]) -> Section:
    """Returns the section without content."""
    kind, epoch = place
    without: dict[int, Section] = {Trusted.kind: Trusted(()), Mtu.kind: Mtu({}), Polka.kind: Polka(None), Gates.kind: Gates(None)}
    return Bank(epoch, None) if kind == Bank.kind else without[kind]


def _flow_mod(flow: Flow, command: int, cookie: int, made: list[Any]) -> Any:
    flags = ofp.OFPFF_SEND_FLOW_REM if flow.idle_s and command == ofp.OFPFC_ADD else 0
    return parser.OFPFlowMod(
        PROTOCOL,
        cookie=cookie,
        table_id=flow.id.table,
        command=command,
        idle_timeout=flow.idle_s,
        priority=flow.id.priority,
        flags=flags,
        match=parser.OFPMatch(**flow.match),
        instructions=made,
        **_COMMANDS_ANY,
    )


def instructions(entry: Entry) -> list[Any]:
    """Returns the instructions of an entry."""
    actions: list[Any] = list(entry.actions)
    if entry.group is not None:
        actions.append(parser.OFPActionGroup(entry.group.number))
    elif entry.port is not None:
        # The controller gets whole packets, because packet buffers may be lost.
        actions.append(parser.OFPActionOutput(entry.port, ofp.OFPCML_NO_BUFFER))
    found = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)] if actions else []
    return found if entry.goto is None else [*found, parser.OFPInstructionGotoTable(entry.goto)]


def body(made: Iterable[Any]) -> tuple[Any, ...]:
    """Returns instructions in a form that can be compared."""
    found: list[Any] = []
    for one in made:
        if isinstance(one, parser.OFPInstructionActions):
            if one.actions:
                found.append(("actions", one.type, actions_body(one.actions)))
        elif isinstance(one, parser.OFPInstructionGotoTable):
            found.append(("goto", one.table_id))
        else:
            found.append(("other", _bytes(one)))
    return tuple(sorted(found, key=repr))


def actions_body(actions: Iterable[Any]) -> tuple[Any, ...]:
    """Returns actions in a form that can be compared. Only outputs to the controller have a length."""
    found: list[Any] = []
    for action in actions:
        if isinstance(action, parser.OFPActionOutput):
            found.append(("output", action.port, action.max_len if action.port == ofp.OFPP_CONTROLLER else 0))
        elif isinstance(action, parser.OFPActionGroup):
            found.append(("group", action.group_id))
        else:
            found.append(("other", _bytes(action)))
    return tuple(found)


def group_body(kind: int, buckets: Iterable[Any]) -> tuple[Any, ...]:
    """Returns a group in a form that can be compared."""
    return kind, tuple((bucket.weight, bucket.watch_port, actions_body(bucket.actions)) for bucket in buckets)


def _group_parts(group: Group) -> tuple[int, list[Any]]:
    kind, weight = (ofp.OFPGT_FF, 0) if group.failover else (ofp.OFPGT_SELECT, 1)
    return kind, [
        parser.OFPBucket(weight, way.port, ofp.OFPG_ANY, [*way.actions, parser.OFPActionOutput(way.port if way.sent_by is None else way.sent_by)])
        for way in group.ways
    ]


def _bytes(part: Any) -> bytes:
    buffer = bytearray()
    part.serialize(buffer, 0)
    return bytes(buffer)
