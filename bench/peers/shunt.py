# SPDX-License-Identifier: Apache-2.0
"""Shunt with one worker per forwarding CPU, from a capture to a null device."""

import dataclasses
import json
import os
import socket

from machine import CONTROL_CPU, FORWARDING_CPU, ROOT, Failed, Process, Thread, wait_until
from switch import Switch

PROGRAM = os.path.join(ROOT, "target/release/shunt")
# Number of records of each LUT (the switch's default), and number of path records.
LUT_ENTRIES, RECORDS = 4096, 16_384
# Drop reason of packets that a rule drops on purpose.
BY_RULE = "no_output"
CONFIG = """control = "%(control)s"
[dpdk]
eal = ["--in-memory", "--no-pci", "--no-telemetry", "--log-level=error"]
mbufs = %(buffers)d
%(workers)s[[datapath]]
id = 1
%(settings)s
[[datapath.port]]
number = 1
name = "p1"
driver = "dpdk"
device = "net_pcap0%(captures)s,infinite_rx=1"
workers = %(numbers)s
[[datapath.port]]
number = 2
name = "p2"
driver = "dpdk"
device = "%(output)s"
workers = %(numbers)s
"""
# An output device without input, and an output device whose input is a capture, played once. Both discard
# sent packets.
NOTHING, ONCE = "net_null0,no-rx=1", "net_pcap1,rx_pcap=%s"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Configuration of Shunt. With `defaults`, only required settings are present. `records` is the number of
    path records, 0 without the express path, or None for a build that has no express path. With `port_cache`,
    the port cache is nonblocking, and its searches are answered by the worker's own tables."""

    lut_entries: int = LUT_ENTRIES
    marked: bool = True
    ffp: bool = True
    defaults: bool = False
    records: int | None = 0
    port_cache: bool = False

    def words(self):
        """Returns the description for a row of a table."""
        if self.defaults:
            return "defaults: LUTs of %d, path records, no rule marked low-latency" % LUT_ENTRIES
        express = ", %d path records" % self.records if self.records else ""
        express += ", port cache" * self.port_cache
        if not self.ffp:
            return "lanes and FFP off" + express
        marked = "all" if self.marked else "no"
        return "LUTs of %d, %s rules marked low-latency, lanes off%s" % (self.lut_entries, marked, express)

    def lines(self):
        """Returns the lines for the configuration file."""
        if self.defaults:
            return ""
        # Lanes would drop packets outside the fast-forwarding path when the load exceeds the capacity.
        lines = '[datapath.openflow]\nfail_mode = "secure"\n'
        lines += "[datapath.lanes]\nenabled = false\n[datapath.ffp]\nenabled = %s\nlut_entries = %d"
        lines %= (str(self.ffp).lower(), self.lut_entries)
        if self.records is not None:
            lines += "\n[datapath.express]\nenabled = %s" % str(self.records > 0).lower()
        if self.records:
            lines += "\nrecords = %d" % self.records
        if self.port_cache:
            lines += '\n[datapath.port_cache]\nmode = "nonblocking"'
        return lines


def without_ffp(express):
    """Returns settings without the fast-forwarding path. If `express` is "on", they have path records."""
    return Settings(marked=False, ffp=False, records=RECORDS if express == "on" else 0)


class Shunt(Switch):
    """The switch under test, with a worker on each of some CPUs. Its flows are marked low-latency by the
    keyword of the flow syntax."""

    name = "Shunt"

    def __init__(self, folder, lines, capture, wanted, buffers, cpus=(FORWARDING_CPU,), once=None, program=None):
        """`once` is a capture that port 2 receives once. `program` is another build of Shunt."""
        super().__init__()
        self.folder, self.cpus, self.wanted = folder, cpus, wanted
        self.output = ONCE % once if once else NOTHING
        self.program = program or os.environ.get("SHUNT", PROGRAM)
        self.begin(lambda: self._begin(lines, capture, wanted, buffers))

    def _path(self, name):
        return os.path.join(self.folder, "shunt." + name)

    def _write(self, name, text):
        with open(self._path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self._path(name)

    def _begin(self, lines, capture, wanted, buffers):
        program = self.program
        if not os.access(program, os.X_OK):
            raise Failed("%s is missing: run cargo build --release --package shunt --features dpdk" % program)
        idle = "" if wanted.defaults else 'idle = "busy"\n'
        values = {
            "control": self._path("control"),
            "buffers": buffers,
            "settings": wanted.lines(),
            "workers": "".join("[[worker]]\ncpu = %d\n%s" % (cpu, idle) for cpu in self.cpus),
            "numbers": list(range(len(self.cpus))),
            "output": self.output,
            # All queues read the same file.
            "captures": (",rx_pcap=" + capture) * len(self.cpus),
        }
        marks = "low_latency," if wanted.marked and not wanted.defaults else ""
        flows = self._write("flows", "".join(marks + line + "\n" for line in lines))
        config = self._write("toml", CONFIG % values)
        command = [program, "run", "-c", config, "--flows", flows]
        # The worker pins itself to its CPU. This fails unless the process may use that CPU.
        both = (CONTROL_CPU, FORWARDING_CPU)
        self.process = self.started(Process(command, self._path("log"), cpus=both))
        try:
            wait_until("shunt is ready", lambda: "ready" in self.process.output(), self.process)
        except Failed as failed:
            raise Failed("%s\nDPDK ports need a build of Shunt with `--features dpdk`" % failed) from None
        self.thread = Thread(self.process, "worker")
        names = ["worker-%d" % number for number in range(len(self.cpus))]
        self.workers = [Thread(self.process, name) for name in names]
        keep = {worker.tid for worker in self.workers}
        for thread in os.listdir("/proc/%d/task" % self.process.pid):
            if int(thread) not in keep:
                os.sched_setaffinity(int(thread), {CONTROL_CPU})
        wait_until("packets arrive", lambda: self.count() > 0, self.process)

    def ask(self, what):
        """Returns the output of `shunt show WHAT --json`, without starting that program."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(self._path("control"))
            connection.sendall(json.dumps({"id": 1, "request": what}).encode() + b"\n")
            with connection.makefile("r", encoding="utf-8") as reader:
                answer = json.loads(reader.readline())
        if "done" not in answer:
            raise Failed("shunt reports an error: %s" % answer.get("error"))
        return answer["done"]

    def count(self):
        return self.sent()[0]

    def sent(self):
        counters = self.ask("counters")
        return counters["forwarded"] + counters["dropped"][BY_RULE], counters["forwarded"]

    def lost(self):
        """Returns the number of packets dropped for lack of space, by drop reason."""
        dropped = self.ask("counters")["dropped"]
        return {reason: count for reason, count in dropped.items() if count and reason != BY_RULE}

    def fast(self):
        """Returns the number of packets received, and the number of packets that a path record forwarded or,
        without path records, that stayed on the fast-forwarding path in all tables."""
        found = self.ask("ffp")
        hits = self.ask("express")["sum"]["hits"] if self.wanted.records else found["fast"]
        return found["received"], hits

    def learned(self):
        """Returns the number of learned MAC addresses."""
        return len(self.ask("macs")["macs"])
