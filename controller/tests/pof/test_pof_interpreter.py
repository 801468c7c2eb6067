# SPDX-License-Identifier: Apache-2.0
"""The interpreter itself, on small programs with results computed by hand."""

import interpreter
import pytest
from frames import install

from shunt_controller import pof
from shunt_controller.pof import Match, TableRef, TableType, field, metadata

PACKET = bytes(range(1, 33))


def outcome(*instructions, data=PACKET, matches=None, fields=()):
    """Runs a packet through one entry."""
    program = pof.Program(pof.Target())
    fields = fields or [field(0, 8)]
    table = program.table(TableRef(TableType.MM, 0), "t", fields)
    program.add(table, matches or [Match.any(one) for one in fields], instructions)
    return install(program).run(data, 9)


def changed(*actions, before=()):
    """Returns the packet after actions."""
    result = outcome(*before, pof.ApplyActions((*actions, pof.Output(2))))
    assert (result.dropped, len(result.sent), result.sent[0][0]) == ("", 1, 2)
    return result.sent[0][1]


def test_set_field_writes_value_and_mask():
    assert changed(pof.SetField(Match(field(12, 12), 0xABC, 0xF0F))) == b"\x01\x0a\x0c" + PACKET[3:]


def test_fields_count_from_the_base_offset():
    moved = (pof.MovePacketOffset(0, 5), pof.MovePacketOffset(1, 2))
    assert changed(pof.ModifyField(field(8, 8), -6), before=moved) == PACKET[:4] + b"\xff" + PACKET[5:]
    assert changed(pof.AddField(8, 16, 0xAABB), before=moved) == PACKET[:4] + b"\xaa\xbb" + PACKET[4:]
    assert changed(pof.DeleteField(8, 24), before=moved) == PACKET[:4] + PACKET[7:]


def test_metadata_has_length_and_port_and_can_be_written():
    copy = (pof.WriteMetadata(32, 16, 0x1234), pof.WriteMetadataFromPacket(48, 8, 8))
    data = changed(pof.SetFieldFromMetadata(field(0, 24), 32), pof.SetFieldFromMetadata(field(24, 24), 0), before=copy)
    assert data == b"\x12\x34\x02" + b"\x00\x20\x09" + PACKET[6:]


def test_a_checksum_is_that_of_rfc_1071():
    data = changed(pof.CalculateChecksum(80, 16, 0, 80))
    # 0102 + 0304 + 0506 + 0708 + 090a = 191e, inverted e6e1.
    assert data[10:12] == bytes.fromhex("e6e1")


def test_a_packet_that_ends_before_a_field_does_not_match():
    fields = [field(8 * 31, 8), field(8 * 32, 8)]
    send = pof.ApplyActions((pof.Output(2),))
    last, beyond = Match.exact(fields[0], 32), Match(fields[1], 0, 1)
    assert outcome(send, fields=fields[:1], matches=[last]).sent
    assert "no entry" in outcome(send, fields=fields, matches=[last, beyond]).dropped
    assert "no entry" in outcome(send, fields=fields[1:], matches=[beyond]).dropped
    # A mask of 0 is no condition.
    assert outcome(send, fields=fields, matches=[last, Match.any(fields[1])]).sent


def test_a_removal_may_pad_the_frame():
    program = pof.Program(pof.Target())
    table = program.table(TableRef(TableType.MM, 0), "t", [field(0, 8)])
    program.add(table, [Match.any(field(0, 8))], pof.apply([pof.DeleteField(0, 64), pof.Output(2)], program.target))
    switch = install(program)
    assert switch.run(PACKET, 1).sent == [(2, PACKET[8:])]
    switch.pad_bytes = 30
    assert switch.run(PACKET, 1).sent == [(2, PACKET[8:] + bytes(6))]


def test_priorities_gotos_and_linear_tables():
    program = pof.Program(pof.Target())
    first = program.table(TableRef(TableType.MM, 0), "first", [field(0, 8)])
    second = program.table(TableRef(TableType.EM, 1), "second", [field(0, 16), metadata(16, 8)])
    third = program.table(TableRef(TableType.DT, 3), "third", [])
    send = [pof.apply([pof.Output(port)], program.target) for port in range(5)]
    program.add(first, [Match.any(field(0, 8))], send[1], priority=1)
    program.add(first, [Match.exact(field(0, 8), 1)], [program.goto(second, 2)], priority=2)
    match = [Match.exact(field(0, 16), 0x0304), Match.exact(metadata(16, 8), 9)]
    program.add(second, match, [program.goto_direct(third, 1, 1)], low_latency=True)
    program.add(third, [], send[2])
    program.add(third, [], [pof.ApplyActions((pof.ModifyField(field(0, 8), 1), pof.Output(3)))])
    switch = install(program)
    result = switch.run(PACKET, 9)
    assert result.sent == [(3, PACKET[:3] + b"\x05" + PACKET[4:])]
    assert [(hit.table_type, hit.index) for hit in result.hits] == [(0, 1), (2, 0), (3, 1)]
    assert not result.low_latency
    assert switch.run(PACKET, 8).dropped == "no entry in table EM 1"
    assert switch.run(b"\x07" + PACKET, 9).sent == [(1, b"\x07" + PACKET)]


def test_drop_ends_a_packet_and_copies_are_kept():
    result = outcome(pof.ApplyActions((pof.Output(2), pof.ToController(1), pof.Drop())))
    assert (result.sent, result.to_controller, result.dropped) == ([(2, PACKET)], [(1, PACKET)], "DROP")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"instructions": [pof.GotoTable(0)]}, "a goto to an earlier table"),
        ({"instructions": [pof.GotoTable(7)]}, "a goto to a missing table"),
        ({"instructions": [pof.ApplyActions((pof.AddField(4, 8, 0),))]}, "an insert of parts of bytes"),
        ({"instructions": [pof.ApplyActions((pof.DeleteField(8, 4),))]}, "a removal of parts of bytes"),
        ({"instructions": [pof.ApplyActions((pof.Drop(), pof.Output(2)))]}, "an action after DROP"),
        ({"matches": [Match(field(0, 8), 3, 1)]}, "value outside of the mask"),
        ({"matches": [Match.any(field(0, 16))]}, "other fields than the table's"),
        ({"index": 1000}, "the index is beyond the size of the table"),
        ({"table": TableRef(TableType.MM, 1)}, "the table is missing"),
        ({"table": TableRef(TableType.EM, 0)}, "a mask in an exact table"),
        ({"table": TableRef(TableType.LPM, 0), "matches": [Match(field(0, 8), 0, 0x7F)]}, "not a prefix"),
        ({"table": TableRef(TableType.LPM, 0), "priority": 1}, "the priority of a prefix is its length"),
    ],
)
def test_invalid_entries_are_refused(entry, problem):
    program = pof.Program(pof.Target())
    for kind in (TableType.MM, TableType.LPM, TableType.EM):
        program.table(TableRef(kind, 0), "t", [field(0, 8)])
    switch = install(program)
    given = {"table": TableRef(TableType.MM, 0), "index": 0, "matches": [Match.any(field(0, 8))], **entry}
    message = pof.Entry(**{key: tuple(item) if isinstance(item, list) else item for key, item in given.items()})
    with pytest.raises(interpreter.InvalidError, match=problem):
        switch.receive(pof.encode(message.message(program.target), 1, program.target.dialect))


def test_the_library_refuses_what_no_switch_can_run():
    program = pof.Program(pof.Target(tables=(2, 1, 1, 1), key_bits=(16, 8, 8, 8)))
    first = program.table(TableRef(TableType.MM, 0), "first", [field(0, 8)], 1)
    second = program.table(TableRef(TableType.MM, 1), "second", [field(0, 8)])
    match = [Match.any(field(0, 8))]
    with pytest.raises(pof.ProgramError, match="which is not after it"):
        program.add(second, match, [program.goto(first)])
    with pytest.raises(pof.ProgramError, match="which is not after it"):
        program.add(first, match, [program.goto(first)])
    with pytest.raises(pof.ProgramError, match="which is missing"):
        program.add(first, match, [pof.GotoTable(3)])
    with pytest.raises(pof.ProgramError, match="other fields than the table"):
        program.add(first, [Match.any(field(0, 16))], [])
    program.add(first, match, [program.goto(second)])
    with pytest.raises(pof.ProgramError, match="has space for 1 entries"):
        program.add(first, match, [])
    with pytest.raises(pof.ProgramError, match="the switch has 2 MM tables"):
        program.table(TableRef(TableType.MM, 2), "third", [])
    with pytest.raises(pof.ProgramError, match="a key of 24 bits; the switch supports 16"):
        pof.Program(program.target).table(TableRef(TableType.MM, 0), "first", [field(0, 24)])
    with pytest.raises(pof.ProgramError, match="two tables have the number"):
        program.table(TableRef(TableType.MM, 0), "again", [])


def test_global_numbers_have_the_order_of_the_table_types():
    target = pof.Target(tables=(10, 10, 5, 20))
    refs = [TableRef(TableType.MM, 0), TableRef(TableType.LPM, 0), TableRef(TableType.EM, 4), TableRef(TableType.DT, 0)]
    assert [target.number(ref) for ref in refs] == [0, 10, 24, 25]
    assert [target.table(number) for number in (0, 10, 24, 25)] == refs
    with pytest.raises(pof.ProgramError, match="45 tables"):
        target.table(45)
