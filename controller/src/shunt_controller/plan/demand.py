# SPDX-License-Identifier: Apache-2.0
"""Requirements that routes place on IDs, in a form that does not depend on how the routes were chosen."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from shunt_controller.plan.network import Network

LOCAL = 0
"""Pseudo-port of the switch's own tables, where routes end."""

Coded = Literal["all", "hops", "core"]
"""Selects the nodes whose residues are in a key. "all": all nodes of a route. "hops": all except the first
node, whose entry names the port. "core": only the nodes between the first and the last."""


@dataclass
class Demand:
    """Requirements that routes place on IDs, with one item per node."""

    ports: list[set[int]]
    """Ports that the node needs labels for, including :data:`LOCAL`; empty if the node is in no key."""
    uses: list[int]
    """Number of keys that the node is in."""
    meets: list[int]
    """Nodes that share a key with the node: bit n stands for node n."""

    @classmethod
    def none(cls, nodes: int) -> "Demand":
        """Returns the demand without any routes."""
        return cls([set() for _ in range(nodes)], [0] * nodes, [0] * nodes)

    def all_meeting(self) -> "Demand":
        """Returns the same demand, except that every two nodes share a key."""
        everyone = sum(1 << node for node, ports in enumerate(self.ports) if ports)
        meets = [everyone & ~(1 << node) if ports else 0 for node, ports in enumerate(self.ports)]
        return Demand(self.ports, self.uses, meets)

    def mirror(self) -> None:
        """Makes `meets` symmetric."""
        for node in range(len(self.meets)):
            rest = self.meets[node] & ~(1 << node)
            self.meets[node] = rest
            for other in bits(rest):
                self.meets[other] |= 1 << node


def bits(mask: int) -> Iterator[int]:
    """Yields the positions of the set bits in ascending order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def of_coded(route: Sequence[int], coded: Coded) -> Sequence[int]:
    """Returns the nodes of a route that are in its key."""
    return route if coded == "all" else route[1:] if coded == "hops" else route[1:-1]


def demand_of(network: Network, keys: Iterable[tuple[Sequence[int], Sequence[int]]]) -> Demand:
    """Returns the demand of keys, given as (route, nodes in its key)."""
    demand = Demand.none(len(network.nodes))
    for route, inside in keys:
        mask = sum(1 << node for node in inside)
        following = dict(zip(route, route[1:], strict=False))
        for node in inside:
            demand.uses[node] += 1
            demand.meets[node] |= mask
            port = network.neighbours[node][following[node]] if node in following else LOCAL
            demand.ports[node].add(port)
    demand.mirror()
    return demand
