# SPDX-License-Identifier: Apache-2.0
"""Discovers the network: switches, links by LLDP, and hosts. Other applications observe :class:`EventTopology`,
:class:`EventSwitchReady` and :class:`EventSwitchGone`.

::

    class Application(OSKenApp):
        _CONTEXTS = {"discovery": Discovery}

        @set_ev_cls(EventTopology)
        def changed(self, event):
            event.topology.links
"""

import logging
import secrets
import threading
import time
from collections.abc import Iterable
from typing import Any

from os_ken import cfg
from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.event import EventBase
from os_ken.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from shunt_controller.apps.cookies import DISCOVERY
from shunt_controller.apps.mastership import Mastership, is_open
from shunt_controller.apps.reports import Reports
from shunt_controller.live import discovery, frames, lldp
from shunt_controller.live.debounce import Debounce
from shunt_controller.live.timing import Timing
from shunt_controller.live.topology import Host, Port, Topology

cfg.CONF.register_cli_opts(
    [cfg.FloatOpt("lldp-period", default=Timing.period_s, min=0.1, max=3600, help="seconds between two LLDP frames of a port")]
)

PRIORITY = 0xFFFF
TICK_S = 0.05
QUIET_S, MOST_S = 0.2, 1.0
"""New links are published after QUIET_S without further changes, at most MOST_S after the first one."""


class EventTopology(EventBase):  # type: ignore[misc]
    """The network has changed."""

    def __init__(self, topology: Topology) -> None:
        super().__init__()
        self.topology = topology


class EventSwitchReady(EventBase):  # type: ignore[misc]
    """A switch has connected and can be configured."""

    def __init__(self, datapath: Any) -> None:
        super().__init__()
        self.datapath = datapath


class EventSwitchGone(EventBase):  # type: ignore[misc]
    """The connection of a switch has ended."""

    def __init__(self, datapath: Any) -> None:
        super().__init__()
        self.datapath = datapath


class EventStoodDown(EventBase):  # type: ignore[misc]
    """This controller is no longer the master. All switches are as if they had not connected."""


class Discovery(OSKenApp):  # type: ignore[misc]
    """Runs :class:`shunt_controller.live.discovery.Discovery` with the events of os-ken."""

    OFP_VERSIONS = [ofp.OFP_VERSION]
    _EVENTS = [EventTopology, EventSwitchReady, EventSwitchGone, EventStoodDown]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.log = logging.getLogger("discovery")
        self.report = Reports(self.log)
        period_s = cfg.CONF.lldp_period
        self.timing = Timing(period_s=period_s)
        self._key = secrets.token_bytes(32)
        # Guards everything below. Messages are sent and events are published without it.
        self._lock = threading.Lock()
        self._state = self._fresh()
        # Held while a topology is published, so that an older one never follows a newer one.
        self._publishing = threading.Lock()
        self._debounce = Debounce(QUIET_S, MOST_S)
        self._datapaths: dict[int, Any] = {}
        self.topology = Topology()
        """The topology that was published last."""
        self.mastership = Mastership(self._begun, self._stand_down) if cfg.CONF.etcd else None
        """The election of the master among several controllers; None if there is one controller."""

    def _fresh(self) -> discovery.Discovery:
        return discovery.Discovery(self.timing, lambda: secrets.token_bytes(lldp.NONCE_BYTES), self.report)

    def start(self) -> Any:
        """Starts the thread that sends LLDP frames. Called by os-ken."""
        super().start()
        threading.Thread(target=self._run, name="discovery", daemon=True).start()
        if self.mastership is not None:
            self.mastership.start()

    @property
    def datapaths(self) -> dict[int, Any]:
        """The connected switches by datapath ID."""
        with self._lock:
            return dict(self._datapaths)

    def is_edge(self, port: Port) -> bool:
        """Returns whether a port leads to no switch. This is known some time after the port has come up."""
        with self._lock:
            return self._state.is_edge(port, time.monotonic())

    def restore(self, hosts: Iterable[Host]) -> None:
        """Adds hosts that were known before the controller was started."""
        now_s = time.monotonic()
        with self._lock:
            for host in hosts:
                if self._state.restore(host, now_s):
                    self._debounce.change(now_s)

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def state_changed(self, event: Any) -> None:
        """Handles the begin and the end of a connection."""
        if event.state == DEAD_DISPATCHER:
            if self.mastership is not None:
                self.mastership.ended(event.datapath)
            self._ended(event.datapath)
        elif self.mastership is not None:
            self.mastership.connected(event.datapath)
        else:
            self._begun(event.datapath)

    @set_ev_cls([ofp_event.EventOFPRoleReply, ofp_event.EventOFPErrorMsg], MAIN_DISPATCHER)
    def role_answered(self, event: Any) -> None:
        """Handles answers to requests for roles."""
        if self.mastership is not None:
            self.mastership.answered(event.msg)

    def _stand_down(self) -> None:
        """Forgets the network, because another controller is the master."""
        with self._publishing:
            with self._lock:
                self._datapaths, self._state, self.topology = {}, self._fresh(), Topology()
            self.send_event_to_observers(EventStoodDown())

    def _begun(self, datapath: Any) -> None:
        before = self.datapaths.get(datapath.id)
        if before is not None and before is not datapath:
            if is_open(before):
                text = (
                    f"two switches have the datapath ID {datapath.id:x}, at {_address(before)} and {_address(datapath)}; "
                    "the second one is disconnected"
                )
                self.report(f"twice {datapath.id}", text)
                datapath.close()
                return
            self._ended(before)
        ports = {number: is_up(port) for number, port in datapath.ports.items() if number <= ofp.OFPP_MAX}
        self._install(datapath)
        now_s = time.monotonic()
        with self._lock:
            self._datapaths[datapath.id] = datapath
            self._state.connected(datapath.id, ports, now_s)
            self._debounce.change(now_s)
        self.log.info("switch %x is connected, with %d ports", datapath.id, len(ports))
        self.send_event_to_observers(EventSwitchReady(datapath))

    def _ended(self, datapath: Any) -> None:
        with self._lock:
            if not self._is_current(datapath):
                return
            del self._datapaths[datapath.id]
            self._state.disconnected(datapath.id, time.monotonic())
        self.log.info("switch %x is no longer connected", datapath.id)
        # The thread that sends to the switch waits for messages. Without one, it would never end.
        datapath.send(b"", close_socket=True)
        self.send_event_to_observers(EventSwitchGone(datapath))

    def _is_current(self, datapath: Any) -> bool:
        """Returns whether this is the connection of its switch that is in use."""
        return bool(self._datapaths.get(datapath.id) == datapath)

    @staticmethod
    def _install(datapath: Any) -> None:
        """Adds the entry that sends LLDP frames to the controller."""
        actions = [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)]
        instructions = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)]
        match = parser.OFPMatch(eth_type=lldp.ETHERTYPE)
        datapath.send_msg(parser.OFPFlowMod(datapath, cookie=DISCOVERY, priority=PRIORITY, match=match, instructions=instructions))

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def port_changed(self, event: Any) -> None:
        """Handles the state of a port."""
        message, now_s = event.msg, time.monotonic()
        is_there = message.reason != ofp.OFPPR_DELETE
        with self._lock:
            if self._is_current(message.datapath) and message.desc.port_no <= ofp.OFPP_MAX:
                self._state.port(Port(message.datapath.id, message.desc.port_no), is_there and is_up(message.desc), now_s)
                self._debounce.change(now_s)
        self._publish()

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event: Any) -> None:
        """Handles LLDP frames, and learns hosts from other packets."""
        message, now_s = event.msg, time.monotonic()
        at, data = Port(message.datapath.id, message.match["in_port"]), bytes(message.data)
        facts = frames.read(data)
        with self._lock:
            if facts is None or not self._is_current(message.datapath):
                return
            if facts.eth_type == lldp.ETHERTYPE:
                self._state.received(lldp.read(data, self._key), at, now_s)
            elif frames.is_unicast(facts.src) and self._state.learn(facts.src, at, facts.claims, now_s):
                self._debounce.change(now_s, urgent=True)
        if facts.eth_type != lldp.ETHERTYPE:
            self._publish()

    def _run(self) -> None:
        """Sends LLDP frames and publishes changes, forever."""
        while True:
            time.sleep(TICK_S)
            try:
                for datapath in self.datapaths.values():
                    if not is_open(datapath):
                        self._ended(datapath)
                self._send()
                self._publish()
            except Exception:
                self.log.exception("an internal error of the discovery of links")

    def _send(self) -> None:
        with self._lock:
            due = [(self._datapaths.get(probe.sender.switch), probe) for probe in self._state.due(time.monotonic())]
        ttl_s = max(1, min(0xFFFF, round(self.timing.lifetime_s)))
        for datapath, probe in due:
            if datapath is not None:
                actions, data = [parser.OFPActionOutput(probe.sender.number)], lldp.build(probe, self._key, ttl_s)
                out = parser.OFPPacketOut(datapath, ofp.OFP_NO_BUFFER, ofp.OFPP_CONTROLLER, actions, data)
                datapath.send_msg(out)

    def _publish(self) -> None:
        """Publishes the topology if changes are due."""
        with self._publishing:
            now_s = time.monotonic()
            with self._lock:
                if self._state.update(now_s):
                    self._debounce.change(now_s, urgent=not self.topology.links <= self._state.topology().links)
                if not self._debounce.due(now_s):
                    return
                before, self.topology = self.topology, self._state.topology()
            if self.topology != before:
                self._log_links(before, self.topology)
                self.send_event_to_observers(EventTopology(self.topology))

    def _log_links(self, before: Topology, after: Topology) -> None:
        for word, links in (("found", after.links - before.links), ("lost", before.links - after.links)):
            for a, b in sorted(links):
                self.log.info("link %s: port %d of switch %x - port %d of switch %x", word, a.number, a.switch, b.number, b.switch)


def is_up(port: Any) -> bool:
    """Returns whether a port of os-ken is up and may be used."""
    return not (port.state & ofp.OFPPS_LINK_DOWN or port.config & ofp.OFPPC_PORT_DOWN)


def _address(datapath: Any) -> str:
    return f"{datapath.address[0]}:{datapath.address[1]}"
