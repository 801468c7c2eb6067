# SPDX-License-Identifier: Apache-2.0
"""Recognizes a fat tree in a discovered topology, or names the cables that keep the network from being
one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from shunt_controller.live.topology import Link, Port, Topology, switch_of
from shunt_controller.plan.fattree import FatTree, Place, filled
from shunt_controller.plan.network import Link as Cable
from shunt_controller.plan.network import Network
from shunt_controller.plan.wiring import Wiring, faults, nearest


@dataclass(frozen=True)
class Ports:
    """Ports of edge switches for servers, and of core switches for the outside, by switch, in the order of
    their gates. Ports stay in the list when they are down, so that gates do not change."""

    servers: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    outside: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


def problems(topology: Topology) -> list[str]:
    """Returns sentences about what keeps a network from being a fat tree. There are none if it is one."""
    switches = sorted(topology.switches)
    wiring = wiring_of(topology)
    if wiring is None:
        return [f"the network has {len(switches)} switches; no fat tree of even k from 4 on has this number"]
    names = [f"switch {switch:x}" for switch in switches]
    hosts = {host.at for host in topology.hosts}
    spare = {
        index: [port for port in topology.edge_ports(switch) if Port(switch, port) not in hosts]
        for index, switch in enumerate(switches)
    }
    found = [fault.text for fault in faults(wiring, names, spare)]
    if not found:
        found += _misplaced_hosts(topology, wiring, switches)
    return found


def _misplaced_hosts(topology: Topology, wiring: Wiring, switches: list[int]) -> list[str]:
    above = {switches[index] for row in wiring.aggregations for index in row}
    return [
        f"host {host.mac} is at port {host.at.number} of the aggregation switch {host.at.switch:x}; servers are at edge switches"
        for host in topology.hosts
        if host.at.switch in above
    ]


def wiring_of(topology: Topology) -> Wiring | None:
    """Returns the fat tree that is nearest to a network, with the switches in ascending order of their datapath
    IDs as nodes. Returns None if no tree has this number of switches."""
    index = {switch: number for number, switch in enumerate(sorted(topology.switches))}
    links = [Cable(index[a.switch], a.number, index[b.switch], b.number) for a, b in sorted(topology.links) if {a.switch, b.switch} <= index.keys()]
    return nearest(len(index), links)


def recognized(topology: Topology, before: Ports, wiring: Wiring | None = None) -> FatTree | None:
    """Returns the fat tree that a topology is, with the ports that `before` has in the same order. Returns
    None if it is not exactly a fat tree (:func:`problems` states why)."""
    wiring = wiring or wiring_of(topology)
    if wiring is None or wiring.differences or _misplaced_hosts(topology, wiring, sorted(topology.switches)):
        return None
    network = topology.network()
    servers = _lists(topology, network, wiring.edges, before.servers)
    outside = _lists(topology, network, wiring.cores, before.outside)
    count = max(wiring.shape.k // 2, *(len(places) for places in servers.values()))
    servers = {edge: filled(network, edge, places, count) for edge, places in servers.items()}
    return FatTree(network, wiring.shape.k, wiring.edges, wiring.aggregations, wiring.cores, servers, outside)


def _lists(topology: Topology, network: Network, rows: list[list[int]], before: Mapping[int, tuple[int, ...]]) -> dict[int, list[Place]]:
    """Returns the ports of switches that lead to no switch: known ones first, in their order."""
    found = {}
    for node in (node for row in rows for node in row):
        switch = switch_of(network.nodes[node])
        old = [port for port in before.get(switch, ()) if port not in network.ports[node]]
        new = sorted(topology.edge_ports(switch) - set(old))
        found[node] = [Place(port, None) for port in [*old, *new]]
    return found


def ports_of(tree: FatTree, known: Mapping[int, frozenset[int]]) -> Ports:
    """Returns the ports of a tree that exist, or existed: `known` has them by switch."""

    def lists(places: Mapping[int, list[Place]]) -> dict[int, tuple[int, ...]]:
        found = {}
        for node, own in places.items():
            switch = switch_of(tree.network.nodes[node])
            found[switch] = tuple(place.port for place in own if place.port in known.get(switch, ()))
        return found

    return Ports(lists(tree.servers), lists(tree.outside))


def links_of(tree: FatTree) -> frozenset[Link]:
    """Returns the links between the switches of a tree."""
    number = [switch_of(name) for name in tree.network.nodes]
    return frozenset(Link.of(Port(number[one.a], one.a_port), Port(number[one.b], one.b_port)) for one in tree.network.links)
