#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a fat tree of k = 4 (20 switches) between two hosts in different pods: Tag-and-Forward, Shunt's tables
and Open vSwitch. The tables of all switches are filled to 20 % of 200,000 entries.

    round trips      frames of 64 to 1,024 bytes, and packets that exceed the MTU of the hosts
    packets/s        one host sends 64-byte frames of 8,192 UDP flows to the other as fast as it can

These are the experiments of figures 2a and 2b of the Tag-and-Forward paper. With Tag-and-Forward, edge
switches push and pop tags, select groups spread the flows over all paths between the pods, and the other
switches compute the output port from the tag. The switches of a kind are datapaths or bridges of one process.
With tables, each switch has an entry for each host.

The kinds are measured in turns while the others are paused, as in lab/rtt.py. Figures are written to
target/report/fat_tree.jsonl. Needs root, two CPUs, `make` before, and the programs that `scripts/setup.sh lab`
installs. With all options at their defaults, it takes about 30 minutes.
"""

import os
import random
import statistics
import sys
import tempfile
from collections import deque

import program
from report import ROOT, Report

# Starts this program again with the Python of the planners.
from stateless import TF, config_lines, ends_of, plan, sections_of  # isort: skip
from keyflow import fillers
from results import write_about
from rooms import Failed, Rooms, wait_until
from rtt import PING, turn_of
from switches import MTU, Datapaths, OpenVswitch, Road, mac

REPORT = os.path.join(ROOT, "target/report/fat_tree.jsonl")
# Sizes of frames in bytes, or of packets that exceed the MTU.
SIZES = [64, 128, 256, 512, 1024, 2048, 4096]
HOST_MTU = 1500
FILL_PERCENT = 20
FLOWS = 8192
# Headers of Ethernet, IP and ICMP, and the checksum of the frame.
OVERHEAD = 14 + 20 + 8 + 4


class Tree(Road):
    """The fat tree with two hosts. A subclass is a kind of switch."""

    def __init__(self, rooms, name, folder, cpus):  # pylint: disable=super-init-not-called
        self.rooms, self.cpus = rooms, cpus
        self.folder = os.path.join(folder, name)
        os.mkdir(self.folder)
        self.switch, self.hosts, self.process = name, [name + "-h1", name + "-h2"], None
        self.plan = plan(self.folder, "fat-tree", "--k", "4")
        self.names = [switch["name"] for switch in self.plan["switches"]]
        self.ends = [self.plan["hosts"][0], self.plan["hosts"][-1]]
        rooms.make(name)
        self.ports = {switch: {} for switch in self.names}
        self.peers = {switch: {} for switch in self.names}
        for a, a_port, b, b_port in ends_of(self.plan["network"]):
            if a in self.ports and b in self.ports:
                self._link(a, a_port, b, b_port)
        for number, (host, end) in enumerate(zip(self.hosts, self.ends), 1):
            rooms.make(host)
            device = self._device(end["switch"], end["port"])
            rooms.cable(name, device, host, "eth0")
            rooms.ip(host, "link set eth0 address %s" % mac(number))
            rooms.ip(host, "address add 10.0.0.%d/24 dev eth0" % number)
            rooms.ip(host, "neigh add 10.0.0.%d lladdr %s dev eth0 nud permanent" % (3 - number, mac(3 - number)))
            # Open vSwitch in userspace does not complete checksums that a host leaves to its device.
            rooms.run(host, ["ethtool", "-K", "eth0", "tx", "off"])
        self.begin()

    def _device(self, switch, port):
        device = "n%dp%d" % (self.names.index(switch), port)
        self.ports[switch][port] = device
        return device

    def _link(self, a, a_port, b, b_port):
        devices = self._device(a, a_port), self._device(b, b_port)
        self.rooms.cable(self.switch, devices[0], self.switch, devices[1])
        for device in devices:
            self.rooms.ip(self.switch, "link set %s mtu %d" % (device, MTU))
        self.peers[a][b], self.peers[b][a] = a_port, b_port

    def towards(self, end):
        """Returns the port of each switch on a shortest path to a host."""
        ports, queue = {end["switch"]: end["port"]}, deque([end["switch"]])
        while queue:
            switch = queue.popleft()
            for peer in self.peers[switch]:
                if peer not in ports:
                    ports[peer] = self.peers[peer][switch]
                    queue.append(peer)
        return ports

    def table(self, switch):
        """Returns entries that forward to both hosts, and entries that fill the table."""
        ports = [self.towards(end)[switch] for end in self.ends]
        lines = ("dl_dst=%s,actions=output:%d\n" % (mac(number), port) for number, port in enumerate(ports, 1))
        return "".join(lines) + fillers(FILL_PERCENT, *sorted(self.ports[switch])[:2])


class Tables(Tree, Datapaths):
    """Shunt's tables."""

    def datapaths(self):
        return [(switch, sorted(self.ports[switch].items()), self.table(switch), []) for switch in self.names]


class TagAndForward(Tree, Datapaths):
    """Tag-and-Forward."""

    def datapaths(self):
        sections = sections_of(self.plan)
        return [
            (switch, sorted(self.ports[switch].items()), self.rules(switch), ["[datapath.stateless]", *config_lines(sections[switch])])
            for switch in self.names
        ]

    def rules(self, switch):
        """Returns the lines of a switch's flow file."""
        filling = fillers(FILL_PERCENT, *sorted(self.ports[switch])[:2])
        for number, end in enumerate(self.ends, 1):
            if end["switch"] == switch:
                return self.edge(number, end, self.ends[2 - number]) + filling
        return "priority=0,actions=drop\n" + filling

    def edge(self, number, own, other):
        """Returns the entries of an edge switch with a host, and the group that spreads flows to the other."""
        (switch,) = (switch for switch in self.plan["switches"] if switch["name"] == own["switch"])
        buckets = "".join(
            ",bucket=actions=push_tf(0,%d,%d),output:%d" % (up, other["gate"], uplink)
            for uplink, ups in zip(switch["uplinks"], self.plan["ups"])
            for up in ups
        )
        return (
            "group group_id=1,type=select%s\n" % buckets
            + "in_port=%d,dl_dst=%s,actions=group:1\n" % (own["port"], mac(3 - number))
            + "dl_type=0x%x,actions=pop_tf,goto_table:1\n" % TF
            + "table=1,dl_dst=%s,actions=output:%d\n" % (mac(number), own["port"])
        )


class TagAndForwardXdp(TagAndForward):
    """Tag-and-Forward with af_xdp ports and a worker that never sleeps."""

    driver, idle = "af_xdp", "busy"


class Ovs(Tree, OpenVswitch):
    """Open vSwitch with the kernel's sockets."""

    def bridges(self):
        return [("br-" + switch, sorted(self.ports[switch].items()), self.table(switch)) for switch in self.names]


class OvsXdp(Ovs):
    """Open vSwitch with afxdp ports, which a thread on the forwarding CPU polls."""

    thread = "pmd"
    port_type, setting = "afxdp", "other_config:pmd-cpu-mask=0x%x"


KINDS = {
    "Tag-and-Forward": ("tf", TagAndForward),
    "Tag-and-Forward, af_xdp, busy": ("tf-xdp", TagAndForwardXdp),
    "tables": ("tables", Tables),
    "Open vSwitch": ("ovs", Ovs),
    "Open vSwitch, afxdp": ("ovs-xdp", OvsXdp),
}
PAIRS = [
    ("Tag-and-Forward", "Open vSwitch"),
    ("Tag-and-Forward, af_xdp, busy", "Open vSwitch, afxdp"),
    ("Tag-and-Forward", "tables"),
]


def bar_of(peer, size):
    """Returns the maximum ratio of round trips, or None."""
    if peer == "Open vSwitch, afxdp":
        return 1.0
    if peer != "Open vSwitch":
        return None
    return 0.35 if size <= 1024 else 0.4


def road_of(kind, rooms, name, folder, cpus):
    """Creates a tree, waits until pings pass it, and pauses it."""
    road = kind(rooms, name, folder, cpus)

    def passes():
        try:
            return bool(rooms.run(road.hosts[0], PING + ["-c", "1"]))
        except Failed:
            return False

    wait_until("pings pass %s" % name, passes, road.process)
    road.pause()
    return road


def received_per_s(road, cpu, seconds):
    """Returns how many packets/s of many flows reach the second host."""
    road.resume()
    try:
        command = [sys.executable, os.path.join(ROOT, "lab/send_flows.py"), "eth0", mac(2), str(FLOWS), str(seconds)]
        sender = road.rooms.start(road.hosts[0], command, [cpu])
        before = road.packets(1, "rx")
        status = sender.wait()
        after = road.packets(1, "rx")
        road.rooms.stop(sender)
    finally:
        road.pause()
    if status or after == before:
        raise Failed("%s: no packet of the flows arrived" % road.switch)
    return (after - before) / seconds


def measure(report, options, cpus, roads):
    """Measures all kinds in turns, and writes their figures."""
    order = random.Random(1)
    for size in options.size or SIZES:
        ping = ["-s", str(size - OVERHEAD)]
        turns = {name: [] for name in roads}
        for number in range(options.rounds + 1):
            for name in order.sample(list(roads), len(roads)):
                turn = turn_of(roads[name], options.pings, cpus[0], ping)
                # The first turn differs from the later ones, so it is not counted.
                if number:
                    turns[name].append(turn)
        what = "frames" if size <= HOST_MTU else "packets above the MTU"
        for ours, peer in PAIRS:
            means = ([statistics.mean(turn.times_us) for turn in turns[name]] for name in (ours, peer))
            figure = "fat tree RTT, %s of %d bytes" % (what, size)
            report.against(figure, "%s against %s" % (ours, peer), "us", *means, at_most=bar_of(peer, size))
        for name, each in turns.items():
            lost = [turn.lost_percent for turn in each]
            if any(lost):
                report.alone("fat tree pings lost, %s of %d bytes" % (what, size), name, "%", lost)
    rates = {name: [] for name in roads}
    for _ in range(options.rounds):
        for name in order.sample(list(roads), len(roads)):
            rates[name].append(received_per_s(roads[name], cpus[0], options.seconds))
    for ours, peer in PAIRS:
        least = 2 if peer == "Open vSwitch" else None
        case = "%s against %s" % (ours, peer)
        report.against("fat tree packets/s, %d flows" % FLOWS, case, "packets/s", rates[ours], rates[peer], at_least=least)


def main():
    """Runs all rounds."""
    parser = program.parser_of(__doc__, 8, "rounds of each measurement")
    parser.add_argument("--pings", type=int, default=300, help="pings per turn (300)")
    parser.add_argument("--seconds", type=float, default=3, help="time for which flows are sent, in seconds (3)")
    parser.add_argument("--size", type=int, action="append", choices=range(64, 9001), metavar="64..9000", help="size of the frames in bytes; may be repeated")
    program.add_first(parser)
    parser.add_argument("--report", default=REPORT, help="file of figures (%s)" % os.path.relpath(REPORT))
    options = parser.parse_args()
    cpus = program.two_cpus()
    os.sched_setaffinity(0, cpus[:1])
    write_about(options.report)
    with program.ending():
        with tempfile.TemporaryDirectory() as folder, Rooms(options.first) as rooms:
            roads = {name: road_of(kind, rooms, room, folder, cpus) for name, (room, kind) in KINDS.items()}
            measure(Report(options.report), options, cpus, roads)


if __name__ == "__main__":
    main()
