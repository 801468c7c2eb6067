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
The columns show lengths in bits of the keys of all ordered pairs, with all nodes of a path coded. primes: the IDs are consecutive
primes in the order of the file, starting at the largest number of ports (links and the node itself). same routes: the IDs are
planned, and the routes are those of the column primes. planned: of several shortest paths, the one with the shortest key is used."""


def add(commands: Any) -> None:
    """Adds the command to a parser."""
    parser = commands.add_parser(
        "compare",
        help="compare planned keys with keys of consecutive primes",
        description="Compares lengths of KeyFlow keys with those of consecutive primes. " + NOTE,
    )
    parser.add_argument(
        "graphs", nargs="+", metavar="GRAPH", help="networks (.graphml, .json); only the largest connected part of each is used"
    )
    parser.add_argument("--internal", action="store_true", help="omit external nodes (Internal=0)")
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
