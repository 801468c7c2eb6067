# SPDX-License-Identifier: Apache-2.0
"""Checks a plan by walks: the packets of every route must arrive, even during each failure that a guard
covers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from shunt_controller.plan.keyflow import KeyPlan, KeyRoute, Segment, waypoints
from shunt_controller.plan.steering import arrives
from shunt_controller.plan.walk import Entry, Failure, Outcome, Says, Walk, by_key


@dataclass
class Report:
    """Result of the walks. `faults` describes each violation of the plan."""

    walks: int = 0
    forwarded_max: int = 0
    guarded: int = 0
    """Number of failures on a route after which nothing is lost, according to the plan."""
    unguarded: int = 0
    unguarded_lost: int = 0
    """Number of failures without a guard that lose packets."""
    faults: list[str] = field(default_factory=list)


class _Arrival(NamedTuple):
    """Arrival of a packet at the first switch of a segment, under a failure. Equal arrivals need only one
    walk."""

    segment: int
    """Identity of the segment, which several routes may share."""
    in_port: int | None
    failure: Failure | None


class _Place(NamedTuple):
    """Place of an entry: a switch has one entry of each kind per destination."""

    is_waypoint: bool
    """Whether the entry is for packets that arrive with a key; otherwise it is for packets of hosts."""
    node: int
    destination: int


class _Pushed(NamedTuple):
    """The effect of an entry that pushes a key."""

    key: int
    hop_limit: int
    nodes: tuple[int, ...]
    entry: Entry


class _Checker:
    """Walks the routes of one plan."""

    def __init__(self, plan: KeyPlan) -> None:
        self.plan, self.report = plan, Report()
        self.walks: dict[Failure | None, Walk] = {}
        self.outcomes: dict[_Arrival, Outcome] = {}
        self.says: dict[int, Says] = {}
        self.shared: dict[tuple[object, ...], Segment] = {}
        self.pushed: dict[_Place, _Pushed] = {}
        self.waypoints: dict[int, set[int]] = {}
        """For each destination, the waypoints that have an entry for it."""
        for node, destinations in waypoints(plan).items():
            for destination in destinations:
                self.waypoints.setdefault(destination, set()).add(node)

    def route(self, route: KeyRoute, with_failures: bool) -> None:
        """Walks a route over all its segments: first without a failure, then with each link and each switch
        on its path down."""
        plan, report = self.plan, self.report
        segments = [self._one(segment) for segment in route.segments]
        for before, segment in pairwise(segments):
            if segment.nodes[0] != before.nodes[-1]:
                report.faults.append(f"{_said(plan, segment)}: the segment before it does not end where it begins")
        for at, said, is_so in (
            (0, f"it does not begin at {plan.network.nodes[route.source]}", segments[0].nodes[0] == route.source),
            (-1, f"it does not end at {plan.network.nodes[route.destination]}", segments[-1].nodes[-1] == route.destination),
        ):
            if not is_so:
                report.faults.append(f"{_said(plan, segments[at])}: {said}")
        for number, segment in enumerate(segments):
            self._need_one_entry(_Place(number > 0, segment.nodes[0], route.destination), segment)
        if "node" in segments[-1].guards[-1]:
            name = plan.network.nodes[segments[-1].nodes[-1]]
            report.faults.append(f"{_said(plan, segments[-1])}: its last guard promises delivery although {name} is down")
        self._walk(route, segments, None, True)
        for failure, is_guarded in _failures(plan, segments) if with_failures else ():
            report.guarded += is_guarded
            report.unguarded += not is_guarded
            self._walk(route, segments, failure, is_guarded)

    def _need_one_entry(self, place: _Place, segment: Segment) -> None:
        """Reports a segment whose first switch needs a different entry for another route."""
        entry = segment.entry()._replace(return_ports=tuple(segment.return_ports))
        pushed = _Pushed(segment.key, segment.hop_limit, tuple(segment.nodes), entry)
        if self.pushed.setdefault(place, pushed) != pushed:
            name = self.plan.network.nodes[place.destination]
            self.report.faults.append(f"{_said(self.plan, segment)}: another route to {name} needs a different entry there")

    def _one(self, segment: Segment) -> Segment:
        """Returns one object for equal segments, such as those of routes that share a waypoint."""
        is_it = segment.key, segment.hop_limit, tuple(segment.nodes), segment.entry()._replace(return_ports=())
        return self.shared.setdefault((*is_it, tuple(segment.return_ports), tuple(segment.guards)), segment)

    def _walk(self, route: KeyRoute, segments: list[Segment], failure: Failure | None, must_arrive: bool) -> None:
        """Walks a packet over all segments of a route. The last port of a segment is the ingress port of the
        next one."""
        plan, report = self.plan, self.report
        in_port: int | None = None
        for segment in segments:
            outcome = self._outcome(segment, in_port, failure)
            report.forwarded_max = max(report.forwarded_max, outcome.forwarded)
            if not arrives(outcome, segment.nodes[-1]):
                report.unguarded_lost += not must_arrive
                is_astray = not outcome.reason and outcome.node in self.waypoints.get(route.destination, ())
                if must_arrive or is_astray:
                    report.faults.append(f"{_said(plan, segment)}: {_fate(plan, outcome)}{_down(plan, failure)}")
                return
            if failure is None and list(outcome.visited) != segment.nodes:
                report.faults.append(f"{_said(plan, segment)}: it takes another path, {_names(plan, outcome.visited)}")
            in_port = outcome.in_port

    def _outcome(self, segment: Segment, in_port: int | None, failure: Failure | None) -> Outcome:
        case = _Arrival(id(segment), in_port, failure)
        if failure is not None:
            sound = self._outcome(segment, in_port, None)
            if not _touches(self.plan, failure, sound):
                return sound
        if case not in self.outcomes:
            if failure not in self.walks:
                self.walks[failure] = Walk(self.plan.network, self.plan.bank.backups, failure)
            says = self.says.setdefault(id(segment), by_key(self.plan.bank, segment.key))
            self.report.walks += 1
            self.outcomes[case] = self.walks[failure].run(segment.entry(), says, segment.hop_limit, in_port)
        return self.outcomes[case]


def _touches(plan: KeyPlan, failure: Failure, outcome: Outcome) -> bool:
    """Returns whether a walk visited a switch next to a failure. All other switches forward as they do
    without the failure."""
    ports = plan.network.ports[failure.node]
    beside = {failure.node}
    if failure.port is None:
        beside.update(peer.node for peer in ports.values())
    else:
        beside.add(ports[failure.port].node)
    return not beside.isdisjoint(outcome.visited)


def check(plan: KeyPlan, with_failures: bool = True) -> Report:
    """Walks every route: first without a failure, then with each link and each switch on its path down."""
    checker = _Checker(plan)
    for route in plan.routes:
        checker.route(route, with_failures)
    return checker.report


def _failures(plan: KeyPlan, segments: list[Segment]) -> Iterator[tuple[Failure, bool]]:
    """Yields the links of a route and the switches between its ends, and whether each is guarded. Of parallel
    links, only the one that the route uses can fail."""
    for number, segment in enumerate(segments):
        for hop, (node, following) in enumerate(pairwise(segment.nodes)):
            port = plan.network.neighbours[node][following] if hop else segment.out_port
            yield Failure(node, port), "link" in segment.guards[hop]
            if number + 1 < len(segments) or hop + 2 < len(segment.nodes):
                yield Failure(following), "node" in segment.guards[hop]


def _said(plan: KeyPlan, segment: Segment) -> str:
    return f"key {segment.key:#x}, {_names(plan, segment.nodes)}"


def _names(plan: KeyPlan, nodes: list[int] | tuple[int, ...]) -> str:
    return " - ".join(plan.network.nodes[node] for node in nodes)


def _fate(plan: KeyPlan, outcome: Outcome) -> str:
    where = plan.network.nodes[outcome.node]
    # A waypoint for the same destination sends the packet on, with a new hop limit.
    return f"dropped at {where} ({outcome.reason})" if outcome.reason else f"it ends in the tables of {where}"


def _down(plan: KeyPlan, failure: Failure | None) -> str:
    if failure is None:
        return ""
    name = plan.network.nodes[failure.node]
    return f" with {name} down" if failure.port is None else f" with the link at port {failure.port} of {name} down"
