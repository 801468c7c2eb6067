# SPDX-License-Identifier: Apache-2.0
"""A controller that takes over a fat tree from another one keeps its gates, also the gates of a switch that has lost
its state."""

import json
from dataclasses import replace

import pytest
from test_tagforward import check, controller, finish
from test_tree import topology

from shunt_controller.live.state import State
from shunt_controller.live.tagforward import Settings, TagForward
from shunt_controller.live.topology import Port
from shunt_controller.sections import Gates


def after(first: TagForward, lost: int, bases: list[dict]) -> tuple[TagForward, list[str]]:
    """Returns a controller that takes over, and its reports. One switch has lost its state."""
    reports: list[str] = []
    made = TagForward(Settings(), lambda kind, text: reports.append(text))
    made.set_topology(first.topology)
    for switch, state in first.rollout.actual.items():
        made.known(switch, State() if switch == lost else state, True)
    made.restore()
    made.adopt(bases)
    made.update()
    finish(made)
    return made, reports


def gates(made: TagForward) -> dict[int, Gates]:
    """Returns the gates of all switches."""
    return {switch: state.sections[Gates.kind, 0] for switch, state in made.rollout.actual.items()}


def changed() -> tuple[TagForward, int]:
    """Returns a controller of a tree in which the lowest server port of a switch came last, and the switch."""
    whole = topology(4)
    edge = whole.hosts[0].at.switch
    port = min(whole.edge_ports(edge))
    without = {**whole.switches, edge: whole.switches[edge] - {port}}
    hosts = tuple(host for host in whole.hosts if host.at != Port(edge, port))
    first = controller(replace(whole, switches=without, hosts=hosts))
    first.set_topology(whole)
    assert first.update()
    finish(first)
    check(first, whole, 20)
    return first, edge


def test_the_order_of_ports_is_taken_from_the_stored_basis():
    first, edge = changed()
    basis = json.loads(json.dumps(first.basis()))
    second, reports = after(first, edge, [basis])
    assert gates(second) == gates(first) and not reports
    check(second, first.topology, 20)
    # Without the basis, the switch that has lost its state gets other gates.
    third, _ = after(first, edge, [])
    assert gates(third) != gates(first)


@pytest.mark.parametrize("damaged", [{}, {"servers": []}, {"servers": {"x": [1]}, "outside": {}}, {"servers": {f"{1:016x}": ["a"]}, "outside": {}}, {"servers": {f"{1:016x}": [3, 3]}, "outside": {}}, {"servers": {f"{1:016x}": [0]}, "outside": {}}, {"servers": {"1": [3]}, "outside": {}}])
def test_a_damaged_basis_is_reported_and_the_next_one_used(damaged):
    first, edge = changed()
    second, reports = after(first, edge, [damaged, first.basis()])
    assert any("a stored plan is not used" in text for text in reports)
    assert gates(second) == gates(first)


def test_a_basis_that_the_gates_of_switches_differ_from_is_reported_and_not_used():
    first, edge = changed()
    lost = next(switch for switch, ports in first.basis()["servers"].items() if ports and switch != f"{edge:016x}")
    for change in (lambda ports: ports[::-1], lambda ports: ports[:-1], lambda ports: []):
        basis = json.loads(json.dumps(first.basis()))
        basis["servers"][f"{edge:016x}"] = change(basis["servers"][f"{edge:016x}"])
        second, reports = after(first, int(lost, 16), [basis])
        assert any(f"a stored plan is not used: switch {edge:x} has gates" in text for text in reports)
        assert gates(second) == gates(first)
        check(second, first.topology, 20)


def test_the_next_plan_is_completed_that_some_switches_do_not_have_yet():
    whole = topology(4)
    edge = whole.hosts[0].at.switch
    port = min(whole.edge_ports(edge))
    without = {**whole.switches, edge: whole.switches[edge] - {port}}
    first = controller(replace(whole, switches=without, hosts=tuple(host for host in whole.hosts if host.at != Port(edge, port))))
    before = json.loads(json.dumps(first.basis()))
    first.set_topology(whole)
    assert first.update()
    following = json.loads(json.dumps(first.basis()))
    assert following != before
    # The controller is killed before it has changed a switch.
    second, reports = after(first, 0, [following, before])
    assert second.basis() == following and not reports
    # Another one is killed when the switch has been changed. The plan before lacks the new gate.
    third, reports = after(second, 0, [before])
    assert third.basis() == following and len(reports) == 1
