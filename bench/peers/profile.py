#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles Shunt in the rows of the comparison: `profile.py --row TEXT`. Needs root and perf (linux-perf).

Samples the forwarding thread by CPU time and adds up the samples by module. Inlined code counts for the
module of the function that contains it.
"""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from machine import FORWARDING_CPU, Failed, Pages, check, end_in_order
from rows import full
from shunt import Shunt
from traffic import write

HUGEPAGES, SPARE_BUFFERS = 700, 16_384
START_S, WINDOW_S, SAMPLE_S, HERTZ = 4.0, 0.5, 4, 2000
LEAST_PERCENT = 1.0
# Crate and modules of a symbol such as `<pipeline::ffp::lut::Lut>::probe`.
MODULE = re.compile(r"([a-z_0-9]+(?:::[a-z_0-9]+){1,2})(?=::)")
LINE = re.compile(r"\s*([\d.]+)%\s+(\S+)\s+\[.\]\s+(.*)")


def module(program, symbol):
    """Returns the name under which a symbol is counted."""
    found = MODULE.search(symbol)
    return found[1] if found else symbol.split()[0] if program.startswith("shunt") else program


def profile(row, folder):
    """Samples Shunt in a row. Returns ns per packet, and percentages by module."""
    capture = os.path.join(folder, "in.pcap")
    packets = row.packets()
    write(capture, packets)
    lines = list(row.rules().lines(row.rewrites, ours=True))
    with Shunt(folder, lines, capture, row.ours, len(packets) + SPARE_BUFFERS) as switch:
        time.sleep(START_S)
        cost_ns = 1e3 / switch.window(0.0, WINDOW_S).mpps
        switch.go_on()
        data = os.path.join(folder, "perf.data")
        command = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HERTZ), "-t", str(switch.thread.tid), "-o", data]
        subprocess.run([*command, "--", "sleep", str(SAMPLE_S)], check=True)
        report = ["perf", "report", "-i", data, "--stdio", "--sort", "dso,symbol"]
        text = subprocess.run(report, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    shares = collections.Counter()
    for percent, program, symbol in LINE.findall(text):
        shares[module(program, symbol)] += float(percent)
    return cost_ns, shares


def main():
    """Profiles all selected rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--row", default="", help="profile only rows whose names contain this text")
    options = parser.parse_args()
    try:
        check()
        if not shutil.which("perf"):
            raise Failed("perf is missing: run apt-get install linux-perf")
        end_in_order()
        with Pages(HUGEPAGES):
            for row in (row for row in full() if options.row in row.name):
                with tempfile.TemporaryDirectory(prefix="shunt-profile-") as folder:
                    cost_ns, shares = profile(row, folder)
                print("%s: %.0f ns a packet on CPU %d" % (row.name, cost_ns, FORWARDING_CPU))
                for name, percent in shares.most_common():
                    if percent >= LEAST_PERCENT:
                        print("  %5.1f %%  %s" % (percent, name))
    except Failed as failed:
        sys.exit("bench/peers/profile.py: %s" % failed)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
