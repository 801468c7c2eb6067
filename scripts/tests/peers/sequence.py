# SPDX-License-Identifier: Apache-2.0
"""Numbered datagrams between two hosts, to see whether any is lost, doubled or overtaken.

    sequence.py send ADDRESS [PER_SECOND]     sends until SIGTERM, then says how many
    sequence.py receive                       until SIGTERM; then says how many came, and how many were not the next
"""

import signal
import socket
import struct
import sys
import time

PORT = 9000
# Beyond what ordinary users may have; Python has no name for it.
SO_RCVBUFFORCE = 33
BATCH = 4


class Ended(Exception):
    """SIGTERM came."""


def end(*_):
    raise Ended


def send(address, per_second=1000):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect((address, PORT))
    number = 0
    due = time.monotonic()
    while True:
        try:
            due += BATCH / per_second
            for _ in range(BATCH):
                # It counts as sent only if it is.
                sender.send(struct.pack("!Q", number).ljust(64, b"."))
                number += 1
            time.sleep(max(0.0, due - time.monotonic()))
        except Ended:
            print("sent", number, flush=True)
            return


def receive():
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
    receiver.bind(("0.0.0.0", PORT))
    print("ready", flush=True)
    count = misplaced = awaited = 0
    while True:
        try:
            (number,) = struct.unpack_from("!Q", receiver.recv(2048))
            misplaced += number != awaited
            awaited = number + 1
            count += 1
        except Ended:
            print("received", count, "misplaced", misplaced, flush=True)
            return


def main():
    signal.signal(signal.SIGTERM, end)
    what, *rest = sys.argv[1:]
    if what == "send":
        send(rest[0], *(int(n) for n in rest[1:]))
    else:
        receive()


if __name__ == "__main__":
    main()
