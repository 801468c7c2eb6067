# SPDX-License-Identifier: Apache-2.0
"""Detours of one route: where switches off its path must send its packets, and what that saves them from.

A packet that is deflected to a switch off the path is lost there, unless the key has a residue for it. So the key gets
residues for switches that lead it back to the path, behind the failure. Each switch has one residue in a key, whatever
failed: detours of one route may join, but not part again.
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
    """A failure at one hop of a route that loses nothing, as a walk has shown."""

    hop: int
    is_node: bool
    """Whether it is the node that the hop leads to that fails, else the link."""
    more: frozenset[int]
    """Switches whose residues it takes beside those of the route."""


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
    """The shortest path from a switch off the path to a node of it, or to a switch that leads there. That node is not before the first
    of `wanted`; if there is no such path, not before the second, and so on. Empty if there is none at all."""
    if start in steering:
        return [start] if joins[start] >= wanted[-1] else []
    if network.roles[start] != "core":
        return []
    before = {start: -1}
    ends: list[tuple[int, int]] = []
    """Where the search ends, in its order, and the index of the node of the path that each leads to."""
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
    """The path that a search has taken to a node."""
    found = [end]
    while before[found[-1]] >= 0:
        found.append(before[found[-1]])
    return found[::-1]


class Survival(NamedTuple):
    """How a packet has arrived in spite of a failure on its path."""

    forwarded: int
    """Times that core switches passed it on."""
    more: list[int]
    """Switches that it came to beside those that follow the first one of its path."""
    in_port: int
    """The port that it came to the last node by."""


class Stray(NamedTuple):
    """A packet got to the tables of a switch that is not the last one of its path."""

    node: int


class Course:
    """The path of a key, and where its packets go if a hop of it fails.

    Its walks are those of :class:`shunt_controller.plan.walk.Walk`, without what is known: a packet comes to the failure on the path,
    and stays on the path once it is back on it behind the failure. Paths visit no node twice."""

    def __init__(
        self,
        network: Network,
        route: Sequence[int],
        backups: Sequence[Mapping[int, int]],
        port_of: Callable[[int], int | None],
    ) -> None:
        """`port_of` a switch is the port that the key says there, or :data:`LOCAL`; none if it says nothing."""
        self.network, self.route, self.backups, self.port_of = network, route, backups, port_of
        self.out_ports = path_ports(network, route)
        # Of the first node no port: there its packets have a key only if they come back.
        self.in_ports = [-1, *(network.ports[node][port].port for node, port in zip(route, self.out_ports, strict=False))]
        self.place = {node: index for index, node in enumerate(route)}

    def follow(self, hop: int, is_node: bool) -> Survival | Stray | None:
        """Where a packet ends when the link of a hop fails, or the node that the hop leads to; none if a switch drops it."""
        ports, backups, port_of, place = self.network.ports, self.backups, self.port_of, self.place
        out_ports, in_ports = self.out_ports, self.in_ports
        last, behind = len(out_ports), hop + is_node
        node, port, beyond = self.route[hop], out_ports[hop], self.route[hop + 1]
        # What is down: at the node before the failure, all ports that lead to what is behind it; or this one, at both of its ends.
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
                # On the path again, which it does not leave any more.
                forwarded += last - at
                final = in_port if at == last else in_ports[last]
                return Survival(forwarded, more, final) if forwarded <= HOP_LIMIT_MAX else None
            # It comes the same way again, for ever.
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
    """The port of each switch of a route and its detours, and each failure on the route's way that loses nothing: all of them
    are walked. The first switch is among the former where it has an ID, since packets may bounce back to it."""
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
    """Whether a walk ended where it should."""
    return not outcome.reason and outcome.node == destination
