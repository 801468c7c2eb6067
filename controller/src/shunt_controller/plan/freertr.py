# SPDX-License-Identifier: Apache-2.0
"""PolKA in freeRtr's form: a 128-bit key whose residue at a node is the index of the next node, and 0 at the
last node.

EtherType 0x8842 is followed by 20 bytes: version (8 bits, 0), TTL (8), EtherType of the payload (16) and the
key, big-endian. Nodes have indices. The polynomial of index i is the i-th number from 0x10000 on that, as a
polynomial over GF(2), has no factor in common with earlier ones.

freeRtr's encoder refuses keys with the highest bit set, because its big integer would then have one more
byte. Paths with such keys must be split, and so must paths of more than eight nodes.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from shunt_controller.plan import gf2
from shunt_controller.plan.arithmetic import POLYNOMIALS
from shunt_controller.plan.errors import PlanError, need
from shunt_controller.plan.network import Network
from shunt_controller.plan.routes import Routes

ETHERTYPE = 0x8842
BASE = 0x10000
KEY_BITS = 128
ENCODED_BITS = 127
"""Maximum number of bits of a key that freeRtr's encoder accepts."""
NODES_MAX = KEY_BITS // 16
INDEX_MAX = 4095
_HEADER = struct.Struct("!BBH")


@cache
def polynomials(count: int) -> tuple[int, ...]:
    """Returns the polynomials of the first `count` indices, from 0 on."""
    need(0 <= count <= INDEX_MAX + 1, f"indices are 0 to {INDEX_MAX}")
    found: list[int] = []
    used: set[int] = set()
    value = BASE
    while len(found) < count:
        inside = _small_factors(value)
        if not inside & used:
            used |= inside
            found.append(value)
        value += 1
    return tuple(found)


def _small_factors(value: int) -> set[int]:
    """Returns irreducible factors that other polynomials of degree 16 may share. There is at most one factor
    above degree 8, which remains after the division by the smaller ones."""
    found = set()
    for lower in range(1, 9):
        for smaller in gf2.irreducibles(lower):
            while value.bit_length() > lower and not gf2.remainder(value, smaller):
                found.add(smaller)
                value = gf2.divided(value, smaller)[0]
    return found | ({value} if value > 1 else set())


def polynomial(index: int) -> int:
    """Returns the polynomial of an index."""
    need(0 <= index <= INDEX_MAX, f"the index {index} is not 0 to {INDEX_MAX}")
    # Rounding up keeps the number of cached lists low.
    return polynomials(-(-(index + 1) // 64) * 64)[index]


def key_of(path: Sequence[int]) -> int:
    """Returns the key of a path, given as the indices of the nodes after the first one."""
    need(bool(path), "a path needs a node after the first one")
    need(len(set(path)) == len(path), f"the path {_said(path)} visits a node twice")
    need(0 not in path[1:], f"the path {_said(path)} contains index 0, which marks the end of a path")
    key, product = 0, 1
    for index, following in zip(path, [*path[1:], 0], strict=True):
        key = POLYNOMIALS.extend(key, product, polynomial(index), following)
        product = gf2.times(product, polynomial(index))
    return key


def encode(path: Sequence[int]) -> int:
    """Returns the key of a path. Raises PlanError with the reason if freeRtr cannot carry the key."""
    if len(path) > NODES_MAX:
        raise PlanError(
            f"the path {_said(path)} has {len(path)} nodes after the first one; a key of {KEY_BITS} bits has at most {NODES_MAX}"
        )
    key = key_of(path)
    if key.bit_length() > ENCODED_BITS:
        raise PlanError(
            f"the key {key:032x} of the path {_said(path)} has its highest bit set, which freeRtr's encoder does not accept"
        )
    return key


def header(key: int, ttl: int, ethertype: int) -> bytes:
    """Returns the 20 bytes after EtherType 0x8842."""
    need(0 <= ttl <= 255, f"a TTL is 0 to 255, not {ttl}")
    need(0 <= ethertype <= 0xFFFF, f"an EtherType has 16 bits; {ethertype:#x} does not fit")
    need(0 <= key < 1 << KEY_BITS, f"a key has {KEY_BITS} bits; {key:#x} does not fit")
    return _HEADER.pack(0, ttl, ethertype) + key.to_bytes(16)


def cut(path: Sequence[int]) -> list[list[int]]:
    """Splits a path into as few segments as possible whose keys freeRtr can carry. The last node of a segment
    pops the header and pushes the next one. The length of a key is known only after the key is made, so all
    ways to cut the path are tried."""
    need(bool(path), "a path needs a node after the first one")
    fewest: list[list[list[int]] | None] = [[]]
    for end in range(1, len(path) + 1):
        best: list[list[int]] | None = None
        for start in range(max(0, end - NODES_MAX), end):
            before = fewest[start]
            if before is None or (best is not None and len(before) + 1 >= len(best)):
                continue
            part = list(path[start:end])
            # Keys of seven nodes have at most 112 bits.
            if len(part) < NODES_MAX or key_of(part).bit_length() <= ENCODED_BITS:
                best = [*before, part]
        fewest.append(best)
    found = fewest[-1]
    if found is None:
        raise PlanError(f"the path {_said(path)} cannot be cut into segments whose keys freeRtr's encoder accepts")
    return found


def _said(path: Sequence[int]) -> str:
    return ", ".join(map(str, path))


@dataclass
class FreertrRoute:
    """A route: its nodes, and its parts. A part has the indices of the nodes after its first one, and its
    key."""

    nodes: list[int]
    parts: list[tuple[list[int], int]]


def plan(routes: Routes, pairs: Sequence[tuple[int, int]]) -> list[FreertrRoute]:
    """Returns the keys of routes in a network whose nodes have the indices 1, 2, ... in their order."""
    found = []
    for pair in pairs:
        nodes = routes.path(*pair)
        parts = cut([index_of(node) for node in nodes[1:]])
        found.append(FreertrRoute(nodes, [(part, encode(part)) for part in parts]))
    return found


def index_of(node: int) -> int:
    """Returns a node's index. Index 0 is not used for nodes, because it marks the end of a path."""
    return node + 1


def next_ports(network: Network, node: int) -> dict[int, int]:
    """Returns a node's table: the port to each neighbour by its index."""
    return {index_of(peer): port for peer, port in network.neighbours[node].items()}
