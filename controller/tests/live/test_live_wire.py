# SPDX-License-Identifier: Apache-2.0
"""Tests of configurations in messages: a switch that executes the messages has the planned configuration."""

import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model import network
from os_ken.ofproto import ofproto_parser, ofproto_protocol
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser
from test_tree import topology

from shunt_controller.apps.cookies import DISCOVERY, KEYFLOW, LOW_LATENCY, TAG_AND_FORWARD, is_of_another
from shunt_controller.bundles import XID
from shunt_controller.live.keyflow import KeyFlow, Settings
from shunt_controller.live.state import State, staged
from shunt_controller.live.tagforward import Settings as TagSettings
from shunt_controller.live.tagforward import TagForward
from shunt_controller.live.wire import messages, of_statistics
from shunt_controller.sections import Bank, Gates, Trusted, unpack

KINDS = (Trusted.kind, Bank.kind, Gates.kind)


class Switch:
    """Executes messages, after they have been written to bytes and read again."""

    def __init__(self, datapath) -> None:
        self.datapath, self.sections, self.groups, self.flows = datapath, {}, {}, {}

    def execute(self, made: list[bytes]) -> None:
        for data in made:
            version, kind, length, xid = ofproto_parser.header(data)
            assert (version, length, xid) == (4, len(data), XID)
            if kind == ofp.OFPT_EXPERIMENTER:
                # Experimenter header and flags take 24 bytes.
                self.sections |= {section.place: section for section in unpack(data[24:])}
            elif kind == ofp.OFPT_GROUP_MOD:
                self._group(data)
            else:
                self._flow(parser.OFPFlowMod.parser(self.datapath, version, kind, length, xid, data))

    def _group(self, data: bytes) -> None:
        command, kind, number = struct.unpack_from("!HBxI", data, 8)
        if command == ofp.OFPGC_DELETE:
            del self.groups[number]
            return
        assert (command == ofp.OFPGC_MODIFY) == (number in self.groups)
        buckets, offset = [], 16
        while offset < len(data):
            buckets.append(parser.OFPBucket.parser(data, offset))
            offset += buckets[-1].len
        self.groups[number] = parser.OFPGroupDescStats(kind, number, buckets)

    def _flow(self, mod) -> None:
        buffer = bytearray()
        mod.match.serialize(buffer, 0)
        match = parser.OFPMatch.parser(bytes(buffer), 0)
        key = mod.table_id, mod.priority, str(sorted(match.items()))
        if mod.command == ofp.OFPFC_DELETE_STRICT:
            del self.flows[key]
            return
        instructions = []
        for one in mod.instructions:
            buffer = bytearray()
            one.serialize(buffer, 0)
            instructions.append(parser.OFPInstruction.parser(bytes(buffer), 0))
        self.flows[key] = parser.OFPFlowStats(
            table_id=mod.table_id, priority=mod.priority, idle_timeout=mod.idle_timeout, cookie=mod.cookie, match=match, instructions=instructions
        )

    def state(self) -> State:
        return of_statistics(list(self.sections.values()), self.groups.values(), self.flows.values(), KINDS)


@given(st.sampled_from([(False, False), (True, False), (False, True)]), st.integers(0, 4), st.integers(0, 4))
@settings(max_examples=30, deadline=None)
def test_a_switch_that_executes_the_messages_is_as_planned(modes, first, second):
    pairs = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 1), (2, 4)]
    protect, reactive = modes
    made = KeyFlow(Settings(protect=protect, is_reactive=reactive, width_bits=128), lambda kind, text: None)
    switches = {number: Switch(ofproto_protocol.ProtocolDesc(version=4)) for number in range(1, 6)}
    for without in (first, second):
        topology = network(pairs, [1, 3], frozenset({without}))
        made.set_topology(topology)
        for number, switch in switches.items():
            made.known(number, switch.state(), True)
        for host in topology.hosts:
            made.ask(4 - host.at.switch, host.mac)
        made.update()
        for number, switch in switches.items():
            for target in (staged(switch.state(), made.rollout.desired[number], 0), made.rollout.desired[number]):
                switch.execute(messages(switch.state(), target, KEYFLOW))
                assert switch.state() == target
                assert messages(switch.state(), target, KEYFLOW) == []


def test_switches_of_a_tree_that_execute_the_messages_are_as_planned():
    found = topology(4)
    made = TagForward(TagSettings(qids={46: 5}), lambda kind, text: None)
    switches = {number: Switch(ofproto_protocol.ProtocolDesc(version=4)) for number in found.switches}
    links = sorted(found.links)
    for without in (set(), {links[0]}, set(links[3:5]), set()):
        made.set_topology(replace(found, links=found.links - without))
        for number, switch in switches.items():
            made.known(number, switch.state(), True)
        made.update()
        for number, switch in switches.items():
            target = made.rollout.desired[number]
            switch.execute(messages(switch.state(), target, TAG_AND_FORWARD))
            assert switch.state() == target and messages(switch.state(), target, TAG_AND_FORWARD) == []


@pytest.mark.parametrize(("cookie", "is_kept"), [(DISCOVERY, True), (LOW_LATENCY + 7, True), (KEYFLOW, False), (0, False), (7, False)])
def test_only_entries_of_other_applications_are_kept(cookie, is_kept):
    assert is_of_another(cookie, KEYFLOW) == is_kept
