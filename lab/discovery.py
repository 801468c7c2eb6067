#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the discovery of a fat tree by `shunt-controller run tag-and-forward`.

All switches are datapaths of one process. Links are veth pairs. Each run restarts switches and controller.
Times begin with the start of the controller: until all links are found, and until all switches have confirmed
their gates. `--csv` writes the times of all runs.

Needs root, `make` before, and the packages that `scripts/setup.sh lab` installs.
"""

import csv
import os
import sys
import tempfile
import time

import program
from live import Live, planned, since
from report import ROOT, Report
from results import write_about
from rooms import Rooms

REPORT = os.path.join(ROOT, "target/report/discovery.jsonl")
# Longest time until a tree of k = 8 is known.
BAR_S = 15.0


def run(live):
    """Runs the discovery once. Returns both times in seconds."""
    live.start_switches()
    begin = time.monotonic()
    live.start_controller("tag-and-forward")
    live.wait_for("link found", len(live.links))
    found_s = since(begin)
    live.wait_for("all %d switches are as planned" % len(live.ports))
    planned_s = since(begin)
    live.stop_controller()
    live.rooms.stop(live.switches)
    return found_s, planned_s


def main():
    """Runs all rounds. The exit code is 1 if a time misses its target."""
    parser = program.parser_of(__doc__, 6, "number of runs")
    parser.add_argument("--k", type=int, default=8, choices=range(4, 17, 2), metavar="4..16", help="even k of the tree (8)")
    parser.add_argument("--report", default=REPORT, help="file of figures (%s)" % os.path.relpath(REPORT))
    parser.add_argument("--csv", help="file of the times of all runs")
    options = parser.parse_args()
    write_about(options.report)
    with program.ending():
        with tempfile.TemporaryDirectory() as folder, Rooms() as rooms:
            live = Live(rooms, folder, planned(options.k)[0])
            times = [run(live) for _ in range(options.rounds)]
    report, case = Report(options.report), "k = %d, %d switches, %d links" % (options.k, len(live.ports), len(live.links))
    report.alone("time until all links are found", case, "s", [found_s for found_s, _ in times])
    report.alone("time until all gates are set", case, "s", [planned_s for _, planned_s in times])
    if options.csv:
        with open(options.csv, "w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(["k", "run", "found_s", "planned_s"])
            table.writerows([options.k, number, *(round(one, 3) for one in pair)] for number, pair in enumerate(times, 1))
    sys.exit(0 if options.k > 8 or max(planned_s for _, planned_s in times) < BAR_S else 1)


if __name__ == "__main__":
    main()
