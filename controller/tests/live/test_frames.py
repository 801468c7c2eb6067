# SPDX-License-Identifier: Apache-2.0
"""Tests of packets by which hosts ask for and announce addresses."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from os_ken.lib.packet import arp, ethernet, icmpv6, ipv4, ipv6, packet, udp, vlan

from shunt_controller.live import frames
from shunt_controller.live.bucket import Buckets
from shunt_controller.live.debounce import Debounce

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"


def data(*layers) -> bytes:
    made = packet.Packet()
    for layer in layers:
        made.add_protocol(layer)
    made.serialize()
    return bytes(made.data)


def request(sender: str = "10.0.0.1", target: str = "10.0.0.2", mac: str = A, src: str = A) -> bytes:
    return data(ethernet.ethernet(frames.BROADCAST, src, 0x0806), arp.arp(src_mac=mac, src_ip=sender, dst_ip=target))


def solicit(sender: str = "fe80::a", target: str = "fe80::b", hop_limit: int = 255) -> bytes:
    option = icmpv6.nd_option_sla(hw_src=A)
    message = icmpv6.icmpv6(type_=icmpv6.ND_NEIGHBOR_SOLICIT, data=icmpv6.nd_neighbor(dst=target, option=option))
    ip = ipv6.ipv6(src=sender, dst="ff02::1:ff00:b", nxt=58, hop_limit=hop_limit)
    return data(ethernet.ethernet("33:33:ff:00:00:0b", A, 0x86DD), ip, message)


ADDRESSES = st.integers(0x0A000001, 0x0AFFFFFE).map(lambda value: str(ipaddress.IPv4Address(value)))


@given(ADDRESSES, ADDRESSES)
def test_an_arp_request_is_answered_to_the_asker(sender, target):
    facts = frames.read(request(sender, target))
    assert (facts.src, facts.dst, facts.claims) == (A, frames.BROADCAST, (sender,))
    if sender == target:
        assert facts.asks is None, "a gratuitous request asks nobody"
        return
    assert (facts.asks, facts.asker) == (target, sender)
    answer = packet.Packet(frames.answer(facts, B))
    ether, reply = answer.get_protocol(ethernet.ethernet), answer.get_protocol(arp.arp)
    assert (ether.dst, ether.src, reply.opcode) == (A, B, arp.ARP_REPLY)
    assert (reply.src_mac, reply.src_ip, reply.dst_mac, reply.dst_ip) == (B, target, A, sender)
    assert frames.read(bytes(answer.data)).claims == (target,) and frames.read(bytes(answer.data)).announces


def test_a_neighbour_solicitation_is_answered_with_a_valid_advertisement():
    facts = frames.read(solicit())
    assert (facts.claims, facts.asks, facts.asker, facts.announces) == (("fe80::a",), "fe80::b", "fe80::a", False)
    made = frames.answer(facts, B)
    answer = packet.Packet(made)
    ether, ip, message = (answer.get_protocol(kind) for kind in (ethernet.ethernet, ipv6.ipv6, icmpv6.icmpv6))
    assert (ether.dst, ether.src, ip.dst, ip.src, ip.hop_limit) == (A, B, "fe80::a", "fe80::b", 255)
    assert message.type_ == icmpv6.ND_NEIGHBOR_ADVERT and message.data.option.hw_src == B
    # Flags: solicited and override, but not router.
    assert (message.data.res, message.data.dst) == (3, "fe80::b")
    words = ip.src, ip.dst
    pseudo = b"".join(ipaddress.IPv6Address(word).packed for word in words) + len(made[54:]).to_bytes(4) + (58).to_bytes(4)
    total = sum(int.from_bytes((pseudo + made[54:])[at : at + 2]) for at in range(0, len(pseudo) + len(made[54:]), 2))
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF, "the checksum is wrong"
    assert frames.read(made).claims == ("fe80::b",) and frames.read(made).announces


@pytest.mark.parametrize(
    ("frame", "claims", "asks"),
    [
        (request(sender="0.0.0.0"), (), "10.0.0.2"),
        (request(mac=C), (), "10.0.0.2"),
        (solicit(sender="::"), (), None),
        (solicit(hop_limit=64), (), None),
        (data(ethernet.ethernet(B, A, 0x0800), ipv4.ipv4(src="10.0.0.9", dst="10.0.0.2", proto=17), udp.udp()), (), None),
    ],
    ids=["probe", "another sender", "duplicate detection", "from afar", "IP"],
)
def test_packets_that_claim_nothing(frame, claims, asks):
    facts = frames.read(frame)
    assert (facts.src, facts.claims, facts.asks) == (A, claims, asks)


def test_a_vlan_tag_is_seen():
    tagged = frames.read(data(ethernet.ethernet(frames.BROADCAST, A, 0x8100), vlan.vlan(vid=7, ethertype=0x0806), arp.arp(src_mac=A)))
    assert tagged.is_tagged and tagged.eth_type == frames.ARP


@given(st.binary(max_size=120))
def test_any_bytes_are_read(received):
    facts = frames.read(received)
    assert (facts is None) == (len(received) < 14)
    assert facts is None or (len(facts.src) == 17 and facts.src == ":".join(f"{byte:02x}" for byte in received[6:12]))


@given(st.sampled_from([request(), solicit()]), st.data())
def test_damaged_packets_are_read(frame, drawn):
    changed = bytearray(frame[: drawn.draw(st.integers(14, len(frame)))])
    changed[drawn.draw(st.integers(0, len(changed) - 1))] = drawn.draw(st.integers(0, 255))
    assert frames.read(bytes(changed)) is not None


def test_addresses_of_one_and_of_several_hosts():
    assert frames.is_unicast(A) and not frames.is_unicast(frames.BROADCAST) and not frames.is_unicast("00:00:00:00:00:00")
    assert frames.is_reserved("01:80:c2:00:00:0e") and not frames.is_reserved("01:80:c2:00:00:10") and not frames.is_reserved(A)


def test_changes_are_collected_until_it_is_quiet_but_not_forever():
    changes = Debounce(quiet_s=0.2, most_s=1.0)
    assert not changes.due(0.0)
    changes.change(0.0)
    assert not changes.due(0.1) and changes.due(0.2) and not changes.due(9.0)
    for tenth in range(9):
        changes.change(tenth / 10)
        assert not changes.due(tenth / 10 + 0.05)
    changes.change(0.95)
    assert changes.due(1.0)
    changes.change(5.0)
    changes.change(5.0, urgent=True)
    assert changes.due(5.0) and not changes.due(9.0)


@given(st.lists(st.floats(0, 1), max_size=60))
def test_a_bucket_allows_the_burst_and_then_the_rate(pauses):
    buckets, now_s, allowed = Buckets(per_s=2.0, burst=3.0), 0.0, 0
    for pause_s in pauses:
        now_s += pause_s
        allowed += buckets.allows("one", now_s)
    assert allowed <= 3 + 2 * now_s and buckets.refused == len(pauses) - allowed
    assert allowed >= min(len(pauses), 3)
