#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures round trips of 64-byte frames over 1 to 10 switches in a row, with flow tables that are filled to 0,
25, 50, 75 or 100 % of 200,000 entries: KeyFlow, Shunt's tables and Open vSwitch.

This is the experiment of figure 3 of the KeyFlow paper. With KeyFlow, the first and the last switch use their
tables, and the switches between them compute the output port from the key. Switches of the same kind are
datapaths or bridges of one process. Each switch has the entries for the hosts, and entries for UDP flows of
other hosts, which have a higher priority. With KeyFlow, all switches have these entries, too.

The kinds are measured in turns with `ping -i 0.002` while the others are paused, as in lab/rtt.py. A round
gives the mean and the longest round trip of each kind, and ratios compare values of the same round. Further
pings of each turn give the longest round trip without those near a gap, in which another thread had the CPU of
the switches. Figures are written to target/report/keyflow.jsonl.

Needs root, two CPUs, `make` before, and the programs that `scripts/setup.sh lab` installs. With all options
at their defaults, it takes about 40 minutes.
"""

import json
import os
import random
import statistics
import tempfile

import program
from report import ROOT, Report

# Starts this program again with the Python of the planners.
from stateless import KEYFLOW, config_lines, plan, sections_of  # isort: skip
from lanes import unpreempted
from results import write_about
from rooms import Failed, Rooms
from rtt import turn_of, Turn, road_of
from switches import MAC_FLOWS, MTU, Datapaths, OpenVswitch, mac

REPORT = os.path.join(ROOT, "target/report/keyflow.jsonl")
HOPS = [1, 2, 3, 5, 10]
FILLS = [0, 25, 50, 75, 100]
# Number of entries of a full table.
FULL = 200_000
# Frames of 64 bytes: headers of 14, 20 and 8 bytes, 18 bytes of data, and the checksum.
SIZE = ["-s", "18"]


def fillers(percent, a, b):
    """Returns entries for UDP flows between hosts that send nothing, as lines of a flow file."""
    number = FULL * percent // 100
    line = "priority=40000,udp,in_port=%d,nw_src=10.%d.%d.1,nw_dst=10.%d.%d.2,tp_dst=%d,actions=output:%d\n"
    return "".join(
        line % (a, 64 + (n >> 8 & 63), n & 255, 128 + (n >> 8 & 63), n & 255, 1024 + (n >> 14), b) for n in range(number)
    )


class Chain(Datapaths):
    """Datapaths of one process in a row, whose entries forward by the hosts' MAC addresses."""

    fill = 0

    def datapaths(self):
        for (_, end), (begin, _) in zip(self.pairs, self.pairs[1:]):
            for device in (end, begin):
                self.rooms.ip(self.switch, "link set p%d mtu %d" % (device, MTU))
        filling = fillers(self.fill, 1, 2)
        return [
            ("s%d" % hop, [(1, "p%d" % a), (2, "p%d" % b)], self.rules(hop) + filling, self.stateless(hop))
            for hop, (a, b) in enumerate(self.pairs, 1)
        ]

    def rules(self, _hop):
        """Returns the lines of a switch's flow file, without the entries that fill the table."""
        return MAC_FLOWS % {"a": 1, "b": 2}

    def stateless(self, _hop):
        """Returns the configuration lines of a switch's stateless forwarding."""
        return []


class KeyFlow(Chain):
    """A chain whose first switch pushes a key that the last one pops."""

    def datapaths(self):
        hops = len(self.pairs)
        names = ["s%d" % hop for hop in range(1, hops + 1)]
        links = [{"a": a, "a_port": 2, "b": b, "b_port": 1} for a, b in zip(names, names[1:])]
        graph = self.write("path.json", json.dumps({"name": "path", "nodes": names, "links": links}))
        if hops > 1:
            planned = plan(self.folder, "keyflow", graph, "--width", "128")
            (self.plan,) = planned["plans"]
            self.sections = sections_of(planned)
        return super().datapaths()

    def stateless(self, hop):
        if len(self.pairs) == 1:
            return []
        return ["[datapath.stateless]", *config_lines(self.sections["s%d" % hop], MTU)]

    def rules(self, hop):
        hops = len(self.pairs)
        if hops == 1:
            return super().rules(hop)
        if hop not in (1, hops):
            return "priority=0,actions=drop\n"
        inner, outer, own, other = (2, 1, 1, 2) if hop == 1 else (1, 2, 2, 1)
        ends = ("s1", "s%d" % hops) if hop == 1 else ("s%d" % hops, "s1")
        (route,) = (route for route in self.plan["routes"] if (route["from"], route["to"]) == ends)
        (segment,) = route["segments"]
        push = "push_key(key=%s,width=%d,hops=%d)" % (segment["key"], self.plan["width_bits"], segment["hop_limit"])
        return (
            "in_port=%d,dl_dst=%s,actions=%s,output:%d\n" % (outer, mac(other), push, inner)
            + "dl_type=0x%x,actions=pop_key,goto_table:1\n" % KEYFLOW
            + "table=1,dl_dst=%s,actions=output:%d\n" % (mac(own), outer)
        )


class Ovs(OpenVswitch):
    """Open vSwitch with the kernel's sockets."""

    fill = 0

    def bridges(self):
        self.flows = MAC_FLOWS + fillers(self.fill, 1, 2)
        return super().bridges()


class OvsXdp(Ovs):
    """Open vSwitch with afxdp ports, which a thread on the forwarding CPU polls."""

    thread = "pmd"
    port_type, setting = "afxdp", "other_config:pmd-cpu-mask=0x%x"


class KeyFlowXdp(KeyFlow):
    """KeyFlow with af_xdp ports and a worker that never sleeps."""

    driver, idle = "af_xdp", "busy"


KINDS = {
    "KeyFlow": ("key", KeyFlow),
    "KeyFlow, af_xdp, busy": ("key-xdp", KeyFlowXdp),
    "tables": ("tables", Chain),
    "Open vSwitch": ("ovs", Ovs),
    "Open vSwitch, afxdp": ("ovs-xdp", OvsXdp),
}
INTERVAL_S = 0.002
# Compared kinds, and the maximum ratios of the mean and of the longest round trip over ten switches with
# tables that are 75 % full.
PAIRS = {
    ("KeyFlow", "Open vSwitch"): (0.4, 0.5),
    ("KeyFlow, af_xdp, busy", "Open vSwitch, afxdp"): (1.0, None),
    ("KeyFlow", "tables"): (None, None),
}


def longest_undisturbed(road, pings, cpu):
    """Returns the longest round trip in us of the pings that were not near a gap, or of all if there is none."""
    road.resume()
    try:
        times, whole = unpreempted(road, [cpu], pings, INTERVAL_S, SIZE)
    finally:
        road.pause()
    if not times:
        raise Failed("%s: no ping was answered" % road.switch)
    return max(whole or times), 100 * (1 - len(whole) / len(times))


def write_figures(report, hops, fill, turns):
    """Writes the figures of one number of switches. `turns` has the turns of each kind, one per round."""
    place = "%d %s, tables %d %% full" % (hops, "switch" if hops == 1 else "switches", fill)
    has_bar = (hops, fill) == (10, 75)
    for (ours, peer), (mean, longest) in PAIRS.items():
        case = "%s against %s" % (ours, peer)
        means = ([statistics.mean(turn.times_us) for turn in turns[name]] for name in (ours, peer))
        report.against("KeyFlow RTT over %s, mean" % place, case, "us", *means, at_most=mean if has_bar else None)
        most = ([max(turn.times_us) for turn in turns[name]] for name in (ours, peer))
        report.against("KeyFlow RTT over %s, longest" % place, case, "us", *most, at_most=longest if has_bar else None)
        most = ([turn.undisturbed_us for turn in turns[name]] for name in (ours, peer))
        report.against("KeyFlow RTT over %s, longest without gaps" % place, case, "us", *most, at_most=longest if has_bar else None)
    for name, each in turns.items():
        report.alone("KeyFlow pings near a gap over %s" % place, name, "%", [turn.near_gaps_percent for turn in each])
        lost = [turn.lost_percent for turn in each]
        if any(lost):
            report.alone("KeyFlow pings lost over %s" % place, name, "%", lost)


def measure(report, options, cpus, hops, fill, order):
    """Measures all kinds of switches in turns."""
    with tempfile.TemporaryDirectory() as folder, Rooms(options.first) as rooms:
        roads = {}
        for name, (room, kind) in KINDS.items():
            filled = type(kind.__name__, (kind,), {"fill": fill})
            roads[name] = road_of(filled, rooms, room, folder, cpus[:2], hops)
        # The first turn differs from the later ones, so it is not counted.
        for road in roads.values():
            Turn(road, options.pings, cpus[0], SIZE)
        turns = {name: [] for name in roads}
        for _ in range(options.rounds):
            for name in order.sample(list(roads), len(roads)):
                turn = turn_of(roads[name], options.pings, cpus[0], SIZE)
                turn.undisturbed_us, turn.near_gaps_percent = longest_undisturbed(roads[name], options.pings, cpus[0])
                turns[name].append(turn)
        write_figures(report, hops, fill, turns)


def main():
    """Runs all rounds."""
    parser = program.parser_of(__doc__, 8, "rounds of each number of switches and fill")
    parser.add_argument("--pings", type=int, default=300, help="pings per turn (300)")
    parser.add_argument("--hops", type=int, action="append", choices=range(1, 11), metavar="1..10", help="number of switches on the path; may be repeated")
    parser.add_argument("--fill", type=int, action="append", choices=range(101), metavar="0..100", help="filled part of the tables in percent; may be repeated")
    program.add_first(parser)
    parser.add_argument("--report", default=REPORT, help="file of figures (%s)" % os.path.relpath(REPORT))
    options = parser.parse_args()
    cpus = program.two_cpus()
    os.sched_setaffinity(0, cpus[:1])
    write_about(options.report)
    report, order = Report(options.report), random.Random(1)
    with program.ending():
        for fill in options.fill or FILLS:
            for hops in options.hops or HOPS:
                measure(report, options, cpus, hops, fill, order)


if __name__ == "__main__":
    main()
