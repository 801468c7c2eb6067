# SPDX-License-Identifier: Apache-2.0
"""Rooms: network namespaces with hosts and switches in them, and the processes that run there.

    with Rooms() as rooms:
        rooms.make("sw")
        rooms.make("h1")
        rooms.cable("sw", "p1", "h1", "eth0")
        switch = rooms.start("sw", ["shunt", "run", "-c", config], cpus=[1])

When the block is left, also by Ctrl-C or SIGTERM, what was started in it is ended and the rooms are gone. Should this
process be killed, its children go with it.
"""

import os
import signal
import subprocess
import sys
import time

TERM_S = 5
# The session of a process, as the scheduler has it.
AUTOGROUP = "/proc/%s/autogroup"
FIRST_NICE = "-19"
# Without IPv6 the hosts are silent between our steps.
QUIET = 'for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do [ ! -e "$f" ] || echo 1 >"$f"; done'


class Failed(Exception):
    """A step did not do what it should; the text is for the user."""


def done(command, **options):
    """What a command prints, which must succeed."""
    output = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    if output.returncode:
        raise Failed("%s: exit code %d: %s" % (" ".join(command), output.returncode, output.stdout.strip()))
    return output.stdout


def wait_until(what, is_so, process=None, limit_s=20):
    """Returns when `is_so()`; fails when that takes too long, or the process ends before."""
    end = time.monotonic() + limit_s
    while not is_so():
        if process is not None and process.poll() is not None:
            raise Failed("waited until %s: the process ended, %s" % (what, process.returncode))
        if time.monotonic() > end:
            raise Failed("waited %d s in vain until %s" % (limit_s, what))
        time.sleep(0.05)


def set_nice(process, nice):
    """How a process's session stands among others: from "-20", first, to "19"."""
    with open(AUTOGROUP % process, "w", encoding="ascii") as file:
        file.write(nice)


class Rooms:
    """Namespaces whose names carry this process's number, so that runs do not meet.

    With `first`, this process and what it starts in them go before all else that wants a CPU: the kernel's scheduler
    divides CPUs among sessions, each process started gets one of its own, and these get more than others."""

    def __init__(self, first=False):
        self.first = first
        self.nice = None
        self.prefix = "shunt-lab-%d-" % os.getpid()
        self.names = []
        self.processes = []

    def __enter__(self):
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        signal.signal(signal.SIGHUP, lambda number, _: sys.exit(128 + number))
        if self.first:
            with open(AUTOGROUP % "self", encoding="ascii") as file:
                self.nice = file.read().split()[-1]
            set_nice("self", FIRST_NICE)
        return self

    def __exit__(self, *_):
        # A second Ctrl-C must not stop the clean-up half-way.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while self.processes:
            self.stop(self.processes[-1])
        if self.nice is not None:
            set_nice("self", self.nice)
        for name in self.names:
            subprocess.run(["ip", "netns", "del", self.prefix + name], stderr=subprocess.DEVNULL, check=False)

    def make(self, name):
        """Makes a room."""
        # First the note, in case of Ctrl-C in between.
        self.names.append(name)
        done(["ip", "netns", "add", self.prefix + name])
        self.run(name, ["sh", "-c", QUIET])
        self.ip(name, "link set lo up")

    def cable(self, room, device, other, peer):
        """A cable between a device in a room and one in another."""
        ends = (device, self.prefix + room, peer, self.prefix + other)
        done(("ip link add %s netns %s type veth peer name %s netns %s" % ends).split())
        self.ip(room, "link set %s up" % device)
        self.ip(other, "link set %s up" % peer)

    def ip(self, room, command):
        """`ip COMMAND` in a room."""
        return done(["ip", "-n", self.prefix + room] + command.split())

    def command(self, room, command, cpus=()):
        """The command as it runs in a room, on some CPUs or on any."""
        pinned = ["taskset", "-c", ",".join(map(str, cpus))] if cpus else []
        inside = ["setpriv", "--pdeathsig", "KILL", "--", "ip", "netns", "exec", self.prefix + room]
        return pinned + inside + list(command)

    def run(self, room, command, **options):
        """What a command in a room prints, which must succeed."""
        return done(self.command(room, command), **options)

    def start(self, room, command, cpus=(), log=subprocess.DEVNULL, **options):
        """Starts a process in a room; what it prints goes to `log`, a file or a pipe."""
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
        """Ends a process, by force if need be."""
        process.terminate()
        # It may be paused.
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(TERM_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.processes.remove(process)
