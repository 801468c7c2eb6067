# SPDX-License-Identifier: Apache-2.0
"""KeyFlow plans: the keys of routes, up to a maximum width. Routes are split at waypoints if their keys do
not fit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from shunt_controller.plan.arithmetic import INTEGERS, Arithmetic
from shunt_controller.plan.demand import LOCAL, Coded, of_coded
from shunt_controller.plan.errors import PlanError, need
from shunt_controller.plan.keys import WIDTHS_BITS, bits_of, key_of
from shunt_controller.plan.network import Network
from shunt_controller.plan.numbering import Bank, number
from shunt_controller.plan.routes import Routes
from shunt_controller.plan.walk import Entry


@dataclass
class Segment:
    """The part of a route that one key covers. The first switch pushes the key, and the last switch gives the
    packet to its tables."""

    nodes: list[int]
    out_port: int
    """Output port of the first switch."""
    key: int
    bits: int
    """Number of bits that suffices for any labels of these nodes, or the length of `key` if it is longer."""
    hop_limit: int
    """Hop limit of the pushed header. It limits how often core switches may forward the packet, including
    detours."""
    backup_port: int | None = None
    """Output port of the first switch if `out_port` is down."""
    steering: list[int] = field(default_factory=list)
    """Nodes off the path whose residues are in the key."""
    guards: list[str] = field(default_factory=list)
    """For each hop, the part that may fail without loss: "", "link", "node" (the node that the hop leads to)
    or "link+node"."""
    return_ports: list[int] = field(default_factory=list)
    """The ports among `out_port` and `backup_port` by which packets may leave even if they arrived at the
    same port. Empty for a segment that does not begin at a waypoint."""
    left_out: frozenset[tuple[int, bool]] = frozenset()
    """Failures that lose packets only because the detour does not fit the key, as (hop, whether the next node
    fails). They are not written to the plan."""

    def entry(self) -> Entry:
        """Returns the entry of the first switch."""
        return Entry(self.nodes[0], self.out_port, self.backup_port, self.return_ports)


@dataclass
class KeyRoute:
    """A route and its segments."""

    source: int
    destination: int
    segments: list[Segment]


@dataclass
class KeyPlan:
    """Plan of a network for one epoch."""

    network: Network
    bank: Bank
    coded: Coded
    width_bits: int
    epoch: int
    routes: list[KeyRoute]


def cut(nodes: Sequence[int], bank: Bank, coded: Coded, width_bits: int) -> list[list[int]]:
    """Splits a route into as few segments as possible whose keys fit. Consecutive segments share a waypoint.
    Each segment is as long as possible. A shorter segment has no advantage, because every part of a fitting
    segment also fits."""
    found = []
    ids, arithmetic = bank.ids, bank.arithmetic
    start, last = 0, len(nodes) - 1
    while start < last:
        end, product = start, 1
        if coded == "all":
            product = ids[nodes[start]]
        while end < last:
            following = nodes[end + 1]
            is_coded = end + 1 < last or coded != "core"
            larger = arithmetic.times(product, ids[following]) if is_coded else product
            if arithmetic.bits(larger) > width_bits:
                break
            end, product = end + 1, larger
        if end == start:
            raise PlanError(f"a single hop with the ID {ids[nodes[start + 1]]} does not fit a key of {width_bits} bits")
        found.append(list(nodes[start : end + 1]))
        start = end
    return found


class Keymaker:
    """Makes the keys of a network's routes."""

    def __init__(self, network: Network, bank: Bank, coded: Coded, width_bits: int) -> None:
        need(width_bits in WIDTHS_BITS, f"keys have {', '.join(map(str, WIDTHS_BITS))} bits, not {width_bits}")
        self.network, self.bank, self.coded, self.width_bits = network, bank, coded, width_bits
        self.label_of = bank.label_of()

    def ports(self, nodes: Sequence[int], is_last: bool) -> dict[int, int]:
        """Returns the output port of each coded node of a segment. A waypoint at the end of a segment is
        always coded."""
        inside = of_coded(nodes, self.coded) if is_last or self.coded != "core" else nodes[1:]
        following = dict(zip(nodes, nodes[1:], strict=False))
        return {node: self.network.neighbours[node][following[node]] if node in following else LOCAL for node in inside}

    def key(self, ports: dict[int, int]) -> tuple[int, int]:
        """Returns the key for these ports, and the length of the largest key of these nodes."""
        moduli = [self.bank.ids[node] for node in ports]
        labels = []
        for node, port in ports.items():
            label = self.label_of[node].get(port)
            if label is None:
                what = f"port {port}" if port else "its tables"
                raise PlanError(f"{self.network.nodes[node]} has no label for {what}; its routes were planned without this label")
            labels.append(label)
        bits = bits_of(moduli, self.bank.arithmetic)
        need(bits <= self.width_bits, f"a key of {bits} bits does not fit {self.width_bits}")
        return key_of(moduli, labels, self.bank.arithmetic), bits

    def route(self, nodes: Sequence[int]) -> KeyRoute:
        """Returns a route with its keys."""
        parts = cut(nodes, self.bank, self.coded, self.width_bits)
        return KeyRoute(nodes[0], nodes[-1], [self.segment(part, part[-1] == nodes[-1]) for part in parts])

    def segment(self, part: list[int], is_last: bool) -> Segment:
        """Returns a segment of a route without protection."""
        key, bits = self.key(self.ports(part, is_last))
        out_port = self.network.neighbours[part[0]][part[1]]
        return Segment(part, out_port, key, bits, len(part) - 2, guards=[""] * (len(part) - 1))


def waypoints(plan: "KeyPlan") -> dict[int, set[int]]:
    """Returns the waypoints, each with the destinations for which it needs an entry."""
    found: dict[int, set[int]] = {}
    for route in plan.routes:
        for segment in route.segments[1:]:
            found.setdefault(segment.nodes[0], set()).add(route.destination)
    return found


def need_one_way(routes: Iterable[KeyRoute], names: Sequence[str]) -> None:
    """Raises an error unless all packets for a destination leave a waypoint in the same way, because the
    entries of a waypoint match only the destination."""
    ways: dict[tuple[int, int], tuple[list[int], KeyRoute]] = {}
    for route in routes:
        for segment in route.segments[1:]:
            at = segment.nodes[0]
            way, other = ways.setdefault((at, route.destination), (segment.nodes, route))
            need(
                way == segment.nodes,
                f"the routes from {names[route.source]} and {names[other.source]} to {names[route.destination]} do not fit one key; "
                f"both change the key at {names[at]} and continue differently, but entries match the destination only: "
                "take wider keys or other routes",
            )


def need_ends(routes: Routes, bank: Bank, coded: Coded, pairs: Iterable[tuple[int, int]] | None) -> list[tuple[int, int]]:
    """Returns the pairs to plan for. If ends have no residues, no route may cross them. Such switches have no
    ID and pass tagged packets to their tables."""
    chosen = routes.pairs() if pairs is None else list(pairs)
    for node in {end for pair in chosen for end in pair} if coded == "core" else ():
        need(
            not bank.ids[node],
            f"{routes.network.nodes[node]} is an end of routes and in the keys of others, so it needs its own residues: code "
            'hops or all, or give the ends of routes the role "edge"',
        )
    return chosen


def plan(
    routes: Routes,
    coded: Coded = "hops",
    width_bits: int = 64,
    pairs: Iterable[tuple[int, int]] | None = None,
    epoch: int = 0,
    reserve: int = 0,
    old: Bank | None = None,
    arithmetic: Arithmetic = INTEGERS,
) -> KeyPlan:
    """Numbers a network and makes the keys of all routes, or of some pairs."""
    bank = number(routes, coded, reserve, old, arithmetic=arithmetic)
    chosen = need_ends(routes, bank, coded, pairs)
    needs_waypoints = any(len(cut(routes.path(*pair), bank, coded, width_bits)) > 1 for pair in chosen)
    if needs_waypoints and not all(LOCAL in ports for ports in bank.labels if ports):
        bank = number(routes, coded, reserve, old, True, arithmetic)
    maker = Keymaker(routes.network, bank, coded, width_bits)
    made = [maker.route(routes.path(*pair)) for pair in chosen]
    need_one_way(made, routes.network.nodes)
    return KeyPlan(routes.network, bank, coded, width_bits, epoch, made)
