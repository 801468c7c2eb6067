# SPDX-License-Identifier: Apache-2.0
"""Reads the configuration of switches, and changes it: in a bundle, which takes effect as a whole, if the switch
has stateless forwarding, otherwise by single messages."""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from shunt_controller.apps.cookies import is_of_another
from shunt_controller.bundles import XID, bundled
from shunt_controller.experimenter import ExtensionError
from shunt_controller.live.state import State
from shunt_controller.live.wire import messages, of_statistics
from shunt_controller.sections import Mtu
from shunt_controller.stateless import StatelessReply, StatelessRequest, joined

ATTEMPTS_MAX = 3
"""Number of times that the same change is tried at a switch that refuses it."""


@dataclass
class _Reading:
    """Replies of a switch whose configuration is being read."""

    xids: list[int]
    """Transaction IDs of the requests, from the request for the sections to the final barrier."""
    replies: list[StatelessReply] = field(default_factory=list)
    groups: list[Any] = field(default_factory=list)
    flows: list[Any] = field(default_factory=list)
    has_lane: bool = True
    queues: dict[int, set[int]] | None = None


@dataclass
class _Change:
    """A change that a switch has not confirmed."""

    barrier_xid: int
    error: str = ""


@dataclass
class Switch:
    """A connected switch."""

    datapath: Any
    has_lane: bool | None = None
    """Whether the switch has stateless forwarding; None until it has been read."""
    mtus: Mapping[int, int] = field(default_factory=dict)
    """MTUs of ports with a configured limit, in bytes after the Ethernet header."""
    queues: Mapping[int, Collection[int]] | None = None
    """Numbers of the queues of ports that have any; None if the switch has not reported its queues."""
    reading: _Reading | None = None
    change: _Change | None = None
    refusals: int = 0
    """Number of refusals since the last change that succeeded."""
    problem: str = ""
    """Why the switch does not have the desired configuration; empty if it is not known to lack it."""


class Switches:
    """The connected switches of an application. All methods must be called by the same thread.

    The application owns the sections of the given kinds, all groups, and all entries except entries of other
    applications of this package. `known` is called with a datapath ID and a configuration when a switch has
    been read, and `done` with a datapath ID when it has confirmed a change."""

    def __init__(
        self,
        cookie: int,
        kinds: Collection[int],
        log: logging.Logger,
        known: Callable[[int, State], None],
        done: Callable[[int], None],
    ) -> None:
        self._cookie, self._kinds, self._log, self._known, self._done = cookie, frozenset(kinds), log, known, done
        # Other applications of this package have other numbers.
        self._bundle = cookie >> 32 & 0xFFFF
        self.connected: dict[int, Switch] = {}

    @property
    def lanes(self) -> frozenset[int]:
        """The switches with stateless forwarding."""
        return frozenset(number for number, switch in self.connected.items() if switch.has_lane)

    def begin(self, datapath: Any) -> None:
        """Adds a switch that has connected, and reads its configuration."""
        self.connected[datapath.id] = Switch(datapath)
        self.read(datapath.id)

    def end(self, datapath: Any) -> bool:
        """Removes a switch whose connection has ended. Returns whether it was there."""
        switch = self.connected.get(datapath.id)
        if switch is None or switch.datapath is not datapath:
            return False
        del self.connected[datapath.id]
        return True

    def read(self, number: int) -> None:
        """Begins to read the configuration of a switch."""
        switch = self.connected[number]
        datapath = switch.datapath
        requests = [
            StatelessRequest(datapath),
            parser.OFPGroupDescStatsRequest(datapath, 0),
            parser.OFPFlowStatsRequest(datapath, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0, parser.OFPMatch()),
            parser.OFPQueueGetConfigRequest(datapath, ofp.OFPP_ANY),
            parser.OFPBarrierRequest(datapath),
        ]
        switch.change, switch.reading = None, _Reading(_send(datapath, requests))

    def change(self, number: int, actual: State, target: State) -> int:
        """Sends a switch what changes its configuration. Returns the number of changes."""
        switch, made = self.connected[number], messages(actual, target, self._cookie)
        barrier = _packed(switch.datapath, parser.OFPBarrierRequest(switch.datapath))
        switch.change = _Change(barrier.xid)
        sent = bundled(self._bundle, made) if switch.has_lane else b"".join(made)
        switch.datapath.send(sent + bytes(barrier.buf))
        return len(made)

    def received(self, message: Any) -> None:
        """Handles an answer of a switch."""
        switch = self.connected.get(message.datapath.id)
        if switch is None or switch.datapath is not message.datapath:
            return
        if isinstance(message, parser.OFPErrorMsg):
            self._refused(switch, message)
        elif isinstance(message, parser.OFPBarrierReply):
            self._confirmed(switch, message.xid)
        elif switch.reading is not None and message.xid in switch.reading.xids:
            self._reply(switch.reading, message)

    def _reply(self, reading: _Reading, message: Any) -> None:
        if isinstance(message, parser.OFPGroupDescStatsReply):
            reading.groups += message.body
        elif isinstance(message, parser.OFPFlowStatsReply):
            reading.flows += [flow for flow in message.body if not is_of_another(flow.cookie, self._cookie)]
        elif isinstance(message, parser.OFPQueueGetConfigReply):
            reading.queues = {}
            for queue in message.queues:
                reading.queues.setdefault(queue.port, set()).add(queue.queue_id)
        elif isinstance(message, parser.OFPExperimenter):
            try:
                reply = StatelessReply.of(message)
            except ExtensionError as error:
                self._log.error("switch %x: %s", message.datapath.id, error)
                return
            if reply is not None:
                reading.replies.append(reply)

    def _confirmed(self, switch: Switch, xid: int) -> None:
        number = switch.datapath.id
        if switch.reading is not None and xid == switch.reading.xids[-1]:
            reading, switch.reading = switch.reading, None
            switch.has_lane = reading.has_lane and bool(reading.replies)
            sections = joined(reading.replies) or [] if switch.has_lane else []
            switch.mtus = next((section.bytes_of for section in sections if isinstance(section, Mtu)), {})
            switch.queues = reading.queues
            self._known(number, of_statistics(sections, reading.groups, reading.flows, self._kinds))
        elif switch.change is not None and xid == switch.change.barrier_xid:
            change, switch.change = switch.change, None
            if not change.error:
                switch.refusals, switch.problem = 0, ""
                self._done(number)
                return
            switch.refusals += 1
            switch.problem = change.error
            self._log.error("switch %x refuses its configuration: %s", number, change.error)
            if switch.refusals < ATTEMPTS_MAX:
                self.read(number)

    @staticmethod
    def _refused(switch: Switch, message: Any) -> None:
        if switch.reading is not None and message.xid == switch.reading.xids[0]:
            switch.reading.has_lane = False
        elif switch.change is not None and message.xid == XID:
            code = getattr(message, "code", None)
            text = f"error {message.type}/{getattr(message, 'exp_type', 0) if code is None else code}"
            switch.change.error = switch.change.error or text

    @property
    def refusing(self) -> list[int]:
        """The switches that have refused their configuration too often."""
        return [number for number, switch in self.connected.items() if switch.refusals >= ATTEMPTS_MAX]

    def retry(self, number: int) -> None:
        """Reads a switch again that did not answer or has refused its configuration."""
        self.connected[number].refusals = 0
        self.read(number)


def _send(datapath: Any, made: list[Any]) -> list[int]:
    """Sends messages together. Returns their transaction IDs."""
    datapath.send(b"".join(bytes(_packed(datapath, message).buf) for message in made))
    return [message.xid for message in made]


def _packed(datapath: Any, message: Any) -> Any:
    """Gives a message a transaction ID and its bytes."""
    datapath.set_xid(message)
    message.serialize()
    return message


def hosts_of(state: State) -> Mapping[str, int]:
    """Returns the ports of the hosts that a switch has entries for, by MAC address."""
    found = {}
    for flow in state.flows.values():
        if flow.id.table == 0 and set(flow.match) == {"in_port", "eth_src"}:
            found[str(flow.match["eth_src"])] = int(flow.match["in_port"])
    return found
