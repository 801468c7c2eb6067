#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays captures from one host to another at a steady rate and shows the latency of the frames.

    demo_replay.py --from NAMESPACE --to NAMESPACE [--rate 100] [--seconds 5] CAPTURE...

Frames of several captures are sent in turns, and the captures repeat. Both ends are AF_PACKET sockets of this
process on `eth0` of two network namespaces. Frames keep their bytes except for the MAC addresses, which are
replaced by the addresses below. No host has these addresses, so no host answers. The receiver recognizes the
frames by these addresses.

Frames carry no number. The receiver compares a frame with those in flight, oldest first. Frames sent before
the matching one are lost, because frames of one flow do not overtake each other. A frame is also lost if it
has not arrived after two seconds. If two equal frames are in flight and the first one is lost, the arrival of
the second one counts as the arrival of the first.

Latency is measured from the sending system call to the kernel's timestamp at the receiver's device. Prints
one line per second, and one line for the whole run. --result writes a file with three numbers: sent, arrived,
lost. Exits with code 1 if less than --least-percent of the frames arrived.
"""

import argparse
import ctypes
import itertools
import math
import os
import select
import socket
import struct
import sys
import time
from collections import deque

FROM_MAC = bytes.fromhex("0253484e0001")
TO_MAC = bytes.fromhex("0253484e0002")
DEVICE = "eth0"
LATE_NS = 2_000_000_000
FRAME_BYTES = range(14, 1515)

# Constants of linux/if_ether.h, linux/if_packet.h, asm/socket.h and linux/sched.h that `socket` lacks.
ETH_P_ALL = 3
SOL_PACKET, PACKET_AUXDATA = 263, 8
TP_STATUS_VLAN_VALID, TP_STATUS_VLAN_TPID_VALID = 1 << 4, 1 << 6
SO_ATTACH_FILTER, SO_TIMESTAMPNS = 26, 35
CLONE_NEWNET = 0x40000000

COLUMNS = "%8s %8s %6s %10s %10s %10s"


def frames_of(path):
    """Returns the frames of a pcap file."""
    with open(path, "rb") as file:
        data = file.read()
    orders = {0xA1B2C3D4: "pcap in microseconds", 0xA1B23C4D: "pcap in nanoseconds"}
    order = next((order for order in "<>" if struct.unpack_from(order + "I", data.ljust(4))[0] in orders), None)
    if order is None:
        sys.exit("%s is not a pcap file; editcap -F pcap converts other formats" % path)
    if len(data) < 24 or struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF != 1:
        sys.exit("%s: frames are not Ethernet" % path)
    at, frames = 24, []
    while at + 16 <= len(data):
        captured, length = struct.unpack_from(order + "II", data, at + 8)
        frame = data[at + 16 : at + 16 + captured]
        at += 16 + captured
        if captured == length == len(frame) and length in FRAME_BYTES:
            frames.append(TO_MAC + FROM_MAC + frame[12:])
    if not frames:
        sys.exit("%s has no complete frame of %d to %d bytes" % (path, FRAME_BYTES[0], FRAME_BYTES[-1]))
    return frames


def open_in(namespace, protocol):
    """Moves this process into a namespace and returns a packet socket on its device."""
    with open("/run/netns/" + namespace, "rb") as file:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(file.fileno(), CLONE_NEWNET):
            sys.exit("%s: %s" % (namespace, os.strerror(ctypes.get_errno())))
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    if protocol:
        take_only(end, FROM_MAC)
        end.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        end.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        end.setblocking(False)
    end.bind((DEVICE, protocol))
    return end


def take_only(end, source):
    """Attaches a filter for frames from this MAC address, so that a flood beside them cannot fill the socket.
    """
    high, low = struct.unpack("!IH", source)
    # A BPF program that accepts a frame if the word at offset 6 and the half-word at offset 10 are equal to
    # the given values.
    steps = [(0x20, 0, 0, 6), (0x15, 0, 3, high), (0x28, 0, 0, 10), (0x15, 0, 1, low), (6, 0, 0, 65535), (6, 0, 0, 0)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HL", len(steps), ctypes.addressof(code))
    end.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)


def receive(end):
    """Returns the next received frame and its time in ns."""
    frame, notes, _, _ = end.recvmsg(65536, 256)
    arrived_ns = 0
    for level, kind, data in notes:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
            seconds, nanoseconds = struct.unpack("qq", data)
            arrived_ns = seconds * 1_000_000_000 + nanoseconds
        elif (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            # The kernel removes the outermost VLAN tag and reports it in auxiliary data.
            status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", data)
            if status & TP_STATUS_VLAN_VALID:
                tpid = tpid if status & TP_STATUS_VLAN_TPID_VALID else 0x8100
                frame = frame[:12] + struct.pack("!HH", tpid, tci) + frame[12:]
    return frame, arrived_ns


class Tally:
    """Results of the frames of one second, or of all frames."""

    def __init__(self):
        self.sent, self.lost, self.times_us = 0, 0, []

    def add(self, other):
        """Adds another tally to this one."""
        self.sent += other.sent
        self.lost += other.lost
        self.times_us += other.times_us

    def row(self, name):
        """Returns a row of the table."""
        times = sorted(self.times_us)
        parts = (0.5, 0.99, 1) if times else ()
        shown = ["%.0f" % times[math.ceil(part * len(times)) - 1] for part in parts] or ["-"] * 3
        return "  " + COLUMNS % (name, len(times), self.lost, *shown)


class Replay:
    """Frames in flight, and their results."""

    def __init__(self, sender, receiver):
        self.sender, self.receiver = sender, receiver
        self.under_way = deque()
        self.tally = Tally()

    def send(self, frame):
        """Sends a frame."""
        self.under_way.append((frame, time.time_ns()))
        self.sender.send(frame)
        self.tally.sent += 1

    def wait(self, until_s):
        """Receives frames until a time of the monotonic clock."""
        while (left := until_s - time.monotonic()) > 0:
            if select.select([self.receiver], [], [], left)[0]:
                self.take(*receive(self.receiver))

    def take(self, frame, arrived_ns):
        """Matches a received frame with the frames in flight."""
        place = next((place for place, (sent, _) in enumerate(self.under_way) if sent == frame), None)
        if place is None:
            return
        for _ in range(place):
            self.under_way.popleft()
        self.tally.lost += place
        self.tally.times_us.append((arrived_ns - self.under_way.popleft()[1]) / 1000)

    def give_up(self, older_than_ns):
        """Counts frames sent before this time as lost."""
        while self.under_way and self.under_way[0][1] < older_than_ns:
            self.under_way.popleft()
            self.tally.lost += 1

    def report(self, name, total):
        """Prints the tally, adds it to the total, and starts a new one."""
        print(self.tally.row(name), flush=True)
        total.add(self.tally)
        self.tally = Tally()


def main():
    """Runs one replay."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--from", dest="source", required=True, help="namespace that sends")
    parser.add_argument("--to", required=True, help="namespace that receives")
    parser.add_argument("--rate", type=int, default=100, help="frames per second (100)")
    parser.add_argument("--seconds", type=int, default=5, help="duration in seconds (5)")
    parser.add_argument("--least-percent", type=float, default=0, help="minimum share of the frames that must arrive, in percent (0)")
    parser.add_argument("--result", help="file for the numbers of frames sent, arrived and lost")
    parser.add_argument("captures", nargs="+", help="pcap files")
    options = parser.parse_args()

    rows = itertools.zip_longest(*map(frames_of, options.captures))
    frames = itertools.cycle([frame for row in rows for frame in row if frame is not None])
    replay = Replay(open_in(options.source, 0), open_in(options.to, ETH_P_ALL))
    total = Tally()
    print("  " + COLUMNS % ("second", "arrived", "lost", "p50 us", "p99 us", "max us"), flush=True)
    start = time.monotonic()
    for second in range(options.seconds):
        for number in range(options.rate):
            replay.wait(start + second + number / options.rate)
            replay.send(next(frames))
        replay.wait(start + second + 1)
        replay.give_up(time.time_ns() - LATE_NS)
        replay.report(second + 1, total)
    replay.wait(time.monotonic() + 0.2)
    replay.give_up(time.time_ns())
    total.add(replay.tally)
    print(total.row("all"))
    arrived = len(total.times_us)
    if options.result:
        with open(options.result, "w", encoding="ascii") as file:
            file.write("%d %d %d\n" % (total.sent, arrived, total.lost))
    if 100 * arrived < options.least_percent * total.sent:
        sys.exit("%d of %d frames arrived, less than %g %%" % (arrived, total.sent, options.least_percent))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
