# SPDX-License-Identifier: Apache-2.0
"""Facts about packets of hosts: addresses, and requests for MAC addresses by ARP and neighbour discovery (ND)."""

from typing import NamedTuple

from os_ken.lib.packet import arp, ethernet, icmpv6, ipv6, packet, vlan

ARP = 0x0806
BROADCAST = "ff:ff:ff:ff:ff:ff"
_RESERVED = "01:80:c2:00:00:0"
"""Prefix of multicast addresses that bridges do not forward."""
_NO_ADDRESS = ("0.0.0.0", "::")
HOP_LIMIT = 255
"""Hop limit that ND requires."""


class Facts(NamedTuple):
    """Facts about a packet."""

    src: str
    """MAC address of the sender, in lower case with colons."""
    dst: str
    eth_type: int
    """EtherType after VLAN tags."""
    claims: tuple[str, ...] = ()
    """IP addresses that the sender claims by ARP or ND."""
    asks: str | None = None
    """IP address whose MAC address the packet asks for."""
    asker: str | None = None
    """IP address of the sender of the question."""
    announces: bool = False
    """Whether the packet is an ARP reply or a neighbour advertisement."""
    is_tagged: bool = False
    """Whether the packet has a VLAN tag."""


def read(data: bytes) -> Facts | None:
    """Returns facts about a packet. Returns None if it is too short for Ethernet."""
    if len(data) < 14:
        return None
    try:
        return _facts(packet.Packet(data))
    except Exception:  # noqa: BLE001 - os-ken's parsers raise various exceptions for malformed packets.
        src, dst = (":".join(f"{byte:02x}" for byte in part) for part in (data[6:12], data[:6]))
        return Facts(src, dst, int.from_bytes(data[12:14]))


def _facts(found: packet.Packet) -> Facts:
    ether, tag = found.get_protocol(ethernet.ethernet), found.get_protocol(vlan.vlan)
    facts = Facts(ether.src, ether.dst, tag.ethertype if tag else ether.ethertype, is_tagged=tag is not None)
    question = found.get_protocol(arp.arp)
    if question is not None:
        claims = () if question.src_ip in _NO_ADDRESS or question.src_mac != ether.src else (question.src_ip,)
        is_asked = question.opcode == arp.ARP_REQUEST and question.src_ip != question.dst_ip
        asks, is_reply = question.dst_ip if is_asked else None, question.opcode == arp.ARP_REPLY
        return facts._replace(claims=claims, asks=asks, asker=question.src_ip, announces=is_reply)
    message, ip = found.get_protocol(icmpv6.icmpv6), found.get_protocol(ipv6.ipv6)
    if message is None or ip is None or ip.hop_limit != HOP_LIMIT:
        return facts
    if message.type_ == icmpv6.ND_NEIGHBOR_SOLICIT:
        claims = () if ip.src in _NO_ADDRESS else (ip.src,)
        # A host that asks from no address checks whether its address is in use. Only the user may answer.
        return facts._replace(claims=claims, asks=message.data.dst if claims else None, asker=ip.src)
    if message.type_ == icmpv6.ND_NEIGHBOR_ADVERT:
        return facts._replace(claims=(message.data.dst,), announces=True)
    return facts


def is_unicast(mac: str) -> bool:
    """Returns whether a MAC address is that of a single host."""
    return not int(mac[:2], 16) & 1 and mac != "00:00:00:00:00:00"


def is_reserved(mac: str) -> bool:
    """Returns whether packets to a MAC address are for the next switch only."""
    return mac.startswith(_RESERVED)


def answer(facts: Facts, mac: str) -> bytes:
    """Returns the answer to the question of a packet: the host with this MAC address has the address."""
    reply = packet.Packet()
    if facts.eth_type == ARP:
        reply.add_protocol(ethernet.ethernet(facts.src, mac, ARP))
        reply.add_protocol(arp.arp(opcode=arp.ARP_REPLY, src_mac=mac, src_ip=facts.asks, dst_mac=facts.src, dst_ip=facts.asker))
    else:
        reply.add_protocol(ethernet.ethernet(facts.src, mac, 0x86DD))
        reply.add_protocol(ipv6.ipv6(src=facts.asks, dst=facts.asker, nxt=58, hop_limit=HOP_LIMIT))
        target = icmpv6.nd_option_tla(hw_src=mac)
        # Flags: solicited and override.
        advert = icmpv6.nd_neighbor(res=3, dst=facts.asks, option=target)
        reply.add_protocol(icmpv6.icmpv6(type_=icmpv6.ND_NEIGHBOR_ADVERT, data=advert))
    reply.serialize()
    return bytes(reply.data)
