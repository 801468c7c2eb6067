#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the jitter of pings over three switches beside a stream of 64-byte frames, at several rates: KeyFlow,
and flow tables that are empty or filled with 200,000 entries, of Shunt and of Open vSwitch.

This is the experiment of figure 4 of the KeyFlow paper. The switch in the middle computes its output port from
the key, or looks it up. Rates are shares of the capacity: the lowest rate among all kinds at which frames
arrive when they are sent as fast as possible. So all kinds get the same rates. Jitter is the difference between
the 99.9th percentile and the median of the round trips. The kinds are measured in turns while the others are
paused. Pings near a gap, in which another thread had the CPU of the switches, are set aside, unless these are
most pings.

Values are written to target/report/experiments/jitter.csv. Needs root, two CPUs, `make` before, and the programs
that `scripts/setup.sh lab` installs. Takes about 8 minutes.
"""

import math
import os
import random
import statistics
import sys
import tempfile
import time

import program
from report import ROOT

# Starts this program again with the Python of the planners.
from keyflow import Chain, KeyFlow, Ovs  # isort: skip
from lanes import unpreempted
from results import FOLDER, Results
from rooms import Failed, Rooms
from rtt import road_of
from switches import mac

HOPS, FLOWS = 3, 8192
SHARES = [10, 50, 80, 95]
INTERVAL_S = 0.004
CAPACITY_S, WARM_UP_S = 1.5, 0.5
# Number of measurements of the capacity of each kind, of which the median is used.
CAPACITY_TURNS = 3
# Maximum time of a turn, in which pings may be delayed.
TURN_MOST_S = 60
# Name of each kind, its class, the filled part of its tables in percent, and a short name.
KINDS = {
    "KeyFlow": (KeyFlow, 100, "key"),
    "empty tables": (Chain, 0, "empty"),
    "full tables": (Chain, 100, "full"),
    "Open vSwitch, empty tables": (Ovs, 0, "ovs-empty"),
    "Open vSwitch, full tables": (Ovs, 100, "ovs-full"),
}


def sender_of(road, cpu, seconds, rate=math.inf):
    """Starts the stream of frames."""
    words = [sys.executable, os.path.join(ROOT, "lab/send_flows.py"), "eth0", mac(2), str(FLOWS), str(seconds), str(rate)]
    return road.rooms.start(road.hosts[0], words, [cpu])


def capacity_of(road, cpu):
    """Returns the rate in packets/s at which frames arrive that are sent as fast as possible."""
    road.resume()
    try:
        sender = sender_of(road, cpu, CAPACITY_S + 2 * WARM_UP_S)
        time.sleep(WARM_UP_S)
        before, began_s = road.packets(1, "rx"), time.monotonic()
        time.sleep(CAPACITY_S)
        after, took_s = road.packets(1, "rx"), time.monotonic() - began_s
        sender.wait()
        road.rooms.stop(sender)
    finally:
        road.pause()
    if after == before:
        raise Failed("%s: no frame of the stream arrived" % road.switch)
    return (after - before) / took_s


def turn(road, cpu, pings, rate):
    """Measures one kind at one rate. Returns the round-trip times in us of all answered pings and of those that were
    not near a gap, and the rate at which frames have arrived."""
    road.resume()
    try:
        sender = sender_of(road, cpu, TURN_MOST_S, rate)
        time.sleep(WARM_UP_S)
        before, began_s = road.packets(1, "rx"), time.monotonic()
        times, whole = unpreempted(road, [cpu], pings, INTERVAL_S)
        arrived, took_s = road.packets(1, "rx") - before, time.monotonic() - began_s
        if sender.poll() is not None:
            raise Failed("%s: the stream has ended before the pings" % road.switch)
        road.rooms.stop(sender)
    finally:
        road.pause()
    if not times:
        raise Failed("%s: no ping was answered" % road.switch)
    return times, whole, (arrived - len(times)) / took_s


def percentile(times, part):
    """Returns a percentile, by nearest rank."""
    return sorted(times)[max(0, math.ceil(part * len(times)) - 1)]


def measure(options, results, rooms, folder, cpus):
    """Measures all kinds in turns."""
    roads, order = {}, random.Random(1)
    for name, (kind, fill, short) in KINDS.items():
        filled = type(kind.__name__, (kind,), {"fill": fill})
        roads[name] = road_of(filled, rooms, short, folder, cpus, HOPS)
    measured = {name: [] for name in roads}
    for _ in range(CAPACITY_TURNS):
        for name in order.sample(list(roads), len(roads)):
            measured[name].append(capacity_of(roads[name], cpus[0]))
    capacities = {name: statistics.median(values) for name, values in measured.items()}
    capacity = min(capacities.values())
    for name, value in capacities.items():
        print("capacity, %s: %.0f packets/s" % (name, value))
    for share in options.share or SHARES:
        for number in range(options.rounds):
            for name in order.sample(list(roads), len(roads)):
                rate = capacity * share / 100
                times, whole, arrived = turn(roads[name], cpus[0], options.pings, rate)
                # A high percentile needs many pings. If most are near gaps, all are used.
                used, words = (whole, "without gaps") if 2 * len(whole) >= len(times) else (times, "all")
                median, high = statistics.median(used), percentile(used, 0.999)
                gaps, lost = (100 * (1 - part) for part in (len(whole) / len(times), len(times) / options.pings))
                text = "%d %%, %s: median %.0f us, jitter %.0f us, %.0f %% near gaps, used %s"
                print(text % (share, name, median, high - median, gaps, words))
                results.add(share, rate, arrived, capacities[name], name, number, median, high, high - median, lost, gaps, words)


def main():
    """Runs all rounds."""
    parser = program.parser_of(__doc__, 2, "rounds of each rate")
    parser.add_argument("--pings", type=int, default=2000, help="pings per turn (2000)")
    parser.add_argument("--share", type=int, action="append", choices=range(1, 101), metavar="1..100", help="rate in percent of the capacity; may be repeated")
    program.add_first(parser)
    parser.add_argument("--into", default=FOLDER, help="folder of the values (%s)" % os.path.relpath(FOLDER))
    options = parser.parse_args()
    if options.pings * INTERVAL_S > TURN_MOST_S / 2:
        parser.error("--pings must be at most %d" % (TURN_MOST_S / 2 / INTERVAL_S))
    cpus = program.two_cpus()
    os.sched_setaffinity(0, cpus[:1])
    columns = ["share_percent", "rate", "arrived", "capacity", "kind", "round", "median_us", "p999_us", "jitter_us", "lost_percent", "gap_percent", "used"]
    with program.ending():
        with tempfile.TemporaryDirectory() as folder, Rooms(options.first) as rooms, Results("jitter", columns, options.into) as results:
            measure(options, results, rooms, folder, cpus)


if __name__ == "__main__":
    main()
