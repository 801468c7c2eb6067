# SPDX-License-Identifier: Apache-2.0
"""Numbered datagrams between two hosts, to see whether any is lost, doubled or overtaken.

    sequence.py send ADDRESS [PER_SECOND]     sends until SIGTERM, then says how many
    sequence.py receive                       until SIGTERM, and until no more come for a while; then says how many came,
                                              and how many were not the next
"""

import os
import signal
import socket
import struct
import sys
import time

PORT = 9000
# Beyond what ordinary users may have; Python has no name for it.
SO_RCVBUFFORCE = 33
BATCH = 4
# A sender that the machine has kept waiting makes good for so long, and not with a burst that overruns queues.
LATE_MAX_S = 0.1
# What is under way arrives within this time, on a busy machine too.
QUIET_S = 2


class Ended:
    """Whether SIGTERM came. Not an exception: it would come between a datagram and its count."""

    def __init__(self):
        self.yet = False
        signal.signal(signal.SIGTERM, self.end)

    def end(self, *_):
        self.yet = True


def send(ended, address, per_second=1000):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect((address, PORT))
    # On one CPU: the kernel keeps a queue of packets for each, and on a busy machine one may be ahead of another.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    number = 0
    due = time.monotonic()
    while not ended.yet:
        due = max(due + BATCH / per_second, time.monotonic() - LATE_MAX_S)
        for _ in range(BATCH):
            sender.send(struct.pack("!Q", number).ljust(64, b"."))
            number += 1
        time.sleep(max(0.0, due - time.monotonic()))
    print("sent", number, flush=True)


def receive(ended):
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
    receiver.bind(("0.0.0.0", PORT))
    receiver.settimeout(QUIET_S)
    print("ready", flush=True)
    count = misplaced = awaited = 0
    while True:
        try:
            (number,) = struct.unpack_from("!Q", receiver.recv(2048))
        except TimeoutError:
            if ended.yet:
                break
            continue
        misplaced += number != awaited
        awaited = number + 1
        count += 1
    print("received", count, "misplaced", misplaced, flush=True)


def main():
    ended = Ended()
    what, *rest = sys.argv[1:]
    if what == "send":
        send(ended, rest[0], *(int(n) for n in rest[1:]))
    else:
        receive(ended)


if __name__ == "__main__":
    main()
