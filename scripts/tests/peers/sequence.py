# SPDX-License-Identifier: Apache-2.0
"""Sends numbered datagrams between two hosts to detect loss, duplication and reordering.

    sequence.py send ADDRESS [PER_SECOND]     sends until SIGTERM, then prints the number of datagrams
    sequence.py receive                       receives until SIGTERM and until no more arrive; then prints
                                              the number of datagrams and the number of those out of sequence
"""

import os
import signal
import socket
import struct
import sys
import time

PORT = 9000
# This option lets the receive buffer exceed the limit for ordinary users. Python has no name for it.
SO_RCVBUFFORCE = 33
BATCH = 4
# Maximum time by which the sender catches up after a delay. A longer burst could overrun queues.
LATE_MAX_S = 0.1
# Datagrams in flight arrive within this time, even on a busy machine.
QUIET_S = 2


class Ended:
    """Flag that SIGTERM sets. An exception instead of the flag could interrupt the code between sending a
    datagram and counting it."""

    def __init__(self):
        self.yet = False
        signal.signal(signal.SIGTERM, self.end)

    def end(self, *_):
        self.yet = True


def send(ended, address, per_second=1000):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect((address, PORT))
    # Use a single CPU. The kernel has a packet queue per CPU, and packets of one queue may overtake those of
    # another.
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
