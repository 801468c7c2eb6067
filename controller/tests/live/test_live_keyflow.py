# SPDX-License-Identifier: Apache-2.0
"""Properties of KeyFlow in networks that change: all packets are delivered, at any time."""

from collections.abc import Callable
from dataclasses import replace

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model import Lost, Model, Packet, network

from shunt_controller.live.identifiers import renumbered
from shunt_controller.live.keyflow import KeyFlow, Settings
from shunt_controller.live.state import State
from shunt_controller.live.topology import Host, Port, Topology
from shunt_controller.sections import TABLES, Bank, Residues

RING = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 1), (2, 5)]


def controller(topology: Topology, lanes: set[int] | None = None, **given_settings) -> KeyFlow:
    """Returns a controller with a plan of the network, which all switches have."""
    made = KeyFlow(Settings(**given_settings), lambda kind, text: reports.append(text))
    reports.clear()
    made.set_topology(topology)
    for switch in topology.switches:
        made.known(switch, State(), lanes is None or switch in lanes)
    made.restore()
    assert made.update(), reports
    finish(made)
    return made


reports: list[str] = []


def finish(made: KeyFlow, now_s: float = 0.0) -> None:
    """Lets all switches take over the desired configuration."""
    for round in range(50):
        for switch in made.rollout.next(now_s + 10 * round):
            made.rollout.done(switch, now_s + 10 * round)
    assert made.rollout.is_settled


def check(made: KeyFlow, topology: Topology, lanes: set[int] | None = None, down: frozenset[Port] = frozenset()) -> None:
    """Checks that all hosts reach each other."""
    model = Model(topology, made.rollout.actual, set(topology.switches) if lanes is None else lanes, down)
    for src in topology.hosts:
        for dst in topology.hosts:
            if src != dst:
                assert model.deliver(model.enter(src, dst)) == dst.at


@st.composite
def networks(draw, most: int = 9) -> tuple[list[tuple[int, int]], list[int]]:
    """Draws the links of a connected network, and the switches of its hosts."""
    count = draw(st.integers(2, most))
    tree = [(draw(st.integers(1, node - 1)), node) for node in range(2, count + 1)]
    more = draw(st.lists(st.tuples(st.integers(1, count), st.integers(1, count)), max_size=6))
    pairs = tree + [(a, b) for a, b in more if a != b]
    return pairs, draw(st.lists(st.integers(1, count), min_size=2, max_size=5))


@given(networks())
@settings(max_examples=60, deadline=None)
def test_all_hosts_reach_each_other_and_core_switches_have_no_host_entries(drawn):
    topology = network(*drawn)
    made = controller(topology)
    check(made, topology)
    for switch in topology.switches.keys() - {host.at.switch for host in topology.hosts}:
        assert not [flow for flow in made.rollout.actual[switch].flows.values() if "eth_dst" in flow.match]


@given(networks(), st.data())
@settings(max_examples=60, deadline=None)
def test_hosts_reach_each_other_in_hybrid_networks(drawn, data):
    topology = network(*drawn)
    lanes = data.draw(st.sets(st.sampled_from(sorted(topology.switches))))
    made = controller(topology, lanes)
    check(made, topology, lanes)
    for switch in topology.switches.keys() - lanes:
        assert not made.rollout.actual[switch].sections
        assert all(not flow.entry.actions for flow in made.rollout.actual[switch].flows.values())


def split(pairs: list[tuple[int, int]], without: set[int]) -> bool:
    """Returns whether a network without some links is split."""
    graph = networkx.MultiGraph([pair for number, pair in enumerate(pairs) if number not in without])
    return len(graph) < len({end for pair in pairs for end in pair}) or not networkx.is_connected(graph)


def roll_out(made: KeyFlow, model: Model, pairs: list[tuple[Host, Host]], order: Callable[[list[int]], list[int]]) -> None:
    """Lets all switches take over the desired configuration, one after the other in the given order. Meanwhile,
    hosts send packets, all of which must be delivered."""
    flying: list[tuple[Packet, Port]] = []
    now_s, acks = 0.0, 0
    while True:
        sent = made.rollout.next(now_s)
        if not sent and made.rollout.is_settled:
            break
        if not sent:
            # Packets do not stay in the network for as long as old configurations are kept.
            assert all(model.deliver(packet) == goal for packet, goal in flying)
            flying, now_s = [], now_s + 10
        for switch in order(sorted(sent)):
            flying += [(model.enter(src, dst), dst.at) for src, dst in pairs]
            # Some packets cross the network at once, and others are fast or slow.
            assert all(model.deliver(model.enter(src, dst)) == dst.at for src, dst in pairs)
            acks += 1
            moved = [(model.step(packet) if (number + acks) % 3 else packet, goal) for number, (packet, goal) in enumerate(flying)]
            assert all(packet == goal for packet, goal in moved if isinstance(packet, Port))
            flying = [(packet, goal) for packet, goal in moved if isinstance(packet, Packet)]
            made.rollout.done(switch, now_s)
            model.states = made.rollout.actual


@given(networks(), st.data(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_a_change_loses_no_packet_at_any_moment(drawn, data, renumber):
    """Links end or begin, a host moves or hosts come, and perhaps all IDs change. Switches take over their new
    configurations in any order, while packets are on their way."""
    pairs, at = drawn
    removable = [number for number in range(len(pairs)) if not split(pairs, {number})]
    first = frozenset(data.draw(st.sets(st.sampled_from(removable), max_size=1)) if removable else ())
    second = frozenset(data.draw(st.sets(st.sampled_from(removable), max_size=1)) if removable else ())
    # With the large reserve, a key has room for the residues of three switches, so there are waypoints.
    reserve = data.draw(st.sampled_from([0, 60_000]))
    before = network(pairs, at, first)
    more = data.draw(st.lists(st.sampled_from(sorted(before.switches)), max_size=2))
    after = network(pairs, at + more, second)
    made = controller(before, reserve=reserve)
    check(made, before)
    made.set_topology(after)
    if renumber:
        made.identifiers = renumbered(made.identifiers, after, after.switches.keys(), 4)
        made.is_stale = True
    assert made.update() or before == after

    # Links that fail are down, but configurations change while all other links are used.
    everything = network(pairs, at)
    model = Model(everything, made.rollout.actual, set(after.switches))
    old = [(src, dst) for src in before.hosts for dst in before.hosts if src != dst]
    roll_out(made, model, old, lambda switches: data.draw(st.permutations(switches)))
    check(made, after)


@pytest.mark.parametrize("order", [sorted, lambda switches: sorted(switches, reverse=True)])
def test_waypoints_get_their_entries_from_the_end_of_a_route_to_its_start(order):
    # From 1 to 10 there are two branches after 5. A key has room for four switches, so 5 is a waypoint, and then
    # 9 on one branch and 14 on the other.
    ways = [(node, node + 1) for node in range(1, 10)] + [(5, 11), (11, 12), (12, 13), (13, 14), (14, 10)]
    before, after = network(ways, [1, 10], frozenset({9})), network(ways, [1, 10], frozenset({5}))
    made = controller(before, reserve=60_000)
    made.set_topology(after)
    assert made.update()
    assert [step.switch for step in made.routes.routes[1, 10].steps] == [1, 5, 14]
    model = Model(network(ways, [1, 10]), made.rollout.actual, set(after.switches))
    roll_out(made, model, [after.hosts, after.hosts[::-1]], order)
    check(made, after)


def test_a_failed_link_changes_only_switches_whose_keys_change():
    before, after = network(RING, [1, 3]), network(RING, [1, 3], frozenset({0}))
    made = controller(before)
    made.set_topology(after)
    assert made.update()
    # Switches 1 and 2 are the ends of the link, and 3 has the keys in the other direction.
    changed = set(made.rollout.next(0.0))
    assert changed and changed <= {1, 2, 3}
    for switch in changed:
        made.rollout.done(switch, 0.0)
    finish(made, 1.0)
    check(made, after)
    model = Model(before, made.rollout.actual, set(before.switches), frozenset({Port(1, 1), Port(2, 1)}))
    for src, dst in (before.hosts, before.hosts[::-1]):
        assert model.deliver(model.enter(src, dst)) == dst.at


@given(networks(7))
@settings(max_examples=25, deadline=None)
def test_a_protected_network_survives_each_failure_of_a_guarded_link(drawn):
    pairs, at = drawn
    topology = network(pairs, at)
    made = controller(topology, width_bits=256, protect=True)
    check(made, topology)
    for number in range(len(pairs)):
        if split(pairs, {number}):
            continue
        link = (topology.links - network(pairs, at, frozenset({number})).links).copy()
        down = frozenset(end for one in link for end in one)
        model = Model(topology, made.rollout.actual, set(topology.switches), down)
        lost = 0
        for src in topology.hosts:
            for dst in topology.hosts:
                if src != dst:
                    try:
                        assert model.deliver(model.enter(src, dst)) == dst.at
                    except Lost:
                        lost += 1
        assert lost == 0, (number, pairs, at)


def test_a_long_path_is_split_at_waypoints():
    line = [(node, node + 1) for node in range(1, 40)]
    topology = network(line, [1, 40, 20])
    made = controller(topology)
    check(made, topology)
    assert any(step.table == 2 for route in made.routes.routes.values() for step in route.steps if step.key)


def test_parts_without_a_link_between_them_are_planned_apart():
    topology = network([(1, 2), (3, 4)], [1, 2, 3, 4])
    made = controller(topology)
    assert (1, 3) in made.routes.refused and (1, 2) in made.routes.routes
    assert any("no path leads" in text for text in reports)
    joined = network([(1, 2), (3, 4), (2, 3)], [1, 2, 3, 4])
    made.set_topology(joined)
    assert made.update()
    finish(made)
    check(made, joined)
    assert made.identifiers.epoch == 0


def test_ids_are_kept_when_the_network_grows_and_when_switches_return():
    made = controller(network(RING[:3], [1, 3]))
    ids = dict(made.identifiers.ids)
    made.set_topology(network(RING, [1, 3]))
    for switch in (5, 6):
        made.known(switch, State(), True)
    assert made.update()
    assert made.identifiers.ids | ids == made.identifiers.ids and len(made.identifiers.ids) == 6
    made.set_topology(network(RING[:1], [1, 2]))
    assert made.update()
    assert made.identifiers.ids.keys() >= {5, 6}


def test_a_switch_that_outgrows_its_id_gets_all_ids_changed_under_the_other_epoch():
    star = [(1, node) for node in range(2, 30)]
    made = controller(network(star[:2], [2, 3]), reserve=0)
    grown = network(star, [2, 29])
    made.set_topology(grown)
    for switch in range(4, 30):
        made.known(switch, State(), True)
    assert made.update(), reports
    assert made.identifiers.epoch == 1
    assert any("new IDs" in text for text in reports)
    finish(made)
    check(made, grown)
    assert all((4, 0) not in state.sections for state in made.rollout.actual.values())


def test_a_restarted_controller_changes_nothing():
    topology = network(RING, [1, 3, 4])
    first = controller(topology)
    again = KeyFlow(Settings(), lambda kind, text: None)
    again.set_topology(topology)
    for switch, state in first.rollout.actual.items():
        again.known(switch, state, True)
    again.restore()
    assert again.update()
    assert again.rollout.next(100.0) == {}
    assert again.rollout.is_settled and again.identifiers.ids == first.identifiers.ids


def test_a_switch_that_connects_late_after_a_restart_keeps_its_id():
    topology = network(RING, [1, 3])
    first = controller(topology)
    again = KeyFlow(Settings(), lambda kind, text: None)
    again.set_topology(topology)
    states = dict(first.rollout.actual)
    late = states.pop(2)
    for switch, state in states.items():
        again.known(switch, state, True)
    again.restore()
    again.known(2, late, True)
    assert again.update()
    assert again.identifiers == first.identifiers and again.rollout.next(100.0) == {}


def test_ids_with_a_common_factor_are_changed_after_a_restart():
    topology = network(RING, [1, 3])
    first = controller(topology)
    again = KeyFlow(Settings(), lambda kind, text: reports.append(text))
    again.set_topology(topology)
    for switch, state in first.rollout.actual.items():
        bank = state.sections[4, 0].residues
        sections = {**state.sections, (4, 0): Bank(0, Residues(8 * switch, bank.labels))}
        again.known(switch, replace(state, sections=sections), True)
    again.restore()
    assert again.update(), reports
    assert again.identifiers.epoch == 1
    assert any("factor" in text for text in reports), reports
    finish(again)
    check(again, topology)


@pytest.mark.parametrize(
    ("labels", "polynomial", "says"),
    [({0: TABLES, 2: 1}, False, "switch 2 has the label 1 without a port"), ({0: TABLES, 1: 1}, True, "the ID of switch 2, 0x1d, is a polynomial")],
)
def test_labels_that_cannot_be_used_are_changed_under_the_other_epoch(labels, polynomial, says):
    topology = network(RING, [1, 3])
    first = controller(topology)
    again = KeyFlow(Settings(), lambda kind, text: reports.append(text))
    again.set_topology(topology)
    for switch, state in first.rollout.actual.items():
        bank = Bank(0, Residues(29, labels, polynomial=polynomial)) if switch == 2 else state.sections[4, 0]
        again.known(switch, replace(state, sections={**state.sections, (4, 0): bank}), True)
    again.restore()
    assert again.update() and again.identifiers.epoch == 1
    assert reports[-1] == f"all switches get new IDs, under epoch 1: {says}"
    finish(again)
    check(again, topology)


def test_a_reactive_network_has_keys_only_for_packets_that_arrived():
    topology = network(RING, [1, 3, 4])
    made = controller(topology, is_reactive=True)
    model = Model(topology, made.rollout.actual, set(topology.switches))
    one, two, three = topology.hosts
    with pytest.raises(Lost, match="to 0xfffffffd"):
        model.deliver(model.enter(one, two))
    assert made.ask(1, two.mac) and not made.ask(1, two.mac)
    assert made.ask(3, one.mac)
    assert made.update()
    finish(made)
    model.states = made.rollout.actual
    assert model.deliver(model.enter(one, two)) == two.at
    assert model.deliver(model.enter(two, one)) == one.at
    with pytest.raises(Lost):
        model.deliver(model.enter(three, one))
    made.idle(1, two.mac)
    assert made.update()
    finish(made, 1000.0)
    model.states = made.rollout.actual
    with pytest.raises(Lost):
        model.deliver(model.enter(one, two))


def test_a_network_that_cannot_be_planned_stays_as_it_is():
    topology = network(RING, [1, 3])
    made = controller(topology)
    before = dict(made.rollout.desired)
    made.settings = Settings(width_bits=7)
    made.is_stale = True
    assert not made.update()
    assert made.rollout.desired == before and "stays as it is" in reports[-1]
