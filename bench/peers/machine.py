# SPDX-License-Identifier: Apache-2.0
"""Resources of the machine: hugepages, child processes, and CPU time and scheduling of their threads."""

import contextlib
import glob
import os
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The forwarding thread runs on the second CPU. Everything else runs on the first.
CONTROL_CPU, FORWARDING_CPU = 0, 1
PAGES = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
COMPACT = "/proc/sys/vm/compact_memory"
PAGE_TRIES = 5
# Minimum share of the requested pages that the system must provide.
ENOUGH = 0.9
TERM_S = 10
FIRST_NICE = "-19"


class Failed(Exception):
    """A step failed. The message is for the user."""


def text_of(path):
    """Returns the text of a file."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def wait_until(what, is_so, process=None, limit_s=30):
    """Waits until `is_so()` returns true. Raises Failed after the time limit, or if the process ends
    first."""
    end = time.monotonic() + limit_s
    while not is_so():
        if process is not None and not process.is_alive():
            raise Failed("the process ended before this was true: %s\n%s" % (what, process.output()))
        if time.monotonic() > end:
            raise Failed("timed out after %d s, waiting for: %s\n%s" % (limit_s, what, process.output() if process else ""))
        time.sleep(0.02)


class Pages:
    """Allocates 2 MiB hugepages in addition to those in use, and frees them at the end."""

    def __init__(self, count):
        self.count, self.added = count, 0

    def __enter__(self):
        before = self._now()
        for _ in range(PAGE_TRIES):
            self._set(before + self.count)
            self.added = self._now() - before
            if self.added >= self.count * ENOUGH:
                return self
            # Enough memory is free, but it is fragmented. Compact it before the next attempt.
            with open(COMPACT, "w", encoding="ascii") as file:
                file.write("1")
        self.__exit__()
        raise Failed(
            "%d hugepages are needed, but the system has memory for only %d: free some memory, or run this after a reboot"
            % (self.count, self.added)
        )

    def __exit__(self, *_):
        self._set(max(0, self._now() - self.added))

    def _now(self):
        return int(text_of(PAGES))

    def _set(self, count):
        with open(PAGES, "w", encoding="ascii") as file:
            file.write(str(count))


class Process:
    """A program whose output goes to a file. It is killed when this process ends for any reason."""

    def __init__(self, command, log, environment=None, talks=False, cpus=(CONTROL_CPU,)):
        self.log = log
        with open(log, "wb") as output:
            self.child = subprocess.Popen(
                ["taskset", "-c", ",".join(map(str, cpus)), "setpriv", "--pdeathsig", "KILL", "--", *command],
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                # Ctrl-C reaches only this process, which stops the others in order.
                start_new_session=True,
            )
        self.pid = self.child.pid
        before_others(self.pid)

    def is_alive(self):
        """Returns whether the process is running."""
        return self.child.poll() is None

    def output(self):
        """Returns the end of the program's output."""
        return text_of(self.log)[-2000:]

    def signal(self, number):
        """Sends a signal to the process."""
        if self.is_alive():
            os.kill(self.pid, number)

    def stop(self):
        """Stops the process, even if it is paused. Kills it if it does not end."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)
        try:
            self.child.wait(TERM_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


class Thread:
    """The thread of a process that forwards, found by the start of its name."""

    def __init__(self, process, name):
        self.folder = "/proc/%d/task" % process.pid
        wait_until("there is a thread %s" % name, lambda: self._find(name), process)
        self.tid = self._find(name)

    def _find(self, name):
        for path in glob.glob(self.folder + "/*/comm"):
            try:
                if text_of(path).startswith(name):
                    return int(path.split("/")[-2])
            except OSError:
                continue
        return None

    def cpu_ns(self):
        """Returns the CPU time of the thread in ns."""
        return int(text_of("%s/%d/schedstat" % (self.folder, self.tid)).split()[0])

    def is_pinned(self):
        """Returns whether the thread is pinned to the forwarding CPU."""
        return os.sched_getaffinity(self.tid) == {FORWARDING_CPU}

    def go_first(self, first):
        """Schedules the thread before all ordinary threads of its CPU, or as one of them."""
        policy, priority = (os.SCHED_FIFO, 1) if first else (os.SCHED_OTHER, 0)
        os.sched_setscheduler(self.tid, policy, os.sched_param(priority))


def before_others(process):
    """Raises the priority of a process's session on the control CPU, because the kernel divides CPU time
    among sessions."""
    path = "/proc/%s/autogroup" % process
    if os.path.exists(path):
        with contextlib.suppress(OSError), open(path, "w", encoding="ascii") as file:
            file.write(FIRST_NICE)


def end_in_order():
    """Makes signals that end this process raise SystemExit, so that context managers clean up."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    # Shells make their background processes ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def check():
    """Raises Failed with an explanation if the machine does not allow measurements."""
    if os.geteuid() != 0:
        raise Failed("this needs root, because it sets hugepages and scheduling")
    if not {CONTROL_CPU, FORWARDING_CPU} <= os.sched_getaffinity(0):
        raise Failed("this needs CPUs %d and %d" % (CONTROL_CPU, FORWARDING_CPU))
    if not os.path.exists(PAGES):
        raise Failed("this system has no hugepages of 2 MiB (%s)" % PAGES)
