#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the experiments of the port cache's thesis, and draws its figures 4.2 to 4.13 with Shunt's values.

`make lab-cache` runs this program. It writes these files to target/report/port-cache:

- cells.jsonl: one line per experiment and seed, as `port-cache-lab` prints it;
- captures.jsonl: one line per experiment with a recorded capture, if there are captures;
- established.jsonl: one line per experiment with a search worker and seed, from established.py;
- NAME.svg: the plots, and tables.md: the values of each plot.

It also writes the comparisons that have a target to target/report/port_cache.jsonl, which it replaces.
`--cells FILE` draws the experiments of an earlier run. `--captures FOLDER` names a folder of captures, by default
the folder shared/data/pcap beside the repository. `--into FOLDER` copies the plots there, and replaces the
tables of docs/port-cache-figures.md.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import established
import tables
from cells import Cells, gains, mean_and_half, percent, read, twins, verdict
from plots import Panel, drawing
from tables import POSITIONS, ROUTINGS, service

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "lab"))
from report import Report  # noqa: E402

FOLDER = os.path.join(ROOT, "target/report/port-cache")
REPORT = os.path.join(ROOT, "target/report/port_cache.jsonl")
PAGE = os.path.join(ROOT, "docs/port-cache-figures.md")
PROGRAM = os.path.join(os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target"), "release/port-cache-lab")
USUAL_NS, CACHE, QUEUE = 10_000, 32, 64
# Parts of the experiments, each with its number of seeds. The longest ones come first.
PARTS = {"tree": 3, "services": 3, "sizes": 3, "selection": 3, "routing": 10, "victims": 3, "flows": 3}


def by_cache(cells, value, by="queue", name="queue %s"):
    """Returns lines of `value` over the size of the cache, one for each value of the property `by`."""
    lines = {}
    for each in cells.values(by):
        line = [(cache, value(cells.one(cache=cache, **{by: each}))) for cache in cells.values("cache")]
        lines[name % each] = line
    return lines


def mpps(cell):
    """Returns the throughput of an experiment in Mpps."""
    return cell["pps"] / 1e6


def pairs(cells, title, up, value, top=None):
    """Returns a panel for each position."""
    for position, name in POSITIONS.items():
        lines = by_cache(cells.where(position=position), value)
        yield Panel("%s, %s" % (title, name), "cache entries per port", up, lines, top=top)


def pictures(all_cells):
    """Yields the name, the thesis' figures and the panels of each picture."""
    usual = all_cells.where(part="sizes")
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
    for nanos in all_cells.values("service_ns"):
        part = "sizes" if nanos == USUAL_NS else "services"
        cells = all_cells.where(part=part, service_ns=nanos, bytes=64, mode="nonblocking", position="core")
        title = "Throughput, searches of %s, core switch" % service(nanos)
        slow.append(Panel(title, "cache entries per port", "Mpps", by_cache(cells, mpps)))
    yield "services", "4.12 and 4.13 by service time", slow
    policies = []
    chosen = all_cells.where(part="routing")
    for position, name in POSITIONS.items():
        lines = {}
        for length in chosen.values("bytes"):
            cells = chosen.where(position=position, bytes=length)
            found = [(title, cells.one(routing=key)) for key, title in ROUTINGS.items()]
            lines["%s bytes" % length] = [(title, percent("hits")(cell)) for title, cell in found if cell]
        policies.append(Panel("Hit rate by routing, %s" % name, "", "percent of offered packets", lines))
    yield "routing", "none (routing policies)", policies
    tree = all_cells.where(part="tree")
    if tree.cells:
        yield "tree", "none (caches in all switches)", list(whole_tree(tree))


def whole_tree(cells):
    """Yields panels that compare the modes by layer of a tree."""
    for what, value in (("Hit rate", percent("hits")), ("Lost packets", tables.lost_percent)):
        for nanos in cells.values("service_ns"):
            here = cells.where(service_ns=nanos)
            lines = {
                mode: [(layer, value(here.one(mode=mode, position=layer))) for layer in tables.LAYERS]
                for mode in ("nonblocking", "blocking")
            }
            cold = ", not valid: cold" if any(map(tables.is_cold, here.cells)) else ""
            title = "%s, searches of %s%s" % (what, service(nanos), cold)
            yield Panel(title, "layer", "percent of packets that arrived", lines)


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


def compare(all_cells, sweep, report):
    """Writes the comparisons that have a target, in place of those of an earlier run."""
    if os.path.exists(report.path):
        os.remove(report.path)
    cells = all_cells.where(part="sizes", bytes=64, cache=CACHE)
    for position, name in POSITIONS.items():
        ours = cells.one(position=position, mode="nonblocking", queue=QUEUE)
        peer = cells.one(position=position, mode="blocking")
        ratios = [run["pps"] / peer["each"][seed]["pps"] for seed, run in ours["each"].items()]
        case = "%s, cache %d, queue %d, 64 bytes, searches of 10 us, least of %d seeds" % (name, CACHE, QUEUE, len(ratios))
        unit = "times the packets/s of blocking"
        report.exact("throughput of the modes", case, unit, min(ratios), ">= 2", min(ratios) >= 2)
    compared = twins(sweep, QUEUE)
    verdicts = [verdict(*mean_and_half(gains(ours, peer, percent("hits")))) for ours, peer in compared]
    share = verdicts.count("above") / len(verdicts)
    case = "cells with queue %d, %d in all" % (QUEUE, len(verdicts))
    report.exact("hit rate of the modes", case, "share above blocking", share, ">= 1", share >= 1)


def run(scale):
    """Runs all experiments, one process per part and seed, and returns the lines that they print."""
    begin = time.monotonic()

    def lines(job):
        part, seed = job
        command = [PROGRAM, "--part", part, "--seed", str(seed), "--scale", str(scale)]
        return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout

    jobs = [(part, seed) for part, seeds in PARTS.items() for seed in range(1, 1 + seeds)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        text = "".join(pool.map(lines, jobs))
    print("%d experiments in %.0f s" % (text.count("\n"), time.monotonic() - begin))
    return text


def run_captures(folder):
    """Runs the experiments with the captures of a folder, and returns the table of their results."""
    if not os.path.isdir(folder):
        print("%s: no such folder; captures are not run" % folder)
        return {}
    command = [PROGRAM, "--captures", folder]
    text = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    with open(os.path.join(FOLDER, "captures.jsonl"), "w", encoding="utf-8") as file:
        file.write(text)
    cells = Cells([json.loads(line) for line in text.splitlines()])
    return {"captures": "\n".join(tables.captures(cells))}


def run_established():
    """Runs the experiments with a search worker, and returns the table of their results."""
    found = established.measure()
    with open(os.path.join(FOLDER, "established.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(cell) + "\n" for cell in found)
    return {"established": "\n".join(established.table(found))}


def main():
    """Runs or reads the experiments, and writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", help="draw the experiments in this file")
    shared = os.path.join(os.path.dirname(ROOT), "shared/data/pcap")
    parser.add_argument("--captures", default=shared, help="folder with captures")
    parser.add_argument("--scale", type=float, default=1, help="factor of all durations, for a trial")
    parser.add_argument("--into", help="copy the plots to this folder, and the tables to docs/port-cache-figures.md")
    options = parser.parse_args()
    if options.cells:
        with open(options.cells, encoding="utf-8") as file:
            lines = file.read()
    else:
        lines = run(options.scale)
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, "cells.jsonl"), "w", encoding="utf-8") as file:
        file.write(lines)
    cells = read(lines.splitlines())
    sweep = cells.having("part", ("sizes", "services"))
    texts, names = other_tables(cells, sweep) | run_established() | run_captures(options.captures), []
    for name, of_thesis, panels in pictures(cells):
        names.append(name)
        with open(os.path.join(FOLDER, name + ".svg"), "w", encoding="utf-8") as file:
            file.write(drawing(panels))
        texts.setdefault(name, "\n".join(line for panel in panels for line in table(panel)))
        print("%s.svg: figures %s of the thesis" % (name, of_thesis))
    with open(os.path.join(FOLDER, "tables.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(texts.values()))
    compare(cells, sweep, Report(REPORT))
    print("fewest searches: %d (%s)" % tables.fewest(sweep))
    if options.into:
        os.makedirs(options.into, exist_ok=True)
        for name in names:
            shutil.copy(os.path.join(FOLDER, name + ".svg"), options.into)
        fill(texts)


def other_tables(cells, sweep):
    """Returns the tables that have no plot, or more values than their plot."""
    small = cells.where(part="sizes", bytes=64)
    return {
        "exceptions": "\n".join(tables.exceptions(sweep)),
        "routing": "\n".join(tables.routing(cells.where(part="routing"))),
        "victims": "\n".join(tables.victims(cells.where(part="victims"))),
        "selection": "\n".join(tables.selection(cells.where(part="selection"))),
        "tree": "\n".join(tables.tree(cells.where(part="tree"))),
        "searches": "\n".join(tables.searches(small, cells.where(part="flows"))),
    }


def fill(texts):
    """Replaces the tables between the marks in the page of the documentation."""
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    for name, text in texts.items():
        mark = r"(<!-- begin %s -->\n).*?(<!-- end %s -->)" % (name, name)
        page = re.sub(mark, lambda found, text=text: found[1] + "\n" + text + "\n" + found[2], page, flags=re.S)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page)


if __name__ == "__main__":
    main()
