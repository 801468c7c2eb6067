# SPDX-License-Identifier: Apache-2.0
"""The part that applications have in common which plan a discovered network and keep its switches as planned.

An application reads the configuration of each switch that connects and changes only what differs. After its own
restart, packets are therefore forwarded as before. Begin with :class:`PlannedApp`.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Protocol

from os_ken import cfg
from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3 as ofp

import shunt_controller
from shunt_controller.apps.discovery import Discovery, EventStoodDown, EventSwitchGone, EventSwitchReady, EventTopology
from shunt_controller.apps.hostpackets import HostPackets, Packet, packet_of
from shunt_controller.apps.reports import Reports
from shunt_controller.apps.switches import ATTEMPTS_MAX, Switches, hosts_of
from shunt_controller.live.mtus import too_low
from shunt_controller.live.rollout import Rollout
from shunt_controller.live.state import State
from shunt_controller.live.topology import Host, Port, Topology
from shunt_controller.redundancy.journal import Basis, Journal
from shunt_controller.sections import Trusted

cfg.CONF.register_cli_opts(
    [cfg.IntOpt("host-mtu", default=1500, min=68, max=65535, help="MTU of hosts in bytes, for warnings about links (1500)")]
)

TICK_S = 0.02
SETTLE_S = 1.2
"""No plan is made before this time has passed since a switch has connected."""
SETTLE_MOST_S = 4.0
"""Time since a switch has connected after which the first plan is made, even if links are missing that switches
have been configured for."""
KEEP_S = 15.0
"""Time after a restart during which nothing is removed, so that all switches and hosts can be found."""
KEEP_STORED_S = 4.0
"""The same time if another controller has stored its plan. IDs, the order of ports, and the locations of hosts are
then known also of switches that connect later. During this time, hosts at a switch remain stored even if they are
not in the topology yet."""
READ_S = 3.0
"""Time in which a switch must answer."""
STORE_S = 1.0
"""Time in which etcd should store a record."""
LOOK_S = 0.2
"""Time between two searches for switches that have not answered."""
QUEUED_MAX = 1000
"""Number of queued events from which on packets are dropped."""

shunt_controller.register()


class Planner(Protocol):
    """What an application plans: from the topology to the configurations of switches."""

    topology: Topology
    rollout: Rollout

    @property
    def header_bytes(self) -> int:
        """Number of bytes that the header adds to packets between switches."""

    def set_topology(self, topology: Topology) -> None:
        """Sets the topology."""

    def known(self, switch: int, state: State, has_lane: bool) -> None:
        """Records the configuration that a switch has."""

    def restore(self) -> None:
        """Takes over what switches have since before the controller was started. Called before the first plan."""

    def adopt(self, bases: Iterable[Basis]) -> None:
        """Takes over the first basis that can be used, of a controller that was the master before."""

    def basis(self) -> Basis | None:
        """Returns the basis of the plan, or None without a plan."""

    @property
    def waits(self) -> bool:
        """Whether the desired configurations are still of a plan that was stored before."""

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The hosts of the network."""

    def update(self) -> bool:
        """Plans if something has changed. Returns whether there is a new plan."""


class PlannedApp(OSKenApp):  # type: ignore[misc]
    """An application that runs a :class:`Planner`. One thread does all work, so that os-ken's threads answer
    echo requests while a plan is made. A subclass defines the class variables, :meth:`planner` and what differs."""

    OFP_VERSIONS = [ofp.OFP_VERSION]
    _CONTEXTS = {"discovery": Discovery}
    NAME: ClassVar[str]
    COOKIE: ClassVar[int]
    """Cookie of the application's entries."""
    SECTIONS: ClassVar[tuple[int, ...]]
    """Kinds of the sections that the application configures."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.log = logging.getLogger(self.NAME)
        self.report = Reports(self.log)
        self.discovery: Discovery = kwargs["discovery"]
        self.state: Planner = self.planner()
        self.switches = Switches(self.COOKIE, self.SECTIONS, self.log, self._known, self._done)
        self.packets = HostPackets(self.discovery, self.switches, lambda: self.state.topology, self.relays)
        self.packets_dropped = 0
        """Number of packets that were dropped because too many were waiting."""
        self.connected_s = 0.0
        """When the last switch has connected."""
        self._queue: queue.SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]]] = queue.SimpleQueue()
        self._has_begun = False
        self._read_s: dict[int, float] = {}
        self._journal = self._new_journal()
        self._stored_s = 0.0
        """Last time at which no change of switches waited for a record."""
        self._looked_s = 0.0
        self._known_s: dict[int, float] = {}
        """Times at which switches became known. Their stored hosts are kept for KEEP_STORED_S from then on."""
        self.mtu_problems: list[str] = []
        """Sentences about links whose MTU is too low."""

    def planner(self) -> Planner:
        """Returns the planner with the settings from the command line."""
        raise NotImplementedError

    def is_complete(self, now_s: float) -> bool:
        """Returns whether enough is known for the first plan, so that it does not disturb packets that are
        forwarded already."""
        raise NotImplementedError

    def is_settled(self, now_s: float) -> bool:
        """Returns whether discovery has found all links that switches are configured for, except at ports that are
        down, or has had enough time to find them."""
        topology = self.state.topology
        missing = [
            Port(number, port)
            for number, state in self.state.rollout.actual.items()
            for section in state.sections.values()
            if isinstance(section, Trusted)
            for port in section.ports & topology.switches.get(number, frozenset())
            if Port(number, port) not in topology.peers
        ]
        return not missing or now_s - self.connected_s >= SETTLE_MOST_S

    def is_read(self) -> bool:
        """Returns whether the configurations of all connected switches are known."""
        return all(number in self.state.rollout.actual for number in self.switches.connected)

    def planned(self, now_s: float) -> None:
        """Called after a new plan was made."""

    def use_store(self, is_stored: Callable[[Basis], bool]) -> None:
        """Called before the first plan if plans are stored. `is_stored` returns whether a basis is."""

    def rolled_out(self) -> None:
        """Called after changes of switches were sent, or there were none to send."""

    def relays(self, packet: Packet, to: Host) -> bool:
        """Called for a packet to a known host. Returns whether the controller delivers the packet."""
        return True

    def start(self) -> Any:
        """Starts the thread of this application. Called by os-ken."""
        super().start()
        threading.Thread(target=self._run, name=self.NAME, daemon=True).start()

    def call(self, handler: Callable[..., None], *arguments: Any) -> None:
        """Lets the application's thread call a function."""
        self._queue.put((handler, arguments))

    @set_ev_cls(EventTopology)
    def topology_changed(self, event: EventTopology) -> None:
        """Handles a change of the network."""
        self.call(self.state.set_topology, event.topology)

    @set_ev_cls(EventSwitchReady)
    def switch_ready(self, event: EventSwitchReady) -> None:
        """Handles a new connection."""
        self.call(self._begin, event.datapath)

    @set_ev_cls(EventSwitchGone)
    def switch_gone(self, event: EventSwitchGone) -> None:
        """Handles the end of a connection."""
        self.call(self._end, event.datapath)

    @set_ev_cls(EventStoodDown)
    def stood_down(self, event: EventStoodDown) -> None:
        """Handles the end of the mastership."""
        self.call(self._reset)

    @set_ev_cls(
        [
            ofp_event.EventOFPFlowStatsReply,
            ofp_event.EventOFPGroupDescStatsReply,
            ofp_event.EventOFPQueueGetConfigReply,
            ofp_event.EventOFPExperimenter,
            ofp_event.EventOFPBarrierReply,
            ofp_event.EventOFPErrorMsg,
        ],
        MAIN_DISPATCHER,
    )
    def answered(self, event: Any) -> None:
        """Handles an answer of a switch."""
        self.call(self.switches.received, event.msg)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event: Any) -> None:
        """Handles a packet of a host."""
        packet = packet_of(event.msg)
        if packet is None:
            return
        if self._queue.qsize() >= QUEUED_MAX:
            self.packets_dropped += 1
            return
        self.call(self.packets.received, packet)

    def switch_states(self) -> Mapping[int, dict[str, Any]]:
        """Returns the state of each connected switch for the status page (docs/controllers.md)."""
        rollout, found = self.state.rollout, {}
        for number, switch in list(self.switches.connected.items()):
            desired = rollout.desired.get(number)
            is_planned = desired is not None and rollout.actual.get(number) == desired
            found[number] = {"state": "as planned" if is_planned else "waiting", "problem": switch.problem}
        return found

    def _run(self) -> None:
        while True:
            try:
                self._handle_queued()
                self._step(time.monotonic())
            except Exception:
                self.log.exception("an internal error of %s", self.NAME)
                time.sleep(1)

    def _handle_queued(self) -> None:
        """Handles all queued events. Waits for the first one, but not longer than the next time-out."""
        try:
            handler, arguments = self._queue.get(timeout=TICK_S)
            while True:
                handler(*arguments)
                handler, arguments = self._queue.get_nowait()
        except queue.Empty:
            return

    def _step(self, now_s: float) -> None:
        self.packets.step()
        rollout = self.state.rollout
        if now_s - self._looked_s >= LOOK_S:
            self._looked_s = now_s
            self._read_again(now_s)
        if not self._has_begun and not self._begin_plan(now_s):
            self._stored_s = now_s
            return
        if self.state.update():
            self._check_mtus()
            self.planned(now_s)
        may_change = self._journal is None or self._may_change(self._journal, now_s)
        if may_change and not self.state.waits:
            self._stored_s = now_s
        elif now_s - self._stored_s >= STORE_S:
            self.report("not stored", "a plan with other IDs or gates waits until etcd has stored them; the switches keep those that they have")
        if not may_change:
            return
        counts = {number: self.switches.change(number, rollout.actual[number], target) for number, target in rollout.next(now_s).items()}
        for number, count in counts.items():
            self._read_s[number] = now_s
            self.log.info("switch %x: %d changes", number, count)
        self.rolled_out()

    def _may_change(self, journal: Journal, now_s: float) -> bool:
        for number in [number for number, known_s in self._known_s.items() if now_s - known_s >= KEEP_STORED_S]:
            del self._known_s[number]
            journal.known(number)
        return journal.may_change(self.state, now_s)

    def _read_again(self, now_s: float) -> None:
        """Reads switches again that have not answered."""
        for number, switch in self.switches.connected.items():
            if switch.refusals >= ATTEMPTS_MAX:
                # Its configuration is not changed any more, and no other switch waits for it.
                self.state.rollout.gone(number)
            is_lost = number not in self.state.rollout.actual and switch.refusals < ATTEMPTS_MAX
            if is_lost and now_s - self._read_s.get(number, now_s) >= READ_S:
                self.report(f"silent {number}", f"switch {number:x} does not answer; its configuration is read again")
                self._read_s[number] = now_s
                self.switches.retry(number)

    def _check_mtus(self) -> None:
        """Reports links whose MTU is too low."""
        mtus = {number: switch.mtus for number, switch in self.switches.connected.items()}
        self.mtu_problems = too_low(self.state.topology, mtus, cfg.CONF.host_mtu, self.state.header_bytes)
        for problem in self.mtu_problems:
            self.report(f"mtu {problem}", problem)

    def _begin_plan(self, now_s: float) -> bool:
        """Returns whether the first plan can be made."""
        if not self.switches.connected or now_s - self.connected_s < SETTLE_S or not self.is_complete(now_s):
            return False
        self._has_begun = True
        if any(not state.is_empty for state in self.state.rollout.actual.values()):
            self.state.rollout.keep_until_s = now_s + KEEP_S
        self.state.restore()
        if self._journal is not None and self.discovery.mastership is not None:
            entry = self.discovery.mastership.entry(self.NAME)
            self._journal.restore(entry)
            self.use_store(self._journal.is_stored)
            if entry.current is not None:
                self.state.rollout.keep_until_s = min(self.state.rollout.keep_until_s, now_s + KEEP_STORED_S)
            self.state.adopt(basis for basis in (entry.next, entry.current) if basis is not None)
            for number in self.state.rollout.actual:
                self._restore_stored(self._journal, number, now_s)
        return True

    def _restore_stored(self, journal: Journal, number: int, now_s: float) -> None:
        """Restores the stored hosts at a switch that is known now."""
        hosts = journal.hosts_at(number)
        if hosts:
            self._known_s.setdefault(number, now_s)
            self.discovery.restore(hosts)

    def _new_journal(self) -> Journal | None:
        mastership = self.discovery.mastership
        if mastership is None:
            return None
        journal = Journal(self.NAME, lambda entry: mastership.submit(entry, lambda stored: self.call(journal.stored, stored)))
        return journal

    def _reset(self) -> None:
        """Forgets the network, because another controller is the master."""
        self.state = self.planner()
        self.switches.connected.clear()
        self._read_s.clear()
        self._known_s.clear()
        self.mtu_problems = []
        self._has_begun, self._journal = False, self._new_journal()

    def _begin(self, datapath: Any) -> None:
        self.connected_s = self._read_s[datapath.id] = time.monotonic()
        self.switches.begin(datapath)

    def _end(self, datapath: Any) -> None:
        if self.switches.end(datapath):
            self.state.rollout.gone(datapath.id)

    def _known(self, number: int, state: State) -> None:
        has_lane = bool(self.switches.connected[number].has_lane)
        self.state.known(number, state, has_lane)
        if not self._has_begun:
            self.discovery.restore(Host(mac, Port(number, port)) for mac, port in hosts_of(state).items())
        elif self._journal is not None:
            self._restore_stored(self._journal, number, time.monotonic())
        kind = "has stateless forwarding" if has_lane else "forwards by flow entries only"
        self.log.info("switch %x %s; it has %d entries", number, kind, len(state.flows))

    def _done(self, number: int) -> None:
        self.state.rollout.done(number, time.monotonic())
