#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures round trips of pings between two hosts over 1, 5 and 10 switches in a row on veth pairs.

Switches of the same kind run in one process. Shunt has af_packet or af_xdp ports, each with a worker that
sleeps when idle and with a worker that never sleeps. Open vSwitch in userspace has the kernel's sockets, or
afxdp ports with a thread that never sleeps. The kernel runs Linux bridges in the sender's system call.

Each switch has rules for the hosts' MAC addresses. Shunt's switches are pairs of ports of one datapath. The
kinds are measured in turns with `ping -i 0.002` while the others are paused. The process that forwards has
one CPU to itself, and the hosts use another. Each round gives the median and p99 for each kind. Ratios
compare values of the same round. Figures are written to target/report/rtt.jsonl.

Needs root, two CPUs, `make` before, and the programs that `scripts/setup.sh lab` installs. Takes about ten
minutes.
"""

import os
import random
import re
import statistics
import tempfile
import time

import program
from report import ROOT, Report, p99
from rooms import Failed, Rooms, wait_until
from switches import MAC_FLOWS, Bridge, OpenVswitch, Shunt, text_of

REPORT = os.path.join(ROOT, "target/report/rtt.jsonl")
HOPS = [1, 5, 10]
PING = ["ping", "-n", "-W", "1", "10.0.0.2"]
# The warm-up takes a second, because Open vSwitch is busy after a pause.
WARM_UP = ["-i", "0.01", "-c", "100"]
# Maximum share of a turn for which the forwarding thread waited for its CPU or woke up while other programs
# used the CPU. A turn with a larger share is repeated. After TRIES attempts, the turn with the smallest share
# is used.
WAITED_MOST = 0.1
TRIES = 5


class Packet(Shunt):
    """Shunt with af_packet ports."""

    flows = MAC_FLOWS


class PacketBusy(Packet):
    """Shunt with af_packet ports and a worker that never sleeps."""

    idle = "busy"


class Xdp(Packet):
    """Shunt with af_xdp ports."""

    driver = "af_xdp"


class XdpBusy(Xdp):
    """Shunt with af_xdp ports and a worker that never sleeps."""

    idle = "busy"


class Ovs(OpenVswitch):
    """Open vSwitch with the kernel's sockets."""

    flows = MAC_FLOWS


class OvsXdp(Ovs):
    """Open vSwitch with afxdp ports, which a thread on the forwarding CPU polls."""

    thread = "pmd"
    port_type, setting = "afxdp", "other_config:pmd-cpu-mask=0x%x"


KINDS = {
    "af_packet": ("packet", Packet),
    "af_packet, busy": ("packet-busy", PacketBusy),
    "af_xdp": ("xdp", Xdp),
    "af_xdp, busy": ("xdp-busy", XdpBusy),
    "Open vSwitch": ("ovs", Ovs),
    "Open vSwitch, afxdp": ("ovs-xdp", OvsXdp),
    "Linux bridge": ("bridge", Bridge),
}
# The switches with which each kind of port is compared.
PEERS = {
    "af_packet": ["Open vSwitch", "Linux bridge"],
    "af_packet, busy": ["Open vSwitch", "Linux bridge"],
    "af_xdp": ["Open vSwitch, afxdp", "Linux bridge"],
    "af_xdp, busy": ["Open vSwitch, afxdp", "Linux bridge"],
}


class Turn:
    """Results of the switches of one road in one turn."""

    def __init__(self, road, pings, cpu, options=()):
        road.resume()
        try:
            self._ping(road, WARM_UP, cpu)
            began_s, waited_s = time.monotonic(), road.waited_s()
            times = self._ping(road, ["-i", "0.002", "-c", str(pings), *options], cpu)
            self.waited = (road.waited_s() - waited_s) / (time.monotonic() - began_s)
        finally:
            road.pause()
        if not times:
            raise Failed("%s: no ping was answered" % road.switch)
        self.times_us = times
        self.median_us, self.p99_us = statistics.median(times), p99(times)
        self.lost_percent = 100 * (1 - len(times) / pings)

    @staticmethod
    def _ping(road, options, cpu):
        """Returns the round-trip times in us. The output is read after the end, because reading would use the
        hosts' CPU."""
        path = road.path("pings")
        with open(path, "w", encoding="utf-8") as file:
            process = road.rooms.start(road.hosts[0], PING + options, [cpu], file)
            process.wait()
            road.rooms.stop(process)
        return [1000 * float(time) for time in re.findall(r"time=([\d.]+) ms", text_of(path))]


def turn_of(road, pings, cpu, options=()):
    """Returns an undisturbed turn, or the least disturbed of several. `options` are further options of ping."""
    turns = []
    while len(turns) < TRIES and all(turn.waited > WAITED_MOST for turn in turns):
        turns.append(Turn(road, pings, cpu, options))
    best = min(turns, key=lambda turn: turn.waited)
    best.set_aside = len(turns) - 1
    return best


def road_of(kind, rooms, name, folder, cpus, hops):
    """Creates a road, waits until pings pass it, and pauses it."""
    road = kind(rooms, "%s-%d" % (name, hops), folder, cpus, hops)

    def passes():
        try:
            return bool(rooms.run(road.hosts[0], PING + ["-c", "1"]))
        except Failed:
            return False

    wait_until("pings pass %s" % road.switch, passes, road.process)
    road.pause()
    return road


def write_figures(report, hops, turns):
    """Writes the figures of roads with `hops` switches. `turns` has the turns of each kind by its name, one
    per round."""
    over = "%d %s" % (hops, "switch" if hops == 1 else "switches")
    for ours, peers in PEERS.items():
        for peer in peers:
            values = ([turn.median_us for turn in turns[name]] for name in (ours, peer))
            report.against("RTT over %s, median" % over, "%s against %s" % (ours, peer), "us", *values)
    for name, each in turns.items():
        report.alone("RTT over %s, p99" % over, name, "us", [turn.p99_us for turn in each])
    report.alone("turns set aside over %s" % over, "all", "a turn", [turn.set_aside for each in turns.values() for turn in each])
    lost = {name: [turn.lost_percent for turn in each] for name, each in turns.items()}
    for name, each in lost.items():
        if any(each):
            report.alone("pings lost over %s" % over, name, "%", each)


def main():
    """Runs all rounds."""
    parser = program.parser_of(__doc__, 10, "rounds of each number of switches")
    parser.add_argument("--pings", type=int, default=300, help="pings per turn (300)")
    parser.add_argument("--hops", type=int, action="append", help="number of switches on the path; may be repeated")
    program.add_first(parser)
    parser.add_argument("--report", default=REPORT, help="file of figures (%s)" % os.path.relpath(REPORT))
    options = parser.parse_args()
    cpus = program.two_cpus()
    os.sched_setaffinity(0, cpus[:1])
    report, order = Report(options.report), random.Random(1)
    with program.ending():
        for hops in options.hops or HOPS:
            with tempfile.TemporaryDirectory() as folder, Rooms(options.first) as rooms:
                roads = {
                    name: road_of(kind, rooms, room, folder, cpus, hops) for name, (room, kind) in KINDS.items()
                }
                # The first turn differs from the later ones, so it is not counted.
                for road in roads.values():
                    Turn(road, options.pings, cpus[0])
                turns = {name: [] for name in roads}
                for _ in range(options.rounds):
                    for name in order.sample(list(roads), len(roads)):
                        turns[name].append(turn_of(roads[name], options.pings, cpus[0]))
                write_figures(report, hops, turns)


if __name__ == "__main__":
    main()
