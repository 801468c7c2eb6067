#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A service manager for tests: prints the reports of sd_notify(3) that arrive at a socket, one variable per line.

A line has the time, the process ID of the sender, and the variable.

With `--stop THREAD PID SECONDS`, stops one thread of a process for a time, as a debugger does.
"""

import ctypes
import os
import socket
import struct
import sys
import time
from pathlib import Path

PTRACE_DETACH = 17
PTRACE_SEIZE = 0x4206
PTRACE_INTERRUPT = 0x4207
WALL = 0x40000000
# Process, user and group.
CREDENTIALS = struct.Struct("3i")


def listen(path: str) -> None:
    """Prints the reports until the process is ended."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as endpoint:
        endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        endpoint.bind(path)
        os.chmod(path, 0o666)
        while True:
            report, ancillary, _, _ = endpoint.recvmsg(65_536, socket.CMSG_SPACE(CREDENTIALS.size))
            # The kernel adds the credentials to each message.
            sender, _, _ = CREDENTIALS.unpack(ancillary[0][2])
            for line in report.decode().splitlines():
                print(f"{time.monotonic():.3f} {sender} {line}", flush=True)


def stop(name: str, process: int, seconds: float) -> None:
    """Stops the thread with this name."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    thread = next(int(task.name) for task in tasks if (task / "comm").read_text().strip() == name)
    libc = ctypes.CDLL(None, use_errno=True)

    def ptrace(request: int) -> None:
        if libc.ptrace(ctypes.c_long(request), ctypes.c_long(thread), None, None) != 0:
            raise OSError(ctypes.get_errno(), f"ptrace {request:#x} of thread {thread}")

    ptrace(PTRACE_SEIZE)
    ptrace(PTRACE_INTERRUPT)
    os.waitpid(thread, WALL)
    time.sleep(seconds)
    ptrace(PTRACE_DETACH)


def main(arguments: list[str]) -> None:
    match arguments:
        case ["--stop", name, process, seconds]:
            stop(name, int(process), float(seconds))
        case [path]:
            listen(path)
        case _:
            sys.exit("usage: notified.py SOCKET | notified.py --stop THREAD PID SECONDS")


if __name__ == "__main__":
    main(sys.argv[1:])
