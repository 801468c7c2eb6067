#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends 64-byte frames of many UDP flows through a device, RATE per second, or as fast as the kernel takes them:

    lab/send_flows.py DEVICE DESTINATION_MAC FLOWS SECONDS [RATE]

The flows are sent in turns. They differ in IPv4 addresses and ports. Their destinations are in 10.9.0.0/16, so
a host without these addresses drops them silently. Prints the number of sent frames. Needs root.
"""

import ctypes
import math
import os
import socket
import struct
import sys
import time

# Frames per system call.
BURST = 64
# Time between two system calls at a given rate.
PAUSE_S = 0.0005
# Length without the checksum of the frame.
LENGTH = 60


class Part(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class Message(ctypes.Structure):
    """`struct mmsghdr` on 64-bit systems."""

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("parts", ctypes.POINTER(Part)),
        ("part_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        ("sent", ctypes.c_uint),
    ]


def checksum(header):
    """Returns the checksum of an IPv4 header whose checksum is 0."""
    total = sum(struct.unpack(">%dH" % (len(header) // 2), header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(source, destination, flow):
    """Returns the frame of a flow."""
    addresses = bytes([10, 8, flow >> 8 & 255, flow & 255, 10, 9, flow & 255, flow >> 8 & 255])
    total = LENGTH - 14
    start = struct.pack(">BBHHHBB", 0x45, 0, total, 0, 0x4000, 64, 17)
    header = start + struct.pack(">H", checksum(start + b"\0\0" + addresses)) + addresses
    # A UDP checksum of 0 means that there is none.
    datagram = struct.pack(">HHHH", 1024 + flow % 4096, 2048 + flow % 8192, total - 20, 0)
    return (destination + source + b"\x08\x00" + header + datagram).ljust(LENGTH, b"\0")


def main():
    """Sends for the given time."""
    device, destination, flows, seconds = sys.argv[1], bytes.fromhex(sys.argv[2].replace(":", "")), int(sys.argv[3]), float(sys.argv[4])
    with open("/sys/class/net/%s/address" % device, encoding="ascii") as file:
        source = bytes.fromhex(file.read().strip().replace(":", ""))
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sender.bind((device, 0))
    buffers = [ctypes.create_string_buffer(frame(source, destination, flow), LENGTH) for flow in range(flows)]
    parts = (Part * flows)(*(Part(ctypes.addressof(buffer), LENGTH) for buffer in buffers))
    size = ctypes.sizeof(Part)
    first = ctypes.addressof(parts)
    messages = (Message * flows)(
        *(Message(None, 0, ctypes.cast(first + n * size, ctypes.POINTER(Part)), 1, None, 0, 0, 0) for n in range(flows))
    )
    send = ctypes.CDLL(None, use_errno=True).sendmmsg
    step, end, sent, at = ctypes.sizeof(Message), time.monotonic() + seconds, 0, 0
    begin, began_s = ctypes.addressof(messages), time.monotonic()
    rate = float(sys.argv[5]) if len(sys.argv) > 5 else math.inf
    while (now_s := time.monotonic()) < end:
        due = min(BURST, (now_s - began_s) * rate - sent, flows - at)
        if due < 1:
            time.sleep(PAUSE_S)
            continue
        taken = send(sender.fileno(), ctypes.c_void_p(begin + at * step), int(due), 0)
        if taken < 0:
            error = ctypes.get_errno()
            if error in (11, 105):
                # The queue of the device is full.
                continue
            sys.exit("lab/send_flows.py: %s" % os.strerror(error))
        sent += taken
        at = (at + taken) % flows
    print(sent)


if __name__ == "__main__":
    main()
