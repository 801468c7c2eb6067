# SPDX-License-Identifier: Apache-2.0
"""Takes over a fat tree in which links do not work, after a restart of the controller. The switches still have
the gates of the whole tree, and gates identify the switch that a port leads to."""

from collections.abc import Mapping
from dataclasses import replace

from shunt_controller.live.state import State
from shunt_controller.live.topology import Link, Port, Topology, switch_of
from shunt_controller.live.tree import Ports, recognized, wiring_of
from shunt_controller.plan.errors import PlanError
from shunt_controller.plan.fattree import FatTree
from shunt_controller.plan.gates import Header, Numbering, number
from shunt_controller.plan.wiring import Wiring
from shunt_controller.sections import GateMap, Gates, Trusted


def taken_over(topology: Topology, had: Mapping[int, State], before: Ports, header: Header) -> FatTree | None:
    """Returns the tree whose gates switches have: the network with further links. `had` has the configurations
    of the switches, and `before` their ports for servers and to the outside. Returns None if the network lacks
    more than links, or if the gates belong to another tree."""
    wiring = wiring_of(topology)
    gates = {switch: lane for switch, state in had.items() if (lane := _gates(state)) is not None}
    if wiring is None or wiring.extra or not wiring.missing or gates.keys() != topology.switches.keys():
        return None
    switches = sorted(topology.switches)
    missing = [(switches[a], switches[b]) for a, b in wiring.missing]
    links = _provisional(topology, had, missing)
    if links is None:
        return None
    # The wiring of the whole tree is known, but not which of several ports lead to which switch.
    whole = replace(wiring, missing=[])
    numbering = _numbered(topology, links, before, header, whole)
    if numbering is None:
        return None
    placed = [_placed(numbering, gates, a, b) for a, b in missing]
    known = frozenset(link for link in placed if link is not None)
    if len(known) < len(missing):
        return None
    numbering = _numbered(topology, known, before, header, whole)
    return numbering.tree if numbering is not None and _agree(numbering, gates) else None


def _gates(state: State) -> GateMap | None:
    section = state.sections.get((Gates.kind, 0))
    return section.gates if isinstance(section, Gates) else None


def _provisional(topology: Topology, had: Mapping[int, State], missing: list[tuple[int, int]]) -> frozenset[Link] | None:
    """Returns a link for each missing cable, between ports that should have links. Returns None if the number of
    these ports differs from that of the cables."""
    free: dict[int, list[int]] = {}
    for switch, state in had.items():
        trusted = state.sections.get((Trusted.kind, 0))
        ports = sorted(trusted.ports) if isinstance(trusted, Trusted) else []
        free[switch] = [port for port in ports if Port(switch, port) not in topology.peers]
    ends = [switch for pair in missing for switch in pair]
    if any(len(ports) != ends.count(switch) for switch, ports in free.items()):
        return None
    return frozenset(Link.of(Port(a, free[a].pop()), Port(b, free[b].pop())) for a, b in missing)


def _numbered(topology: Topology, further: frozenset[Link], before: Ports, header: Header, whole: Wiring) -> Numbering | None:
    """Returns the gates of a network with further links. Returns None if it is no tree."""
    try:
        tree = recognized(replace(topology, links=topology.links | further), before, whole)
        return None if tree is None else number(tree, header)
    except PlanError:
        return None


def _placed(numbering: Numbering, gates: Mapping[int, GateMap], a: int, b: int) -> Link | None:
    """Returns the link between two switches, at the ports that have the gates of this link."""
    names = numbering.tree.network.nodes
    node = {switch_of(name): at for at, name in enumerate(names)}
    ends = []
    for own, other in ((a, b), (b, a)):
        towards = {gate.gate for gate in numbering.switches[node[own]].gates.values() if gate.to == node[other]}
        ports = [port for port, gate in gates[own].ports.items() if gate.number in towards]
        if len(ports) != 1:
            return None
        ends.append(Port(own, ports[0]))
    return Link.of(*ends)


def _agree(numbering: Numbering, gates: Mapping[int, GateMap]) -> bool:
    """Returns whether switches have the gates of a tree, at all ports that have gates."""
    names = numbering.tree.network.nodes
    for node, one in numbering.switches.items():
        lane = gates[switch_of(names[node])]
        if (lane.down_d, lane.up_d, lane.external_d, lane.server_gate_max) != (one.down_d, one.up_d, one.external_d, numbering.server_gate_max):
            return False
        if any(port not in one.by_port or one.by_port[port].gate != gate.number for port, gate in lane.ports.items()):
            return False
    return True
