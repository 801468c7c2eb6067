# SPDX-License-Identifier: Apache-2.0
"""Tests of the wire format: os-ken's messages encode and decode the examples of
docs/openflow-extensions.md."""

import struct

import pytest
from os_ken.ofproto import ofproto_parser
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

import shunt_controller as shunt
from shunt_controller import fields
from shunt_controller.experimenter import ExtensionError
from shunt_controller.instructions import Unknown

# The values in the examples of docs/openflow-extensions.md, as an application writes them.
SAID = {
    "low_latency": shunt.LowLatency(True),
    "low_latency=false": shunt.LowLatency(False),
    "goto_direct(5,7)": shunt.GotoDirect(5, 7),
    "slice(packet,96,16)=0x800": {shunt.slice_name("packet", 96, 16): 0x800},
    "slice(metadata,64,16)=0x5/0xf": {shunt.slice_name("metadata", 64, 16): (5, 15)},
    "slice(l3,64,8)=0x1": {shunt.slice_name("l3", 64, 8): 1},
    "slice(l4,103,9)=0x2/0x12": {shunt.slice_name("l4", 103, 9): (2, 0x12)},
    "index=7": {shunt.INDEX: 7},
    "slice(base,16,16)=0x1234": {shunt.slice_name("base", 16, 16): 0x1234},
    "set_field:0x40->slice(l3,64,8)": parser.OFPActionSetField(**{shunt.slice_name("l3", 64, 8): 0x40}),
    "push_key(key=0x0123456789abcdef,width=64,hops=64,epoch=1)": shunt.PushKey(0x123456789ABCDEF, 64, 64, 1),
    "push_polka(key=0x800380040005,ttl=64)": shunt.PushPolka(0x800380040005, 64),
    "pop_key": shunt.PopKey(),
    "push_tf(5,0xdeadbeef,0x1fff)": shunt.PushTf(5, 0xDEADBEEF, 0x1FFF),
    "push_tf_wide(7,0x1fffffff,0xffff)": shunt.PushTfWide(7, 0x1FFFFFFF, 0xFFFF),
    "pop_tf": shunt.PopTf(),
    "move_base(-4)": shunt.MoveBase(-4),
    "add_field(96,32,0x81000007)": shunt.AddField(96, 32, 0x81000007),
    "delete_field(96,32)": shunt.DeleteField(96, 32),
    "modify_field:-1->slice(base,64,8)": shunt.ModifyField("base", 64, 8, -1),
    "copy_field:slice(metadata,64,32)->slice(base,16,32)": shunt.CopyField(("metadata", 64), ("base", 16), 32),
    "calculate_checksum(80,16,0,160)": shunt.CalculateChecksum(80, 16, 0, 160),
    "cut_front(base,20)": shunt.CutFront("base", 20),
}


def flow_mod(datapath, said):
    """Returns the bytes of a flow-mod that contains the value."""
    match, instructions = parser.OFPMatch(in_port=1), []
    if isinstance(said, dict):
        match = parser.OFPMatch(**said)
    elif isinstance(said, parser.OFPInstruction):
        instructions = [said, parser.OFPInstructionMeter(9)]
    else:
        instructions = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [said, parser.OFPActionOutput(2)])]
    message = parser.OFPFlowMod(datapath, match=match, instructions=instructions)
    message.set_xid(1)
    message.serialize()
    return bytes(message.buf)


def statistics(datapath, made):
    """Returns the reply in which a switch reports the entry of such a flow-mod."""
    body = made[48:]
    head = struct.pack("!HBxIIHHHH4xQQQ", 48 + len(body), 0, 1, 2, 32768, 0, 0, 0, 0, 5, 6)
    message = struct.pack("!BBHI", 4, 19, 16 + len(head) + len(body), 1) + struct.pack("!HH4x", 1, 0) + head + body
    return ofproto_parser.msg(datapath, 4, 19, len(message), 1, message)


def test_every_example_is_written_and_read(datapath, examples):
    assert sorted(e.says for e in examples) == sorted(SAID)
    for example in examples:
        said = SAID[example.says]
        made = flow_mod(datapath, said)
        assert example.data in made, f"{example.says}: {made.hex()}"
        (parsed,) = statistics(datapath, made).body
        assert parsed.packet_count == 5
        if example.kind == "match":
            assert dict(parsed.match.items()) == said
        elif example.kind == "instruction":
            assert parsed.instructions[0] == said
            assert parsed.instructions[1].meter_id == 9
        else:
            action, output = parsed.instructions[0].actions
            assert output.port == 2
            if isinstance(action, parser.OFPActionSetField):
                assert (action.key, action.value) == (said.key, said.value)
            else:
                assert action == said
        # A reported value can be sent again.
        again = parser.OFPFlowMod(datapath, match=parsed.match, instructions=parsed.instructions)
        again.set_xid(1)
        again.serialize()
        assert bytes(again.buf) == made, example.says


def test_ordinary_fields_and_slices_go_together(datapath):
    match = parser.OFPMatch(eth_type=0x800, ipv4_dst=("10.0.0.0", "255.0.0.0"), **{shunt.slice_name("l3", 64, 8): 1})
    buf = bytearray()
    match.serialize(buf, 0)
    parsed = parser.OFPMatch.parser(bytes(buf), 0)
    assert parsed["slice(l3,64,8)"] == 1
    assert parsed["ipv4_dst"] == ("10.0.0.0", "255.0.0.0")
    assert "slice(l3,64,8)" in str(parsed)


def test_instructions_of_others_are_kept_as_they_are(datapath):
    foreign = bytes.fromhex("ffff0018 00001234 0001 ffffffffffff 0102030405060708")
    newer = bytes.fromhex("ffff0010 ff53484e 0063 010203040506")
    for data in (foreign, newer):
        parsed = parser.OFPInstruction.parser(data + bytes(8), 0)
        assert isinstance(parsed, Unknown) and parsed.len == len(data)
        buf = bytearray()
        parsed.serialize(buf, 0)
        assert bytes(buf) == data


def test_truncated_structures_are_refused(examples):
    """A structure is also refused if its length field is less than the length of its content."""
    parsers = {"instruction": parser.OFPInstruction.parser, "action": parser.OFPAction.parser}
    ours = [(e.data, parsers[e.kind]) for e in examples if e.data[:2] == b"\xff\xff" and e.kind in parsers]
    assert len(ours) > 5
    for data, parse in ours:
        for length in range(10, len(data)):
            cut = data[:2] + length.to_bytes(2) + data[4:length]
            try:
                parsed = parse(cut, 0)
            except ExtensionError:
                continue
            # The missing bytes were padding, or Shunt has no instruction of this length.
            assert isinstance(parsed, Unknown) or parsed == parse(data, 0)
            with pytest.raises(ExtensionError):
                parse(data[:length], 0)


def test_actions_of_others_are_os_kens(datapath):
    data = bytes.fromhex("ffff0010 00001234 0102030405060708")
    parsed = parser.OFPAction.parser(data, 0)
    assert (parsed.experimenter, parsed.data, parsed.len) == (0x1234, data[8:], 16)
    # The switch reports a masked set-field as this action, Nicira's reg_load2.
    parsed = parser.OFPAction.parser(bytes.fromhex("ffff0018 00002320 0021 80001708 0a000000 ff000000 0000"), 0)
    assert type(parsed).__name__ == "NXActionRegLoad2"


@pytest.mark.parametrize(
    "make",
    [
        lambda: shunt.GotoDirect(255, 1),
        lambda: shunt.GotoDirect(1, 1 << 32),
        lambda: shunt.PushKey(1 << 64, 64, 1),
        lambda: shunt.PushKey(1, 72, 1),
        lambda: shunt.PushKey(1, 64, 256),
        lambda: shunt.PushKey(1, 64, 1, epoch=2),
        lambda: shunt.PushPolka(1 << 128, 1),
        lambda: shunt.PushPolka(1, 256),
        lambda: shunt.PushTf(8, 0, 0),
        lambda: shunt.PushTf(0, 0, 1 << 13),
        lambda: shunt.PushTfWide(0, 1 << 29, 0),
        lambda: shunt.slice_name("l5", 0, 8),
        lambda: shunt.slice_name("l3", 0, 129),
        lambda: shunt.slice_name("l3", 0, 0),
        lambda: shunt.slice_name("l3", -1, 8),
    ],
)
def test_values_without_a_wire_format_are_refused(make):
    with pytest.raises(ExtensionError):
        make()


@pytest.mark.parametrize("value", [256, -1, (1, 256), (1, 2, 3)])
def test_values_that_do_not_fit_a_slice_are_refused(value):
    with pytest.raises(ValueError):
        fields.from_user("slice(l3,64,8)", value)


@pytest.mark.parametrize("data", ["ffff0009ff53484e0060001008", "ffff0c09ff53484e0040000801", "ffff0008ff53484e00400008"])
def test_fields_that_are_cut_or_unknown_are_refused(data):
    with pytest.raises(ExtensionError):
        fields.parse(bytes.fromhex(data), 0)


def test_instructions_that_are_cut_are_refused():
    for data in ("ffff0010 ff53484e 0002 01", "ffff0004 ff53484e", "ffff0010 ff53484e 0002 02 0000000000"):
        with pytest.raises(ExtensionError):
            parser.OFPInstruction.parser(bytes.fromhex(data), 0)


def test_registering_twice_does_no_harm(datapath):
    shunt.register()
    assert flow_mod(datapath, shunt.LowLatency())[-24:-8].hex() == "ffff0010ff53484e0002010000000000"
