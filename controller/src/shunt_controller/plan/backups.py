# SPDX-License-Identifier: Apache-2.0
"""Choice of backup ports: one backup per port, the same for all keys.

The initial backup of a port is the first hop of the shortest detour around its link. Then each port in turn
gets the backup with which the most links may fail without loss. Ties are decided by the number of switches
that may fail without loss. Both numbers count over the routes that leave by the port.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from shunt_controller.plan.demand import Coded, of_coded
from shunt_controller.plan.network import Network
from shunt_controller.plan.steering import guards, path_ports, steer

ROUNDS = 2
PROBES_MAX = 32
"""Maximum number of routes with which a choice is evaluated. If there are more routes, evenly spaced ones are
used."""


def first_choice(network: Network) -> list[dict[int, int]]:
    """Returns, for each port that leads to a switch, the first port of the shortest detour around its link. A
    port without a detour is left out."""
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
    """Returns the first port of the shortest path to the node behind a port, without its link; 0 if there is
    none."""
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
    """Returns the backups for these routes."""
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
            # The probes are evenly spaced in the list, so that they cover different sources and destinations.
            probes = all_of_them[:: -(-len(all_of_them) // PROBES_MAX)]
            has_changed |= _improve(network, backups, node, port, probes, coded)
        if not has_changed:
            break
    return backups


def _improve(
    network: Network, backups: list[dict[int, int]], node: int, port: int, probes: Sequence[Sequence[int]], coded: Coded
) -> bool:
    """Sets the best backup of a port. Returns whether it has changed."""
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
    """Returns the score of a choice: the number of links whose failure loses nothing, then the number of such
    switches, then the negative number of switches in keys."""
    links = nodes = inside = 0
    for route in probes:
        found = guards(network, route, backups, coded, steer(network, route, backups))[1]
        nodes += sum(guard.is_node for guard in found)
        links += sum(not guard.is_node for guard in found)
        inside += len(of_coded(route, coded)) * bool(found) + len(frozenset[int]().union(*(guard.more for guard in found)))
    return links, nodes, -inside
