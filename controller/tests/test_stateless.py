# SPDX-License-Identifier: Apache-2.0
"""Messages of the stateless lane: the examples of the page, encoded and decoded through os-ken's messages."""

import pytest
from os_ken.ofproto import ofproto_parser
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser
from page import PAGE, Example, read_examples

from shunt_controller import sections as codec
from shunt_controller.experimenter import ExtensionError
from shunt_controller.lane import LaneMod, LaneReply, LaneRequest, joined
from shunt_controller.sections import (
    TABLES,
    Bank,
    Flag,
    Gate,
    GateMap,
    Gates,
    Mtu,
    Polka,
    Residues,
    Trusted,
    Types,
)

# Sections of the page's examples as an application writes them.
SECTIONS = {
    "types: 0x88b5, 0x8842, 0xff1f, 0x88b6": Types(),
    "trusted: 1, 3": Trusted([3, 1]),
    "trusted: none": Trusted([]),
    "mtu: 1500 at port 2": Mtu({2: 1500}),
    "bank of epoch 0: integer 5, label 0 tables, label 1 port 2, in place of 2 port 3": Bank(
        0, Residues(5, {0: TABLES, 1: 2}, {2: 3})
    ),
    "bank of epoch 1: polynomial 11, label 7 port 1": Bank(1, Residues(11, {7: 1}, polynomial=True)),
    "bank of epoch 1: none": Bank(1, None),
    "polka: polynomial 0x1002d, label 0 tables": Polka(Residues(0x1002D, {0: TABLES}, polynomial=True)),
    "polka: none": Polka(None),
    "gates: down-d 2, up-d 3, external-d 0, server_gate_max 16, port 1 gate 4 G_SRV, port 2 gate 6 G_ASS": Gates(
        GateMap(2, 3, 0, 16, {1: Gate(4, Flag.SERVER), 2: Gate(6, Flag.ASSISTS)})
    ),
    "gates: none": Gates(None),
}
SENT = {
    "lane_mod: off": lambda datapath: LaneMod(datapath, None),
    "lane_mod: no sections": lambda datapath: LaneMod(datapath, []),
    "lane_mod: trusted port 1, no polka": lambda datapath: LaneMod(datapath, [Trusted({1}), Polka(None)]),
    "lane_request": LaneRequest,
}
TOLD = {
    "lane_reply: off": LaneReply(1, False, None),
    "lane_reply: trusted port 1, more follows": LaneReply(1, True, [Trusted({1})]),
}

EXAMPLES = read_examples({"section", "message"})


def serialized(message):
    if message.xid is None:
        message.set_xid(1)
    message.serialize()
    return bytes(message.buf)


def received(datapath, data):
    """Returns the message that os-ken parses from the bytes after an experimenter message's header."""
    message = bytes([4, 4]) + (8 + len(data)).to_bytes(2) + (1).to_bytes(4) + data
    return ofproto_parser.msg(datapath, 4, 4, len(message), 1, message)


def reply(data):
    return bytes.fromhex("ff53484e 00000003 00000000 00000000") + data


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.says)
def test_every_example_is_written_and_read(datapath, example: Example):
    if example.kind == "section":
        section = SECTIONS[example.says]
        assert codec.pack([section]) == example.data
        assert codec.unpack(example.data) == [section]
        assert LaneReply.of(received(datapath, reply(example.data))) == LaneReply(1, False, [section])
    elif example.says in TOLD:
        assert LaneReply.of(received(datapath, example.data)) == TOLD[example.says]
    else:
        made = serialized(SENT[example.says](datapath))
        assert made[8:] == example.data
        assert LaneReply.of(received(datapath, example.data)) is None


def test_the_page_has_them_all():
    assert {example.says for example in EXAMPLES} == SECTIONS.keys() | SENT.keys() | TOLD.keys()
    assert PAGE.read_text().count("| OFPET_EXPERIMENTER 1") > 8


def test_they_go_into_bundles(datapath):
    inner = LaneMod(datapath, [Trusted({1})])
    made = serialized(parser.ONFBundleAddMsg(datapath, 5, ofp.ONF_BF_ATOMIC, inner, []))
    assert made.endswith(serialized(inner))
    assert int.from_bytes(made[2:4]) == len(made)


def test_a_bank_of_several_messages_is_one():
    first, rest = Residues(70000, {0: TABLES, 1: 1}), Residues(70000, {2: 2}, {1: 2})
    whole = Residues(70000, {0: TABLES, 1: 1, 2: 2}, {1: 2})
    for kind in (lambda residues: Bank(1, residues), Polka):
        parts = [LaneReply(1, True, [Trusted({1}), kind(first)]), LaneReply(1, False, [kind(rest), Gates(None)])]
        assert joined(parts) == [Trusted({1}), kind(whole), Gates(None)]
    assert joined([LaneReply(1, False, None)]) is None
    other = LaneReply(1, False, [Bank(1, Residues(5, {}))])
    for parts in ([LaneReply(1, True, [Bank(1, first)]), other], [LaneReply(1, True, [Gates(None)])] * 2):
        with pytest.raises(ExtensionError):
            joined(parts)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Types(tf=1 << 16),
        lambda: Trusted({-1}),
        lambda: Mtu({1: 1 << 32}),
        lambda: Bank(2, None),
        lambda: Bank(0, Residues(1, {})),
        lambda: Bank(0, Residues(1 << 32, {})),
        lambda: Polka(Residues(70000, {label: 1 for label in range(8187)})),
        lambda: Gates(GateMap(1 << 32, 0, 0, 0, {})),
    ],
)
def test_what_the_wire_cannot_say_is_refused(make):
    with pytest.raises(ExtensionError):
        codec.pack([make()])


def test_what_fits_no_message_is_refused():
    large = Residues(70000, {label: 1 for label in range(8186)})
    assert len(codec.pack([Polka(large)])) == 65504
    with pytest.raises(ExtensionError):
        codec.pack([Polka(large), Trusted({1})])
    with pytest.raises(ExtensionError):
        codec.pack([Bank(1, None), Bank(1, large)])


def test_sections_that_are_cut_or_unknown_are_refused():
    for example in EXAMPLES:
        for length in range(1, len(example.data)) if example.kind == "section" else ():
            try:
                # The missing bytes were padding.
                assert codec.unpack(example.data[:length]) == [SECTIONS[example.says]]
            except ExtensionError:
                pass
    unknown = "00070008 00000000", "00020003", "00040010 00 02 01 00 00000005 00000000", "00060018 02000000" + 32 * "0"
    for data in unknown:
        with pytest.raises(ExtensionError):
            codec.unpack(bytes.fromhex(data))
