#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/experiments.md anew: its tables, and the plots in docs/experiments.

The values are those that lab/keyflow.py, lab/fat_tree.py, lab/failures.py, lab/discovery.py and bench/gates.py
have written to target/report, and lab/jitter.py, lab/virtual_jitter.py, lab/first_packet.py and
lab/remote_control.py to target/report/experiments. Only the parts between the marks `begin` and `end` of the
page are replaced. An experiment without values keeps its part of the page.

    lab/experiments.py [--reports target/report] [--page docs/experiments.md]
"""

import argparse
import json
import os
import re
import statistics
import sys
import textwrap

from report import ROOT
from results import read

sys.path.insert(0, os.path.join(ROOT, "lab/port_cache"))
from plots import Panel, drawing  # noqa: E402  pylint: disable=wrong-import-position

PAGE, REPORTS = os.path.join(ROOT, "docs/experiments.md"), os.path.join(ROOT, "target/report")
# Names of kinds in plots, where space is short.
SHORT = {
    "flows per hop": "per hop",
    "flows per path": "per path",
    "Open vSwitch, flows per hop": "OVS per hop",
    "Open vSwitch, flows per path": "OVS per path",
    "without controller": "learning",
    "Open vSwitch, without controller": "OVS learning",
    "Open vSwitch, empty tables": "OVS empty",
    "Open vSwitch, full tables": "OVS full",
    "empty tables": "empty",
    "full tables": "full",
}

JITTER = ["KeyFlow", "empty tables", "full tables", "Open vSwitch, empty tables", "Open vSwitch, full tables"]


def unique(rows, column):
    """Returns the values of a column in the order of their first appearance."""
    return list(dict.fromkeys(row[column] for row in rows))


def number(value):
    """Returns a number without an exponent: with three significant digits below 100, and as an integer above."""
    value = float(value)
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = "%.*f" % (digits, value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def change(ratio):
    """Returns a ratio as a change in percent."""
    return "%+.0f %%" % (100 * (float(ratio) - 1))


def table(heads, rows):
    """Returns the lines of a table."""
    lines = ["| %s |" % " | ".join(heads), "|%s" % ("---|" * len(heads))]
    return lines + ["| %s |" % " | ".join(row) for row in rows]


def wrapped(lines):
    """Yields lines, of which those that are no rows of a table are broken."""
    for line in lines:
        yield from [line] if not line or line.startswith(("|", "!")) else textwrap.wrap(line, 110, break_on_hyphens=False)


def measured(about):
    """Returns the line that states when and where values were measured."""
    load = "; load of the machine at the beginning: %s" % about["load"] if "load" in about else ""
    return ["", "Measured on %s with `%s` (%s%s)." % (about["date"], about["command"], about["cpu"], load)]


def report_of(reports, name):
    """Returns the comments and the lines of a report by figure and case, or None if there is none."""
    path = os.path.join(reports, name + ".jsonl")
    if not os.path.exists(path) or not os.path.exists(path + ".about"):
        return None
    with open(path, encoding="utf-8") as file:
        lines = {(line["figure"], line["case"]): line for line in map(json.loads, file)}
    with open(path + ".about", encoding="utf-8") as file:
        return json.load(file), lines


ROUND_TRIPS = {
    "mean": "Mean round trip",
    "longest": "Longest round trip",
    "longest without gaps": "Longest round trip of pings that were not near a gap",
}


def rtt(reports):
    """Returns the part about round trips over switches in a row, and its plot."""
    found = report_of(reports, "keyflow")
    if found is None:
        return None
    about, lines = found
    pattern = re.compile(r"KeyFlow RTT over (\d+) switch(?:es)?, tables (\d+) % full, (mean|longest|longest without gaps)$")
    values = {}
    for (figure, case), line in lines.items():
        if match := pattern.match(figure):
            values[int(match[1]), int(match[2]), match[3], case] = line
    hops, fills = sorted({key[0] for key in values}), sorted({key[1] for key in values})
    text = []
    for what, words in ROUND_TRIPS.items():
        for peer in ("KeyFlow against Open vSwitch", "KeyFlow, af_xdp, busy against Open vSwitch, afxdp"):
            cells = [[str(hop), *(_ratio(values.get((hop, fill, what, peer))) for fill in fills)] for hop in hops]
            # Older reports lack some rows.
            if not any(cell for row in cells for cell in row[1:]):
                continue
            text += ["", "%s: %s, by the filled part of the tables" % (words, peer), "", *table(["switches", *("%d %%" % fill for fill in fills)], cells)]

    def points(fill, peer, side):
        found = ((hop, values.get((hop, fill, "mean", "KeyFlow against " + peer))) for hop in hops)
        return [(hop, line[side]) for hop, line in found if line is not None]

    drawn = {"KeyFlow": ("Open vSwitch", "ours"), "OVS": ("Open vSwitch", "peer"), "tables": ("tables", "peer")}
    panels = [
        Panel("tables %d %% full" % fill, "switches", "mean round trip, us", {name: points(fill, *of) for name, of in drawn.items()})
        for fill in fills
    ]
    return text[1:] + measured(about), drawing(panels)


def _ratio(line):
    return "" if line is None else "%s (%s to %s us)" % (change(line["ratio"]), number(line["peer"]), number(line["ours"]))


def jitter(reports):
    """Returns the part about jitter, and its plot."""
    found = read("jitter", os.path.join(reports, "experiments"))
    if found is None:
        return None
    about, rows = found
    # Rows are in the random order of the measurement.
    kinds = [kind for kind in JITTER if kind in unique(rows, "kind")]
    shares = unique(rows, "share_percent")

    def middle(share, kind, column):
        return statistics.median(float(row[column]) for row in rows if (row["share_percent"], row["kind"]) == (share, kind))

    def cell(share, kind):
        is_all = any(row["used"] == "all" for row in rows if (row["share_percent"], row["kind"]) == (share, kind))
        jitter_us, median_us, gaps = (number(middle(share, kind, column)) for column in ("jitter_us", "median_us", "gap_percent"))
        return "%s%s (%s; %s)" % (jitter_us, "*" if is_all else "", median_us, gaps)

    capacity = [row for row in rows if row["share_percent"] == shares[0] and row["round"] == rows[0]["round"]]
    base = float(rows[0]["rate"]) * 100 / float(rows[0]["share_percent"])
    text = ["Jitter in us (median of the round trips in us; share of pings near gaps in percent). *: near gaps, too, in at least one round.", ""]
    text += table(["rate", *kinds], [["%s %%" % share, *(cell(share, kind) for kind in kinds)] for share in shares])
    each = "; ".join("%s %s" % (row["kind"], number(float(row["capacity"]) / 1000)) for row in capacity)
    text += ["", "100 %% are %s thousand packets/s. Capacities in thousand packets/s: %s." % (number(base / 1000), each)]
    panels = [
        Panel(title, "percent of the capacity", "us", {SHORT.get(kind, kind): [(share, middle(share, kind, column)) for share in shares] for kind in kinds})
        for title, column in (("p99.9 - median of round trips", "jitter_us"), ("median of round trips", "median_us"))
    ]
    return text + measured(about), drawing(panels)


def virtual_jitter(reports):
    """Returns the part about jitter in virtual time, and its plot."""
    found = read("virtual_jitter", os.path.join(reports, "experiments"))
    if found is None:
        return None
    about, rows = found
    kinds, shares = unique(rows, "kind"), unique(rows, "share_percent")
    rounds = len(unique(rows, "round"))

    def values(share, kind, column):
        return [float(row[column]) for row in rows if (row["share_percent"], row["kind"]) == (share, kind)]

    def cell(share, kind):
        middle = (number(statistics.median(values(share, kind, column))) for column in ("jitter_us", "p50_us", "p99_us", "p999_us"))
        return "%s (%s; %s; %s)" % tuple(middle)

    text = ["Jitter in us (p50; p99; p99.9 of the round trips in us), medians of %d rounds" % rounds, ""]
    text += table(["rate", *kinds], [["%s %%" % share, *(cell(share, kind) for kind in kinds)] for share in shares])
    text += ["", "Jitter of KeyFlow against tables: change of the median, and the range of the rounds", ""]
    peers = [kind for kind in kinds if kind != "KeyFlow"]
    lines = []
    for share in shares:
        ratios = {peer: _jitter_ratios(rows, share, peer) for peer in peers}
        lines.append(["%s %%" % share, *("%s (%s to %s)" % tuple(map(change, (statistics.median(of), min(of), max(of)))) for of in ratios.values())])
    text += table(["rate", *peers], lines)
    capacities = ("%s %s" % (kind, number(statistics.median(float(row["capacity"]) for row in rows if row["kind"] == kind) / 1000)) for kind in kinds)
    agreement = [float(row["agreement"]) for row in rows]
    words = "Capacities in thousand packets/s, medians: %s. The costs of the steps add up to %s to %s of real time."
    text += ["", words % ("; ".join(capacities), number(min(agreement)), number(max(agreement)))]
    panels = [
        Panel(title, "percent of the capacity", "us", {SHORT.get(kind, kind): [(share, statistics.median(values(share, kind, column))) for share in shares] for kind in kinds})
        for title, column in (("p99.9 - median, virtual time", "jitter_us"), ("median, virtual time", "p50_us"))
    ]
    return text + measured(about), drawing(panels)


def failures(reports):
    """Returns the part about failures in running networks. It has no plot."""
    found = report_of(reports, "failures")
    if found is None:
        return None
    about, lines = found
    figures = {
        "pings lost when a link fails": "pings lost when a link fails, of 50 per second",
        "longest time without answers then, s": "longest time without answers when a link fails",
        "pings lost when the controller restarts": "pings lost when the controller restarts, most",
        "restarted switches forward after, s": "time until restarted switches forward, most",
    }
    cases = list(dict.fromkeys(case for _, case in lines))
    rows = [[case, *(_value(lines.get((figure, case))) for figure in figures.values())] for case in cases]
    return [*table(["network", *figures], rows), *measured(about)], None


def _value(line):
    """Returns a value, with the interval of the rounds if it has one."""
    if line is None:
        return ""
    interval = "" if line["low"] == line["high"] else " (%s to %s)" % (number(line["low"]), number(line["high"]))
    return number(line["ours"]) + interval


def discovery(reports):
    """Returns the part about the discovery of fat trees. It has no plot."""
    found = report_of(reports, "discovery")
    if found is None:
        return None
    about, lines = found
    figures = ("time until all links are found", "time until all gates are set")
    cases = list(dict.fromkeys(case for _, case in lines))
    rows = [[case, *(_value(lines.get((figure, case))) for figure in figures)] for case in cases]
    return [*table(["tree", *("%s, s" % figure for figure in figures)], rows), *measured(about)], None


def first_packet(reports):
    """Returns the part about the first packets of paths, and its plot."""
    found = read("first_packet", os.path.join(reports, "experiments"))
    if found is None:
        return None
    about, rows = found
    kinds, hops = unique(rows, "kind"), unique(rows, "hops")
    by = {(row["hops"], row["kind"]): row for row in rows}
    text = []
    for title, column in (
        ("Round trip of the first packet in us, median", "median_us"),
        ("Messages between switches and controller", "messages"),
        ("Packet-ins", "packet_ins"),
        ("Flow-mods, and changes in bundles", "changes"),
    ):
        text += ["", title, "", *table(["switches", *kinds], [[hop, *(number(by[hop, kind][column]) for kind in kinds)] for hop in hops])]
    lost = sum(int(row["lost"]) for row in rows)
    text += ["", "%s first packets of each kind and length; %d were lost in all." % (rows[0]["runs"], lost)]

    def lines(column, unit):
        return {SHORT.get(kind, kind): [(hop, float(by[hop, kind][column]) / unit) for hop in hops] for kind in kinds}

    panels = [
        Panel("first packet", "switches", "round trip, ms", lines("median_us", 1000)),
        Panel("messages of a new path", "switches", "messages", lines("messages", 1)),
    ]
    return text[1:] + measured(about), drawing(panels)


def remote_control(reports):
    """Returns the part about the distance of the controller, and its plot."""
    found = read("remote_control", os.path.join(reports, "experiments"))
    if found is None:
        return None
    about, rows = found
    kinds, delays = unique(rows, "kind"), unique(rows, "delay_ms")
    by = {(row["delay_ms"], row["kind"]): row for row in rows}
    text = ["Round trip of the first packet in ms, median", ""]
    text += table(
        ["round trip to the controller", *kinds],
        [["%s ms" % delay, *(number(float(by[delay, kind]["median_us"]) / 1000) for kind in kinds)] for delay in delays],
    )
    lost = sum(int(row["lost"]) for row in rows)
    text += ["", "%s switches, %s first packets of each kind; %d were lost in all." % (rows[0]["hops"], rows[0]["runs"], lost)]
    lines = {SHORT.get(kind, kind): [(delay, float(by[delay, kind]["median_us"]) / 1000) for delay in delays] for kind in kinds}
    return text + measured(about), drawing([Panel("first packet", "round trip to the controller, ms", "ms", lines)])


def fat_tree(reports):
    """Returns the part about the fat tree, and its plot."""
    found = report_of(reports, "fat_tree")
    if found is None:
        return None
    about, lines = found
    pairs = ("Tag-and-Forward against Open vSwitch", "Tag-and-Forward, af_xdp, busy against Open vSwitch, afxdp", "Tag-and-Forward against tables")
    sizes = {}
    for (figure, case), line in lines.items():
        if match := re.match(r"fat tree RTT, .* of (\d+) bytes$", figure):
            sizes.setdefault(int(match[1]), {})[case] = line
    rows = [["%d bytes" % size, *(_ratio(sizes[size].get(pair)) for pair in pairs)] for size in sorted(sizes)]
    for (figure, _), _ in lines.items():
        if figure.startswith("fat tree packets/s"):
            cells = [lines.get((figure, pair)) for pair in pairs]
            words = ["" if line is None else "%.2f times (%s to %s packets/s)" % (line["ratio"], number(line["peer"]), number(line["ours"])) for line in cells]
            rows.append([figure.removeprefix("fat tree "), *words])
            break
    text = ["Mean round trip and packets/s", "", *table(["", *pairs], rows)]
    named = {"TF": (pairs[0], "ours"), "OVS": (pairs[0], "peer"), "tables": (pairs[2], "peer")}
    lines_of = {name: [(size, sizes[size][pair][key]) for size in sorted(sizes) if pair in sizes[size]] for name, (pair, key) in named.items()}
    return text + measured(about), drawing([Panel("fat tree of k = 4", "bytes", "mean round trip, us", lines_of)])


def gates(reports):
    """Returns the part about the time to set gates. It has no plot."""
    found = report_of(reports, "gates")
    if found is None:
        return None
    about, lines = found
    rows = []
    for (figure, case), line in lines.items():
        if figure == "time to set all gates, 90 % interval":
            first, plan = (lines["time to %s" % what, case]["ours"] for what in ("set all gates, first run", "plan"))
            cells = (line["ours"], "%s to %s" % (number(line["low"]), number(line["high"])), first, plan)
            rows.append([case, *(cell if isinstance(cell, str) else number(cell) for cell in cells), line["bar"].removeprefix("< ")])
    heads = ["tree", "median, ms", "90 % of the runs, ms", "first run, ms", "planning, ms", "target, ms"]
    return [*table(heads, rows), *measured(about)], None


def overview(reports):
    """Returns the table that puts the main results beside the results of the papers. It has no plot."""
    rows = []
    if (found := report_of(reports, "keyflow")) is not None:
        line = found[1].get(("KeyFlow RTT over 10 switches, tables 75 % full, mean", "KeyFlow against Open vSwitch"))
        rows.append(["KeyFlow, figure 3: mean round trip, dense tables", "more than -50 %", "" if line is None else change(line["ratio"]) + " (10 switches, 75 %)", "`lab/keyflow.py`"])
    if (found := read("jitter", os.path.join(reports, "experiments"))) is not None:
        rows.append(["KeyFlow, figure 4: jitter", "as with an empty table; below a full one", _jitter_changes(found[1], "Open vSwitch, full tables"), "`lab/jitter.py`"])
    if (found := read("virtual_jitter", os.path.join(reports, "experiments"))) is not None:
        words = "against its own full tables in virtual time: " + _jitter_changes(found[1], "full tables")
        rows.append(["KeyFlow, figure 4: jitter", "as with an empty table; below a full one", words, "`lab/virtual_jitter.py`"])
    if (found := read("first_packet", os.path.join(reports, "experiments"))) is not None:
        hops = found[1][-1]["hops"]
        by = {row["kind"]: row for row in found[1] if row["hops"] == hops}
        own, peer = by["KeyFlow"], by["Open vSwitch, flows per hop"]
        words = "packet-ins: %s instead of %s; first packet: %s (%s switches)" % (
            *(number(row["packet_ins"]) for row in (own, peer)),
            change(float(own["median_us"]) / float(peer["median_us"])),
            hops,
        )
        rows.append(["KeyFlow: contacts with the controller", "fewer, no figures", words, "`lab/first_packet.py`"])
    if (found := report_of(reports, "fat_tree")) is not None:
        of = {figure: line for (figure, case), line in found[1].items() if case == "Tag-and-Forward against Open vSwitch"}
        for size, paper in ((64, "-61 to -63 %"), (4096, "-56 to -65 %")):
            line = next((line for figure, line in of.items() if figure.endswith(" of %d bytes" % size)), None)
            if line is not None:
                rows.append(["Tag-and-Forward, figure 2a: round trip of %d bytes" % size, paper, change(line["ratio"]), "`lab/fat_tree.py`"])
        line = next((line for figure, line in of.items() if "packets/s" in figure), None)
        if line is not None:
            rows.append(["Tag-and-Forward, figure 2b: packets/s of 8,192 flows", "+40 %", change(line["ratio"]), "`lab/fat_tree.py`"])
    if (found := report_of(reports, "gates")) is not None:
        line = next((line for (figure, case), line in found[1].items() if "90 %" in figure and case.startswith("k = 4,")), None)
        if line is not None:
            rows.append(["Tag-and-Forward, figure 2c: time to set all gates of k = 4", "186 ms", "%s ms (Shunt)" % number(line["ours"]), "`bench/gates.py`"])
    if (found := report_of(reports, "discovery")) is not None:
        line = next((line for (figure, case), line in found[1].items() if figure.endswith("gates are set") and case.startswith("k = 8,")), None)
        if line is not None:
            rows.append(["Discovery of the fat tree of k = 8, until its gates are set", "none", "%s s (Shunt)" % number(line["ours"]), "`lab/discovery.py`"])
    if (found := report_of(reports, "failures")) is not None:
        most = {name: max((line["ours"] for (figure, _), line in found[1].items() if figure.startswith(name)), default=None) for name in ("longest time without answers when a link", "pings lost when the controller")}
        if None not in most.values():
            words = "%s s without answers at most; %s pings lost when the controller restarts (Shunt)" % tuple(map(number, most.values()))
            rows.append(["Failures of links, controllers and switches", "none", words, "`lab/failures.py`"])
    if not rows:
        return None
    return table(["experiment", "paper", "Shunt against Open vSwitch", "program"], rows), None


def _jitter_ratios(rows, share, other):
    """Returns the jitter of KeyFlow divided by that of another kind at one rate, for each round."""
    of = {(row["round"], row["kind"]): float(row["jitter_us"]) for row in rows if row["share_percent"] == share}
    return [own / of[each, other] for (each, kind), own in of.items() if kind == "KeyFlow"]


def _jitter_changes(rows, other):
    """Returns how the jitter of KeyFlow differs from that of another kind at each rate: medians of the rounds."""
    shares = unique(rows, "share_percent")
    words = ("%s at %s %%" % (change(statistics.median(_jitter_ratios(rows, share, other))), share) for share in shares)
    return ", ".join(words) + " of the capacity"


PARTS = {
    "overview": overview,
    "rtt": rtt,
    "jitter": jitter,
    "virtual-jitter": virtual_jitter,
    "first-packet": first_packet,
    "remote-control": remote_control,
    "fat-tree": fat_tree,
    "gates": gates,
    "discovery": discovery,
    "failures": failures,
}


def main():
    """Replaces the parts for which there are values."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--reports", default=REPORTS, help="folder with the values (%s)" % os.path.relpath(REPORTS))
    parser.add_argument("--page", default=PAGE, help="the page; plots go to the folder `experiments` beside it (%s)" % os.path.relpath(PAGE))
    options = parser.parse_args()
    with open(options.page, encoding="utf-8") as file:
        page = file.read()
    plots = os.path.join(os.path.dirname(options.page), "experiments")
    os.makedirs(plots, exist_ok=True)
    for name, part in PARTS.items():
        found = part(options.reports)
        if found is None:
            print("%s: no values in %s" % (name, os.path.relpath(options.reports)))
            continue
        text, plot = found
        mark = re.compile(r"(<!-- begin %s -->\n).*?(<!-- end %s -->)" % (name, name), re.S)
        if not mark.search(page):
            sys.exit("lab/experiments.py: %s has no marks for %s" % (os.path.relpath(options.page), name))
        if plot is not None:
            text = [*text, "", "![%s](experiments/%s.svg)" % (name.replace("-", " "), name)]
            with open(os.path.join(plots, name + ".svg"), "w", encoding="utf-8") as file:
                file.write(plot)
        body = "\n".join(wrapped(text))
        page = mark.sub(lambda match, body=body: match[1] + body + "\n" + match[2], page)
        print("%s: replaced" % name)
    with open(options.page, "w", encoding="utf-8") as file:
        file.write(page)


if __name__ == "__main__":
    main()
