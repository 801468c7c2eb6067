# SPDX-License-Identifier: Apache-2.0
"""Tag-and-Forward plans as JSON (docs/planning.md)."""

from typing import Any

from shunt_controller.plan.documents import FORMAT, VERSION
from shunt_controller.plan.files import to_json
from shunt_controller.plan.gates import EXTERNAL, SERVER, Gate, Numbering
from shunt_controller.plan.tags import targets


def document(numbering: Numbering) -> dict[str, Any]:
    """Returns a plan as JSON."""
    tree = numbering.tree
    names, neighbours = tree.network.nodes, tree.network.neighbours
    pod_of = tree.pod_of()
    plane_of = {node: plane for row in tree.aggregations for plane, node in enumerate(row)}
    plane_of |= {node: plane for plane, cores in enumerate(tree.cores) for node in cores}

    def gate(found: Gate) -> list[Any]:
        return [found.port, found.gate, found.flag, None if found.to is None else names[found.to]]

    switches: list[dict[str, Any]] = []
    for node, switch in numbering.switches.items():
        switches.append(
            {
                "name": names[node],
                "layer": switch.layer,
                "pod": pod_of.get(node),
                "plane": plane_of.get(node),
                "down_d": switch.down_d,
                "up_d": switch.up_d,
                "external_d": switch.external_d,
                "gates": [gate(found) for found in sorted(switch.by_port.values(), key=lambda found: found.port)],
            }
        )
        if switch.layer == "edge":
            switches[-1]["uplinks"] = [neighbours[node][above] for above in tree.aggregations[pod_of[node]]]
    found = targets(numbering)
    first_pod = tree.aggregations[0]
    ups = [
        [numbering.switches[switch].by_port[neighbours[switch][core]].gate for core in tree.cores[plane]]
        for plane, switch in enumerate(first_pod)
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "kind": "tag-and-forward",
        "network": to_json(tree.network),
        "k": tree.k,
        "header": numbering.header._asdict(),
        "server_first": numbering.server_first,
        "external_first": numbering.external_first,
        "external_per_core": numbering.outside,
        "server_gate_max": numbering.server_gate_max,
        "ups": ups,
        "switches": switches,
        "hosts": [_target(names, at.switch, at.gate) for at in found if at.gate.flag == SERVER],
        "external": [_target(names, at.switch, at.gate) for at in found if at.gate.flag == EXTERNAL],
    }


def _target(names: tuple[str, ...], switch: int, gate: Gate) -> dict[str, Any]:
    return {
        "name": None if gate.to is None else names[gate.to],
        "switch": names[switch],
        "port": gate.port,
        "gate": gate.gate,
    }
