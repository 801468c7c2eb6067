# SPDX-License-Identifier: Apache-2.0
"""Keys by the Chinese remainder theorem: one number whose residues are the labels of a path."""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

from shunt_controller.plan.arithmetic import INTEGERS, Arithmetic
from shunt_controller.plan.demand import LOCAL, Coded
from shunt_controller.plan.errors import PlanError, need
from shunt_controller.plan.routes import Trees

WIDTHS_BITS = (64, 128, 192, 256)
"""Key lengths on the wire, in bits."""


def key_of(moduli: Sequence[int], labels: Sequence[int], arithmetic: Arithmetic = INTEGERS) -> int:
    """Returns the smallest key whose residue modulo each ID is the label."""
    key, product = 0, 1
    for modulus, label in zip(moduli, labels, strict=True):
        need(modulus >= 2, f"{modulus} is not an ID; IDs are at least 2")
        need(0 <= label < arithmetic.residues(modulus), f"the label {label} is not below the ID {modulus}")
        for factor in arithmetic.factors(modulus):
            if not arithmetic.residue(product, factor):
                raise PlanError(f"the ID {modulus} shares the factor {factor} with another ID of its path")
        key, product = arithmetic.extend(key, product, modulus, label), arithmetic.times(product, modulus)
    return key


def bits_of(moduli: Iterable[int], arithmetic: Arithmetic = INTEGERS) -> int:
    """Returns the number of bits of the largest key of a path with these IDs."""
    return arithmetic.bits(reduce(arithmetic.times, moduli, 1))


def widths(
    trees: Trees, ids: Sequence[int], coded: Coded = "all", arithmetic: Arithmetic = INTEGERS
) -> Iterator[tuple[int, list[int]]]:
    """Yields, for each destination, the length of each node's key in bits, and 0 for the destination
    itself."""
    for destination in trees.ends:
        following = trees.next[destination]
        products, found = [0] * len(following), [0] * len(following)
        products[destination] = 1 if coded == "core" else ids[destination]
        for node in trees.order(destination)[1:]:
            after = products[following[node]]
            products[node] = arithmetic.times(after, ids[node] or 1)
            found[node] = arithmetic.bits(products[node] if coded == "all" else after)
        yield destination, found


def all_keys(
    trees: Trees,
    ids: Sequence[int],
    label_of: Sequence[dict[int, int]],
    coded: Coded = "all",
    arithmetic: Arithmetic = INTEGERS,
) -> Iterator[tuple[int, list[int]]]:
    """Yields, for each destination, the key of each node. The key of a node extends the key of the next node
    by one residue, so each key takes a single step."""
    neighbours = trees.network.neighbours
    for destination in trees.ends:
        following = trees.next[destination]
        keys, products = [0] * len(following), [1] * len(following)
        if coded != "core":
            keys[destination], products[destination] = label_of[destination][LOCAL], ids[destination]
        inside = set(following)
        for node in trees.order(destination)[1:]:
            if coded != "all" and node not in inside:
                continue
            after = following[node]
            key, product, modulus = keys[after], products[after], ids[node]
            label = label_of[node][neighbours[node][after]]
            keys[node] = arithmetic.extend(key, product, modulus, label)
            products[node] = arithmetic.times(product, modulus)
        yield destination, keys if coded == "all" else [keys[after] if after >= 0 else 0 for after in following]


def mean_width(trees: Trees, ids: Sequence[int], coded: Coded = "all") -> tuple[float, int]:
    """Returns the mean and the maximum length of the keys of all pairs, in bits."""
    total = most = count = 0
    for destination, found in widths(trees, ids, coded):
        for source in trees.ends:
            if source != destination:
                total += found[source]
                most = max(most, found[source])
                count += 1
    return total / count, most
