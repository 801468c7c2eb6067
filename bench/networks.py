#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs large networks in virtual time and reports speed and memory.

The networks are fat trees and graphs of the Topology Zoo. This program plans them, and `shunt sim` runs each
plan. Each run must be correct and send the expected number of packets. It must deliver every packet whose
loss is not excused, and test every protection of the plan. The graphs are in ../shared/data/topo beside the
repository; without them, only trees are run. Figures are written to target/report/networks.jsonl. They are
equal in every run except for processor time (one thread) and memory. The largest runs take 3.2 GB.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "lab"))
# pylint: disable-next=wrong-import-position
from report import Report

REPORT = os.path.join(ROOT, "target/report/networks.jsonl")
GRAPHS = os.path.join(os.path.dirname(ROOT), "shared/data/topo")
SHUNT = os.environ.get("SHUNT", os.path.join(ROOT, "target/release/shunt"))
PYTHON = os.environ.get("PLAN_PYTHON", os.path.join(ROOT, "target/tools/os-ken/bin/python3"))
# Share of the links that must be protected. docs/adr/0030 states why the network Geant2012 cannot reach this
# share.
LINKS = 0.9
ALL = "[network.require]\ndelivered = 1.0\n"
# Packets must encounter every failure of a link or switch on their routes, so that every protection is
# tested.
TESTED = "[network.require]\nexercised = true\nprotected_links = %g\n"
FAILING = """delay = "1ms"
detection = "10ms"
[network.traffic]
packets = 1100
interval = "10ms"
[[network.failure]]
at = "50ms"
each = "link"
lasting = "50ms"
[[network.failure]]
at = "6500ms"
each = "node"
lasting = "50ms"
"""
RENUMBERED = """delay = "1ms"
[network.traffic]
packets = 200
interval = "1ms"
[network.renumber]
at = "20ms"
step = "60ms"
spread = "40ms"
"""


@dataclasses.dataclass(frozen=True)
class Case:
    """A plan and its simulation. `plan` has the arguments of the planner: a word that ends in .graphml is a
    graph, and OLD stands for the plan of the previous case."""

    name: str
    plan: tuple
    sent: int
    scenario: str = ""
    require: str = ALL
    fails: bool = False

    @property
    def graph(self):
        """Path of the graph's file, or None if the plan needs no graph."""
        return next((os.path.join(GRAPHS, word) for word in self.plan if word.endswith(".graphml")), None)


def sampled(pairs, paths=None):
    """Returns the scenario lines that draw this number of pairs."""
    return "[network.traffic]\nsample = %d\n%s" % (pairs, "paths = %d\n" % paths if paths else "")


def tree(planner, k, *more):
    """Returns the planner's arguments for a fat tree."""
    return (planner, "--k", str(k), *more)


GEANT = ("keyflow", "Geant2012.graphml", "--protect")
CASES = (
    Case("Tag-and-Forward k = 4, all pairs on all paths", tree("fat-tree", 4), 848),
    Case("Tag-and-Forward k = 6, all pairs on all paths", tree("fat-tree", 6), 22_950),
    Case("KeyFlow k = 4, all pairs", tree("keyflow", 4), 240),
    Case("KeyFlow k = 6, all pairs", tree("keyflow", 6), 2_862),
    Case("KeyFlow Abilene, all pairs", ("keyflow", "Abilene.graphml"), 110),
    Case("polynomials Abilene, all pairs", ("polka", "Abilene.graphml"), 110),
    Case("KeyFlow Geant2012, all pairs", ("keyflow", "Geant2012.graphml"), 1_560),
    Case("KeyFlow Kdl, 20,000 pairs", ("keyflow", "Kdl.graphml"), 20_000, sampled(20_000)),
    Case("Tag-and-Forward k = 24, 20,000 pairs on 4 paths", tree("fat-tree", 24), 79_790, sampled(20_000, 4)),
    Case("KeyFlow k = 48, 27,648 pairs", tree("keyflow", 48), 27_648, sampled(27_648)),
    Case("wide Tag-and-Forward k = 48, 27,648 pairs on 4 paths", tree("fat-tree", 48, "--wide"), 110_514, sampled(27_648, 4)),
    Case("KeyFlow Geant2012, each link and each switch fails", GEANT, 1_716_000, FAILING, TESTED % 0.85, fails=True),
    Case("KeyFlow Geant2012, renumbered under load", (*GEANT, "--renumber", "OLD"), 312_000, RENUMBERED, ALL + "exercised = true\n"),
)


class Failed(Exception):
    """A run did not give the required result."""


def made(case, folder):
    """Writes the plan to plan.json. The previous plan becomes old.json."""
    plan, old = os.path.join(folder, "plan.json"), os.path.join(folder, "old.json")
    if os.path.exists(plan):
        os.replace(plan, old)
    words = [case.graph if word.endswith(".graphml") else old if word == "OLD" else word for word in case.plan]
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "controller/src"))
    command = [PYTHON, "-m", "shunt_controller.plan", *words, "--json", plan]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed("%s: no plan: %s" % (case.name, done.stderr.strip()))


def run(case, folder):
    """Runs a case. Returns the report of `shunt sim`, the processor time in seconds, and the peak memory in
    MB."""
    scenario, out = os.path.join(folder, "network.toml"), os.path.join(folder, "run.json")
    with open(scenario, "w", encoding="utf-8") as file:
        file.write('[network]\nplan = "plan.json"\n%s%s' % (case.scenario, case.require))
    with open(out, "w", encoding="utf-8") as file:
        # wait4 reports the resources of this child process. getrusage would report the maximum over all child
        # processes.
        with subprocess.Popen([SHUNT, "sim", scenario, "--json"], stdout=file) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Failed("%s: shunt sim failed; its output above states the reason" % case.name)
    with open(out, encoding="utf-8") as file:
        found = json.load(file)
    if not found["right"] or found["sent"] != case.sent:
        raise Failed("%s: %d packets were sent, not %d" % (case.name, found["sent"], case.sent))
    return found, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def figures(case, found, report):
    """Writes the figures of a run."""
    if case.fails:
        met = {one["failure"]: one for one in found["met"]}["protected hop, detected"]
        report.exact("lost of protected packets", case.name, "packets", met["lost"], "<= 0", met["lost"] == 0)
        report.exact("protected packets", case.name, "packets", met["delivered"] + met["lost"])
        links = found["protection"]["links"]
        share = links["protected"] / links["used"]
        report.exact("links protected of those used", case.name, "share", share, ">= %g" % LINKS, share >= LINKS)
        for part, counts in found["protection"].items():
            for what in ("used", "protected", "exercised"):
                report.exact("%s, %s" % (part, what), case.name, part, counts[what])
    else:
        report.exact("delivered", case.name, "packets", found["delivered"], ">= %d" % case.sent, found["lost"] == 0)
        report.exact("different paths", case.name, "paths", found["paths"])
    if "delivered_by" in found:
        for epoch in ("epoch_0", "epoch_1"):
            report.exact("delivered by %s" % epoch.replace("_", " "), case.name, "packets", found["delivered_by"][epoch])
    most, budget = found["hops"]["max"], found["hop_budget"]["max"]
    report.exact("links crossed, most", case.name, "links", most, "<= %d" % budget, most <= budget)
    bits = found["header"]
    report.exact("header on links", case.name, "bits", bits["on_links_bits"]["max"])
    report.exact("key or tag, mean", case.name, "bits", bits["key_bits"]["mean"])
    report.exact("key or tag, most", case.name, "bits", bits["key_bits"]["max"])
    report.exact("entries of a switch, mean", case.name, "entries", found["state"]["entries"]["mean"])
    report.exact("switches without entries", case.name, "switches", found["state"]["without_entries"])


def main():
    """Makes plans, runs them and reports."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--case", default="", help="run only cases whose names contain this text, and the cases whose plans they need")
    options = parser.parse_args()
    report, left_out = Report(REPORT), []
    try:
        with tempfile.TemporaryDirectory(prefix="shunt-networks-") as folder:
            for place, case in enumerate(CASES):
                needed = [case, *(later for later in CASES[place + 1 : place + 2] if "OLD" in later.plan)]
                if not any(options.case in one.name for one in needed):
                    continue
                if case.graph and not os.path.exists(case.graph):
                    left_out.append(case.name)
                    continue
                made(case, folder)
                found, seconds, megabytes = run(case, folder)
                figures(case, found, report)
                report.alone("processor time", case.name, "s", [seconds])
                report.alone("memory, most", case.name, "MB", [megabytes])
    except Failed as failed:
        sys.exit("bench/networks.py: %s" % failed)
    except FileNotFoundError as error:
        makes = {PYTHON: "scripts/setup.sh networks", SHUNT: "make"}
        sys.exit("bench/networks.py: %s is missing: run %s" % (error.filename, makes.get(error.filename, "make networks")))
    except KeyboardInterrupt:
        sys.exit(130)
    if left_out:
        print("skipped, because there are no graphs in %s: %s" % (GRAPHS, "; ".join(left_out)))


if __name__ == "__main__":
    main()
