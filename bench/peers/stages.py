#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of table stages, as in the experiment of Sha et al. 2022, section 6.1.

The figures are those of the paper's figures 9 (a) and 11, with Shunt as the switch.

Each of 1 to 8 tables has the same 1,000 prefixes. A packet passes all tables, and the last one outputs it.
Packets have 64 to 1,024 bytes, including the frame check sequence, and belong to 1,000 flows. One core
forwards; four stages with 256 bytes are also measured with two cores. Figures are written to
target/report/stages.jsonl.

There is no peer. The paper's CPU forwarded 5.6 Mpps of 1,024 bytes with one 1.9 GHz core and a network card,
and 13.2 Mpps of 256 bytes with six cores.
"""

import argparse
import os
import random
import struct
import sys
import tempfile
import time

from machine import CONTROL_CPU, FORWARDING_CPU, ROOT, Failed, Pages, check, end_in_order
from rules import FAMILIES, SEED, UDP, RuleSet
from shunt import Shunt, without_ffp
from traffic import STATION, checksum, raw, write

sys.path.insert(0, os.path.join(ROOT, "lab"))
# pylint: disable-next=wrong-import-position
from report import Report

REPORT = os.path.join(ROOT, "target/report/stages.jsonl")
FIGURE = "LPM in each stage (paper: fig %s)"
STAGES, LENGTHS = range(1, 9), (64, 128, 256, 512, 1024)
FLOWS, BUFFERS, HUGEPAGES = 1000, 16_384, 256
CHECK_SEQUENCE, HEADERS = 4, 42
START_S, WINDOW_S = 0.5, 0.25
# One forwarding core, or both; with both, the control thread shares one of them.
ONE, TWO = (FORWARDING_CPU,), (FORWARDING_CPU, CONTROL_CPU)


def flows(routes, stages):
    """Returns the flows of all tables."""
    for stage in range(stages):
        action = "goto_table:%d" % (stage + 1) if stage + 1 < stages else "output:2"
        for value, length in routes:
            prefix = FAMILIES[4].text((value, length))
            yield "table=%d,priority=%d,ip,nw_dst=%s,actions=%s" % (stage, 1000 + length, prefix, action)
        yield "table=%d,priority=1,actions=drop" % stage


def packets(routes, length, draw):
    """Returns a packet of each flow."""
    for number in range(FLOWS):
        destination = FAMILIES[4].inside(draw, draw.choice(routes))
        payload = length - CHECK_SEQUENCE - HEADERS
        header = struct.pack("!BBHHHBBHII", 0x45, 0, 28 + payload, 0, 0, 64, UDP, 0, (10 << 24) + number, destination)
        header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
        datagram = struct.pack("!HHHH", 4000, 80, 8 + payload, 0) + bytes(payload)
        yield raw("02:00:00:00:00:01") + STATION + b"\x08\x00" + header + datagram


def measure(report, routes, case, options):
    """Measures one case: number of stages, packet length and cores."""
    stages, length, cpus = case
    with tempfile.TemporaryDirectory(prefix="shunt-stages-") as folder:
        capture = os.path.join(folder, "in.pcap")
        write(capture, packets(routes, length, random.Random(SEED)))
        lines, wanted = list(flows(routes, stages)), without_ffp(options.express)
        with Shunt(folder, lines, capture, wanted, BUFFERS, cpus) as switch:
            for worker in switch.workers:
                worker.go_first(len(cpus) == 1)
            time.sleep(START_S)
            found = [switch.shared_window(0, WINDOW_S) for _ in range(options.windows)]
    name = "%d stage%s, %d-byte packets, %d core%s"
    name %= (stages, "s" * (stages > 1), length, len(cpus), "s" * (len(cpus) > 1))
    report.alone(FIGURE % ("9" if cpus == ONE else "11"), name, "Mpps/CPU-s", [window.mpps for window in found])
    if stages == 4 and length == 256:
        report.alone(FIGURE % "11", name + ", by the clock", "Mpps", [window.packets_per_us for window in found])


def main():
    """Measures all cases."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--windows", type=int, default=9, help="windows per figure (9)")
    parser.add_argument("--express", choices=("on", "off"), default="off", help="Shunt's path records (off)")
    options = parser.parse_args()
    report = Report(REPORT)
    report.forget([FIGURE % "9", FIGURE % "11"])
    routes = RuleSet(FAMILIES[4], hard=True).routes
    cases = [(stages, length, ONE) for stages in STAGES for length in LENGTHS] + [(4, 256, TWO)]
    try:
        check()
        end_in_order()
        with Pages(HUGEPAGES):
            for case in cases:
                measure(report, routes, case, options)
    except Failed as failed:
        sys.exit("bench/peers/stages.py: %s" % failed)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
