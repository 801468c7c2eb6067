# SPDX-License-Identifier: Apache-2.0
"""Captures for a rule set: packets of 60 bytes (IPv4) and 74 bytes (IPv6), without the frame check sequence.

Nine of ten flows are generated to match a rule that allows them. The other flows are drawn from all
addresses. All flows go to a routed prefix. Flows differ in at least one bit of addresses, ports or protocol.
The first hundred flows of a capture are allowed by the access list, because otherwise all packets of a small
capture might be dropped.
"""

import bisect
import itertools
import random
import struct

from rules import MACS, SEED, TCP, UDP

HEAD = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
STATION = bytes.fromhex("02fe00000001")
# Number of packets in a capture whose flows follow Zipf's law. The peers' packet buffers limit this number.
ZIPF_PACKETS = 200_000
ZIPF_EXPONENT = 1.0
SURE_FLOWS = 100


def checksum(header):
    """Returns the checksum of an IPv4 header."""
    total = sum(struct.unpack("!%dH" % (len(header) // 2), header))
    total = (total >> 16) + (total & 0xFFFF)
    return ~((total >> 16) + total) & 0xFFFF


def raw(mac):
    """Returns a MAC address as bytes."""
    return bytes.fromhex(mac.replace(":", ""))


def transport(protocol, source, destination):
    """Returns a TCP or UDP header in 20 bytes. Checksums are 0, because no switch checks them."""
    if protocol == TCP:
        return struct.pack("!HHIIBBHHH", source, destination, 1, 0, 0x50, 0x10, 8192, 0, 0)
    return struct.pack("!HHHH12x", source, destination, 20, 0)


class Traffic:
    """Packets for a rule set."""

    def __init__(self, rules, seed=SEED):
        self.rules, self.family = rules, rules.family
        self.draw = random.Random("traffic/%d/%d/%s" % (seed, rules.family.version, rules.hard))
        self.allowing = [rule for rule in rules.rules if rule.allows]

    def flow(self):
        """Draws a flow: source, destination, protocol and ports."""
        draw, family = self.draw, self.family
        source, destination, protocol = (0, 0), (0, 0), 0
        ports = [(0, 0), (0, 0)]
        if draw.random() < 0.9:
            rule = draw.choice(self.allowing)
            source, destination, protocol = rule.source, rule.destination, rule.protocol
            ports = [rule.source_port, rule.destination_port]
        if not source[1]:
            source = family.sources
        if not destination[1]:
            destination = draw.choice(self.rules.routes)
        drawn = [draw.randrange(1024, 65536), draw.getrandbits(16)]
        chosen = [value | (other & ~mask & 0xFFFF) for (value, mask), other in zip(ports, drawn)]
        return (family.inside(draw, source), family.inside(draw, destination), protocol or draw.choice((TCP, UDP)), *chosen)

    def is_allowed(self, flow):
        """Returns whether the access list allows a flow."""
        source, destination, protocol, *ports = flow
        cut = self.family.cut

        def fits(rule):
            masks = (rule.source_port, rule.destination_port)
            return (
                rule.protocol in (0, protocol)
                and cut(source, rule.source[1]) == rule.source
                and cut(destination, rule.destination[1]) == rule.destination
                and all(port & mask == value for port, (value, mask) in zip(ports, masks))
            )

        return next((rule.allows for rule in self.rules.rules if fits(rule)), True)

    def packet(self, flow):
        """Returns a packet of a flow."""
        source, destination, protocol, *ports = flow
        payload = transport(protocol, *ports)
        # All packets of a flow go to the same router.
        mac = raw(MACS[(source ^ destination ^ ports[0]) % len(MACS)])
        if self.family.version == 6:
            addresses = source.to_bytes(16, "big") + destination.to_bytes(16, "big")
            return mac + STATION + struct.pack("!HIHBB", 0x86DD, 6 << 28, len(payload), protocol, 64) + addresses + payload
        addresses = struct.pack("!II", source, destination)
        header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0) + addresses
        header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
        return (mac + STATION + b"\x08\x00" + header + payload).ljust(60, b"\0")

    def packets(self, flows, zipf=False):
        """Returns a packet of each flow. With `zipf`, returns a sequence in which the n-th flow has the
        weight 1/n."""
        distinct = {}
        while len(distinct) < flows:
            flow = self.flow()
            if len(distinct) >= SURE_FLOWS or self.is_allowed(flow):
                distinct[flow] = None
        each = [self.packet(flow) for flow in distinct]
        if not zipf:
            return each
        weights = list(itertools.accumulate(1 / number**ZIPF_EXPONENT for number in range(1, flows + 1)))
        drawn = (self.draw.random() * weights[-1] for _ in range(ZIPF_PACKETS))
        return [each[bisect.bisect(weights, point)] for point in drawn]


def from_stations(table):
    """Returns a packet from each station of a table of MAC addresses, by which a switch learns the station."""
    return [packet[6:12] + packet[:6] + packet[12:] for packet in to_stations(table)]


def to_stations(table):
    """Returns a UDP packet to each station of a table of MAC addresses."""
    packets = []
    for number, mac in enumerate(table.stations):
        addresses = struct.pack("!II", (10 << 24) + number, (192 << 24) + (168 << 16) + 1)
        header = struct.pack("!BBHHHBBH", 0x45, 0, 46, 0, 0, 64, UDP, 0) + addresses
        header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
        packets.append((raw(mac) + STATION + b"\x08\x00" + header + struct.pack("!HHHH", 4000, 80, 26, 0)).ljust(60, b"\0"))
    return packets


def write(path, packets):
    """Writes a capture."""
    with open(path, "wb") as file:
        file.write(HEAD)
        for packet in packets:
            file.write(struct.pack("<IIII", 0, 0, len(packet), len(packet)))
            file.write(packet)
