# SPDX-License-Identifier: Apache-2.0
"""The failures that a protected plan does not cover, with reasons."""

import pathlib
from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise
from typing import Literal, NamedTuple

from shunt_controller.plan.errors import PlanError
from shunt_controller.plan.keyflow import KeyPlan, KeyRoute
from shunt_controller.plan.protection import bridges


class Reason(StrEnum):
    """Reason why the failure of a link or a switch loses packets of a route."""

    NO_WAY = "no other path exists"
    WAYPOINT = "the switch is a waypoint"
    NO_DETOUR = "no detour leads back to the path after the failure"
    NO_ROOM = "the key has no space for the detour"


class Refusal(NamedTuple):
    """A failure that a plan does not protect a route against."""

    route: KeyRoute
    node: int
    """First node of the hop."""
    following: int
    """Second node of the hop."""
    kind: Literal["link", "node"]
    """The failing part: the link of the hop, or the switch that it leads to."""
    reason: Reason


def refusals(plan: KeyPlan) -> Iterator[Refusal]:
    """Yields all uncovered failures. The last switch of a route is left out, because nothing can replace it.
    """
    no_way = bridges(plan.network)
    round_nodes: dict[tuple[int, int, int], bool] = {}

    def has_way(before: int, node: int, after: int) -> bool:
        """Returns whether a path from `before` to `after` avoids `node`, which is between them.
        """
        case = before, node, after
        if case not in round_nodes:
            round_nodes[case] = _is_reached(plan, before, node, after)
        return round_nodes[case]

    for route in plan.routes:
        path = [route.source, *(node for segment in route.segments for node in segment.nodes[1:])]
        at = 0
        for segment in route.segments:
            for hop, (node, following) in enumerate(pairwise(segment.nodes)):
                at += 1
                guard = segment.guards[hop]
                is_no_way = frozenset((node, following)) in no_way
                if "link" not in guard:
                    no_room = (hop, False) in segment.left_out
                    reason = Reason.NO_WAY if is_no_way else Reason.NO_ROOM if no_room else Reason.NO_DETOUR
                    yield Refusal(route, node, following, "link", reason)
                if "node" in guard or following == route.destination:
                    continue
                if not has_way(node, following, path[at + 1]):
                    reason = Reason.NO_WAY
                elif hop + 2 == len(segment.nodes):
                    reason = Reason.WAYPOINT
                else:
                    reason = Reason.NO_ROOM if (hop, True) in segment.left_out else Reason.NO_DETOUR
                yield Refusal(route, node, following, "node", reason)


def _is_reached(plan: KeyPlan, start: int, without: int, goal: int) -> bool:
    seen, rest = {start, without}, [start]
    while rest:
        here = rest.pop()
        if here == goal:
            return True
        if here != start and plan.network.roles[here] != "core":
            continue
        for peer in plan.network.neighbours[here]:
            if peer not in seen:
                seen.add(peer)
                rest.append(peer)
    return False


def write_refused(path: str, plan: KeyPlan) -> None:
    """Writes one line per uncovered failure."""
    names = plan.network.nodes
    try:
        with pathlib.Path(path).open("w", encoding="utf-8") as file:
            for route, node, following, kind, reason in refusals(plan):
                what = f"link {names[node]} - {names[following]}" if kind == "link" else f"switch {names[following]}"
                file.write(f"{names[route.source]} to {names[route.destination]}: {what}: {reason}\n")
    except OSError as error:
        raise PlanError(f"{path} cannot be written: {error.strerror or error}") from error
