#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mininet with Shunt as its switch: who reaches whom, and iperf with default offloads; writes target/report/mininet.jsonl.

Needs root, `make` before, and what `scripts/setup.sh lab` installs. On a shared machine the figures tell as much about
the machine's hour as about the code.
"""

import json
import os
import re
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REPORT = os.path.join(ROOT, "target/report/mininet.jsonl")
TOPOLOGIES = ["single,3", "tree,2"]
# The lowest and highest of six are the ends of a 97 % interval of the median.
RUNS = 6
TIMEOUT_S = 120


def mininet(topology, test):
    """What `mn` prints in this test."""
    command = [os.path.join(ROOT, "lab/mn.sh"), "--topo", topology, "--test", test]
    output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S, text=True)
    if output.returncode or "*** Results" not in output.stdout:
        sys.exit(output.stdout + "\nlab/mininet.py: mn --topo %s --test %s gave no result" % (topology, test))
    return output.stdout


def results(pattern, output):
    """What the pattern finds in the output, once a run."""
    found = re.findall(pattern, output)
    if len(found) != RUNS:
        sys.exit("%s\nlab/mininet.py: %d results, not %d" % (output, len(found), RUNS))
    return found


def write(figure, case, unit, values):
    """Adds a figure without a peer to the report, and prints it."""
    median, low, high = statistics.median(values), min(values), max(values)
    print("%s, %s: %.3g %s (%.3g to %.3g in %d runs)" % (figure, case, median, unit, low, high, len(values)))
    line = {"figure": figure, "case": case, "ours": median, "peer": None, "unit": unit, "ratio": None}
    line.update({"low": low, "high": high, "runs": len(values), "bar": None, "verdict": None})
    os.makedirs(os.path.dirname(REPORT), exist_ok=True)
    with open(REPORT, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def main():
    """All runs."""
    for topology in TOPOLOGIES:
        pings = results(r"Results: .*?\((\d+)/(\d+) received\)", mininet(topology, "+".join(["pingall"] * RUNS)))
        lost = [100 * (1 - int(received) / int(sent)) for received, sent in pings]
        write("Mininet pingall", topology, "% lost", lost)
    for topology in TOPOLOGIES:
        # The server's figure comes first: it counts what arrived.
        speeds = results(r"Results: \['([\d.]+) ([GM])bits/sec'", mininet(topology, "+".join(["iperf"] * RUNS)))
        gbits = [float(number) / (1 if prefix == "G" else 1000) for number, prefix in speeds]
        write("Mininet iperf, TCP, default offloads", topology, "Gbit/s", gbits)


if __name__ == "__main__":
    main()
