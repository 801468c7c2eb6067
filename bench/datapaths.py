#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures many datapaths without traffic in one process of `shunt run`.

Each datapath has ports without devices (`driver = "none"`), and a connection to a controller in this program,
or retries to reach one that is absent. Figures are written to target/report/datapaths.jsonl: the time from the
start of the process until all datapaths are ready and connected, threads, resident memory of a datapath, and
the processor time of the idle process as a share of one core.
"""

from __future__ import annotations

import argparse
import os
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "lab"))
# pylint: disable=wrong-import-position
import program
from report import Report
from rooms import Failed

SHUNT = os.environ.get("SHUNT", str(ROOT / "target/release/shunt"))
REPORT = str(ROOT / "target/report/datapaths.jsonl")
START_S = 15.0
IDLE_PERCENT = 3.0
# Threads besides a control thread for each CPU.
THREADS_BESIDE_MAX = 4
# Longest time until all datapaths are connected.
PATIENCE_S = 120.0
# Types of OpenFlow messages.
HELLO, ECHO_REQUEST, ECHO_REPLY = 0, 2, 3


class Controller:
    """A controller that greets all switches and answers echo requests, in a thread of this program."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
        self.port = self.listener.getsockname()[1]
        self.greeted = 0
        self._stop = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread and all connections."""
        self._stop = True
        self._thread.join()

    def _run(self) -> None:
        ready = selectors.DefaultSelector()
        self.listener.setblocking(False)
        ready.register(self.listener, selectors.EVENT_READ, None)
        while not self._stop:
            for key, _ in ready.select(0.1):
                if key.data is None:
                    stream, _ = self.listener.accept()
                    stream.sendall(struct.pack("!BBHI", 4, HELLO, 8, 1))
                    ready.register(stream, selectors.EVENT_READ, bytearray())
                elif not self._read(key.fileobj, key.data):
                    ready.unregister(key.fileobj)
                    key.fileobj.close()
        for key in list(ready.get_map().values()):
            key.fileobj.close()

    def _read(self, stream: socket.socket, data: bytearray) -> bool:
        try:
            received = stream.recv(65536)
        except ConnectionError:
            return False
        data += received
        while len(data) >= 8:
            _, kind, length, xid = struct.unpack_from("!BBHI", data)
            if length < 8 or len(data) < length:
                break
            if kind == HELLO:
                self.greeted += 1
            elif kind == ECHO_REQUEST:
                stream.sendall(struct.pack("!BBHI", 4, ECHO_REPLY, length, xid) + data[8:length])
            del data[:length]
        return bool(received)


def datapath_lines(folder: Path, number: int, controller: int) -> list[str]:
    """Returns the configuration of a datapath without its ports. `controller` is the TCP port of its
    controller."""
    return [
        "[[datapath]]",
        f"id = {number}",
        f'control = "{folder}/{number}.sock"',
        "[datapath.openflow]",
        f'controllers = ["tcp:127.0.0.1:{controller}"]',
        'fail_mode = "secure"',
    ]


def configuration(folder: Path, datapaths: int, ports: int, controller: int, port: str) -> str:
    """Returns the configuration. `port` has the settings of a port besides its number and name."""
    lines = ["[[worker]]"] if "workers" in port else []
    for number in range(1, datapaths + 1):
        lines += datapath_lines(folder, number, controller)
        for at in range(1, ports + 1):
            lines += ["[[datapath.port]]", f"number = {at}", f'name = "p{at}"', port]
    return "\n".join(lines) + "\n"


def status(pid: int, name: str) -> int:
    """Returns a number of /proc/PID/status."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise Failed(f"the system reports no {name}")


def processor_s(pid: int) -> float:
    """Returns the processor time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def switches(folder: Path, text: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs `shunt run`, whose messages go to a file, and ends it."""
    config = folder / "datapaths.toml"
    config.write_text(text, encoding="utf-8")
    with open(folder / "log", "wb") as log:
        with subprocess.Popen([SHUNT, "run", "-c", str(config)], stderr=log) as process:
            try:
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()


def wait_until_ready(process: subprocess.Popen[bytes], log: Path, datapaths: int, controller: Controller | None) -> None:
    """Waits until all datapaths are ready, and connected if there is a controller."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise Failed("shunt run ended: " + log.read_text(encoding="utf-8", errors="replace")[-2000:])
        is_ready = log.read_bytes().count(b"shunt: ready") >= datapaths
        if is_ready and (controller is None or controller.greeted >= datapaths):
            return
        time.sleep(0.02)
    raise Failed(f"not all datapaths were ready within {PATIENCE_S:.0f} s")


def measure(options: argparse.Namespace, report: Report, is_connected: bool) -> bool:
    """Runs one case. Returns whether the figures clear their bars."""
    case = f"{options.datapaths} datapaths, controller {'connected' if is_connected else 'absent'}"
    controller = Controller() if is_connected else None
    try:
        with tempfile.TemporaryDirectory(prefix="shunt-datapaths-") as name:
            folder = Path(name)
            # Port 1 refuses connections.
            port = controller.port if controller else 1
            text = configuration(folder, options.datapaths, options.ports, port, options.port)
            begin = time.monotonic()
            with switches(folder, text) as process:
                wait_until_ready(process, folder / "log", options.datapaths, controller)
                start_s = time.monotonic() - begin
                time.sleep(options.settle)
                before, begin = processor_s(process.pid), time.monotonic()
                time.sleep(options.idle)
                percent = 100 * (processor_s(process.pid) - before) / (time.monotonic() - begin)
                threads, kb = status(process.pid, "Threads"), status(process.pid, "VmRSS")
                begin = time.monotonic()
            if process.returncode != 0:
                raise Failed(f"shunt run ended with {process.returncode}")
            stop_s = time.monotonic() - begin
    finally:
        if controller:
            controller.close()
    report.exact("time until all datapaths are ready", case, "s", round(start_s, 2), f"< {START_S:g}", start_s < START_S)
    report.exact("processor time when idle", case, "% of a core", round(percent, 2), f"< {IDLE_PERCENT:g}", percent < IDLE_PERCENT)
    most = (os.cpu_count() or 1) + THREADS_BESIDE_MAX
    report.exact("threads", case, "threads", threads, f"<= {most}", threads <= most)
    report.exact("resident memory of a datapath", case, "kB", kb // options.datapaths)
    report.exact("time to end", case, "s", round(stop_s, 2))
    return start_s < START_S and percent < IDLE_PERCENT and threads <= most


def main() -> None:
    """Measures both cases. The exit code is 1 if a figure misses its bar."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--datapaths", type=int, default=300, help="number of datapaths (default: 300)")
    parser.add_argument("--ports", type=int, default=16, help="ports of each datapath (default: 16)")
    parser.add_argument("--port", default='driver = "none"', help="settings of a port (default: driver = \"none\")")
    parser.add_argument("--settle", type=float, default=5, help="seconds before the idle time (default: 5)")
    parser.add_argument("--idle", type=float, default=20, help="seconds of the idle time (default: 20)")
    parser.add_argument("--report", default=REPORT, help="file of the figures (default: target/report/datapaths.jsonl)")
    options = parser.parse_args()
    options.port = options.port.replace(";", "\n")
    with program.ending("run make"):
        report = Report(options.report)
        results = [measure(options, report, is_connected) for is_connected in (True, False)]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
