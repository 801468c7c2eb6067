# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmark program `macswap`: Shunt's frames and DPDK driver without tables."""

import os

from machine import FORWARDING_CPU, ROOT, Failed, Process, Thread, text_of, wait_until
from switch import Switch

PROGRAM = os.path.join(ROOT, "target/release/macswap")


class Macswap(Switch):
    """The program that swaps the MAC addresses of all packets, with one forwarding thread."""

    name = "Shunt without tables"

    def __init__(self, folder, capture, buffers):
        super().__init__()
        self.read = 0
        self.begin(lambda: self._begin(os.path.join(folder, "macswap.log"), capture, buffers))

    def _begin(self, log, capture, buffers):
        program = os.environ.get("MACSWAP", PROGRAM)
        if not os.access(program, os.X_OK):
            raise Failed("%s is missing: run cargo build --release --package shunt-bench --features dpdk --bin macswap" % program)
        ports = ["net_pcap0,rx_pcap=%s,infinite_rx=1" % capture, "net_null0,no-rx=1"]
        self.process = self.started(Process([program, *ports, "--mbufs", str(buffers)], log, talks=True))
        self._wait()
        self.thread = Thread(self.process, "worker")
        self.workers = [self.thread]
        os.sched_setaffinity(self.thread.tid, {FORWARDING_CPU})
        wait_until("packets arrive", lambda: self.count() > 0, self.process)

    def _wait(self):
        """Returns the next line of the program's output."""
        wait_until("macswap answers", lambda: "\n" in text_of(self.process.log)[self.read :], self.process)
        line = text_of(self.process.log)[self.read :].split("\n")[0]
        self.read += len(line) + 1
        return line

    def count(self):
        return self.sent()[0]

    def sent(self):
        self.process.child.stdin.write(b"\n")
        self.process.child.stdin.flush()
        received, sent = map(int, self._wait().split())
        return received, sent
