# SPDX-License-Identifier: Apache-2.0
"""Tag-and-Forward for a fat tree that is discovered: gates for all switches, and tags for packets between
hosts.

    shunt-controller run tag-and-forward

The application waits until the network is a fat tree, and reports the cables that differ from one. It reads
the configuration of each switch that connects and changes only what differs. After its own restart, packets
are therefore forwarded as before.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from os_ken import cfg
from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3 as ofp

import shunt_controller
from shunt_controller.apps.cookies import TAG_AND_FORWARD
from shunt_controller.apps.discovery import Discovery, EventSwitchGone, EventSwitchReady, EventTopology
from shunt_controller.apps.hostpackets import HostPackets, packet_of
from shunt_controller.apps.reports import Reports
from shunt_controller.apps.switches import ATTEMPTS_MAX, Switches, hosts_of
from shunt_controller.live.state import State
from shunt_controller.live.tagforward import Settings, TagForward
from shunt_controller.live.topology import Port
from shunt_controller.sections import Gates, Trusted

cfg.CONF.register_cli_opts(
    [
        cfg.BoolOpt("wide", default=False, help="use tags of the wide format, which trees with k above 24 need"),
        cfg.ListOpt("qid", default=[], help="QID of IP packets by DSCP, for example 46=5,26=3 (default: 0 for all packets)"),
    ]
)

TICK_S = 0.02
SETTLE_S = 1.2
"""A tree is recognized when no switch has connected for this time."""
KEEP_S = 15.0
"""Time after a restart during which nothing is removed, so that all switches and hosts can be found."""
READ_S = 3.0
"""Time in which a switch must answer."""
QUEUED_MAX = 1000
"""Number of queued events from which on packets are dropped."""

shunt_controller.register()


class TagAndForward(OSKenApp):  # type: ignore[misc]
    """Runs :class:`shunt_controller.live.tagforward.TagForward`. One thread does all work, so that os-ken's
    threads answer echo requests while a plan is made."""

    OFP_VERSIONS = [ofp.OFP_VERSION]
    _CONTEXTS = {"discovery": Discovery}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.log = logging.getLogger("tag-and-forward")
        self.discovery: Discovery = kwargs["discovery"]
        self.state = TagForward(settings(), Reports(self.log))
        self.switches = Switches(TAG_AND_FORWARD, (Trusted.kind, Gates.kind), self.log, self._known, self._done)
        self.packets = HostPackets(self.discovery, self.switches, lambda: self.state.topology)
        self.packets_dropped = 0
        """Number of packets that were dropped because too many were waiting."""
        self._queue: queue.SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]]] = queue.SimpleQueue()
        self._has_begun = False
        self._connected_s = 0.0
        self._read_s: dict[int, float] = {}
        self._planned_s: float | None = None

    def start(self) -> Any:
        """Starts the thread of this application. Called by os-ken."""
        super().start()
        threading.Thread(target=self._run, name="tag-and-forward", daemon=True).start()

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

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event: Any) -> None:
        """Handles a packet of a host."""
        packet = packet_of(event.msg)
        if packet is None:
            return
        if self._queue.qsize() >= QUEUED_MAX:
            self.packets_dropped += 1
            return
        self._queue.put((self.packets.received, (packet,)))

    def status(self) -> dict[str, Any]:
        """Returns the plan for the status page (docs/controllers.md)."""
        return described(self.state, self.switches)

    def _run(self) -> None:
        while True:
            try:
                self._handle_queued()
                self._step(time.monotonic())
            except Exception:
                self.log.exception("an internal error of Tag-and-Forward")
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
        for number, switch in self.switches.connected.items():
            is_lost = number not in rollout.actual and switch.refusals < ATTEMPTS_MAX
            if is_lost and now_s - self._read_s.get(number, now_s) >= READ_S:
                self.log.info("switch %x does not answer; its configuration is read again", number)
                self._read_s[number] = now_s
                self.switches.retry(number)
        if not self._has_begun and not self._begin_plan(now_s):
            return
        if self.state.update():
            self._planned_s = now_s
            for number in self.switches.refusing:
                self.switches.retry(number)
        sent = rollout.next(now_s)
        for number, target in sent.items():
            self._read_s[number] = now_s
            self.switches.change(number, rollout.actual[number], target)
        if self._planned_s is not None and rollout.is_added:
            tree, gates = self.state.tree, self.state.numbering
            count = sum(len(switch.gates) for switch in gates.switches.values()) if gates else 0
            duration_ms = 1000 * (time.monotonic() - self._planned_s)
            self.log.info("all %d switches are as planned after %.1f ms: k = %d, %d gates", len(rollout.actual), duration_ms, tree.k if tree else 0, count)
            self._planned_s = None

    def _begin_plan(self, now_s: float) -> bool:
        """Returns whether the first plan can be made: all switches that are connected must have been read."""
        actual = self.state.rollout.actual
        if not self.switches.connected or now_s - self._connected_s < SETTLE_S:
            return False
        if any(number not in actual for number in self.switches.connected):
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

    def _known(self, number: int, state: State) -> None:
        has_lane = bool(self.switches.connected[number].has_lane)
        self.state.known(number, state, has_lane)
        if not self._has_begun:
            self.discovery.restore((mac, Port(number, port)) for mac, port in hosts_of(state).items())
        kind = "has stateless forwarding" if has_lane else "has no stateless forwarding"
        self.log.info("switch %x %s; it has %d entries", number, kind, len(state.flows))

    def _done(self, number: int) -> None:
        self.state.rollout.done(number, time.monotonic())


def described(state: TagForward, switches: Switches) -> dict[str, Any]:
    """Returns a plan and the states of switches as JSON values."""
    numbering, actual = state.numbering, state.rollout.actual
    found: dict[str, Any] = {"kind": "tag-and-forward", "problems": list(state.problems), "k": state.tree.k if state.tree else None, "switches": {}}
    layers = {}
    if numbering is not None:
        names = numbering.tree.network.nodes
        layers = {
            names[node]: {
                "layer": one.layer,
                "gates": [[gate.port, gate.gate, gate.flag] for _, gate in sorted(one.by_port.items())],
                "down_d": one.down_d,
                "up_d": one.up_d,
                "external_d": one.external_d,
            }
            for node, one in numbering.switches.items()
        }
    for number, switch in list(switches.connected.items()):
        desired = state.rollout.desired.get(number)
        is_planned = desired is not None and actual.get(number) == desired
        name = f"{number:016x}"
        found["switches"][name] = {"state": "as planned" if is_planned else "waiting", "problem": switch.problem, **layers.get(name, {})}
    return found


def settings() -> Settings:
    """Returns the settings from the command line."""
    qids = {}
    for text in cfg.CONF.qid:
        dscp, _, qid = text.partition("=")
        if not (dscp.isdecimal() and qid.isdecimal() and int(dscp) < 64 and int(qid) < 8):
            raise SystemExit(f"run: --qid has the item {text!r}; items are DSCP=QID, with DSCP 0 to 63 and QID 0 to 7")
        qids[int(dscp)] = int(qid)
    return Settings(cfg.CONF.wide, qids)
