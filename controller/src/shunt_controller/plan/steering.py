# SPDX-License-Identifier: Apache-2.0
"""Detours of one route: the ports by which switches off its path return its packets, and the failures that
these detours cover.

A packet that is deflected to a switch off the path is lost there unless the key has a residue for this
switch. The key therefore gets residues for switches that lead the packet back to the path, after the failure.
A switch has one residue in a key for all failures, so detours of one route may join but not separate again.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shunt_controller.plan.demand import LOCAL, Coded, of_coded
from shunt_controller.plan.network import Network, Peer
from shunt_controller.plan.walk import Outcome

HOP_LIMIT_MAX = 255


@dataclass(frozen=True, slots=True)
class Guard:
    """A failure at one hop of a route that loses nothing, according to a walk."""

    hop: int
    is_node: bool
    """Whether the node that the hop leads to fails; otherwise the link fails."""
    more: frozenset[int]
    """Switches off the path whose residues the guard needs."""


def path_ports(network: Network, route: Sequence[int]) -> list[int]:
    """Returns the output port of each hop."""
    return [network.neighbours[a][b] for a, b in zip(route, route[1:], strict=False)]


def steer(network: Network, route: Sequence[int], backups: Sequence[Mapping[int, int]]) -> dict[int, int]:
    """Returns the ports of switches off the path that lead deflected packets back to the path. Hops are
    processed from the last to the first, so that detours of earlier hops can use these ports."""
    place = {node: index for index, node in enumerate(route)}
    out_ports = path_ports(network, route)
    last = len(route) - 1
    steering: dict[int, int] = {}
    joins: dict[int, int] = {}
    """Index of the path's node that a switch off the path leads to."""
    behind = [0] * (last + 1)
    """First node of the path at which detours of a hop may end, because packets bounce back to the hop from
    later hops."""
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
        found = _detour(network, peer.node, place, wanted, steering, joins)
        if found:
            end = found[-1]
            at = place.get(end, joins.get(end, 0))
            for here, there in zip(found, found[1:], strict=False):
                steering[here], joins[here] = network.neighbours[here][there], at
    return steering


def _detour(
    network: Network,
    start: int,
    place: Mapping[int, int],
    wanted: Sequence[int],
    steering: Mapping[int, int],
    joins: Mapping[int, int],
) -> list[int]:
    """Returns the shortest path from a switch off the path to a node of the path, or to a switch that leads
    to one. That node must not be before the first of `wanted`. If there is no such path, it must not be
    before the second, and so on. The result is empty if there is no path at all."""
    if start in steering:
        return [start] if joins[start] >= wanted[-1] else []
    if network.roles[start] != "core":
        return []
    before = {start: -1}
    ends: list[tuple[int, int]] = []
    """Ends of the search in the order in which they were found, each with the index of the path's node that
    it leads to."""
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for peer in network.neighbours[node]:
            if peer in before:
                continue
            before[peer] = node
            at = place.get(peer, joins.get(peer, -1))
            if at >= wanted[0]:
                return _back(before, peer)
            if at >= 0:
                ends.append((peer, at))
            elif network.roles[peer] == "core":
                queue.append(peer)
    for first in wanted[1:]:
        for end, at in ends:
            if at >= first:
                return _back(before, end)
    return []


def _back(before: Mapping[int, int], end: int) -> list[int]:
    """Returns the path by which a search reached a node."""
    found = [end]
    while before[found[-1]] >= 0:
        found.append(before[found[-1]])
    return found[::-1]


class Survival(NamedTuple):
    """A packet arrived despite a failure on its path."""

    forwarded: int
    """Number of times that core switches forwarded the packet."""
    more: list[int]
    """Switches off the path that the packet visited, and the first switch of the path if the packet returned
    to it."""
    in_port: int
    """Ingress port at the last node."""


class Stray(NamedTuple):
    """A packet arrived at the tables of a switch that is not the last one of its path."""

    node: int


class Course:
    """The path of a key, and the paths that its packets take when a hop fails.

    Walks equal those of :class:`shunt_controller.plan.walk.Walk`, but skip known parts: a packet follows the
    path up to the failure, and again after it has returned to the path beyond the failure. Paths visit no
    node twice."""

    def __init__(
        self,
        network: Network,
        route: Sequence[int],
        backups: Sequence[Mapping[int, int]],
        port_of: Callable[[int], int | None],
    ) -> None:
        """`port_of` returns the port that a switch selects by the key, or :data:`LOCAL`, or None if the key
        has no label for the switch."""
        self.network, self.route, self.backups, self.port_of = network, route, backups, port_of
        self.out_ports = path_ports(network, route)
        # A packet has a key at the first node only if it comes back, so the first node has no ingress port.
        self.in_ports = [-1, *(network.ports[node][port].port for node, port in zip(route, self.out_ports, strict=False))]
        self.place = {node: index for index, node in enumerate(route)}

    def follow(self, hop: int, is_node: bool) -> Survival | Stray | None:
        """Returns where a packet ends when the link of a hop fails, or the node that the hop leads to.
        Returns None if the packet is dropped."""
        ports, backups, port_of, place = self.network.ports, self.backups, self.port_of, self.place
        out_ports, in_ports = self.out_ports, self.in_ports
        last, behind = len(out_ports), hop + is_node
        node, port, beyond = self.route[hop], out_ports[hop], self.route[hop + 1]
        # If a node failed, all ports that lead there are down; if a link failed, the ports at both ends.
        near, near_port, far_port = node, port, in_ports[hop + 1]
        forwarded, in_port = hop, in_ports[hop]
        more: list[int] = []
        seen: set[Peer] = set()
        while True:
            peer = ports[node][port]
            if port == in_port or peer.node == beyond and (is_node or node == near and port == near_port) or (
                node == beyond and port == far_port and not is_node
            ):
                backup = backups[node].get(port)
                if backup is None:
                    return None
                peer = ports[node][backup]
                if peer.node == beyond and (is_node or node == near and backup == near_port) or (
                    node == beyond and backup == far_port and not is_node
                ):
                    return None
            node, in_port = peer
            at = place.get(node, -1)
            if at == last or (at > behind and in_port != out_ports[at]):
                # The packet is back on the path and stays there.
                forwarded += last - at
                final = in_port if at == last else in_ports[last]
                return Survival(forwarded, more, final) if forwarded <= HOP_LIMIT_MAX else None
            # The packet repeats an earlier arrival, so it loops forever.
            if peer in seen or (0 < at <= hop and in_port == in_ports[at]):
                return None
            seen.add(peer)
            if at <= 0:
                more.append(node)
            said = port_of(node)
            if said is None:
                return None
            if said == LOCAL:
                return Stray(node)
            port = said
            forwarded += 1


def guards(
    network: Network,
    route: Sequence[int],
    backups: Sequence[Mapping[int, int]],
    coded: Coded,
    steering: Mapping[int, int],
) -> tuple[dict[int, int], list[Guard]]:
    """Returns the port of each switch of a route and its detours, and each failure that loses nothing
    according to walks. The first switch is included if it has an ID, because packets may bounce back to
    it."""
    last = len(route) - 1
    ports = dict(zip(route, [*path_ports(network, route), LOCAL], strict=True)) | dict(steering)
    if coded == "core":
        del ports[route[0]]
    always = set(of_coded(route, coded))
    course = Course(network, route, backups, ports.get)
    found = []
    for hop in range(last):
        for is_node in (False, True)[: 1 + (hop + 1 < last)]:
            ending = course.follow(hop, is_node)
            if isinstance(ending, Survival):
                found.append(Guard(hop, is_node, frozenset(ending.more) - always))
    return ports, found


def arrives(outcome: Outcome, destination: int) -> bool:
    """Returns whether a walk ended at its destination."""
    return not outcome.reason and outcome.node == destination
