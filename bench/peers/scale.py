#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the scaling from one to two workers with that of dpdk-testpmd with one and two cores.

Both sides forward by destination MAC address. They read the same 1,000 flows from the same capture through
the same driver, with one queue per core. Four programs run: each side with one core and with two. One of them
forwards at a time, while the others are paused. A round gives each side a ratio: the packets per CPU-second
of a core while two cores forward, divided by the same figure while one core forwards. The figure compares the
ratios of both sides. Figures are written to target/report/scale.jsonl.
"""

import argparse
import contextlib
import os
import random
import sys
import tempfile
import time

from machine import CONTROL_CPU, FORWARDING_CPU, ROOT, Failed, Pages, check, end_in_order
from rules import MacTable
from shunt import Shunt, without_ffp
from testpmd import Testpmd
from traffic import to_stations, write

sys.path.insert(0, os.path.join(ROOT, "lab"))
# pylint: disable-next=wrong-import-position
from report import Report

REPORT = os.path.join(ROOT, "target/report/scale.jsonl")
FIGURE = "two workers against one"
STATIONS, BUFFERS, HUGEPAGES = 1000, 16_384, 512
WARM_UP_S, WINDOW_S = 0.1, 0.3
# With two forwarding cores, the control threads share one of them.
ONE, TWO = (FORWARDING_CPU,), (FORWARDING_CPU, CONTROL_CPU)
# Minimum ratio of Shunt's scaling to that of testpmd.
BAR = 0.92


def rounds(sides, count, lot):
    """Measures a window of each side per round, in random order. Returns millions of packets per CPU-second.
    """
    for _ in range(count):
        order = list(sides)
        lot.shuffle(order)
        yield {name: sides[name].shared_window(WARM_UP_S, WINDOW_S).mpps for name in order}


def main():
    """Measures and writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=25, help="windows of each program (25)")
    parser.add_argument("--express", choices=("on", "off"), default="off", help="Shunt's path records (off)")
    options = parser.parse_args()
    table = MacTable(STATIONS)
    lines = list(table.lines(False, ours=True))
    wanted = without_ffp(options.express)
    try:
        check()
        end_in_order()
        with Pages(HUGEPAGES), tempfile.TemporaryDirectory(prefix="shunt-scale-") as folder, contextlib.ExitStack() as stack:
            capture, sides = os.path.join(folder, "in.pcap"), {}
            write(capture, to_stations(table))
            for cpus in (ONE, TWO):
                own = os.path.join(folder, str(len(cpus)))
                os.mkdir(own)
                sides["ours", len(cpus)] = stack.enter_context(Shunt(own, lines, capture, wanted, BUFFERS, cpus))
                sides["ours", len(cpus)].pause()
                sides["peer", len(cpus)] = stack.enter_context(Testpmd(own, capture, BUFFERS, cpus))
                sides["peer", len(cpus)].pause()
            time.sleep(WARM_UP_S)
            found = list(rounds(sides, options.rounds, random.Random(1)))
    except Failed as failed:
        sys.exit("bench/peers/scale.py: %s" % failed)
    except KeyboardInterrupt:
        sys.exit(130)
    report = Report(REPORT)
    report.forget([FIGURE])
    for name, label in (("ours", "Shunt"), ("peer", "testpmd")):
        for count in (1, 2):
            case = "%s, %d core%s" % (label, count, "s" * (count > 1))
            report.alone(FIGURE, case, "Mpps/CPU-s", [each[name, count] for each in found])
    kept = {name: [each[name, 2] / each[name, 1] for each in found] for name in ("ours", "peer")}
    case = "L2 by destination MAC, %d flows: kept of a core's speed, against testpmd macswap" % STATIONS
    report.against(FIGURE, case, "of one", kept["ours"], kept["peer"], at_least=BAR)


if __name__ == "__main__":
    main()
