# SPDX-License-Identifier: Apache-2.0
"""IDs and labels of the switches of a running network. They are chosen so that failures and growth need no new
ones: each port with a link has a label from the start, and no two IDs have a common factor."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import networkx

from shunt_controller.live.topology import Port, Topology, switch_name
from shunt_controller.plan.demand import LOCAL, Demand
from shunt_controller.plan.network import build
from shunt_controller.plan.numbering import Bank, suit

SAMPLES_MAX = 100
"""Number of switches from which paths are followed to find out which switches are in many keys."""
USES_MAX = 1_000_000


@dataclass(frozen=True)
class Identifiers:
    """IDs and labels of switches, by datapath ID. Switches that have left keep theirs."""

    epoch: int
    ids: Mapping[int, int] = field(default_factory=dict)
    labels: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """The port of each label, from label 0; :data:`LOCAL` stands for the switch's own tables."""


def extended(old: Identifiers, topology: Topology, lanes: Collection[int], reserve: int) -> Identifiers:
    """Gives IDs and labels to the switches in `lanes` that lack them. Existing ones are kept. `reserve` is the
    number of further labels for which the IDs of new switches leave room. Raises PlanError if the existing ones
    do not suffice; then :func:`renumbered` does."""
    ports = _ports(topology, lanes)
    if _suffices(old, ports):
        return old
    switches = sorted(ports.keys() | old.ids.keys())
    network = build("the network", [(switch_name(switch), "core") for switch in switches], [])
    demand = Demand.none(len(switches))
    uses = _uses(topology)
    for node, switch in enumerate(switches):
        demand.ports[node] = set(ports.get(switch, ())) | set(old.labels.get(switch, ()))
        demand.uses[node] = uses.get(switch, 1)
    before = Bank([old.ids.get(switch, 0) for switch in switches], [list(old.labels.get(switch, ())) for switch in switches])
    # A reserve of at least one lets the planner choose IDs of which any may be in one key.
    bank = suit(network, demand.all_meeting(), max(1, reserve), before)
    ids = dict(zip(switches, bank.ids, strict=True))
    return Identifiers(old.epoch, ids, {switch: tuple(labels) for switch, labels in zip(switches, bank.labels, strict=True)})


def suffices(identifiers: Identifiers, topology: Topology, lanes: Collection[int]) -> bool:
    """Returns whether all switches in `lanes` have IDs, and labels for their links."""
    return _suffices(identifiers, _ports(topology, lanes))


def _suffices(identifiers: Identifiers, ports: Mapping[int, set[int]]) -> bool:
    return all(ports[switch] <= set(identifiers.labels.get(switch, ())) for switch in ports)


def _ports(topology: Topology, lanes: Collection[int]) -> dict[int, set[int]]:
    """Returns the ports for which each switch in `lanes` needs a label."""
    ports: dict[int, set[int]] = {switch: {LOCAL} for switch in lanes}
    for end in topology.peers:
        if end.switch in ports:
            ports[end.switch].add(end.number)
    return ports


def renumbered(old: Identifiers, topology: Topology, lanes: Collection[int], reserve: int) -> Identifiers:
    """Chooses all IDs and labels again, for the other epoch. Switches that have left get none."""
    return extended(Identifiers(1 - old.epoch), topology, lanes, reserve)


def labelled(identifiers: Identifiers, topology: Topology, lanes: Collection[int]) -> Topology:
    """Returns the network without the links for which a switch in `lanes` has no label."""
    ends = {Port(switch, port) for switch, ports in identifiers.labels.items() for port in ports}
    links = frozenset(link for link in topology.links if all(end in ends or end.switch not in lanes for end in link))
    return topology if links == topology.links else replace(topology, links=links)


def _uses(topology: Topology) -> dict[int, int]:
    """Returns an estimate of how often each switch is in a key."""
    graph: Any = networkx.Graph()
    graph.add_nodes_from(topology.switches)
    graph.add_edges_from((a.switch, b.switch) for a, b in topology.links)
    if not graph:
        return {}
    share = networkx.betweenness_centrality(graph, k=min(len(graph), SAMPLES_MAX), endpoints=True, seed=1)
    return {switch: 1 + round(USES_MAX * part) for switch, part in share.items()}
