# SPDX-License-Identifier: Apache-2.0
"""A plain model of the data plane's programs, for comparison with the RTL byte for byte.

A program is a list of PPUs. A PPU has four slices, and entries as a table from index to (value, mask, action),
where an action is a table of fields.
"""

import device

FRAME_BYTES, RAW_BYTES = device.FRAME_BYTES, device.RAW_BYTES


def word(text, at):
    """16 bits, big endian."""
    return int.from_bytes(text[at : at + 2], "big")


class Packet:
    """Parsed fields of a frame, and its state between PPUs."""

    def __init__(self, frame, port):
        self.head, self.payload = bytearray(frame[:RAW_BYTES]), frame[RAW_BYTES:]
        self.port, self.length = port, len(frame)
        self.metadata = 0
        self.kind, self.out, self.ppu = 0, 0, 255
        self.done, self.drop = False, None
        self.ip_change = self.l4_change = 0
        self.tos = self.proto = 0
        self.l4 = 0
        self.present = {"ethernet"}
        self._ethernet()
        self._ip()

    def vlan(self):
        """The VLAN word of the extended header."""
        tagged = len(self.head) >= 18 and word(self.head, 12) in (0x8100, 0x88A8, 0x9100)
        return word(self.head, 14) & 0xEFFF | 0x1000 if tagged else 0

    def _ethernet(self):
        at = 12
        while at < 20 and word(self.head, at) in (0x8100, 0x88A8, 0x9100) and len(self.head) >= at + 6:
            at += 4
        self.l3 = at + 2
        found = word(self.head, at)
        self.eth_type = 0x05FF if found < 0x0600 else found

    def _ip(self):
        ip, room = bytes(self.head[self.l3 :]), self.length - self.l3
        if self.eth_type == 0x0800 and room >= 20 and ip[0] >> 4 == 4:
            size, total = (ip[0] & 15) * 4, word(ip, 2)
            if size < 20 or room < size or total < size:
                return
            self.present.add("ipv4")
            self.tos, self.proto = ip[1], ip[9]
            if word(ip, 6) & 0x1FFF == 0:
                self._upper(self.l3 + size, min(room, total) - size, icmp=1)
        elif self.eth_type == 0x86DD and room >= 40 and ip[0] >> 4 == 6:
            self.present.add("ipv6")
            self.tos, self.proto = word(ip, 0) >> 4 & 0xFF, ip[6]
            self._upper(self.l3 + 40, min(room - 40, word(ip, 4)), icmp=58)

    def _upper(self, at, count, icmp):
        for proto, name, needs in ((6, "tcp", 20), (17, "udp", 8), (132, "sctp", 12), (icmp, "icmp", 4)):
            if self.proto == proto and count >= needs:
                self.present.add(name)
                self.l4 = at

    def key(self, slices):
        """The key of these slices."""
        value = flags = 0
        for base, offset, count in slices:
            at = offset if base == device.BASE_EXTENDED else device.FRAME_BYTE + offset + (0, 0, self.l3, self.l4)[base]
            there = count == 0 or (
                at + count <= device.FRAME_BYTE + len(self.head) and (base != device.BASE_L4 or self.l4 != 0)
            )
            part = bytes(self._extended()[at : at + count]) if there else b""
            value, flags = value << 32 | int.from_bytes(part.ljust(4, b"\0"), "big"), flags << 1 | there
        return value << device.KEY_SLICES | flags

    def _extended(self):
        """The extended header; only bytes that the random programs match are filled in."""
        fixed = self.port.to_bytes(4, "big") * 2 + self.metadata.to_bytes(8, "big") + bytes(8)
        fixed += self.eth_type.to_bytes(2, "big") + self.vlan().to_bytes(2, "big") + bytes([self.tos, self.proto])
        fixed += bytes(8) + self.length.to_bytes(2, "big")
        return fixed.ljust(device.FRAME_BYTE, b"\0") + self.head.ljust(FRAME_BYTES, b"\0")

    def act(self, ppu, action):
        """Executes an action."""
        get = lambda name: action.get(name, 0)
        at = get("offset") + (0, self.l3, self.l4, 0)[get("base")]
        insert, remove = get("insert"), get("remove")
        edits = bool(insert or remove)
        fits = at + remove <= len(self.head) and len(self.head) + insert - remove <= FRAME_BYTES
        fits = fits and (get("base") != device.EDIT_BASE_L4 or self.l4 != 0)
        is_ip = bool(self.present & {"ipv4", "ipv6"})
        ttl_at = self.l3 + (8 if "ipv4" in self.present else 7)
        cuts = lambda header: at < header < at + remove
        bad = not fits or (is_ip and cuts(self.l3)) or (self.l4 != 0 and cuts(self.l4))
        bad = bad or bool(get("dec_ttl") and is_ip and (at == ttl_at or cuts(ttl_at)))
        # The checksum behind IPv6 extension headers is not found.
        bad = bad or bool(get("fix_l4") and "ipv6" in self.present and self.proto in (0, 43, 44, 51, 60, 135))
        if (edits and bad) or (get("dec_ttl") and not is_ip):
            self.drop, self.done = "bad_edit", True
            return
        self.done = bool(get("last")) or get("output_kind") == device.OUTPUT_DISCARD
        if get("write_metadata"):
            self.metadata = get("metadata")
        if get("output_kind"):
            self.kind, self.out, self.ppu = get("output_kind"), get("port"), ppu
            self.out = self.port if get("to_ingress") else self.out
            if self.kind == device.OUTPUT_PORT and self.out == self.port and not get("to_ingress"):
                self.kind = device.OUTPUT_DISCARD
        before = bytes(self.head)
        if get("dec_ttl"):
            # A TTL that an edit has removed counts as 0.
            if ttl_at >= len(self.head) or self.head[ttl_at] <= 1:
                self.drop, self.done = "ttl_expired", True
                return
            self.head[ttl_at] -= 1
            if "ipv4" in self.present:
                self.ip_change -= 0x100
        if edits:
            self._edit(before, at, insert, remove, get)

    def _edit(self, before, at, insert, remove, get):
        # Checksums change by the difference to the bytes as they were before the TTL was decremented.
        new = get("data").to_bytes(device.EDIT_DATA_BYTES, "big")[:insert]
        # Offsets have 8 bits. A header that is not IP may lose its first byte.
        self.l3 = (self.l3 + (insert - remove if at < self.l3 else 0)) % 256
        self.l4 += insert - remove if self.l4 and at < self.l4 else 0
        old = before[at : at + insert].ljust(insert, b"\0")
        change = sum(
            (new[i] - old[i]) << (8 if (at + i - self.l3) % 2 == 0 else 0) for i in range(insert)
        )
        self.ip_change += change * get("fix_ip")
        self.l4_change += change * get("fix_l4")
        self.head[at : at + remove] = new

    def finish(self):
        """Fixes the checksums and returns the frame, padded to 60 bytes."""
        if "ipv4" in self.present:
            self._fix(self.l3 + 10, self.ip_change, False)
        upper = {"tcp": 16, "udp": 6, "icmp": 2}
        for name, place in upper.items():
            if name in self.present and (name != "icmp" or "ipv6" in self.present):
                self._fix(self.l4 + place, self.l4_change, name == "udp")
        return (bytes(self.head) + self.payload).ljust(60, b"\0")

    def _fix(self, at, change, is_udp):
        if at + 2 > len(self.head) or change % 0xFFFF == 0 or (is_udp and word(self.head, at) == 0):
            return
        # The complement of the checksum is a sum modulo 0xffff, written as 0xffff unless both terms are 0.
        total = (~word(self.head, at) & 0xFFFF) + change
        new = ~((total - 1) % 0xFFFF + 1) & 0xFFFF
        self.head[at : at + 2] = (0xFFFF if is_udp and new == 0 else new).to_bytes(2, "big")


def run(program, frame, port, note=None):
    """Returns (kind, port, PPU, frame), or None and the reason for a drop.

    `note` is called for each search with the key, the entries, and the index of the entry that was hit, None
    for a miss.
    """
    packet = Packet(frame, port)
    for number, (slices, entries) in enumerate(program):
        if packet.done:
            break
        found = packet.key(slices)
        hits = [index for index, (value, mask, _) in entries.items() if (found ^ value) & mask == 0]
        hit = min(hits, default=None)
        if note:
            note(found, entries, hit)
        if hits:
            packet.act(number, entries[hit][2])
    if packet.drop or packet.kind in (device.OUTPUT_KEEP, device.OUTPUT_DISCARD) or not packet.head:
        return None, packet.drop or "discarded"
    return (packet.kind, packet.out, packet.ppu), packet.finish()
