# SPDX-License-Identifier: Apache-2.0
"""dpdk-testpmd in mode macswap: the cost of receiving a packet, touching it and sending it, without a lookup.
"""

import os
import re

from machine import CONTROL_CPU, FORWARDING_CPU, ROOT, Process, Thread, text_of, wait_until
from switch import Switch

PROMPT = "testpmd> "
INSTALLED = "/usr/bin/dpdk-testpmd"
UNPACKED = os.path.join(ROOT, "target/tools/dpdk/usr/bin/dpdk-testpmd")


class Testpmd(Switch):
    """testpmd, controlled through its prompt."""

    name = "testpmd macswap"

    def __init__(self, folder, capture, buffers=32768, cpus=(FORWARDING_CPU,)):
        super().__init__()
        self.begin(lambda: self._begin(os.path.join(folder, "testpmd.log"), capture, buffers, cpus))

    def _begin(self, log, capture, buffers, cpus):
        # testpmd needs a core number for its prompt. Any CPU may be mapped to this number.
        cores = ",".join(["0@%d" % CONTROL_CPU] + ["%d@%d" % (number + 1, cpu) for number, cpu in enumerate(cpus)])
        command = [INSTALLED if os.access(INSTALLED, os.X_OK) else UNPACKED, "--lcores", cores, "--main-lcore", "0"]
        # Each queue reads the same file.
        files = (",rx_pcap=" + capture) * len(cpus)
        command += ["--in-memory", "--no-pci", "--no-telemetry", "--vdev", "net_pcap0%s,infinite_rx=1" % files]
        command += ["--vdev", "net_null0,no-rx=1", "--", "-i", "--nb-cores=%d" % len(cpus), "--forward-mode=macswap"]
        command += ["--rxq=%d" % len(cpus), "--txq=%d" % len(cpus)]
        command += ["--total-num-mbufs=%d" % buffers, "--no-flush-rx"]
        # Without a terminal, the program would buffer its output.
        self.process = self.started(Process(["stdbuf", "-oL", *command], log, talks=True, cpus=(CONTROL_CPU, *cpus)))
        self.read = 0
        self._wait()
        self._tell("start")
        self.workers = [Thread(self.process, "rte-worker-%d" % (number + 1)) for number in range(len(cpus))]
        self.thread = self.workers[0]
        wait_until("packets arrive", lambda: self.count() > 0, self.process)

    def _wait(self):
        wait_until("testpmd answers", lambda: PROMPT in text_of(self.process.log)[self.read :], self.process)
        text = text_of(self.process.log)
        said, self.read = text[self.read :], len(text)
        return said

    def _tell(self, line):
        self.process.child.stdin.write(line.encode() + b"\n")
        self.process.child.stdin.flush()
        return self._wait()

    def count(self):
        return self.sent()[0]

    def sent(self):
        said = self._tell("show port stats all")
        received, _, _, sent = (int(number) for number in re.findall(r"[RT]X-packets:\s*(\d+)", said))
        return received, sent
