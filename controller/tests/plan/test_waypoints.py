# SPDX-License-Identifier: Apache-2.0
"""Tests of split protected routes. A packet on a detour may arrive at a waypoint by the output port of its
next segment."""

import copy
import json
from itertools import pairwise

import networkx
import pytest
from networks import zoo
from shunt_controller.edges import Host
from shunt_controller.plan import files
from shunt_controller.plan.arithmetic import INTEGERS, POLYNOMIALS
from shunt_controller.plan.check import check
from shunt_controller.plan.cli import main
from shunt_controller.plan.documents import document, plan_of
from shunt_controller.plan.errors import PlanError
from shunt_controller.plan.network import Network
from shunt_controller.plan.protection import plan_protected
from shunt_controller.plan.routes import Trees
from shunt_controller.plan.steering import Course, Stray, Survival, arrives
from shunt_controller.plan.walk import INGRESS_PORT, NO_LABEL, Entry, Failure, Walk, by_key
from test_edges import Net
from test_random import Switches, long_network, random_network

HOST_PORT = 900
TABLES_MAX = 40


def odd_networks() -> list[Network]:
    """Returns networks of unusual shape. In most of them, the keys of routes with detours do not fit 64
    bits."""
    # Rings in a row, each with one switch in common with the next.
    necklace = networkx.Graph()
    for first in range(0, 20, 5):
        around = [*range(first, first + 6), *(100 + first + at for at in range(2))]
        necklace.add_edges_from([*pairwise(around), (around[-1], first)])
    tails = networkx.cycle_graph(16)
    tails.add_edges_from((node, node + 100) for node in range(0, 16, 3))
    twice = networkx.MultiGraph(networkx.path_graph(16))
    twice.add_edges_from(list(twice.edges()))
    rings = networkx.cycle_graph(14)
    rings.add_edges_from([(0, 20), *pairwise(range(20, 32)), (31, 0)])
    made = {
        "necklace": necklace,
        "ring": networkx.cycle_graph(20),
        "tails": tails,
        "rings that share a switch": rings,
        "ladder": networkx.ladder_graph(11),
        "hub": networkx.wheel_graph(24),
        "parallel links": twice,
        "tree": networkx.balanced_tree(2, 3),
        "lollipop": networkx.lollipop_graph(6, 10),
    }
    return [files.of_graph(name, graph) for name, graph in made.items()] + [long_network(7), random_network(300)]


def promises(data):
    """Yields each failure that is harmless according to the document: the route, the failed ends of links,
    and the failed switch."""
    switches = Switches(data)
    for route in data["plans"][0]["routes"]:
        for segment in route["segments"]:
            for (node, following), guard in zip(pairwise(segment["path"]), segment["guards"], strict=True):
                out = segment["out_port"]
                if node != segment["path"][0]:
                    bank = switches.banks[node]
                    out = bank["labels"][switches.residue(int(segment["key"], 16), bank["id"])]
                if "link" in guard:
                    yield route, {(node, out), switches.peer[node, out]}, None
                if "node" in guard:
                    yield route, switches.around(following), following


def broken(data) -> int:
    """Returns the number of promises that are broken between the ends of a route, using only the document."""
    switches = Switches(data)
    return sum(not switches.deliver(route, down, dead) for route, down, dead in promises(data))


def without_returns(data):
    """Returns the plan without return ports, like a plan made before waypoints could send packets back."""
    data = copy.deepcopy(data)
    for route in data["plans"][0]["routes"]:
        for segment in route["segments"]:
            segment.pop("return_ports", None)
    return data


CASES = [(network, INTEGERS) for network in odd_networks()] + [(odd_networks()[0], POLYNOMIALS)]


@pytest.mark.parametrize(("network", "arithmetic"), CASES, ids=lambda case: case.name)
def test_promises_are_kept_across_waypoints(network, arithmetic):
    made = plan_protected(Trees(network), "hops", 64, arithmetic=arithmetic)
    data = document(made)
    assert all(Switches(data).deliver(route) for route in data["plans"][0]["routes"])
    assert broken(data) == 0
    found = check(plan_of("x", data))
    assert not found.faults and found.guarded == sum(1 for _ in promises(data))


def tables(data):
    """Yields the switches whose tables receive a route's packet under each single failure on the route. These
    switches forward it by their entries, including those of other routes."""
    switches = Switches(data)
    pushed = {(segment["path"][0], route["to"]): segment for route in data["plans"][0]["routes"] for segment in route["segments"][1:]}
    for route in data["plans"][0]["routes"]:
        path = [route["from"], *(name for segment in route["segments"] for name in segment["path"][1:])]
        links = [link for link in pairwise(path)]
        for down, dead in [(switches.between(*link), None) for link in links] + [(switches.around(name), name) for name in path[1:]]:
            segment, came, found = route["segments"][0], None, [route["from"]]
            while segment is not None and len(found) < TABLES_MAX:
                visited, came = switches.follow(segment, came, down, dead)
                if came is None:
                    break
                found.append(visited[-1])
                segment = pushed.get((visited[-1], route["to"]))
            yield route, found


@pytest.mark.parametrize("network", odd_networks(), ids=lambda network: network.name)
def test_no_packet_gets_to_another_waypoint_whatever_fails(network):
    """Another waypoint would send the packet on with a new hop limit, so the packet might loop."""
    data = document(plan_protected(Trees(network), "hops", 64))
    waypoints = {(segment["path"][0], route["to"]) for route in data["plans"][0]["routes"] for segment in route["segments"][1:]}
    for route, found in tables(data):
        planned = [route["from"], *(segment["path"][-1] for segment in route["segments"])]
        of_waypoints = [name for name in found[1:] if (name, route["to"]) in waypoints]
        assert of_waypoints == planned[1 : 1 + len(of_waypoints)], (route, found)


def test_a_plan_without_return_ports_is_detected(tmp_path, capsys):
    network = odd_networks()[0]
    data = document(plan_protected(Trees(network), "hops", 64))
    old = without_returns(data)
    lost = broken(old)
    faults = check(plan_of("x", old)).faults
    # A packet that arrives at a waypoint by a wrong port is dropped there.
    assert lost > 100 and len(faults) == lost and all(f"({INGRESS_PORT})" in fault for fault in faults)
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(old))
    assert main(["check", str(path)]) == 1
    assert f"{lost} faults under epoch 0" in capsys.readouterr().err
    path.write_text(json.dumps(data))
    assert main(["check", str(path)]) == 0


def test_returns_are_by_ports_that_the_entry_sends_by():
    data = document(plan_protected(Trees(odd_networks()[0]), "hops", 64))
    segments = [segment for route in data["plans"][0]["routes"] for segment in route["segments"]]
    segment = next(segment for segment in segments if "return_ports" in segment)
    segment["return_ports"] = [77]
    with pytest.raises(PlanError, match=r"has the return ports \[77\], which are not among its output ports"):
        plan_of("x", data)


def test_geant_in_64_bits_keeps_its_promises():
    data = document(plan_protected(Trees(zoo("Geant2012")), "hops", 64))
    assert broken(data) == 0 and broken(without_returns(data)) == 80
    # The earlier planner, whose waypoints could not send packets back, declared as many failures harmless,
    # some of them wrongly.
    assert sum(1 for _ in promises(data)) == 7838


@pytest.mark.parametrize("network", [*odd_networks(), *map(random_network, range(400, 405))], ids=lambda network: network.name)
def test_short_walks_have_the_results_of_complete_walks(network):
    made = plan_protected(Trees(network), "hops", 64)
    survived = promised = 0
    for route in made.routes:
        for segment in route.segments:
            says = by_key(made.bank, segment.key)

            def port_of(node, says=says):
                return None if says(node) == NO_LABEL else says(node)

            course = Course(network, segment.nodes, made.bank.backups, port_of)
            promised += sum(map(bool, segment.guards))
            for hop, node in enumerate(segment.nodes[:-1]):
                following = segment.nodes[hop + 1]
                for is_node in (False, True)[: 1 + (hop + 2 < len(segment.nodes))]:
                    failure = Failure(following) if is_node else Failure(node, network.neighbours[node][following])
                    outcome = Walk(network, made.bank.backups, failure).run(segment.entry(), says, 255)
                    survival = course.follow(hop, is_node)
                    assert isinstance(survival, Survival) == arrives(outcome, segment.nodes[-1]), (segment, failure)
                    if isinstance(survival, Stray):
                        assert (outcome.node, outcome.reason) == (survival.node, "")
                    elif survival is None:
                        assert outcome.reason
                    else:
                        survived += 1
                        assert (survival.forwarded, survival.in_port) == (outcome.forwarded, outcome.in_port)
                        assert set(outcome.visited[1:]) <= {*segment.nodes[1:], *survival.more}
                        assert set(survival.more) <= set(outcome.visited[1:])
    assert survived >= promised


def test_an_entry_drops_packets_that_it_may_not_send_back():
    assert Entry(0, 1, 2).choose(None, set()) == 1
    assert Entry(0, 1, 2).choose(1, set()) == INGRESS_PORT
    assert Entry(0, 1, 2, [1]).choose(1, set()) == 1
    # The group checks whether ports are up, not which port is the ingress port.
    assert Entry(0, 1, 2, [1]).choose(2, {1}) == INGRESS_PORT
    assert Entry(0, 1, 2, [2]).choose(2, {1}) == 2
    assert Entry(0, 1, 2).choose(3, {1, 2}) == Entry(0, 1).choose(3, {1}) == "port_down"


@pytest.mark.parametrize("network", [odd_networks()[0], odd_networks()[2]], ids=lambda network: network.name)
def test_entries_of_waypoints_send_back(network):
    """The messages of an application have the effect that the plan states."""
    data = document(plan_protected(Trees(network), "hops", 64))
    hosts = [Host(f"10.0.0.{at}", name, HOST_PORT) for at, name in enumerate(network.nodes, 1)]
    by_name = {host.switch: host for host in hosts}
    net = Net(data, hosts)
    returned = 0
    for route, down, dead in list(promises(data))[::5]:
        source, target = by_name[route["from"]], by_name[route["to"]]
        net.down = down
        assert dead not in (source.switch, target.switch)
        assert net.send(source, target.address) == ((target.switch, HOST_PORT), None), (route, down, dead)
        returned += any("return_ports" in segment for segment in route["segments"])
    assert returned > 20
