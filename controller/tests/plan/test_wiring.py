# SPDX-License-Identifier: Apache-2.0
"""Wrong cables in fat trees are named: all single faults of the tree of k = 4, and random ones of larger trees."""

import random
import time
from itertools import combinations

import pytest
from shunt_controller.plan.fattree import FatTree, Place
from shunt_controller.plan.network import Link
from shunt_controller.plan.wiring import Shape, Wiring, faults, nearest, shapes


def cables(shape: Shape, seed: int = 1) -> tuple[list[Link], dict[int, list[int]]]:
    """Returns the cables of a tree whose switches and ports are in a random order, and ports for further cables,
    one at each switch."""
    draw = random.Random(seed)
    order = draw.sample(range(shape.switches), shape.switches)
    edge = lambda pod, number: order[pod * shape.edges + number]  # noqa: E731
    above = lambda pod, plane: order[shape.k * shape.edges + pod * shape.planes + plane]  # noqa: E731
    core = lambda plane, number: order[shape.k * (shape.edges + shape.planes) + plane * shape.cores + number]  # noqa: E731
    pairs = []
    for pod in range(shape.k):
        for plane in range(shape.planes):
            pairs += [(edge(pod, number), above(pod, plane)) for number in range(shape.edges)]
            pairs += [(above(pod, plane), core(plane, number)) for number in range(shape.cores)]
    draw.shuffle(pairs)
    ports = {node: draw.sample(range(1, 80), shape.k + 3) for node in order}
    links = []
    for a, b in pairs:
        a, b = draw.sample((a, b), 2)
        links.append(Link(a, ports[a].pop(), b, ports[b].pop()))
    return links, ports


def names(shape: Shape) -> list[str]:
    return [f"n{node}" for node in range(shape.switches)]


def pair(link: Link) -> tuple[int, int]:
    return min(link.a, link.b), max(link.a, link.b)


def repaired(links: list[Link], wiring: Wiring) -> list[tuple[int, int]]:
    """Returns the cables after the repair that a result demands."""
    left = list(links)
    for link in wiring.extra:
        left.remove(link)
    return sorted([pair(link) for link in left] + wiring.missing)


def is_tree(shape: Shape, pairs: list[tuple[int, int]]) -> bool:
    """Returns whether cables form a fat tree, independently of the search: by the neighbours of switches."""
    near = {node: {a + b - node for a, b in pairs if node in (a, b)} for node in range(shape.switches)}
    if len(set(pairs)) != len(pairs) or len(pairs) != shape.cables:
        return False
    groups: dict[frozenset[int], list[int]] = {}
    for node, peers in near.items():
        groups.setdefault(frozenset(peers), []).append(node)
    pods = {above: nodes for above, nodes in groups.items() if (len(nodes), len(above)) == (shape.edges, shape.planes)}
    planes = {below: nodes for below, nodes in groups.items() if (len(nodes), len(below)) == (shape.cores, shape.k)}
    members = [node for group in (pods, planes) for nodes in group.values() for node in nodes]
    return (
        (len(pods), len(planes)) == (shape.k, shape.planes)
        and len(set(members)) == len(members)
        and all(len(above & below) == 1 for above in pods for below in planes)
    )


K4 = Shape(4, 2, 2)


def test_trees_in_any_wiring_are_recognized():
    for shape in (K4, Shape(4, 2, 1), Shape(4, 1, 2), Shape(6, 3, 3), Shape(6, 2, 3), Shape(8, 4, 2), Shape(10, 5, 5)):
        for seed in range(5):
            links, _ = cables(shape, seed)
            found = nearest(shape.switches, links)
            assert found is not None and found.shape == shape and found.differences == 0
            assert is_tree(shape, repaired(links, found))


def test_all_single_missing_cables_are_named():
    links, _ = cables(K4)
    for gone in links:
        left = [link for link in links if link != gone]
        found = nearest(20, left)
        assert found is not None and (found.missing, found.extra) == ([pair(gone)], [])
        (fault,) = faults(found, names(K4), {gone.a: [gone.a_port], gone.b: [gone.b_port]})
        a, b = sorted([(gone.a, gone.a_port), (gone.b, gone.b_port)])
        assert fault.text == f"a cable is missing between port {a[1]} of n{a[0]} and port {b[1]} of n{b[0]}"


def test_all_single_extra_cables_are_named():
    links, ports = cables(K4)
    for a, b in combinations(range(20), 2):
        new = Link(a, ports[a][-1], b, ports[b][-1])
        found = nearest(20, [*links, new])
        assert found is not None and not found.missing
        (extra,) = found.extra
        # Of two parallel cables, it cannot be known which one is extra.
        assert extra == new or pair(extra) == pair(new)
        (fault,) = faults(found, names(K4))
        assert fault.kind == "extra" and f"port {extra.a_port} of n{extra.a}" in fault.text
        if extra == new:
            assert fault.text == f"the cable from port {new.a_port} of n{a} to port {new.b_port} of n{b} is not part of the tree"


def test_an_extra_cable_from_a_switch_to_itself_is_named():
    links, ports = cables(K4)
    for node in range(20):
        new = Link(node, ports[node][-1], node, ports[node][-2])
        found = nearest(20, [*links, new])
        assert found is not None and (found.missing, found.extra) == ([], [new])


def test_all_swaps_of_two_cables_are_named():
    links, _ = cables(K4)
    exact = others = unchanged = 0
    for first, second in combinations(links, 2):
        kept = [link for link in links if link not in (first, second)]
        for end in ((second.a, second.a_port), (second.b, second.b_port)):
            rest = (second.b, second.b_port) if end == (second.a, second.a_port) else (second.a, second.a_port)
            new = [Link(first.a, first.a_port, *end), Link(*rest, first.b, first.b_port)]
            found = nearest(20, [*kept, *new])
            assert found is not None
            assert is_tree(K4, repaired([*kept, *new], found)), (first, second, end)
            if sorted(map(pair, new)) == sorted(map(pair, (first, second))):
                unchanged += 1
                assert found.differences == 0
                continue
            if (sorted(found.extra), found.missing) == (sorted(new), sorted(map(pair, (first, second)))):
                exact += 1
                (fault,) = [one for one in faults(found, names(K4)) if one.kind == "swapped"]
                assert all(f"port {link.a_port} of n{link.a} to port {link.b_port} of n{link.b}" in fault.text for link in fault.has)
            else:
                # Another tree is as near, so the fault could also be the one that is named.
                others += 1
                assert found.differences <= 4
    # In the other cases, two switches have one of their two cables in each other's place, or cables are parallel.
    assert (exact, others, unchanged) == (740, 172, 80)


@pytest.mark.parametrize("k", [6, 8, 16])
def test_faults_in_larger_trees_are_named(k):
    shape = Shape(k, k // 2, k // 2)
    links, ports = cables(shape, k)
    draw = random.Random(k)
    for _ in range(3):
        gone, first, second = draw.sample(links, 3)
        new = [Link(first.a, first.a_port, second.b, second.b_port), Link(second.a, second.a_port, first.b, first.b_port)]
        a, b = draw.sample(range(shape.switches), 2)
        new.append(Link(a, ports[a][-1], b, ports[b][-1]))
        left = [link for link in links if link not in (gone, first, second)] + new
        begin = time.perf_counter()
        found = nearest(shape.switches, left)
        assert time.perf_counter() - begin < 5
        assert found is not None and found.differences <= 6 and is_tree(shape, repaired(left, found))
