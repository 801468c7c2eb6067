# SPDX-License-Identifier: Apache-2.0
"""The codec of POF, compared with bytes assembled by hand, with the controller PCTRL, and with docs/pof.md."""

import dataclasses
import re

import pytest
from by_hand import NEW, OLD, XID, Vector, vectors
from transcripts import ROOT, golden

from shunt_controller.pof import DecodeError, Dialect, EncodeError, PofError, actions, decode, encode, instructions, messages
from shunt_controller.pof.layout import Structure
from shunt_controller.pof.messages import MESSAGES
from shunt_controller.pof.values import Field, Match
from shunt_controller.pof.wire import HEADER

VECTORS = vectors()


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector.dialect.value}-{vector.message.NAME}")
def test_a_message_has_the_bytes_of_the_tables(vector: Vector):
    assert encode(vector.message, XID, vector.dialect) == vector.data
    assert decode(vector.data, vector.dialect) == (vector.message, XID)


def test_every_message_action_and_instruction_was_compared():
    for dialect in Dialect:
        of_dialect = [vector.message for vector in VECTORS if vector.dialect is dialect]
        expected = {kind for kind in MESSAGES if kind.SIZES[dialect.column] is not None}
        assert {type(message) for message in of_dialect} == expected
        flows = [message for message in of_dialect if isinstance(message, messages.FlowMod)]
        listed = [instruction for flow in flows for instruction in flow.instructions]
        known = {kind for kind in instructions.INSTRUCTIONS.values() if kind.SIZES[dialect.column] is not None}
        assert {type(instruction) for instruction in listed} == known
        applied = [action for item in listed if isinstance(item, instructions.ApplyActions) for action in item.actions]
        assert {type(action) for action in applied} == set(actions.ACTIONS.values())


@pytest.mark.parametrize("name", golden())
def test_messages_of_pctrl_decode(name):
    data = golden()[name]
    message, xid = decode(data, NEW)
    again = encode(message, xid, NEW)
    if name == "set_config":
        # PCTRL sends the layout of dialect 1.2.
        assert (message, again[8:]) == (messages.SetConfig(0, 0x80), bytes.fromhex("0000000000000080"))
    elif name == "packet_out":
        # PCTRL sends padding after the packet.
        assert again[4:] == data[4 : len(again)]
        assert message.data == b"abcdef"
    else:
        assert again == data


def test_values_of_pctrl_are_read():
    def instruction(name):
        return decode(golden()[name], NEW)[0].instructions[0]

    assert instruction("flow_goto") == instructions.GotoTable(25, 14, (Field(3, 96, 32),))
    assert instruction("flow_wmd") == instructions.WriteMetadata(32, 16, 0x0908)
    assert instruction("flow_add").actions == (actions.AddField(96, 32, 0x01020304, 4),)
    assert instruction("flow_set").actions == (actions.SetField(Match.exact(Field(2, 96, 32), 0x0A000001)),)
    assert instruction("flow_out").actions[1] == actions.Output(Field(0xFFFF, 16, 16))
    assert decode(golden()["flow_goto"], NEW)[0].matches == (Match.exact(Field(5, 0, 48), 0x010203040506),)


def _tables() -> dict[str, list[tuple[str, list[str]]]]:
    """Returns the tables of docs/pof.md by heading: rows of name and cells, with the head first."""
    found: dict[str, list[tuple[str, list[str]]]] = {}
    heading = ""
    for line in (ROOT / "docs/pof.md").read_text().split("## Byte tables")[1].splitlines():
        if line.startswith("####"):
            heading = re.sub(r" \(\d+\)$", "", line.lstrip("# "))
        elif line.startswith("| ") and heading:
            name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
            found.setdefault(heading, []).append((name, cells))
    return found


def _structures() -> dict[str, type[Structure]]:
    listed = [*MESSAGES, *actions.ACTIONS.values(), *instructions.INSTRUCTIONS.values()]
    listed += [messages.Port, messages.TableResource, messages.Bucket, Field]
    return {kind.NAME: kind for kind in listed}


def test_the_layouts_are_those_of_the_page():
    structures, compared = _structures(), 0
    for heading, rows in _tables().items():
        names = ["PACKET_IN action"] if heading.startswith("PACKET_IN action") else heading.split(", ")
        for name in names:
            if name not in structures:
                assert name in ("field with value",), name
                continue
            sizes = [int(cell.split()[1]) if "bytes" in cell else None for cell in rows[0][1]]
            structure = structures[name]
            assert list(structure.SIZES) == sizes, name
            # The library writes aligned values by other means than `at`.
            page = sorted(str(cells) for row, cells in rows[1:] if row != "value")
            own = sorted(str([_cell(place) for place in places]) for places in _places(structure))
            assert own == page, name
            compared += 1
    # SET_FIELD is one field with value, and has no table of its own.
    assert compared == len(structures) - 1 - _without_body()


def _without_body() -> int:
    return sum(1 for kind in MESSAGES if set(kind.SIZES) <= {0, None})


def _cell(place) -> str:
    return "-" if place is None else f"{place[0]}, {place[1]}"


def _places(structure) -> list:
    places = []
    for field in dataclasses.fields(structure):
        if "places" not in field.metadata:
            continue
        places.append(field.metadata["places"])
        if field.metadata["type_at"] is not None:
            types = field.metadata["type_at"]
            places += [types] if types != (None, None) else []
        if getattr(field.metadata["kind"], "count", None) is not None:
            places.append(field.metadata["kind"].count)
    return places


def refusal(dialect, kind, length, *cells):
    """Decodes a message of zeros except for some bytes, and returns name and offset of the refusal."""
    data = bytearray(length)
    data[:4] = bytes((4, kind)) + length.to_bytes(2)
    for offset, byte in cells:
        data[offset] = byte
    with pytest.raises(DecodeError) as caught:
        decode(bytes(data), dialect)
    assert str(caught.value) == f"{caught.value.message}, byte {caught.value.offset}: {caught.value.reason}"
    return caught.value.message, caught.value.offset


@pytest.mark.parametrize(
    ("dialect", "kind", "length", "cells", "expected"),
    [
        (OLD, 12, 136, [(8, 3)], ("PORT_STATUS", 8)),
        (OLD, 17, 136, [(128, 2)], ("PORT_MOD", 128)),
        (OLD, 18, 152, [(8, 3)], ("TABLE_MOD", 8)),
        (NEW, 18, 152, [(8, 5)], ("TABLE_MOD", 8)),
        (OLD, 18, 152, [(10, 4)], ("TABLE_MOD", 10)),
        (OLD, 18, 152, [(11, 9)], ("TABLE_MOD", 11)),
        (OLD, 15, 1200, [(8, 5)], ("FLOW_MOD", 8)),
        (NEW, 15, 2192, [(8, 7)], ("FLOW_MOD", 8)),
        (OLD, 15, 1200, [(9, 9)], ("FLOW_MOD", 9)),
        (OLD, 15, 1200, [(10, 5)], ("FLOW_MOD", 10)),
        (NEW, 15, 2192, [(10, 7)], ("FLOW_MOD", 10)),
        (OLD, 15, 1200, [(11, 3)], ("FLOW_MOD", 11)),
        (OLD, 15, 1200, [(33, 4)], ("FLOW_MOD", 33)),
        (OLD, 15, 1200, [(9, 2), (93, 129)], ("FLOW_MOD", 92)),
        (OLD, 15, 1200, [(10, 1)], ("FLOW_MOD", 368)),
        (OLD, 15, 1200, [(10, 2), (369, 6), (577, 16)], ("FLOW_MOD", 576)),
        (OLD, 15, 1200, [(10, 1), (369, 9)], ("FLOW_MOD", 368)),
        (NEW, 15, 2192, [(10, 1), (369, 11), (376, 2)], ("FLOW_MOD", 376)),
        (NEW, 15, 2192, [(10, 1), (369, 9), (377, 2)], ("FLOW_MOD", 377)),
        (NEW, 15, 2192, [(10, 1), (369, 11), (377, 2)], ("FLOW_MOD", 377)),
        (NEW, 15, 2192, [(10, 1), (369, 10), (377, 8)], ("FLOW_MOD", 376)),
        (OLD, 15, 1200, [(10, 1), (369, 1), (377, 9)], ("FLOW_MOD", 377)),
        (OLD, 15, 1200, [(10, 1), (369, 4), (376, 5)], ("FLOW_MOD", 376)),
        (OLD, 15, 1200, [(10, 1), (369, 4), (376, 2), (433, 11)], ("FLOW_MOD", 432)),
        (NEW, 15, 2192, [(10, 1), (369, 4), (376, 1), (388, 2)], ("FLOW_MOD", 388)),
        (NEW, 15, 2192, [(10, 1), (369, 4), (376, 1), (385, 6), (389, 2)], ("FLOW_MOD", 389)),
        (OLD, 15, 1200, [(10, 1), (369, 4), (376, 1), (385, 4), (395, 65)], ("FLOW_MOD", 392)),
        (OLD, 16, 216, [(8, 3)], ("GROUP_MOD", 8)),
        (NEW, 16, 1848, [(10, 2), (329, 7)], ("GROUP_MOD with buckets", 328)),
        (OLD, 10, 40, [(13, 7)], ("PACKET_IN", 12)),
        (OLD, 10, 40, [(13, 8), (14, 3)], ("PACKET_IN", 14)),
        (NEW, 14, 316, [(23, 5)], ("PACKET_OUT", 20)),
        (OLD, 14, 312, [], ("PACKET_OUT", 1)),
        (OLD, 11, 48, [], ("message type 11", 1)),
        (OLD, 2, 8, [(0, 1)], ("ECHO_REQUEST", 0)),
        (NEW, 16, 320, [], ("GROUP_MOD", 2)),
        (NEW, 0, 16, [], ("HELLO", 2)),
    ],
)
def test_invalid_messages_are_refused_with_their_offset(dialect, kind, length, cells, expected):
    assert refusal(dialect, kind, length, *cells) == expected


def test_a_length_of_the_other_dialect_is_explained():
    data = encode(messages.FlowMod(), 1, OLD)
    with pytest.raises(DecodeError, match=r"1200 bytes; .* its length in dialect 1\.2, so check the dialect"):
        decode(data, NEW)
    with pytest.raises(DecodeError, match="check that the switch is configured for POF"):
        decode(HEADER.pack(4, 0, 16, 1) + bytes(8), NEW)


def test_bytes_without_meaning_are_accepted():
    data = bytearray(encode(messages.FlowMod(), 1, OLD))
    # Padding, and an unused slot.
    data[44] = data[47] = data[368] = data[369] = 0xFF
    assert decode(bytes(data), OLD)[0] == messages.FlowMod()


@pytest.mark.parametrize(
    ("dialect", "message", "text"),
    [
        (OLD, messages.PacketOut(), "dialect 1.2 has no PACKET_OUT"),
        (OLD, messages.FlowMod(slot=3), "FLOW_MOD, slot: dialect 1.2 has no such field"),
        (OLD, messages.FlowMod(command=5), "flow command 5 is not defined in dialect 1.2"),
        (NEW, messages.FlowMod(priority=1 << 16), "FLOW_MOD, priority: 65536 is not a number of 16 bits"),
        (NEW, messages.FlowMod(matches=[Match(Field(0, 0, 8), 256, 0)]), "value 0x100 does not fit into a field of 8 bits"),
        (NEW, messages.FlowMod(matches=[Match(Field(0, 0, 129))]), "129 bits; the maximum is 128"),
        (NEW, messages.FlowMod(matches=[Match()] * 9), "9 conditions; dialect 1.4.0.015 has space for 8"),
        (OLD, messages.FlowMod(instructions=[instructions.Meter()] * 5), "5 instructions; dialect 1.2 has space for 4"),
        (OLD, messages.FlowMod(instructions=[instructions.MovePacketOffset()]), "dialect 1.2 has no MOVE_PACKET_OFFSET"),
        (OLD, messages.FlowMod(instructions=[instructions.WriteMetadata(0, 33, 0)]), "33 bits; dialect 1.2 has space for 32"),
        (OLD, messages.FlowMod(instructions=[actions.Drop()]), "is not an instruction"),
        (NEW, messages.PacketOut(length=5, data=b"abcd"), "5 bytes, but only 4 follow"),
        (NEW, messages.PacketIn(total_length=4, data=bytes(2049)), "a packet of 2049 bytes"),
        (NEW, messages.ResourceReport(), "0 table types, where 4 are needed"),
        (OLD, messages.GroupMod(actions=[actions.Output(Field(0, 0, 8))]), "operands are numbers in dialect 1.2"),
        (OLD, messages.GroupMod(actions=[actions.AddField(0, 65, 0)]), "65 bits; dialect 1.2 has space for 64"),
    ],
)
def test_messages_that_a_dialect_cannot_express_are_refused(dialect, message, text):
    with pytest.raises(EncodeError) as caught:
        encode(message, 1, dialect)
    assert text in str(caught.value)


def test_errors_have_the_names_of_the_public_headers():
    names = {
        (1, 1): "POFBRC_BAD_TYPE",
        (2, 16): "POFBAC_BAD_TABLE_ID",
        (3, 9): "POFBIC_TOO_MANY_ACTIONS",
        (3, 17): "POFBIC_TABLE_UNEXIST",
        (3, 20): "POFBIC_JUM_TO_INVALID_INST",
        (3, 10): "POFET_BAD_INSTRUCTION code 10",
        (5, 8): "POFFMFC_ENTRY_EXIST",
        (5, 12): "POFFMFC_BAD_COUNTER_ID",
        (6, 11): "POFGMFC_BAD_COMMAND",
        (6, 15): "POFGMFC_BAD_COUNTER_ID",
        (7, 1): "POFPMFC_BAD_PORT_ID",
        (8, 8): "POFTMFC_TABLE_UNEMPTY",
        (12, 4): "POFMMFC_BAD_COMMAND",
        (15, 4): "POFCMFC_COUNTER_EXIST",
        (99, 1): "error type 99 code 1",
    }
    for (kind, code), name in names.items():
        assert str(messages.Error(kind, code, text="no")) == f"no ({name})"


def test_all_exceptions_have_one_base():
    assert issubclass(DecodeError, PofError)
    assert issubclass(EncodeError, PofError)
