# SPDX-License-Identifier: Apache-2.0
"""A POF controller on asyncio.

Switches connect to the controller. POF has no barrier, and an answer to an ECHO_REQUEST may overtake requests
that wait. So :meth:`Switch.sync` sends a FEATURES_REQUEST, which is executed after all messages before it.
Packets may be forwarded by the old entries for a short time after that, because no message of POF reports
when the forwarding threads of a switch have taken over a change.
"""

import asyncio
import collections
import dataclasses
import itertools
import logging
from collections.abc import Iterable
from typing import Any, TypeVar

from shunt_controller.pof import messages as pof
from shunt_controller.pof.actions import Action
from shunt_controller.pof.errors import BusyError, ClosedError, PofError, RefusedError
from shunt_controller.pof.layout import Dialect
from shunt_controller.pof.program import Entry, Program, Table, Target, target_slot
from shunt_controller.pof.values import TableType
from shunt_controller.pof.wire import Splitter, encode

PORT = 6633
"""Default port of POF controllers."""

HANDSHAKE_S = 10.0
"""Time in which a switch must complete the handshake."""

PORTS_S = 2.0
"""Time in which a switch must describe its resources and ports."""

SILENCE_S = 10.0
"""After this time without a message, the switch gets an ECHO_REQUEST. After twice this time, the connection
ends. Switches send an ECHO_REQUEST after 2 s of silence."""

MISS_SEND_LENGTH = 0xFFFF
"""SET_CONFIG: a PACKET_IN has the whole packet."""

_READ_BYTES = 1 << 16
_REFUSALS_MAX = 1000
# Messages whose names are kept for refusals.
_SENT_MAX = 1 << 16
# Unsent bytes above which PACKET_OUT is refused.
_UNSENT_MAX = 1 << 20
_DRAIN_EVERY = 64

Reply = TypeVar("Reply", bound=pof.Message)


class Application:
    """Base class of controller applications. The methods do nothing unless they are overridden."""

    async def connected(self, switch: "Switch") -> None:
        """Called after the handshake. Messages from the switch are handled meanwhile."""

    def packet_in(self, switch: "Switch", message: pof.PacketIn) -> None:
        """Called for a PACKET_IN."""

    def port_status(self, switch: "Switch", message: pof.PortStatus) -> None:
        """Called for a PORT_STATUS after the handshake. `switch.ports` is up to date."""

    def refused(self, switch: "Switch", message: pof.Error, xid: int) -> None:
        """Called for an ERROR. :meth:`Switch.sync` raises RefusedError as well."""

    def disconnected(self, switch: "Switch") -> None:
        """Called when the connection has ended."""


class Switch:
    """A connected switch. `features`, `config`, `report` and `target` are known after the handshake."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, dialect: Dialect, application: Application
    ) -> None:
        self.dialect = dialect
        self.address = writer.get_extra_info("peername")
        self.features = pof.FeaturesReply()
        self.config = pof.GetConfigReply()
        self.report: pof.ResourceReport | None = None
        self.target = Target(dialect)
        self.ports: dict[int, pof.Port] = {}
        """Ports by number."""
        self.is_ready = False
        """Whether the handshake is complete."""
        self.log = logging.getLogger("pof")
        self._reader, self._writer = reader, writer
        self._application = application
        self._splitter = Splitter(dialect)
        self._xids = itertools.count(1)
        # Requests that wait for a reply: the expected messages, and the future that gets the reply.
        self._waiting: dict[int, tuple[type[pof.Message], asyncio.Future[Any]]] = {}
        self._greeted = asyncio.Event()
        self._described = asyncio.Event()
        # Names of the last messages since the last sync, by transaction number, and refusals of them.
        self._sent: collections.OrderedDict[int, str] = collections.OrderedDict()
        self._refusals: list[str] = []
        # Answers to the query in progress.
        self._query = asyncio.Lock()
        self._found: list[pof.TableMod | pof.FlowMod] | None = None
        self._closed: PofError | None = None

    def __str__(self) -> str:
        return f"switch {self.features.device_id:#x}" if self.is_ready else f"switch at {self.address}"

    # Sending.

    def send(self, message: pof.Message) -> int:
        """Sends a message and returns its transaction number. Raises EncodeError if the dialect cannot express
        the message, and ClosedError if the connection has ended."""
        if self._closed is not None:
            raise ClosedError(str(self._closed)) from self._closed
        xid = next(self._xids)
        self._writer.write(encode(message, xid, self.dialect))
        self._sent[xid] = _describe(message)
        if len(self._sent) > _SENT_MAX:
            self._sent.popitem(last=False)
        return xid

    async def request(self, message: pof.Message, reply: type[Reply]) -> Reply:
        """Sends a request and returns its reply. Raises RefusedError if the switch refuses the request."""
        return await self._reply_to(self.send(message), reply)

    async def _reply_to(self, xid: int, reply: type[Reply]) -> Reply:
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[xid] = (reply, future)
        try:
            return await future
        finally:
            self._waiting.pop(xid, None)

    async def sync(self) -> None:
        """Waits until the switch has handled all messages sent before. Raises RefusedError if it has refused
        any message since the last call."""
        xid = self.send(pof.FeaturesRequest())
        await self._reply_to(xid, pof.FeaturesReply)
        refusals, self._refusals = self._refusals, []
        # Messages that were sent during the wait may still be refused.
        while self._sent and next(iter(self._sent)) <= xid:
            self._sent.popitem(last=False)
        if refusals:
            raise RefusedError(refusals)

    async def send_all(self, messages: Iterable[pof.Message]) -> None:
        """Sends messages, no faster than the switch receives them."""
        for number, message in enumerate(messages):
            self.send(message)
            if number % _DRAIN_EVERY == 0:
                await self._writer.drain()
        await self._writer.drain()

    # Tables and entries.

    async def install(self, program: Program) -> None:
        """Sends the messages of a program, and waits until they are handled."""
        await self.send_all(program.messages())
        await self.sync()

    async def uninstall(self, program: Program) -> None:
        """Deletes the entries and tables of a program, of which some may be missing, and waits until they are
        deleted. Raises RefusedError if the switch refuses to delete one that exists."""
        await self.send_all(program.deletions())
        try:
            await self.sync()
        except RefusedError as error:
            # ENTRY_UNEXIST and TABLE_UNEXIST.
            refusals = [refusal for refusal in error.refusals if "UNEXIST" not in refusal]
            if refusals:
                raise RefusedError(refusals) from None

    def add_table(self, table: Table) -> int:
        """Creates a table."""
        return self.send(table.message(self.target))

    def delete_table(self, table: Table) -> int:
        """Deletes a table, which must be empty."""
        return self.send(table.message(self.target, pof.TableCommand.DELETE))

    def add_entry(self, entry: Entry) -> int:
        """Adds an entry. The switch refuses an index that is in use."""
        return self.send(entry.message(self.target))

    def modify_entry(self, entry: Entry) -> int:
        """Replaces the entry with the same table and index."""
        return self.send(entry.message(self.target, pof.FlowCommand.MODIFY))

    def delete_entry(self, entry: Entry) -> int:
        """Deletes the entry with the same table and index."""
        return self.send(entry.message(self.target, pof.FlowCommand.DELETE))

    async def query_all(self) -> list[pof.TableMod | pof.FlowMod]:
        """Returns all tables and entries of the switch. Only dialect 1.4.0.015 has this request."""
        async with self._query:
            self._found = found = []
            try:
                await self.request(pof.QueryAllRequest(0xFFFF), pof.QueryAllFin)
            finally:
                self._found = None
            return found

    # Packets, counters, groups, meters, ports.

    def packet_out(self, data: bytes, actions: Iterable[Action], in_port: int = 0) -> int:
        """Sends a packet through actions. Only dialect 1.4.0.015 has this message. Raises BusyError if the
        switch does not receive what was sent before."""
        unsent = self._writer.transport.get_write_buffer_size()
        if unsent > _UNSENT_MAX:
            raise BusyError(f"{self} has not received the last {unsent} bytes; the packet is not sent")
        return self.send(pof.PacketOut(pof.NO_BUFFER, in_port, len(data), tuple(actions), data))

    async def counter(self, number: int) -> pof.CounterReply:
        """Returns a counter."""
        request = pof.CounterRequest(pof.CounterCommand.REQUEST, number, slot=target_slot(self.target))
        return await self.request(request, pof.CounterReply)

    def counter_mod(self, command: pof.CounterCommand, number: int) -> int:
        """Adds, deletes or clears a counter."""
        return self.send(pof.CounterMod(command, number, slot=target_slot(self.target)))

    def group_mod(
        self, command: pof.ModCommand, number: int, kind: pof.GroupType, actions: Iterable[Action] = (), counter: int = 0
    ) -> int:
        """Adds, changes or deletes a group with one list of actions."""
        return self.send(pof.GroupMod(command, kind, number, tuple(actions), counter, target_slot(self.target)))

    def bucket_group_mod(
        self, command: pof.ModCommand, number: int, kind: pof.GroupType, buckets: Iterable[pof.Bucket] = (), counter: int = 0
    ) -> int:
        """Adds, changes or deletes a group with buckets. Only dialect 1.4.0.015 has this message."""
        return self.send(pof.BucketGroupMod(command, kind, number, tuple(buckets), counter, target_slot(self.target)))

    def meter_mod(self, command: pof.ModCommand, number: int, rate_kbps: int = 0) -> int:
        """Adds, changes or deletes a meter."""
        return self.send(pof.MeterMod(command, number, rate_kbps, target_slot(self.target)))

    def set_forwarding(self, number: int, forwards: bool) -> int:
        """Enables or disables forwarding through a port. Raises KeyError if the switch has no such port."""
        port = dataclasses.replace(self.ports[number], forwarding=pof.Flag(forwards))
        return self.send(pof.PortMod(port, pof.PortReason.MODIFY))

    # The session.

    async def handshake(self) -> None:
        """Completes the handshake: HELLO, FEATURES_REQUEST, SET_CONFIG, GET_CONFIG_REQUEST."""
        await self._greeted.wait()
        self.send(pof.Hello())
        self.features = await self.request(pof.FeaturesRequest(), pof.FeaturesReply)
        device = self.features.device_id if self.dialect is Dialect.V1_4 else 0
        self.send(pof.SetConfig(0, MISS_SEND_LENGTH, device))
        self.config = await self.request(pof.GetConfigRequest(), pof.GetConfigReply)
        self._check_described()
        try:
            async with asyncio.timeout(PORTS_S):
                await self._described.wait()
        except TimeoutError:
            # Dialect 1.4.0.015 cannot describe ports whose numbers have more than 16 bits.
            if self.report is None:
                raise ClosedError("the switch has sent no RESOURCE_REPORT") from None
            self.log.warning("the switch has %d ports, but describes %d", self.features.ports, len(self.ports))
        assert self.report is not None
        self.target = Target.of(self.report, self.dialect)
        self.is_ready = True

    async def read(self) -> None:
        """Handles messages of the switch until the connection ends. Raises PofError with the reason."""
        is_asked = False
        while True:
            try:
                async with asyncio.timeout(SILENCE_S):
                    data = await self._reader.read(_READ_BYTES)
            except TimeoutError:
                if is_asked:
                    raise ClosedError(f"the switch does not answer for {2 * SILENCE_S:g} s") from None
                is_asked = True
                self.send(pof.EchoRequest())
                continue
            if not data:
                after = f" after it refused {self._refusals[-1]}" if self._refusals else ""
                raise ClosedError(f"the switch has closed the connection{after}")
            is_asked = False
            for message, xid in self._splitter.feed(data):
                self._handle(message, xid)

    def close(self, reason: PofError) -> None:
        """Ends the connection. Requests that wait for replies raise ClosedError."""
        if self._closed is None:
            self._closed = reason
        for _, future in self._waiting.values():
            if not future.done():
                future.set_exception(ClosedError(str(reason)))
        self._writer.close()

    def _handle(self, message: pof.Message, xid: int) -> None:
        match message:
            case pof.Hello():
                self._greeted.set()
            case pof.EchoRequest():
                self._writer.write(encode(pof.EchoReply(), xid, self.dialect))
            case pof.Error():
                self._refuse(message, xid)
            case pof.ResourceReport():
                self.report = message
                self._check_described()
            case pof.PortStatus():
                self._port_status(message)
            case pof.PacketIn():
                self._application.packet_in(self, message)
            case pof.TableMod() | pof.FlowMod() if self._found is not None:
                self._found.append(message)
            case _:
                self._reply(message, xid)

    def _reply(self, message: pof.Message, xid: int) -> None:
        expected, future = self._waiting.get(xid, (None, None))
        if future is not None and expected is type(message) and not future.done():
            future.set_result(message)
        elif not isinstance(message, pof.EchoReply):
            self.log.warning("%s: unexpected %s with transaction number %d", self, message.NAME, xid)

    def _port_status(self, message: pof.PortStatus) -> None:
        if message.reason == pof.PortReason.DELETE:
            self.ports.pop(message.port.number, None)
        else:
            self.ports[message.port.number] = message.port
        if self.is_ready:
            self._application.port_status(self, message)
        self._check_described()

    def _check_described(self) -> None:
        # RESOURCE_REPORT precedes the ports. FEATURES_REPLY has stated their number.
        if self.report is not None and len(self.ports) >= self.features.ports:
            self._described.set()

    def _refuse(self, message: pof.Error, xid: int) -> None:
        refusal = f"{self._sent.get(xid, f'a message with transaction number {xid}')}: {message}"
        _, future = self._waiting.get(xid, (None, None))
        if future is not None and not future.done():
            future.set_exception(RefusedError([refusal]))
        elif len(self._refusals) < _REFUSALS_MAX:
            self._refusals.append(refusal)
        self._application.refused(self, message, xid)


def _describe(message: pof.Message) -> str:
    match message:
        case pof.FlowMod():
            kind = pof.FlowCommand(message.command).name
            return f"FLOW_MOD {kind} of entry {message.index} in {_table(message)}"
        case pof.TableMod():
            return f"TABLE_MOD {pof.TableCommand(message.command).name} of {_table(message)}"
        case _:
            return message.NAME


def _table(message: pof.FlowMod | pof.TableMod) -> str:
    return f"table {TableType(message.table_type).name} {message.table}"


class Controller:
    """A server to which switches connect.

    ::

        async with Controller(application) as controller:
            await controller.forever()
    """

    def __init__(
        self, application: Application, *, host: str = "127.0.0.1", port: int = PORT, dialect: Dialect = Dialect.V1_4
    ) -> None:
        self.application = application
        self.host, self.port, self.dialect = host, port, dialect
        self.switches: set[Switch] = set()
        """Switches whose handshake is complete."""
        self.log = logging.getLogger("pof")
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> "Controller":
        self._server = await asyncio.start_server(self._accept, self.host, self.port)
        # With port 0, the system has chosen the port.
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def forever(self) -> None:
        """Serves switches until the task is cancelled."""
        assert self._server is not None
        await self._server.serve_forever()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        switch = Switch(reader, writer, self.dialect, self.application)
        try:
            await self._serve(switch)
        finally:
            self._tasks.discard(task)

    async def _serve(self, switch: Switch) -> None:
        """Serves a switch until the connection or the application ends."""
        reading = asyncio.create_task(switch.read())
        running = asyncio.create_task(self._run(switch))
        reason = PofError("the controller ends")
        try:
            await asyncio.wait({reading, running}, return_when=asyncio.FIRST_EXCEPTION)
            failed = [task.exception() for task in (reading, running) if task.done() and task.exception()]
            if failed and isinstance(failed[0], PofError | OSError):
                reason = PofError(str(failed[0]))
                self.log.warning("%s: %s", switch, failed[0])
            elif failed:
                reason = PofError("the application failed")
                self.log.error("%s: the application failed", switch, exc_info=failed[0])
        finally:
            switch.close(reason)
            for task in (reading, running):
                task.cancel()
            await asyncio.gather(reading, running, return_exceptions=True)
            self.switches.discard(switch)
            if switch.is_ready:
                self.application.disconnected(switch)

    async def _run(self, switch: Switch) -> None:
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                await switch.handshake()
        except TimeoutError:
            raise ClosedError(f"the handshake was not complete after {HANDSHAKE_S:g} s") from None
        self.switches.add(switch)
        await self.application.connected(switch)
