# SPDX-License-Identifier: Apache-2.0
"""The daemon as the switch of tests, and a proxy that records a session with it.

    daemon.py DIALECT       prints a session of the library with the daemon, in the form that transcripts.py reads
"""

import asyncio
import contextlib
import os
import pathlib
import socket
import sys
import tempfile
from collections.abc import AsyncIterator

import pytest

from shunt_controller import pof
from shunt_controller.pof.messages import Bucket, CounterCommand, GroupType, ModCommand, PacketIn

ROOT = pathlib.Path(__file__).parents[3]
PORTS = 2
CONFIG = """\
control = "{folder}/control.sock"
[[worker]]
[[datapath]]
id = 0xd1
[datapath.pof]
controllers = ["tcp:127.0.0.1:{port}"]
dialect = "{dialect}"
tables = [10, 10, 5, 20]
"""
PORT = """\
[[datapath.port]]
number = {number}
name = "p{number}"
driver = "mem"
device = "null"
workers = [0]
"""
Recording = list[tuple[bool, bytes]]


def program_path() -> pathlib.Path:
    """Returns the program of the switch: SHUNT, or else what `make` or `cargo build` has built."""
    if "SHUNT" in os.environ:
        return (ROOT / os.environ["SHUNT"]).resolve()
    target = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    built = [path for path in (target / "release/shunt", target / "debug/shunt") if path.exists()]
    if not built:
        pytest.skip("the switch is not built: run make, or set SHUNT")
    return built[0]


@contextlib.asynccontextmanager
async def running(port: int, dialect: pof.Dialect) -> AsyncIterator[None]:
    """Runs a switch that connects to a port."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "switch.toml")
        ports = "".join(PORT.format(number=number) for number in range(1, PORTS + 1))
        path.write_text(CONFIG.format(folder=folder, port=port, dialect=dialect.value) + ports)
        log = pathlib.Path(folder, "switch.log")
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(program_path(), "run", "-c", path, stdout=output, stderr=output)
        try:
            yield
        finally:
            if process.returncode is not None:
                print(log.read_text())
            else:
                process.terminate()
            await process.wait()


async def record(source: asyncio.StreamReader, sink: asyncio.StreamWriter, is_request: bool, seen: Recording) -> None:
    """Forwards messages of one direction, and records them."""
    with contextlib.suppress(asyncio.IncompleteReadError, OSError):
        while True:
            head = await source.readexactly(8)
            data = head + await source.readexactly(int.from_bytes(head[2:4]) - 8)
            seen.append((is_request, data))
            sink.write(data)
    sink.close()


@contextlib.asynccontextmanager
async def proxy(controller_port: int, seen: Recording) -> AsyncIterator[int]:
    """Listens for a switch, connects it with the controller, and records both directions."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other_reader, other_writer = await asyncio.open_connection("127.0.0.1", controller_port)
        ways = record(reader, other_writer, False, seen), record(other_reader, writer, True, seen)
        await asyncio.gather(*ways)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, family=socket.AF_INET)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


class Session(pof.Application):
    """Runs the steps of the recorded sessions. `done` gets the results."""

    def __init__(self) -> None:
        self.done: asyncio.Future[list[object]] = asyncio.get_running_loop().create_future()
        self.packets: asyncio.Queue[PacketIn] = asyncio.Queue()

    async def connected(self, switch: pof.Switch) -> None:
        """Runs the steps."""
        try:
            self.done.set_result(await steps(switch, self.packets))
        except BaseException as error:
            self.done.set_exception(error)
            raise

    def packet_in(self, switch: pof.Switch, message: PacketIn) -> None:
        """Keeps the packet for the steps."""
        self.packets.put_nowait(message)


async def steps(switch: pof.Switch, packets: asyncio.Queue[PacketIn]) -> list[object]:
    """Installs a program, changes it, and asks for what the switch has."""
    program, is_new = pof.Program(switch.target), switch.dialect is pof.Dialect.V1_4
    ethertype, layer = pof.field(96, 16), pof.Layer(switch.target, 14)
    first = program.table(pof.TableRef(pof.TableType.MM, 0), "first", [ethertype], 100)
    second = program.table(pof.TableRef(pof.TableType.EM, 0), "second", [layer.field(8, 16)], 100)
    program.add(first, [pof.Match.exact(ethertype, 0x88B5)], [program.goto(second, layer.base)], priority=1, low_latency=True)
    output = [*layer.back(), *pof.apply([pof.DeleteField(96, 64), program.output(2)], switch.target)]
    for number in range(3):
        low_latency = number == 1
        program.add(second, [pof.Match.exact(layer.field(8, 16), number)], output, low_latency=low_latency, counter=9)
    await switch.install(program)
    results: list[object] = [(await switch.counter(9)).packets]
    switch.counter_mod(CounterCommand.ADD, 10)
    switch.group_mod(ModCommand.ADD, 1, GroupType.ALL, [program.output(1)])
    switch.meter_mod(ModCommand.ADD, 1, 1000)
    switch.modify_entry(program.entries[1])
    switch.delete_entry(program.entries[3])
    switch.set_forwarding(1, forwards=True)
    if is_new:
        switch.packet_out(bytes(60), [program.output(1)])
        # The switch sends a PACKET_IN at any time, so the next step waits for it.
        switch.packet_out(bytes.fromhex("020000000001 020000000002 88b5") + bytes(46), [pof.ToController()], 2)
        packet = await packets.get()
        results.append((packet.port, packet.reason, packet.total_length, packet.data[:14].hex()))
        buckets = [Bucket([program.output(1)], 3), Bucket([program.output(2)], 1)]
        switch.bucket_group_mod(ModCommand.ADD, 2, GroupType.SELECT, buckets)
        switch.bucket_group_mod(ModCommand.MODIFY, 2, GroupType.SELECT, buckets[:1])
        switch.bucket_group_mod(ModCommand.DELETE, 2, GroupType.SELECT)
        results.append([message.NAME for message in await switch.query_all()])
    switch.add_entry(program.entries[2])
    try:
        await switch.sync()
    except pof.RefusedError as error:
        results.append(str(error))
    await switch.uninstall(program)
    return results


async def recorded(dialect: pof.Dialect) -> tuple[Recording, list[object]]:
    """Records a session with the daemon. Also returns the results of its steps."""
    seen: Recording = []
    application = Session()
    async with (
        pof.Controller(application, port=0, dialect=dialect) as server,
        proxy(server.port, seen) as port,
        running(port, dialect),
        asyncio.timeout(60),
    ):
        results = await application.done
    return seen, results


def main() -> None:
    """Prints a session."""
    dialect = pof.Dialect(sys.argv[1])
    print("# SPDX-License-Identifier: Apache-2.0")
    print(f"# Recorded by tests/pof/daemon.py: the library in dialect {dialect.value} with the daemon.")
    for is_request, data in asyncio.run(recorded(dialect))[0]:
        print(">" if is_request else "<", short(data))


def short(data: bytes) -> str:
    """Returns bytes in hex digits, and `0*N` for at least 8 zero bytes."""
    words, at = [], 0
    while at < len(data):
        zeros = len(data[at:]) - len(data[at:].lstrip(b"\0"))
        if zeros >= 8:
            words.append(f"0*{zeros}")
            at += zeros
            continue
        end = data.find(bytes(8), at)
        end = min(len(data) if end < 0 else end, at + 40)
        words.append(data[at:end].hex())
        at = end
    return "\n  ".join(" ".join(words[row : row + 1]) for row in range(len(words)))


if __name__ == "__main__":
    main()
