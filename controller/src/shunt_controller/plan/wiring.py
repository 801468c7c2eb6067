# SPDX-License-Identifier: Apache-2.0
"""Finds the fat tree that a network is closest to, for any order of switches and ports, and names the cables
that differ from it.

Trees may be oversubscribed. A tree of even k has k pods with k/2 edge switches each. It has 1 to k/2
planes, which is the number of aggregation switches of a pod and of uplinks of an edge switch. A plane has 1
to k/2 core switches, which is the number of uplinks of an aggregation switch. Edge switches may have any
number of servers.

The search begins with the pods that are wired without a fault. They identify the core switches, and thereby
the switches of the other pods. At last, pairs of switches change places as long as more cables fit.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from shunt_controller.plan.network import Link

K_MAX = 64
"""Largest k of a fat tree."""
SUSPECTS_MAX = 64
"""Maximum number of switches with wrong cables for which other places are tried in a round."""
ROUNDS_MAX = 50
FEW = 2
"""Number of wrong cables with which a search does not begin again."""
STARTS_MAX = 8
"""Number of switches with which the search for pods with faults begins in turn."""
REFERENCES_MAX = 8
"""Maximum number of groupings of the core switches that are tried."""


class Shape(NamedTuple):
    """Size of a fat tree."""

    k: int
    """Number of pods."""
    planes: int
    """Number of aggregation switches of a pod."""
    cores: int
    """Number of core switches of a plane."""

    @property
    def edges(self) -> int:
        """Number of edge switches of a pod."""
        return self.k // 2

    @property
    def switches(self) -> int:
        """Number of switches."""
        return self.k * (self.edges + self.planes) + self.planes * self.cores

    @property
    def cables(self) -> int:
        """Number of cables between switches."""
        return self.k * self.planes * (self.edges + self.cores)

    def __str__(self) -> str:
        half = self.k // 2
        if (self.planes, self.cores) == (half, half):
            return f"k = {self.k}"
        return f"k = {self.k} with {self.planes} of {half} planes and {self.cores} of {half} core switches in each"


@dataclass(frozen=True)
class Wiring:
    """The nearest fat tree, and how the network differs from it. Nodes are indices. Pods, planes and their
    members are in the order of the nodes."""

    shape: Shape
    edges: list[list[int]]
    """Edge switches, by pod."""
    aggregations: list[list[int]]
    """Aggregation switches, by pod and plane."""
    cores: list[list[int]]
    """Core switches, by plane."""
    missing: list[tuple[int, int]] = field(default_factory=list)
    """Pairs of switches without the cable that the tree has between them."""
    extra: list[Link] = field(default_factory=list)
    """Cables that the tree does not have. Of parallel cables, the one with the lowest port is not extra."""

    @property
    def differences(self) -> int:
        """Number of missing and extra cables."""
        return len(self.missing) + len(self.extra)


class Fault(NamedTuple):
    """A difference between a network and the nearest fat tree."""

    kind: str
    """`missing`, `extra`, `miswired` (one end is at the wrong switch) or `swapped` (two cables)."""
    has: tuple[Link, ...]
    """Cables that the network has and the tree does not."""
    needs: tuple[tuple[int, int], ...]
    """Pairs of switches between which the tree has a cable in their place."""
    text: str
    """A sentence that names the cables."""


def shapes(switches: int, wanted: int | None = None) -> list[Shape]:
    """Returns all sizes of fat trees with this number of switches, those with the most planes first. If `wanted`
    is given, they have this k."""
    found = [
        Shape(k, planes, cores)
        for k in range(4, K_MAX + 1, 2)
        if wanted in (None, k)
        for planes in range(1, k // 2 + 1)
        for cores in range(1, k // 2 + 1)
        if Shape(k, planes, cores).switches == switches
    ]
    return sorted(found, key=lambda shape: (-shape.planes * shape.cores, shape))


def nearest(switches: int, links: Sequence[Link], k: int | None = None) -> Wiring | None:
    """Returns the fat tree that differs from a network of this many switches by the fewest cables. If `k` is
    given, the tree has this k. The search is exact for few faults, and a heuristic for many. Returns None if no
    tree has this number of switches."""
    best: Wiring | None = None
    # The numbers of cables differ by no more than the cables.
    for least, shape in sorted(((abs(shape.cables - len(links)), shape) for shape in shapes(switches, k)), key=lambda one: one[0]):
        if best is not None and least >= best.differences:
            return best
        found = _Search(switches, links, shape).run()
        if best is None or found.differences < best.differences:
            best = found
    return best


def faults(wiring: Wiring, names: Sequence[str], spare: Mapping[int, Iterable[int]] | None = None) -> list[Fault]:
    """Returns the differences, each with a sentence. `spare` has the ports of switches that have neither a
    cable nor a host; missing cables are described by them."""
    return _Description(wiring, names, spare or {}).run()


class _Search:
    """Search for the nearest tree of a shape. A place is a tuple: an edge switch has (0, pod), an aggregation
    switch (1, pod, plane) and a core switch (2, plane)."""

    def __init__(self, switches: int, links: Sequence[Link], shape: Shape) -> None:
        self.shape, self.links, self.nodes = shape, links, range(switches)
        self.near: list[set[int]] = [set() for _ in self.nodes]
        for link in links:
            if link.a != link.b:
                self.near[link.a].add(link.b)
                self.near[link.b].add(link.a)
        self.place: dict[int, tuple[int, ...]] = {}

    def run(self) -> Wiring:
        """Returns the tree."""
        whole = self._whole_pods()
        cores = self._cores(whole)
        best: dict[int, tuple[int, ...]] = {}
        most = -1
        pairs = sum(map(len, self.near)) // 2
        for start in range(STARTS_MAX if len(whole) < self.shape.k else 1):
            if pairs - most <= FEW:
                break
            pods = whole + self._other_pods(whole, cores, start)
            for grouping in self._groupings(pods, cores):
                self.place = {edge: (0, pod) for pod, (edges, _) in enumerate(pods) for edge in edges}
                self._set_planes(pods, cores, grouping)
                matched = self._matched()
                if matched > most:
                    best, most = self.place, matched
        self.place = best
        self._improve()
        return self._result()

    def _whole_pods(self) -> list[tuple[list[int], list[int]]]:
        """Returns the edge and aggregation switches of pods in which all edge switches have the same uplinks
        and no other cables."""
        groups: dict[frozenset[int], list[int]] = {}
        for node in self.nodes:
            if len(self.near[node]) == self.shape.planes:
                groups.setdefault(frozenset(self.near[node]), []).append(node)
        taken: set[int] = set()
        found: list[tuple[list[int], list[int]]] = []
        for above, edges in groups.items():
            if len(edges) == self.shape.edges and len(found) < self.shape.k and not taken & (above | set(edges)):
                taken |= above | set(edges)
                found.append((edges, sorted(above)))
        return found

    def _cores(self, pods: list[tuple[list[int], list[int]]]) -> list[int]:
        """Returns the switches that have links to the most pods."""
        pod_of = {switch: pod for pod, (_, above) in enumerate(pods) for switch in above}
        known = {node for pod in pods for part in pod for node in part}
        rest = [node for node in self.nodes if node not in known]
        if not pods:
            # Edge switches have the fewest links, and core switches none to edge switches.
            rest.sort(key=lambda node: len(self.near[node]))
            edges, rest = set(rest[: self.shape.k * self.shape.edges]), rest[self.shape.k * self.shape.edges :]
            rest.sort(key=lambda node: (len(self.near[node] & edges), node))
        else:
            rest.sort(key=lambda node: (-len({pod_of[peer] for peer in self.near[node] if peer in pod_of}), node))
        return rest[: self.shape.planes * self.shape.cores]

    def _other_pods(
        self, pods: list[tuple[list[int], list[int]]], cores: list[int], start: int
    ) -> list[tuple[list[int], list[int]]]:
        """Returns the other pods. Different values of `start` begin with different edge switches."""
        shape, is_core = self.shape, set(cores)
        known = is_core | {node for pod in pods for part in pod for node in part}
        rest = [node for node in self.nodes if node not in known]
        # Aggregation switches have links to core switches, and more links than edge switches.
        rest.sort(key=lambda node: (-len(self.near[node] & is_core), -len(self.near[node]), node))
        count = (shape.k - len(pods)) * shape.planes
        above, edges = set(rest[:count]), set(rest[count:])
        found: list[tuple[list[int], list[int]]] = []
        while len(pods) + len(found) < shape.k:
            seeds = sorted(edges, key=lambda node: (-len(self.near[node] & above), node))
            seed = seeds[0 if found else start % len(seeds)]
            row = self.near[seed] & above
            for _ in range(2):
                members = sorted(edges, key=lambda node: (-len(self.near[node] & row), node != seed, node))[: shape.edges]
                row = set(sorted(above, key=lambda node: (-len(self.near[node] & set(members)), node))[: shape.planes])
            edges -= set(members)
            above -= row
            found.append((members, sorted(row)))
        return found

    def _groupings(self, pods: list[tuple[list[int], list[int]]], cores: list[int]) -> list[list[set[int]]]:
        """Returns groupings of the core switches by the aggregation switches of a pod: those that most pods
        have come first."""
        is_core = set(cores)
        count = Counter(tuple(sorted(tuple(sorted(self.near[switch] & is_core)) for switch in above)) for _, above in pods)
        return [[set(group) for group in grouping] for grouping, _ in count.most_common(REFERENCES_MAX)]

    def _set_planes(self, pods: list[tuple[list[int], list[int]]], cores: list[int], groups: list[set[int]]) -> None:
        """Assigns aggregation and core switches to planes, beginning with a grouping of the core switches."""
        shape = self.shape
        for _ in range(2):
            votes: dict[int, Counter[int]] = {core: Counter() for core in cores}
            for pod, (_, above) in enumerate(pods):
                ranked = sorted((-len(self.near[switch] & groups[plane]), switch, plane) for switch in above for plane in range(shape.planes))
                switches, planes = set[int](), set[int]()
                for _, switch, plane in ranked:
                    if switch not in switches and plane not in planes:
                        switches.add(switch)
                        planes.add(plane)
                        self.place[switch] = (1, pod, plane)
                        for core in self.near[switch] & votes.keys():
                            votes[core][plane] += 1
            ballots = sorted((-votes[core][plane], core, plane) for core in cores for plane in range(shape.planes))
            groups = [set() for _ in range(shape.planes)]
            done = set[int]()
            for _, core, plane in ballots:
                if core not in done and len(groups[plane]) < shape.cores:
                    done.add(core)
                    groups[plane].add(core)
                    self.place[core] = (2, plane)

    def _matched(self) -> int:
        return sum(fits(self.place[a], self.place[b]) for a in self.nodes for b in self.near[a] if a < b)

    def _gain(self, a: int, b: int) -> int:
        """Returns how many more cables fit if two switches change places."""
        place = self.place
        before = self._fitting(a) + self._fitting(b)
        place[a], place[b] = place[b], place[a]
        after = self._fitting(a) + self._fitting(b)
        place[a], place[b] = place[b], place[a]
        return after - before

    def _fitting(self, node: int) -> int:
        own = self.place[node]
        return sum(fits(own, self.place[peer]) for peer in self.near[node])

    def _improve(self) -> None:
        for _ in range(ROUNDS_MAX):
            wrong = Counter(node for node in self.nodes for peer in self.near[node] if not fits(self.place[node], self.place[peer]))
            best, pair = 0, None
            for node, _ in wrong.most_common(SUSPECTS_MAX):
                for other in self.nodes:
                    if self.place[other] != self.place[node]:
                        gain = self._gain(node, other)
                        if gain > best:
                            best, pair = gain, (node, other)
            if pair is None:
                return
            a, b = pair
            self.place[a], self.place[b] = self.place[b], self.place[a]

    def _result(self) -> Wiring:
        shape = self.shape
        edges: list[list[int]] = [[] for _ in range(shape.k)]
        cores: list[list[int]] = [[] for _ in range(shape.planes)]
        above: dict[tuple[int, int], int] = {}
        for node in self.nodes:
            layer, *rest = self.place[node]
            if layer == 0:
                edges[rest[0]].append(node)
            elif layer == 1:
                above[rest[0], rest[1]] = node
            else:
                cores[rest[0]].append(node)
        pods, planes = sorted(range(shape.k), key=lambda pod: edges[pod]), sorted(range(shape.planes), key=lambda plane: cores[plane])
        wiring = Wiring(
            shape,
            [edges[pod] for pod in pods],
            [[above[pod, plane] for plane in planes] for pod in pods],
            [cores[plane] for plane in planes],
        )
        wanted = set(_cables(wiring))
        seen = set[tuple[int, int]]()
        extra = []
        for link in sorted(self.links, key=lambda link: (link.a_port, link.b_port, link)):
            pair = min(link.a, link.b), max(link.a, link.b)
            if pair in wanted and pair not in seen:
                seen.add(pair)
            else:
                extra.append(link)
        wiring.missing.extend(sorted(wanted - seen))
        wiring.extra.extend(sorted(extra))
        return wiring


def fits(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Returns whether a fat tree has a cable between two places."""
    low, high = (one, other) if one <= other else (other, one)
    if low[0] == 0:
        return high[0] == 1 and high[1] == low[1]
    return low[0] == 1 and high[0] == 2 and high[1] == low[2]


def _cables(wiring: Wiring) -> list[tuple[int, int]]:
    """Returns the pairs of switches between which the tree has a cable."""
    pairs = [(edge, switch) for pod, row in zip(wiring.edges, wiring.aggregations, strict=True) for edge in pod for switch in row]
    pairs += [(row[plane], core) for row in wiring.aggregations for plane, cores in enumerate(wiring.cores) for core in cores]
    return [(min(pair), max(pair)) for pair in pairs]


class _Description:
    def __init__(self, wiring: Wiring, names: Sequence[str], spare: Mapping[int, Iterable[int]]) -> None:
        self.names = names
        self.spare = {node: sorted(ports) for node, ports in spare.items()}
        self.missing, self.extra = list(wiring.missing), list(wiring.extra)
        self.found: list[Fault] = []

    def run(self) -> list[Fault]:
        """Implements :func:`faults`."""
        self._swapped()
        self._miswired()
        for a, b in self.missing:
            text = f"a cable is missing between {self._free(a)} and {self._free(b)}"
            self.found.append(Fault("missing", (), ((a, b),), text))
        for link in self.extra:
            self.found.append(Fault("extra", (link,), (), f"{self._cable(link)} is not part of the tree"))
        return self.found

    def _swapped(self) -> None:
        for first in list(self.extra):
            for second in list(self.extra):
                if first < second and first in self.extra and second in self.extra:
                    self._try_swap(first, second)

    def _try_swap(self, first: Link, second: Link) -> None:
        for a, a_port, b, b_port in (second, Link(second.b, second.b_port, second.a, second.a_port)):
            # The cables must lead between first.a and b, and between a and first.b.
            needs = (min(first.a, b), max(first.a, b)), (min(first.b, a), max(first.b, a))
            if needs[0] != needs[1] and all(need in self.missing for need in needs):
                text = (
                    f"{self._cable(first)} and {self._cable(second)} are swapped: {self._port(first.a, first.a_port)} must lead to "
                    f"{self._port(b, b_port)}, and {self._port(a, a_port)} to {self._port(first.b, first.b_port)}"
                )
                self._take("swapped", (first, second), needs, text)
                return

    def _miswired(self) -> None:
        for link in list(self.extra):
            for node, port in ((link.a, link.a_port), (link.b, link.b_port)):
                need = next((pair for pair in self.missing if node in pair), None)
                if need is not None and link in self.extra:
                    other = need[1] if need[0] == node else need[0]
                    text = f"{self._cable(link)} leads to a wrong switch: {self._port(node, port)} must lead to {self._free(other)}"
                    self._take("miswired", (link,), (need,), text)

    def _take(self, kind: str, has: tuple[Link, ...], needs: tuple[tuple[int, int], ...], text: str) -> None:
        for link in has:
            self.extra.remove(link)
        for need in needs:
            self.missing.remove(need)
        self.found.append(Fault(kind, has, needs, text))

    def _port(self, node: int, port: int) -> str:
        return f"port {port} of {self.names[node]}"

    def _cable(self, link: Link) -> str:
        return f"the cable from {self._port(link.a, link.a_port)} to {self._port(link.b, link.b_port)}"

    def _free(self, node: int) -> str:
        """Describes the end of a missing cable."""
        ports = self.spare.get(node, [])
        if not ports:
            return self.names[node]
        if len(ports) == 1:
            return self._port(node, ports[0])
        return f"one of the ports {', '.join(map(str, ports[:-1]))} and {ports[-1]} of {self.names[node]}"
