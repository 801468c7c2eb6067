# SPDX-License-Identifier: Apache-2.0
"""Routes: one tree of shortest paths per destination for all pairs, or routes listed by the caller.

Both kinds provide the same information: which nodes share a key, so that their IDs must be coprime, how often
each node is used, and which labels it needs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from shunt_controller.plan.demand import LOCAL, Coded, Demand, demand_of, of_coded
from shunt_controller.plan.errors import need
from shunt_controller.plan.network import Network


STEPS_MAX = 4_000_000
"""Maximum product of the number of ends and the number of nodes. It allows 2,000 switches that are all ends.
Each step takes about 200 bytes."""


class Routes(Protocol):
    """Interface of a set of routes, as planners use it."""

    @property
    def network(self) -> Network:
        """Network of the routes."""

    def demand(self, coded: Coded) -> Demand:
        """Returns the requirements that the routes place on IDs."""

    def paths(self) -> Iterator[list[int]]:
        """Yields each route as its nodes from the first to the last."""

    def pairs(self) -> list[tuple[int, int]]:
        """Returns the first and last node of each route."""

    def path(self, source: int, destination: int) -> list[int]:
        """Returns the route of one pair."""


@dataclass
class Listed:
    """Listed routes, each a list of at least two neighbouring nodes, with at most one route per pair."""

    network: Network
    given: Sequence[Sequence[int]]
    _by_pair: dict[tuple[int, int], list[int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        names = self.network.nodes
        for route in self.given:
            said = " - ".join(names[node] for node in route)
            need(len(route) >= 2, f"the route {said or '()'} has fewer than two nodes")
            need(len(set(route)) == len(route), f"the route {said} visits a node twice")
            for a, b in zip(route, route[1:], strict=False):
                need(b in self.network.neighbours[a], f"the route {said} has a hop without a link, {names[a]} - {names[b]}")
            pair = (route[0], route[-1])
            need(pair not in self._by_pair, f"there are two routes from {names[pair[0]]} to {names[pair[1]]}")
            self._by_pair[pair] = list(route)

    def paths(self) -> Iterator[list[int]]:
        """Implements :class:`Routes`."""
        return iter(self._by_pair.values())

    def pairs(self) -> list[tuple[int, int]]:
        """Implements :class:`Routes`."""
        return list(self._by_pair)

    def path(self, source: int, destination: int) -> list[int]:
        """Implements :class:`Routes`."""
        names = self.network.nodes
        need((source, destination) in self._by_pair, f"there is no route from {names[source]} to {names[destination]}")
        return self._by_pair[source, destination]

    def demand(self, coded: Coded) -> Demand:
        """Implements :class:`Routes`."""
        return demand_of(self.network, ((route, of_coded(route, coded)) for route in self.paths()))


class Trees:
    """A shortest path for every ordered pair of end nodes. Paths towards one destination form a tree. Of
    several shortest paths, the one with the smallest sum of node weights is taken; among equal sums, the one
    with the lowest node. Initially all weights are 0."""

    def __init__(self, network: Network, ends: Sequence[int] | None = None) -> None:
        network.need_connected()
        self.network = network
        self.ends = sorted(range(len(network.nodes)) if ends is None else ends)
        need(len(self.ends) >= 2, f"{network.name} has {len(self.ends)} end nodes; routes need at least two")
        steps = len(self.ends) * len(network.nodes)
        need(
            steps <= STEPS_MAX,
            f"routes between all {len(self.ends)} ends of {network.name} take {steps} steps; at most {STEPS_MAX} are supported: give the routes "
            'that are needed, give ends the role "edge", or, for a fat tree, use --fat-tree',
        )
        self.is_end = [False] * len(network.nodes)
        for end in self.ends:
            self.is_end[end] = True
        self._searches = {end: self._search(end) for end in self.ends}
        self.next: dict[int, list[int]] = {}
        """Next node of each node, for each destination. The destination itself has -1."""
        self.weights: list[float] = []
        self.weigh([0.0] * len(network.nodes))

    def _search(self, destination: int) -> tuple[list[int], list[list[int]]]:
        """Returns the nodes in order of distance, and the nearer neighbours of each. Routes do not cross edge
        switches."""
        neighbours, roles = self.network.neighbours, self.network.roles
        distance = [-1] * len(neighbours)
        nearer: list[list[int]] = [[] for _ in neighbours]
        distance[destination] = 0
        order = [destination]
        for node in order:
            if node != destination and roles[node] != "core":
                continue
            far = distance[node] + 1
            for peer in neighbours[node]:
                if distance[peer] < 0:
                    distance[peer] = far
                    order.append(peer)
                if distance[peer] == far:
                    nearer[peer].append(node)
        for end in self.ends:
            names = self.network.nodes
            reason = "but by edge switches or hosts, which pass nothing on"
            need(distance[end] >= 0, f"no path leads from {names[end]} to {names[destination]} {reason}")
        return order, nearer

    def order(self, destination: int) -> list[int]:
        """Returns nodes in order of their distance to a destination, starting with the destination.
        Unreachable nodes are left out."""
        return self._searches[destination][0]

    def weigh(self, weights: Sequence[float]) -> None:
        """Chooses the routes again, with these node weights."""
        self.weights = list(weights)
        for destination, (order, nearer) in self._searches.items():
            cost = list(weights)
            following = [-1] * len(cost)
            for node in order[1:]:
                choices = nearer[node]
                chosen = choices[0] if len(choices) == 1 else min(choices, key=lambda peer: (cost[peer], peer))
                following[node] = chosen
                cost[node] += cost[chosen]
            self.next[destination] = following

    def demand(self, coded: Coded) -> Demand:
        """Implements :class:`Routes`."""
        count = len(self.network.nodes)
        demand = Demand.none(count)
        followers: list[set[int]] = [set() for _ in range(count)]
        meet_all = coded == "all" and len(self.ends) == count
        for destination in self.ends:
            order, following = self.order(destination), self.next[destination]
            inside = self._inside(destination, coded)
            for node in order:
                if inside[node]:
                    demand.uses[node] += inside[node]
                    followers[node].add(following[node])
            if not meet_all:
                self._add_meets(demand.meets, order, following, inside)
        if meet_all:
            # A key has a residue for each node of its route, so every two nodes share a key.
            everyone = (1 << count) - 1
            demand.meets = [everyone & ~(1 << node) for node in range(count)]
        else:
            demand.mirror()
        for node, peers in enumerate(followers):
            neighbours = self.network.neighbours[node]
            demand.ports[node] = {neighbours[peer] if peer >= 0 else LOCAL for peer in peers}
        return demand

    def _inside(self, destination: int, coded: Coded) -> list[int]:
        """Returns the number of keys towards a destination that contain each node."""
        following = self.next[destination]
        arriving = [0] * len(following)
        inside = [0] * len(following)
        starts = [int(is_end) for is_end in self.is_end]
        for node in reversed(self.order(destination)[1:]):
            inside[node] = through = arriving[node]
            through += starts[node]
            if coded == "all":
                inside[node] = through
            arriving[following[node]] += through
        inside[destination] = arriving[destination] if coded != "core" else 0
        return inside

    @staticmethod
    def _add_meets(meets: list[int], order: Sequence[int], following: Sequence[int], inside: Sequence[int]) -> None:
        """Adds to the `meets` of each node the nodes that follow it in keys towards a destination."""
        path = [0] * len(following)
        for node in order:
            after = following[node]
            mask = path[after] if after >= 0 else 0
            if inside[node]:
                mask |= 1 << node
                meets[node] |= mask
            path[node] = mask

    def pairs(self) -> list[tuple[int, int]]:
        """Implements :class:`Routes`."""
        return [(source, destination) for destination in self.ends for source in self.ends if source != destination]

    def path(self, source: int, destination: int) -> list[int]:
        """Implements :class:`Routes`."""
        following = self.next[destination]
        route = [source]
        while route[-1] != destination:
            route.append(following[route[-1]])
        return route

    def paths(self) -> Iterator[list[int]]:
        """Implements :class:`Routes`."""
        return (self.path(source, destination) for source, destination in self.pairs())
