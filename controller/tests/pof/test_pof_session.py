# SPDX-License-Identifier: Apache-2.0
"""The controller with fake switches: sessions of crates/pof/tests, order, errors, silence."""

import asyncio
import contextlib
import subprocess
import sys

import pytest
from transcripts import ROOT, session

from shunt_controller import pof
from shunt_controller.pof import Dialect, Match, TableRef, TableType, controller, decode, encode, field, messages

BOTH = pytest.mark.parametrize("dialect", Dialect, ids=lambda dialect: dialect.value)
TIMEOUT_S = 20


def run(coroutine):
    """Runs a test with a time limit."""

    async def limited():
        async with asyncio.timeout(TIMEOUT_S):
            return await coroutine

    return asyncio.run(limited())


class Recorder(pof.Application):
    """Records what happens, and gives the test the switch."""

    def __init__(self, steps=None):
        self.switch = asyncio.get_running_loop().create_future()
        self.events = []
        self.steps = steps

    async def connected(self, switch):
        if self.steps:
            await self.steps(switch)
        self.switch.set_result(switch)

    def packet_in(self, switch, message):
        self.events.append(message)

    def port_status(self, switch, message):
        self.events.append(message)

    def refused(self, switch, message, xid):
        self.events.append((str(message), xid))

    def disconnected(self, switch):
        self.events.append("disconnected")


class FakeSwitch:
    """The switch's side of a connection, byte by byte."""

    def __init__(self, reader, writer, dialect):
        self.reader, self.writer, self.dialect = reader, writer, dialect

    @classmethod
    async def connect(cls, server, dialect):
        return cls(*await asyncio.open_connection("127.0.0.1", server.port), dialect)

    async def receive(self) -> bytes:
        """Returns the next message of the controller."""
        head = await self.reader.readexactly(8)
        return head + await self.reader.readexactly(int.from_bytes(head[2:4]) - 8)

    async def expect(self, kind) -> int:
        """Receives a message of a type, and returns its transaction number."""
        message, xid = decode(await self.receive(), self.dialect)
        assert isinstance(message, kind), message
        return xid

    def send(self, message, xid=0) -> None:
        self.writer.write(encode(message, xid, self.dialect))

    async def handshake(self, ports=1, extensions=1, described=None, has_report=True) -> None:
        """Completes a handshake."""
        self.send(messages.Hello())
        await self.expect(messages.Hello)
        self.send(messages.FeaturesReply(0xD1, 0, ports, 45), await self.expect(messages.FeaturesRequest))
        await self.expect(messages.SetConfig)
        xid = await self.expect(messages.GetConfigRequest)
        self.send(messages.GetConfigReply(0, 128), xid)
        rows = [messages.TableResource(n, count, 1024, 1000) for n, count in enumerate((10, 10, 5, 20))]
        if has_report:
            self.send(messages.ResourceReport(extensions=extensions, tables=rows), xid)
        for number in range(1, (ports if described is None else described) + 1):
            self.send(messages.PortStatus(messages.Port(number, name=f"p{number}", forwarding=1), 0), xid)


@contextlib.asynccontextmanager
async def served(dialect, application, **handshake):
    """Serves a fake switch whose handshake is complete."""
    async with pof.Controller(application, port=0, dialect=dialect) as server:
        fake = await FakeSwitch.connect(server, dialect)
        await fake.handshake(**handshake)
        try:
            yield fake, server
        finally:
            fake.writer.close()


def recorded_requests(switch, dialect):
    """Sends the requests of the session that follow the handshake."""
    table = pof.Table(TableRef(TableType.MM, 0), "t0", (field(0, 48, 1),), 100)
    switch.add_table(table)
    output = pof.ApplyActions((pof.Output(switch.target.port(2)),))
    match = Match.exact(field(0, 48, 1), 0x020000000001)
    switch.add_entry(pof.Entry(table.ref, 4, (match,), (output,), 100, low_latency=True, counter=9, cookie=0x77))


async def play(dialect):
    """Plays the switch's side of a session that was written by hand, and compares the controller's messages."""
    application, seen = Recorder(), []
    async with pof.Controller(application, port=0, dialect=dialect) as server:
        fake = await FakeSwitch.connect(server, dialect)
        tasks, xids = [], {}
        for is_request, data in session(dialect.value):
            kind, xid = data[1], data[4:8]
            if not is_request:
                # Answers have the transaction number of the controller's request.
                fake.writer.write(data[:4] + xids.get(xid, xid) + data[8:])
                continue
            if kind == messages.EchoRequest.TYPE or data[8:9] == b"\x09" and kind == messages.FlowMod.TYPE:
                # The controller sends no echo in the handshake, and cannot send the invalid command.
                if kind == messages.FlowMod.TYPE:
                    xids[xid] = bytes(4)
                continue
            if not application.switch.done() and kind == messages.TableMod.TYPE:
                recorded_requests(await application.switch, dialect)
            elif kind == messages.CounterRequest.TYPE:
                tasks.append(asyncio.create_task(application.switch.result().counter(9)))
            elif kind == messages.PacketOut.TYPE:
                switch = application.switch.result()
                switch.packet_out(bytes.fromhex("deadbeef"), [pof.Output(switch.target.port(1))])
            elif kind == messages.QueryAllRequest.TYPE:
                tasks.append(asyncio.create_task(application.switch.result().query_all()))
            sent = await fake.receive()
            xids[xid] = sent[4:8]
            if kind == messages.SetConfig.TYPE:
                # The session's controller asks for 128 bytes of packets, this one for whole packets.
                assert sent[-2:] == b"\xff\xff"
                sent = sent[:-2] + data[-2:]
            assert sent[:4] + sent[8:] == data[:4] + data[8:], kind
            seen.append(kind)
        results = [await task for task in tasks]
        switch = application.switch.result()
        fake.writer.close()
    return seen, results, switch, application.events


@BOTH
def test_sessions_are_played(dialect):
    seen, results, switch, events = run(play(dialect))
    new = dialect is Dialect.V1_4
    assert seen == [0, 5, 9, 7, 18, 15, 32] + ([14, 34] if new else [])
    assert (results[0].packets, results[0].bytes) == (7, 1500 if new else 0)
    assert (switch.features.device_id, switch.features.ports, switch.features.vendor) == (0xD1, 2, "shunt")
    assert switch.target == pof.Target(dialect, (10, 10, 5, 20), 3 if new else 0, True, (160,) * 4)
    assert sorted(port.name for port in switch.ports.values()) == ["p1", "p2"]
    text = "FLOW_MOD, byte 8: flow command 9; values are 0 to"
    refusals = [event[0] for event in events if isinstance(event, tuple)]
    assert len(refusals) == 1
    assert refusals[0].startswith(text)
    assert refusals[0].endswith("(POFFMFC_BAD_COMMAND)")


@BOTH
def test_sync_waits_for_all_messages_and_reports_refusals(dialect):
    async def steps():
        application = Recorder()
        async with served(dialect, application) as (fake, _):
            switch = await application.switch
            entry = pof.Entry(TableRef(TableType.EM, 1), 5, (Match.exact(field(0, 8), 1),))
            switch.add_entry(entry)
            syncing = asyncio.create_task(switch.sync())
            refused = await fake.expect(messages.FlowMod)
            asked = await fake.expect(messages.FeaturesRequest)
            switch.add_entry(entry)
            later = await fake.expect(messages.FlowMod)
            # Answers to other requests do not end the wait.
            fake.send(messages.EchoReply(), asked)
            fake.send(messages.FeaturesReply(), asked + 1)
            await asyncio.sleep(0.05)
            assert not syncing.done()
            fake.send(messages.Error(5, 8, text="index 5 is in use"), refused)
            fake.send(messages.FeaturesReply(), asked)
            with pytest.raises(pof.RefusedError) as caught:
                await syncing
            assert str(caught.value) == (
                "the switch refused FLOW_MOD ADD of entry 5 in table EM 1: index 5 is in use (POFFMFC_ENTRY_EXIST)"
            )
            # The refusal is reported once. One of a message that was sent during the wait has its name.
            syncing = asyncio.create_task(switch.sync())
            asked = await fake.expect(messages.FeaturesRequest)
            fake.send(messages.Error(5, 8, text="again"), later)
            fake.send(messages.FeaturesReply(), asked)
            with pytest.raises(pof.RefusedError, match="FLOW_MOD ADD of entry 5 in table EM 1: again"):
                await syncing
            syncing = asyncio.create_task(switch.sync())
            fake.send(messages.FeaturesReply(), await fake.expect(messages.FeaturesRequest))
            await syncing

    run(steps())


@BOTH
@pytest.mark.parametrize(("extensions", "flag"), [(0, 0), (1, 1), (2, 0), (3, 1)])
def test_the_low_latency_flag_needs_the_announcement(dialect, extensions, flag):
    async def steps():
        application = Recorder()
        async with served(dialect, application, extensions=extensions) as (fake, _):
            switch = await application.switch
            entry = pof.Entry(TableRef(TableType.DT, 1), 5, low_latency=True)
            switch.add_entry(entry)
            switch.modify_entry(entry)
            switch.delete_entry(entry)
            for command in (0, 1, 3):
                data = await fake.receive()
                assert (data[8], data[11]) == (command, flag)

    run(steps())


def test_all_requests_have_the_right_bytes():
    async def steps():
        application = Recorder()
        async with served(Dialect.V1_4, application) as (fake, _):
            switch = await application.switch
            table = pof.Table(TableRef(TableType.LPM, 2), "t", (field(0, 32),), 10)
            switch.delete_table(table)
            switch.group_mod(messages.ModCommand.ADD, 5, messages.GroupType.ALL, [pof.Output(2)])
            switch.bucket_group_mod(messages.ModCommand.DELETE, 6, messages.GroupType.SELECT, [messages.Bucket([], 3)])
            switch.meter_mod(messages.ModCommand.MODIFY, 7, 64000)
            switch.counter_mod(messages.CounterCommand.CLEAR, 8)
            switch.set_forwarding(1, forwards=False)
            received = [decode(await fake.receive(), Dialect.V1_4)[0] for _ in range(6)]
            assert received == [
                messages.TableMod(2, 1, 2, 10, 32, "t", [field(0, 32)]),
                messages.GroupMod(0, 0, 5, [pof.Output(2)]),
                messages.BucketGroupMod(2, 1, 6, [messages.Bucket([], 3)]),
                messages.MeterMod(1, 7, 64000),
                messages.CounterMod(2, 8),
                messages.PortMod(messages.Port(1, name="p1"), 2),
            ]
            with pytest.raises(KeyError):
                switch.set_forwarding(9, forwards=True)

    run(steps())


def test_queries_return_tables_and_entries():
    async def steps():
        application = Recorder()
        async with served(Dialect.V1_4, application) as (fake, _):
            switch = await application.switch
            asking = asyncio.create_task(switch.query_all())
            xid = await fake.expect(messages.QueryAllRequest)
            found = [messages.TableMod(4, 1, 2, 10, 8, "t", [field(0, 8)]), messages.FlowMod(6, 1, 2, 3)]
            # A second query waits for the first one, so that their answers are apart.
            again = asyncio.create_task(switch.query_all())
            await asyncio.sleep(0.05)
            for message in found:
                fake.send(message, xid)
            fake.send(messages.QueryAllFin(), xid)
            assert await asking == found
            xid = await fake.expect(messages.QueryAllRequest)
            fake.send(found[1], xid)
            fake.send(messages.QueryAllFin(), xid)
            assert await again == found[1:]
            # Without a query, nothing is kept.
            fake.send(found[0], xid)
            fake.send(messages.EchoRequest(), 77)
            await fake.expect(messages.EchoReply)
            assert switch._found is None

    run(steps())


@BOTH
def test_events_of_the_switch_are_reported(dialect):
    async def steps():
        application = Recorder()
        async with served(dialect, application) as (fake, _):
            switch = await application.switch
            packet = messages.PacketIn(total_length=3, reason=1, table=4, data=b"abc")
            added = messages.PortStatus(messages.Port(2, name="p2"), messages.PortReason.ADD)
            deleted = messages.PortStatus(messages.Port(1), messages.PortReason.DELETE)
            for message in (packet, added, deleted, messages.EchoRequest()):
                fake.send(message, 77)
            assert await fake.expect(messages.EchoReply) == 77
            assert application.events == [packet, added, deleted]
            assert list(switch.ports) == [2]
            fake.writer.close()
            while "disconnected" not in application.events:
                await asyncio.sleep(0.01)
        with pytest.raises(pof.ClosedError, match="closed the connection"):
            switch.send(messages.Hello())

    run(steps())


def test_large_programs_are_sent_no_faster_than_they_are_received():
    async def steps():
        application = Recorder()
        async with served(Dialect.V1_4, application) as (fake, _):
            switch = await application.switch
            program = pof.Program(switch.target)
            table = program.table(TableRef(TableType.DT, 0), "t", [], 20_000)
            for _ in range(20_000):
                program.add(table, [], [])
            installing = asyncio.create_task(switch.install(program))
            await asyncio.sleep(0.2)
            # 20,000 messages have 44 MB.
            assert switch._writer.transport.get_write_buffer_size() < 2_000_000
            for number in range(20_001):
                data = await fake.receive()
                assert number == 0 or int.from_bytes(data[8 + 32 : 8 + 36]) == number - 1
            fake.send(messages.FeaturesReply(), await fake.expect(messages.FeaturesRequest))
            await installing

    run(steps())


def test_the_memory_of_an_application_that_never_syncs_is_bounded(monkeypatch):
    monkeypatch.setattr(controller, "_SENT_MAX", 100)

    async def steps():
        application = Recorder()
        async with served(Dialect.V1_4, application) as (fake, _):
            switch = await application.switch
            sent = 0
            with pytest.raises(pof.BusyError, match="the packet is not sent"):
                while sent < 10_000:
                    switch.packet_out(bytes(1500), [pof.Output(1)])
                    sent += 1
            assert sent > 100
            assert switch._writer.transport.get_write_buffer_size() < 2_000_000
            assert len(switch._sent) == 100
            # When the switch has received the packets, further ones are sent.
            for _ in range(sent):
                await fake.expect(messages.PacketOut)
            last = switch.packet_out(b"x", [pof.Output(1)])
            assert await fake.expect(messages.PacketOut) == last

    run(steps())


def test_a_program_is_uninstalled():
    async def steps():
        application = Recorder()
        async with served(Dialect.V1_4, application) as (fake, _):
            switch = await application.switch
            program = pof.Program(switch.target)
            last = program.table(TableRef(TableType.DT, 0), "last", [], 10)
            first = program.table(TableRef(TableType.MM, 0), "first", [field(0, 8)], 10)
            program.add(last, [], [])
            program.add(first, [Match.exact(field(0, 8), 1)], [])
            for code, refused in ((9, False), (4, True)):
                removing = asyncio.create_task(switch.uninstall(program))
                received = [decode(await fake.receive(), Dialect.V1_4) for _ in range(5)]
                kinds = [(message.NAME, message.table_type, message.command) for message, _ in received[:4]]
                assert kinds == [("FLOW_MOD", 0, 3), ("FLOW_MOD", 3, 3), ("TABLE_MOD", 3, 2), ("TABLE_MOD", 0, 2)]
                fake.send(messages.Error(5, code, text="refused"), received[1][1])
                fake.send(messages.FeaturesReply(), received[4][1])
                if refused:
                    with pytest.raises(pof.RefusedError, match="EPERM"):
                        await removing
                else:
                    # This entry was not installed.
                    await removing

    run(steps())


@BOTH
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x01\x00\x00\x08\0\0\0\0", "HELLO, byte 0: version 1; POF has version 4"),
        (b"\x04\x00\x00\x10\0\0\0\0\0\x01\0\x08\0\0\0\x10", "check that the switch is configured for POF"),
        (b"\x04\x06\x00\x20" + bytes(28), "OpenFlow has a FEATURES_REPLY of this length, so check that the switch is"),
        (b"\x04\x63\x00\x08\0\0\0\0", "has no message of type 99"),
        (b"\x04\x0f\x00\x08\0\0\0\0", "FLOW_MOD, byte 2: the message has 8 bytes"),
        (b"", "the switch has closed the connection"),
    ],
)
def test_invalid_messages_end_the_connection(dialect, data, reason, caplog):
    async def steps():
        application = Recorder()
        async with pof.Controller(application, port=0, dialect=dialect) as server:
            fake = await FakeSwitch.connect(server, dialect)
            fake.writer.write(data)
            if not data:
                fake.writer.write_eof()
            assert await fake.reader.read() == b""
            fake.writer.close()
            # The controller continues to serve other switches.
            other = await FakeSwitch.connect(server, dialect)
            await other.handshake()
            await application.switch
            other.writer.close()

    run(steps())
    assert reason in caplog.text


def test_a_switch_may_describe_fewer_ports_than_it_has(monkeypatch, caplog):
    monkeypatch.setattr(controller, "PORTS_S", 0.05)

    async def steps(has_report):
        application = Recorder()
        async with pof.Controller(application, port=0) as server:
            fake = await FakeSwitch.connect(server, Dialect.V1_4)
            await fake.handshake(ports=2, described=1, has_report=has_report)
            if has_report:
                assert list((await application.switch).ports) == [1]
            else:
                assert await fake.reader.read() == b""
            fake.writer.close()

    run(steps(has_report=True))
    assert "the switch has 2 ports, but describes 1" in caplog.text
    run(steps(has_report=False))
    assert "the switch has sent no RESOURCE_REPORT" in caplog.text


def test_a_refusal_in_the_handshake_is_reported(caplog):
    async def steps():
        async with pof.Controller(Recorder(), port=0) as server:
            fake = await FakeSwitch.connect(server, Dialect.V1_4)
            fake.send(messages.Hello())
            await fake.expect(messages.Hello)
            fake.send(messages.Error(1, 1, text="another order"), await fake.expect(messages.FeaturesRequest))
            assert await fake.reader.read() == b""
            fake.writer.close()

    run(steps())
    assert "the switch refused FEATURES_REQUEST: another order (POFBRC_BAD_TYPE)" in caplog.text


def test_silent_switches_are_closed(monkeypatch, caplog):
    monkeypatch.setattr(controller, "SILENCE_S", 0.05)
    monkeypatch.setattr(controller, "HANDSHAKE_S", 0.05)

    async def steps():
        application = Recorder()
        async with pof.Controller(application, port=0) as server:
            mute = await FakeSwitch.connect(server, Dialect.V1_4)
            await mute.reader.read()
            mute.writer.close()
        async with served(Dialect.V1_4, application) as (fake, _):
            await fake.expect(messages.EchoRequest)
            assert await fake.reader.read() == b""

    run(steps())
    assert "the handshake was not complete" in caplog.text
    assert "the switch does not answer" in caplog.text


def test_an_error_of_the_application_ends_only_its_connection(caplog):
    async def fails(switch):
        raise ZeroDivisionError

    async def steps():
        async with served(Dialect.V1_4, Recorder(fails)) as (fake, _):
            assert await fake.reader.read() == b""

    run(steps())
    assert "the application failed" in caplog.text


def test_the_library_needs_only_the_standard_library():
    script = "import sys; sys.modules['os_ken'] = sys.modules['networkx'] = None; import shunt_controller.pof; "
    script += "bad = [m for m in sys.modules if m.partition('.')[0] not in sys.stdlib_module_names | "
    script += "{'shunt_controller', '__main__', 'os_ken', 'networkx'}]; assert not bad, bad"
    source = str(ROOT / "controller/src")
    command = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {source!r}); {script}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
