#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks protected KeyFlow plans by failing each link and each switch of many graphs in `shunt sim`.

A guard is the protection of a hop against the failure of its next link or switch. A plan must be made within
ten minutes, and all of its guards must hold: `plan check` walks the failures that they cover, and in `shunt
sim` no packet of a sample of pairs may be lost at a guarded hop after the failure is detected. Some graphs
were planned before waypoints could send packets back; at least 95 % of the hops protected then must be
protected now. A graph that cannot be planned is listed with the reason. Figures are written to
target/report/protected.jsonl.

Graphs come from the folder --graphs (default: ../shared/data/topo beside the repository), and from a
generator of odd graphs (random graphs of unusual shapes). --quick runs only small odd graphs.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "lab"))
# pylint: disable-next=wrong-import-position
from report import Report

REPORT = os.path.join(ROOT, "target/report/protected.jsonl")
GRAPHS = os.path.join(os.path.dirname(ROOT), "shared/data/topo")
SHUNT = os.environ.get("SHUNT", os.path.join(ROOT, "target/release/shunt"))
PYTHON = os.environ.get("PLAN_PYTHON", os.path.join(ROOT, "target/tools/os-ken/bin/python3"))
WIDTHS = (64, 128)
PLAN_SECONDS = 600
# Maximum number of packets of a simulation. `plan check` walks every failure of every planned route, so the
# independent simulation sends packets of a sample of pairs only.
PACKETS = 300_000
KEPT = 0.95
# Results of an earlier planner, whose waypoints could not send packets back: by graph and key width, the
# number of hops with a protected link, and with a protected next switch. The limit was also 20,000 routes.
BEFORE = {
    ("Abilene", 64): (259, 147),
    ("Abilene", 128): (259, 147),
    ("AttMpls", 64): (1430, 823),
    ("AttMpls", 128): (1430, 823),
    ("Cogentco", 64): (82525, 32606),
    ("Cogentco", 128): (193717, 133241),
    ("Colt", 64): (90288, 24592),
    ("Colt", 128): (148196, 93134),
    ("DeutscheTelekom", 64): (2176, 904),
    ("DeutscheTelekom", 128): (2176, 904),
    ("Geant2012", 64): (4880, 2958),
    ("Geant2012", 128): (4880, 3024),
    ("GtsCe", 64): (97009, 37874),
    ("GtsCe", 128): (171161, 119236),
    ("Kdl", 64): (39972, 6924),
    ("Kdl", 128): (174254, 106459),
    ("Nsfnet", 64): (304, 154),
    ("Nsfnet", 128): (304, 154),
    ("Rnp", 64): (2314, 826),
    ("Rnp", 128): (2314, 826),
    ("UsCarrier", 64): (61674, 23335),
    ("UsCarrier", 128): (198599, 135515),
}
# Sends a packet of each flow during each failure. In large networks, only some pairs of hosts send packets.
SCENARIO = """seed = %(seed)d
[network]
plan = "plan.json"
delay = "10us"
detection = "1ms"
[network.traffic]
packets = %(packets)d
interval = "100ms"
%(sample)s
[[network.failure]]
at = "100ms"
each = "link"
every = "100ms"
lasting = "90ms"
[[network.failure]]
at = "%(nodes_at)dms"
each = "node"
every = "100ms"
lasting = "90ms"
"""
HEADS = (
    "graph", "bits", "routes", "split", "hops", "links, before", "links", "switches, before", "switches", "packets", "at protected", "lost", "plan, s",
)  # fmt: skip


class Failed(Exception):
    """A check failed."""


class Promised(NamedTuple):
    """Guards that a plan promises for its hops."""

    routes: int
    split: int
    hops: int
    links: int
    nodes: int


def odd_graphs(count, seed):
    """Yields names and random networks: trees, rings, rows of rings, hubs and others. Most have additional
    links, and some have parallel links and leaves."""
    for number in range(count):
        draw = random.Random("%d %d" % (seed, number))
        size = draw.randint(4, 40)
        kind = draw.choice(("tree", "ring", "rings", "hub", "any"))
        reach = size if kind == "any" else 2
        links = [(at, draw.randrange(max(0, at - reach), at)) for at in range(1, size)]
        if kind in ("ring", "hub"):
            links = [(at, (at + 1) % size) for at in range(size)]
        if kind == "hub":
            links += [(size, at) for at in range(0, size, draw.randint(1, 4))]
        if kind == "rings":
            around = draw.randint(3, 8)
            links = [(at, at + 1) for at in range(size)] + [(at, at + around) for at in range(0, size - around, around)]
        more = 0 if kind == "tree" else draw.randint(0, size // 2)
        links += [tuple(draw.sample(range(size), 2)) for _ in range(more)]
        links += [draw.choice(links) for _ in range(draw.choice((0, 0, 3)))]
        leaves = draw.choice((0, 0, 4))
        links += [(1000 + at, draw.randrange(size)) for at in range(leaves)]
        nodes = sorted({end for link in links for end in link})
        draw.shuffle(nodes)
        named = [["n%d" % a, "n%d" % b] for a, b in links]
        yield "odd %d, %s" % (number, kind), {"name": "odd %d" % number, "nodes": ["n%d" % node for node in nodes], "links": named}


def command(*words, seconds=None):
    """Runs a command of the planner. Returns its exit code, output and processor time in seconds."""
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "controller/src"))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            [PYTHON, "-m", "shunt_controller.plan", *words], env=environment, capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise Failed("%s has not ended after %d s" % (" ".join(words), seconds)) from None
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def promised(plan):
    """Counts the guards of a plan."""
    routes = plan["plans"][-1]["routes"]
    guards = [guard for route in routes for segment in route["segments"] for guard in segment["guards"]]
    split = sum(len(route["segments"]) > 1 for route in routes)
    return Promised(len(routes), split, len(guards), sum("link" in guard for guard in guards), sum("node" in guard for guard in guards))


def simulated(plan, folder, packets_max):
    """Fails each link and each switch. Returns the report of `shunt sim`."""
    links, nodes = len(plan["network"]["links"]), len(plan["switches"])
    packets = links + nodes + 2
    pairs = max(1, packets_max // packets)
    sample = "sample = %d" % pairs if pairs < len(plan["plans"][-1]["routes"]) else ""
    values = {"seed": 1, "packets": packets, "sample": sample, "nodes_at": 100 * (links + 1)}
    scenario = os.path.join(folder, "network.toml")
    with open(scenario, "w", encoding="utf-8") as file:
        file.write(SCENARIO % values)
    done = subprocess.run([SHUNT, "sim", scenario, "--json"], stdout=subprocess.PIPE, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise Failed("shunt sim exited with code %d and printed no valid report" % done.returncode) from None


def met(found, are_promised, failure="protected hop, detected"):
    """Returns the number of packets that met failures of a kind, and the number of these packets that were
    lost. Raises Failed if the plan guards hops and there are no such packets."""
    counts = next((one for one in found["met"] if one["failure"] == failure), {"delivered": 0, "lost": 0})
    reached = counts["delivered"] + counts["lost"]
    if are_promised and not reached:
        kinds = ", ".join(repr(one["failure"]) for one in found["met"])
        raise Failed("hops are guarded, but no packet met a failure of the kind %r; shunt sim reports %s" % (failure, kinds or "none"))
    return reached, counts["lost"]


def run(name, graph, width, folder, options, report):
    """Plans, checks and simulates a network. Returns a row of the table, or the reason for a refusal."""
    case = "%s, %d bits" % (name, width)
    path = os.path.join(folder, "plan.json")
    begin = time.monotonic()
    done, processor = command("keyflow", graph, "--largest", "--protect", "--width", str(width), "--json", path, seconds=PLAN_SECONDS)
    seconds = time.monotonic() - begin
    if done.returncode != 0:
        if done.returncode != 1 or not done.stderr.startswith("plan keyflow: "):
            raise Failed("%s: the planner ended with %d: %s" % (case, done.returncode, done.stderr[-500:]))
        report.exact("refused", case, "graphs", 1)
        return done.stderr.strip()
    checked, _ = command("check", path)
    if checked.returncode != 0:
        raise Failed("%s: %s" % (case, checked.stderr.strip()[:500]))
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    counts = promised(plan)
    try:
        found = simulated(plan, folder, options.packets)
        reached, lost = met(found, counts.links + counts.nodes > 0)
    except Failed as problem:
        raise Failed("%s: %s" % (case, problem)) from None
    report.alone("planning, processor time", case, "s", [processor])
    report.exact("hops promised", case, "hops", counts.links + counts.nodes)
    report.exact("packets at protected hops", case, "packets", reached)
    report.exact("lost at protected hops", case, "packets", lost, "<= 0", lost == 0)
    before = BEFORE.get((name, width))
    if before:
        for kind, now, then in zip(("link", "switch"), (counts.links, counts.nodes), before):
            report.exact("promised now of those before, %s" % kind, case, "share", now / then, ">= %g" % KEPT, now >= KEPT * then)
            if now < KEPT * then:
                raise Failed("%s: %d hops are guarded against failure of their %s, but %d were before" % (case, now, kind, then))
    if lost or not found["right"]:
        raise Failed("%s: %d of %d packets were lost at protected hops, right: %s" % (case, lost, reached, found["right"]))
    then = before or ("-", "-")
    return (
        name, width, counts.routes, counts.split, counts.hops, then[0], counts.links, then[1], counts.nodes, found["sent"], reached, lost, "%.0f" % seconds,
    )  # fmt: skip


def graphs_in(folder):
    """Returns the names of the graph files in a folder. Prints a message if there are none."""
    files = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    graphs = [file for file in files if file.endswith((".graphml", ".json"))]
    if not graphs:
        print("skipped, because there are no graphs in %s: all graphs except the odd ones" % (folder or "''"), flush=True)
    return graphs


def cases(options, folder):
    """Returns names and files of graphs."""
    if not options.quick:
        for file in graphs_in(options.graphs):
            yield os.path.splitext(file)[0], os.path.join(options.graphs, file)
    for name, network in odd_graphs(options.odd, options.seed):
        file = os.path.join(folder, "odd.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump(network, out)
        yield name, file


def table(rows):
    """Prints rows as a table with aligned columns."""
    cells = [[str(cell) for cell in row] for row in (HEADS, *rows)]
    width = [max(len(line[column]) for line in cells) for column in range(len(HEADS))]
    for line in cells:
        print("  ".join(cell.ljust(wide) if at == 0 else cell.rjust(wide) for at, (cell, wide) in enumerate(zip(line, width))))


def main():
    """Runs all cases and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--graphs", default=GRAPHS, help="folder of .graphml and .json files (default: %(default)s)")
    parser.add_argument("--case", default="", help="run only graphs whose names contain this text")
    parser.add_argument("--width", type=int, action="append", choices=(64, 128, 192, 256), help="bits of keys (default: 64 and 128)")
    parser.add_argument("--odd", type=int, default=40, help="maximum number of odd graphs to generate (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the odd graphs (default: %(default)s)")
    parser.add_argument("--packets", type=int, default=PACKETS, help="maximum number of packets of a simulation (default: %(default)s)")
    parser.add_argument("--report", default=REPORT, help="file of figures (default: target/report/protected.jsonl)")
    parser.add_argument("--quick", action="store_true", help="run only small odd graphs")
    options = parser.parse_args()
    report, rows, refused, failed = Report(options.report), [], [], []
    try:
        with tempfile.TemporaryDirectory(prefix="shunt-protected-") as folder:
            for name, graph in cases(options, folder):
                for width in (options.width or WIDTHS) if options.case in name else ():
                    try:
                        row = run(name, graph, width, folder, options, report)
                    except Failed as problem:
                        failed.append(str(problem))
                        print("FAILED: %s" % problem, flush=True)
                        continue
                    (refused if isinstance(row, str) else rows).append(row)
    except FileNotFoundError as error:
        makes = {PYTHON: "scripts/setup.sh networks", SHUNT: "make"}
        sys.exit("bench/protected.py: %s is missing: run %s" % (error.filename, makes.get(error.filename, "make networks")))
    except KeyboardInterrupt:
        sys.exit(130)
    table(rows)
    for reason in refused:
        print("refused: %s" % reason)
    for problem in failed:
        print("FAILED: %s" % problem)
    print("plan check walked all planned routes; shunt sim sent at most %d packets for each plan" % options.packets)
    print("%d plans, %d split, %d refused, %d failed" % (len(rows), sum(row[3] > 0 for row in rows), len(refused), len(failed)))
    sys.exit(1 if failed or not rows else 0)


if __name__ == "__main__":
    main()
