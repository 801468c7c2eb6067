#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the round trip of the first packet over five switches whose controller is 0 to 20 ms away.

It uses the controllers and switches of lab/first_packet.py. A relay delays all messages between switches and
controller by half of the round trip in each direction. For comparison, switches that learn addresses without a
controller are measured, too: their first packets do not wait for a controller.

Values are written to target/report/experiments/remote_control.csv. Needs root, two CPUs, `make` before, and the
programs that `scripts/setup.sh lab` installs. Takes about 3 minutes.
"""

import os
import random
import statistics
import tempfile

import program
from reactive import KINDS, LOCAL, answered, first_packets, roads_of
from results import FOLDER, Results
from rooms import Rooms

DELAYS_MS = [0.0, 1.0, 5.0, 20.0]


def measure(options, results, cpus, delay_ms):
    """Measures all kinds with one distance of the controller."""
    order = random.Random(int(delay_ms))
    with tempfile.TemporaryDirectory() as folder, Rooms(options.first) as rooms:
        roads = roads_of(KINDS | LOCAL, rooms, folder, cpus, options.hops, delay_ms, is_relayed=True)
        times = first_packets(roads, options.rounds, order)
    for name, each in times.items():
        found = answered(each)
        print("controller %g ms away, %s: %.0f us" % (delay_ms, name, statistics.median(found)))
        results.add(delay_ms, options.hops, name, statistics.median(found), min(found), max(found), len(found), len(each) - len(found))


def main():
    """Runs all rounds."""
    parser = program.parser_of(__doc__, 10, "first packets of each kind and distance")
    parser.add_argument("--hops", type=int, default=5, choices=range(2, 11), metavar="2..10", help="number of switches on the path (5)")
    parser.add_argument("--delay", type=float, action="append", metavar="MS", help="round trip to the controller in ms; may be repeated")
    program.add_first(parser)
    parser.add_argument("--into", default=FOLDER, help="folder of the values (%s)" % os.path.relpath(FOLDER))
    options = parser.parse_args()
    if any(not 0 <= delay_ms <= 1000 for delay_ms in options.delay or ()):
        parser.error("--delay must be from 0 to 1000")
    cpus = program.two_cpus()
    columns = ["delay_ms", "hops", "kind", "median_us", "least_us", "most_us", "runs", "lost"]
    with program.ending():
        with Results("remote_control", columns, options.into) as results:
            for delay_ms in options.delay or DELAYS_MS:
                measure(options, results, cpus, delay_ms)


if __name__ == "__main__":
    main()
