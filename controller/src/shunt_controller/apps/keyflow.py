# SPDX-License-Identifier: Apache-2.0
"""KeyFlow for a network that is discovered: keys for all pairs of places with hosts, or with ``--mode reactive``
for the packets that arrive.

    shunt-controller run keyflow

The application reads the configuration of each switch that connects and changes only what differs. After its own
restart, packets are therefore forwarded as before.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from os_ken import cfg
from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

import shunt_controller
from shunt_controller.apps.cookies import KEYFLOW
from shunt_controller.apps.discovery import Discovery, EventSwitchGone, EventSwitchReady, EventTopology
from shunt_controller.apps.reports import Reports
from shunt_controller.apps.switches import ATTEMPTS_MAX, Switches, hosts_of
from shunt_controller.live import frames
from shunt_controller.live.bucket import Buckets
from shunt_controller.live.keyflow import KeyFlow as State
from shunt_controller.live.keyflow import Settings
from shunt_controller.live.lldp import ETHERTYPE as LLDP
from shunt_controller.live.state import State as Configuration
from shunt_controller.live.state import flow_id
from shunt_controller.live.topology import Port
from shunt_controller.plan.keys import WIDTHS_BITS
from shunt_controller.sections import Bank, Trusted

cfg.CONF.register_cli_opts(
    [
        cfg.StrOpt("mode", default="proactive", choices=["proactive", "reactive"], help="when keys are installed"),
        cfg.IntOpt("width", choices=list(WIDTHS_BITS), help="bits of a key (default: 64, with --protect 128)"),
        cfg.BoolOpt("protect", default=False, help="give keys detours around failures"),
        cfg.IntOpt("reserve", default=4, min=0, max=1024, help="further links of a switch for which its ID leaves room"),
        cfg.IntOpt("idle-timeout", default=60, min=1, max=65535, help="seconds until an unused entry is removed, if reactive"),
    ]
)

TICK_S = 0.02
SETTLE_S, SETTLE_MOST_S = 1.2, 4.0
"""The first plan is made SETTLE_S after a switch has connected if all links are found that switches have been
configured for, otherwise SETTLE_MOST_S after it."""
KEEP_S = 15.0
"""Time after a restart during which nothing is removed, so that all switches can connect."""
READ_S = 3.0
"""Time in which a switch must answer."""
HELD_MAX, HELD_S = 256, 2.5
"""Packets that are held until it is known whether their port leads to a host, and for how long."""
QUEUED_MAX = 1000
"""Number of queued events from which on packets are dropped."""
FLOODS_PER_S, RELAYS_PER_S = 50.0, 200.0
"""Packets of a port per second that are sent to all hosts, and to one host."""

shunt_controller.register()


class Packet(NamedTuple):
    """A packet that the controller has received."""

    at: Port
    data: bytes
    facts: frames.Facts
    until_s: float


class KeyFlow(OSKenApp):  # type: ignore[misc]
    """Runs :class:`shunt_controller.live.keyflow.KeyFlow`. One thread does all work, so that os-ken's threads
    answer echo requests while a plan is made."""

    OFP_VERSIONS = [ofp.OFP_VERSION]
    _CONTEXTS = {"discovery": Discovery}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.log = logging.getLogger("keyflow")
        self.report = Reports(self.log)
        self.discovery: Discovery = kwargs["discovery"]
        self.state = State(settings(), self.report)
        self.switches = Switches(KEYFLOW, (Trusted.kind, Bank.kind), self.log, self._known, self._done)
        self.packets_dropped = 0
        """Number of packets that were dropped because too many were waiting."""
        self._queue: queue.SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]]] = queue.SimpleQueue()
        self._held: list[Packet] = []
        self._floods = Buckets(FLOODS_PER_S, 2 * FLOODS_PER_S)
        self._relays = Buckets(RELAYS_PER_S, 2 * RELAYS_PER_S)
        self._has_begun = False
        self._connected_s = 0.0
        self._read_s: dict[int, float] = {}
        self._was_settled = True

    def start(self) -> Any:
        """Starts the thread of this application. Called by os-ken."""
        super().start()
        threading.Thread(target=self._run, name="keyflow", daemon=True).start()

    @set_ev_cls(EventTopology)
    def topology_changed(self, event: EventTopology) -> None:
        """Handles a change of the network."""
        self._queue.put((self.state.set_topology, (event.topology,)))

    @set_ev_cls(EventSwitchReady)
    def switch_ready(self, event: EventSwitchReady) -> None:
        """Handles a new connection."""
        self._queue.put((self._begin, (event.datapath,)))

    @set_ev_cls(EventSwitchGone)
    def switch_gone(self, event: EventSwitchGone) -> None:
        """Handles the end of a connection."""
        self._queue.put((self._end, (event.datapath,)))

    @set_ev_cls(
        [
            ofp_event.EventOFPFlowStatsReply,
            ofp_event.EventOFPGroupDescStatsReply,
            ofp_event.EventOFPExperimenter,
            ofp_event.EventOFPBarrierReply,
            ofp_event.EventOFPErrorMsg,
        ],
        MAIN_DISPATCHER,
    )
    def answered(self, event: Any) -> None:
        """Handles an answer of a switch."""
        self._queue.put((self.switches.received, (event.msg,)))

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def flow_removed(self, event: Any) -> None:
        """Handles an entry that was removed."""
        self._queue.put((self._removed, (event.msg,)))

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event: Any) -> None:
        """Handles a packet of a host."""
        message = event.msg
        facts = frames.read(bytes(message.data))
        if facts is None or facts.eth_type == LLDP or frames.is_reserved(facts.dst):
            return
        if facts.announces and message.table_id == 0:
            # A copy of a packet that the switch handles itself.
            return
        if self._queue.qsize() >= QUEUED_MAX:
            self.packets_dropped += 1
            return
        at = Port(message.datapath.id, message.match["in_port"])
        packet = Packet(at, bytes(message.data), facts, time.monotonic() + HELD_S)
        self._queue.put((self._received, (packet,)))

    def _run(self) -> None:
        while True:
            try:
                self._handle_queued()
                self._step(time.monotonic())
            except Exception:
                self.log.exception("an internal error of KeyFlow")
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
        held, self._held = self._held, []
        for packet in held:
            self._received(packet)
        for number, switch in self.switches.connected.items():
            is_lost = number not in self.state.rollout.actual and switch.refusals < ATTEMPTS_MAX
            if is_lost and now_s - self._read_s.get(number, now_s) >= READ_S:
                self.report(f"silent {number}", f"switch {number:x} does not answer; its configuration is read again")
                self._read_s[number] = now_s
                self.switches.retry(number)
        if not self._has_begun and not self._begin_plan(now_s):
            return
        if self.state.update():
            self._was_settled = False
            for number in self.switches.refusing:
                self.switches.retry(number)
            routes, identifiers = self.state.routes, self.state.identifiers
            self.log.info("planned %d routes, %d switches with IDs, epoch %d", len(routes.routes), len(identifiers.ids), identifiers.epoch)
        for number, target in self.state.rollout.next(now_s).items():
            self._read_s[number] = now_s
            self.switches.change(number, self.state.rollout.actual[number], target)
        if self.state.rollout.is_settled and not self._was_settled:
            self._was_settled = True
            self.log.info("all %d switches are as planned", len(self.state.rollout.actual))

    def _begin_plan(self, now_s: float) -> bool:
        """Returns whether the first plan can be made. It waits until it is known what switches have and where
        links are, so that a plan does not disturb packets that are forwarded already."""
        actual = self.state.rollout.actual
        if not self.switches.connected or now_s - self._connected_s < SETTLE_S:
            return False
        linked = self.state.topology.peers
        missing = [
            Port(number, port)
            for number, state in actual.items()
            for section in state.sections.values()
            if isinstance(section, Trusted)
            for port in section.ports & self.state.topology.switches.get(number, frozenset())
            if Port(number, port) not in linked
        ]
        is_whole = not missing and all(number in actual for number in self.switches.connected)
        if not is_whole and now_s - self._connected_s < SETTLE_MOST_S:
            return False
        self._has_begun = True
        if any(not state.is_empty for state in actual.values()):
            self.state.rollout.keep_until_s = now_s + KEEP_S
        self.state.restore()
        return True

    def _begin(self, datapath: Any) -> None:
        self._connected_s = self._read_s[datapath.id] = time.monotonic()
        self.switches.begin(datapath)

    def _end(self, datapath: Any) -> None:
        if self.switches.end(datapath):
            self.state.rollout.gone(datapath.id)

    def _known(self, number: int, state: Configuration) -> None:
        self.state.known(number, state, bool(self.switches.connected[number].has_lane))
        if not self._has_begun:
            self.discovery.restore((mac, Port(number, port)) for mac, port in hosts_of(state).items())
        kind = "has stateless forwarding" if self.switches.connected[number].has_lane else "forwards by flow entries only"
        self.log.info("switch %x %s; it has %d entries", number, kind, len(state.flows))

    def _done(self, number: int) -> None:
        self.state.rollout.done(number, time.monotonic())

    def _removed(self, message: Any) -> None:
        if message.cookie == KEYFLOW and message.reason == ofp.OFPRR_IDLE_TIMEOUT and "eth_dst" in message.match:
            self.state.idle(message.datapath.id, str(message.match["eth_dst"]))
            flow = flow_id(message.table_id, message.priority, dict(message.match.items()))
            self.state.rollout.removed(message.datapath.id, flow)

    def _received(self, packet: Packet) -> None:
        """Answers or forwards a packet of a host, or holds it."""
        now_s, facts = time.monotonic(), packet.facts
        if not self.discovery.is_edge(packet.at):
            if now_s < packet.until_s and len(self._held) < HELD_MAX and packet.at not in self.state.topology.peers:
                self._held.append(packet)
            return
        hosts = {host.mac: host for host in self.state.topology.hosts}
        to = hosts.get(facts.dst)
        if to is None:
            owners = [host for host in hosts.values() if facts.asks in host.addresses] if facts.asks else []
            if len(owners) == 1 and not facts.is_tagged and owners[0].mac != facts.src:
                self._send(packet.at, frames.answer(facts, owners[0].mac))
            elif self._floods.allows(packet.at, now_s):
                self._flood(packet)
            return
        # Both directions get entries at once, because most packets are answered.
        self.state.ask(packet.at.switch, to.mac)
        if facts.src in hosts:
            self.state.ask(to.at.switch, facts.src)
        is_reached = (packet.at.switch, to.at.switch) not in self.state.routes.refused
        if to.at != packet.at and is_reached and self._relays.allows(packet.at, now_s):
            self._send(to.at, packet.data)

    def _flood(self, packet: Packet) -> None:
        """Sends a packet to all hosts."""
        topology = self.state.topology
        for number, switch in self.switches.connected.items():
            ports = topology.edge_ports(number) if number in topology.switches else frozenset()
            edges = [Port(number, port) for port in sorted(ports)]
            outputs = [parser.OFPActionOutput(port.number) for port in edges if port != packet.at and self.discovery.is_edge(port)]
            if outputs:
                out = parser.OFPPacketOut(switch.datapath, ofp.OFP_NO_BUFFER, ofp.OFPP_CONTROLLER, outputs, packet.data)
                switch.datapath.send_msg(out)

    def _send(self, to: Port, data: bytes) -> None:
        switch = self.switches.connected.get(to.switch)
        if switch is not None:
            actions = [parser.OFPActionOutput(to.number)]
            switch.datapath.send_msg(parser.OFPPacketOut(switch.datapath, ofp.OFP_NO_BUFFER, ofp.OFPP_CONTROLLER, actions, data))


def settings() -> Settings:
    """Returns the settings from the command line."""
    conf = cfg.CONF
    width_bits = conf.width or (128 if conf.protect else 64)
    return Settings(conf.mode == "reactive", width_bits, conf.protect, conf.reserve, conf.idle_timeout)
