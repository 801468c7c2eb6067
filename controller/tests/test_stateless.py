# SPDX-License-Identifier: Apache-2.0
"""Tests of the messages of stateless forwarding: os-ken encodes and decodes the examples of
docs/openflow-extensions.md."""

import pytest
from os_ken.ofproto import ofproto_parser
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser
from page import PAGE, Example, read_examples

from shunt_controller import sections as codec
from shunt_controller.experimenter import ExtensionError
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
from shunt_controller.stateless import StatelessMod, StatelessReply, StatelessRequest, joined

# The sections in the examples of docs/openflow-extensions.md, as an application writes them.
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
    "stateless_mod: off": lambda datapath: StatelessMod(datapath, None),
    "stateless_mod: no sections": lambda datapath: StatelessMod(datapath, []),
    "stateless_mod: trusted port 1, no polka": lambda datapath: StatelessMod(datapath, [Trusted({1}), Polka(None)]),
    "stateless_request": StatelessRequest,
}
REPORTED = {
    "stateless_reply: off": StatelessReply(1, False, None),
    "stateless_reply: trusted port 1, more follows": StatelessReply(1, True, [Trusted({1})]),
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
        assert StatelessReply.of(received(datapath, reply(example.data))) == StatelessReply(1, False, [section])
    elif example.says in REPORTED:
        assert StatelessReply.of(received(datapath, example.data)) == REPORTED[example.says]
    else:
        made = serialized(SENT[example.says](datapath))
        assert made[8:] == example.data
        assert StatelessReply.of(received(datapath, example.data)) is None


def test_the_page_has_an_example_of_each_message():
    assert {example.says for example in EXAMPLES} == SECTIONS.keys() | SENT.keys() | REPORTED.keys()
    assert PAGE.read_text().count("| OFPET_EXPERIMENTER 1") > 8


def test_messages_can_be_part_of_a_bundle(datapath):
    inner = StatelessMod(datapath, [Trusted({1})])
    made = serialized(parser.ONFBundleAddMsg(datapath, 5, ofp.ONF_BF_ATOMIC, inner, []))
    assert made.endswith(serialized(inner))
    assert int.from_bytes(made[2:4]) == len(made)


def test_parts_of_a_bank_in_several_messages_are_joined():
    first, rest = Residues(70000, {0: TABLES, 1: 1}), Residues(70000, {2: 2}, {1: 2})
    whole = Residues(70000, {0: TABLES, 1: 1, 2: 2}, {1: 2})
    for kind in (lambda residues: Bank(1, residues), Polka):
        parts = [
            StatelessReply(1, True, [Trusted({1}), kind(first)]),
            StatelessReply(1, False, [kind(rest), Gates(None)]),
        ]
        assert joined(parts) == [Trusted({1}), kind(whole), Gates(None)]
    assert joined([StatelessReply(1, False, None)]) is None
    other = StatelessReply(1, False, [Bank(1, Residues(5, {}))])
    for parts in ([StatelessReply(1, True, [Bank(1, first)]), other], [StatelessReply(1, True, [Gates(None)])] * 2):
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
def test_values_beyond_the_wire_format_are_refused(make):
    with pytest.raises(ExtensionError):
        codec.pack([make()])


def test_sections_too_long_for_a_message_are_refused():
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
