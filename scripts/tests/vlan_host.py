#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A host in several VLANs, for machines whose kernel has no VLAN devices.

    vlan_host.py INTERFACE MAC VLAN=ADDRESS...

Answers ARP and pings for each address in its VLAN, with frames that have the VLAN's tag. A VLAN of 0 stands for
frames without a tag. Prints `ready` when it listens.
"""

import socket
import struct
import sys

# From linux/if_packet.h.
SOL_PACKET, PACKET_AUXDATA = 263, 8
TP_STATUS_VLAN_VALID = 1 << 4


def checksum(data):
    """Returns the Internet checksum of data whose length is even."""
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def answer(frame, mac, address):
    """Returns the answer to a frame without its tag as type and payload, or None."""
    kind, payload = frame[12:14], frame[14:]
    if kind == b"\x08\x06" and payload[6:8] == b"\0\1" and payload[24:28] == address:
        return kind, payload[:7] + b"\2" + mac + address + payload[8:18]
    is_ping = kind == b"\x08\0" and frame[:6] == mac and payload[0] == 0x45 and payload[9] == 1 and payload[16:20] == address
    if not is_ping or payload[20] != 8:
        return None
    message = b"\0\0\0\0" + payload[24 : struct.unpack("!H", payload[2:4])[0]]
    message = message[:2] + struct.pack("!H", checksum(message + b"\0" * (len(message) % 2))) + message[4:]
    return kind, payload[:12] + address + payload[12:16] + message


def main():
    """Answers until it is ended."""
    interface, mac = sys.argv[1], bytes.fromhex(sys.argv[2].replace(":", ""))
    addresses = {int(vlan): socket.inet_aton(address) for vlan, address in (pair.split("=") for pair in sys.argv[3:])}
    host = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    host.bind((interface, 0))
    host.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    print("ready", flush=True)
    while True:
        frame, extra, _, sender = host.recvmsg(2048, 256)
        if sender[2] == socket.PACKET_OUTGOING:
            continue
        vlan = 0
        # The kernel takes the tag out of the frame.
        for _, kind, data in extra:
            if kind == PACKET_AUXDATA:
                status, _, _, _, _, tci, _ = struct.unpack("=IIIHHHH", data[:20])
                vlan = tci & 0xFFF if status & TP_STATUS_VLAN_VALID else 0
        if frame[12:14] == b"\x81\0":
            vlan, frame = struct.unpack("!H", frame[14:16])[0] & 0xFFF, frame[:12] + frame[16:]
        if vlan not in addresses or (found := answer(frame, mac, addresses[vlan])) is None:
            continue
        tag = struct.pack("!HH", 0x8100, vlan) if vlan else b""
        host.send(frame[6:12] + mac + tag + found[0] + found[1])


if __name__ == "__main__":
    main()
