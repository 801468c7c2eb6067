# SPDX-License-Identifier: Apache-2.0
"""IDs of switches: powers of primes, small where they are used most, coprime where they are in one key.

What a node's ID costs is its logarithm in each key that it is in. A greedy pass gives the most used node the smallest ID
that is free; exchanges between nodes follow as long as keys become shorter. Where all routes of a network are planned and
all nodes are coded, each two nodes meet, and what remains is an assignment of primes to nodes.
"""

from collections.abc import Mapping, Sequence

from shunt_controller.plan.arithmetic import INTEGERS, Arithmetic, primes_from
from shunt_controller.plan.demand import Demand, bits
from shunt_controller.plan.errors import PlanError, need

EXCHANGE_ROUNDS_MAX = 12
EXCHANGE_NODES_MAX = 400
"""Networks with more nodes are left as the greedy pass makes them: there exchanges gain less than one part in a hundred."""


def consecutive(labels: Sequence[int]) -> list[int]:
    """The baseline: consecutive primes from the largest number of labels on, in the order of the nodes; 0 without labels."""
    found = iter(primes_from(max([2, *labels]), len(labels)))
    return [next(found) if count else 0 for count in labels]


class Assignment:
    """Which prime each node has, and which nodes have each prime."""

    def __init__(self, demand: Demand, labels: Sequence[int], fixed: Mapping[int, int], arithmetic: Arithmetic) -> None:
        self.demand, self.labels, self.arithmetic = demand, labels, arithmetic
        self.fixed = dict(fixed)
        self.free_nodes = [node for node, count in enumerate(labels) if count and node not in fixed]
        used = {factor for value in fixed.values() for factor in arithmetic.factors(value)}
        # Beside those that are taken, one for each node that needs no power: there is always one left.
        self.primes = sorted({*arithmetic.primes(max([2, *labels]), len(labels) + len(used) + 1), *used})
        self.holders = dict.fromkeys(self.primes, 0)
        self.prime = [0] * len(labels)
        for node, value in self.fixed.items():
            for factor in arithmetic.factors(value):
                self.holders[factor] |= 1 << node

    def is_free(self, prime: int, node: int, but: int = 0) -> bool:
        """Whether a node may have a prime, given that `but` (a mask of nodes) gives it up."""
        return not self.holders[prime] & self.demand.meets[node] & ~but

    def best(self, node: int) -> int:
        """The prime with the smallest power that a node may have."""
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
        """Gives a node a prime in place of the one it has."""
        if self.prime[node]:
            self.holders[self.prime[node]] &= ~(1 << node)
        self.prime[node] = prime
        self.holders[prime] |= 1 << node

    def cost(self, node: int, prime: int) -> float:
        """Bits that a node with a prime brings into all keys together."""
        return self.demand.uses[node] * self.arithmetic.size(self.arithmetic.power(prime, self.labels[node]))

    def greedy(self) -> None:
        """Gives each node what is best when its turn comes; the most used comes first. Nodes that meet the same others and so not
        each other can all have one ID: their uses count together."""
        uses, meets = self.demand.uses, self.demand.meets
        together: dict[int, int] = {}
        for node in self.free_nodes:
            together[meets[node]] = together.get(meets[node], 0) + uses[node]
        for node in sorted(self.free_nodes, key=lambda node: (-together[meets[node]], -uses[node], node)):
            self.give(node, self.best(node))

    def exchange(self) -> bool:
        """Moves nodes to better primes and swaps pairs where that makes keys shorter; whether any did."""
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
        """The ID of each node; 0 where it needs none."""
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
    """An ID for each node that needs labels, such that those which meet are coprime and each is larger than its highest label.
    `fixed` are IDs that must stay."""
    fixed = {node: value for node, value in (fixed or {}).items() if value}
    for node, value in fixed.items():
        room = arithmetic.residues(value)
        need(room >= max(2, labels[node]), f"the ID {value} leaves room for {room} labels, and {labels[node]} are needed")
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
    """Raises unless IDs suit: large enough, and coprime where nodes meet."""
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
