# SPDX-License-Identifier: Apache-2.0
"""The library with the daemon: recorded sessions, refusals, programs that are refused in part."""

import asyncio

import daemon
import frames  # noqa: F401  (finds the applications)
import pytest
from transcripts import messages_of

from shunt_controller import pof
from shunt_controller.pof import Dialect, decode

import common  # isort: skip

BOTH = pytest.mark.parametrize("dialect", Dialect, ids=lambda dialect: dialect.value)
TIMEOUT_S = 60
ENTRIES = 3000


def sample(dialect: Dialect) -> daemon.Recording:
    """Returns the recorded session of a dialect."""
    return messages_of(daemon.ROOT / f"controller/tests/pof/sessions/{dialect.value}.session")


async def replayed(dialect: Dialect) -> list[object]:
    """Replays the switch's side of a recorded session, and compares each message of the library."""
    application = daemon.Session()
    async with pof.Controller(application, port=0, dialect=dialect) as server, asyncio.timeout(TIMEOUT_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for is_request, data in sample(dialect):
            if is_request:
                assert (await reader.readexactly(len(data))).hex() == data.hex()
            else:
                writer.write(data)
        results = await application.done
        writer.close()
    return results


@BOTH
def test_a_recorded_session_is_replayed_byte_for_byte(dialect):
    count, *results = asyncio.run(replayed(dialect))
    exists = "FLOW_MOD ADD of entry 1 in table EM 0: "
    assert count == 0
    if dialect is Dialect.V1_4:
        assert results.pop(0) == (2, 1, 60, "02000000000102000000000288b5")
        assert results.pop(0) == ["TABLE_MOD", "FLOW_MOD", "TABLE_MOD", "FLOW_MOD", "FLOW_MOD"]
    (refusal,) = results
    assert refusal.startswith(f"the switch refused {exists}")
    assert refusal.endswith("(POFFMFC_ENTRY_EXIST)")


@BOTH
def test_the_daemon_still_has_the_recorded_session(dialect):
    seen, results = asyncio.run(daemon.recorded(dialect))
    assert results == asyncio.run(replayed(dialect))
    for is_request in (True, False):
        ours, kept = ([data for side, data in rows if side == is_request] for rows in (seen, sample(dialect)))
        # The switch's own ECHO_REQUEST depends on the time.
        assert [data.hex() for data in ours if data[1] not in (2, 3)] == [data.hex() for data in kept]
    names = {"RESOURCE_REPORT", "PORT_STATUS", "ERROR"}
    if dialect is Dialect.V1_4:
        names |= {"PACKET_IN", "GROUP_MOD with buckets"}
    assert {decode(data, dialect)[0].NAME for _, data in seen} >= names


async def with_daemon(steps, dialect):
    """Runs steps with the daemon as the switch."""

    class Steps(pof.Application):
        async def connected(self, switch):
            try:
                done.set_result(await steps(switch))
            except BaseException as error:
                done.set_exception(error)

    done = asyncio.get_running_loop().create_future()
    async with (
        pof.Controller(Steps(), port=0, dialect=dialect) as server,
        daemon.running(server.port, dialect),
        asyncio.timeout(TIMEOUT_S),
    ):
        return await done


def test_sync_reports_the_refusal_of_the_last_of_many_requests():
    async def steps(switch):
        program = pof.Program(switch.target)
        table = program.table(pof.TableRef(pof.TableType.DT, 0), "t", [], ENTRIES)
        for _ in range(ENTRIES):
            program.add(table, [], [])
        await switch.install(program)
        # The FLOW_MOD waits in the switch until the query has ended, but echoes do not.
        query = asyncio.create_task(switch.query_all())
        await asyncio.sleep(0)
        switch.add_entry(program.entries[0])
        with pytest.raises(pof.RefusedError, match="ENTRY_EXIST"):
            await switch.sync()
        assert len(await query) == ENTRIES + 1

    asyncio.run(with_daemon(steps, Dialect.V1_4))


def test_an_application_deletes_a_program_that_is_refused_in_part(capsys):
    def build(_, target):
        program = pof.Program(target)
        table = program.table(pof.TableRef(pof.TableType.MM, 0), "t", [pof.field(0, 8)], 10)
        program.add(table, [pof.Match.any(pof.field(0, 8))], pof.apply([program.output(2)], target))
        # The ingress port is read-only.
        write = pof.SetField.to(pof.metadata(16, 8), 1)
        program.add(table, [pof.Match.exact(pof.field(0, 8), 1)], pof.apply([write], target))
        return program

    async def steps(switch):
        await common.Installer({}, build).connected(switch)
        return await switch.query_all()

    assert asyncio.run(with_daemon(steps, Dialect.V1_4)) == []
    shown = capsys.readouterr().out
    assert shown.startswith("switch 0xd1: not installed: the switch refused FLOW_MOD ADD of entry 1 in table MM 0"), shown
