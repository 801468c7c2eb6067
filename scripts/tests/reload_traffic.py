#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Numbered UDP packets from one host to another, for tests in which none may be lost.

    reload_traffic.py send ADDRESS PORT PPS [BURST]    sends until SIGTERM, then prints the number of packets
    reload_traffic.py receive PORT                     receives until SIGTERM and a pause, then prints a summary as JSON
"""

import json
import signal
import socket
import struct
import sys
import time
from types import FrameType

BUFFER_BYTES = 8 * 1024 * 1024
QUIET_SECONDS = 0.5
NUMBER = struct.Struct("!Q")


class End:
    """Whether SIGTERM arrived. The handler only sets a flag, so that each packet is both sent and counted."""

    def __init__(self) -> None:
        self.arrived = False
        signal.signal(signal.SIGTERM, self.note)

    def note(self, _signal: int, _frame: FrameType | None) -> None:
        """Handles SIGTERM."""
        self.arrived = True


def send(address: str, port: int, pps: int, burst: int) -> None:
    """Sends a burst of numbered packets, then more at a rate, in small groups."""
    end = End()
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    number = 0
    start = time.monotonic()
    while not end.arrived:
        due = burst + int((time.monotonic() - start) * pps)
        # After a pause of this process, the missed packets are not sent at once.
        if due - number > max(pps // 20, burst - number):
            start += (due - number) / pps
            due = number
        while number < due:
            sender.sendto(NUMBER.pack(number) + bytes(60), (address, port))
            number += 1
        time.sleep(0.001)
    print(number, flush=True)


def receive(port: int) -> None:
    """Receives numbered packets, and counts those that are missing, repeated or out of order.

    After SIGTERM, it ends when no packet has arrived for QUIET_SECONDS.
    """
    end = End()
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # SO_RCVBUFFORCE may exceed the system's limit. Python has no name for it.
    receiver.setsockopt(socket.SOL_SOCKET, 33, BUFFER_BYTES)
    receiver.settimeout(QUIET_SECONDS)
    receiver.bind(("", port))
    seen = bytearray()
    received = repeated = disordered = 0
    last = -1
    print("listening", file=sys.stderr, flush=True)
    while True:
        try:
            (number,) = NUMBER.unpack_from(receiver.recv(2048))
        except TimeoutError:
            if end.arrived:
                break
            continue
        if number >= len(seen):
            seen.extend(bytes(number + 1 - len(seen)))
        repeated += seen[number]
        disordered += number < last
        seen[number] = 1
        received += 1
        last = number
    report = {
        "received": received,
        "repeated": repeated,
        "disordered": disordered,
        "last": last,
        "missing": [number for number, is_seen in enumerate(seen) if not is_seen][:400],
    }
    print(json.dumps(report), flush=True)


def main(arguments: list[str]) -> None:
    """Runs one end."""
    match arguments:
        case ["send", address, port, pps, *burst]:
            send(address, int(port), int(pps), int(burst[0]) if burst else 0)
        case ["receive", port]:
            receive(int(port))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
