# SPDX-License-Identifier: Apache-2.0
"""Command ``plan check``."""

import argparse
from typing import Any

from shunt_controller.plan.check import check
from shunt_controller.plan.documents import plan_of, read_document
from shunt_controller.plan.errors import PlanError
from shunt_controller.plan.protection import count_links
from shunt_controller.plan.tables import table

HEADS = ("epoch", "routes", "walks", "passed on, at most", "guarded failures", "lost", "others", "lost", "links", "protected", "to leaves", "other bridges")


def add(commands: Any) -> None:
    """Adds the command to a parser."""
    parser = commands.add_parser(
        "check",
        help="walk the keys of a plan, with and without failures",
        description="Reads a plan that `keyflow` or `polka` wrote. Walks every key through the network, first without a failure, then with "
        "each link and each switch of its path down. Fails if a packet is lost without a failure, or although a guard covers the failure.",
    )
    parser.add_argument("plan", metavar="PLAN", help="a plan as JSON")
    parser.add_argument("--no-failures", action="store_true", help="walk only the network without failures")
    parser.set_defaults(run=run, name="plan check")


def run(options: argparse.Namespace) -> None:
    """Prints the results as a table. Raises an error that lists the violations if there are any."""
    data = read_document(options.plan)
    rows = []
    for at in range(len(data["plans"])):
        made = plan_of(options.plan, data, at)
        found = check(made, not options.no_failures)
        if found.faults:
            raise PlanError(f"{len(found.faults)} faults under epoch {made.epoch}, of which the first is: {found.faults[0]}")
        rows.append(
            (
                made.epoch,
                len(made.routes),
                found.walks,
                found.forwarded_max,
                found.guarded,
                0,
                found.unguarded,
                found.unguarded_lost,
                *count_links(made),
            )
        )
    print(table(HEADS, rows))
