# SPDX-License-Identifier: Apache-2.0
"""A host on a VLAN trunk, for kernels without VLAN devices: tagged_host.py DEVICE VID ADDRESS ASKED

It speaks ARP only, in frames with a tag of VLAN VID. It prints "ready" when it listens, "heard ADDRESS" when
it receives a request with that tag, and "untagged" when it receives a request without a tag. Every half
second it sends a request for ASKED, and it prints "answered ADDRESS" when a tagged answer arrives. It ends
when it has received both an answer and a request.
"""

import select
import socket
import struct
import sys
import time

PACKET_AUXDATA = 8
SOL_PACKET = 263
TP_STATUS_VLAN_VALID = 0x10
# struct tpacket_auxdata: status, lengths, offsets, and the tag that the kernel removed, with its EtherType.
AUXDATA = struct.Struct("=IIIHHHH")
ARP = struct.Struct("!HHBBH6s4s6s4s")
REQUEST, REPLY = 1, 2
ASK_EVERY_S = 0.5


def arp(source, vid, operation, sender, target):
    """Returns a broadcast frame with a tag."""
    ethernet = b"\xff" * 6 + source + struct.pack("!HHH", 0x8100, vid, 0x0806)
    body = ARP.pack(1, 0x0800, 6, 4, operation, source, sender, bytes(6), target)
    return (ethernet + body).ljust(60, b"\0")


def received(device):
    """Returns the VLAN, the ARP operation and the sender of a received frame. The VLAN of an untagged frame
    is None. Returns None if the frame is not ARP.
    """
    frame, ancillary, _, address = device.recvmsg(2048, socket.CMSG_SPACE(AUXDATA.size))
    if address[2] == socket.PACKET_OUTGOING or frame[12:14] != b"\x08\x06" or len(frame) < 14 + ARP.size:
        return None
    vid = None
    for level, kind, data in ancillary:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            status, _, _, _, _, tag, _ = AUXDATA.unpack(data[: AUXDATA.size])
            vid = tag & 0xFFF if status & TP_STATUS_VLAN_VALID else None
    _, _, _, _, operation, _, sender, _, _ = ARP.unpack_from(frame, 14)
    return vid, operation, sender


def main(name, vid, own, asked):
    """Sends requests and answers requests."""
    vid, own, asked = int(vid), socket.inet_aton(own), socket.inet_aton(asked)
    device = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    device.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    device.bind((name, 0))
    source = device.getsockname()[4]
    print("ready", flush=True)
    next_ask, left = 0.0, {"heard", "answered"}
    while left:
        now = time.monotonic()
        if now >= next_ask:
            device.send(arp(source, vid, REQUEST, own, asked))
            next_ask = now + ASK_EVERY_S
        if not select.select([device], [], [], next_ask - now if next_ask > now else 0)[0]:
            continue
        came = received(device)
        if came is None:
            continue
        came_vid, operation, sender = came
        said = {REQUEST: "heard", REPLY: "answered"}.get(operation)
        if came_vid is None:
            said = "untagged"
        elif came_vid != vid:
            said = "VLAN %d" % came_vid
        print(said, socket.inet_ntoa(sender), flush=True)
        left.discard(said)


if __name__ == "__main__":
    main(*sys.argv[1:])
