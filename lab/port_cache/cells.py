# SPDX-License-Identifier: Apache-2.0
"""Experiments of the port cache: reads them, joins the runs with different seeds, and computes intervals."""

import json
import math
import statistics

SETTINGS = (
    "part",
    "sources",
    "position",
    "routing",
    "bytes",
    "mode",
    "service_ns",
    "cache",
    "pending_part",
    "searches",
    "victim",
    "queue",
)
# Quantiles of Student's distribution for intervals of 95 %, by number of samples. More samples use the last.
STUDENT = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}


class Cells:
    """A list of experiments. Each is a dictionary."""

    def __init__(self, cells):
        self.cells = cells

    def where(self, **wanted):
        """Returns the experiments with these properties."""
        return Cells([cell for cell in self.cells if all(cell[key] == value for key, value in wanted.items())])

    def having(self, key, values):
        """Returns the experiments that have one of these values of a property."""
        return Cells([cell for cell in self.cells if cell[key] in values])

    def values(self, key):
        """Returns the distinct values of a property, in order."""
        return sorted({cell[key] for cell in self.cells})

    def one(self, **wanted):
        """Returns the first experiment with these properties, or None."""
        return next(iter(self.where(**wanted).cells), None)


def read(lines):
    """Joins the runs of each experiment. Counters are sums over the seeds. `each` has the runs by seed."""
    groups = {}
    for line in dict.fromkeys(lines):
        cell = json.loads(line)
        groups.setdefault(tuple(cell[key] for key in SETTINGS), {})[cell["seed"]] = cell
    joined = []
    for settings, by_seed in groups.items():
        cell = dict(zip(SETTINGS, settings))
        runs = list(by_seed.values())
        for key in runs[0].keys() - set(SETTINGS) - {"seed"}:
            cell[key] = sum(run[key] for run in runs)
        cell["pps"] = cell["forwarded"] / cell["span_ns"] * 1e9
        cell["hit_rate"] = cell["hits"] / max(1, cell["offered"])
        joined.append(dict(cell, each=by_seed))
    return Cells(joined)


def mean_and_half(samples):
    """Returns the mean of the samples, and half the length of its 95 % interval by Student's distribution."""
    if len(samples) < 2:
        return statistics.mean(samples), math.inf
    quantile = STUDENT[min(len(samples), max(STUDENT))]
    return statistics.mean(samples), quantile * statistics.stdev(samples) / math.sqrt(len(samples))


def gains(ours, other, value):
    """Returns the differences of two experiments, one for each seed. Both have the same arrivals."""
    return [value(run) - value(other["each"][seed]) for seed, run in ours["each"].items() if seed in other["each"]]


def difference(ours, other, value):
    """Returns the difference of the means of two experiments whose arrivals differ, and half the length of its
    95 % interval."""
    both = [[value(run) for run in cell["each"].values()] for cell in (ours, other)]
    (one, one_half), (two, two_half) = map(mean_and_half, both)
    return one - two, math.hypot(one_half, two_half)


def verdict(mean, half):
    """Returns whether an interval is above 0, below 0, or contains 0."""
    if mean == half == 0:
        return "equal"
    return "above" if mean > half else "below" if mean < -half else "noise"


def percent(key):
    """Returns a function that gives a count of an experiment in percent of its offered packets."""
    return lambda cell: 100 * cell[key] / max(1, cell["offered"])


def twins(sweep, queue):
    """Returns the experiments with a queue, each with the same experiment in the mode `blocking`."""
    properties = ("part", "position", "bytes", "service_ns", "cache")
    queued = sweep.where(mode="nonblocking", queue=queue).cells
    found = [(ours, sweep.one(mode="blocking", **{key: ours[key] for key in properties})) for ours in queued]
    return [(ours, peer) for ours, peer in found if peer]
