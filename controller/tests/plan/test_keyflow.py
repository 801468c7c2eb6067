# SPDX-License-Identifier: Apache-2.0
"""Tests of KeyFlow plans: segments, protection, and walks through the planned network."""

import math
from itertools import pairwise

import pytest
from networks import graphs, sample, zoo
from shunt_controller.plan import protection
from shunt_controller.plan.demand import LOCAL
from shunt_controller.plan.errors import PlanError
from shunt_controller.plan.fattree import find, make
from shunt_controller.plan.keyflow import KeyPlan, cut, plan, waypoints
from shunt_controller.plan.network import Network, Wire, build
from shunt_controller.plan.numbering import Bank
from shunt_controller.plan.routes import Listed, Trees
from shunt_controller.plan.treeroutes import TreeRoutes
from shunt_controller.plan.walk import (
    HOP_LIMIT,
    NO_LABEL,
    PORT_DOWN,
    Entry,
    Failure,
    Walk,
    by_key,
    choose,
)


def deliver(made: KeyPlan, failure: Failure | None = None) -> dict[tuple[int, int], str]:
    """Sends a packet along every route. Returns for each pair "" or the drop reason."""
    walk = Walk(made.network, made.bank.backups, failure)
    found = {}
    for route in made.routes:
        reason, in_port = "", None
        for segment in route.segments:
            outcome = walk.run(segment.entry(), by_key(made.bank, segment.key), segment.hop_limit, in_port)
            in_port = outcome.in_port
            assert outcome.forwarded <= segment.hop_limit
            reason = outcome.reason or ("" if outcome.node == segment.nodes[-1] else "elsewhere")
            if reason:
                break
        found[route.source, route.destination] = reason
    return found


def failures(network: Network) -> list[Failure]:
    """Returns the failures of each link and of each node."""
    links = [Failure(link.a, link.a_port) for link in network.links]
    return links + [Failure(node) for node in range(len(network.nodes))]


def test_the_papers_figure():
    network = sample("figure.json")
    made = plan(Listed(network, [[0, 1, 2, 3, 4]]), "core")
    # Edge switches have no ID. Each other switch needs one label, and 2 is the lowest ID.
    assert made.bank.ids[0] == made.bank.ids[4] == 0 and sorted(made.bank.ids[1:4]) == [2, 3, 5]
    # IDs 4, 3 and 5 and the ports of the labels are those of the figure.
    bank = Bank([0, 4, 3, 5, 0], [[], [1, 2], [1, 2], [2, 1], []])
    first = Entry(0, 1)
    outcome = Walk(network, bank.backups).run(first, by_key(bank, 25), 3)
    assert outcome == (4, 1, "", 3, (0, 1, 2, 3, 4))
    assert Walk(network, bank.backups).run(first, by_key(bank, 25), 2).reason == HOP_LIMIT
    assert Walk(network, bank.backups).run(first, by_key(bank, 26), 3).reason == NO_LABEL
    outcome = Walk(network, bank.backups, Failure(2, 2)).run(first, by_key(bank, 25), 3)
    assert (outcome.node, outcome.reason) == (2, PORT_DOWN)


def test_backups_are_for_ports_that_are_down_or_lead_back():
    assert choose(1, 2, {1: 3}, set()) == 1
    assert choose(1, 2, {1: 3}, {1}) == 3
    assert choose(1, 1, {1: 3}, set()) == 3
    assert choose(1, 3, {1: 3}, {1}) == 3
    assert choose(1, 2, {1: 3}, {1, 3}) is None
    assert choose(1, 2, {}, {1}) is None


@pytest.mark.parametrize("network", graphs(), ids=lambda network: network.name)
@pytest.mark.parametrize("coded", ["all", "hops"])
def test_everything_arrives(network, coded):
    made = plan(Trees(network), coded)
    assert set(deliver(made).values()) == {""}
    assert len(made.routes) == len(network.nodes) * (len(network.nodes) - 1)


def test_a_path_that_does_not_fit_is_split_at_the_fewest_waypoints():
    ids = [101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163]
    for width_bits in (8, 16, 21, 64):
        parts = cut(range(13), Bank(ids, []), "hops", width_bits)
        assert [part[0] for part in parts] == [0, *(part[-1] for part in parts[:-1])] and parts[-1][-1] == 12
        for part, following in pairwise([*parts, None]):
            assert (math.prod(ids[node] for node in part[1:]) - 1).bit_length() <= width_bits
            if following:
                one_more = [*part[1:], following[1]]
                assert (math.prod(ids[node] for node in one_more) - 1).bit_length() > width_bits
    with pytest.raises(PlanError, match="a single hop with the ID 131 does not fit a key of 7 bits"):
        cut(range(13), Bank(ids, []), "hops", 7)


def test_long_routes_arrive_over_waypoints():
    network = zoo("UsCarrier")
    trees = Trees(network)
    made = plan(trees, "hops", 64, trees.pairs()[::97])
    assert set(deliver(made).values()) == {""}
    assert max(len(route.segments) for route in made.routes) >= 3 and waypoints(made)
    assert all(segment.key.bit_length() <= segment.bits <= 64 for route in made.routes for segment in route.segments)


def test_waypoints_between_edge_switches_have_a_label_for_their_tables():
    nodes = [("first", "edge"), *((f"s{number}", "core") for number in range(40)), ("last", "edge")]
    network = build("path", nodes, [Wire(a, b) for (a, _), (b, _) in pairwise(nodes)])
    made = plan(Trees(network, [0, 41]), "core")
    assert set(deliver(made).values()) == {""} and len(made.routes[0].segments) > 1
    assert all(LOCAL in ports for ports in made.bank.labels[1:41])
    assert made.bank.ids[0] == made.bank.ids[41] == 0


def test_ends_that_others_cross_need_residues():
    network = sample("backbone.json")
    with pytest.raises(PlanError, match="is an end of routes and in the keys of others"):
        plan(Trees(network), "core")


def test_routes_that_part_behind_a_waypoint_are_refused():
    names = [f"n{number}" for number in range(60)]
    links = [Wire(a, b) for a, b in pairwise(names)]
    links += [Wire("a", "n0"), Wire("b", "n0"), Wire("n57", "x"), Wire("x", "n59")]
    network = build("fork", [(name, "core") for name in [*names, "a", "b", "x"]], links)
    middle = [network.index(name) for name in names[:58]]
    one = [network.index("a"), *middle, network.index("n58"), network.index("n59")]
    other = [network.index("b"), *middle, network.index("x"), network.index("n59")]
    assert set(deliver(plan(Listed(network, [one]))).values()) == {""}
    with pytest.raises(PlanError, match="the routes from b and a to n59 do not fit one key"):
        plan(Listed(network, [one, other]))


@pytest.mark.parametrize("network", graphs(), ids=lambda network: network.name)
def test_protected_hops_lose_nothing(network):
    made = protection.plan_protected(Trees(network), "hops", 256)
    assert set(deliver(made).values()) == {""}
    claims = 0
    for failure in failures(network):
        arrived = deliver(made, failure)
        for route in made.routes:
            is_cut, is_guarded = crossing(network, route, failure)
            claims += is_guarded
            if is_guarded or not is_cut:
                assert arrived[route.source, route.destination] == "", (failure, route)
    assert claims or network.name in ("tree", "path")


def crossing(network: Network, route, failure: Failure) -> tuple[bool, bool]:
    """Returns whether a failure is on a route, and whether the plan states that nothing is lost after it."""
    is_cut = failure.port is None and failure.node in (route.source, route.destination)
    is_guarded = not is_cut
    crossed = False
    for segment in route.segments:
        for (a, b), guard in zip(pairwise(segment.nodes), segment.guards, strict=True):
            if failure.port is None:
                is_here, kind = b == failure.node, "node"
            else:
                ends = (failure.node, network.ports[failure.node][failure.port].node)
                out = network.neighbours[a][b]
                is_here = {a, b} == set(ends) and out == (
                    failure.port if a == ends[0] else network.ports[ends[0]][failure.port].port
                )
                kind = "link"
            if is_here:
                crossed = True
                is_guarded = is_guarded and kind in guard
    return is_cut or crossed, crossed and is_guarded


def test_a_ring_is_protected_against_everything():
    made = protection.plan_protected(Trees(graphs()[0]), "hops", 256)
    assert all(protection.protected_links(made).values()) and not protection.bridges(made.network)
    for route in made.routes:
        assert all(guard == "link+node" for segment in route.segments for guard in segment.guards[:-1])


def test_most_of_geant_is_protected():
    network = zoo("Geant2012")
    made = protection.plan_protected(Trees(network), "hops", 128)
    links, bridges = protection.protected_links(made), protection.bridges(network)
    assert len(links) == 61 and len(bridges) == 8
    assert not any(links[link] for link in bridges)
    # These are all links that can be protected: the other eight links lead to leaves.
    assert protection.count_links(made) == (61, 53, 8, 0)
    assert max(segment.bits for route in made.routes for segment in route.segments) <= 128
    for failure in failures(network)[::3]:
        arrived = deliver(made, failure)
        for route in made.routes:
            is_cut, is_guarded = crossing(network, route, failure)
            if is_guarded or not is_cut:
                assert arrived[route.source, route.destination] == ""


def test_narrow_keys_are_split_so_that_detours_fit():
    network = zoo("Geant2012")
    trees = Trees(network)
    pairs = trees.pairs()[::7]
    wide, narrow = (protection.plan_protected(trees, "hops", width, pairs) for width in (192, 64))
    assert set(deliver(narrow).values()) == {""}
    assert max(segment.bits for route in narrow.routes for segment in route.segments) <= 64
    assert not waypoints(wide) and waypoints(narrow)

    def guarded(made: KeyPlan, kind: str) -> int:
        return sum(kind in guard for route in made.routes for segment in route.segments for guard in segment.guards)

    # A waypoint cannot be bypassed if it fails, so fewer hops have a protected next switch.
    assert guarded(narrow, "link") >= 0.98 * guarded(wide, "link")
    assert guarded(narrow, "node") < guarded(wide, "node")


@pytest.mark.parametrize("k", [4, 6])
def test_all_keys_of_a_fat_tree_arrive(k):
    tree = find(make(k))
    routes = TreeRoutes(tree)
    made = plan(routes, "core", 64)
    assert set(deliver(made).values()) == {""} and len(made.routes) == (k * k // 2) * (k * k // 2 - 1)
    assert max(segment.bits for route in made.routes for segment in route.segments) <= routes.width_max(made.bank)
    # The demand covers every possible path, so no two IDs of a path have a common factor.
    listed = [
        [source, up, core, down, destination]
        for source in tree.edges[0]
        for plane, up in enumerate(tree.aggregations[0])
        for core in tree.cores[plane]
        for pod in range(1, k)
        for down in [tree.aggregations[pod][plane]]
        for destination in tree.edges[pod]
    ]
    for path in listed:
        assert math.lcm(*(made.bank.ids[node] for node in path[1:-1])) == math.prod(
            made.bank.ids[node] for node in path[1:-1]
        )
