# SPDX-License-Identifier: Apache-2.0
"""The machine: hugepages that are given back, processes that end with this one, CPU time of their threads."""

import contextlib
import glob
import os
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Everything but forwarding runs on the first, the thread that forwards on the second.
CONTROL_CPU, FORWARDING_CPU = 0, 1
PAGES = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
COMPACT = "/proc/sys/vm/compact_memory"
PAGE_TRIES = 5
# Of the pages asked for, what will do.
ENOUGH = 0.9
TERM_S = 10
FIRST_NICE = "-19"


class Failed(Exception):
    """A step did not do what it should; the text is for the user."""


def text_of(path):
    """A file's text."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def wait_until(what, is_so, process=None, limit_s=30):
    """Returns when `is_so()`; fails when that takes too long, or the process ends before."""
    end = time.monotonic() + limit_s
    while not is_so():
        if process is not None and not process.is_alive():
            raise Failed("waited until %s: the process ended\n%s" % (what, process.told()))
        if time.monotonic() > end:
            raise Failed("waited %d s in vain until %s\n%s" % (limit_s, what, process.told() if process else ""))
        time.sleep(0.02)


class Pages:
    """Hugepages of 2 MiB, beside those that others use; what was added is taken away at the end."""

    def __init__(self, count):
        self.count, self.added = count, 0

    def __enter__(self):
        before = self._now()
        for _ in range(PAGE_TRIES):
            self._set(before + self.count)
            self.added = self._now() - before
            if self.added >= self.count * ENOUGH:
                return self
            # Memory enough, but in pieces.
            with open(COMPACT, "w", encoding="ascii") as file:
                file.write("1")
        self.__exit__()
        raise Failed(
            "of %d hugepages the system has memory for %d only: free some memory, or run this after a fresh start"
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
    """A program; what it prints goes to a file. It dies with this process, whatever ends that."""

    def __init__(self, command, log, environment=None, talks=False, cpus=(CONTROL_CPU,)):
        self.log = log
        with open(log, "wb") as output:
            self.child = subprocess.Popen(
                ["taskset", "-c", ",".join(map(str, cpus)), "setpriv", "--pdeathsig", "KILL", "--", *command],
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                # Ctrl-C is for this process, which ends the others in order.
                start_new_session=True,
            )
        self.pid = self.child.pid
        before_others(self.pid)

    def is_alive(self):
        """Whether it has not ended."""
        return self.child.poll() is None

    def told(self):
        """The end of what it printed."""
        return text_of(self.log)[-2000:]

    def signal(self, number):
        """Sends it a signal."""
        if self.is_alive():
            os.kill(self.pid, number)

    def stop(self):
        """Ends it, by force if need be, also when it is stopped."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)
        try:
            self.child.wait(TERM_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


class Thread:
    """The thread of a process that forwards, by the beginning of its name."""

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
        """CPU time it has had."""
        return int(text_of("%s/%d/schedstat" % (self.folder, self.tid)).split()[0])

    def is_pinned(self):
        """Whether it runs on the forwarding CPU and nowhere else."""
        return os.sched_getaffinity(self.tid) == {FORWARDING_CPU}

    def go_first(self, first):
        """Before all ordinary threads of its CPU, or among them."""
        policy, priority = (os.SCHED_FIFO, 1) if first else (os.SCHED_OTHER, 0)
        os.sched_setscheduler(self.tid, policy, os.sched_param(priority))


def before_others(process):
    """Has a session's processes go before others where both want the control CPU: the kernel shares CPUs out by session."""
    path = "/proc/%s/autogroup" % process
    if os.path.exists(path):
        with contextlib.suppress(OSError), open(path, "w", encoding="ascii") as file:
            file.write(FIRST_NICE)


def end_in_order():
    """Makes signals that end this process raise SystemExit, so that blocks are left as they should be."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    # Shells have it ignored by what they start in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def check():
    """Fails with a sentence where nothing can be measured."""
    if os.geteuid() != 0:
        raise Failed("this needs root: hugepages and scheduling are set")
    if not {CONTROL_CPU, FORWARDING_CPU} <= os.sched_getaffinity(0):
        raise Failed("this needs CPUs %d and %d" % (CONTROL_CPU, FORWARDING_CPU))
    if not os.path.exists(PAGES):
        raise Failed("this system has no hugepages of 2 MiB (%s)" % PAGES)
