# SPDX-License-Identifier: Apache-2.0
"""Compares the lengths of planned keys with those of consecutive primes. The keys are those of all pairs,
with all nodes of each path coded."""

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
    """Comparison for one network. Key lengths are in bits, over all ordered pairs of nodes."""

    name: str
    nodes: int
    links: int
    ports_max: int
    """Maximum number of labels of a node: its links and its own tables. Parallel links count once."""
    baseline_mean: float
    """Mean length of keys with consecutive primes from `ports_max` on, in the order of the file."""
    baseline_max: int
    same_routes_mean: float
    """Mean length of keys with planned IDs on the baseline's routes."""
    mean: float
    """Mean length of keys with planned IDs. Of several shortest paths, the one with the shortest key is
    used."""
    max: int

    @property
    def shorter_percent(self) -> float:
        """Reduction of the mean key length compared with the baseline, in percent."""
        return 100 * (1 - self.mean / self.baseline_mean)


def compare(network: Network) -> Comparison:
    """Compares a plan with the baseline, for the largest connected part of a network."""
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
    """Returns the reduction, in percent, of the mean key length averaged over the networks."""
    need(bool(comparisons), "nothing is compared")
    mean = statistics.fmean(one.mean for one in comparisons)
    return 100 * (1 - mean / statistics.fmean(one.baseline_mean for one in comparisons))
