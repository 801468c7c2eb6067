#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the experiments of the port cache's thesis, and draws its figures 4.2 to 4.13 with Shunt's values.

`make lab-cache` runs this program. It writes these files to target/report/port-cache:

- cells.jsonl: one line per experiment, as `port-cache-lab` prints it;
- NAME.svg: the plots, and tables.md: the values of each plot.

It also writes the comparisons that have a target to target/report/port_cache.jsonl. `--cells FILE` draws the
experiments of an earlier run. `--into FOLDER` copies the plots there, and replaces the tables of
docs/port-cache-figures.md.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time

from plots import Panel, drawing

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "lab"))
from report import Report  # noqa: E402

FOLDER = os.path.join(ROOT, "target/report/port-cache")
REPORT = os.path.join(ROOT, "target/report/port_cache.jsonl")
PAGE = os.path.join(ROOT, "docs/port-cache-figures.md")
PROGRAM = os.path.join(ROOT, "target/release/port-cache-lab")
POSITIONS = {"aggregation": "aggregation switch", "core": "core switch"}
ROUTINGS = {
    "spanning-tree": "spanning tree",
    "random": "random",
    "ecmp": "ECMP",
    "elephant-aware": "elephant-aware",
}
USUAL_NS, CACHE, QUEUE = 10_000, 32, 64


class Cells:
    """Experiments of one run."""

    def __init__(self, cells):
        self.cells = cells

    def where(self, **wanted):
        """Returns the experiments with these properties."""
        return Cells([cell for cell in self.cells if all(cell[key] == value for key, value in wanted.items())])

    def values(self, key):
        """Returns the distinct values of a property, in order."""
        return sorted({cell[key] for cell in self.cells})

    def one(self, **wanted):
        """Returns the first experiment with these properties, or None."""
        return next(iter(self.where(**wanted).cells), None)


def by_cache(cells, value, by="queue", name="queue %s"):
    """Returns lines of `value` over the size of the cache, one for each value of the property `by`."""
    lines = {}
    for each in cells.values(by):
        line = [(cache, value(cells.one(cache=cache, **{by: each}))) for cache in cells.values("cache")]
        lines[name % each] = line
    return lines


def percent(key):
    """Returns a function that gives a count of an experiment in percent of its offered packets."""
    return lambda cell: 100 * cell[key] / max(1, cell["offered"])


def mpps(cell):
    """Returns the throughput of an experiment in Mpps."""
    return cell["pps"] / 1e6


def service(nanos):
    """Returns a service time as text."""
    return "%g us" % (nanos / 1e3) if nanos < 1_000_000 else "%g ms" % (nanos / 1e6)


def pairs(cells, title, up, value, top=None):
    """Returns a panel for each position."""
    for position, name in POSITIONS.items():
        lines = by_cache(cells.where(position=position), value)
        yield Panel("%s, %s" % (title, name), "cache entries per port", up, lines, top=top)


def pictures(all_cells):
    """Yields the name, the thesis' figures and the panels of each picture."""
    ecmp = all_cells.where(routing="ecmp")
    usual = ecmp.where(service_ns=USUAL_NS)
    queued = usual.where(mode="nonblocking")
    small = queued.where(bytes=64)
    yield "hit-rate", "4.2 and 4.4", list(pairs(small, "Hit rate", "percent of offered packets", percent("hits")))
    yield "queue-hits", "4.3 and 4.5", list(pairs(small, "Hits from the queue", "percent of offered packets", percent("queue_hits")))
    lengths = []
    for what, up, value in (("Hit rate", "percent", percent("hits")), ("Throughput", "Mpps", mpps)):
        for position, name in POSITIONS.items():
            cells = queued.where(position=position, queue=QUEUE)
            lines = by_cache(cells, value, "bytes", "%s bytes")
            lengths.append(Panel("%s, queue %d, %s" % (what, QUEUE, name), "cache entries per port", up, lines))
    yield "lengths", "4.6 and 4.9", lengths
    if usual.where(mode="blocking").cells:
        yield "modes", "4.7, 4.8, 4.12 and 4.13", list(modes(usual.where(bytes=64)))
    points = []
    for position, name in POSITIONS.items():
        cells = small.where(position=position)
        lines = {
            "queue %s" % queue: sorted((percent("hits")(cell), mpps(cell)) for cell in cells.where(queue=queue).cells)
            for queue in cells.values("queue")
        }
        points.append(Panel("Throughput by hit rate, %s" % name, "hit rate in percent", "Mpps", lines, numeric=True))
    yield "hit-rate-throughput", "4.10 and 4.11", points
    slow = []
    for nanos in ecmp.values("service_ns"):
        cells = ecmp.where(service_ns=nanos, bytes=64, mode="nonblocking", position="core")
        title = "Throughput, searches of %s, core switch" % service(nanos)
        slow.append(Panel(title, "cache entries per port", "Mpps", by_cache(cells, mpps)))
    yield "services", "4.12 and 4.13 by service time", slow
    policies = []
    chosen = all_cells.where(mode="nonblocking", service_ns=USUAL_NS, cache=CACHE, queue=QUEUE)
    for position, name in POSITIONS.items():
        lines = {}
        for length in chosen.values("bytes"):
            cells = chosen.where(position=position, bytes=length)
            found = [(title, cells.one(routing=key)) for key, title in ROUTINGS.items()]
            lines["%s bytes" % length] = [(title, percent("hits")(cell)) for title, cell in found if cell]
        policies.append(Panel("Hit rate by routing, %s" % name, "", "percent of offered packets", lines))
    yield "routing", "none (routing policies)", policies


def exceptions(all_cells):
    """Yields the cells in which the hit rate is not above that of `blocking`, as lines of a Markdown table."""
    yield "| queue | cells | above `blocking` | largest deficit in percentage points |"
    yield "|---|---|---|---|"
    queued = all_cells.where(mode="nonblocking", routing="ecmp")
    for queue in queued.values("queue"):
        gains = [ours["hit_rate"] - peer["hit_rate"] for ours, peer in twins(all_cells, queue)]
        if gains:
            above = sum(gain > 0 for gain in gains)
            yield "| %d | %d | %d | %.3g |" % (queue, len(gains), above, max(0, -100 * min(gains)))
    yield ""


def twins(all_cells, queue):
    """Returns the experiments with a queue, each with the same experiment in the mode `blocking`."""
    properties = ("position", "bytes", "service_ns", "cache")
    queued = all_cells.where(mode="nonblocking", queue=queue, routing="ecmp").cells
    pairs_of = [(ours, all_cells.one(mode="blocking", routing="ecmp", **{key: ours[key] for key in properties})) for ours in queued]
    return [(ours, peer) for ours, peer in pairs_of if peer]


def modes(cells):
    """Yields panels that compare the modes."""
    for what, up, value in (("Hit rate", "percent", percent("hits")), ("Throughput", "Mpps", mpps)):
        for position, name in POSITIONS.items():
            here = cells.where(position=position)
            lines = by_cache(here.where(mode="nonblocking"), value)
            lines |= by_cache(here.where(mode="blocking"), value, "mode", "%s")
            yield Panel("%s, %s" % (what, name), "cache entries per port", up, lines)


def table(panel):
    """Yields the values of a panel as lines of a Markdown table."""
    yield "%s (%s):" % (panel.title, panel.up)
    yield ""
    if panel.numeric:
        yield "| %s | x: %s, y: %s |" % ("line", panel.across, panel.up)
        yield "|---|---|"
        for name, line in panel.lines.items():
            yield "| %s | %s |" % (name, ", ".join("(%.4g, %.4g)" % point for point in line))
    else:
        places = []
        for line in panel.lines.values():
            places.extend(x for x, _ in line if x not in places)
        yield "| %s | %s |" % (panel.across or "line", " | ".join(str(place) for place in places))
        yield "|---|%s" % ("---|" * len(places))
        for name, line in panel.lines.items():
            values = dict(line)
            yield "| %s | %s |" % (name, " | ".join("%.4g" % values[x] if x in values else "-" for x in places))
    yield ""


def compare(all_cells, report):
    """Writes the comparisons that have a target."""
    figures = ["throughput of the modes", "hit rate of the modes"]
    report.forget(figures)
    cells = all_cells.where(routing="ecmp", bytes=64, service_ns=USUAL_NS, cache=CACHE)
    for position, name in POSITIONS.items():
        ours = cells.one(position=position, mode="nonblocking", queue=QUEUE)
        peer = cells.one(position=position, mode="blocking")
        case = "%s, cache %d, queue %d, 64 bytes, searches of 10 us" % (name, CACHE, QUEUE)
        if ours and peer:
            ratio = ours["pps"] / peer["pps"]
            report.exact(figures[0], case, "times the packets/s of blocking", ratio, ">= 2", ratio >= 2)
    compared = twins(all_cells, QUEUE)
    if compared:
        share = sum(ours["hit_rate"] > peer["hit_rate"] for ours, peer in compared) / len(compared)
        case = "cells with queue %d, %d in all" % (QUEUE, len(compared))
        report.exact(figures[1], case, "share above blocking", share, ">= 1", share >= 1)


def run():
    """Runs all experiments, and returns the lines that they print."""
    begin = time.monotonic()
    lines = subprocess.run([PROGRAM], stdout=subprocess.PIPE, check=True, text=True).stdout
    print("%d experiments in %.0f s" % (lines.count("\n"), time.monotonic() - begin))
    return lines


def main():
    """Runs or reads the experiments, and writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", help="draw the experiments in this file")
    parser.add_argument("--into", help="copy the plots to this folder, and the tables to docs/port-cache-figures.md")
    options = parser.parse_args()
    if options.cells:
        with open(options.cells, encoding="utf-8") as file:
            lines = file.read()
    else:
        lines = run()
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, "cells.jsonl"), "w", encoding="utf-8") as file:
        file.write(lines)
    cells = Cells([json.loads(line) for line in dict.fromkeys(lines.splitlines())])
    tables, names = {}, []
    for name, of_thesis, panels in pictures(cells):
        names.append(name)
        with open(os.path.join(FOLDER, name + ".svg"), "w", encoding="utf-8") as file:
            file.write(drawing(panels))
        tables[name] = "\n".join(line for panel in panels for line in table(panel))
        print("%s.svg: figures %s of the thesis" % (name, of_thesis))
    tables["exceptions"] = "\n".join(exceptions(cells))
    with open(os.path.join(FOLDER, "tables.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(tables.values()))
    compare(cells, Report(REPORT))
    if options.into:
        os.makedirs(options.into, exist_ok=True)
        for name in names:
            shutil.copy(os.path.join(FOLDER, name + ".svg"), options.into)
        fill(tables)


def fill(tables):
    """Replaces the tables between the marks in the page of the documentation."""
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    for name, text in tables.items():
        mark = r"(<!-- begin %s -->\n).*?(<!-- end %s -->)" % (name, name)
        page = re.sub(mark, lambda found, text=text: found[1] + "\n" + text + "\n" + found[2], page, flags=re.S)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page)


if __name__ == "__main__":
    main()
