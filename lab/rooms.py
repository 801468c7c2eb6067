# SPDX-License-Identifier: Apache-2.0
"""Rooms: network namespaces for hosts and switches, with their processes.

    with Rooms() as rooms:
        rooms.make("sw")
        rooms.make("h1")
        rooms.cable("sw", "p1", "h1", "eth0")
        switch = rooms.start("sw", ["shunt", "run", "-c", config], cpus=[1])

At the end of the block, even after Ctrl-C or SIGTERM, the processes in the rooms are stopped and the
namespaces are deleted. If this process is killed, its child processes end with it.
"""

import os
import signal
import subprocess
import sys
import time

TERM_S = 5
# Signals that end an experiment.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Scheduling group of a process's session.
AUTOGROUP = "/proc/%s/autogroup"
FIRST_NICE = "-19"
# Without IPv6, hosts send no packets on their own.
QUIET = 'for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do [ ! -e "$f" ] || echo 1 >"$f"; done'


class Failed(Exception):
    """A step failed. The message is for the user."""


def done(command, **options):
    """Runs a command that must succeed. Returns its output."""
    output = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    if output.returncode:
        raise Failed("%s: exit code %d: %s" % (" ".join(command), output.returncode, output.stdout.strip()))
    return output.stdout


def wait_until(what, is_so, process=None, limit_s=20):
    """Waits until `is_so()` returns true. Raises Failed after the time limit, or if the process ends
    first."""
    end = time.monotonic() + limit_s
    while not is_so():
        if process is not None and process.poll() is not None:
            raise Failed("the process ended before this was true: %s; exit code %s" % (what, process.returncode))
        if time.monotonic() > end:
            raise Failed("timed out after %d s, waiting for: %s" % (limit_s, what))
        time.sleep(0.05)


def set_nice(process, nice):
    """Sets the priority of a process's session, from "-20" (highest) to "19"."""
    with open(AUTOGROUP % process, "w", encoding="ascii") as file:
        file.write(nice)


class Rooms:
    """Network namespaces whose names contain this process's number, so that concurrent runs do not collide.

    With `first`, this process and the processes started here get a higher priority than all others. The
    kernel's scheduler divides CPU time among sessions. Each started process gets a separate session, and
    these sessions get a higher priority."""

    def __init__(self, first=False):
        self.first = first
        self.nice = None
        self.handlers = {}
        self.prefix = "shunt-lab-%d-" % os.getpid()
        self.names = []
        self.processes = []

    def __enter__(self):
        self.handlers = {number: signal.getsignal(number) for number in SIGNALS}
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        signal.signal(signal.SIGHUP, lambda number, _: sys.exit(128 + number))
        if self.first:
            with open(AUTOGROUP % "self", encoding="ascii") as file:
                self.nice = file.read().split()[-1]
            set_nice("self", FIRST_NICE)
        return self

    def __exit__(self, *_):
        # A second Ctrl-C must not interrupt the clean-up.
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        while self.processes:
            self.stop(self.processes[-1])
        if self.nice is not None:
            set_nice("self", self.nice)
        for name in self.names:
            subprocess.run(["ip", "netns", "del", self.prefix + name], stderr=subprocess.DEVNULL, check=False)
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def make(self, name):
        """Creates a room."""
        # The name is recorded first, so that Ctrl-C leaves no namespace.
        self.names.append(name)
        done(["ip", "netns", "add", self.prefix + name])
        self.run(name, ["sh", "-c", QUIET])
        self.ip(name, "link set lo up")

    def cable(self, room, device, other, peer):
        """Connects a device in a room with a device in another room."""
        ends = (device, self.prefix + room, peer, self.prefix + other)
        done(("ip link add %s netns %s type veth peer name %s netns %s" % ends).split())
        self.ip(room, "link set %s up" % device)
        self.ip(other, "link set %s up" % peer)

    def ip(self, room, command):
        """Runs `ip COMMAND` in a room."""
        return done(["ip", "-n", self.prefix + room] + command.split())

    def command(self, room, command, cpus=()):
        """Returns the command line that runs a command in a room, optionally pinned to CPUs."""
        pinned = ["taskset", "-c", ",".join(map(str, cpus))] if cpus else []
        inside = ["setpriv", "--pdeathsig", "KILL", "--", "ip", "netns", "exec", self.prefix + room]
        return pinned + inside + list(command)

    def run(self, room, command, **options):
        """Runs a command in a room, which must succeed. Returns its output."""
        return done(self.command(room, command), **options)

    def start(self, room, command, cpus=(), log=subprocess.DEVNULL, **options):
        """Starts a process in a room. Its output goes to `log`, a file or a pipe."""
        process = subprocess.Popen(
            self.command(room, command, cpus),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=self.first,
            **options,
        )
        self.processes.append(process)
        if self.first:
            set_nice(process.pid, FIRST_NICE)
        return process

    def stop(self, process):
        """Stops a process. Kills it if it does not end."""
        process.terminate()
        # Continue the process first, because it may be paused.
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(TERM_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.processes.remove(process)
