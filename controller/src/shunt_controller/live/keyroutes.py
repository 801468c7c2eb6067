# SPDX-License-Identifier: Apache-2.0
"""Routes of a running network, and what each switch on a route does. Switches with the lane (stateless
forwarding) push, forward and pop keys. Other switches forward packets by their destination, with or without a
key: a KeyFlow header is behind the MAC addresses."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from math import log2
from typing import NamedTuple

from shunt_controller.edges import ARRIVED, FROM_HOSTS
from shunt_controller.live.identifiers import Identifiers
from shunt_controller.live.topology import Topology, switch_name, switch_of
from shunt_controller.plan.arithmetic import INTEGERS
from shunt_controller.plan.backups import choose_backups
from shunt_controller.plan.demand import LOCAL
from shunt_controller.plan.errors import PlanError, need
from shunt_controller.plan.keyflow import Keymaker, Segment, need_one_way
from shunt_controller.plan.network import Network
from shunt_controller.plan.numbering import Bank
from shunt_controller.plan.routes import Trees
from shunt_controller.plan.splitting import Splitter

HOP_LIMIT_MAX = 255


class Key(NamedTuple):
    """A key to push."""

    value: int
    bits: int
    hop_limit: int


class Step(NamedTuple):
    """What a switch does with packets to a destination: it pushes a key, or none, and outputs them."""

    switch: int
    table: int
    """Table of the entry: for packets from hosts, or for packets whose key has ended here."""
    ports: tuple[int, ...]
    """The output port, and its backup if it has one."""
    key: Key | None = None
    returns: tuple[int, ...] = ()
    """The ports among `ports` at which such packets may also arrive."""
    rest: int = 0
    """Number of keys that are pushed on the rest of the route, including this one."""


class Routed(NamedTuple):
    """A route, as the switches from the first to the last."""

    path: tuple[int, ...]
    steps: tuple[Step, ...]


Known = dict[tuple[tuple[int, ...], tuple[int, ...]], Routed]
"""Routes without detours by the switches and the output ports of their paths. They are valid for the same IDs,
labels, lanes and key width."""


@dataclass
class Routes:
    """Routes between pairs of switches."""

    routes: dict[tuple[int, int], Routed] = field(default_factory=dict)
    backups: dict[int, dict[int, int]] = field(default_factory=dict)
    """Backup ports of each switch."""
    refused: dict[tuple[int, int], str] = field(default_factory=dict)
    """Pairs without a route, with the reason."""


def plan(
    topology: Topology,
    identifiers: Identifiers,
    lanes: Collection[int],
    pairs: Iterable[tuple[int, int]],
    width_bits: int,
    protect: bool = False,
    known: Known | None = None,
) -> Routes:
    """Plans one shortest route for each pair of different switches. Pairs in different parts of the network
    have no route. With `protect`, keys have as many detours as fit, in parts of the network in which all
    switches have the lane. New routes are added to `known`."""
    network, found = topology.network(), Routes()
    part_of = {switch_of(network.nodes[node]): at for at, part in enumerate(network.components) for node in part}
    by_part: dict[int, list[tuple[int, int]]] = {}
    for pair in sorted(set(pairs)):
        if all(switch in part_of for switch in pair) and part_of[pair[0]] == part_of[pair[1]]:
            by_part.setdefault(part_of[pair[0]], []).append(pair)
        else:
            found.refused[pair] = "no path leads from the one to the other"
    for at, members in by_part.items():
        part = network.part(network.components[at], "")
        _Part(part, identifiers, lanes, width_bits, {} if known is None else known).plan(members, protect, found)
    return found


class _Part:
    """A connected part of the network."""

    def __init__(self, network: Network, identifiers: Identifiers, lanes: Collection[int], width_bits: int, known: Known) -> None:
        self.network, self.width_bits, self.known = network, width_bits, known
        self.switches = [switch_of(name) for name in network.nodes]
        self.has_lane = [switch in lanes for switch in self.switches]
        ids = [identifiers.ids.get(switch, 0) if switch in lanes else 0 for switch in self.switches]
        labels = [list(identifiers.labels.get(switch, ())) if switch in lanes else [] for switch in self.switches]
        self.maker = Keymaker(network, Bank(ids, labels), "hops", width_bits)

    def plan(self, pairs: list[tuple[int, int]], protect: bool, found: Routes) -> None:
        """Adds the routes of the pairs."""
        ids = self.maker.bank.ids
        trees = Trees(self.network, [self.network.index(switch_name(switch)) for switch in {end for pair in pairs for end in pair}])
        trees.weigh([log2(value) if value else 0.0 for value in ids])
        paths = [trees.path(*(self.network.index(switch_name(switch)) for switch in pair)) for pair in pairs]
        if protect and all(self.has_lane):
            backups = choose_backups(self.network, paths, "hops")
            self.maker.bank.backups = backups
            made = Splitter(self.maker).routes(paths)
            need_one_way(made, self.network.nodes)
            found.backups |= {self.switches[node]: ports for node, ports in enumerate(backups)}
            segments = [route.segments for route in made]
        else:
            segments = [[] for _ in paths]
        for pair, path, planned in zip(pairs, paths, segments, strict=True):
            try:
                switches = tuple(self.switches[node] for node in path)
                found.routes[pair] = Routed(switches, self._steps(path, planned)) if planned else self._known(path, switches)
            except PlanError as error:
                found.refused[pair] = str(error)

    def _known(self, path: list[int], switches: tuple[int, ...]) -> Routed:
        """Returns the route without detours of a path."""
        neighbours = self.network.neighbours
        key = switches, tuple(neighbours[node][following] for node, following in zip(path, path[1:], strict=False))
        if key not in self.known:
            self.known[key] = Routed(switches, self._steps(path, self._segments(path)))
        return self.known[key]

    def _segments(self, path: list[int]) -> list[Segment]:
        """Splits the part of a path from its first to its last switch with the lane into as few segments as
        possible whose keys fit."""
        coded = [at for at, node in enumerate(path) if self.has_lane[node]]
        ids, arithmetic, found, start = self.maker.bank.ids, INTEGERS, list[Segment](), 0
        while start < len(coded) - 1:
            end, product = start, 1
            while end < len(coded) - 1:
                larger = arithmetic.times(product, ids[path[coded[end + 1]]])
                if arithmetic.bits(larger) > self.width_bits:
                    break
                end, product = end + 1, larger
            need(end > start, f"the ID {ids[path[coded[start + 1]]]} does not fit a key of {self.width_bits} bits")
            found.append(self._segment(path, coded[start : end + 1]))
            start = end
        return found

    def _segment(self, path: list[int], coded: list[int]) -> Segment:
        """Returns the segment between switches with the lane, given by their positions on the path."""
        neighbours = self.network.neighbours
        ports = {path[at]: neighbours[path[at]][path[at + 1]] for at in coded[1:-1]} | {path[coded[-1]]: LOCAL}
        key, bits = self.maker.key(ports)
        nodes = path[coded[0] : coded[-1] + 1]
        return Segment(nodes, neighbours[nodes[0]][nodes[1]], key, bits, len(coded) - 2)

    def _steps(self, path: list[int], segments: list[Segment]) -> tuple[Step, ...]:
        """Returns what the switches of a path do, except the delivery to the host by the last one."""
        steps = []
        pushing = {segment.nodes[0]: (number, segment) for number, segment in enumerate(segments)}
        last_popped = segments[-1].nodes[-1] if segments else None
        for node, following in zip(path, path[1:], strict=False):
            switch = self.switches[node]
            if node in pushing:
                number, segment = pushing[node]
                need(segment.hop_limit <= HOP_LIMIT_MAX, f"a route needs a hop limit of {segment.hop_limit}; the highest is {HOP_LIMIT_MAX}")
                ports = (segment.out_port,) if segment.backup_port is None else (segment.out_port, segment.backup_port)
                key = Key(segment.key, segment.bits, segment.hop_limit)
                table = ARRIVED if number else FROM_HOSTS
                steps.append(Step(switch, table, ports, key, tuple(segment.return_ports), len(segments) - number))
            elif node == last_popped:
                steps.append(Step(switch, ARRIVED, (self.network.neighbours[node][following],)))
            elif not self.has_lane[node] or not segments:
                steps.append(Step(switch, FROM_HOSTS, (self.network.neighbours[node][following],)))
        return tuple(steps)
