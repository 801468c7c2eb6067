#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what it takes to set up a path over 1 to 10 switches: the round trip of the first packet, and the
messages between switches and controller.

    KeyFlow           the first switch asks, and only the first and the last one get entries
    flows per hop     each switch asks, and gets a flow for this direction
    flows per path    the first switch asks, and all get flows for both directions at once

The flows are measured with Shunt and with Open vSwitch, and all controllers use os-ken. An unused path is
removed after a second, so each ping that comes later is a first packet. All kinds run at the same time and are
measured in turns. Messages are counted in a network of its own, in which a relay passes them on.

Values are written to target/report/experiments/first_packet.csv. Needs root, two CPUs, `make` before, and the
programs that `scripts/setup.sh lab` installs. Takes about 6 minutes.
"""

import os
import random
import statistics
import tempfile
import time

import program
from reactive import GONE_S, KINDS, answered, first_packets, roads_of
from results import FOLDER, Results
from rooms import Failed, Rooms

HOPS = [1, 2, 3, 5, 10]
COUNTED_ROUNDS = 3
# Time until all messages about a new path have been sent.
SETTLED_S = 0.5
# Messages that controllers and switches also exchange without new paths.
IGNORED = ("hello", "echo", "statistics", "port-status", "other", "flow-removed")


def messages_of(road):
    """Returns the number of messages that a new path needs, by kind."""
    road.counted()
    if road.ping() is None:
        raise Failed("%s: a first packet is lost while messages are counted" % road.switch)
    time.sleep(SETTLED_S)
    return {kind: count for kind, count in road.counted().items() if not kind.startswith(IGNORED)}


def measure(options, results, cpus, hops):
    """Measures all kinds for a number of switches."""
    order = random.Random(hops)
    with tempfile.TemporaryDirectory() as folder, Rooms(options.first) as rooms:
        roads = roads_of(KINDS, rooms, folder, cpus, hops)
        times = first_packets(roads, options.rounds, order)
    with tempfile.TemporaryDirectory() as folder, Rooms(options.first) as rooms:
        roads = roads_of(KINDS, rooms, folder, cpus, hops, is_relayed=True)
        counts = {name: [] for name in roads}
        for _ in range(COUNTED_ROUNDS):
            time.sleep(GONE_S)
            for name, road in roads.items():
                counts[name].append(messages_of(road))
    for name in roads:
        found = answered(times[name])
        total = statistics.median(sum(count.values()) for count in counts[name])
        changes = statistics.median(sum(n for kind, n in count.items() if kind in ("flow-mod to switch", "bundle add to switch")) for count in counts[name])
        asked = statistics.median(count.get("packet-in to controller", 0) for count in counts[name])
        print("%2d switches, %s: %.0f us, %g messages, %g packet-ins, %g changes" % (hops, name, statistics.median(found), total, asked, changes))
        results.add(hops, name, statistics.median(found), min(found), max(found), len(found), len(times[name]) - len(found), total, asked, changes)


def main():
    """Runs all rounds."""
    parser = program.parser_of(__doc__, 10, "first packets of each kind and number of switches")
    parser.add_argument("--hops", type=int, action="append", choices=range(1, 11), metavar="1..10", help="number of switches on the path; may be repeated")
    program.add_first(parser)
    parser.add_argument("--into", default=FOLDER, help="folder of the values (%s)" % os.path.relpath(FOLDER))
    options = parser.parse_args()
    cpus = program.two_cpus()
    columns = ["hops", "kind", "median_us", "least_us", "most_us", "runs", "lost", "messages", "packet_ins", "changes"]
    with program.ending():
        with Results("first_packet", columns, options.into) as results:
            for hops in options.hops or HOPS:
                measure(options, results, cpus, hops)


if __name__ == "__main__":
    main()
