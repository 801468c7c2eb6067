# SPDX-License-Identifier: Apache-2.0
"""Several controllers share a network: ``--etcd URL`` elects one of them as the master, which alone changes
switches. The others stand by, with the role SLAVE at all switches.

The master requests its role with the term of its election as generation ID. Switches refuse requests of older
masters. :class:`Mastership` calls the application of discovery when a switch has granted the role. A controller
that becomes the master therefore finds all switches as after a restart. Without ``--etcd``, there is no
:class:`Mastership`.
"""

import logging
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from os_ken import cfg
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from shunt_controller.apps.reports import Reports
from shunt_controller.redundancy.election import GENERATION_MAX, NO_GENERATION, TERM_MAX, Election, Read, Record, Timing, Write
from shunt_controller.redundancy.etcd import Etcd, Found, StoreError
from shunt_controller.redundancy.journal import Entry

cfg.CONF.register_cli_opts(
    [
        cfg.ListOpt("etcd", default=[], help="endpoints of etcd, for several controllers, such as http://127.0.0.1:2379"),
        cfg.StrOpt("etcd-prefix", default="/shunt/default", help="prefix of the keys in etcd; each network needs another one"),
        cfg.StrOpt("controller-id", help="name of this controller in logs and in etcd (default: the host's name and the process ID)"),
        cfg.FloatOpt("lease", default=Timing.lease_s, min=1, max=60, help="seconds without the master after which another controller takes over"),
    ]
)

TICK_S = 0.02
ROLE_S = 0.5
"""Time in which a switch must answer a request for a role."""
CHECK_S = 2.0
"""Time between two requests of a master for the role that it has. A switch whose role another controller has
taken away is therefore noticed even if nothing changes."""


@dataclass
class _Switch:
    """A connected switch."""

    role: int | None = None
    """The role that the switch has granted, or reported; None if it is not known."""
    asked: tuple[int, int] = (ofp.OFPCR_ROLE_EQUAL, 0)
    """Role and generation ID that were requested last."""
    asked_s: float = float("-inf")
    confirmed_s: float = float("-inf")
    """Time of the last request whose answer granted the role of master."""
    has_begun: bool = False
    """Whether discovery has the switch."""
    is_asking: bool = False
    refused_s: float = float("-inf")
    """When the switch has reported a generation ID above GENERATION_MAX."""


@dataclass
class _Slot:
    """The plan of an application."""

    entry: Entry
    done: Callable[[Entry], None]


class Mastership:
    """Runs :class:`Election` with etcd and the roles of OpenFlow. `begin` is called with each switch that has
    granted the role of master. `stop` is called when this controller is no longer the master, before any switch
    is granted again. Both are called by the thread of this class."""

    def __init__(self, begin: Callable[[Any], None], stop: Callable[[], None]) -> None:
        self.log = logging.getLogger("mastership")
        self.report = Reports(self.log, 10.0)
        self._begin, self._stop = begin, stop
        try:
            self._store = Etcd(cfg.CONF.etcd)
        except ValueError as error:
            raise SystemExit(f"run: --etcd: {error}") from error
        self.name = cfg.CONF.controller_id or f"{socket.gethostname()}:{os.getpid()}"
        # A random suffix distinguishes controllers with the same name.
        self._election = Election(f"{self.name}/{secrets.token_hex(4)}", Timing.of(cfg.CONF.lease))
        self._prefix = cfg.CONF.etcd_prefix.rstrip("/")
        self._lock = threading.Lock()
        self._switches: dict[Any, _Switch] = {}
        self._slots: dict[str, _Slot] = {}
        self._term = 0
        """The term for which roles are requested; 0 while this controller is not the master."""
        self._entries: dict[str, Entry] = {}
        self._saved_s = float("-inf")
        """When the store refused a plan, or did not answer."""
        self._problem = ""
        """Why this controller can no longer be the master; empty if it can."""
        self._signal = 0
        """The signal that ends the process; 0 until there is one."""

    def start(self) -> None:
        """Starts the thread. Called by the main thread. SIGTERM and SIGINT end the process when the mastership has
        been given up."""
        self.log.info("controller %s stands by", self.name)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        threading.Thread(target=self._run, name="mastership", daemon=True).start()

    def _end(self, number: int, frame: Any) -> None:
        """Gives up the mastership, so that another controller takes over at once. A second signal ends the process
        without delay."""
        signal.signal(number, signal.SIG_DFL)
        self._signal = number

    # Called by threads of os-ken and of applications.

    def connected(self, datapath: Any) -> None:
        """Adds a switch that has connected."""
        with self._lock:
            self._switches[datapath] = _Switch()
        if not self._term:
            self.log.info("switch %x is connected; controller %s stands by", datapath.id, self.name)

    def ended(self, datapath: Any) -> None:
        """Removes a switch whose connection has ended."""
        with self._lock:
            self._switches.pop(datapath, None)

    def answered(self, message: Any) -> None:
        """Handles the answer to a request for a role, and errors."""
        with self._lock:
            switch = self._switches.get(message.datapath)
            if switch is None:
                return
            if not isinstance(message, parser.OFPErrorMsg):
                self._granted(switch, message)
            elif message.type == ofp.OFPET_BAD_REQUEST and message.code == ofp.OFPBRC_IS_SLAVE:
                # Another controller has taken the role away, so the switch must report its role.
                switch.role, switch.asked_s = None, float("-inf")
            elif message.type == ofp.OFPET_ROLE_REQUEST_FAILED and switch.is_asking:
                # The generation ID is too old. The switch reports the newest one when it is asked for its role.
                switch.role, switch.asked = None, (ofp.OFPCR_ROLE_NOCHANGE, 0)
                switch.asked_s, switch.is_asking = float("-inf"), False

    def _granted(self, switch: _Switch, reply: Any) -> None:
        self._election.seen(reply.generation_id)
        if GENERATION_MAX < reply.generation_id != NO_GENERATION:
            switch.refused_s = time.monotonic()
            self.report(
                f"generation {reply.datapath.id}",
                f"switch {reply.datapath.id:x} has the generation ID {reply.generation_id}, which is too high: it refuses this controller until it is restarted",
            )
        switch.is_asking, switch.role = False, reply.role
        if reply.role == ofp.OFPCR_ROLE_MASTER and reply.generation_id == self._term:
            switch.confirmed_s = switch.asked_s
        elif self._term < reply.generation_id <= TERM_MAX and switch.has_begun:
            self._problem = f"a switch has another master, of generation {reply.generation_id}"

    def submit(self, entry: Entry, done: Callable[[Entry], None]) -> None:
        """Begins to store the plan of an application. `done` is called when it is stored."""
        with self._lock:
            self._slots[entry.kind] = _Slot(entry, done)

    def entry(self, kind: str) -> Entry:
        """Returns the plan of an application that was stored when this controller became the master."""
        with self._lock:
            return self._entries.get(kind, Entry(kind))

    def status(self) -> dict[str, Any]:
        """Returns the state for the status page (docs/controllers.md)."""
        record = self._election.record
        return {"name": self.name, "is_master": bool(self._term), "term": record.term if record else 0}

    # Called by the thread of this class.

    def _run(self) -> None:
        while True:
            if self._signal:
                self._give_up()
                os.kill(os.getpid(), self._signal)
            try:
                self._elect()
                self._follow()
                self._save()
                self._request_roles()
            except Exception:
                self.log.exception("an internal error of the election")
                time.sleep(1)
            time.sleep(TICK_S)

    def _give_up(self) -> None:
        if self._term:
            self.log.info("controller %s gives up the mastership and ends", self.name)
            with self._lock:
                self._election.give_up()
            self._elect()
            # If the record was not known, the first call has only read it, and this one writes it.
            self._elect()

    def _elect(self) -> None:
        election = self._election
        with self._lock:
            request = election.request(time.monotonic())
        if request is None:
            return
        key = f"{self._prefix}/leader"
        try:
            if isinstance(request, Read):
                found = self._store.read(key)
                with self._lock:
                    election.found(Record.decoded(found.value), found.revision, time.monotonic())
            else:
                self._write(key, request)
        except StoreError as error:
            with self._lock:
                election.failed()
            duty = "the switches keep this controller as master, which goes on with the stored IDs" if self._term else "this controller stands by"
            self.report(f"{error} {self._term}", f"{error}; {duty}")

    def _write(self, key: str, request: Write) -> None:
        written = self._store.write(key, request.record.encoded(), key, request.revision)
        with self._lock:
            now_s, guard = time.monotonic(), written.guard
            self._election.written(request, written.is_done, written.revision if written.is_done else guard.revision, Record.decoded(guard.value), now_s)

    def _follow(self) -> None:
        """Begins or ends the mastership as the election has decided."""
        election = self._election
        if self._term and self._problem:
            election.give_up()
        if self._term and not election.is_master:
            self.log.warning("controller %s is no longer the master: %s", self.name, self._problem or "its lease has ended, or another one is the master")
            with self._lock:
                self._term, self._problem = 0, ""
                self._slots.clear()
                for switch in self._switches.values():
                    switch.has_begun = False
            self._stop()
        elif election.is_master and self._term != election.term:
            if not self._term and not self._load():
                return
            self.log.info("controller %s is the master of term %d", self.name, election.term)
            with self._lock:
                self._term, self._problem = election.term, ""

    def _load(self) -> bool:
        """Reads the stored plans. Returns whether etcd has answered."""
        found = {}
        for kind in ("keyflow", "tag-and-forward"):
            try:
                stored = self._store.read(self._key(kind))
            except StoreError as error:
                self.report("load", f"{error}; the mastership begins when the stored plan is known")
                return False
            found[kind] = self._decoded(stored, kind)
        with self._lock:
            self._entries = found
        return True

    def _decoded(self, stored: Found, kind: str) -> Entry:
        if stored.value is None:
            return Entry(kind)
        try:
            return Entry.decoded(stored.value, kind)
        except ValueError as error:
            self.report(f"entry {kind}", f"the plan that etcd has at {self._key(kind)} is not used: {error}")
            return Entry(kind)

    def _key(self, kind: str) -> str:
        return f"{self._prefix}/plan/{kind}"

    def _save(self) -> None:
        """Stores the plans that applications have submitted, if this controller is still the master."""
        # If the record is not known, the next reading by the election shows whether etcd answers again.
        now_s = time.monotonic()
        if not self._term or not self._election.is_known or now_s - self._saved_s < self._election.timing.renew_s:
            return
        with self._lock:
            slots = list(self._slots.values())
        for slot in slots:
            guard, kind = f"{self._prefix}/leader", slot.entry.kind
            fitting = slot.entry.fitting()
            if len(fitting.hosts) < len(slot.entry.hosts):
                text = f"only {len(fitting.hosts)} of {len(slot.entry.hosts)} hosts fit in the stored plan; after a takeover, the others are learned from packets"
                self.report(f"hosts {kind}", text)
            try:
                written = self._store.write(self._key(kind), fitting.encoded(), guard, self._election.revision)
            except StoreError as error:
                # A plan does not change the revision of the record, so the election goes on as before.
                self.report("save", f"the plan is not stored: {error}; changes that need new IDs wait")
                self._saved_s = time.monotonic()
                return
            if not written.is_done:
                # Another controller is the master, as the next reading shows.
                return
            with self._lock:
                if self._slots.get(kind) is slot:
                    del self._slots[kind]
                self._entries[kind] = slot.entry
            slot.done(slot.entry)

    def _request_roles(self) -> None:
        """Requests the roles that switches should grant, and calls `begin` for each that has granted it."""
        now_s, election = time.monotonic(), self._election
        begun, requests = [], []
        with self._lock:
            term = self._term
            must_confirm = bool(term) and election.needs_confirmation(now_s)
            switches = {datapath: switch for datapath, switch in self._switches.items() if is_open(datapath)}
            for datapath, switch in switches.items():
                wanted = self._wanted(switch, now_s, must_confirm)
                if wanted is not None:
                    switch.asked, switch.asked_s, switch.is_asking = wanted, now_s, True
                    requests.append((datapath, wanted))
                elif term and switch.role == ofp.OFPCR_ROLE_MASTER and switch.asked[1] == term and not switch.has_begun and not switch.is_asking:
                    switch.has_begun = True
                    begun.append(datapath)
            if must_confirm and switches and all(one.role == ofp.OFPCR_ROLE_MASTER for one in switches.values()):
                election.confirmed(min(one.confirmed_s for one in switches.values()))
            is_whole = bool(begun) and all(one.has_begun for one in switches.values())
            count = len(switches)
        for datapath, (role, generation) in requests:
            datapath.send_msg(parser.OFPRoleRequest(datapath, role, generation))
        for datapath in begun:
            self._begin(datapath)
        if is_whole:
            self.log.info("controller %s is the master of all %d connected switches", self.name, count)

    def _wanted(self, switch: _Switch, now_s: float, must_confirm: bool) -> tuple[int, int] | None:
        """Returns the role and generation ID to request now, or None."""
        if switch.is_asking and now_s - switch.asked_s < ROLE_S:
            return None
        if now_s - switch.refused_s < CHECK_S:
            return None
        if switch.asked[0] == ofp.OFPCR_ROLE_NOCHANGE and switch.role is None:
            return switch.asked
        if self._term:
            if self._election.generation > self._term:
                # The switch would refuse this term. The election is about to begin a later one.
                return None
            if switch.asked == (ofp.OFPCR_ROLE_MASTER, self._term) and switch.role == ofp.OFPCR_ROLE_MASTER:
                period_s = self._election.timing.renew_s if must_confirm else CHECK_S
                return switch.asked if now_s - switch.asked_s >= period_s else None
            return ofp.OFPCR_ROLE_MASTER, self._term
        record = self._election.record
        term = max(record.term if record else 0, self._election.generation)
        if not term or (switch.role == ofp.OFPCR_ROLE_SLAVE and switch.asked[0] == ofp.OFPCR_ROLE_SLAVE):
            return None
        return ofp.OFPCR_ROLE_SLAVE, term


def is_open(datapath: Any) -> bool:
    """Returns whether the connection of a switch exists. With threads, os-ken closes the socket at its end, but
    reports the end only when the next message is sent."""
    return bool(datapath.socket.fileno() >= 0)
