#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests Mininet with Shunt as its switch: reachability, and iperf with default offloads.

Writes target/report/mininet.jsonl. Needs root, `make` before, and the programs that `scripts/setup.sh lab`
installs. On a shared machine, the figures depend as much on its current load as on the code.
"""

import os
import re
import subprocess
import sys

from report import ROOT, Report

TOPOLOGIES = ["single,3", "tree,2"]
# The range of six values is a 97 % confidence interval of the median.
RUNS = 6
TIMEOUT_S = 120


def mininet(topology, test):
    """Returns the output of `mn` for this test."""
    command = [os.path.join(ROOT, "lab/mn.sh"), "--topo", topology, "--test", test]
    output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S, text=True)
    if output.returncode or "*** Results" not in output.stdout:
        sys.exit(output.stdout + "\nlab/mininet.py: mn --topo %s --test %s printed no result" % (topology, test))
    return output.stdout


def results(pattern, output):
    """Returns the matches of the pattern in the output, one per run."""
    found = re.findall(pattern, output)
    if len(found) != RUNS:
        sys.exit("%s\nlab/mininet.py: %d results, not %d" % (output, len(found), RUNS))
    return found


def main():
    """Runs all measurements."""
    report = Report(os.path.join(ROOT, "target/report/mininet.jsonl"))
    for topology in TOPOLOGIES:
        pings = results(r"Results: .*?\((\d+)/(\d+) received\)", mininet(topology, "+".join(["pingall"] * RUNS)))
        lost = [100 * (1 - int(received) / int(sent)) for received, sent in pings]
        report.alone("Mininet pingall", topology, "% lost", lost)
    for topology in TOPOLOGIES:
        # The first figure is the server's, which counts received data.
        speeds = results(r"Results: \['([\d.]+) ([GM])bits/sec'", mininet(topology, "+".join(["iperf"] * RUNS)))
        gbits = [float(number) / (1 if prefix == "G" else 1000) for number, prefix in speeds]
        report.alone("Mininet iperf, TCP, default offloads", topology, "Gbit/s", gbits)


if __name__ == "__main__":
    main()
