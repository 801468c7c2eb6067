# SPDX-License-Identifier: Apache-2.0
"""Plans in which one failure loses nothing: backups, detours in the keys, and the proof of each hop that is said to be safe."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from shunt_controller.plan.arithmetic import INTEGERS, Arithmetic
from shunt_controller.plan.backups import choose_backups
from shunt_controller.plan.demand import LOCAL, Coded, Demand
from shunt_controller.plan.keyflow import (
    Keymaker,
    KeyPlan,
    KeyRoute,
    Segment,
    cut,
    need_ends,
    need_one_way,
)
from shunt_controller.plan.network import Network
from shunt_controller.plan.numbering import Bank, number, suit
from shunt_controller.plan.routes import Routes
from shunt_controller.plan.steering import Guard, arrives, guards, path_ports, steer
from shunt_controller.plan.walk import Failure, Walk, by_key

PARTS = (1.0, 0.75, 0.5, 0.35, 0.25)
"""Of the longest first segment of a route, tried in turn until its detours fit into its key."""


def plan_protected(
    routes: Routes,
    coded: Coded = "hops",
    width_bits: int = 128,
    pairs: Iterable[tuple[int, int]] | None = None,
    epoch: int = 0,
    reserve: int = 0,
    old: Bank | None = None,
    arithmetic: Arithmetic = INTEGERS,
) -> KeyPlan:
    """As :func:`shunt_controller.plan.keyflow.plan`, with backups, and with detours in the keys as far as these are wide
    enough."""
    network = routes.network
    first = number(routes, coded, reserve, old, arithmetic=arithmetic)
    chosen = [routes.path(*pair) for pair in need_ends(routes, first, coded, pairs)]
    backups = choose_backups(network, chosen, coded)
    demand = routes.demand(coded)
    for route in chosen:
        for part in cut(route, first, coded, width_bits):
            _ask(demand, *guards(network, part, backups, coded, steer(network, part, backups)))
    for ports in demand.ports:
        if ports:
            ports.add(LOCAL)
    demand.mirror()
    if pairs is not None:
        # Keys of other pairs are made later, with detours that are not known yet.
        demand = demand.all_meeting()
    bank = suit(network, demand, reserve, old, arithmetic)
    bank.backups = backups
    maker = Keymaker(network, bank, coded, width_bits)
    firsts: dict[tuple[int, ...], Segment] = {}
    made = [KeyRoute(route[0], route[-1], _segments(maker, route, firsts)) for route in chosen]
    need_one_way(made, network.nodes)
    return KeyPlan(network, bank, coded, width_bits, epoch, made)


def _ask(demand: Demand, ports: Mapping[int, int], found: Sequence[Guard]) -> None:
    """Adds to a demand what the guards of a route need."""
    inside = sorted(frozenset[int]().union(*(guard.needs for guard in found)))
    mask = sum(1 << node for node in inside)
    for node in inside:
        demand.uses[node] += 1
        demand.meets[node] |= mask
        demand.ports[node].add(ports[node])


def _segments(maker: Keymaker, route: list[int], firsts: dict[tuple[int, ...], Segment]) -> list[Segment]:
    """A route's segments. Where one ends depends on nothing but the rest of the route, so all routes that have the same rest go on
    alike; `firsts` keeps the first segment of each rest."""
    found = []
    rest = route
    while len(rest) > 1:
        if tuple(rest) not in firsts:
            firsts[tuple(rest)] = _first(maker, rest)
        found.append(firsts[tuple(rest)])
        rest = rest[len(found[-1].nodes) - 1 :]
    return found


def _first(maker: Keymaker, route: list[int]) -> Segment:
    """The first segment of a route: as long as its key has room for all its guards; if none is so short, the one of which the
    largest part of the hops is guarded."""
    longest = len(cut(route, maker.bank, maker.coded, maker.width_bits)[0])
    best: tuple[float, Segment] | None = None
    for part in PARTS:
        length = max(2, round(part * longest))
        segment, is_complete = _segment(maker, route[:length], length == len(route))
        share = sum("link" in guard for guard in segment.guards) / len(segment.guards)
        if best is None or is_complete or share > best[0]:
            best = share, segment
        if is_complete or length == 2:
            break
    return best[1] if best else _segment(maker, route[:longest], longest == len(route))[0]


def _segment(maker: Keymaker, part: list[int], is_last: bool) -> tuple[Segment, bool]:
    """One part of a route, with as many guards as its key has room for, those that need few switches first; and whether it has
    room for all that there are."""
    network, bank = maker.network, maker.bank
    ports = maker.ports(part, is_last)
    says, found = guards(network, part, bank.backups, maker.coded, steer(network, part, bank.backups))
    arithmetic = bank.arithmetic
    product = reduce(arithmetic.times, (bank.ids[node] for node in ports), 1)
    taken = []
    for guard in sorted(found, key=lambda guard: (len(guard.needs), guard.is_node, guard.hop)):
        larger = product
        for node in sorted(guard.needs - set(ports)):
            value = bank.ids[node]
            is_usable = value and says[node] in maker.label_of[node] and arithmetic.are_coprime(larger, value)
            larger = arithmetic.times(larger, value) if is_usable else 1 << maker.width_bits + 1
        if arithmetic.bits(larger) <= maker.width_bits:
            ports |= {node: says[node] for node in guard.needs}
            product = larger
            taken.append(guard)
    key, width = maker.key(ports)
    out_port = path_ports(network, part)[0]
    segment = Segment(part, out_port, key, width, len(part) - 2, bank.backups[part[0]].get(out_port))
    segment.steering = sorted(set(ports) - set(part))
    segment.guards, segment.hop_limit = prove(network, bank, segment, {(guard.hop, guard.is_node) for guard in taken})
    return segment, len(taken) == len(found)


def prove(network: Network, bank: Bank, segment: Segment, claims: set[tuple[int, bool]]) -> tuple[list[str], int]:
    """Walks a segment's packets through each failure that is claimed, (hop, is it the node behind it), with its very key. What
    arrives is said to be guarded; and the most that any of these packets is passed on."""
    limit = len(segment.nodes) - 2
    says = by_key(bank, segment.key)
    told = []
    for hop, node in enumerate(segment.nodes[:-1]):
        survived = []
        following = segment.nodes[hop + 1]
        for kind, failure in (("link", Failure(node, network.neighbours[node][following])), ("node", Failure(following))):
            if (hop, kind == "node") not in claims:
                continue
            outcome = Walk(network, bank.backups, failure).run(segment.nodes[0], segment.out_port, says, 255)
            if arrives(outcome, segment.nodes[-1]):
                survived.append(kind)
                limit = max(limit, outcome.forwarded)
        told.append("+".join(survived))
    return told, limit


def bridges(network: Network) -> set[frozenset[int]]:
    """Pairs of nodes whose link no way leads round: what no planner can protect."""
    found = set()
    for node, ports in enumerate(network.ports):
        for port, peer in ports.items():
            if node < peer.node and not _has_way_round(network, node, port):
                found.add(frozenset((node, peer.node)))
    return found


def _has_way_round(network: Network, node: int, port: int) -> bool:
    goal, seen, rest = network.ports[node][port].node, 1 << node, [node]
    while rest:
        here = rest.pop()
        for out, peer in network.ports[here].items():
            if (here, out) == (node, port) or seen >> peer.node & 1:
                continue
            if peer.node == goal:
                return True
            seen |= 1 << peer.node
            rest.append(peer.node)
    return False


class LinkCounts(NamedTuple):
    """Of the links that a plan's routes cross: pairs of neighbours."""

    used: int
    protected: int
    """For every route that crosses them."""
    to_leaves: int
    """Not protected, because they are the only one that a switch has."""
    other_bridges: int
    """Nor these, which no way leads round either."""


def count_links(plan: KeyPlan) -> LinkCounts:
    """How many links are protected, and how many cannot be."""
    links, neighbours = protected_links(plan), plan.network.neighbours
    no_way = bridges(plan.network) & links.keys()
    to_leaves = sum(any(len(neighbours[node]) == 1 for node in link) for link in no_way)
    return LinkCounts(len(links), sum(links.values()), to_leaves, len(no_way) - to_leaves)


def protected_links(plan: KeyPlan) -> dict[frozenset[int], bool]:
    """Links that routes cross, and whether each route on them loses nothing when they fail."""
    found: dict[frozenset[int], bool] = {}
    for route in plan.routes:
        for segment in route.segments:
            for hop, guard in enumerate(segment.guards):
                link = frozenset(segment.nodes[hop : hop + 2])
                found[link] = found.get(link, True) and "link" in guard
    return found
