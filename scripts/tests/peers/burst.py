# SPDX-License-Identifier: Apache-2.0
"""Sends numbered datagrams at full speed to two hosts in turns, and checks what arrives.

    burst.py send KNOWN NEW COUNT     sends COUNT datagrams to address NEW, and one in eight also to KNOWN
    burst.py receive                  receives until SIGTERM and until no more arrive; then prints, as JSON,
                                      the numbers of the first and the last datagram (`first`, `last`),
                                      how many arrived (`count`), how many of them had a number not greater
                                      than one before (`misplaced`), how many came with consecutive numbers
                                      from the first one on (`run`), the time of the first arrival in
                                      seconds of the monotonic clock (`at`), and the longest time in seconds
                                      between two successive arrivals (`gap`)
"""

import json
import os
import signal
import socket
import struct
import sys
import time

PORT = 9000
# This option lets the receive buffer exceed the limit for ordinary users. Python has no name for it.
SO_RCVBUFFORCE = 33
KNOWN_SHARE = 8
# Datagrams in flight arrive within this time, even on a busy machine.
QUIET_S = 1


def connected(address):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect((address, PORT))
    return sender


def send(known, new, count):
    # Use a single CPU. The kernel has a packet queue per CPU, and packets of one queue may overtake those of
    # another.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    known, new = connected(known), connected(new)
    begins = time.monotonic()
    for number in range(count):
        data = struct.pack("!Q", number).ljust(64, b".")
        new.send(data)
        if number % KNOWN_SHARE == 0:
            known.send(data)
    print(json.dumps({"begins": begins, "ends": time.monotonic()}), flush=True)


def receive():
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
    receiver.bind(("0.0.0.0", PORT))
    receiver.settimeout(QUIET_S)
    print("ready", flush=True)
    numbers, at, before, gap = [], 0.0, 0.0, 0.0
    while True:
        try:
            data = receiver.recv(2048)
        except TimeoutError:
            if ended:
                break
            continue
        now = time.monotonic()
        if numbers:
            gap = max(gap, now - before)
        else:
            at = now
        before = now
        numbers.append(struct.unpack_from("!Q", data)[0])
    first, last = (numbers[0], numbers[-1]) if numbers else (None, None)
    pairs = list(zip(numbers, numbers[1:], strict=False))
    run = next((n + 1 for n, (a, b) in enumerate(pairs) if b != a + 1), len(numbers))
    misplaced = sum(later <= earlier for earlier, later in pairs)
    result = {"first": first, "last": last, "count": len(numbers), "misplaced": misplaced, "run": run}
    print(json.dumps(result | {"at": at, "gap": gap}), flush=True)


def main():
    what, *rest = sys.argv[1:]
    if what == "send":
        send(rest[0], rest[1], int(rest[2]))
    else:
        receive()


if __name__ == "__main__":
    main()
