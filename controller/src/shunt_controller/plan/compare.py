# SPDX-License-Identifier: Apache-2.0
"""How much shorter keys are than with consecutive primes: bits of all pairs' keys, all nodes of each path coded."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from shunt_controller.plan.errors import need
from shunt_controller.plan.ids import consecutive
from shunt_controller.plan.keys import mean_width
from shunt_controller.plan.network import Network
from shunt_controller.plan.numbering import labels_of, number, suit
from shunt_controller.plan.routes import Trees


class Comparison(NamedTuple):
    """Of one network. Keys in bits, over all ordered pairs of its nodes."""

    name: str
    nodes: int
    links: int
    ports_max: int
    """Labels of the node with the most: its links and its own tables. Parallel links count once."""
    baseline_mean: float
    """Consecutive primes from `ports_max` on, in the order of the file."""
    baseline_max: int
    same_routes_mean: float
    """Planned IDs on the baseline's routes."""
    mean: float
    """Planned IDs, and of several shortest paths those with the shortest keys."""
    max: int

    @property
    def shorter_percent(self) -> float:
        """By how much the mean key is shorter than the baseline's."""
        return 100 * (1 - self.mean / self.baseline_mean)


def compare(network: Network) -> Comparison:
    """Plans a network's largest connected part and its baseline."""
    network = network.largest_part()
    trees = Trees(network)
    demand = trees.demand("all")
    labels = [len(ports) for ports in labels_of(demand)]
    baseline, baseline_max = mean_width(trees, consecutive(labels))
    same, _ = mean_width(trees, suit(network, demand).ids)
    bank = number(trees, "all")
    mean, most = mean_width(trees, bank.ids)
    return Comparison(
        network.name, len(network.nodes), len(network.links), max(labels), baseline, baseline_max, same, mean, most
    )


def shorter_percent(comparisons: Sequence[Comparison]) -> float:
    """By how much the mean over networks of their mean keys is below that of the baseline."""
    need(bool(comparisons), "nothing is compared")
    mean = statistics.fmean(one.mean for one in comparisons)
    return 100 * (1 - mean / statistics.fmean(one.baseline_mean for one in comparisons))
