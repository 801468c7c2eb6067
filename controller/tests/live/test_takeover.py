# SPDX-License-Identifier: Apache-2.0
"""A controller is killed at any step of a plan, and another one takes over. Switches and the store may or may not
have executed what was sent to them last. All packets must be delivered at any time, and all switches end with the
same plan, which the store has."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model import Model, network
from test_live_keyflow import networks

from shunt_controller.live.identifiers import Identifiers, renumbered
from shunt_controller.live.keyflow import KeyFlow, Settings
from shunt_controller.live.state import State, staged
from shunt_controller.live.topology import Host, Link, Port, Topology
from shunt_controller.redundancy.journal import Entry, Journal
from shunt_controller.sections import Bank

STEPS_MAX = 200


class World:
    """The switches and the store, which remain when a controller is killed. `check` is called after each
    change."""

    def __init__(self, topology: Topology, check: Callable[["World"], None] = lambda world: None) -> None:
        self.topology, self.check = topology, check
        self.states: dict[int, State] = {switch: State() for switch in topology.switches}
        self.stored: bytes | None = None
        self.steps = 0

    @property
    def entry(self) -> Entry:
        """The stored record."""
        return Entry("keyflow") if self.stored is None else Entry.decoded(self.stored, "keyflow")

    def has(self, epoch: int) -> set[int]:
        """Returns the switches with a bank of an epoch."""
        return {switch for switch, state in self.states.items() if (Bank.kind, epoch) in state.sections}


class Controller:
    """A master: the planner and the journal, as the application runs them."""

    def __init__(self, world: World, reserve: int = 4) -> None:
        self.world = world
        self.silent: set[int] = set()
        """Switches that neither execute nor answer what is sent to them."""
        self.submitted: list[Entry] = []
        self.reports: list[str] = []
        self.planner = KeyFlow(Settings(reserve=reserve), lambda kind, text: self.reports.append(text))
        self.journal = Journal("keyflow", self.submitted.append)
        self.planner.is_stored = self.journal.is_stored
        self.planner.set_topology(world.topology)
        for switch, state in world.states.items():
            self.planner.known(switch, state, True)
        self.planner.restore()
        entry = world.entry
        self.journal.restore(entry)
        self.planner.adopt(basis for basis in (entry.next, entry.current) if basis is not None)

    def work(self, now_s: float, draw: Callable[[str], bool]) -> bool:
        """Works for a moment. Returns whether the controller still lives: `draw` decides at each step."""
        world = self.world
        self.planner.update()
        if self.submitted:
            # Only the record that was submitted last is stored.
            entry, self.submitted[:] = self.submitted[-1], []
            if not draw("before the store"):
                return False
            world.stored = entry.encoded()
            world.steps += 1
            if not draw("before the answer of the store"):
                return False
            self.journal.stored(entry)
        if not self.journal.may_change(self.planner, now_s):
            return True
        sent = self.planner.rollout.next(now_s)
        for switch, state in sent.items():
            if not draw("between switches"):
                return False
            if switch in self.silent:
                continue
            world.states[switch] = state
            world.steps += 1
            world.check(world)
            if draw("before the answer of a switch"):
                self.planner.rollout.done(switch, now_s)
            else:
                return False
        return True

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to be done."""
        return self.planner.rollout.is_settled and not self.journal.is_waiting and not self.submitted and self.world.entry.next is None

    def finish(self, begin_s: float = 0.0) -> None:
        """Works until nothing is left to be done."""
        for step in range(STEPS_MAX):
            self.work(begin_s + 2 * step, lambda what: True)
            if step > 2 and self.is_finished:
                return
        raise AssertionError(f"the plan is not completed: {self.reports}")


def delivering(topology: Topology, pairs: list[tuple[Host, Host]]) -> Callable[[World], None]:
    """Returns a check that all pairs of hosts reach each other."""

    def check(world: World) -> None:
        model = Model(topology, world.states, set(world.states))
        for src, dst in pairs:
            assert model.deliver(model.enter(src, dst)) == dst.at

    return check


def check_whole(world: World, controller: Controller) -> None:
    """Checks that all switches have one plan, which is the stored one."""
    identifiers, entry = controller.planner.identifiers, world.entry
    assert world.has(identifiers.epoch) == set(world.states) and not world.has(1 - identifiers.epoch)
    assert all(state == controller.planner.rollout.desired[switch] for switch, state in world.states.items())
    assert entry.next is None and entry.current == controller.planner.basis()


@given(networks(6), st.data())
@settings(max_examples=60, deadline=None)
def test_a_controller_may_be_killed_at_any_step(drawn, data):
    pairs, at = drawn
    topology = network(pairs, at)
    world = World(topology)
    Controller(world).finish()
    world.check = delivering(topology, [(src, dst) for src in topology.hosts for dst in topology.hosts if src != dst])
    world.check(world)
    # Each master begins to give all switches new IDs, and all but the last one are killed.
    for _ in range(data.draw(st.integers(1, 3))):
        controller = Controller(world)
        finished = controller.planner.identifiers
        lives = data.draw(st.integers(0, 60))
        begun, now_s, steps = False, 0.0, 0

        def draw(what: str) -> bool:
            nonlocal steps
            steps += 1
            return steps <= lives

        while controller.work(now_s, draw) and steps <= lives:
            now_s += 2
            if controller.is_finished and not begun and now_s > 8:
                begun = True
                controller.planner.identifiers = renumbered(finished, topology, topology.switches.keys(), 4)
                controller.planner.is_stale = True
            elif controller.is_finished and now_s > 60:
                break
    last = Controller(world)
    last.finish()
    check_whole(world, last)


def half_applied(lives: int) -> tuple[World, Identifiers, Identifiers]:
    """Returns a network whose controller was killed after some steps of giving all switches new IDs, with the IDs
    before and after."""
    topology = network([(1, 2), (2, 3), (3, 4), (4, 1)], [1, 3])
    world = World(topology)
    first = Controller(world)
    first.finish()
    old = first.planner.identifiers
    first.planner.identifiers = new = renumbered(old, topology, topology.switches.keys(), 4)
    first.planner.is_stale = True
    left = lives

    def draw(what: str) -> bool:
        nonlocal left
        left -= 1
        return left >= 0

    for step in range(STEPS_MAX):
        if not first.work(1000.0 + 2 * step, draw):
            return world, old, new
    raise AssertionError("the controller was not killed")


def test_a_half_applied_plan_is_completed():
    # Four steps store the plan and change one switch.
    world, _, new = half_applied(5)
    assert world.has(0) == {1, 2, 3, 4} and world.has(1) and world.has(1) != world.has(0)
    second = Controller(world)
    second.finish()
    check_whole(world, second)
    assert second.planner.identifiers == new


def test_a_half_applied_plan_that_no_longer_suits_is_taken_back():
    world, old, _ = half_applied(5)
    stored = world.entry
    # Of a switch that has not been changed yet, the stored ID has no room for its links.
    other = min(set(world.states) - world.has(1))
    damaged = {**stored.next, "switches": {**stored.next["switches"], f"{other:016x}": {"id": 2, "labels": [0]}}}
    world.stored = Entry("keyflow", stored.current, damaged, stored.hosts).encoded()
    second = Controller(world, reserve=0)
    second.finish()
    check_whole(world, second)
    assert second.planner.identifiers.ids == old.ids and second.planner.identifiers.epoch == 0


@pytest.mark.parametrize("lives", [5, 6, 8, 12])
@pytest.mark.parametrize("has_store", [False, True])
def test_a_half_applied_plan_is_completed_although_a_new_link_needs_other_ids(lives, has_store):
    world, _, _ = half_applied(lives)
    assert world.has(0) and world.has(1)
    if not has_store:
        world.stored = None
    # More links than the IDs of both epochs have labels for.
    links = frozenset(Link.of(Port(1, number), Port(3, number)) for number in range(20, 60))
    switches = {switch: ports | set(range(20, 60)) if switch in (1, 3) else ports for switch, ports in world.topology.switches.items()}
    world.topology = replace(world.topology, switches=switches, links=world.topology.links | links)
    world.check = delivering(world.topology, [(src, dst) for src in world.topology.hosts for dst in world.topology.hosts if src != dst])
    second = Controller(world)
    second.finish()
    check_whole(world, second)
    assert all(len(second.planner.identifiers.labels[switch]) > 40 for switch in (1, 3))


def test_no_switch_is_changed_before_new_ids_are_stored_and_nothing_is_removed_before_the_plan_is_in_force():
    topology = network([(1, 2), (2, 3), (3, 1)], [1, 3])
    world = World(topology)
    controller = Controller(world)
    for step in range(20):
        controller.planner.update()
        assert not controller.journal.may_change(controller.planner, step), "the store does not answer"
        controller.submitted[:-1] = []
    controller.finish()
    controller.planner.identifiers = renumbered(controller.planner.identifiers, topology, topology.switches.keys(), 4)
    controller.planner.is_stale = True
    before = dict(world.states)
    lost = 0

    def refuse_second(what: str) -> bool:
        """Lets the store answer once: for the beginning of the plan."""
        nonlocal lost
        if what == "before the store":
            lost += 1
            return lost == 1
        return True

    for step in range(60):
        controller.work(1000.0 + 2 * step, refuse_second)
    assert lost > 1 and world.has(0) == world.has(1) == {1, 2, 3}
    assert all(before[switch].sections[Bank.kind, 0] == state.sections[Bank.kind, 0] for switch, state in world.states.items())


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("grows", ["labels", "ids", "switch"])
def test_a_failed_link_is_repaired_while_a_plan_waits_for_the_store(grows, is_killed):
    topology = network([(1, 2), (2, 3), (3, 4), (4, 1)], [1, 3])
    world = World(topology)
    controller = Controller(world, reserve=0 if grows == "ids" else 4)
    controller.finish()
    identifiers, before = controller.planner.identifiers, dict(world.states)
    # New links need labels, other IDs, or IDs of a new switch. At the same time, a link fails that packets use.
    ends = [(Port(1, 50), Port(5, 1)), (Port(3, 50), Port(5, 2))] if grows == "switch" else []
    ends += [(Port(1, number), Port(3, number)) for number in range(20, 60)] if grows == "ids" else [(Port(1, 20), Port(3, 20))] if not ends else []
    new = frozenset(Link.of(a, b) for a, b in ends)
    failed = next(link for link in sorted(topology.links) if {end.switch for end in link} == {1, 2})
    ports = {switch: frozenset(end.number for pair in ends for end in pair if end.switch == switch) for switch in (1, 3, 5)}
    switches = {switch: topology.switches.get(switch, frozenset()) | ports.get(switch, frozenset()) for switch in topology.switches.keys() | ({5} if grows == "switch" else set())}
    grown = replace(topology, switches=switches, links=(topology.links | new) - {failed})
    check = delivering(grown, [(src, dst) for src in grown.hosts for dst in grown.hosts if src != dst])
    world.topology = grown
    if grows == "switch":
        world.states[5] = State()
        controller.planner.known(5, State(), True)
    controller.planner.set_topology(grown)
    for step in range(30):
        # The store does not answer, but its record is submitted.
        controller.planner.update()
        assert controller.planner.identifiers is identifiers and controller.planner.waits
        assert controller.journal.may_change(controller.planner, 100.0 + 2 * step)
        for switch, state in controller.planner.rollout.next(100.0 + 2 * step).items():
            world.states[switch] = state
            controller.planner.rollout.done(switch, 100.0 + 2 * step)
    check(world)
    assert controller.submitted and controller.submitted[-1].next == controller.planner.basis() != controller.submitted[-1].current
    # Nothing of the waiting plan is in a switch, and nothing was removed.
    for switch, state in before.items():
        now = world.states[switch]
        assert now.sections == state.sections and state.flows.keys() <= now.flows.keys() and state.groups.keys() <= now.groups.keys()
    assert world.states.get(5, State()).is_empty
    world.check = check
    if is_killed:
        controller = Controller(world, reserve=0 if grows == "ids" else 4)
    controller.finish(1000.0)
    check_whole(world, controller)
    assert controller.planner.identifiers != identifiers and not controller.planner.waits
    labels = controller.planner.identifiers.labels
    assert all(end.number in labels[end.switch] for pair in ends for end in pair)


def test_a_waiting_plan_that_is_not_needed_any_more_is_dropped():
    topology = network([(1, 2), (2, 3), (3, 1)], [1, 3])
    world = World(topology)
    controller = Controller(world)
    controller.finish()
    identifiers, stored = controller.planner.identifiers, world.stored
    new = Link.of(Port(1, 20), Port(3, 20))
    controller.planner.set_topology(replace(topology, links=topology.links | {new}))
    controller.planner.update()
    assert controller.planner.waits and controller.journal.may_change(controller.planner, 100.0)
    waiting = controller.submitted.pop()
    # The store confirms the plan, but the link is gone. The plan is taken back in the store, too.
    controller.planner.set_topology(topology)
    world.stored = waiting.encoded()
    controller.journal.stored(waiting)
    controller.finish(200.0)
    check_whole(world, controller)
    assert controller.planner.identifiers is identifiers and not controller.planner.waits
    assert Entry.decoded(stored, "keyflow").current == world.entry.current


def test_hosts_are_stored_and_read_back():
    hosts = (Host("02:00:00:00:00:01", Port(1 << 63, 7), ("10.0.0.1", "fe80::1")), Host("02:00:00:00:00:02", Port(2, 3)))
    entry = Entry("keyflow", {"epoch": 0, "switches": {}}, None, hosts)
    assert Entry.decoded(entry.encoded(), "keyflow") == entry


def with_host(**changed) -> bytes:
    """Returns a record with a host some of whose members are changed."""
    host = {"mac": "02:00:00:00:00:01", "switch": 1, "port": 1, "addresses": [], **changed}
    return Entry("keyflow").encoded().replace(b'"hosts":[]', b'"hosts":[' + json.dumps(host).encode() + b"]")


def test_the_record_with_a_host_is_read_if_nothing_is_changed():
    assert len(Entry.decoded(with_host(port=0xFFFFFF00, switch=(1 << 64) - 1), "keyflow").hosts) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"format":"shunt-redundancy"}',
        Entry("tag-and-forward").encoded(),
        Entry("keyflow").encoded().replace(b'"version":1', b'"version":9'),
        Entry("keyflow").encoded().replace(b'"current":null', b'"current":[]'),
        b"[" * 100_000,
        with_host(mac=1),
        with_host(mac="02:00:00:00:00:0G"),
        with_host(mac="02:00:00:00:00:01:02"),
        with_host(mac="02:00:00:00:00:AA"),
        with_host(switch=-1),
        with_host(switch=1 << 64),
        with_host(port=0),
        with_host(port=0xFFFFFF01),
        with_host(port=True),
        with_host(addresses="1"),
        with_host(addresses=["10.0.0"]),
        with_host(addresses=[3]),
        with_host(addresses=["fe80::1%eth0"]),
    ],
    ids=lambda data: data[-90:].decode(),
)
def test_damaged_records_are_refused_with_a_reason(data):
    with pytest.raises(ValueError, match="it is damaged|it has format"):
        Entry.decoded(data, "keyflow")


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": 2},
        {"switches": []},
        {"switches": {"x": {"id": 5, "labels": [0]}}},
        {"switches": {f"{1:016x}": {"id": 5}}},
        {"switches": {f"{1:016x}": {"id": "5", "labels": [0]}}},
        {"switches": {f"{1:016x}": {"id": 5, "labels": ["a"]}}},
        {"switches": {f"{1:016x}": {"id": 5, "labels": [0xFFFFFF01]}}},
        {"switches": {f"{1:016x}": {"id": 5, "labels": [-1]}}},
        {"switches": {f"{1:016x}": {"id": 1 << 32, "labels": [0]}}},
        {"switches": {"1": {"id": 5, "labels": [0]}}},
        {"switches": {f"{1:017x}": {"id": 5, "labels": [0]}}},
        {"switches": {f"{1 << 64:x}": {"id": 5, "labels": [0]}}},
        {"switches": {f"{10:016X}": {"id": 5, "labels": [0]}}},
        {"epoch": True},
        {"switches": {f"{1:016x}": {"id": 6, "labels": [0]}, f"{2:016x}": {"id": 9, "labels": [0]}}},
    ],
)
def test_a_damaged_plan_is_reported_and_not_used(change):
    world = World(network([(1, 2), (2, 3)], [1, 3]))
    first = Controller(world)
    first.finish()
    stored = world.entry
    world.stored = Entry("keyflow", {**stored.current, **change}, None, stored.hosts).encoded()
    second = Controller(world)
    assert any("a stored plan is not used" in text for text in second.reports)
    second.finish()
    check_whole(world, second)
    assert second.planner.identifiers == first.planner.identifiers


def test_a_stored_plan_that_differs_from_the_switches_is_not_used():
    world = World(network([(1, 2), (2, 3)], [1, 3]))
    first = Controller(world)
    first.finish()
    stored, states = world.entry, dict(world.states)
    switches = stored.current["switches"]
    names = sorted(switches)
    swapped = {name: {**switches[name], "id": switches[other]["id"]} for name, other in zip(names, reversed(names), strict=True)}
    world.stored = Entry("keyflow", {**stored.current, "switches": swapped}, None, stored.hosts).encoded()
    second = Controller(world)
    assert any("switches have other IDs or labels" in text for text in second.reports)
    second.finish()
    assert world.states == states
    check_whole(world, second)


@pytest.mark.parametrize("silent", [1, 2, 3, 4])
@pytest.mark.parametrize("done", range(5))
def test_no_packet_is_lost_while_a_switch_is_silent(silent, done):
    topology = network([(1, 2), (2, 3), (3, 4), (4, 1)], [1, 3])
    world = World(topology)
    first = Controller(world)
    first.finish()
    world.check = delivering(topology, [(src, dst) for src in topology.hosts for dst in topology.hosts if src != dst])
    first.planner.identifiers = renumbered(first.planner.identifiers, topology, topology.switches.keys(), 4)
    first.planner.is_stale = True
    for step in range(done):
        first.work(1000.0 + 0.1 * step, lambda what: True)
    first.planner.update()
    lacks = staged(world.states[silent], first.planner.rollout.desired[silent], 1 << 30) != world.states[silent]
    assert done or lacks
    first.silent = {silent}
    for step in range(40):
        first.work(1010.0 + 2 * step, lambda what: True)
    assert not first.planner.rollout.is_settled
    if lacks:
        assert world.has(0) == {1, 2, 3, 4}, "nothing is removed while a switch lacks something"
        assert world.entry.next is not None, "the plan is not in force"
    # The switch answers again, and its configuration is read.
    first.silent = set()
    first.planner.known(silent, world.states[silent], True)
    first.finish(2000.0)
    check_whole(world, first)


def test_a_switch_that_answers_late_is_not_read_and_one_that_is_gone_is_not_awaited():
    topology = network([(1, 2), (2, 3)], [1, 3])
    desired = KeyFlow(Settings(), lambda kind, text: None)
    desired.set_topology(topology)
    for switch in topology.switches:
        desired.known(switch, State(), True)
    assert desired.update()
    rollout = desired.rollout
    assert rollout.next(0) and not rollout.is_settled
    for switch in (1, 2):
        rollout.done(switch, 0.1)
    rollout.next(3)
    assert not rollout.is_added and not rollout.next(6)
    rollout.done(3, 7)
    assert 3 in rollout.actual and rollout.next(7), "the next stage begins"
    for switch in (1, 2):
        rollout.done(switch, 7.1)
    rollout.next(10)
    rollout.gone(3)
    for step in range(10):
        for switch in rollout.next(11 + step):
            rollout.done(switch, 11 + step)
    assert rollout.is_settled and rollout.is_added and rollout.actual.keys() == {1, 2}


def test_equal_configurations_are_compared_once():
    topology = network([(1, 2)], [1, 2])
    world = World(topology)
    Controller(world).finish()
    second = Controller(world)
    second.planner.update()
    rollout = second.planner.rollout
    assert all(rollout.actual[switch] == state and rollout.actual[switch] is not state for switch, state in rollout.desired.items())
    assert rollout.next(0) == {} and rollout.is_settled
    assert all(rollout.actual[switch] is state for switch, state in rollout.desired.items())


def test_hosts_at_a_switch_without_a_connection_remain_stored():
    topology = network([(1, 2), (2, 3)], [1, 3])
    world = World(topology)
    Controller(world).finish()
    stored = world.entry.hosts
    away = [host for host in topology.hosts if host.at.switch == 3]
    assert away and stored == topology.hosts
    # The next controller does not know the hosts at switch 3 yet.
    world.topology = replace(topology, hosts=tuple(host for host in topology.hosts if host.at.switch != 3))
    second = Controller(world)
    second.finish()
    assert world.entry.hosts == stored and second.journal.hosts_at(3) == tuple(away)
    # One of them has moved.
    moved = replace(away[0], at=Port(1, 60))
    second.planner.set_topology(replace(world.topology, hosts=(*world.topology.hosts, moved)))
    second.finish(1000.0)
    assert moved in world.entry.hosts and away[0] not in world.entry.hosts
    # Some time after the switch is known, hosts that are not found there are forgotten.
    second.journal.known(3)
    second.planner.set_topology(world.topology)
    second.finish(2000.0)
    assert world.entry.hosts == world.topology.hosts


def test_changes_of_hosts_alone_are_not_stored_all_the_time():
    topology = network([(1, 2)], [1, 2])
    world = World(topology)
    controller = Controller(world)
    controller.finish()
    records = set()
    for step in range(500):
        host = Host(f"02:00:00:00:01:{step % 256:02x}", Port(1, 50 + step % 2))
        controller.planner.set_topology(replace(topology, hosts=(*topology.hosts, host)))
        controller.work(1000.0 + 0.02 * step, lambda what: True)
        records.add(world.stored)
    assert 3 <= len(records) <= 6
    # The last change is stored.
    controller.finish(2000.0)
    assert host in world.entry.hosts
