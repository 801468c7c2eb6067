# SPDX-License-Identifier: Apache-2.0
"""The configuration of each switch for Tag-and-Forward in a running network.

- Table 0 sends packets of known hosts, recognised by port and source address, to table 1. Packets of other
  hosts go to the controller. ARP replies and neighbour advertisements are also copied to it. Packets
  without a tag at ports to switches are dropped.
- Table 1 of an edge switch sends packets from hosts to a host at this switch, or to a select group of tags
  that lead to another switch. The group of a host has the number of the host's gate, plus :data:`QID_UNIT`
  for each value of QID. Table 1 of a core switch pushes tags on packets from the outside.

A group has only tags whose paths have no failed link. A group without any tag drops packets.
"""

from collections.abc import Collection, Mapping
from functools import cache, lru_cache

from os_ken.ofproto import ofproto_v1_3 as ofp

from shunt_controller.actions import PushTf, PushTfWide
from shunt_controller.edges import BUCKETS_MAX, FROM_HOSTS, GROUPS_MAX, PRIORITY, Entry, Group, Way, spread
from shunt_controller.live.keyentries import ANNOUNCED, TO_SWITCH
from shunt_controller.live.state import INGRESS, Flow, State
from shunt_controller.live.topology import Host, Link, Port, switch_of
from shunt_controller.live.wire import PlannedGroup, flow_of, of_flows, planned_group
from shunt_controller.plan.errors import need
from shunt_controller.plan.gates import ASSISTS, EXTERNAL, SERVER, WIDE, Gate, Numbering
from shunt_controller.plan.tags import f
from shunt_controller.sections import Flag, GateMap, Gates, Section, Trusted
from shunt_controller.sections import Gate as WireGate

KEPT_MAX = 1 << 18
"""Maximum number of hosts, counted once for each way to them, whose entries are kept for later plans."""
QID_UNIT = 1 << 20
"""Difference between the numbers of groups that push different values of QID."""
FLAGS = {"": Flag.NONE, SERVER: Flag.SERVER, EXTERNAL: Flag.EXTERNAL, ASSISTS: Flag.ASSISTS}

_ANNOUNCED = ({"eth_type": 0x0806, "arp_op": 2}, {"eth_type": 0x86DD, "ip_proto": 58, "icmpv6_type": 136})
_IP = (0x0800, 0x86DD)


@lru_cache(1 << 12)
def _dropped(port: int) -> Flow:
    """Returns the entry that drops packets without a tag at a port to a switch."""
    return flow_of(Entry(0, TO_SWITCH, {"in_port": port}))


@cache
def _common() -> tuple[Flow, ...]:
    """Returns the entries that all switches have."""
    entries = [Entry(0, ANNOUNCED, dict(match), port=ofp.OFPP_CONTROLLER, goto=FROM_HOSTS) for match in _ANNOUNCED]
    entries += [Entry(table, 0, {}, port=ofp.OFPP_CONTROLLER) for table in (0, FROM_HOSTS)]
    return tuple(map(flow_of, entries))


@lru_cache(1 << 14)
def _of_host(mac: str, port: int) -> tuple[Flow, ...]:
    """Returns the entries of a switch for a host of its own."""
    to = Entry(FROM_HOSTS, PRIORITY, {"eth_dst": mac}, port=port)
    accepted = Entry(0, PRIORITY, {"in_port": port, "eth_src": mac}, goto=FROM_HOSTS)
    return flow_of(to), flow_of(accepted, INGRESS + 1)


def _to(mac: str, dscp: int | None, group: Group) -> list[Entry]:
    """Returns the entries that output packets to a host to a group: all packets, or IP packets with a DSCP."""
    if dscp is None:
        return [Entry(FROM_HOSTS, PRIORITY, {"eth_dst": mac}, group=group)]
    return [Entry(FROM_HOSTS, PRIORITY + 1, {"eth_dst": mac, "eth_type": eth_type, "ip_dscp": dscp}, group=group) for eth_type in _IP]


class Tags:
    """Configurations of the switches of a numbered tree. `known` has the ports of each switch that exist:
    only they get gates. `qids` has the QID of packets by their DSCP; other packets have QID 0."""

    def __init__(self, numbering: Numbering, known: Mapping[int, Collection[int]], qids: Mapping[int, int]) -> None:
        self._numbering, self._known, self._qids = numbering, known, dict(sorted(qids.items()))
        tree = numbering.tree
        self._tree, self._neighbours = tree, tree.network.neighbours
        self._pod_of = tree.pod_of()
        self._plane_of = {core: plane for plane, cores in enumerate(tree.cores) for core in cores}
        self.number = [switch_of(name) for name in tree.network.nodes]
        """Datapath IDs by node."""
        self._node = {switch: node for node, switch in enumerate(self.number)}
        push = PushTfWide if numbering.header == WIDE else PushTf
        self._kinds: dict[tuple[tuple[int, int], ...], int] = {}
        """Numbers of lists of output ports and values of UP."""
        self._groups: dict[tuple[int, int, int], PlannedGroup] = {}
        self._flows: dict[tuple[int, int, str], list[Flow]] = {}
        self._way = cache(lambda port, qid, up, down: Way(port, (push(qid, up, down),)))

    def gate_at(self, port: Port) -> Gate | None:
        """Returns the gate of a port for a server or of a port to the outside. Returns None for other
        ports."""
        node = self._node.get(port.switch)
        gate = None if node is None else self._numbering.switches[node].by_port.get(port.number)
        return gate if gate is not None and gate.flag in (SERVER, EXTERNAL) else None

    def configurations(self, hosts: Collection[Host], alive: Collection[Link]) -> dict[int, State]:
        """Returns the configuration of each switch by datapath ID. `alive` has the links that work. Hosts at
        ports without such a gate are left out."""
        at: dict[int, list[tuple[Host, Gate]]] = {}
        for host in hosts:
            gate = self.gate_at(host.at)
            if gate is not None:
                at.setdefault(self._node[host.at.switch], []).append((host, gate))
        works = self._working(alive)
        if len(self._flows) > KEPT_MAX:
            for kept in (self._kinds, self._groups, self._flows):
                kept.clear()
        return {self.number[node]: self._switch(node, at, works) for node in self._numbering.switches}

    def _working(self, alive: Collection[Link]) -> set[tuple[int, int]]:
        """Returns the pairs of nodes with a link that works, in both orders."""
        found = set()
        for link in self._tree.network.links:
            if Link.of(Port(self.number[link.a], link.a_port), Port(self.number[link.b], link.b_port)) in alive:
                found |= {(link.a, link.b), (link.b, link.a)}
        return found

    def _switch(self, node: int, at: Mapping[int, list[tuple[Host, Gate]]], works: Collection[tuple[int, int]]) -> State:
        flows = [*map(_dropped, self._tree.network.ports[node]), *_common()]
        groups: dict[int, PlannedGroup] = {}
        for host, _ in at.get(node, ()):
            flows += _of_host(host.mac, host.at.number)
        if node in at and self._numbering.switches[node].layer != "aggregation":
            remote = [(other, host, gate) for other, own in at.items() if other != node for host, gate in own]
            pushed, groups = self._push(node, remote, works)
            flows += pushed
        return of_flows(flows, self._sections(node), groups)

    def _sections(self, node: int) -> list[Section]:
        switch, links = self._numbering.switches[node], self._tree.network.ports[node]
        exist = links.keys() | set(self._known.get(self.number[node], ()))
        gates = {port: WireGate(gate.gate, FLAGS[gate.flag]) for port, gate in sorted(switch.by_port.items()) if port in exist}
        lane = GateMap(switch.down_d, switch.up_d, switch.external_d, self._numbering.server_gate_max, gates)
        return [Trusted(links), Gates(lane)]

    def _push(
        self, node: int, remote: list[tuple[int, Host, Gate]], works: Collection[tuple[int, int]]
    ) -> tuple[list[Flow], dict[int, PlannedGroup]]:
        """Returns the entries of packets from hosts at a switch to hosts at other switches, and their groups.
        Switches whose packets take the same ways share entries and groups, also with earlier plans."""
        classes = [(0, None), *((qid, dscp) for dscp, qid in self._qids.items())]
        qids = {qid for qid, _ in classes}
        count = len({gate.gate for _, _, gate in remote}) * len(qids)
        need(count <= GROUPS_MAX, f"switch {self.number[node]:x} needs {count} groups to reach all hosts; a switch has at most {GROUPS_MAX}")
        most, flows, groups = BUCKETS_MAX // max(1, count), [], {}
        ways_to: dict[int, tuple[int, tuple[tuple[int, int], ...]]] = {}
        for other, host, gate in remote:
            # Tags from a core switch depend on the gate, and those from an edge switch only on the other switch.
            if other not in ways_to or node in self._plane_of:
                ways_to[other] = self._kind(tuple(self._tags(node, other, gate, works)))
            (kind, tags), down = ways_to[other], gate.gate
            if len(tags) > most:
                kind, tags = self._kind(tuple(spread(list(tags), most, 31 * node + down // 2)))
            for qid in qids:
                groups[down + qid * QID_UNIT] = self._group(kind, tags, down, qid)
            place = kind, down, host.mac
            if place not in self._flows:
                self._flows[place] = [
                    flow_of(entry, INGRESS) for qid, dscp in classes for entry in _to(host.mac, dscp, groups[down + qid * QID_UNIT].group)
                ]
            flows += self._flows[place]
        return flows, groups

    def _kind(self, tags: tuple[tuple[int, int], ...]) -> tuple[int, tuple[tuple[int, int], ...]]:
        """Returns the number of a list of tags, and the list."""
        return self._kinds.setdefault(tags, len(self._kinds)), tags

    def _group(self, kind: int, tags: tuple[tuple[int, int], ...], down: int, qid: int) -> PlannedGroup:
        """Returns the group that pushes tags to a gate."""
        place = kind, down, qid
        if place not in self._groups:
            ways = tuple(self._way(port, qid, up, down) for port, up in tags)
            self._groups[place] = planned_group(Group(down + qid * QID_UNIT, ways))
        return self._groups[place]

    def _tags(self, node: int, other: int, gate: Gate, works: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
        """Returns the output ports and values of UP that lead from a switch to a target at another one."""
        rows, cores, switches = self._tree.aggregations, self._tree.cores, self._numbering.switches
        if switches[node].layer == "core":
            return self._from_outside(node, other, gate, works)
        pod, found = self._pod_of[node], []
        for plane, above in enumerate(rows[pod]):
            out_port = self._neighbours[node][above]
            if (node, above) not in works:
                continue
            if self._pod_of.get(other) == pod:
                if (above, other) in works:
                    found.append((out_port, 0))
                continue
            for core in cores[plane]:
                if (above, core) in works and self._leads(core, plane, other, works):
                    found.append((out_port, switches[above].by_port[self._neighbours[above][core]].gate))
        return found

    def _leads(self, core: int, plane: int, other: int, works: Collection[tuple[int, int]]) -> bool:
        """Returns whether a core switch reaches a target at another switch."""
        if other in self._plane_of:
            return core == other
        below = self._tree.aggregations[self._pod_of[other]][plane]
        return (core, below) in works and (below, other) in works

    def _from_outside(self, core: int, other: int, gate: Gate, works: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
        """Returns the output port of a core switch to a server. Tags do not lead to other core switches."""
        if other in self._plane_of or not self._leads(core, self._plane_of[core], other, works):
            return []
        switch = self._numbering.switches[core]
        return [(switch.gates[f(gate.gate, switch.down_d)].port, 0)]
