#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A controller that adds and deletes flows until the switch is killed, and the check of what a restart kept.

    restart_churn.py run HOST:PORT FIRST LOG          each change ends with a barrier, whose reply is logged
    restart_churn.py check LOG KILLED_NS DUMP LIMIT_MS  DUMP is the output of `shunt flows dump`

Each flow has a cookie of its own, from FIRST on. A change is answered if its barrier was answered before the
kill. `check` fails if a change that was answered more than LIMIT_MS before the kill is lost, or if a change is
kept but an earlier one is not. It prints the number of changes that were answered, and of those that are lost.
"""

import re
import socket
import struct
import sys
import time
from collections.abc import Iterator

HEADER = struct.Struct("!BBHI")
HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, FLOW_MOD, BARRIER_REQUEST, BARRIER_REPLY = 0, 1, 2, 3, 14, 20, 21
ADD, DELETE_STRICT = 0, 4
BASE = 0xC0DE_0000_0000
# A flow is deleted when this number of later flows was added.
KEPT = 40


def message(kind: int, xid: int, body: bytes = b"") -> bytes:
    """Returns an OpenFlow 1.3 message."""
    return HEADER.pack(4, kind, HEADER.size + len(body), xid) + body


def flow_mod(command: int, number: int) -> bytes:
    """Returns the body that adds or deletes the flow with this number, which drops packets to an address."""
    match = struct.pack("!HBBH", 0x8000, 10, 2, 0x0800) + struct.pack("!HBBI", 0x8000, 24, 4, 0x0A80_0000 + number)
    match = struct.pack("!HH", 1, 4 + len(match)) + match
    match += bytes(-len(match) % 8)
    start = struct.pack("!QQBBHHHIIIHxx", BASE + number, 0, 0, command, 0, 0, 7, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return start + match


def changes(first: int) -> Iterator[tuple[int, int]]:
    """Returns the commands with the numbers of their flows, without end."""
    number = first
    while True:
        yield ADD, number
        if number >= first + KEPT and number % 3 == 0:
            yield DELETE_STRICT, number - KEPT
        number += 1


def run(address: str, first: int, log: str) -> None:
    """Makes changes until the connection ends."""
    host, port = address.rsplit(":", 1)
    peer = socket.create_connection((host, int(port)))
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = peer.makefile("rb")
    peer.sendall(message(HELLO, 1))
    print("connected", flush=True)
    with open(log, "w", encoding="ascii") as out:
        try:
            for xid, (command, number) in enumerate(changes(first), 2):
                peer.sendall(message(FLOW_MOD, xid, flow_mod(command, number)) + message(BARRIER_REQUEST, xid))
                while True:
                    head = stream.read(HEADER.size)
                    if len(head) < HEADER.size:
                        return
                    _, kind, length, reply = HEADER.unpack(head)
                    body = stream.read(length - HEADER.size)
                    if kind == ECHO_REQUEST:
                        peer.sendall(message(ECHO_REPLY, reply, body))
                    elif kind == ERROR:
                        sys.exit(f"the switch refuses a flow: {body.hex()}")
                    elif kind == BARRIER_REPLY and reply == xid:
                        break
                out.write(f"{command} {number} {time.time_ns()}\n")
        except (ConnectionError, BrokenPipeError):
            pass


def check(log: str, killed_ns: int, dump: str, limit_ms: int) -> None:
    """Compares the flows after the restart with the answered changes."""
    with open(log, encoding="ascii") as lines:
        answered = [tuple(map(int, line.split())) for line in lines]
    with open(dump, encoding="utf-8") as lines:
        cookies = re.findall(r"cookie=0x([0-9a-f]+)", lines.read())
    found = {number - BASE for number in (int(cookie, 16) for cookie in cookies) if BASE <= number < BASE + (1 << 32)}
    # The state after each number of changes. The last change may have been made without an answer.
    expected: set[int] = set()
    states = [frozenset(expected)]
    for command, number, _ in answered:
        expected = expected | {number} if command == ADD else expected - {number}
        states.append(frozenset(expected))
    if answered:
        following = changes(answered[0][1])
        for _ in answered:
            next(following)
        command, number = next(following)
        states.append(frozenset(expected | {number} if command == ADD else expected - {number}))
    kept = next((n for n in range(len(states) - 1, -1, -1) if states[n] == found), None)
    if kept is None:
        sys.exit(f"the flows are those after no change: {sorted(found ^ expected)[:10]} differ from the last state")
    certain = sum(1 for _, _, at in answered if at <= killed_ns - limit_ms * 1_000_000)
    if kept < certain:
        sys.exit(f"{certain} changes were answered {limit_ms} ms before the kill, but only {kept} are kept")
    print(f"{len(answered)} {max(0, len(answered) - kept)}")


def main(arguments: list[str]) -> None:
    """Runs one part."""
    match arguments:
        case ["run", address, first, log]:
            run(address, int(first), log)
        case ["check", log, killed_ns, dump, limit_ms]:
            check(log, int(killed_ns), dump, int(limit_ms))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
