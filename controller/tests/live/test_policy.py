# SPDX-License-Identifier: Apache-2.0
"""Policies that mark entries: which entries a rule covers, and what is wrong with a file."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from os_ken.ofproto import ofproto_v1_3_parser as parser

from shunt_controller.instructions import LowLatency
from shunt_controller.live.policy import Field, PolicyError, Rule, _within, fields, first, mark_of, marked, parse

POLICY = """
[[rule]]
name = "voice"
match = {eth_type = 0x0800, ip_proto = 17, ipv4_dst = "10.0.0.0/24"}
mark = "low-latency"

[[rule]]
match = {eth_type = 0x0800}
mark = "normal"
table = 1
switches = [1, 0x20]
"""


def match(**values):
    """Returns a match as os-ken reports it."""
    return fields(parser.OFPMatch(**values).items())


def test_the_first_rule_that_covers_an_entry_decides():
    rules = parse(POLICY)
    udp = match(eth_type=0x0800, ip_proto=17, ipv4_dst="10.0.0.7", udp_dst=5060)
    assert first(rules, 9, 0, udp) is rules[0] and rules[0].name == "voice" and rules[0].mark
    part = match(eth_type=0x0800, ip_proto=17, ipv4_dst=("10.0.0.128", "255.255.255.128"))
    assert first(rules, 9, 0, part) is rules[0]
    for wider in (
        match(eth_type=0x0800, ip_proto=17),
        match(eth_type=0x0800, ip_proto=17, ipv4_dst=("10.0.0.0", "255.255.0.0")),
        match(eth_type=0x0800, ip_proto=17, ipv4_dst="10.0.1.7"),
        match(eth_type=0x0800, ip_proto=6, ipv4_dst="10.0.0.7"),
        match(),
    ):
        assert first(rules, 9, 0, wider) is None
    assert first(rules, 0x20, 1, match(eth_type=0x0800)) is rules[1] and not rules[1].mark
    assert first(rules, 2, 1, match(eth_type=0x0800)) is None
    assert first(rules, 1, 0, match(eth_type=0x0800)) is None


@given(st.integers(0, 15), st.integers(0, 15), st.integers(0, 15), st.integers(0, 15))
def test_an_entry_is_within_a_rule_if_all_its_packets_are(value, mask, rule_value, rule_mask):
    narrow, wide = Field(value & mask, mask), Field(rule_value & rule_mask, rule_mask)
    packets = [number for number in range(16) if number & mask == narrow.value]
    assert _within(narrow, wide) == all(number & rule_mask == wide.value for number in packets)


def test_marks_replace_each_other():
    output = parser.OFPInstructionActions(4, [parser.OFPActionOutput(2)])
    assert mark_of([output]) is None
    for mark in (True, False):
        made = marked([output, LowLatency(not mark)], mark)
        assert made[0] is output and mark_of(made) is mark and len(made) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[rule]]\nmatch = {eth_type = }", "line 2: invalid value"),
        ("a = 1", "line 1: 'a' is not part of a policy"),
        ("rule = 1", "line 1: a policy consists of rules"),
        ("\n[[rule]]\nmark = 'low-latency'", "line 2: rule 1: match must be a table of fields"),
        ("[[rule]]\nmatch = {}\nmark = 'fast'", "line 1: rule 1: mark is 'fast'; it must be low-latency or normal"),
        ("[[rule]]\nmatch = {}\nmark = 'normal'\n\n[[rule]]\nname = 'b'\nmatch = {colour = 3}\nmark = 'normal'", "line 5: rule 2 (b): colour cannot be 3"),
        ("[[rule]]\nmatch = {eth_type = 70000}\nmark = 'normal'", "line 1: rule 1: eth_type cannot be 70000"),
        ("[[rule]]\nmatch = {eth_type = -1}\nmark = 'normal'", "line 1: rule 1: eth_type is -1; numbers must not be negative"),
        ("[[rule]]\nmatch = {eth_type = true}\nmark = 'normal'", "line 1: rule 1: eth_type is True"),
        ("[[rule]]\nmatch = {ipv4_dst = '10.0.0.300'}\nmark = 'normal'", "ipv4_dst cannot be '10.0.0.300'"),
        ("[[rule]]\nmatch = {ipv4_dst = '10.0.0.0/33'}\nmark = 'normal'", "ipv4_dst is '10.0.0.0/33', which is not a network"),
        ("[[rule]]\nmatch = {}\nmark = 'normal'\ntable = 255", "table is 255; tables are 0 to 254"),
        ("[[rule]]\nmatch = {}\nmark = 'normal'\nswitches = ['a']", "switches must be a list of datapath IDs"),
        ("[[rule]]\nmatch = {}\nmark = 'normal'\nport = 1", "port is unknown; a rule has mark, match, name, switches, table"),
    ],
)
def test_errors_of_a_file_are_sentences(text, reason):
    with pytest.raises(PolicyError) as error:
        parse(text)
    assert reason in str(error.value) and "\n" not in str(error.value)


@given(st.text(max_size=60))
def test_any_text_is_a_policy_or_an_error(text):
    try:
        assert all(isinstance(rule, Rule) for rule in parse(text))
    except PolicyError:
        pass


def test_yaml_has_the_same_content():
    rules = parse(yaml.safe_dump({"rule": [{"name": "a", "match": {"eth_type": 0x0800}, "mark": "normal"}]}), is_yaml=True)
    assert rules == (Rule("a", {"eth_type": Field(0x0800, 0xFFFF)}, False),)
    with pytest.raises(PolicyError, match="line 4: rule 2: match must be"):
        parse("rule:\n- match: {}\n  mark: normal\n- mark: normal\n", is_yaml=True)
    with pytest.raises(PolicyError, match="line 1"):
        parse("rule: [", is_yaml=True)
