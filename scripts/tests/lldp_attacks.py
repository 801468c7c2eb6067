# SPDX-License-Identifier: Apache-2.0
"""Sends LLDP frames that a controller must not accept.

    lldp_attacks.py forge SWITCH PORT     frames of this port with a wrong code, by eth0, for two seconds
    lldp_attacks.py relay OTHER           the frames that arrive at eth0, by eth0 of the namespace OTHER, and
                                          the other way round, for four seconds
"""

import ctypes
import os
import select
import socket
import struct
import sys
import time

from shunt_controller.live import lldp
from shunt_controller.live.topology import Port

# Constants of linux/if_packet.h, which Python lacks.
SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_MR_MULTICAST = 263, 1, 0


def device():
    """Returns a socket of eth0 in this network namespace."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(lldp.ETHERTYPE))
    sock.bind(("eth0", lldp.ETHERTYPE))
    # Without this membership, the kernel discards the frames.
    membership = struct.pack("iHH8s", socket.if_nametoindex("eth0"), PACKET_MR_MULTICAST, 6, bytes.fromhex("0180c200000e"))
    sock.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, membership)
    return sock


def forge(switch, port):
    """Sends frames of a port with a wrong code."""
    sock, end_s = device(), time.monotonic() + 2
    while time.monotonic() < end_s:
        sock.send(lldp.build(lldp.Probe(Port(switch, port), os.urandom(lldp.NONCE_BYTES)), b"guess", 15))
        time.sleep(0.1)


def relay(other):
    """Passes frames on between two hosts."""
    one = device()
    with open(f"/run/netns/{other}") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0):
            raise OSError(ctypes.get_errno(), f"setns to {other}")
    two = device()
    end_s, count = time.monotonic() + 4, 0
    while time.monotonic() < end_s:
        for ready in select.select([one, two], [], [], 0.1)[0]:
            data, address = ready.recvfrom(2048)
            if address[2] != socket.PACKET_OUTGOING:
                (two if ready is one else one).send(data)
                count += 1
    print(f"{count} frames")


if __name__ == "__main__":
    forge(*map(int, sys.argv[2:])) if sys.argv[1] == "forge" else relay(*sys.argv[2:])
