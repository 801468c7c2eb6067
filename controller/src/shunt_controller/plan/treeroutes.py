# SPDX-License-Identifier: Apache-2.0
"""KeyFlow routes of a fat tree: any shortest path between two edge switches may be taken, and the IDs allow
all of these paths.

Two cores never share a key. Aggregation switches share a key only with aggregation switches of the same
plane. The planes can therefore use the same IDs, and so can the cores of a plane. A key has at most three
residues.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from shunt_controller.plan.demand import Coded, Demand
from shunt_controller.plan.errors import PlanError, need
from shunt_controller.plan.fattree import FatTree
from shunt_controller.plan.keys import bits_of
from shunt_controller.plan.network import Network
from shunt_controller.plan.numbering import Bank


@dataclass
class TreeRoutes:
    """All routes between edge switches. One path of each pair gets a key, and these paths are spread over all
    possible paths."""

    tree: FatTree

    def __post_init__(self) -> None:
        self._pod_of = self.tree.pod_of()
        self._edges = [edge for pod in self.tree.edges for edge in pod]
        self._place = {edge: place for place, edge in enumerate(self._edges)}

    @property
    def network(self) -> Network:
        """Implements :class:`shunt_controller.plan.routes.Routes`."""
        return self.tree.network

    def pairs(self) -> list[tuple[int, int]]:
        """Implements :class:`shunt_controller.plan.routes.Routes`."""
        return [(source, destination) for destination in self._edges for source in self._edges if source != destination]

    def path(self, source: int, destination: int) -> list[int]:
        """Implements :class:`shunt_controller.plan.routes.Routes`."""
        if source == destination or source not in self._place or destination not in self._place:
            names = self.network.nodes
            raise PlanError(
                f"routes of a fat tree lead between two edge switches, not from {names[source]} to {names[destination]}"
            )
        tree, half = self.tree, self.tree.half
        place, other = self._place[source], self._place[destination]
        plane = (place + other) % len(tree.cores)
        up = tree.aggregations[self._pod_of[source]][plane]
        if self._pod_of[source] == self._pod_of[destination]:
            return [source, up, destination]
        core = tree.cores[plane][(place // half + other) % tree.uplinks]
        return [source, up, core, tree.aggregations[self._pod_of[destination]][plane], destination]

    def width_max(self, bank: Bank) -> int:
        """Returns the length in bits of the largest key over all paths, not only over the paths that
        :meth:`path` returns."""
        most, ids = 0, bank.ids
        for plane, cores in enumerate(self.tree.cores):
            two = sorted(ids[row[plane]] for row in self.tree.aggregations)[-2:]
            most = max(most, bits_of([*two, max(ids[core] for core in cores)], bank.arithmetic))
        return most

    def paths(self) -> Iterator[list[int]]:
        """Implements :class:`shunt_controller.plan.routes.Routes`."""
        return (self.path(*pair) for pair in self.pairs())

    def demand(self, coded: Coded) -> Demand:
        """Implements :class:`shunt_controller.plan.routes.Routes`. The uses are numbers of keys, in units of
        one path, under the assumption that each pair takes each of its paths equally often."""
        need(coded == "core", "keys of a fat tree only have residues of the switches between its edge switches; use the coding core")
        tree, half = self.tree, self.tree.half
        demand = Demand.none(len(self.network.nodes))
        pods, edges = tree.k, len(self._edges)
        crossing = edges * (edges - half)
        for plane, cores in enumerate(tree.cores):
            switches = [row[plane] for row in tree.aggregations]
            mask = sum(1 << node for node in switches)
            core_mask = sum(1 << core for core in cores)
            for core in cores:
                demand.uses[core] = crossing
                demand.meets[core] = mask
                demand.ports[core] = {self.network.neighbours[core][node] for node in switches}
            for node in switches:
                # A path within a pod is used as often as all paths through the core switches of its plane.
                demand.uses[node] = 2 * crossing * tree.uplinks // pods + half * half * (half - 1) * tree.uplinks
                demand.meets[node] = (mask | core_mask) & ~(1 << node)
                pod = self._pod_of[node]
                demand.ports[node] = {self.network.neighbours[node][peer] for peer in [*tree.edges[pod], *cores]}
        return demand
