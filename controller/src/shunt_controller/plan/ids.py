# SPDX-License-Identifier: Apache-2.0
"""Chooses IDs of switches: powers of primes, small for frequently used switches, and coprime within each key.

A node's ID adds its logarithm to the length of each key that contains it. A greedy pass gives the most used
node the smallest free ID. Nodes then exchange IDs as long as keys become shorter. If all routes of a network
are planned and all nodes are coded, every two nodes share a key. The problem is then an assignment of primes
to nodes.
"""

from collections.abc import Mapping, Sequence

from shunt_controller.plan.arithmetic import INTEGERS, Arithmetic, primes_from
from shunt_controller.plan.demand import Demand, bits
from shunt_controller.plan.errors import PlanError, need

EXCHANGE_ROUNDS_MAX = 12
EXCHANGE_NODES_MAX = 400
"""Networks with more nodes keep the result of the greedy pass, because exchanges would gain less than 1 %."""


def consecutive(labels: Sequence[int]) -> list[int]:
    """Returns the baseline: consecutive primes in the order of the nodes, starting at the largest number of
    labels. A node without labels gets 0."""
    found = iter(primes_from(max([2, *labels]), len(labels)))
    return [next(found) if count else 0 for count in labels]


class Assignment:
    """The prime of each node, and the nodes of each prime."""

    def __init__(self, demand: Demand, labels: Sequence[int], fixed: Mapping[int, int], arithmetic: Arithmetic) -> None:
        self.demand, self.labels, self.arithmetic = demand, labels, arithmetic
        self.fixed = dict(fixed)
        self.free_nodes = [node for node, count in enumerate(labels) if count and node not in fixed]
        used = {factor for value in fixed.values() for factor in arithmetic.factors(value)}
        # One prime per node, in addition to those already taken, always leaves a free prime.
        self.primes = sorted({*arithmetic.primes(max([2, *labels]), len(labels) + len(used) + 1), *used})
        self.holders = dict.fromkeys(self.primes, 0)
        self.prime = [0] * len(labels)
        for node, value in self.fixed.items():
            for factor in arithmetic.factors(value):
                self.holders[factor] |= 1 << node

    def is_free(self, prime: int, node: int, but: int = 0) -> bool:
        """Returns whether a node may have a prime if the nodes in the mask `but` give up the prime."""
        return not self.holders[prime] & self.demand.meets[node] & ~but

    def best(self, node: int) -> int:
        """Returns the prime with the smallest power that a node may have."""
        labels, chosen, least = self.labels[node], 0, 0
        for prime in self.primes:
            if chosen and prime >= least:
                break
            value = self.arithmetic.power(prime, labels)
            if (not chosen or value < least) and self.is_free(prime, node):
                chosen, least = prime, value
        need(
            chosen > 0,
            f"there are no {len(self.primes) + 1} {self.arithmetic.name} IDs of this kind for switches that are in one key",
        )
        return chosen

    def give(self, node: int, prime: int) -> None:
        """Replaces the prime of a node."""
        if self.prime[node]:
            self.holders[self.prime[node]] &= ~(1 << node)
        self.prime[node] = prime
        self.holders[prime] |= 1 << node

    def cost(self, node: int, prime: int) -> float:
        """Returns the number of bits that a node with a prime adds to all keys together."""
        return self.demand.uses[node] * self.arithmetic.size(self.arithmetic.power(prime, self.labels[node]))

    def greedy(self) -> None:
        """Gives each node its best prime, the most used node first. Nodes with equal `meets` share no key and
        can have the same ID, so their uses are added up."""
        uses, meets = self.demand.uses, self.demand.meets
        together: dict[int, int] = {}
        for node in self.free_nodes:
            together[meets[node]] = together.get(meets[node], 0) + uses[node]
        for node in sorted(self.free_nodes, key=lambda node: (-together[meets[node]], -uses[node], node)):
            self.give(node, self.best(node))

    def exchange(self) -> bool:
        """Moves nodes to better primes, and swaps pairs, if this makes keys shorter. Returns whether a
        prime has changed."""
        has_gained = False
        for node in self.free_nodes:
            own = self.prime[node]
            best = self.best(node)
            if self.cost(node, best) < self.cost(node, own) - 1e-9:
                self.give(node, best)
                has_gained = True
        for at, node in enumerate(self.free_nodes):
            for other in self.free_nodes[at + 1 :]:
                has_gained |= self._swap(node, other)
        return has_gained

    def _swap(self, node: int, other: int) -> bool:
        mine, its = self.prime[node], self.prime[other]
        if mine == its:
            return False
        now = self.cost(node, mine) + self.cost(other, its)
        if self.cost(node, its) + self.cost(other, mine) >= now - 1e-6:
            return False
        if not (self.is_free(its, node, 1 << other) and self.is_free(mine, other, 1 << node)):
            return False
        self.give(node, its)
        self.give(other, mine)
        return True

    def ids(self) -> list[int]:
        """Returns the ID of each node, or 0 for a node that needs no ID."""
        found = [
            self.arithmetic.power(prime, labels) if prime else 0
            for prime, labels in zip(self.prime, self.labels, strict=True)
        ]
        for node, value in self.fixed.items():
            found[node] = value
        return found


def assign(
    demand: Demand, labels: Sequence[int], fixed: Mapping[int, int] | None = None, arithmetic: Arithmetic = INTEGERS
) -> list[int]:
    """Returns an ID for each node that needs labels. IDs of nodes that meet are coprime, and each ID is
    larger than the highest label. `fixed` has IDs that must stay."""
    fixed = {node: value for node, value in (fixed or {}).items() if value}
    for node, value in fixed.items():
        room = arithmetic.residues(value)
        need(room >= max(2, labels[node]), f"the ID {value} allows {room} labels, but {labels[node]} are needed")
    found = Assignment(demand, labels, fixed, arithmetic)
    found.greedy()
    if len(found.free_nodes) <= EXCHANGE_NODES_MAX:
        for _ in range(EXCHANGE_ROUNDS_MAX):
            if not found.exchange():
                break
    return found.ids()


def check(
    ids: Sequence[int], demand: Demand, labels: Sequence[int], names: Sequence[str], arithmetic: Arithmetic = INTEGERS
) -> None:
    """Raises an error unless all IDs are large enough, and coprime for nodes that share a key."""
    holders: dict[int, int] = {}
    for node, value in enumerate(ids):
        if not labels[node]:
            continue
        if arithmetic.residues(value) < max(2, labels[node]):
            raise PlanError(
                f"{names[node]} has the ID {value} and needs {labels[node]} labels (0 to {labels[node] - 1}); its ID must be larger"
            )
        for factor in arithmetic.factors(value):
            for other in bits(holders.get(factor, 0) & demand.meets[node]):
                raise PlanError(
                    f"{names[other]} (ID {ids[other]}) and {names[node]} (ID {value}) are in one key and have the factor {factor} "
                    "in common"
                )
            holders[factor] = holders.get(factor, 0) | 1 << node
