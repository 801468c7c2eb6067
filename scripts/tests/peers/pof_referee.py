#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a switch with the interpreter of POF programs in controller/tests/pof.

    pof_referee.py settings APPLICATION             prints settings for the application, as JSON
    pof_referee.py marks APPLICATION                prints the numbers of entries and of low-latency entries
    pof_referee.py paths APPLICATION                prints each sequence of tables of low-latency packets
    pof_referee.py frame APPLICATION low|normal [N] prints ingress port and hex digits of a frame
    pof_referee.py compare APPLICATION PREFIX       sends frames through the switch
    pof_referee.py flood APPLICATION PREFIX low|normal COUNT [N]    sends one frame often

N is the number of the sequence of tables that the frame takes, from 0 on.

The hosts are the network namespaces PREFIX-h1 to PREFIX-h6, whose interface eth0 leads to the port with this
number. `compare` sends the frames of the application's tests, and copies with random changes. Each host must
receive exactly the frames that the interpreter sends, as often and with the same bytes. A frame that the
interpreter sends back to its ingress port is not expected, because an OUTPUT to this port sends nothing.
"""

import collections
import ctypes
import json
import os
import pathlib
import random
import select
import socket
import sys
import time

ROOT = pathlib.Path(__file__).parents[3]
sys.path[:0] = [str(ROOT / "controller/src"), str(ROOT / "controller/tests/pof")]

import frames  # noqa: E402

from shunt_controller.pof import Dialect, TableRef, TableType  # noqa: E402
from shunt_controller.pof.messages import LowLatency  # noqa: E402

import encapsulate  # noqa: E402  isort: skip
import ndn  # noqa: E402  isort: skip
import router  # noqa: E402  isort: skip
import test_pof_encapsulate as encapsulate_test  # noqa: E402  isort: skip
import test_pof_ndn as ndn_test  # noqa: E402  isort: skip
import test_pof_router as router_test  # noqa: E402  isort: skip
import test_pof_vehicles as vehicles_test  # noqa: E402  isort: skip
import vehicles  # noqa: E402  isort: skip

HOSTS = 6
ETH_P_ALL = 3
PACKET_OUTGOING = 4
CLONE_NEWNET = 0x40000000
WAIT_S = 20.0
# Time in which further frames would arrive after the expected ones.
QUIET_S = 0.5
CHANGED = 400
# Minimum length of a frame. Shunt pads frames from which it has removed bytes.
ETHERNET_BYTES = 60
# EtherTypes of VLAN tags, which the kernel removes from received frames.
TAGS = (0x8100, 0x88A8)
Frame = tuple[int, bytes]
# Sequences of tables for low-latency packets: IPv4 and IPv6; both forms of SEADP, and WSM; insertion and transit.
PATHS_MIN = {"router": 2, "vehicles": 3, "ndn": 1, "encapsulate": 2}

# One switch has all roles: circuit 7 begins at port 1, circuit 8 ends at port 1, circuit 5 passes.
CIRCUITS = {**encapsulate_test.FIRST, "transit": [{"circuit": 5, "output": 4, "low_latency": True}]}


def encapsulated(circuit: int, hops: int = 16, version: int = 1) -> bytes:
    """Returns a frame with the header of the encapsulation."""
    frame = encapsulate_test.FRAME
    header = b"\xff\x9b" + bytes((version << 4, hops)) + circuit.to_bytes(4)
    return frame[:12] + header + frame[12:]


APPLICATIONS = {
    "router": (
        router,
        router_test.SETTINGS,
        [(1, row[0]) for row in router_test.ROUTED + router_test.DROPPED],
    ),
    "vehicles": (
        vehicles,
        vehicles_test.SETTINGS,
        [(1, row[0]) for row in vehicles_test.FORWARDED + vehicles_test.DROPPED],
    ),
    "ndn": (
        ndn,
        ndn_test.SETTINGS,
        [(6, ndn_test.packet(row[0], *row[1], more=bytes(more))) for row in ndn_test.NAMES for more in (0, 6, 300)]
        + [(6, frame) for frame in ndn_test.DROPPED],
    ),
    "encapsulate": (
        encapsulate,
        CIRCUITS,
        [(1, encapsulate_test.FRAME), (3, encapsulate_test.FRAME), (5, encapsulate_test.FRAME)]
        + [(2, encapsulated(circuit, hops)) for circuit in (5, 7, 8) for hops in (0, 1, 255)]
        + [(2, encapsulated(5, version=2))],
    ),
}


def interpreter(name: str, dialect: Dialect):
    """Returns the interpreter with an application's program."""
    module, settings, _ = APPLICATIONS[name]
    switch = frames.run(module, settings, dialect)
    switch.pad_bytes = ETHERNET_BYTES
    return switch


def is_sent_as_is(frame: bytes) -> bool:
    """Returns whether the kernel delivers a frame unchanged, and no tag or length needs another treatment."""
    return len(frame) >= 14 and int.from_bytes(frame[12:14]) not in TAGS


def changed(given: list[Frame], rng: random.Random, count: int) -> list[Frame]:
    """Returns copies of frames with other bytes, lengths and ingress ports."""
    made = []
    while len(made) < count:
        port, frame = rng.choice(given)
        data = bytearray(frame)
        for _ in range(rng.choice([1, 1, 2, 4])):
            data[rng.randrange(min(len(data), 110))] = rng.choice([0, 1, 2, 0xFF, rng.randrange(256)])
        length = rng.choice([len(data), len(data), len(data), rng.randrange(14, len(data) + 1)])
        data = data[:length] + rng.randbytes(rng.choice([0, 0, 30]))
        if is_sent_as_is(bytes(data)):
            made.append((rng.choice([port, port, port, rng.randrange(1, HOSTS + 1)]), bytes(data)))
    return made


def enter(namespace: str) -> None:
    """Moves this thread to a network namespace."""
    with open(f"/run/netns/{namespace}", "rb") as file:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), namespace)


def open_hosts(prefix: str) -> dict[int, socket.socket]:
    """Returns a packet socket for each host."""
    made = {}
    for number in range(1, HOSTS + 1):
        enter(f"{prefix}-h{number}")
        made[number] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        made[number].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        made[number].bind(("eth0", 0))
    return made


def expected_of(name: str, dialect: Dialect, given: list[Frame]) -> tuple[collections.Counter[Frame], int]:
    """Returns the frames that hosts must receive, and the number of low-latency packets."""
    switch = interpreter(name, dialect)
    expected: collections.Counter[Frame] = collections.Counter()
    low_latency = 0
    for port, frame in given:
        outcome = switch.run(frame, port)
        expected.update(item for item in outcome.sent if item[0] != port)
        low_latency += outcome.low_latency and bool(outcome.sent)
    return expected, low_latency


def receive(hosts: dict[int, socket.socket], count: int) -> collections.Counter[Frame]:
    """Returns what hosts receive until a number of frames has arrived, and a short time longer."""
    numbers = {host.fileno(): number for number, host in hosts.items()}
    received: collections.Counter[Frame] = collections.Counter()
    end = time.monotonic() + WAIT_S
    while (now := time.monotonic()) < end:
        ready, _, _ = select.select(list(numbers), [], [], end - now)
        for descriptor in ready:
            data, address = hosts[numbers[descriptor]].recvfrom(65536)
            if address[2] != PACKET_OUTGOING:
                received[numbers[descriptor], data] += 1
        if received.total() >= count:
            end = min(end, time.monotonic() + QUIET_S)
            count = 1 << 60
    return received


def compare(name: str, prefix: str, dialect: Dialect) -> None:
    """Sends frames, and compares what hosts receive with the interpreter."""
    rng = random.Random(1)
    given = list(APPLICATIONS[name][2])
    given += changed(given, rng, CHANGED)
    rng.shuffle(given)
    expected, low_latency = expected_of(name, dialect, given)
    if expected.total() < 50 or len({port for port, _ in expected}) < 2:
        raise SystemExit(f"{name}: only {expected.total()} frames are expected; the comparison would be weak")
    hosts = open_hosts(prefix)
    for port, frame in given:
        hosts[port].send(frame)
        time.sleep(0.001)
    received = receive(hosts, expected.total())
    missing, surplus = expected - received, received - expected
    for what, frames_of in (("missing", missing), ("not expected", surplus)):
        for (port, frame), count in list(frames_of.items())[:5]:
            print(f"{what}: {count} at port {port}: {frame[:120].hex()} ({len(frame)} bytes)")
    print(
        f"{name}: {len(given)} frames sent, {received.total()} received, {low_latency} low-latency, "
        f"{missing.total()} missing, {surplus.total()} not expected"
    )
    if missing or surplus:
        raise SystemExit(1)


def one_per_path(name: str, kind: str, dialect: Dialect) -> dict[str, Frame]:
    """Returns one frame for each sequence of tables: forwarded frames that hit only low-latency entries, or
    ones that hit a normal entry."""
    switch = interpreter(name, dialect)
    made: dict[str, Frame] = {}
    for port, frame in APPLICATIONS[name][2]:
        outcome = switch.run(frame, port)
        if outcome.sent and outcome.sent[0][0] != port and outcome.low_latency == (kind == "low"):
            tables = [str(TableRef(TableType(hit.table_type), hit.table)) for hit in outcome.hits]
            made.setdefault(", ".join(tables), (port, frame))
    if len(made) < (PATHS_MIN[name] if kind == "low" else 1):
        raise SystemExit(f"{name} has the {kind} paths {list(made)}; some are missing")
    return made


def one(name: str, kind: str, dialect: Dialect, number: int = 0) -> Frame:
    """Returns the frame of a sequence of tables."""
    return list(one_per_path(name, kind, dialect).values())[number]


def main() -> None:
    """Runs a command."""
    command, name, *rest = sys.argv[1:]
    dialect = Dialect(os.environ.get("POF_DIALECT", Dialect.V1_4.value))
    if command == "settings":
        print(json.dumps(APPLICATIONS[name][1], indent=2))
    elif command == "marks":
        listed = [entry for entries in interpreter(name, dialect).entries.values() for entry in entries.values()]
        print(len(listed), sum(entry.low_latency == LowLatency.LOW_LATENCY for entry in listed))
    elif command == "paths":
        print("\n".join(one_per_path(name, "low", dialect)))
    elif command == "frame":
        port, frame = one(name, rest[0], dialect, *map(int, rest[1:]))
        print(port, frame.hex())
    elif command == "flood":
        port, frame = one(name, rest[1], dialect, *map(int, rest[3:]))
        host = open_hosts(rest[0])[port]
        for _ in range(int(rest[2])):
            host.send(frame)
            time.sleep(0.002)
    elif command == "compare":
        compare(name, rest[0], dialect)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
