# SPDX-License-Identifier: Apache-2.0
"""Draws panels of lines as SVG."""

import math
from xml.sax.saxutils import escape

COLOURS = ("#0969da", "#1a7f37", "#9a6700", "#bc4c00", "#8250df", "#57606a", "#b42318")
# Sizes of a panel in pixels.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 330, 200, 62, 16, 34, 78


class Panel:
    """A plot: lines with points at named places, or at numbers if `numeric`."""

    def __init__(self, title, across, up, lines, numeric=False, top=None):
        """`lines` has a list of (x, y) for each name. `top` is the greatest value of the vertical axis."""
        self.title, self.across, self.up = title, across, up
        self.lines, self.numeric = lines, numeric
        self.top = top if top is not None else nice(max((y for line in lines.values() for _, y in line), default=1))

    def draw(self, x0, y0):
        """Yields the elements of the panel, whose upper left corner is at (x0, y0)."""
        left, top = x0 + LEFT, y0 + TOP
        places = []
        for line in self.lines.values():
            places.extend(x for x, _ in line if x not in places)
        least, most = (min(places), max(places)) if self.numeric and places else (0, max(1, len(places) - 1))
        span = (most - least) or 1

        def to_x(x):
            return left + WIDTH * ((x - least) if self.numeric else places.index(x)) / span

        def to_y(y):
            return top + HEIGHT * (1 - y / self.top)

        yield text(left, y0 + 18, self.title, 'font-weight="bold"')
        for step in range(5):
            value = self.top * step / 4
            yield line_of(left, to_y(value), left + WIDTH, to_y(value), "#d0d7de")
            yield text(left - 6, to_y(value) + 4, label(value), 'text-anchor="end"')
        marks = [least + span * step / 4 for step in range(5)] if self.numeric else places
        for mark in marks:
            yield text(to_x(mark), top + HEIGHT + 16, label(mark) if self.numeric else str(mark), 'text-anchor="middle"')
        yield text(left + WIDTH / 2, top + HEIGHT + 32, self.across, 'text-anchor="middle"')
        yield text(left, y0 + 31, self.up, 'fill="#57606a" font-size="11"')
        for number, (name, line) in enumerate(self.lines.items()):
            colour = COLOURS[number % len(COLOURS)]
            points = [(to_x(x), to_y(min(y, self.top))) for x, y in line]
            if not self.numeric:
                joined = " ".join("%.1f,%.1f" % point for point in points)
                yield '<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>' % (joined, colour)
            for x, y in points:
                yield '<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"/>' % (x, y, colour)
            column, row = number % 4, number // 4
            x, y = left + 88 * column, top + HEIGHT + 50 + 14 * row
            yield '<rect x="%.1f" y="%.1f" width="8" height="8" fill="%s"/>' % (x, y - 8, colour)
            yield text(x + 12, y, name, 'font-size="11"')


def nice(value):
    """Returns a round number that is at least `value`."""
    if value <= 0:
        return 1.0
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 4, 5, 6, 8, 10) if step * power >= value * 0.9999)


def label(value):
    """Returns a number of an axis, with three significant digits below 1000 and without an exponent above."""
    return "%.3g" % value if abs(value) < 1000 else "%.0f" % value


def text(x, y, words, more=""):
    """Returns a text element at a position."""
    return '<text x="%.1f" y="%.1f" %s>%s</text>' % (x, y, more, escape(words))


def line_of(x1, y1, x2, y2, colour):
    """Returns a line element."""
    return '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>' % (x1, y1, x2, y2, colour)


def drawing(panels, columns=2):
    """Returns panels in rows of `columns` as SVG."""
    wide, high = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM
    rows = math.ceil(len(panels) / columns)
    size = (wide * min(columns, len(panels)), high * rows)
    lines = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">' % size]
    lines.append('<rect width="100%" height="100%" fill="white"/>')
    for number, panel in enumerate(panels):
        lines.extend(panel.draw(wide * (number % columns), high * (number // columns)))
    return "\n".join(lines) + "\n</svg>\n"
