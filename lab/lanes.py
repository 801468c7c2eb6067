#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pings of a marked flow beside a UDP flood through the same two ports: what the two lanes are worth end to end.

Four switches take turns, each between two hosts of its own: Shunt with its lanes on and off, Open vSwitch in userspace,
a Linux bridge. A turn is a flood of iperf3 from the first host to the second, and beside it `ping -i 0.01`, whose
requests share the flood's queue. The switch has a CPU to itself, everything else another. A round gives each switch its median, p99 and loss of
pings; ratios are those of one round. A round in which other programs kept a switch from its CPU is set aside, counted,
and made up for. Figures go to target/report/lanes_road.jsonl.

Needs root, two CPUs, `make` before, and what `scripts/setup.sh lab` installs. About eight minutes.
"""

import argparse
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

from report import ROOT, Report
from rooms import Failed, Rooms
from switches import Bridge, LanesOff, LanesOn, OpenVswitch

REPORT = os.path.join(ROOT, "target/report/lanes_road.jsonl")
OURS = "lanes on"
SWITCHES = {
    OURS: ("on", LanesOn),
    "lanes off": ("off", LanesOff),
    "Open vSwitch": ("ovs", OpenVswitch),
    "Linux bridge": ("bridge", Bridge),
}
# Options of iperf3 by what a flood is called. A datagram of 65000 bytes leaves its host as 44 packets by one system
# call: so one CPU sends more packets than another can forward.
FLOODS = {
    "no flood": None,
    "flood of 64-byte datagrams": "-l 64",
    "flood of 65000-byte datagrams, 44 packets each": "-l 65000",
}
# With the lanes on, p99 beside a flood is at most this share of that with the lanes off.
BAR = 0.5
# A switch that waited longer for its CPU than this share of a turn was disturbed.
WAIT_LIMIT = 0.01
# Rounds that are tried for each that counts, before the figures are made of all of them.
TRIES = 3
START_S = 0.3
WARM_UP_S = 0.7
TURN_LIMIT_S = 60
# What the connection of iperf3 alone comes to stays far below.
FLOOD_LEAST_KPPS = 10


class Turn:
    """What one switch showed in one turn."""

    def __init__(self, road, flood, pings, cpus):
        self.road, self.cpus = road, cpus
        self.flooding = []
        try:
            if flood:
                self._start_flood(flood)
            before = self._counters()
            times = sorted(self._ping(pings))
            took_s, sent, arrived, waited_s = (b - a for a, b in zip(before, self._counters()))
        finally:
            for process in self.flooding:
                road.rooms.stop(process)
        if not times:
            raise Failed("%s: no ping came back" % road.switch)
        self.median_us = statistics.median(times)
        self.p99_us = times[math.ceil(0.99 * len(times)) - 1]
        self.lost_percent = 100 * (1 - len(times) / pings)
        self.offered, self.delivered = sent / took_s / 1000, arrived / took_s / 1000
        self.waited = waited_s / took_s
        if flood and self.offered < FLOOD_LEAST_KPPS:
            raise Failed("%s: there was no flood: %.1f kpps" % (road.switch, self.offered))

    def _start_flood(self, options):
        start, hosts = self.road.rooms.start, self.road.hosts
        self.flooding.append(start(hosts[1], ["iperf3", "-s", "-1"], self.cpus))
        time.sleep(START_S)
        command = ["iperf3", "-c", "10.0.0.2", "-u", "-b", "0", "-t", str(TURN_LIMIT_S)] + options.split()
        self.flooding.append(start(hosts[0], command, self.cpus))
        time.sleep(WARM_UP_S)

    def _ping(self, pings):
        rooms = self.road.rooms
        command = ["ping", "-n", "-i", "0.01", "-W", "1", "-c", str(pings), "10.0.0.2"]
        process = rooms.start(self.road.hosts[0], command, self.cpus, subprocess.PIPE, text=True)
        text, _ = process.communicate(timeout=TURN_LIMIT_S)
        rooms.stop(process)
        return [1000 * float(found) for found in re.findall(r"time=([\d.]+) ms", text)]

    def _counters(self):
        road = self.road
        return time.monotonic(), road.packets(0, "tx"), road.packets(1, "rx"), road.waited_s()


def rounds_of(roads, flood, options, order, cpus):
    """The rounds of one flood that count, each a turn of every switch by its name."""
    good, bad = [], []
    while len(good) < options.rounds and len(good) + len(bad) < TRIES * options.rounds:
        turns = {name: Turn(roads[name], flood, options.pings, cpus) for name in order.sample(list(roads), len(roads))}
        disturbed = max(turn.waited for turn in turns.values()) > WAIT_LIMIT
        (bad if disturbed else good).append(turns)
    if len(good) < options.rounds:
        print("only %d of %d rounds were undisturbed: figures are of all of them" % (len(good), len(good) + len(bad)))
        return good + bad
    print("%d rounds, %d others were set aside" % (len(good), len(bad)))
    return good


def tell(report, flood, rounds):
    """Writes the figures of a flood."""
    by_name = {name: [turns[name] for turns in rounds] for name in SWITCHES}
    for figure, key in (("ping, p99", "p99_us"), ("ping, median", "median_us")):
        for name, peers in by_name.items():
            if name != OURS:
                at_most = BAR if key == "p99_us" and name == "lanes off" and flood != "no flood" else None
                values = ([getattr(turn, key) for turn in each] for each in (by_name[OURS], peers))
                report.against(figure, "%s: %s against %s" % (flood, OURS, name), "us", *values, at_most)
    shown = [("pings lost", "%", lambda turn: turn.lost_percent)]
    if flood != "no flood":
        shown.append(("offered", "kpps", lambda turn: turn.offered))
        shown.append(("delivered", "kpps", lambda turn: turn.delivered))
    shown.append(("switch waited for its CPU", "%", lambda turn: 100 * turn.waited))
    for figure, unit, value in shown:
        for name, each in by_name.items():
            report.alone(figure, "%s: %s" % (flood, name), unit, [value(turn) for turn in each])


def main():
    """All rounds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=10, help="rounds of each flood (10)")
    parser.add_argument("--pings", type=int, default=300, help="pings a turn (300)")
    parser.add_argument("--flood", default="", help="only floods whose name has this text")
    parser.add_argument("--first", action="store_true", help="go before other programs, for machines that are not idle")
    parser.add_argument("--report", default=REPORT, help="file of figures (%s)" % os.path.relpath(REPORT))
    options = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        sys.exit("lab/lanes.py: needs two CPUs, there is one")
    os.sched_setaffinity(0, cpus[:1])
    report, order = Report(options.report), random.Random(1)
    try:
        with tempfile.TemporaryDirectory() as folder, Rooms(options.first) as rooms:
            roads = {name: kind(rooms, room, folder, cpus[:2]) for name, (room, kind) in SWITCHES.items()}
            for flood, iperf in FLOODS.items():
                if options.flood in flood:
                    tell(report, flood, rounds_of(roads, iperf, options, order, cpus[:1]))
    except Failed as failed:
        sys.exit("lab/lanes.py: %s" % failed)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
