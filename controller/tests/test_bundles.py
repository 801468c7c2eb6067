# SPDX-License-Identifier: Apache-2.0
"""Bundles as bytes are those that os-ken sends."""

from os_ken.ofproto import ofproto_protocol
from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from shunt_controller.actions import PushTf
from shunt_controller.bundles import XID, Packer, bundled
from shunt_controller.edges import Entry, Group, Way, messages

DATAPATH = ofproto_protocol.ProtocolDesc(version=4)


def serialized(made: list) -> list[bytes]:
    """Returns the bytes of messages of os-ken."""
    for message in made:
        message.set_xid(XID)
        message.serialize()
    return [bytes(message.buf) for message in made]


def test_a_bundle_is_what_os_ken_sends():
    flags = ofp.ONF_BF_ATOMIC | ofp.ONF_BF_ORDERED
    mods = [parser.OFPFlowMod(DATAPATH, priority=1), parser.OFPGroupMod(DATAPATH, ofp.OFPGC_DELETE, 0, 7, [])]
    whole = [
        parser.ONFBundleCtrlMsg(DATAPATH, 9, ofp.ONF_BCT_OPEN_REQUEST, flags, []),
        *(parser.ONFBundleAddMsg(DATAPATH, 9, flags, mod, []) for mod in mods),
        parser.ONFBundleCtrlMsg(DATAPATH, 9, ofp.ONF_BCT_COMMIT_REQUEST, flags, []),
    ]
    expected = b"".join(serialized(whole))
    assert bundled(9, [bytes(mod.buf) for mod in mods]) == expected


def test_shared_entries_have_the_same_bytes_at_each_switch():
    packer = Packer()
    for round in range(50):
        # Entries of earlier rounds no longer exist, so their identities may be used again.
        group = Group(4, (Way(1, (PushTf(0, round, 4),)), Way(2, (PushTf(0, 8, 4),))))
        shared = Entry(1, 10, {"eth_dst": "02:00:00:00:00:01"}, group=group)
        for own in (Entry(1, 10, {"eth_dst": "02:00:00:00:00:02"}, port=round), Entry(0, round, {}, goto=1)):
            assert packer.entries([shared, own]) == serialized(messages(DATAPATH, [shared, own]))
