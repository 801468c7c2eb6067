# SPDX-License-Identifier: Apache-2.0
"""The tags (UP, DOWN) of Tag-and-Forward: the tags for each target, how a switch forwards by a tag, and walks
which prove that packets arrive."""

import random
from collections.abc import Iterator
from typing import NamedTuple

from shunt_controller.plan.gates import (
    ASSISTS,
    EXTERNAL,
    SERVER,
    Gate,
    Numbering,
    Switch,
)

NO_GATE = "no_gate"


class Tag(NamedTuple):
    """A tag that an edge entry pushes, and the output port of the entry."""

    out_port: int
    up: int
    down: int


class Target(NamedTuple):
    """A server or an external node, with its switch and its gate at that switch."""

    switch: int
    gate: Gate


class Arrival(NamedTuple):
    """The end of a packet's walk: the switch and gate by which the packet left the tree, or the switch that
    dropped it, without a gate."""

    switch: int
    gate: Gate | None
    visited: tuple[int, ...]
    """Visited switches, starting with the first one."""


def f(gate: int, d: int) -> int:
    """Returns the output gate: the lowest multiple of d that is not below `gate`. If d is 0, returns 0, which
    is not a gate."""
    return -(-gate // d) * d if d else 0


def forward(switch: Switch, server_gate_max: int, in_gate: Gate, up: int, down: int) -> Gate | None:
    """Returns the output gate of a tagged packet, exactly as docs/planning.md defines it, or None if the
    packet is dropped. The switch pops the tag if the gate's flag is :data:`SERVER` or :data:`EXTERNAL`."""
    if in_gate.flag == ASSISTS and up and down:
        number = f(up, switch.up_d)
    else:
        is_external = switch.external_d and down > server_gate_max
        number = f(down, switch.external_d if is_external else switch.down_d)
    found = switch.gates.get(number)
    return None if found is None or found == in_gate else found


def targets(numbering: Numbering) -> list[Target]:
    """Returns all servers and external nodes in the order of their gates, including unconnected ones."""
    found = [
        Target(node, gate)
        for node, switch in numbering.switches.items()
        for gate in switch.gates.values()
        if gate.flag in (SERVER, EXTERNAL)
    ]
    return sorted(found, key=lambda target: target.gate.gate)


def tags(numbering: Numbering, edge: int, target: Target, pod_of: dict[int, int]) -> list[Tag]:
    """Returns all tags from an edge switch to a target at another switch. There are (k/2)^2 tags to another
    pod, and k/2 tags without UP within a pod. To an external node there is one tag, because only one core
    leads to it."""
    tree, neighbours = numbering.tree, numbering.tree.network.neighbours
    down = target.gate.gate
    found = []
    for plane, aggregation in enumerate(tree.aggregations[pod_of[edge]]):
        out_port = neighbours[edge][aggregation]
        if pod_of.get(target.switch) == pod_of[edge]:
            found.append(Tag(out_port, 0, down))
            continue
        by_port = numbering.switches[aggregation].by_port
        for core in tree.cores[plane]:
            if target.gate.flag == SERVER or core == target.switch:
                found.append(Tag(out_port, by_port[neighbours[aggregation][core]].gate, down))
    return found


def walk(numbering: Numbering, edge: int, tag: Tag) -> Arrival:
    """Walks a packet that an edge switch tags and sends. The upward gates of the edge switch must agree with
    its entry."""
    ports, switches = numbering.tree.network.ports, numbering.switches
    visited = [edge]
    if tag.up:
        own = switches[edge].gates.get(f(tag.up, switches[edge].up_d))
        if own is None or own.port != tag.out_port:
            return Arrival(edge, None, (edge,))
    node, in_port = ports[edge][tag.out_port]
    while True:
        visited.append(node)
        switch = switches[node]
        gate = forward(switch, numbering.server_gate_max, switch.by_port[in_port], tag.up, tag.down)
        if gate is None or gate.flag in (SERVER, EXTERNAL):
            return Arrival(node, gate, tuple(visited))
        # Only gates with flags lead out of the tree.
        node, in_port = ports[node][gate.port]


class Proof(NamedTuple):
    """Result of the walks."""

    walks: int
    failed: list[tuple[int, Target, Tag, Arrival]]
    switches_max: int
    """Maximum number of switches of a walk, including the first one."""


def pairs(numbering: Numbering, sample: int | None = None, seed: int = 1) -> Iterator[tuple[int, Target]]:
    """Yields all pairs of an edge switch and a target at another switch, or a sample of these pairs."""
    edges = [edge for pod in numbering.tree.edges for edge in pod]
    everything = targets(numbering)
    if sample is None:
        yield from ((edge, target) for edge in edges for target in everything if target.switch != edge)
        return
    draw = random.Random(seed)
    left = sample
    while left:
        edge, target = draw.choice(edges), draw.choice(everything)
        if target.switch != edge:
            left -= 1
            yield edge, target


def prove(numbering: Numbering, sample: int | None = None, seed: int = 1) -> Proof:
    """Walks every tag of every pair of edge switch and target, or of a sample of pairs. Returns the walks
    that do not arrive. A packet visits at most four switches after its edge switch."""
    pod_of = numbering.tree.pod_of()
    walks = longest = 0
    failed = []
    for edge, target in pairs(numbering, sample, seed):
        for tag in tags(numbering, edge, target, pod_of):
            arrival = walk(numbering, edge, tag)
            walks += 1
            longest = max(longest, len(arrival.visited))
            if (arrival.switch, arrival.gate) != (target.switch, target.gate):
                failed.append((edge, target, tag, arrival))
    return Proof(walks, failed, longest)
