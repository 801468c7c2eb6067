#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws figures 11 to 16 of the composite pipeline's paper and writes tables 3 and 4, with Shunt's figures.

`make figures` runs this program.

Reads ffp.jsonl, ffp_sizes.jsonl and lanes.jsonl of target/report, which the benchmarks `ffp` and `lanes`
write. Writes figure-11.svg to figure-16.svg and tables.md to target/report/paper. If a report has no values
for a figure, the program names the benchmark that measures them, and exits with code 1.
"""

import argparse
import json
import os
import re
import sys
from xml.sax.saxutils import escape

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REPORTS = os.path.join(ROOT, "target/report")
SCENARIOS = {"server": "server communication", "video": "videoconferencing", "vehicles": "vehicles (IoV)"}
# Series of figures 11 to 15, with their colours.
PAPER, OWN, FFP, EXPRESS = "tables of the paper's kind", "own tables", "FFP", "path records"
COLOURS = {PAPER: "#8c959f", OWN: "#54aeff", FFP: "#1a7f37", EXPRESS: "#bc4c00"}
LOW, NORMAL = "low-latency", "normal"
LANE_COLOURS = {LOW: "#1a7f37", NORMAL: "#8c959f"}
SIZES, SHARES = (64, 256, 640, 1518), (10, 50, 90)
TRAFFIC = ("repeating normal flows", "first-seen normal flows")
APPROACHES = (
    "tables of the paper's kind",
    "own tables",
    "one cache for all packets",
    "FFP in one lane",
    "FFP and lanes",
    "FFP, lanes and path records",
)
# Bytes per us on a 10 Gbit/s link, and bytes that the preamble and the inter-frame gap add to each packet.
WIRE_BYTES_PER_US, WIRE_EXTRA_BYTES = 1250, 20
# Rows of tables 3 and 4 in the paper, measured on different machines.
TABLE_3 = {"server": ("14 ± 0.5", "99.99999 %"), "video": ("15 ± 0.2", "99.99999 %"), "vehicles": ("15 ± 0.2", "99.999 %")}
TABLE_4 = (
    ("Rule replacement optimization", "184", "175", "4.89 %", "-"),
    ("Macroflow/microflow (OVS)", "172", "99", "42.44 %", "-"),
    ("PacketShader", "> 1000", "280", "> 72.00 %", "-"),
    ("NP-OVS", "313", "258", "17.57 %", "-"),
    ("NP-OVS (CPU-NPU load balanced)", "234", "60", "74.36 %", "-"),
    ("Composite pipeline", "90", "32", "< 10 %", "64.44 %"),
)
# Sizes of a panel in pixels.
PANEL, HEIGHT, LEFT, TOP, BOTTOM = 400, 220, 70, 64, 84


class Missing(Exception):
    """The reports lack the values of a figure. The text names the benchmark that measures them."""


class Values:
    """Figures of the report files. If several lines have the same figure and case, the last one counts."""

    def __init__(self, folder):
        self.lines = {}
        for name in ("ffp", "ffp_sizes", "lanes"):
            path = os.path.join(folder, name + ".jsonl")
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    for line in map(json.loads, file):
                        self.lines[line["figure"], line["case"]] = line

    def find(self, figure, case, measured_by):
        """Returns the line of a figure whose case matches a regular expression."""
        found = [line for (name, of), line in self.lines.items() if name == figure and re.match(case + "$", of)]
        if not found:
            raise Missing(measured_by)
        return found[-1]


def course(values, what, scenario, rules, size):
    """Returns the values of figures 11 (`packets/s`) and 12 (`latency`) by series."""
    name = "%s, %d rules, %d-byte packets.*" % (scenario, rules, size)
    number = {"packets/s": 11, "latency": 12}[what]
    found = {}
    for series, words in ((FFP, "over the path"), (EXPRESS, "by path records")):
        for peer, tables in ((PAPER, "paper-kind tables"), (OWN, "own tables")):
            figure = "%s %s against %s (paper: fig %d)" % (what, words, tables, number)
            line = values.find(figure, name, "ffp --part against")
            # Latencies against the other peers are measured at other arrival rates.
            if what == "packets/s" or peer == PAPER:
                found[peer], found[series] = line["peer"], line["ours"]
    return {series: found[series] for series in COLOURS if series in found}


def figure_11(values, rules):
    """Packets per second of low-latency flows by packet size."""
    for scenario, title in SCENARIOS.items():
        groups = []
        for size in SIZES:
            wire = WIRE_BYTES_PER_US / (size + WIRE_EXTRA_BYTES)
            groups.append(("%d bytes" % size, course(values, "packets/s", scenario, rules, size), wire))
        yield title, "Mpps per CPU-second", groups


def figure_12(values, rules):
    """Latency of low-latency flows by packet size."""
    for scenario, title in SCENARIOS.items():
        groups = []
        for size in SIZES:
            found = course(values, "latency", scenario, rules, size)
            groups.append(("%d bytes" % size, {name: ns / 1e3 for name, ns in found.items()}, None))
        yield title, "us per burst of 32", groups


def mixed(values, scenario, rules):
    """Returns the panels of figure 13, 14 or 15: latencies by share of low-latency packets."""
    for part, packets in ((LOW, "low-latency, learned"), (NORMAL, "normal")):
        for traffic in TRAFFIC:
            groups = []
            for percent in SHARES:
                case = "%s, %d rules, %d %% low-latency, %s, .*" % (scenario, rules, percent, traffic)
                found = {}
                for series, way in ((FFP, ""), (EXPRESS, " with path records")):
                    for peer, tables in ((PAPER, "paper-kind tables"), (OWN, "own tables")):
                        figure = "mean latency of %s packets%s against %s (paper: fig 13 to 15)" % (packets, way, tables)
                        line = values.find(figure, case, "lanes --part mixed")
                        found[peer], found[series] = line["peer"] / 1e3, line["ours"] / 1e3
                groups.append(("%d %%" % percent, {series: found[series] for series in COLOURS}, None))
            yield "%s packets, %s" % (part, traffic), "us", groups


def round_trips(values, scenario, rules):
    """Returns the round trips in us of both kinds of packets through each kind of switch."""
    for approach in APPROACHES:
        found = {}
        for part, packets in ((LOW, "low-latency, learned"), (NORMAL, "normal")):
            figure = "round trip of %s packets, %s (paper: fig 16 and table 4)" % (packets, approach)
            line = values.find(figure, "%s, %d rules, .*" % (scenario, rules), "lanes --part approaches")
            found[part] = line["ours"] / 1e3
        yield approach, found


def figure_16(values, rules):
    """Round trips of low-latency and normal packets in each approach."""
    for scenario, title in SCENARIOS.items():
        groups = [(words, found, None) for words, found in round_trips(values, scenario, rules)]
        yield title, "us", groups


def table_3(values, rules):
    """Returns the lines of table 3: round trips and reliability if a fifth of the packets is low-latency."""
    yield "| traffic | mean round trip, us | delivered of begun round trips | paper: round trip, us | paper: reliability |"
    yield "|---|--:|--:|--:|--:|"

    def value(figure, scenario):
        return values.find(figure, "%s, %d rules, .* in bursts of 16" % (scenario, rules), "lanes --part round-trip")["ours"]

    for scenario, title in SCENARIOS.items():
        mean = value("round trip of two passes, mean (paper: table 3)", scenario)
        spread = value("round trip of two passes, standard deviation", scenario)
        begun = value("round trips begun by low-latency packets", scenario)
        lost = value("low-latency packets lost of them (paper: table 3, 1 of 10^7)", scenario)
        words = (title, mean, spread, begun - lost, begun, *TABLE_3[scenario])
        yield "| %s | %.1f ± %.1f | %d of %d | %s | %s |" % words


def table_4(values, rules):
    """Returns the lines of table 4: round trips without and with each approach, and the reduction."""
    yield "| approach | before, us | after, us | reduction for normal packets | reduction for low-latency packets |"
    yield "|---|--:|--:|--:|--:|"
    for row in TABLE_4:
        yield "| paper: %s | %s |" % (row[0], " | ".join(row[1:]))
    for scenario, title in SCENARIOS.items():
        rows = list(round_trips(values, scenario, rules))
        before = rows[0][1]
        for approach, after in rows[1:]:
            less = {part: 100 * (1 - after[part] / before[part]) for part in (LOW, NORMAL)}
            words = (title, approach, before[LOW], after[LOW], less[NORMAL], less[LOW])
            yield "| %s: %s | %.1f | %.1f | %.1f %% | %.1f %% |" % words


def text(x, y, words, more=""):
    """Returns a text element at a position."""
    return '<text x="%.1f" y="%.1f" %s>%s</text>' % (x, y, more, escape(words))


def bar(x, y, width, height, colour, words):
    """Returns a bar with a tooltip."""
    place = '<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s">' % (x, y, width, height, colour)
    return "%s<title>%s</title></rect>" % (place, escape(words))


def legend(y, colours, has_wire):
    """Returns the legend of a figure as elements."""
    x = LEFT
    for name, colour in colours.items():
        yield bar(x, y, 12, 12, colour, name)
        yield text(x + 17, y + 11, name)
        x += 40 + 7 * len(name)
    if has_wire:
        yield '<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="black" stroke-width="2"/>' % (x, x + 12, y + 6, y + 6)
        yield text(x + 17, y + 11, "10 Gbit/s")


def drawing(title, panels, colours, columns):
    """Returns a figure as lines of SVG. A panel has a title, a unit, and groups of bars. A group has a label,
    a value for each series, and a value to mark by a line, or None."""
    rows = -(-len(panels) // columns)
    width, height = columns * PANEL + 20, 50 + rows * (TOP + HEIGHT + BOTTOM)
    size = 'width="%d" height="%d"' % (width, height)
    yield '<svg xmlns="http://www.w3.org/2000/svg" %s font-family="sans-serif" font-size="12">' % size
    yield '<rect width="100%" height="100%" fill="white"/>'
    yield text(10, 22, title, 'font-size="14"')
    has_wire = any(mark is not None for panel in panels for *_, mark in panel[2])
    yield from legend(32, colours, has_wire)
    for number, panel in enumerate(panels):
        x, y = number % columns * PANEL, 50 + number // columns * (TOP + HEIGHT + BOTTOM)
        yield '<g transform="translate(%d,%d)">' % (x, y)
        yield from axes(panel, colours)
        yield "</g>"
    yield "</svg>"


def axes(panel, colours):
    """Returns one panel as elements."""
    title, unit, groups = panel
    values = [value for _, found, mark in groups for value in (*found.values(), mark or 0)]
    top, bottom, across = max(values) * 1.1, TOP + HEIGHT, PANEL - LEFT - 20

    def down(value):
        return bottom - HEIGHT * value / top

    yield text(LEFT, TOP - 26, title, 'font-weight="bold"')
    yield text(LEFT, TOP - 8, unit, 'fill="#57606a"')
    for step in range(5):
        value = top * step / 4
        yield '<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#d0d7de"/>' % (LEFT, PANEL - 20, down(value), down(value))
        yield text(LEFT - 6, down(value) + 4, "%.3g" % value, 'text-anchor="end"')
    share = across / len(groups)
    # Long labels are rotated.
    slanted = max(len(label) for label, *_ in groups) * 7 > share
    for number, (label, found, mark) in enumerate(groups):
        begin, thick = LEFT + share * (number + 0.1), share * 0.8 / len(colours)
        for at, (series, colour) in enumerate(colours.items()):
            if series in found:
                words = "%s, %s, %s: %.4g %s" % (title, label, series, found[series], unit)
                y = down(found[series])
                yield bar(begin + thick * at, y, thick * 0.9, bottom - y, colour, words)
        if mark is not None:
            ends = (begin, begin + share * 0.8, down(mark), down(mark))
            yield '<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="black" stroke-width="2"/>' % ends
        middle = begin + share * 0.4
        turned = 'transform="rotate(-40 %.1f %d)" font-size="9"' % (middle, bottom + 14) if slanted else ""
        yield text(middle, bottom + 14, label, 'text-anchor="%s" %s' % ("end" if slanted else "middle", turned))


def pictures(values, rules):
    """Returns the number, title, panels, colours and columns of each figure. Panels are made on demand."""
    of_rules = "%d rules in each of two tables" % rules
    yield 11, "Figure 11: packets of low-latency flows, " + of_rules, figure_11(values, rules), COLOURS, 3
    latencies = {series: COLOURS[series] for series in (PAPER, FFP, EXPRESS)}
    yield 12, "Figure 12: latency of low-latency flows at 60 % load, " + of_rules, figure_12(values, rules), latencies, 3
    for number, (scenario, title) in zip((13, 14, 15), SCENARIOS.items()):
        words = "Figure %d: mean latency of mixed traffic by low-latency share, %s, %s" % (number, title, of_rules)
        yield number, words, mixed(values, scenario, rules), COLOURS, 2
    title = "Figure 16: round trips (two passes) in each approach, 20 % low-latency packets, " + of_rules
    yield 16, title, figure_16(values, rules), LANE_COLOURS, 3


def write(path, lines):
    """Writes lines to a file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main():
    """Draws the figures and writes the tables whose values are in the reports."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--rules", type=int, default=1_000, help="rules in each of the two large tables (1000)")
    parser.add_argument("--reports", default=REPORTS, metavar="FOLDER", help="folder of the reports (target/report)")
    options = parser.parse_args()
    values, lacking = Values(options.reports), []
    folder = os.path.join(options.reports, "paper")
    os.makedirs(folder, exist_ok=True)
    for number, title, panels, colours, columns in pictures(values, options.rules):
        try:
            write(os.path.join(folder, "figure-%d.svg" % number), drawing(title, list(panels), colours, columns))
        except Missing as missing:
            lacking.append("figure %d: no values; measure them with %s" % (number, missing))
    lines = []
    for number, table in ((3, table_3), (4, table_4)):
        try:
            lines += ["## Table %d" % number, "", *table(values, options.rules), ""]
        except Missing as missing:
            lacking.append("table %d: no values; measure them with %s" % (number, missing))
    write(os.path.join(folder, "tables.md"), lines)
    print("\n".join(lines))
    print("figures and tables are in %s" % folder)
    if lacking:
        sys.exit("\n".join(lacking))


if __name__ == "__main__":
    main()
