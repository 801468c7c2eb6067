# SPDX-License-Identifier: Apache-2.0
"""Common parts of Shunt and its peers: processes, a forwarding thread, and windows of measurement."""

import dataclasses
import signal
import time

from machine import Failed


@dataclasses.dataclass
class Window:
    """Work of a thread within a period."""

    packets: int
    cpu_s: float
    wall_s: float

    @property
    def mpps(self):
        """Millions of packets per CPU-second of the thread."""
        return self.packets / max(self.cpu_s, 1e-9) / 1e6

    @property
    def share(self):
        """Share of the period in which the thread had its CPU."""
        return self.cpu_s / self.wall_s

    @property
    def packets_per_us(self):
        """Millions of packets per second of wall-clock time."""
        return self.packets / self.wall_s / 1e6


class Switch:
    """A switch that forwards from a capture to a null device. A subclass sets `process` and `thread`."""

    name = ""

    def __init__(self):
        self.processes = []
        self.process = None
        self.thread = None
        # All forwarding threads.
        self.workers = []

    def started(self, process):
        """Adds a process that must end with this switch."""
        self.processes.append(process)
        return process

    def begin(self, steps):
        """Runs the start-up steps. If one fails, stops the processes that the steps have started."""
        try:
            steps()
            if not self.thread.is_pinned():
                raise Failed("%s does not forward on the intended CPU" % self.name)
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Stops all processes, the last one first."""
        while self.processes:
            self.processes.pop().stop()

    def count(self):
        """Returns the number of packets processed by rules so far, without lost packets."""
        raise NotImplementedError

    def sent(self):
        """Returns the number of packets processed by rules, and the number of packets sent."""
        raise NotImplementedError

    def pause(self):
        """Pauses the switch, so that other programs have the CPU and its caches to themselves. Its state is
        kept."""
        self.process.signal(signal.SIGSTOP)

    def go_on(self):
        """Resumes the switch after a pause."""
        self.process.signal(signal.SIGCONT)

    def settle(self):
        """Prepares for a measurement after a pause."""

    def look(self, warm_up_s, window_s, read):
        """Forwards alone and calls `read` at the start and end of the window, which follows the warm-up."""
        if not self.process.is_alive():
            raise Failed("%s has ended:\n%s" % (self.name, self.process.output()))
        self.go_on()
        try:
            self.thread.go_first(True)
            self.settle()
            time.sleep(warm_up_s)
            before = read()
            time.sleep(window_s)
            return before, read()
        finally:
            self.thread.go_first(False)
            self.pause()

    def window(self, warm_up_s, window_s):
        """Measures the thread while it forwards alone, after a warm-up."""

        def read():
            return self.count(), self.thread.cpu_ns(), time.monotonic()

        before, after = self.look(warm_up_s, window_s, read)
        packets, cpu_ns, wall_s = (b - a for a, b in zip(before, after))
        return Window(packets, cpu_ns / 1e9, wall_s)

    def shared_window(self, warm_up_s, window_s):
        """Measures all forwarding threads together, while other programs may use their CPUs."""

        def read():
            return self.count(), sum(worker.cpu_ns() for worker in self.workers), time.monotonic()

        self.go_on()
        try:
            time.sleep(warm_up_s)
            before = read()
            time.sleep(window_s)
            after = read()
        finally:
            self.pause()
        packets, cpu_ns, wall_s = (b - a for a, b in zip(before, after))
        return Window(packets, cpu_ns / 1e9, wall_s)

    def sent_share(self, warm_up_s, window_s):
        """Returns the number of packets sent in a window, as a share of the packets processed."""
        before, after = self.look(warm_up_s, window_s, self.sent)
        decided, sent = (b - a for a, b in zip(before, after))
        return sent / max(1, decided)
