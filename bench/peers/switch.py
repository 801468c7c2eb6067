# SPDX-License-Identifier: Apache-2.0
"""What Shunt and its peers have in common: processes, one thread that forwards, windows in which it is looked at."""

import dataclasses
import signal
import time

from machine import Failed


@dataclasses.dataclass
class Window:
    """What a thread did in a stretch of time."""

    packets: int
    cpu_s: float
    wall_s: float

    @property
    def mpps(self):
        """Millions of packets per CPU-second of the thread."""
        return self.packets / max(self.cpu_s, 1e-9) / 1e6

    @property
    def share(self):
        """How much of its CPU the thread had."""
        return self.cpu_s / self.wall_s

    @property
    def packets_per_us(self):
        """Millions of packets per second by the clock."""
        return self.packets / self.wall_s / 1e6


class Switch:
    """A switch with a capture in front and nothing behind. A subclass sets `process` and `thread`."""

    name = ""

    def __init__(self):
        self.processes = []
        self.process = None
        self.thread = None
        # All threads that forward.
        self.workers = []

    def started(self, process):
        """Notes a process that must end with this switch."""
        self.processes.append(process)
        return process

    def begin(self, steps):
        """Takes the steps; what they started does not survive their failure."""
        try:
            steps()
            if not self.thread.is_pinned():
                raise Failed("%s does not forward on the CPU that it should" % self.name)
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Ends all its processes, the last one first."""
        while self.processes:
            self.processes.pop().stop()

    def count(self):
        """Packets of which rules have decided up to now; those lost are none."""
        raise NotImplementedError

    def sent(self):
        """Packets of which rules have decided, and those of them that were sent."""
        raise NotImplementedError

    def pause(self):
        """Stands still, with all that it knows: others have the CPU and its caches to themselves."""
        self.process.signal(signal.SIGSTOP)

    def go_on(self):
        """Goes on."""
        self.process.signal(signal.SIGCONT)

    def settle(self):
        """What must be done after it goes on, before it is looked at."""

    def look(self, warm_up_s, window_s, read):
        """Lets it forward alone, and reads something at the beginning and at the end of the second stretch of it."""
        if not self.process.is_alive():
            raise Failed("%s has ended:\n%s" % (self.name, self.process.told()))
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
        """What its thread does alone, after a while to get warm."""

        def read():
            return self.count(), self.thread.cpu_ns(), time.monotonic()

        before, after = self.look(warm_up_s, window_s, read)
        packets, cpu_ns, wall_s = (b - a for a, b in zip(before, after))
        return Window(packets, cpu_ns / 1e9, wall_s)

    def shared_window(self, warm_up_s, window_s):
        """What all its threads that forward do together, beside whatever else wants their CPUs."""

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
        """Of its packets in such a window, those that it sends."""
        before, after = self.look(warm_up_s, window_s, self.sent)
        decided, sent = (b - a for a, b in zip(before, after))
        return sent / max(1, decided)
