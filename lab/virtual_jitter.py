#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the jitter of pings over one switch in virtual time: forwarding by a key of KeyFlow, by an empty flow
table, and by a table of 200,000 entries.

This is the experiment of figure 4 of the KeyFlow paper, as lab/jitter.py in real time. `shunt sim` runs the
worker's real code. It first measures the cost of each step of the worker in turns for all three switches, on
this machine. Then packets arrive at the same times at all three, and virtual time advances by these costs. So
other programs do not disturb the result. Rates are shares of the lowest capacity among the switches. Jitter is
the difference between the 99.9th percentile and the median of the round trips.

Each round measures the costs again. A run is repeated if other programs have disturbed its measurement: if the
costs do not add up to the real time, or a step occurred whose cost was not measured. Values are written to target/report/experiments/virtual_jitter.csv, and
figures to target/report/virtual_jitter.jsonl. The exit code is 1 if the jitter of KeyFlow is not below that of
both tables. Needs `make` before, but no privileges. Takes about 10 minutes.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

from report import ROOT, Report
from results import FOLDER, Results, write_about

SCENARIO = os.path.join(ROOT, "examples/sim/keyflow-jitter.toml")
REPORT = os.path.join(ROOT, "target/report/virtual_jitter.jsonl")
SHUNT = os.path.join(ROOT, "target/release/shunt")
# At lower rates, a run lasts longer than a second. Then the control thread changes rules for its housekeeping,
# and the cost of this step is not measured.
SHARES = [50, 80, 95]
KEY, TABLES = "KeyFlow", ["empty tables", "full tables"]
# The costs of the steps must add up to the real time of the measurement within this part.
AGREEMENT = 0.2
# Number of times that a run is tried.
ATTEMPTS = 3
COLUMNS = ["share_percent", "rate", "capacity", "kind", "round", "p50_us", "p99_us", "p999_us", "jitter_us", "agreement"]


class Failed(Exception):
    """The simulation failed, or its result cannot be used."""


def simulate(shunt, folder, share, seed):
    """Runs the scenario at a share of the capacity in percent. Returns the outcomes of all switches."""
    with open(SCENARIO, encoding="utf-8") as file:
        text, count = re.subn(r"^factor = \S+", "factor = %g" % (share / 100), file.read(), flags=re.M)
    if count != 1:
        raise Failed("%s must have one line that begins with `factor = `" % os.path.relpath(SCENARIO))
    path = os.path.join(folder, "jitter.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run([shunt, "sim", path, "--seed", str(seed), "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failed("shunt sim has failed")
    return {outcome["switch"]: outcome for outcome in json.loads(done.stdout)["switches"]}


class Unusable(Failed):
    """Other programs have disturbed the measurement of the costs."""


def outcomes_of(shunt, folder, share, seed):
    """Runs the scenario until its costs are usable. Returns the outcomes of all switches."""
    for attempt in range(1, ATTEMPTS + 1):
        outcomes = simulate(shunt, folder, share, seed)
        try:
            for name, outcome in outcomes.items():
                check(name, outcome)
        except Unusable as error:
            if attempt == ATTEMPTS:
                raise
            print("repeated: %s" % error, flush=True)
        else:
            break
    return outcomes


def check(name, outcome):
    """Raises an error if the outcome of a switch cannot be compared."""
    pings = outcome["traffic"][0]
    if pings["delivered"] != pings["offered"]:
        raise Failed("%s: %d of %d pings were lost" % (name, pings["offered"] - pings["delivered"], pings["offered"]))
    if unmeasured := outcome.get("unmeasured"):
        raise Unusable("%s: the costs of these steps were not measured: %s" % (name, ", ".join(unmeasured)))
    if abs(outcome["agreement"] - 1) > AGREEMENT:
        raise Unusable("%s: the costs are %.2f of real time; measure again without other load" % (name, outcome["agreement"]))


def measure(options, results):
    """Runs all rounds. Returns the jitter in us of each share and kind, one value per round."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            for share in options.share or SHARES:
                for name, outcome in outcomes_of(options.shunt, folder, share, number + 1).items():
                    latency = outcome["traffic"][0]["latency_ns"]
                    p50, p99, p999 = (latency[part] / 1000 for part in ("p50", "p99", "p99_9"))
                    found.setdefault((share, name), []).append(p999 - p50)
                    print("%d %%, %s: median %.2f us, jitter %.2f us" % (share, name, p50, p999 - p50), flush=True)
                    results.add(share, outcome["offered_pps"], outcome["capacity_pps"], name, number, p50, p99, p999, p999 - p50, outcome["agreement"])
    return found


def main():
    """Runs all rounds and writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6, help="rounds of each rate (6)")
    parser.add_argument("--share", type=int, action="append", choices=range(1, 101), metavar="1..100", help="rate in percent of the capacity; may be repeated")
    parser.add_argument("--shunt", default=SHUNT, help="program (%s)" % os.path.relpath(SHUNT))
    parser.add_argument("--report", default=REPORT, help="file of figures (%s)" % os.path.relpath(REPORT))
    parser.add_argument("--into", default=FOLDER, help="folder of the values (%s)" % os.path.relpath(FOLDER))
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    write_about(options.report)
    try:
        with Results("virtual_jitter", COLUMNS, options.into) as results:
            found = measure(options, results)
    except (Failed, OSError) as error:
        sys.exit("lab/virtual_jitter.py: %s" % error)
    report, is_below = Report(options.report), True
    for share in options.share or SHARES:
        for name in TABLES:
            ours, peers = found[share, KEY], found[share, name]
            is_below &= all(our < peer for our, peer in zip(ours, peers))
            report.against("jitter in virtual time at %d %% of the capacity" % share, "%s against %s" % (KEY, name), "us", ours, peers, at_most=1.0)
    sys.exit(0 if is_below else 1)


if __name__ == "__main__":
    main()
