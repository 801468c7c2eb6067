# SPDX-License-Identifier: Apache-2.0
"""Gates of Tag-and-Forward: numbers for the ports of a fat tree, such that rounding up a target's gate gives
the gate of the port that leads to the target.

The bottom-up pass numbers server ports with an arithmetic progression. A port to a lower switch gets the
highest gate of that switch, so the difference d grows by the number of lower ports with each layer. The top-down pass
does the same from the cores' external ports. A switch computes f(g, d) for a gate g, which rounds up to a
multiple of d.

The result is the gate of the correct port only if the gates of each switch end at a multiple of the d above.
The first term of a pass is therefore A + d, where A is a multiple of the largest d of the pass. (Properties
P1 to P4 of the papers do not require this and allow numbers that lead elsewhere.)
"""

from dataclasses import dataclass
from typing import NamedTuple

from shunt_controller.plan.errors import need
from shunt_controller.plan.fattree import FatTree, Place, filled

ASSISTS = "G_ASS"
"""Flag of a gate from an aggregation switch to an edge switch: packets received at this gate may go up."""
SERVER = "G_SRV"
EXTERNAL = "G_EXT"
STEP = 2
"""Difference between the gates of the lowest layer. All gates are even."""
OUTSIDE_DEFAULT = 2
"""Number of external gates per core in a tree without external links. They are needed, because upward gates
are derived from them."""


class Header(NamedTuple):
    """Field lengths of a tag in bits."""

    name: str
    up_bits: int
    down_bits: int


PAPER = Header("paper", 32, 13)
WIDE = Header("wide", 29, 16)


class Gate(NamedTuple):
    """Gate of a port. `to` is the node that the port leads to, or None if nothing is connected yet."""

    gate: int
    port: int
    flag: str
    to: int | None


@dataclass(frozen=True)
class Switch:
    """Configuration of a switch. If one of its differences d is 0, the switch has no gates of that kind."""

    node: int
    layer: str
    down_d: int
    up_d: int
    external_d: int
    """Difference of a core's external gates, which are greater than `server_gate_max`."""
    gates: dict[int, Gate]
    """Gates by gate number."""
    by_port: dict[int, Gate]


@dataclass(frozen=True)
class Numbering:
    """Gates of a tree."""

    tree: FatTree
    header: Header
    server_first: int
    external_first: int
    outside: int
    """Number of external gates per core, including unconnected ones."""
    server_gate_max: int
    switches: dict[int, Switch]


def passes(tree: FatTree, outside: int) -> tuple[int, int]:
    """Returns the largest d of each pass: that of the cores for the bottom-up pass, and that of the edge
    switches' uplinks for the top-down pass."""
    return STEP * tree.places * len(tree.edges[0]), STEP * outside * tree.uplinks


def _highest(tree: FatTree, server_first: int) -> int:
    """Returns the highest server gate."""
    return server_first + STEP * (tree.places * sum(map(len, tree.edges)) - 1)


def outside_of(tree: FatTree) -> int:
    """Returns the number of external gates of each core: the maximum over all cores."""
    return max(len(places) for places in tree.outside.values()) or OUTSIDE_DEFAULT


def breaches(tree: FatTree, server_first: int, external_first: int, outside: int) -> list[str]:
    """Returns a description of each violation of the rule for the first terms of passes."""
    largest_up, largest_down = passes(tree, outside)
    highest = _highest(tree, server_first)
    found = []
    if server_first - STEP < 0 or (server_first - STEP) % largest_up:
        found.append(f"server gates begin at {server_first}, which is not {STEP} more than a multiple of {largest_up}")
    if (external_first - STEP) % largest_down:
        found.append(f"external gates begin at {external_first}, which is not {STEP} more than a multiple of {largest_down}")
    if external_first <= highest:
        found.append(f"external gates begin at {external_first}, and server gates reach {highest}")
    return found


def number(
    tree: FatTree, header: Header = PAPER, external_first: int | None = None, server_first: int = STEP, checked: bool = True
) -> Numbering:
    """Numbers the gates of a tree. By default, external gates start after the first multiple of their largest
    d that is above all server gates. The rule for first terms is verified only if `checked`."""
    outside = outside_of(tree)
    highest = _highest(tree, server_first)
    if external_first is None:
        largest = passes(tree, outside)[1]
        external_first = (highest // largest + 1) * largest + STEP
    if checked:
        found = breaches(tree, server_first, external_first, outside)
        need(not found, "; ".join(found))
        _need_room(tree, header, highest, external_first, outside)
    switches = _number(tree, server_first, external_first, outside)
    return Numbering(tree, header, server_first, external_first, outside, highest, switches)


def _need_room(tree: FatTree, header: Header, highest: int, external_first: int, outside: int) -> None:
    """Raises an error unless all gates that a tag may carry fit its fields."""
    down_max, up_max = (1 << header.down_bits) - 1, (1 << header.up_bits) - 1
    other = "; the wide variant has 16" if header == PAPER else ""
    need(
        highest <= down_max,
        f"k = {tree.k} has server gates up to {highest}, and DOWN has {header.down_bits} bits, up to {down_max}{other}",
    )
    external_last = external_first + STEP * (outside * sum(map(len, tree.cores)) - 1)
    is_used = any(tree.outside.values())
    need(
        not is_used or external_last <= down_max,
        f"k = {tree.k} with {outside} external gates at each core has gates up to {external_last}, and DOWN has "
        f"{header.down_bits} bits, up to {down_max}{other}",
    )
    need(external_last <= up_max, f"gates reach {external_last}, and UP has {header.up_bits} bits, up to {up_max}")


def _number(tree: FatTree, server_first: int, external_first: int, outside: int) -> dict[int, Switch]:
    neighbours = tree.network.neighbours
    gates: dict[int, list[Gate]] = {
        node: [] for layer in (tree.edges, tree.aggregations, tree.cores) for row in layer for node in row
    }
    top: dict[int, int] = {}

    def take(node: int, gate: int, place: Place, flag: str) -> None:
        gates[node].append(Gate(gate, place.port, flag, place.node))
        top[node] = max(top.get(node, 0), gate)

    def lift(node: int, peer: int, flag: str) -> None:
        take(node, lower[peer], Place(neighbours[node][peer], peer), flag)

    # Bottom-up pass: edge, aggregation, core.
    next_gate = server_first
    for edge in (edge for pod in tree.edges for edge in pod):
        for place in tree.servers[edge]:
            take(edge, next_gate, place, SERVER)
            next_gate += STEP
    lower = dict(top)
    for pod, row in enumerate(tree.aggregations):
        for switch in row:
            for edge in tree.edges[pod]:
                lift(switch, edge, ASSISTS)
    lower = dict(top)
    for plane, cores in enumerate(tree.cores):
        for core in cores:
            for row in tree.aggregations:
                lift(core, row[plane], "")
    # Top-down pass: core, aggregation, edge.
    top.clear()
    next_gate = external_first
    for core in (core for plane in tree.cores for core in plane):
        for place in filled(tree.network, core, tree.outside[core], outside):
            take(core, next_gate, place, EXTERNAL)
            next_gate += STEP
    lower = dict(top)
    for row in tree.aggregations:
        for plane, switch in enumerate(row):
            for core in tree.cores[plane]:
                lift(switch, core, "")
    lower = dict(top)
    for pod, row in enumerate(tree.edges):
        for edge in row:
            for switch in tree.aggregations[pod]:
                lift(edge, switch, "")
    steps = {
        "edge": (STEP, STEP * outside * tree.uplinks, 0),
        "aggregation": (STEP * tree.places, STEP * outside, 0),
        "core": (STEP * tree.places * len(tree.edges[0]), 0, STEP),
    }
    layers = {"edge": tree.edges, "aggregation": tree.aggregations, "core": tree.cores}
    return {
        node: Switch(
            node, layer, *steps[layer], {gate.gate: gate for gate in gates[node]}, {gate.port: gate for gate in gates[node]}
        )
        for layer, rows in layers.items()
        for row in rows
        for node in row
    }
