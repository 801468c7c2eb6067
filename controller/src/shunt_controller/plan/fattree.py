# SPDX-License-Identifier: Apache-2.0
"""Recognizes a fat tree in a network, for any order of nodes and any port numbers, or reports why the network
is not one.

A fat tree of even k has k pods. A pod has k/2 edge switches and k/2 aggregation switches, all linked to each
other. There are (k/2)^2 core switches in k/2 planes. The aggregation switch of a plane in each pod is linked
to all cores of the plane. Edge switches have ports for k/2 servers. Core switches have ports for links to the
outside.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from shunt_controller.plan.errors import PlanError, need
from shunt_controller.plan.network import Network, Wire, build

K_MAX = 64


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
    """Returns the fat tree in a network. If `k` is given, the tree must have this k."""
    return _Finder(network).find(k)


class _Finder:
    def __init__(self, network: Network) -> None:
        self.network = network
        self.names = network.nodes
        # A node with one link is a server or external.
        self.is_leaf = [role == "host" or len(ports) == 1 for role, ports in zip(network.roles, network.ports, strict=True)]
        self.switches = [node for node, is_leaf in enumerate(self.is_leaf) if not is_leaf]
        self.near = {node: [peer for peer in network.neighbours[node] if not self.is_leaf[peer]] for node in self.switches}

    def refuse(self, says: str) -> None:
        """Raises PlanError with this reason."""
        raise PlanError(f"{self.network.name} is not a fat tree: {says}")

    def find(self, wanted: int | None) -> FatTree:
        """Implements :func:`find`."""
        self._need_single_links()
        k = self._k(wanted)
        edges, aggregations, cores = self._layers(k)
        pods = self._pods(edges, k)
        aggregation_pods = [sorted(set(self.near[pod[0]])) for pod in pods]
        planes = self._planes(aggregation_pods, set(cores), k)
        servers = {edge: self._servers(edge, k) for pod in pods for edge in pod}
        outside = {core: self._leaves(core) for plane in planes for core in plane}
        for switch in aggregations:
            leaves = self._leaves(switch)
            if leaves:
                self.refuse(
                    f"{self.names[leaves[0].node or 0]} is at the aggregation switch {self.names[switch]}; servers are at edge switches"
                )
        by_cores = {frozenset(plane): index for index, plane in enumerate(planes)}
        for pod_switches in aggregation_pods:
            pod_switches.sort(key=lambda switch: by_cores[self._cores_of(switch, set(cores))])
        return FatTree(self.network, k, pods, aggregation_pods, planes, servers, outside)

    def _need_single_links(self) -> None:
        for node in self.switches:
            seen: set[int] = set()
            for peer in self.network.ports[node].values():
                if peer.node in seen:
                    self.refuse(f"{self.names[node]} and {self.names[peer.node]} have two links between them")
                seen.add(peer.node)

    def _k(self, wanted: int | None) -> int:
        count = len(self.switches)
        k = next((k for k in range(4, K_MAX + 1, 2) if 5 * k * k // 4 >= count), 0)
        if not k or 5 * k * k // 4 != count:
            around = [other for other in (k - 2, k) if 4 <= other <= K_MAX] or [K_MAX]
            counts = " and ".join(f"k = {other} has {5 * other * other // 4}" for other in around)
            self.refuse(f"it has {count} switches, and with an even k it would have 5k^2/4 ({counts})")
        if wanted is not None and wanted != k:
            self.refuse(f"with {count} switches its k would be {k}, not {wanted}")
        return k

    def _layers(self, k: int) -> tuple[list[int], list[int], list[int]]:
        edges: list[int] = []
        others: list[int] = []
        for node in self.switches:
            degree = len(self.near[node])
            if degree not in (k // 2, k):
                self.refuse(
                    f"{self.names[node]} has {degree} links to switches; with k = {k} edge switches have {k // 2} and the others {k}"
                )
            (edges if degree == k // 2 else others).append(node)
        if len(edges) != k * k // 2:
            self.refuse(
                f"{len(edges)} switches have {k // 2} links to others; with k = {k} there must be {k * k // 2} such edge switches"
            )
        is_edge = set(edges)
        aggregations: list[int] = []
        cores: list[int] = []
        for node in others:
            below = sum(peer in is_edge for peer in self.near[node])
            if below not in (0, k // 2):
                self.refuse(
                    f"{self.names[node]} has links to {below} edge switches; aggregation switches have {k // 2}, cores none"
                )
            (aggregations if below else cores).append(node)
        self._need_no_links_within("edge", edges)
        self._need_no_links_within("aggregation", aggregations)
        self._need_no_links_within("core", cores)
        if len(aggregations) != k * k // 2:
            self.refuse(f"it has {len(aggregations)} aggregation switches instead of {k * k // 2}")
        return edges, aggregations, cores

    def _need_no_links_within(self, layer: str, nodes: Iterable[int]) -> None:
        members = set(nodes)
        for node in members:
            for peer in self.near[node]:
                if peer in members:
                    a, b = sorted((node, peer))
                    self.refuse(f"the {layer} switches {self.names[a]} and {self.names[b]} have a link between them")

    def _pods(self, edges: list[int], k: int) -> list[list[int]]:
        pods: dict[frozenset[int], list[int]] = {}
        owner: dict[int, int] = {}
        for edge in edges:
            above = frozenset(self.near[edge])
            for switch in sorted(above):
                other = owner.setdefault(switch, edge)
                if frozenset(self.near[other]) != above:
                    self.refuse(
                        f"{self.names[other]} and {self.names[edge]} share the aggregation switch {self.names[switch]} but not all of them, "
                        "so there are no pods"
                    )
            pods.setdefault(above, []).append(edge)
        for members in pods.values():
            if len(members) != k // 2:
                self.refuse(f"the pod of {self.names[members[0]]} has {len(members)} edge switches instead of {k // 2}")
        return sorted(pods.values())

    def _cores_of(self, switch: int, cores: set[int]) -> frozenset[int]:
        return frozenset(peer for peer in self.near[switch] if peer in cores)

    def _planes(self, pods: list[list[int]], cores: set[int], k: int) -> list[list[int]]:
        """Returns the cores by plane. The cores of an aggregation switch of the first pod are a plane; all
        other pods must have the same planes."""
        owner: dict[int, int] = {}
        groups: list[frozenset[int]] = []
        for switch in pods[0]:
            group = self._cores_of(switch, cores)
            for core in sorted(group):
                if core in owner:
                    self.refuse(
                        f"{self.names[core]} has links to {self.names[owner[core]]} and {self.names[switch]}, both of one pod"
                    )
                owner[core] = switch
            groups.append(group)
        for pod in pods[1:]:
            for switch in pod:
                group = self._cores_of(switch, cores)
                first = owner.get(min(group), pods[0][0])
                if group not in groups:
                    self.refuse(
                        f"{self.names[switch]} and {self.names[first]} share some but not all core switches; gates need the "
                        "same groups of cores in each pod"
                    )
            if len({self._cores_of(switch, cores) for switch in pod}) != k // 2:
                self.refuse(f"two aggregation switches of the pod of {self.names[pod[0]]} have the same cores")
        return [sorted(group) for group in groups]

    def _leaves(self, node: int) -> list[Place]:
        return [Place(port, peer.node) for port, peer in self.network.ports[node].items() if self.is_leaf[peer.node]]

    def _servers(self, edge: int, k: int) -> list[Place]:
        found = self._leaves(edge)
        if len(found) > k // 2:
            self.refuse(f"{self.names[edge]} has {len(found)} servers; with k = {k} it may have {k // 2}")
        return filled(self.network, edge, found, k // 2)


def filled(network: Network, node: int, places: list[Place], count: int) -> list[Place]:
    """Returns the places, with the lowest free ports of the node in place of missing ones."""
    port, found = 0, list(places)
    taken = {place.port for place in places}
    while len(found) < count:
        port += 1
        if port not in network.ports[node] and port not in taken:
            found.append(Place(port, None))
    return found
