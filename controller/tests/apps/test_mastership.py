# SPDX-License-Identifier: Apache-2.0
"""Several controllers with models of switches and of etcd. Controllers end, switches connect again, and etcd does
not answer for a time, in any order. Afterwards, one controller must be the master of all switches."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from os_ken.base.app_manager import AppManager  # noqa: F401 - os-ken's modules import each other; this one is first.

from os_ken import cfg  # isort: skip
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from shunt_controller.apps import mastership as module
from shunt_controller.apps.mastership import Mastership
from shunt_controller.redundancy.etcd import Found, StoreError, Written
from shunt_controller.live.topology import Host, Port
from shunt_controller.redundancy.journal import RECORD_BYTES_MAX, Entry

STEP_S = 0.05


class Clock:
    """The time that all controllers see."""

    now_s = 100.0

    def monotonic(self) -> float:
        """Returns the time."""
        return self.now_s

    def sleep(self, duration_s: float) -> None:
        """Does nothing."""


class Store:
    """etcd: keys with values and revisions."""

    def __init__(self) -> None:
        self.keys: dict[str, Found] = {}
        self.revision = 0
        self.is_away = False
        self.plan_bytes_max = 1 << 30
        """Length above which plans are refused, as etcd refuses long requests."""

    def read(self, key: str) -> Found:
        """Returns the content of a key."""
        if self.is_away:
            raise StoreError("etcd does not answer")
        return self.keys.get(key, Found(None, 0))

    def write(self, key: str, value: bytes, guard: str, revision: int) -> Written:
        """Writes a value if the guard has a revision."""
        found = self.read(guard)
        if "/plan/" in key and len(value) > self.plan_bytes_max:
            raise StoreError("etcd refuses a request: it is too large")
        if found.revision != revision:
            return Written(False, 0, found)
        self.revision += 1
        self.keys[key] = Found(value, self.revision)
        return Written(True, self.revision, found)


class Switch:
    """A switch as OpenFlow 1.3 defines its roles."""

    def __init__(self) -> None:
        self.generation: int | None = None
        self.roles: dict[Connection, int] = {}

    def asked(self, connection: "Connection", role: int, generation: int) -> object:
        """Returns the answer to a request for a role."""
        if role in (ofp.OFPCR_ROLE_MASTER, ofp.OFPCR_ROLE_SLAVE):
            if self.generation is not None and generation < self.generation:
                return parser.OFPErrorMsg(connection, ofp.OFPET_ROLE_REQUEST_FAILED, ofp.OFPRRFC_STALE)
            self.generation = generation
        if role == ofp.OFPCR_ROLE_MASTER:
            self.roles = {one: ofp.OFPCR_ROLE_SLAVE if other == role else other for one, other in self.roles.items()}
        if role != ofp.OFPCR_ROLE_NOCHANGE:
            self.roles[connection] = role
        known = (1 << 64) - 1 if self.generation is None else self.generation
        return parser.OFPRoleReply(connection, self.roles[connection], known)


class Connection:
    """The connection of a switch to a controller."""

    ofproto, ofproto_parser = ofp, parser

    def __init__(self, switch: Switch, number: int) -> None:
        self.switch, self.id, self.socket = switch, number, self
        self.is_open = True
        self.answers: list[object] = []
        switch.roles[self] = ofp.OFPCR_ROLE_EQUAL

    def fileno(self) -> int:
        """Returns the number of the socket; -1 if it is closed."""
        return 0 if self.is_open else -1

    def send_msg(self, message: object) -> None:
        """Lets the switch execute a request."""
        assert isinstance(message, parser.OFPRoleRequest)
        self.answers.append(self.switch.asked(self, message.role, message.generation_id))


class Controller:
    """A controller with its connections."""

    def __init__(self, world: "World", name: str) -> None:
        cfg.CONF.set_override("controller_id", name)
        self.mastership = Mastership(self.begin, self.stop)
        self.mastership._store = world.store
        self.begun: set[Connection] = set()
        self.connections: list[Connection] = []
        self.stored: list[Entry] = []
        for number, switch in enumerate(world.switches):
            self.connect(switch, number)

    def connect(self, switch: Switch, number: int) -> None:
        """Adds a connection."""
        self.connections.append(Connection(switch, number))
        self.mastership.connected(self.connections[-1])

    def end(self, connection: Connection) -> None:
        """Ends a connection."""
        del connection.switch.roles[connection]
        self.connections.remove(connection)
        self.begun.discard(connection)
        self.mastership.ended(connection)

    def begin(self, connection: Connection) -> None:
        """Handles a switch that has granted the role of master."""
        assert connection not in self.begun
        self.begun.add(connection)

    def stop(self) -> None:
        """Handles the end of the mastership."""
        self.begun.clear()

    def work(self) -> None:
        """Handles answers, and works as the thread does."""
        for connection in self.connections:
            answers, connection.answers = connection.answers, []
            for answer in answers:
                self.mastership.answered(answer)
        self.mastership._elect()
        self.mastership._follow()
        self.mastership._save()
        self.mastership._request_roles()


class World:
    """Switches, the store, and controllers."""

    def __init__(self, clock: Clock, names: str) -> None:
        self.clock, self.store, self.switches = clock, Store(), [Switch(), Switch(), Switch()]
        self.controllers = [Controller(self, name) for name in names]

    def run(self, duration_s: float) -> None:
        """Lets all controllers work for a time."""
        for _ in range(round(duration_s / STEP_S)):
            self.clock.now_s += STEP_S
            for controller in self.controllers:
                controller.work()

    def kill(self, controller: Controller) -> None:
        """Ends a controller without warning."""
        for connection in list(controller.connections):
            del connection.switch.roles[connection]
        self.controllers.remove(controller)

    @property
    def master(self) -> Controller:
        """The only controller that is the master. All switches have granted it the role."""
        (found,) = [one for one in self.controllers if one.mastership.status()["is_master"]]
        assert found.begun == set(found.connections)
        for switch in self.switches:
            roles = {one: role for one, role in switch.roles.items() if role != ofp.OFPCR_ROLE_SLAVE}
            assert list(roles.values()) == [ofp.OFPCR_ROLE_MASTER] and roles.keys() <= found.begun
        assert all(not one.begun for one in self.controllers if one is not found)
        return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """Returns the clock of all controllers."""
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    cfg.CONF([], project="os_ken", default_config_files=[], default_config_dirs=[])
    cfg.CONF.set_override("etcd", ["http://127.0.0.1:1"])
    yield made
    cfg.CONF.clear_override("etcd")
    cfg.CONF.clear_override("controller_id")


@given(st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_one_controller_becomes_the_master_of_all_switches_whatever_happens(clock, data):
    world, more = World(clock, "ab"), iter("cdefghijklmnopqrstuvwxyz")

    def kill() -> None:
        if len(world.controllers) > 1:
            world.kill(data.draw(st.sampled_from(world.controllers)))

    def start() -> None:
        if len(world.controllers) < 3:
            world.controllers.append(Controller(world, next(more)))

    def reconnect() -> None:
        controller = data.draw(st.sampled_from(world.controllers))
        connection = data.draw(st.sampled_from(controller.connections))
        controller.end(connection)
        controller.connect(connection.switch, connection.id)

    def away() -> None:
        world.store.is_away = not world.store.is_away

    def lose() -> None:
        world.store.keys.clear()

    def freeze() -> None:
        """Stops a controller for a time, in which the others work."""
        frozen = data.draw(st.sampled_from(world.controllers))
        others = [one for one in world.controllers if one is not frozen]
        world.controllers = others
        world.run(data.draw(st.sampled_from([0.5, 2.0])))
        world.controllers = [*others, frozen]

    events: list[Callable[[], None]] = [kill, start, reconnect, away, lose, freeze]
    for event in data.draw(st.lists(st.sampled_from(events), max_size=8)):
        event()
        world.run(data.draw(st.sampled_from([0.05, 0.3, 1.5])))
    world.store.is_away = False
    world.run(6)
    master = world.master
    world.run(3)
    assert world.master is master, "the master changes without a reason"


def test_a_standby_takes_over_when_the_master_ends(clock):
    world = World(clock, "ab")
    world.run(3)
    first = world.master
    world.kill(first)
    world.run(1.9)
    assert world.master is not first
    assert world.master.mastership.status()["term"] == 2


def test_without_etcd_the_master_remains_until_a_switch_has_another_one(clock):
    world = World(clock, "ab")
    world.run(3)
    first = world.master
    world.store.is_away = True
    world.run(10)
    assert world.master is first
    stranger = Connection(world.switches[1], 1)
    stranger.send_msg(parser.OFPRoleRequest(stranger, ofp.OFPCR_ROLE_MASTER, 50))
    world.run(2)
    assert not any(one.begun for one in world.controllers)
    del world.switches[1].roles[stranger]
    world.store.is_away = False
    world.run(5)
    # Switches refuse terms before 50.
    assert world.master.mastership.status()["term"] > 50


def test_without_etcd_the_master_remains_when_a_switch_ends(clock):
    world = World(clock, "ab")
    world.run(3)
    first = world.master
    world.store.is_away = True
    ended = first.connections[0]
    ended.is_open = False
    world.run(10)
    assert first.mastership.status()["is_master"] and len(first.begun) == 3
    # A switch that does not answer, but has a connection, may have another master.
    first.connections[1].send_msg = lambda message: None
    world.run(2)
    assert not first.mastership.status()["is_master"]


def test_a_master_that_was_stopped_stands_by(clock):
    world = World(clock, "ab")
    world.run(3)
    first = world.master
    world.controllers.remove(first)
    world.run(3)
    second = world.master
    world.controllers.append(first)
    world.run(0.5)
    assert not first.begun and world.master is second


def test_plans_are_stored_only_by_the_master_and_are_read_by_the_next_one(clock):
    world = World(clock, "ab")
    world.run(3)
    first = world.master
    entry = Entry("keyflow", {"epoch": 0, "switches": {}})
    world.store.is_away = True
    first.mastership.submit(entry, first.stored.append)
    world.run(2)
    assert not first.stored
    world.store.is_away = False
    world.run(1)
    assert first.stored == [entry]
    world.controllers.remove(first)
    world.run(3)
    assert world.master.mastership.entry("keyflow") == entry
    before = dict(world.store.keys)
    first.mastership.submit(Entry("keyflow"), first.stored.append)
    first.mastership._save()
    assert first.stored == [entry]
    assert before["/shunt/default/plan/keyflow"] == world.store.keys["/shunt/default/plan/keyflow"]


def test_a_damaged_plan_is_not_used(clock):
    world = World(clock, "a")
    world.store.revision = 7
    world.store.keys["/shunt/default/plan/keyflow"] = Found(b"{", 7)
    world.run(3)
    assert world.master.mastership.entry("keyflow") == Entry("keyflow")


def test_a_store_that_loses_its_record_again_and_again_leaves_one_master(clock):
    world = World(clock, "ab")
    for pause_s in (0.3, 0.3, 0.05):
        world.store.keys.clear()
        world.run(pause_s)
    world.run(6)
    assert world.master


def test_a_plan_that_the_store_refuses_does_not_end_the_mastership(clock):
    world = World(clock, "ab")
    world.run(3)
    first = world.master
    world.store.plan_bytes_max = 0
    first.mastership.submit(Entry("keyflow", {"epoch": 0, "switches": {}}), first.stored.append)
    for _ in range(50):
        world.run(0.2)
        assert world.master is first
    assert first.mastership.status()["term"] == 1 and not first.stored
    # The plan is stored when the store accepts it.
    world.store.plan_bytes_max = 1 << 30
    world.run(0.5)
    assert len(first.stored) == 1


def test_a_refused_plan_is_not_sent_at_each_step(clock):
    world = World(clock, "a")
    world.run(3)
    world.store.plan_bytes_max, attempts = 0, []
    write = world.store.write
    world.store.write = lambda key, *rest: (attempts.append(key), write(key, *rest))[1]
    world.master.mastership.submit(Entry("keyflow"), lambda entry: None)
    world.run(5)
    assert 10 < sum("/plan/" in key for key in attempts) <= 5 / 0.24 + 1


def test_hosts_that_do_not_fit_in_a_record_are_left_out_and_reported(clock, caplog):
    world = World(clock, "a")
    world.run(3)
    caplog.set_level("INFO")
    world.store.plan_bytes_max = RECORD_BYTES_MAX
    hosts = tuple(Host(f"02:00:00:00:{count >> 8:02x}:{count & 255:02x}", Port(1, 1), ("10.0.0.1",) * 8) for count in range(20_000))
    entry = Entry("keyflow", {"epoch": 0, "switches": {}}, None, hosts)
    world.master.mastership.submit(entry, world.master.stored.append)
    world.run(1)
    assert world.master.stored == [entry], "the application compares the record with its own one"
    data = world.store.keys["/shunt/default/plan/keyflow"].value
    count = len(Entry.decoded(data, "keyflow").hosts)
    assert RECORD_BYTES_MAX - 300 < len(data) <= RECORD_BYTES_MAX and count > 1000
    assert f"only {count} of 20000 hosts fit" in caplog.text


def test_a_switch_with_the_highest_generation_is_reported_and_the_others_have_one_master(clock, caplog):
    world = World(clock, "ab")
    caplog.set_level("INFO")
    world.switches[2].generation = (1 << 63) - 1
    world.run(8)
    (master,) = [one for one in world.controllers if one.mastership.status()["is_master"]]
    assert {connection.id for connection in master.begun} == {0, 1} and master.mastership.status()["term"] == 1
    assert "switch 2 has the generation ID 9223372036854775807, which is too high" in caplog.text
    # The switch is restarted.
    world.switches[2].generation = None
    world.run(3)
    assert world.master is master


@pytest.mark.parametrize("is_known", [True, False])
def test_a_signal_gives_up_the_mastership_also_if_the_record_is_not_known(clock, is_known):
    world = World(clock, "ab")
    world.run(3)
    first = world.master
    first.mastership._election.is_known = is_known
    first.mastership._give_up()
    first.mastership._elect()
    world.kill(first)
    world.run(0.4)
    assert world.master is not first
