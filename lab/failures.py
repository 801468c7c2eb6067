#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what running networks lose when links, controllers and switches fail.

Networks are the fat tree of k = 4 with Tag-and-Forward, and a graph with KeyFlow, with and without protection.
All switches are datapaths of one process. Two hosts exchange pings, 50 per second. In each round, a link fails
that the pings use, and works again; the controller restarts; and the process of the switches is killed and
starts again without state.

Needs root, `make` before, and the packages that `scripts/setup.sh lab` installs.
"""

import os
import sys
import tempfile
import time

import program
from live import Live, Stream, planned, since
from report import ROOT, Report
from results import write_about
from rooms import Failed, Rooms, wait_until
from switches import mac

REPORT = os.path.join(ROOT, "target/report/failures.jsonl")
GRAPH = os.path.join(ROOT, "examples/networks/abilene.json")
# Longest time without answers after a failure, and until restarted switches forward.
BACK_S = 1.0
# Settings of a case: the network, the arguments of the controller, and whether links are protected.
CASES = {
    "Tag-and-Forward k = 4": (4, ["tag-and-forward"], False),
    "KeyFlow Abilene": (GRAPH, ["keyflow"], False),
    "KeyFlow Abilene, protected": (GRAPH, ["keyflow", "--protect"], True),
}


class Case:
    """A network with a running controller."""

    def __init__(self, rooms, folder, network, arguments):
        links, places = planned(network)
        if places:
            hosts = [places[0], places[-1]]
        else:
            # Hosts are at the first switch and at the one that is farthest from it.
            hosts = [(switch, 100) for switch in (1, farthest(links))]
        self.live, self.arguments = Live(rooms, folder, links, hosts), [*arguments, "--lldp-period", "1"]
        self.live.start_switches()
        self.start_controller()
        wait_until("hosts reach each other", self.passes, self.live.controller, 60)
        for host, other in ((1, 2), (2, 1)):
            # Hosts repeat ARP requests only once per second, which would be measured as well.
            entry = "neigh replace 10.0.0.%d lladdr %s dev eth0 nud permanent" % (other, mac(other))
            rooms.ip("h%d" % host, entry)

    def start_controller(self):
        """Starts the controller, and waits until the network is planned."""
        self.live.start_controller(*self.arguments)
        self.live.wait_for("all %d switches are as planned" % len(self.live.ports))

    def passes(self, count=1):
        """Returns whether pings pass between the hosts without loss."""
        command = ["ping", "-q", "-c", str(count), "-i", "0.02", "-W", "1", "10.0.0.2"]
        try:
            return " 0% packet loss" in self.live.rooms.run("h1", command)
        except Failed:
            return False

    def sent(self):
        """Returns the number of packets that each device has sent."""
        found = {}
        for line in self.live.rooms.run("sw", ["cat", "/proc/net/dev"]).splitlines()[2:]:
            name, _, counters = line.partition(":")
            found[name.strip()] = int(counters.split()[8])
        return found

    def used_link(self):
        """Returns a device that sends the pings, at the link of their path that is farthest from the hosts."""
        before = self.sent()
        if not self.passes(40):
            raise Failed("pings are lost without a failure")
        after = self.sent()
        near = {switch for switch, _ in self.live.hosts}
        ends = {"s%dp%d" % (switch, port): {a, b} for a, a_port, b, b_port in self.live.links for switch, port in ((a, a_port), (b, b_port))}
        used = [device for device in ends if after[device] - before[device] >= 40]
        if not used:
            raise Failed("no link carries all pings")
        return min(used, key=lambda device: (len(ends[device] & near), device))

    def fail_link(self):
        """Lets a link fail under traffic. Returns the number of lost pings and the longest gap in seconds."""
        device, stream = self.used_link(), Stream(self.live, 1, 2)
        time.sleep(0.5)
        lost_links, found_links = self.live.count("link lost"), self.live.count("link found")
        self.live.set_link(device, False)
        self.live.wait_for("link lost", lost_links + 1)
        time.sleep(2)
        result = stream.end()
        self.live.set_link(device, True)
        self.live.wait_for("link found", found_links + 1)
        # What is no longer needed is removed 1 s after the last change.
        time.sleep(3)
        wait_until("pings pass after the link works again", lambda: self.passes(40), self.live.controller)
        return result

    def restart_controller(self):
        """Restarts the controller under traffic. Returns the number of lost pings and the longest gap."""
        stream = Stream(self.live, 1, 2)
        time.sleep(0.3)
        self.live.stop_controller()
        self.start_controller()
        time.sleep(0.5)
        return stream.end()

    def restart_switches(self):
        """Kills the process of the switches and starts it without state. Returns the time in seconds from when
        all switches are ready until a ping is answered."""
        self.live.kill_switches()
        self.live.start_switches()
        begin = time.monotonic()
        wait_until("pings pass after the restart of the switches", self.answers, self.live.controller)
        return since(begin)

    def answers(self):
        """Returns whether one ping is answered within 0.1 s."""
        try:
            self.live.rooms.run("h1", ["ping", "-q", "-c", "1", "-W", "0.1", "10.0.0.2"])
            return True
        except Failed:
            return False


def farthest(links):
    """Returns a switch with the greatest distance from switch 1."""
    peers = {}
    for a, _, b, _ in links:
        peers.setdefault(a, []).append(b)
        peers.setdefault(b, []).append(a)
    order = [1]
    for switch in order:
        order += [peer for peer in dict.fromkeys(peers[switch]) if peer not in order]
    return order[-1]


def measure(name, rounds, report):
    """Runs a case. Returns whether all figures clear their bars."""
    network, arguments, is_protected = CASES[name]
    links, restarts, back = [], [], []
    with tempfile.TemporaryDirectory() as folder, Rooms() as rooms:
        case = Case(rooms, folder, network, arguments)
        for _ in range(rounds):
            links.append(case.fail_link())
            restarts.append(case.restart_controller())
            back.append(case.restart_switches())
            wait_until("pings pass", lambda: case.passes(40), case.live.controller)
    report.alone("pings lost when a link fails, of 50 per second", name, "pings", [lost for lost, _ in links])
    gap_s = max(gap for _, gap in links)
    most_lost = max(lost for lost, _ in restarts)
    verdicts = [gap_s < BACK_S, most_lost == 0, max(back) < BACK_S]
    report.exact("longest time without answers when a link fails", name, "s", round(gap_s, 3), "< %g" % BACK_S, verdicts[0])
    report.exact("pings lost when the controller restarts, most", name, "pings", most_lost, "<= 0", verdicts[1])
    report.exact("time until restarted switches forward, most", name, "s", round(max(back), 3), "< %g" % BACK_S, verdicts[2])
    if is_protected:
        # A switch sends packets around a failed link as soon as it has detected the failure.
        report.alone("longest time without answers when a protected link fails", name, "s", [gap for _, gap in links])
    return all(verdicts)


def main():
    """Runs all cases. The exit code is 1 if a figure misses its bar."""
    parser = program.parser_of(__doc__, 6, "number of rounds")
    parser.add_argument("--case", default="", help="run only cases whose names contain this text")
    parser.add_argument("--report", default=REPORT, help="file of figures (%s)" % os.path.relpath(REPORT))
    options = parser.parse_args()
    if not any(options.case in name for name in CASES):
        parser.error("no case has %r in its name; cases are: %s" % (options.case, "; ".join(CASES)))
    write_about(options.report)
    report, results = Report(options.report), []
    with program.ending():
        for name in CASES:
            if options.case in name:
                results.append(measure(name, options.rounds, report))
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
