#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures pings of a marked flow beside a UDP flood through the same two ports, with and without lanes.

Four switches are measured in turns, each between two separate hosts: Shunt with lanes on and off, Open
vSwitch in userspace, and a Linux bridge. In a turn, iperf3 floods the second host from the first, and
`ping -i 0.01` runs at the same time. The echo requests share a queue with the flood. The switch has one CPU
to itself, and everything else runs on another. Each round gives the median, p99 and loss of pings for each
switch. Ratios compare values of the same round. Pings near a gap, in which another program used the switch's
CPU, are excluded and counted. Figures are written to target/report/lanes_road.jsonl.

Needs root, two CPUs, `make` before, and the programs that `scripts/setup.sh lab` installs. Takes about ten
minutes.
"""

import os
import random
import re
import statistics
import subprocess
import tempfile
import time

import program
from report import ROOT, Report, p99
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
# Options of iperf3 by the name of the flood. A datagram of 65000 bytes leaves its host as 44 packets in one
# system call, so one CPU overloads another.
FLOODS = {
    "no flood": None,
    "flood of 64-byte datagrams": "-l 64",
    "flood of 65000-byte datagrams, 44 packets each": "-l 65000",
}
# Maximum p99 during a flood with lanes on, relative to the p99 with lanes off.
BAR = 0.5
# A ping is excluded if other programs used the switch's CPU for longer than this time since the previous
# ping.
GAP_S = 0.0002
LATE_S = 0.005
START_S = 0.3
WARM_UP_S = 0.7
TURN_LIMIT_S = 60
# Minimum rate of a flood, far above that of iperf3's control connection.
FLOOD_LEAST_KPPS = 10


def unpreempted(road, cpus, pings, interval_s, options=()):
    """Sends pings with these further options. Returns the round-trip times of all answered ones in us, and of
    those that were not near a gap."""
    rooms, times, gaps = road.rooms, [], []
    command = ["ping", "-n", "-D", "-i", str(interval_s), "-W", "1", "-c", str(pings), *options, "10.0.0.2"]
    process = rooms.start(road.hosts[0], command, cpus, subprocess.PIPE, text=True)
    waited_s = road.waited_s()
    for line in process.stdout:
        if found := re.search(r"^\[([\d.]+)\].* time=([\d.]+) ms", line):
            before_s, waited_s = waited_s, road.waited_s()
            times.append(1000 * float(found[2]))
            # A gap cannot be assigned to the ping of a line that is read too late.
            late = time.time() - float(found[1]) > LATE_S
            gaps.append(late or waited_s - before_s > GAP_S)
    process.wait()
    rooms.stop(process)
    # If a line was read late, the gap may have come after its ping, so the gap also excludes the next ping.
    return times, [us for at, us in enumerate(times) if not any(gaps[max(0, at - 1) : at + 1])]


class Turn:
    """Results of one switch in one turn."""

    def __init__(self, road, flood, pings, cpus):
        self.road, self.cpus = road, cpus
        self.flooding = []
        try:
            if flood:
                self._start_flood(flood)
            before = self._counters()
            times, whole = unpreempted(road, cpus, pings, 0.01)
            took_s, sent, arrived = (b - a for a, b in zip(before, self._counters()))
        finally:
            for process in self.flooding:
                road.rooms.stop(process)
        if not times:
            raise Failed("%s: no ping was answered" % road.switch)
        self.set_aside_percent = 100 * (1 - len(whole) / len(times))
        # If all pings are near gaps, all are used, and 100 % are reported as excluded.
        whole = whole or times
        self.median_us, self.p99_us, self.raw_p99_us = statistics.median(whole), p99(whole), p99(times)
        self.lost_percent = 100 * (1 - len(times) / pings)
        self.offered, self.delivered = sent / took_s / 1000, arrived / took_s / 1000
        if flood and self.offered < FLOOD_LEAST_KPPS:
            raise Failed("%s: the flood was too slow: %.1f kpps" % (road.switch, self.offered))

    def _start_flood(self, options):
        start, hosts = self.road.rooms.start, self.road.hosts
        self.flooding.append(start(hosts[1], ["iperf3", "-s", "-1"], self.cpus))
        time.sleep(START_S)
        command = ["iperf3", "-c", "10.0.0.2", "-u", "-b", "0", "-t", str(TURN_LIMIT_S)] + options.split()
        self.flooding.append(start(hosts[0], command, self.cpus))
        time.sleep(WARM_UP_S)

    def _counters(self):
        return time.monotonic(), self.road.packets(0, "tx"), self.road.packets(1, "rx")


def write_figures(report, flood, turns):
    """Writes the figures of a flood. `turns` has the turns of each switch by its name, one per round."""
    kinds = [("ping, p99", "p99_us"), ("ping, median", "median_us"), ("ping, p99, gaps included", "raw_p99_us")]
    for figure, key in kinds:
        for name, peers in turns.items():
            if name != OURS and (key != "raw_p99_us" or name == "lanes off"):
                at_most = BAR if key == "p99_us" and name == "lanes off" and flood != "no flood" else None
                values = ([getattr(turn, key) for turn in each] for each in (turns[OURS], peers))
                report.against(figure, "%s: %s against %s" % (flood, OURS, name), "us", *values, at_most)
    shown = [("pings lost", "%", "lost_percent")]
    if flood != "no flood":
        shown += [("offered", "kpps", "offered"), ("delivered", "kpps", "delivered")]
    shown += [("pings near a gap, set aside", "%", "set_aside_percent")]
    for figure, unit, key in shown:
        for name, each in turns.items():
            report.alone(figure, "%s: %s" % (flood, name), unit, [getattr(turn, key) for turn in each])


def main():
    """Runs all rounds."""
    parser = program.parser_of(__doc__, 10, "rounds of each flood")
    parser.add_argument("--pings", type=int, default=300, help="pings per turn (300)")
    parser.add_argument("--flood", default="", help="measure only floods whose names contain this text")
    program.add_first(parser)
    parser.add_argument("--report", default=REPORT, help="file of figures (%s)" % os.path.relpath(REPORT))
    options = parser.parse_args()
    cpus = program.two_cpus()
    os.sched_setaffinity(0, cpus[:1])
    report, order = Report(options.report), random.Random(1)
    with program.ending():
        with tempfile.TemporaryDirectory() as folder, Rooms(options.first) as rooms:
            roads = {name: kind(rooms, room, folder, cpus) for name, (room, kind) in SWITCHES.items()}
            for flood, iperf in FLOODS.items():
                if options.flood not in flood:
                    continue
                turns = {name: [] for name in roads}
                for _ in range(options.rounds):
                    for name in order.sample(list(roads), len(roads)):
                        turns[name].append(Turn(roads[name], iperf, options.pings, cpus[:1]))
                write_figures(report, flood, turns)


if __name__ == "__main__":
    main()
