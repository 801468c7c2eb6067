#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws target/report/peers.jsonl: the ratio of each row with its interval and target. `plot.py [FILE.svg]`.
"""

import json
import math
import os
import sys
from xml.sax.saxutils import escape

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REPORT = os.path.join(ROOT, "target/report/peers.jsonl")
PICTURE = os.path.join(ROOT, "target/report/peers.svg")
# Sizes in pixels.
LINE, LEFT, WIDTH, RIGHT, TOP = 22, 330, 460, 170, 56
COLOURS = {"met": "#1a7f37", "missed": "#b42318", "unclear": "#9a6700", None: "#57606a"}
TITLE = "Packets per CPU-second, Shunt divided by its peer: median of pairs, 95 % interval and target"


def drawing(figures):
    """Returns a drawing of the figures as SVG."""
    values = [value for each in figures for value in (each["low"], each["high"], bar_of(each) or 1.0)] + [1.0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    bottom = TOP + LINE * len(figures)

    def across(ratio):
        return LEFT + WIDTH * (math.log10(ratio) - low) / max(1, high - low)

    size = (LEFT + WIDTH + RIGHT, bottom + 30)
    yield '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">' % size
    yield '<rect width="100%" height="100%" fill="white"/>'
    yield text(10, 22, TITLE, 'font-size="14"')
    for power in range(low, high + 1):
        x = across(10**power)
        colour = "#57606a" if power == 0 else "#d0d7de"
        yield '<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="%s"/>' % (x, x, TOP - 8, bottom, colour)
        yield text(x, bottom + 18, "%g" % 10**power, 'text-anchor="middle"')
    for number, each in enumerate(figures):
        y = TOP + LINE * number + LINE / 2
        colour = COLOURS[each["verdict"]]
        yield text(LEFT - 10, y + 4, each["figure"], 'text-anchor="end"')
        ends = (across(each["low"]), across(each["high"]), y, y, colour)
        yield '<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="%s" stroke-width="3"/>' % ends
        yield '<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>' % (across(each["ratio"]), y, colour)
        if bar := bar_of(each):
            x = across(bar)
            yield '<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="black" stroke-width="2"/>' % (x, x, y - 8, y + 8)
        yield text(LEFT + WIDTH + 10, y + 4, "%.3g vs. %.3g Mpps" % (each["ours"], each["peer"]))
    yield "</svg>"


def bar_of(figure):
    """Returns the target for the ratio of a figure, or None without a target."""
    return float(figure["bar"].split()[1]) if figure["bar"] else None


def text(x, y, words, more=""):
    """Returns a text element at a position."""
    return '<text x="%.1f" y="%.1f" %s>%s</text>' % (x, y, more, escape(words))


def main(path=PICTURE):
    """Reads the report and writes the picture."""
    with open(REPORT, encoding="utf-8") as file:
        figures = [json.loads(line) for line in file]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(drawing(figures)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:2])
