# SPDX-License-Identifier: Apache-2.0
"""Which port stands in for another one: one backup a port, the same for all keys.

Each port begins with the first hop of the shortest way round its link. Then one port after the other takes the backup with
which the most links may fail without loss, and then the most switches, over the routes that leave by it.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from shunt_controller.plan.demand import Coded, of_coded
from shunt_controller.plan.network import Network
from shunt_controller.plan.steering import guards, path_ports, steer

ROUNDS = 2
PROBES_MAX = 32
"""Routes that a choice is judged by; of more, some from everywhere."""


def first_choice(network: Network) -> list[dict[int, int]]:
    """For each port that leads to a switch, the first port of the shortest way round its link; none where there is no such way."""
    found: list[dict[int, int]] = []
    for node, ports in enumerate(network.ports):
        mine = {}
        for port, peer in ports.items():
            if network.roles[node] != "host" and network.roles[peer.node] != "host":
                around = _around(network, node, port)
                if around:
                    mine[port] = around
        found.append(mine)
    return found


def _around(network: Network, node: int, port: int) -> int:
    """The first port of the shortest way from a node to what its port leads to, without that link; 0 if there is none."""
    goal = network.ports[node][port].node
    first = {node: 0}
    queue = deque([node])
    while queue:
        here = queue.popleft()
        if here != node and network.roles[here] != "core":
            continue
        for out, peer in network.ports[here].items():
            if (here == node and out == port) or peer.node in first:
                continue
            first[peer.node] = first[here] or out
            if peer.node == goal:
                return first[goal]
            queue.append(peer.node)
    return 0


def choose_backups(network: Network, routes: Iterable[Sequence[int]], coded: Coded) -> list[dict[int, int]]:
    """Backups for these routes."""
    backups = first_choice(network)
    leaving: dict[tuple[int, int], list[Sequence[int]]] = {}
    for route in routes:
        for node, port in zip(route, path_ports(network, route), strict=False):
            leaving.setdefault((node, port), []).append(route)
    for _ in range(ROUNDS):
        has_changed = False
        for (node, port), all_of_them in sorted(leaving.items()):
            if port not in backups[node]:
                continue
            # Every so-manyth, so that all sources and destinations are among them.
            probes = all_of_them[:: -(-len(all_of_them) // PROBES_MAX)]
            has_changed |= _improve(network, backups, node, port, probes, coded)
        if not has_changed:
            break
    return backups


def _improve(
    network: Network, backups: list[dict[int, int]], node: int, port: int, probes: Sequence[Sequence[int]], coded: Coded
) -> bool:
    """Gives a port the best backup; whether that is another one than before."""
    before = backups[node][port]
    choices = [other for other, peer in network.ports[node].items() if other != port and network.roles[peer.node] == "core"]
    if len(choices) < 2:
        return False
    best = (_score(network, backups, probes, coded), before)
    for choice in choices:
        if choice == before:
            continue
        backups[node][port] = choice
        score = _score(network, backups, probes, coded)
        if score > best[0]:
            best = (score, choice)
    backups[node][port] = best[1]
    return best[1] != before


def _score(
    network: Network, backups: Sequence[dict[int, int]], probes: Sequence[Sequence[int]], coded: Coded
) -> tuple[int, int, int]:
    """Links whose failure loses nothing; then switches; then, the fewer switches in keys, the better."""
    links = nodes = inside = 0
    for route in probes:
        found = guards(network, route, backups, coded, steer(network, route, backups))[1]
        nodes += sum(guard.is_node for guard in found)
        links += sum(not guard.is_node for guard in found)
        inside += len(of_coded(route, coded)) * bool(found) + len(frozenset[int]().union(*(guard.more for guard in found)))
    return links, nodes, -inside
