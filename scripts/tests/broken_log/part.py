#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes beside the switch. Each process prints an empty line when it is ready, and works until SIGTERM.

At its end it prints its observations as a JSON object. Times are wall-clock times in ns. Waits of more than
5 ms are listed as [begin, end]."""

import fcntl
import json
import os
import signal
import socket
import struct
import sys
import time

LONG_NS = 5_000_000
PORT = 9000
LISTEN = ("127.0.0.1", 6654)
HELLO_10 = struct.pack("!BBHI", 1, 0, 8, 1)
HELLO_13 = struct.pack("!BBHI", 4, 0, 8, 1)
SO_TIMESTAMPNS = 35

stopped = False


def stop(*_):
    global stopped
    stopped = True


def sender(address):
    """Sends a numbered packet every ms."""
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.connect((address, PORT))
    sent = 0
    while not stopped:
        try:
            peer.send(struct.pack("!Q", time.time_ns()))
            sent += 1
        except ConnectionRefusedError:
            pass
        time.sleep(0.001)
    return {"sent": sent}


def receiver():
    """Records when packets were sent and when the kernel received them."""
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    peer.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    peer.bind(("", PORT))
    peer.settimeout(0.1)
    received, waits = 0, []
    while not stopped:
        try:
            payload, extra, _, _ = peer.recvmsg(64, 64)
        except TimeoutError:
            continue
        seconds, ns = struct.unpack("qq", extra[0][2])
        note(waits, struct.unpack("!Q", payload)[0], seconds * 1_000_000_000 + ns)
        received += 1
    return {"received": received, "waits": waits}


def note(waits, begin, end):
    if end - begin >= LONG_NS:
        waits.append([begin, end])


def control(path):
    """Sends requests, each on a separate connection."""
    answers, waits = 0, []
    while not stopped:
        begin = time.time_ns()
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(60)
            peer.connect(path)
            peer.sendall(b'{"id":1,"request":"ports"}\n')
            assert b'"done"' in peer.makefile("rb").readline()
        note(waits, begin, time.time_ns())
        answers += 1
        time.sleep(0.01)
    return {"answers": answers, "waits": waits}


def openflow():
    """Sends echo requests as a well-behaved controller."""
    peer = socket.create_connection(LISTEN, timeout=60)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream = peer.makefile("rb")
    peer.sendall(HELLO_13)
    answers, waits = 0, []
    while not stopped:
        begin = time.time_ns()
        answers += 1
        peer.sendall(struct.pack("!BBHI", 4, 2, 8, answers))
        # Other messages may come before the reply.
        while True:
            _, kind, length, number = struct.unpack("!BBHI", stream.read(8))
            stream.read(length - 8)
            if (kind, number) == (3, answers):
                break
        note(waits, begin, time.time_ns())
        time.sleep(0.01)
    return {"answers": answers, "waits": waits}


def storm():
    """Connects as OpenFlow 1.0 peers, one after the other. The switch refuses each peer with a line in the
    log."""
    peers = 0
    while not stopped:
        with socket.create_connection(LISTEN, timeout=60) as peer:
            peer.sendall(HELLO_10)
            try:
                while peer.recv(256):
                    pass
            except ConnectionResetError:
                pass
        peers += 1
        time.sleep(0.002)
    return {"peers": peers}


def flaps():
    """Sets an interface down and up repeatedly."""
    control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def turn(up):
        request = bytearray(struct.pack("16sh22x", b"eth0", 0))
        flags = struct.unpack_from("h", fcntl.ioctl(control, 0x8913, bytes(request)), 16)[0]
        struct.pack_into("h", request, 16, flags | 1 if up else flags & ~1)
        fcntl.ioctl(control, 0x8914, bytes(request))

    count = 0
    while not stopped:
        turn(False)
        time.sleep(0.01)
        turn(True)
        time.sleep(0.02)
        count += 1
    return {"flaps": count}


def witness(cpu):
    """Sleeps on a core. A sleep that lasts too long shows that other programs used the core or that the
    machine was stopped."""
    os.sched_setaffinity(0, {int(cpu)})
    waits = []
    before = time.time_ns()
    while not stopped:
        time.sleep(0.001)
        now = time.time_ns()
        note(waits, before, now)
        before = now
    return {"waits": waits}


def delays(actors):
    """Measures how long the threads of some processes have waited for a core. Records long waits."""
    files = {}
    for name, pid in json.loads(actors).items():
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/comm") as comm:
                label = f"{name} {comm.read().strip()}" if name == "switch" else name
            files[f"{label} {task}"] = open(f"/proc/{pid}/task/{task}/schedstat", "rb", buffering=0)
    waits = {name: [] for name in files}
    before = {name: None for name in files}
    while not stopped:
        for name, file in files.items():
            file.seek(0)
            try:
                delay = int(file.read().split()[1])
            except (ProcessLookupError, IndexError):
                continue
            now = time.time_ns()
            # Each wait is recorded as begin, end, and time waited.
            if before[name] and delay - before[name][1] >= LONG_NS // 5:
                waits[name].append([before[name][0], now, delay - before[name][1]])
            before[name] = (now, delay)
        time.sleep(0.005)
    return {"waits": waits}


def main():
    signal.signal(signal.SIGTERM, stop)
    parts = [sender, receiver, control, openflow, storm, flaps, witness, delays]
    work = {part.__name__: part for part in parts}[sys.argv[1]]
    print(flush=True)
    print(json.dumps(work(*sys.argv[2:])))


if __name__ == "__main__":
    main()
