# SPDX-License-Identifier: Apache-2.0
"""Detours of one route: where switches off its path must send its packets, and what that saves them from.

A packet that is deflected to a switch off the path is lost there, unless the key has a residue for it. So the key gets
residues for switches that lead it back to the path, behind the failure. Each switch has one residue in a key, whatever
failed: detours of one route may join, but not part again.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shunt_controller.plan.demand import LOCAL, Coded, of_coded
from shunt_controller.plan.network import Network
from shunt_controller.plan.walk import NO_LABEL, Failure, Outcome, Says, Walk

HOP_LIMIT_MAX = 255


@dataclass(frozen=True)
class Guard:
    """A failure at one hop of a route that loses nothing, as a walk has shown."""

    hop: int
    is_node: bool
    """Whether it is the node that the hop leads to that fails, else the link."""
    needs: frozenset[int]
    """Switches whose residues it takes."""
    forwarded: int


def path_ports(network: Network, route: Sequence[int]) -> list[int]:
    """The port of each hop."""
    return [network.neighbours[a][b] for a, b in zip(route, route[1:], strict=False)]


def steer(network: Network, route: Sequence[int], backups: Sequence[Mapping[int, int]]) -> dict[int, int]:
    """Ports of switches off the path that bring deflected packets back to it. The last hop comes first: the detours of earlier
    hops may use what is there."""
    place = {node: index for index, node in enumerate(route)}
    out_ports = path_ports(network, route)
    last = len(route) - 1
    steering: dict[int, int] = {}
    joins: dict[int, int] = {}
    """Index of the node of the path that a switch off it leads to."""
    behind = [0] * (last + 1)
    """The first node of the path at which detours of a hop may end, for what bounces back to it from later hops."""
    for hop in reversed(range(last)):
        node = route[hop]
        backup = backups[node].get(out_ports[hop])
        if backup is None:
            continue
        link, past = hop + 1, min(hop + 2, last)
        wanted = sorted({max(behind[hop], past), max(behind[hop], link), past, link}, reverse=True)
        peer = network.ports[node][backup]
        if peer.node in place:
            if hop and peer.node == route[hop - 1] and peer.port == out_ports[hop - 1]:
                behind[hop - 1] = max(behind[hop - 1], wanted[0])
            continue
        for first in wanted:
            found = _detour(network, peer.node, place, first, steering, joins)
            if not found:
                continue
            end = found[-1]
            at = place.get(end, joins.get(end, 0))
            for here, there in zip(found, found[1:], strict=False):
                steering[here], joins[here] = network.neighbours[here][there], at
            break
    return steering


def _detour(
    network: Network, start: int, place: Mapping[int, int], first: int, steering: Mapping[int, int], joins: Mapping[int, int]
) -> list[int]:
    """The shortest path from a switch off the path to a node of it from the `first` on, or to a switch that leads there."""

    def is_end(node: int) -> bool:
        return (place[node] if node in place else joins.get(node, -1)) >= first

    if is_end(start):
        return [start]
    before = {start: -1}
    queue = deque([start] if start not in steering and network.roles[start] == "core" else [])
    while queue:
        node = queue.popleft()
        for peer in network.neighbours[node]:
            if peer in before:
                continue
            before[peer] = node
            if is_end(peer):
                found = [peer]
                while before[found[-1]] >= 0:
                    found.append(before[found[-1]])
                return found[::-1]
            if peer not in place and peer not in steering and network.roles[peer] == "core":
                queue.append(peer)
    return []


def says_of(ports: Mapping[int, int]) -> Says:
    """What residues for these ports say."""
    return lambda node: ports.get(node, NO_LABEL)


def guards(
    network: Network,
    route: Sequence[int],
    backups: Sequence[Mapping[int, int]],
    coded: Coded,
    steering: Mapping[int, int],
) -> tuple[dict[int, int], list[Guard]]:
    """The port of each switch of a route and its detours, and each failure on the route's way that loses nothing: all of them
    are walked. The first switch is among the former where it has an ID, since packets may bounce back to it."""
    out_ports = path_ports(network, route)
    ports = {node: port for node, port in zip(route, [*out_ports, LOCAL], strict=True)} | dict(steering)
    if coded == "core":
        del ports[route[0]]
    says = says_of(ports)
    always = set(of_coded(route, coded))
    found = []
    for hop, node in enumerate(route[:-1]):
        failures = [Failure(node, out_ports[hop])]
        if hop + 2 < len(route):
            failures.append(Failure(route[hop + 1]))
        for failure in failures:
            outcome = Walk(network, backups, failure).run(route[0], out_ports[0], says, HOP_LIMIT_MAX)
            if arrives(outcome, route[-1]):
                # The first switch's own entry is no residue.
                needed = frozenset(outcome.visited[1:-1] if coded == "core" else outcome.visited[1:]) | always
                found.append(Guard(hop, failure.port is None, needed, outcome.forwarded))
    return ports, found


def arrives(outcome: Outcome, destination: int) -> bool:
    """Whether a walk ended where it should."""
    return not outcome.reason and outcome.node == destination
