# SPDX-License-Identifier: Apache-2.0
"""Keys by the Chinese remainder theorem: one number whose residues are the labels of a path."""

from collections.abc import Iterator, Sequence
from math import gcd

from shunt_controller.plan.demand import LOCAL, Coded
from shunt_controller.plan.errors import PlanError, need
from shunt_controller.plan.routes import Trees

WIDTHS_BITS = (64, 128, 192, 256)
"""Of keys on the wire."""


def extend(key: int, product: int, modulus: int, label: int) -> int:
    """The key below `product * modulus` that leaves what `key` leaves modulo `product`, and a label modulo a further number."""
    return key + product * ((label - key) * pow(product, -1, modulus) % modulus)


def key_of(moduli: Sequence[int], labels: Sequence[int]) -> int:
    """The smallest key whose residue modulo each number is the label there."""
    key, product = 0, 1
    for modulus, label in zip(moduli, labels, strict=True):
        need(modulus >= 2, f"{modulus} is no ID; IDs are 2 and more")
        need(0 <= label < modulus, f"the label {label} is not below the ID {modulus}")
        common = gcd(product, modulus)
        if common != 1:
            raise PlanError(f"the ID {modulus} has the factor {common} in common with another one of its path")
        key, product = extend(key, product, modulus, label), product * modulus
    return key


def bits_of(moduli: Sequence[int]) -> int:
    """Bits that the largest key of a path with these IDs takes."""
    product = 1
    for modulus in moduli:
        product *= modulus
    return (product - 1).bit_length()


def widths(trees: Trees, ids: Sequence[int], coded: Coded = "all") -> Iterator[tuple[int, list[int]]]:
    """For each destination, the bits of each node's key towards it; 0 for its own."""
    for destination in trees.ends:
        following = trees.next[destination]
        products, found = [0] * len(following), [0] * len(following)
        products[destination] = 1 if coded == "core" else ids[destination]
        for node in trees.order(destination)[1:]:
            after = products[following[node]]
            products[node] = after * (ids[node] or 1)
            found[node] = ((products[node] if coded == "all" else after) - 1).bit_length()
        yield destination, found


def all_keys(
    trees: Trees, ids: Sequence[int], label_of: Sequence[dict[int, int]], coded: Coded = "all"
) -> Iterator[tuple[int, list[int]]]:
    """For each destination, each node's key towards it. A key is that of the next node and one residue more, so each takes one
    step."""
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
            keys[node] = key + product * ((label - key) * pow(product, -1, modulus) % modulus)
            products[node] = product * modulus
        yield destination, keys if coded == "all" else [keys[after] if after >= 0 else 0 for after in following]


def mean_width(trees: Trees, ids: Sequence[int], coded: Coded = "all") -> tuple[float, int]:
    """Mean and maximum of the bits of all pairs' keys."""
    total = most = count = 0
    for destination, found in widths(trees, ids, coded):
        for source in trees.ends:
            if source != destination:
                total += found[source]
                most = max(most, found[source])
                count += 1
    return total / count, most
