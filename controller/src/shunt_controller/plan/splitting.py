# SPDX-License-Identifier: Apache-2.0
"""Splits protected routes into segments whose keys have space for detours, and proves the guards of each
segment."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

from shunt_controller.plan.keyflow import Keymaker, KeyRoute, Segment, cut
from shunt_controller.plan.network import Network
from shunt_controller.plan.numbering import Bank
from shunt_controller.plan.steering import Course, Stray, guards, path_ports, steer
from shunt_controller.plan.walk import by_key

KEYS_MAX = 64
"""Maximum number of keys with the same residues that are tried."""

PARTS = (1.0, 0.75, 0.5, 0.35, 0.25)
"""Lengths of a route's first segment, relative to the longest possible one. They are tried in turn until the
detours of the segment fit its key."""


class Proven(NamedTuple):
    """A segment, with the places where its packets end according to walks."""

    segment: Segment
    in_port: int
    """Ingress port at the last switch if nothing fails."""
    in_ports: frozenset[int]
    """Ingress ports at the last switch if nothing fails, and after each guarded failure."""
    strays: frozenset[int]
    """Other switches whose tables receive packets after a failure on the path."""


class Splitter:
    """Splits routes into segments. Results are cached, because routes have most of their parts in common."""

    def __init__(self, maker: Keymaker) -> None:
        self.maker = maker
        self.firsts: dict[tuple[int, ...], Proven] = {}
        """First segment of each rest of a route. A rest is the part of a route from the start of one of its
        segments to the destination. An entry of a waypoint matches only the destination. The end of a segment
        may therefore depend only on the rest of the route, and all routes with the same rest continue in the
        same way."""
        self.longest: dict[tuple[int, ...], int] = {}
        """Maximum number of switches of the first segment of a rest, if it is lower than the number that fits
        the key."""
        self.made: dict[tuple[tuple[int, ...], bool], tuple[Proven, bool]] = {}
        """Cached results of :func:`_segment`."""

    def routes(self, paths: Sequence[list[int]]) -> list[KeyRoute]:
        """Returns all routes with their keys. Under any failure, a packet must not reach the tables of a
        waypoint for its destination other than the last switch of its key. That waypoint would send it on
        with a new hop limit, so packets could loop forever."""
        while self._lead_astray(paths):
            pass
        for rest, proven in self.firsts.items():
            # Other destinations have their own entries, which may need other return ports.
            self.firsts[rest] = proven._replace(segment=replace(proven.segment))
        return [KeyRoute(path[0], path[-1], self._segments(path)) for path in paths]

    def _lead_astray(self, paths: Sequence[list[int]]) -> bool:
        """Gives segments other keys if their packets may reach another waypoint. If no key avoids this, makes
        the segment shorter. Returns whether a segment became shorter, which changes the set of waypoints."""
        waypoints: dict[int, set[int]] = {}
        for path in paths:
            waypoints.setdefault(path[-1], set()).update(rest[0] for rest in self._rests(path)[1:])
        is_shorter = False
        for rest, proven in list(self.firsts.items()):
            forbidden = waypoints[rest[-1]]
            if not proven.strays & forbidden:
                continue
            part = proven.segment.nodes
            keyed, _ = _segment(self.maker, part, len(part) == len(rest), frozenset(forbidden))
            if keyed.strays & forbidden and len(part) > 2:
                self.longest[rest] = len(part) - 1
                keyed, is_shorter = self._first(rest), True
            self.firsts[rest] = keyed
        return is_shorter

    def _rests(self, path: list[int]) -> list[tuple[int, ...]]:
        """Returns the rests of a path at the beginning of each of its segments."""
        rests = [tuple(path)]
        while True:
            rest = rests[-1]
            if rest not in self.firsts:
                self.firsts[rest] = self._first(rest)
            rest = rest[len(self.firsts[rest].segment.nodes) - 1 :]
            if len(rest) < 2:
                return rests
            rests.append(rest)

    def _segments(self, path: list[int]) -> list[Segment]:
        """Returns the segments of a route."""
        found = [self.firsts[rest] for rest in self._rests(path)]
        for before, following in pairwise(found):
            _let_return(before, following.segment)
        # Packets of the first switch's own hosts use another entry, so the first segment has no return ports.
        return [replace(found[0].segment, return_ports=[]), *(proven.segment for proven in found[1:])]

    def _first(self, rest: tuple[int, ...]) -> Proven:
        """Returns the longest first segment whose key has space for all its guards. If there is none, returns
        the segment with the largest share of guarded hops."""
        maker = self.maker
        fitting = len(cut(rest, maker.bank, maker.coded, maker.width_bits)[0])
        longest = min(fitting, self.longest.get(rest, fitting))
        best: tuple[float, Proven] | None = None
        for part in PARTS:
            length = max(2, round(part * longest))
            proven, is_complete = self._made(rest[:length], length == len(rest))
            guards = proven.segment.guards
            share = sum("link" in guard for guard in guards) / len(guards)
            if best is None or is_complete or share > best[0]:
                best = share, proven
            if is_complete or length == 2:
                break
        return best[1] if best else self._made(rest[:longest], longest == len(rest))[0]

    def _made(self, part: tuple[int, ...], is_last: bool) -> tuple[Proven, bool]:
        case = part, is_last
        if case not in self.made:
            self.made[case] = _segment(self.maker, list(part), is_last)
        return self.made[case]


def _let_return(before: Proven, segment: Segment) -> None:
    """Lets the entry of a waypoint return packets to the ports at which guarded packets of the previous
    segment arrive. Packets that arrive at other ports need no return port: with a single failure, the
    waypoint's output port is then up."""
    needed = {segment.out_port} & before.in_ports
    if segment.guards[0] and before.in_port == segment.backup_port:
        needed.add(before.in_port)
    segment.return_ports = sorted(needed.union(segment.return_ports))


def _segment(maker: Keymaker, part: list[int], is_last: bool, forbidden: frozenset[int] = frozenset()) -> tuple[Proven, bool]:
    """Returns a segment with as many guards as fit its key, preferring guards with few switches, and whether
    all guards fit. If some key allows it, no packet reaches the tables of a forbidden switch."""
    network, bank = maker.network, maker.bank
    own = maker.ports(part, is_last)
    ports = dict(own)
    says, found = guards(network, part, bank.backups, maker.coded, steer(network, part, bank.backups))
    arithmetic = bank.arithmetic
    product = reduce(arithmetic.times, (bank.ids[node] for node in ports), 1)
    taken = []
    for guard in sorted(found, key=lambda guard: (len(guard.more), guard.is_node, guard.hop)):
        larger = product
        for node in sorted(guard.more - set(ports)):
            value = bank.ids[node]
            is_usable = value and says[node] in maker.label_of[node] and arithmetic.are_coprime(larger, value)
            larger = arithmetic.times(larger, value) if is_usable else 1 << maker.width_bits + 1
        if arithmetic.bits(larger) <= maker.width_bits:
            ports |= {node: says[node] for node in guard.more}
            product = larger
            taken.append(guard)
    while True:
        proven = _keyed(maker, part, ports, {(guard.hop, guard.is_node) for guard in taken}, forbidden)
        if not taken or not proven.strays & forbidden:
            left_out = {(guard.hop, guard.is_node) for guard in found} - {(guard.hop, guard.is_node) for guard in taken}
            proven.segment.left_out = frozenset(left_out)
            return proven, not left_out
        # The protection of a hop (a guard) prescribes residues of the key. Without the last guard, more keys
        # are possible.
        taken.pop()
        ports = own | {node: says[node] for guard in taken for node in guard.more}


def _keyed(maker: Keymaker, part: list[int], ports: dict[int, int], claims: set[tuple[int, bool]], forbidden: frozenset[int]) -> Proven:
    """Returns a segment with these residues. Of all keys with these residues, it uses the smallest whose
    packets do not reach the tables of a forbidden switch. If there is none, it uses the smallest key."""
    bank, arithmetic = maker.bank, maker.bank.arithmetic
    smallest, bits = maker.key(ports)
    product = reduce(arithmetic.times, (bank.ids[node] for node in ports), 1)
    out_port = path_ports(maker.network, part)[0]
    first = None
    for times in range(KEYS_MAX):
        key = arithmetic.plus(smallest, arithmetic.times(times, product))
        if times and key.bit_length() > maker.width_bits:
            break
        segment = Segment(part, out_port, key, max(bits, key.bit_length()), len(part) - 2, bank.backups[part[0]].get(out_port))
        segment.steering = sorted(set(ports) - set(part))
        proven = prove(maker.network, bank, segment, claims)
        if not proven.strays & forbidden:
            return proven
        first = first or proven
    return first or proven


def prove(network: Network, bank: Bank, segment: Segment, claims: set[tuple[int, bool]]) -> Proven:
    """Walks a segment's packets through each failure on its path, with the segment's key. `claims` are the
    failures that should lose nothing, as (hop, whether the next node fails). A claim becomes a guard if its
    packets arrive. The hop limit is raised to the longest walk."""
    says = by_key(bank, segment.key)

    def port_of(node: int) -> int | None:
        said = says(node)
        return None if isinstance(said, str) else said

    course = Course(network, segment.nodes, bank.backups, port_of)
    in_ports, strays = {course.in_ports[-1]}, set()
    for hop in range(len(segment.nodes) - 1):
        survived = []
        for is_node, kind in ((False, "link"), (True, "node")):
            ending = course.follow(hop, is_node)
            if isinstance(ending, Stray):
                strays.add(ending.node)
            elif ending is not None and (hop, is_node) in claims:
                survived.append(kind)
                segment.hop_limit = max(segment.hop_limit, ending.forwarded)
                in_ports.add(ending.in_port)
        segment.guards.append("+".join(survived))
    return Proven(segment, course.in_ports[-1], frozenset(in_ports), frozenset(strays))
