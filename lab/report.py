# SPDX-License-Identifier: Apache-2.0
"""Writes figures of experiments as lines of target/report/NAME.jsonl. bench/README.md describes the
fields."""

import json
import math
import os
import statistics

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def interval(samples):
    """Returns the 95 % interval of the median, between order statistics. For fewer than nine samples, returns
    the whole range."""
    ordered, count = sorted(samples), len(samples)
    chosen, tail = 1, 0.5**count
    for k in range(2, count // 2 + 1):
        tail += math.comb(count, k - 1) * 0.5**count
        if tail > 0.025:
            break
        chosen = k
    return ordered[chosen - 1], ordered[count - chosen]


def p99(times):
    """Returns the 99th percentile, by nearest rank."""
    return sorted(times)[math.ceil(0.99 * len(times)) - 1]


class Report:
    """Appends figures to a report file and prints them."""

    def __init__(self, path):
        self.path = path

    def forget(self, figures):
        """Removes earlier lines of these figures."""
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                lines = [line for line in file if json.loads(line)["figure"] not in figures]
            with open(self.path, "w", encoding="utf-8") as file:
                file.writelines(lines)

    def alone(self, figure, case, unit, values):
        """Adds a figure without a peer, with one value for each run."""
        low, high = interval(values)
        median = statistics.median(values)
        print("%s, %s: %.3g %s (%.3g to %.3g in %d runs)" % (figure, case, median, unit, low, high, len(values)))
        self._add(figure, case, unit, median, None, None, low, high, len(values), None, None)

    def exact(self, figure, case, unit, value, bar=None, clears=None):
        """Adds a figure that is equal in each run. With a target `bar`, `clears` states whether it is met."""
        verdict = None if bar is None else "met" if clears else "missed"
        print("%s, %s: %.10g %s%s" % (figure, case, value, unit, ", %s: %s" % (bar, verdict) if bar else ""))
        self._add(figure, case, unit, value, None, None, value, value, 1, bar, verdict)

    def within(self, figure, case, unit, values, low, high, below):
        """Adds a figure without a peer whose interval `low` to `high` must be below a target."""
        median = statistics.median(values)
        verdict = "met" if high < below else "missed" if median >= below else "unclear"
        bar = "< %g" % below
        print("%s, %s: %.3g %s (%.3g to %.3g in %d runs), %s: %s" % (figure, case, median, unit, low, high, len(values), bar, verdict))
        self._add(figure, case, unit, median, None, None, low, high, len(values), bar, verdict)
        return verdict

    def against(self, figure, case, unit, ours, peers, at_most=None, at_least=None):
        """Adds a comparison, with one value of each side for each round. The target is a maximum or a minimum
        of the ratio."""
        ratios = [our / peer for our, peer in zip(ours, peers)]
        low, high = interval(ratios)
        ratio, runs = statistics.median(ratios), len(ratios)
        bar, verdict = None, None
        if at_most is not None:
            bar = "<= %g" % at_most
            verdict = "met" if high <= at_most else "missed" if low > at_most else "unclear"
        elif at_least is not None:
            bar = ">= %g" % at_least
            verdict = "met" if low >= at_least else "missed" if high < at_least else "unclear"
        # Fewer than six rounds give no 95 % confidence interval.
        if verdict and runs < 6:
            verdict = "unclear"
        our, peer = statistics.median(ours), statistics.median(peers)
        print(
            "%s, %s: %.3g to %.3g %s, ratio %.3f (%.3f to %.3f in %d rounds)%s"
            % (figure, case, our, peer, unit, ratio, low, high, runs, ", %s: %s" % (bar, verdict) if bar else "")
        )
        self._add(figure, case, unit, our, peer, ratio, low, high, runs, bar, verdict)

    def _add(self, figure, case, unit, ours, peer, ratio, low, high, runs, bar, verdict):
        line = {"figure": figure, "case": case, "ours": ours, "peer": peer, "unit": unit, "ratio": ratio}
        line.update({"low": low, "high": high, "runs": runs, "bar": bar, "verdict": verdict})
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
