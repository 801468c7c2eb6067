# SPDX-License-Identifier: Apache-2.0
"""Plans in which a single failure loses nothing: backups, detours in the keys, and a proof for each protected
hop."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from shunt_controller.plan.arithmetic import INTEGERS, Arithmetic
from shunt_controller.plan.backups import choose_backups
from shunt_controller.plan.demand import LOCAL, Coded, Demand, of_coded
from shunt_controller.plan.keyflow import Keymaker, KeyPlan, cut, need_ends, need_one_way
from shunt_controller.plan.network import Network
from shunt_controller.plan.numbering import Bank, number, suit
from shunt_controller.plan.routes import Routes
from shunt_controller.plan.splitting import Splitter
from shunt_controller.plan.steering import Guard, guards, steer


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
    """Makes a plan like :func:`shunt_controller.plan.keyflow.plan`, but with backups, and with as many
    detours as fit the keys."""
    network = routes.network
    first = number(routes, coded, reserve, old, arithmetic=arithmetic)
    chosen = [routes.path(*pair) for pair in need_ends(routes, first, coded, pairs)]
    backups = choose_backups(network, chosen, coded)
    demand = routes.demand(coded)
    parts = Counter(tuple(part) for route in chosen for part in cut(route, first, coded, width_bits))
    for part, uses in parts.items():
        ports, found = guards(network, part, backups, coded, steer(network, part, backups))
        _ask(demand, uses, of_coded(part, coded), ports, found)
    for ports in demand.ports:
        if ports:
            ports.add(LOCAL)
    demand.mirror()
    if pairs is not None:
        # Keys for other pairs of nodes may be added later, with unknown detours, so every two nodes count as
        # nodes that share a key.
        demand = demand.all_meeting()
    bank = suit(network, demand, reserve, old, arithmetic)
    bank.backups = backups
    maker = Keymaker(network, bank, coded, width_bits)
    made = Splitter(maker).routes(chosen)
    need_one_way(made, network.nodes)
    return KeyPlan(network, bank, coded, width_bits, epoch, made)


def _ask(demand: Demand, uses: int, always: Sequence[int], ports: Mapping[int, int], found: Sequence[Guard]) -> None:
    """Adds the requirements of guards to a demand. `always` has the nodes whose residues are in a key even
    without guards, and `uses` is the number of such keys."""
    inside = sorted(frozenset(always).union(*(guard.more for guard in found))) if found else []
    mask = sum(1 << node for node in inside)
    for node in inside:
        demand.uses[node] += uses
        demand.meets[node] |= mask
        demand.ports[node].add(ports[node])


def bridges(network: Network) -> set[frozenset[int]]:
    """Returns the pairs of nodes whose link has no detour. No planner can protect such a link."""
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
    """Numbers of links that a plan's routes cross. Here a link is a pair of neighbours."""

    used: int
    protected: int
    """Number of links that are protected for every route that crosses them."""
    to_leaves: int
    """Number of links that cannot be protected, because they are the only link of a switch."""
    other_bridges: int
    """Number of other links that cannot be protected, because there is no detour."""


def count_links(plan: KeyPlan) -> LinkCounts:
    """Counts the links that are protected, and the links that cannot be protected."""
    links, neighbours = protected_links(plan), plan.network.neighbours
    no_way = bridges(plan.network) & links.keys()
    to_leaves = sum(any(len(neighbours[node]) == 1 for node in link) for link in no_way)
    return LinkCounts(len(links), sum(links.values()), to_leaves, len(no_way) - to_leaves)


def protected_links(plan: KeyPlan) -> dict[frozenset[int], bool]:
    """Returns, for each link that routes cross, whether its failure loses no packets of any of these
    routes."""
    found: dict[frozenset[int], bool] = {}
    for route in plan.routes:
        for segment in route.segments:
            for hop, guard in enumerate(segment.guards):
                link = frozenset(segment.nodes[hop : hop + 2])
                found[link] = found.get(link, True) and "link" in guard
    return found
