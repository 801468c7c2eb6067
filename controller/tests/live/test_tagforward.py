# SPDX-License-Identifier: Apache-2.0
"""Tag-and-Forward in fat trees that change: a model of the switches delivers all packets."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_3 as ofp
from test_tree import topology

from shunt_controller.actions import PushTf
from shunt_controller.edges import FROM_HOSTS, PRIORITY
from shunt_controller.live.state import State
from shunt_controller.live.tagentries import QID_UNIT
from shunt_controller.live.tagforward import Settings, TagForward
from shunt_controller.live.topology import Host, Link, Port, Topology
from shunt_controller.live.tree import links_of
from shunt_controller.plan.tags import f
from shunt_controller.sections import Flag, Gates, Trusted

reports: list[str] = []


def controller(found: Topology, **given) -> TagForward:
    """Returns a controller with a plan of the network, which all switches have."""
    reports.clear()
    made = TagForward(Settings(**given), lambda kind, text: reports.append(text))
    made.set_topology(found)
    for switch in found.switches:
        made.known(switch, State(), True)
    made.restore()
    assert made.update(), reports
    finish(made)
    return made


def finish(made: TagForward) -> None:
    """Lets all switches take over the desired configuration."""
    for round in range(50):
        for switch in made.rollout.next(10.0 * round):
            made.rollout.done(switch, 10.0 * round)
    assert made.rollout.is_settled


def ends(states: dict[int, State], found: Topology, src: Host, dst: Host) -> list[Port]:
    """Returns the ports by which packets leave the network, for each tag that the first switch may push."""
    state = states[src.at.switch]
    (enters,) = [one for one in state.flows.values() if one.id.table == 0 and one.match == {"in_port": src.at.number, "eth_src": src.mac}]
    assert enters.entry and enters.entry.goto == FROM_HOSTS
    (flow,) = [one for one in state.flows.values() if one.id.table == FROM_HOSTS and one.id.priority == PRIORITY and one.match == {"eth_dst": dst.mac}]
    assert flow.entry
    if flow.entry.group is None:
        return [Port(src.at.switch, flow.entry.port or 0)]
    arrived = []
    for way in state.planned[flow.entry.group.number].ways:
        (push,) = way.actions
        assert isinstance(push, PushTf)
        at = Port(src.at.switch, way.port)
        for _ in range(6):
            peer = found.peers.get(at)
            assert peer is not None, f"{at} has no link"
            at, popped = step(states[peer.switch], peer, push.up, push.down)
            if popped:
                arrived.append(at)
                break
        else:
            raise AssertionError("a loop")
    return arrived


def step(state: State, at: Port, up: int, down: int) -> tuple[Port, bool]:
    """Forwards a tagged packet as docs/planning.md defines it. Returns the output port, and whether the tag is
    popped."""
    trusted, lane = state.sections[Trusted.kind, 0], state.sections[Gates.kind, 0]
    assert isinstance(trusted, Trusted) and isinstance(lane, Gates) and lane.gates and at.number in trusted.ports
    gates = lane.gates
    if gates.ports[at.number].flag == Flag.ASSISTS and up and down:
        number = f(up, gates.up_d)
    else:
        number = f(down, gates.external_d if gates.external_d and down > gates.server_gate_max else gates.down_d)
    (port,) = [port for port, gate in gates.ports.items() if gate.number == number]
    assert port != at.number
    return Port(at.switch, port), gates.ports[port].flag in (Flag.SERVER, Flag.EXTERNAL)


def check(made: TagForward, found: Topology, most: int | None = None) -> None:
    """Checks that all tags between all servers lead to the right port."""
    for src, dst in list(product(found.hosts, found.hosts))[:most]:
        if src != dst:
            arrived = ends(made.rollout.actual, found, src, dst)
            assert arrived and set(arrived) == {dst.at}, (src, dst)


@pytest.mark.parametrize("k", [4, 6])
def test_all_hosts_reach_each_other(k):
    found = topology(k)
    made = controller(found)
    check(made, found)
    first, last = found.hosts[0], found.hosts[-1]
    assert len(ends(made.rollout.actual, found, first, last)) == (k // 2) ** 2


def test_servers_and_the_outside_reach_each_other():
    found = topology(4, 1)
    made = controller(found)
    cores = {switch for switch, state in made.rollout.actual.items() if state.sections[Gates.kind, 0].gates.external_d}
    inside = [host for host in found.hosts if host.at.switch not in cores]
    outside = [host for host in found.hosts if host.at.switch in cores]
    assert (len(inside), len(outside)) == (16, 4)
    for one, other in product(inside, outside):
        assert ends(made.rollout.actual, found, one, other) == [other.at]
        assert ends(made.rollout.actual, found, other, one) == [one.at]
    # Tags do not lead from one core switch to another.
    assert ends(made.rollout.actual, found, outside[0], outside[1]) == []


def test_each_single_link_may_fail():
    found = topology(4)
    made = controller(found)
    whole = dict(made.rollout.desired)
    for link in sorted(found.links):
        left = replace(found, links=found.links - {link})
        made.set_topology(left)
        assert made.update() and made.problems == [
            f"the link from port {link.a.number} of switch {link.a.switch:x} to port {link.b.number} of switch {link.b.switch:x} does not work"
        ]
        for switch, state in made.rollout.desired.items():
            # Only groups change.
            assert (state.sections, state.flows) == (whole[switch].sections, whole[switch].flows)
        finish(made)
        check(made, left, 40)
        made.set_topology(found)
        assert made.update()
        finish(made)
        assert made.rollout.actual == whole


def test_hosts_that_are_cut_off_have_groups_without_tags():
    found = topology(4)
    made = controller(found)
    edge = found.hosts[0].at.switch
    left = replace(found, links=frozenset(link for link in found.links if edge not in (link.a.switch, link.b.switch)))
    made.set_topology(left)
    assert made.update()
    finish(made)
    assert ends(made.rollout.actual, left, found.hosts[-1], found.hosts[0]) == []


def test_nothing_is_sent_without_a_change():
    found = topology(4)
    made = controller(found)
    made.set_topology(replace(found))
    assert not made.update() and made.rollout.next(1e6) == {}
    again = TagForward(Settings(), lambda kind, text: None)
    again.set_topology(found)
    for switch, state in made.rollout.actual.items():
        again.known(switch, state, True)
    again.restore()
    again.update()
    assert again.rollout.next(0.0) == {} and again.rollout.is_settled


def restarted(made: TagForward, found: Topology) -> TagForward:
    """Returns a controller that has just been started, with the switches of another one."""
    again = TagForward(Settings(), lambda kind, text: reports.append(text))
    again.set_topology(found)
    for switch, state in made.rollout.actual.items():
        again.known(switch, state, True)
    again.restore()
    return again


def left_without(found: Topology, links: frozenset[Link], is_down: bool) -> Topology:
    """Returns the network after links have failed. Their ports are down, or still up."""
    ends = {end for link in links for end in link}
    up = {switch: frozenset(port for port in ports if Port(switch, port) not in ends) for switch, ports in found.switches.items()}
    return replace(found, links=found.links - links, switches=up if is_down else found.switches)


@pytest.mark.parametrize("is_down", [True, False])
def test_a_restarted_controller_takes_over_a_tree_with_a_failed_link(is_down):
    found = topology(4, 1)
    made = controller(found)
    whole = dict(made.rollout.actual)
    for link in sorted(found.links):
        left = left_without(found, frozenset({link}), is_down)
        again = restarted(made, left)
        assert again.update(), reports
        text = f"the link from port {link.a.number} of switch {link.a.switch:x} to port {link.b.number} of switch {link.b.switch:x} does not work"
        assert again.problems == [text] and text in reports[-1]
        for switch, state in again.rollout.desired.items():
            assert (state.sections, state.flows) == (whole[switch].sections, whole[switch].flows)
        finish(again)
        # The plane of a core switch may be cut off from an edge switch, so only servers are checked.
        cores = {switch for switch, state in whole.items() if state.sections[Gates.kind, 0].gates.external_d}
        check(again, replace(left, hosts=tuple(host for host in left.hosts if host.at.switch not in cores)), 30)
        again.set_topology(found)
        assert again.update() and again.problems == []
        finish(again)
        assert again.rollout.actual == whole


@given(st.randoms(use_true_random=False), st.sampled_from([4, 6]), st.integers(2, 4), st.booleans())
@settings(max_examples=25, deadline=None)
def test_several_failed_links_are_taken_over_or_nothing_changes(random, k, count, is_down):
    found = topology(k)
    made = controller(found)
    # Half of the cases have several failed links at one switch, whose ports only their gates tell apart.
    links = sorted(found.links)
    near = random.choice(links).a.switch
    chosen = [link for link in links if near in (link.a.switch, link.b.switch)] if random.random() < 0.5 else links
    failed = frozenset(random.sample(chosen, min(count, len(chosen) - 1)))
    left = left_without(found, failed, is_down)
    again = restarted(made, left)
    if again.update():
        assert links_of(again.tree) == found.links and len(again.problems) == len(failed)
        finish(again)
        for src, dst in random.sample(list(product(found.hosts, found.hosts)), 20):
            if src != dst and src.at.switch != dst.at.switch:
                assert set(ends(again.rollout.actual, left, src, dst)) <= {dst.at}
    else:
        assert again.rollout.desired == {} and "waiting for a fat tree" in reports[-1]


def test_all_links_from_an_aggregation_switch_to_core_switches_may_have_failed():
    found = topology(4)
    made = controller(found)
    edges = {host.at.switch for host in found.hosts}
    above = {end.switch for link in found.links for end in link if edges & {link.a.switch, link.b.switch}} - edges
    for switch in above:
        failed = frozenset(link for link in found.links if switch in (link.a.switch, link.b.switch) and not edges & {link.a.switch, link.b.switch})
        again = restarted(made, left_without(found, failed, True))
        assert len(failed) == 2 and again.update() and links_of(again.tree) == found.links


def test_a_tree_is_not_taken_over_from_the_gates_of_another_one():
    found = topology(4)
    made = controller(found)
    # Two servers' ports have changed places with links, so the gates belong to other ports.
    link = min(found.links)
    left = left_without(found, frozenset({link}), True)
    edge = found.hosts[0].at
    section = made.rollout.actual[edge.switch].sections[Gates.kind, 0]
    ports = dict(section.gates.ports)
    first, second = sorted(ports)[:2]
    ports[first], ports[second] = ports[second], ports[first]
    wrong = Gates(replace(section.gates, ports=ports))
    state = made.rollout.actual[edge.switch]
    made.rollout.actual[edge.switch] = replace(state, sections={**state.sections, (Gates.kind, 0): wrong})
    again = restarted(made, left)
    # The order of servers is that of their gates, so this is the same tree with servers in another order.
    assert again.update() and again.rollout.desired[edge.switch].sections[Gates.kind, 0] == wrong
    wrong = Gates(replace(section.gates, up_d=section.gates.up_d * 2))
    made.rollout.actual[edge.switch] = replace(state, sections={**state.sections, (Gates.kind, 0): wrong})
    again = restarted(made, left)
    assert not again.update() and "waiting for a fat tree: a cable is missing" in reports[-1]


def test_another_network_leaves_the_switches_as_they_are():
    found = topology(4)
    made = controller(found)
    before = dict(made.rollout.desired)
    a, b = found.hosts[0].at, found.hosts[-1].at
    made.set_topology(replace(found, links=found.links | {Link.of(Port(a.switch, 70), Port(b.switch, 71))}, switches=found.switches))
    assert not made.update()
    assert made.rollout.desired == before and f"port 70 of switch {a.switch:x}" in reports[-1] and "stays as it is" in reports[-1]


def test_switches_without_stateless_forwarding_are_named():
    found = topology(4)
    made = TagForward(Settings(), lambda kind, text: reports.append(text))
    made.set_topology(found)
    for switch in found.switches:
        made.known(switch, State(), switch != 0x103)
    assert not made.update() and reports[-1] == "waiting for a fat tree: switch 103 has no stateless forwarding"


def test_tags_have_the_qid_of_the_dscp():
    found = topology(4)
    made = controller(found, qids={46: 5})
    state = made.rollout.actual[found.hosts[0].at.switch]
    matches = [one for one in state.flows.values() if one.match.get("ip_dscp") == 46 and one.match["eth_dst"] == found.hosts[-1].mac]
    assert sorted(one.match["eth_type"] for one in matches) == [0x0800, 0x86DD]
    for one in matches:
        assert one.entry and one.entry.group and one.entry.group.number >= 5 * QID_UNIT
        assert {way.actions[0].qid for way in one.entry.group.ways} == {5}
    check(made, found, 20)


def test_unknown_packets_of_switches_are_dropped():
    made = controller(topology(4))
    for state in made.rollout.actual.values():
        trusted = state.sections[Trusted.kind, 0]
        dropped = {one.match["in_port"] for one in state.flows.values() if not one.body}
        assert dropped == set(trusted.ports)
        assert any(one.entry and one.entry.port == ofp.OFPP_CONTROLLER for one in state.flows.values())
