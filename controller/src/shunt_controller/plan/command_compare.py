# SPDX-License-Identifier: Apache-2.0
"""Command ``plan compare``."""

import argparse
import statistics
from typing import Any

from shunt_controller.plan.compare import compare, shorter_percent
from shunt_controller.plan.files import read
from shunt_controller.plan.tables import table

HEADS = (
    "network",
    "nodes",
    "links",
    "ports",
    "primes: mean",
    "max",
    "same routes: mean",
    "planned: mean",
    "max",
    "shorter, %",
)
NOTE = """\
Bits of the keys of all ordered pairs, every node of a path coded. primes: consecutive primes from the largest number of ports on
(links and the node itself), in the order of the file. same routes: planned IDs on the routes of that column. planned: of
several shortest paths, those with the shortest keys."""


def add(commands: Any) -> None:
    """Adds the command to a parser."""
    parser = commands.add_parser(
        "compare",
        help="how much shorter planned keys are than with consecutive primes",
        description="Compares lengths of KeyFlow keys with those of consecutive primes. " + NOTE,
    )
    parser.add_argument(
        "graphs", nargs="+", metavar="GRAPH", help="networks (.graphml, .json); of each the largest connected part"
    )
    parser.add_argument("--internal", action="store_true", help="leave external nodes (Internal=0) out")
    parser.set_defaults(run=run, name="plan compare")


def run(options: argparse.Namespace) -> None:
    """Prints the comparison as a table."""
    found = [compare(read(path, options.internal)) for path in options.graphs]
    rows: list[tuple[object, ...]] = []
    for one in found:
        rows.append((*one, one.shorter_percent))
    if len(found) > 1:
        means = [statistics.fmean(values) for values in zip(*(one[4:] for one in found), strict=True)]
        rows.append(("mean of all", *("" for _ in range(3)), *means, shorter_percent(found)))
    print(table(HEADS, rows))
    print("\n" + NOTE)
