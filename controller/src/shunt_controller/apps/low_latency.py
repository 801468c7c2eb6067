# SPDX-License-Identifier: Apache-2.0
"""Marks the flow entries of all switches that connect, by the rules of a file.

    shunt-controller run low-latency --policy policy.toml

Entries of other controllers are marked, too. Their other instructions, counters and time-outs are not
changed. The application reads all entries of a switch once per second and marks those that lack their mark,
so that entries which are added again are marked again. The file is read again when it changes, or on
SIGHUP. If it has an error, the rules that were read before stay in force. An entry to which no rule applies
any more gets the mark that it had before, or `normal` if it had none.

A mark is set by a flow-mod MODIFY_STRICT with the instructions that the switch has reported. If another
controller changes the instructions of an entry in the few milliseconds after the report, its change is lost.
"""

import logging
import os
import pathlib
import queue
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from os_ken import cfg
from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

import shunt_controller
from shunt_controller.apps.cookies import LOW_LATENCY
from shunt_controller.apps.reports import Reports
from shunt_controller.instructions import LowLatency
from shunt_controller.live.policy import PolicyError, Rule, fields, first, mark_of, marked, parse
from shunt_controller.live.state import FlowId, flow_id

cfg.CONF.register_cli_opts([cfg.StrOpt("policy", help="the file with the rules: .toml, .yaml or .yml")])

TICK_S = 0.1
POLL_S = 1.0
"""Time between two readings of the entries of a switch, and of the file's state."""
ANSWER_S = 10.0
"""Time in which a switch must answer."""
FILE_BYTES_MAX = 1 << 20
VERDICTS_MAX = 10_000
"""Maximum number of entries of a switch in the status."""

shunt_controller.register()


@dataclass
class _Switch:
    datapath: Any
    xid: int | None = None
    """Transaction of the request that has not been answered completely."""
    asked_s: float = float("-inf")
    flows: list[Any] = field(default_factory=list)
    own: dict[FlowId, bool | None] = field(default_factory=dict)
    """The marks that entries had before this application marked them."""
    sent: dict[int, FlowId] = field(default_factory=dict)
    """Entries that were marked after the last reading, by transaction."""
    refused: set[FlowId] = field(default_factory=set)
    verdicts: list[dict[str, Any]] = field(default_factory=list)


class Marking(OSKenApp):  # type: ignore[misc]
    """Keeps the marks of all entries as the policy demands. One thread does all work."""

    OFP_VERSIONS = [ofp.OFP_VERSION]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.log = logging.getLogger("low-latency")
        self._report = Reports(self.log)
        if "etcd" in cfg.CONF and cfg.CONF.etcd:
            raise SystemExit("run: low-latency cannot be used with --etcd; start it as a controller of its own")
        if not cfg.CONF.policy:
            raise SystemExit("run: --policy is required: the file with the rules")
        self._path = pathlib.Path(cfg.CONF.policy)
        try:
            self.rules, self._seen = self._load()
        except PolicyError as error:
            raise SystemExit(f"run: {self._path}: {error}") from error
        self.problem = ""
        """Why the file that is there now cannot be used; empty if it is in force."""
        self._queue: queue.SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]]] = queue.SimpleQueue()
        self._switches: dict[int, _Switch] = {}
        signal.signal(signal.SIGHUP, lambda *_: self._queue.put((self._reload, ())))

    def start(self) -> Any:
        """Starts the thread of this application. Called by os-ken."""
        super().start()
        self.log.info("%s: %d rules", self._path, len(self.rules))
        threading.Thread(target=self._run, name="low-latency", daemon=True).start()

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def state_changed(self, event: Any) -> None:
        """Handles the begin and the end of a connection."""
        self._queue.put((self._end if event.state == DEAD_DISPATCHER else self._begin, (event.datapath,)))

    @set_ev_cls([ofp_event.EventOFPFlowStatsReply, ofp_event.EventOFPErrorMsg], MAIN_DISPATCHER)
    def answered(self, event: Any) -> None:
        """Handles an answer of a switch."""
        self._queue.put((self._received, (event.msg,)))

    def status(self) -> dict[str, Any]:
        """Returns the rules and the verdicts about entries for the status page (docs/controllers.md)."""
        switches = {f"{number:016x}": {"flows": switch.verdicts} for number, switch in list(self._switches.items())}
        rules = [{"name": rule.name, "mark": _word(rule.mark)} for rule in self.rules]
        return {"kind": "low-latency", "problems": [self.problem] if self.problem else [], "rules": rules, "switches": switches}

    def _run(self) -> None:
        checked_s = time.monotonic()
        while True:
            try:
                handler, arguments = self._queue.get(timeout=TICK_S)
                handler(*arguments)
            except queue.Empty:
                pass
            except Exception:
                self.log.exception("an internal error of the low-latency policy")
            now_s = time.monotonic()
            if now_s - checked_s >= POLL_S:
                checked_s = now_s
                if self._state() != self._seen:
                    self._reload()
            for switch in list(self._switches.values()):
                if now_s - switch.asked_s >= (POLL_S if switch.xid is None else ANSWER_S):
                    self._ask(switch, now_s)

    def _state(self) -> tuple[int, ...]:
        """Returns values that change with the file."""
        try:
            found = os.stat(self._path)
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _load(self) -> tuple[tuple[Rule, ...], tuple[int, ...]]:
        seen = self._state()
        try:
            with self._path.open("rb") as file:
                data = file.read(FILE_BYTES_MAX + 1)
            text = data.decode()
        except OSError as error:
            raise PolicyError(f"the file cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise PolicyError(f"line {data[: error.start].count(10) + 1}: the file is not UTF-8") from error
        if len(data) > FILE_BYTES_MAX:
            raise PolicyError(f"the file has more than {FILE_BYTES_MAX} bytes")
        return parse(text, self._path.suffix in (".yaml", ".yml")), seen

    def _reload(self) -> None:
        self._seen = self._state()
        try:
            self.rules, self._seen = self._load()
        except PolicyError as error:
            self.problem = str(error)
            self.log.error("%s: %s; the rules from before stay in force", self._path, error)
            return
        self.problem = ""
        self.log.info("%s: %d rules", self._path, len(self.rules))
        for switch in self._switches.values():
            switch.refused.clear()
            if switch.xid is None:
                self._ask(switch, time.monotonic())

    def _begin(self, datapath: Any) -> None:
        switch = self._switches[datapath.id] = _Switch(datapath)
        # The switch reports marks only after it has received one. No entry has this cookie, so none is
        # modified.
        everything = (1 << 64) - 1
        probe = parser.OFPFlowMod(
            datapath, cookie=LOW_LATENCY, cookie_mask=everything, command=ofp.OFPFC_MODIFY_STRICT, instructions=[LowLatency(False)]
        )
        datapath.send_msg(probe)
        self._ask(switch, time.monotonic())

    def _end(self, datapath: Any) -> None:
        switch = self._switches.get(datapath.id)
        if switch is not None and switch.datapath is datapath:
            del self._switches[datapath.id]

    def _ask(self, switch: _Switch, now_s: float) -> None:
        request = parser.OFPFlowStatsRequest(switch.datapath, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0, parser.OFPMatch())
        switch.datapath.set_xid(request)
        switch.xid, switch.asked_s, switch.flows = request.xid, now_s, []
        switch.datapath.send_msg(request)

    def _received(self, message: Any) -> None:
        switch = self._switches.get(message.datapath.id)
        if switch is None or switch.datapath is not message.datapath:
            return
        if isinstance(message, parser.OFPErrorMsg):
            flow = switch.sent.get(message.xid)
            if flow is not None:
                switch.refused.add(flow)
                text = f"switch {message.datapath.id:x} refuses the mark of an entry of table {flow.table}, error {message.type}/{message.code}"
                self._report(f"refused {message.datapath.id} {flow}", text)
        elif message.xid == switch.xid:
            switch.flows += message.body
            if not message.flags & ofp.OFPMPF_REPLY_MORE:
                switch.xid = None
                self._mark(switch)

    def _mark(self, switch: _Switch) -> None:
        """Compares the entries of a switch with the policy, and marks those that differ."""
        number, changed = switch.datapath.id, 0
        switch.sent, switch.verdicts = {}, []
        there = set()
        for flow in switch.flows:
            match = dict(flow.match.items())
            key = flow_id(flow.table_id, flow.priority, match)
            there.add(key)
            rule = first(self.rules, number, flow.table_id, fields(match.items()))
            has = mark_of(flow.instructions)
            if rule is None and key not in switch.own:
                wanted = has
            else:
                # A modify cannot remove a mark.
                wanted = rule.mark if rule else bool(switch.own.pop(key))
            if rule is not None or wanted != has:
                self._verdict(switch, flow, key, rule, has)
            if wanted is None or wanted == has or key in switch.refused:
                continue
            if rule is not None:
                switch.own.setdefault(key, has)
            changed += 1
            self._send(switch, flow, match, key, wanted)
        switch.own = {key: mark for key, mark in switch.own.items() if key in there}
        if changed:
            self.log.info("switch %x: marked %d entries", number, changed)
            # The next reading confirms the marks.
            switch.asked_s = time.monotonic() - POLL_S + TICK_S

    def _send(self, switch: _Switch, flow: Any, match: dict[str, Any], key: FlowId, wanted: bool) -> None:
        change = parser.OFPFlowMod(
            switch.datapath,
            # The entry must still have its cookie.
            cookie=flow.cookie,
            cookie_mask=(1 << 64) - 1,
            table_id=flow.table_id,
            command=ofp.OFPFC_MODIFY_STRICT,
            priority=flow.priority,
            match=parser.OFPMatch(**match),
            instructions=marked(flow.instructions, wanted),
            out_port=ofp.OFPP_ANY,
            out_group=ofp.OFPG_ANY,
        )
        switch.datapath.set_xid(change)
        switch.sent[change.xid] = key
        switch.datapath.send_msg(change)

    @staticmethod
    def _verdict(switch: _Switch, flow: Any, key: FlowId, rule: Rule | None, has: bool | None) -> None:
        if len(switch.verdicts) < VERDICTS_MAX:
            switch.verdicts.append(
                {
                    "table": key.table,
                    "priority": key.priority,
                    "match": dict(key.match),
                    "rule": rule.name if rule else None,
                    "wanted": _word(rule.mark) if rule else None,
                    "mark": _word(has),
                    "packets": flow.packet_count,
                }
            )


def _word(mark: bool | None) -> str | None:
    return None if mark is None else "low-latency" if mark else "normal"
