# SPDX-License-Identifier: Apache-2.0
"""Recognizes a fat tree in a network, for any order of nodes and any port numbers, or names the cables that
keep the network from being one (:mod:`shunt_controller.plan.wiring`).

A fat tree of even k has k pods. A pod has k/2 edge switches and k/2 aggregation switches, all linked to each
other. There are (k/2)^2 core switches in k/2 planes. The aggregation switch of a plane in each pod is linked
to all cores of the plane. Edge switches have ports for k/2 servers. Core switches have ports for links to the
outside.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from shunt_controller.plan.errors import PlanError, need
from shunt_controller.plan.network import Link, Network, Wire, build
from shunt_controller.plan.wiring import K_MAX, Wiring, faults, nearest

SINGLE_MAX = 8
NODES_MAX = 200
"""If a network is not a fat tree, its nodes with one link are also tried as switches, unless there are more than
these numbers of them and of all nodes. More would take minutes."""


class Place(NamedTuple):
    """A port for a server or for an external link. If nothing is connected to it yet, `node` is None, and
    the port is the lowest free one of its switch."""

    port: int
    node: int | None


@dataclass(frozen=True)
class FatTree:
    """A fat tree in a network; nodes are indices. Pods, planes and their members are in the order of the
    nodes."""

    network: Network
    k: int
    edges: list[list[int]]
    """Edge switches, by pod."""
    aggregations: list[list[int]]
    """Aggregation switches, by pod and plane."""
    cores: list[list[int]]
    """Core switches, by plane."""
    servers: dict[int, list[Place]]
    """The server places of each edge switch. All edge switches have the same number, k/2 unless the tree is
    oversubscribed."""
    outside: dict[int, list[Place]]
    """External links of each core switch, if there are any."""

    @property
    def half(self) -> int:
        """Half of k."""
        return self.k // 2

    @property
    def places(self) -> int:
        """Number of server places of each edge switch."""
        return len(self.servers[self.edges[0][0]])

    @property
    def uplinks(self) -> int:
        """Number of links of each aggregation switch to core switches: k/2 unless the tree is
        oversubscribed."""
        return len(self.cores[0])

    def pod_of(self) -> dict[int, int]:
        """Returns the pod of each edge and aggregation switch."""
        return {node: pod for layer in (self.edges, self.aggregations) for pod, nodes in enumerate(layer) for node in nodes}


def make(k: int, outside: int = 0) -> Network:
    """Returns a fat tree with all its servers, and external links at each core switch. Names are those of the
    papers' figure: es, as and cs for switches, s for servers, and x for external nodes."""
    need(k % 2 == 0 and 4 <= k <= K_MAX, f"k of a fat tree is an even number from 4 to {K_MAX}, not {k}")
    need(0 <= outside <= k, f"{outside} links to the outside at each core switch; supported are 0 to {k}")
    half = k // 2
    nodes = [(f"es{number + 1}", "edge") for number in range(k * half)]
    nodes += [(f"as{number + 1}", "core") for number in range(k * half)]
    nodes += [(f"cs{number + 1}", "core") for number in range(half * half)]
    nodes += [(f"s{number + 1}", "host") for number in range(k * half * half)]
    nodes += [(f"x{number + 1}", "host") for number in range(outside * half * half)]
    wires = [Wire(f"es{server // half + 1}", f"s{server + 1}") for server in range(k * half * half)]
    for pod in range(k):
        for plane in range(half):
            switch = f"as{pod * half + plane + 1}"
            wires += [Wire(f"es{pod * half + edge + 1}", switch) for edge in range(half)]
            wires += [Wire(switch, f"cs{plane * half + core + 1}") for core in range(half)]
    wires += [Wire(f"cs{number // outside + 1}", f"x{number + 1}") for number in range(outside * half * half)]
    return build(f"fat tree, k = {k}", nodes, wires)


def find(network: Network, k: int | None = None) -> FatTree:
    """Returns the fat tree in a network. If `k` is given, the tree must have this k. Trees may be
    oversubscribed. Raises PlanError with the cables to change if the network is not a fat tree."""
    # A node with one link is a server or external, unless the network has switches without servers.
    leaves = {node for node, role in enumerate(network.roles) if role == "host"}
    single = {node for node, ports in enumerate(network.ports) if len(ports) <= 1}
    best = _nearest(network, leaves | single, k)
    if best.problems and single - leaves and (len(single) <= SINGLE_MAX or len(network.nodes) <= NODES_MAX):
        other = _nearest(network, leaves, k)
        # A network that has little in common with a fat tree is described by its number of switches.
        if other.wiring is not None and other.wiring.differences <= other.wiring.shape.cables // 4:
            best = min(best, other, key=lambda one: one.distance)
    if best.problems:
        raise PlanError(f"{network.name} is not a fat tree: {listed(best.problems)}")
    return best.tree()


def listed(problems: Sequence[str], at_most: int = 5) -> str:
    """Returns sentences as one, and the number of those that are left out."""
    rest = len(problems) - at_most
    return "; ".join(problems[:at_most]) + (f"; and {rest} more" if rest > 0 else "")


@dataclass(frozen=True)
class _Found:
    """What a network is if these nodes are no switches."""

    network: Network
    hosts: Set[int]
    switches: list[int]
    wiring: Wiring | None
    problems: list[str]

    @property
    def distance(self) -> tuple[bool, int]:
        """Returns how much the network differs from a fat tree."""
        return self.wiring is None, self.wiring.differences if self.wiring else 0

    def leaves(self, node: int) -> list[Place]:
        """Returns the ports of a switch that lead to no switch."""
        return [Place(port, peer.node) for port, peer in self.network.ports[node].items() if peer.node in self.hosts]

    def tree(self) -> FatTree:
        """Returns the tree."""
        assert self.wiring is not None and not self.wiring.differences
        shape = self.wiring.shape
        edges, aggregations, cores = (
            [[self.switches[index] for index in row] for row in rows]
            for rows in (self.wiring.edges, self.wiring.aggregations, self.wiring.cores)
        )
        servers = {edge: self.leaves(edge) for pod in edges for edge in pod}
        count = max(shape.k // 2, *(len(places) for places in servers.values()))
        servers = {edge: filled(self.network, edge, places, count) for edge, places in servers.items()}
        outside = {core: self.leaves(core) for plane in cores for core in plane}
        return FatTree(self.network, shape.k, edges, aggregations, cores, servers, outside)


def _nearest(network: Network, hosts: Set[int], k: int | None) -> _Found:
    """Finds the nearest fat tree of the nodes that are not in `hosts`."""
    switches = [node for node in range(len(network.nodes)) if node not in hosts]
    index = {node: number for number, node in enumerate(switches)}
    links = [Link(index[a], a_port, index[b], b_port) for a, a_port, b, b_port in network.links if a in index and b in index]
    wiring = nearest(len(switches), links, k)
    if wiring is None:
        sizes = f"no fat tree of even k from 4 on has this number ({_whole(len(switches))})" if k is None else f"no fat tree of k = {k} has this number"
        return _Found(network, hosts, switches, None, [f"it has {len(switches)} switches; {sizes}"])
    names = network.nodes
    problems = [fault.text for fault in faults(wiring, [names[node] for node in switches])]
    found = _Found(network, hosts, switches, wiring, problems)
    if not problems:
        for above in (switches[number] for row in wiring.aggregations for number in row):
            problems += [
                f"{names[host]} is at the aggregation switch {names[above]}; servers are at edge switches"
                for _, host in found.leaves(above)
                if host is not None
            ]
    return found


def _whole(switches: int) -> str:
    """Returns the sizes of the trees with the next numbers of switches that are not oversubscribed."""
    sizes = {k: 5 * k * k // 4 for k in range(4, K_MAX + 1, 2)}
    below = [k for k, size in sizes.items() if size <= switches][-1:]
    above = [k for k, size in sizes.items() if size > switches][:1]
    return " and ".join(f"k = {k} has {sizes[k]}" for k in below + above)


def filled(network: Network, node: int, places: list[Place], count: int) -> list[Place]:
    """Returns the places, with the lowest free ports of the node in place of missing ones."""
    port, found = 0, list(places)
    taken = {place.port for place in places}
    while len(found) < count:
        port += 1
        if port not in network.ports[node] and port not in taken:
            found.append(Place(port, None))
    return found
