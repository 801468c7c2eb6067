# SPDX-License-Identifier: Apache-2.0
"""Checks a plan by walks: every key arrives, and with what is said to be guarded down it still does."""

from dataclasses import dataclass, field

from shunt_controller.plan.keyflow import KeyPlan, Segment
from shunt_controller.plan.steering import arrives
from shunt_controller.plan.walk import Failure, Outcome, Walk, by_key


@dataclass
class Report:
    """What walks have shown. `faults` says where a plan does not hold, in words."""

    walks: int = 0
    forwarded_max: int = 0
    guarded: int = 0
    """Failures on a route that lose nothing, as the plan says."""
    unguarded: int = 0
    unguarded_lost: int = 0
    """Of those that the plan does not speak for, those that lose packets."""
    faults: list[str] = field(default_factory=list)


def check(plan: KeyPlan, with_failures: bool = True) -> Report:
    """Walks every segment of every route, also through the failure of each link and each switch on its path."""
    report = Report()
    walks: dict[Failure | None, Walk] = {}
    for route in plan.routes:
        for before, segment in zip([None, *route.segments], route.segments, strict=False):
            first = route.source if before is None else before.nodes[-1]
            if segment.nodes[0] != first:
                report.faults.append(f"{_said(plan, segment)}: the segment before it does not end where it begins")
            _check(plan, segment, None, walks, report)
            for failure, is_guarded in _failures(plan, segment) if with_failures else ():
                _check(plan, segment, failure, walks, report, is_guarded)
        if route.segments[-1].nodes[-1] != route.destination:
            report.faults.append(
                f"{_said(plan, route.segments[-1])}: it does not end at {plan.network.nodes[route.destination]}"
            )
    return report


def _failures(plan: KeyPlan, segment: Segment) -> list[tuple[Failure, bool]]:
    found = []
    for hop, (node, following) in enumerate(zip(segment.nodes, segment.nodes[1:], strict=False)):
        port = plan.network.neighbours[node][following]
        found.append((Failure(node, port), "link" in segment.guards[hop]))
        if hop + 2 < len(segment.nodes):
            found.append((Failure(following), "node" in segment.guards[hop]))
    return found


def _check(
    plan: KeyPlan,
    segment: Segment,
    failure: Failure | None,
    walks: dict[Failure | None, Walk],
    report: Report,
    must_arrive: bool = True,
) -> None:
    if failure not in walks:
        walks[failure] = Walk(plan.network, plan.bank.backups, failure)
    outcome = walks[failure].run(segment.nodes[0], segment.out_port, by_key(plan.bank, segment.key), segment.hop_limit)
    report.walks += 1
    report.forwarded_max = max(report.forwarded_max, outcome.forwarded)
    is_lost = not arrives(outcome, segment.nodes[-1])
    if failure is not None:
        report.guarded += must_arrive
        report.unguarded += not must_arrive
        report.unguarded_lost += is_lost and not must_arrive
    if must_arrive and is_lost:
        report.faults.append(f"{_said(plan, segment)}: {_fate(plan, outcome)}{_down(plan, failure)}")
    if failure is None and not is_lost and list(outcome.visited) != segment.nodes:
        report.faults.append(f"{_said(plan, segment)}: it takes another path, {_names(plan, outcome.visited)}")


def _said(plan: KeyPlan, segment: Segment) -> str:
    return f"key {segment.key:#x}, {_names(plan, segment.nodes)}"


def _names(plan: KeyPlan, nodes: list[int] | tuple[int, ...]) -> str:
    return " - ".join(plan.network.nodes[node] for node in nodes)


def _fate(plan: KeyPlan, outcome: Outcome) -> str:
    where = plan.network.nodes[outcome.node]
    return f"dropped at {where} ({outcome.reason})" if outcome.reason else f"it ends at {where}"


def _down(plan: KeyPlan, failure: Failure | None) -> str:
    if failure is None:
        return ""
    name = plan.network.nodes[failure.node]
    return f" with {name} down" if failure.port is None else f" with the link at port {failure.port} of {name} down"
