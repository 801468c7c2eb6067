#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a switch whose stderr fails, under traffic and storms of log lines.

test_broken_log.sh creates the rooms (network namespaces) and calls this program.

For each kind of failure, the switch must keep running, forward packets, answer requests, and count the lost
lines. With --report, the test also fails if a stall exceeds 50 ms after preemption is subtracted. Preemption
is the longer of two times: the time for which the relevant threads waited for a core
(/proc/PID/task/TID/schedstat), and the time for which a sleeping witness process overslept.
"""

import argparse
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import cases
import stalls

HERE = pathlib.Path(__file__).parent
STALL_MS = 50
# A process may start slowly on a loaded machine.
LIMIT_S = 60


def fail(text):
    sys.exit(f"broken_log: {text}")


def until(what, holds):
    end = time.monotonic() + LIMIT_S
    while not (value := holds()):
        if time.monotonic() > end:
            fail(f"timed out after {LIMIT_S} s, waiting for: {what}")
        time.sleep(0.05)
    return value


class Switch:
    """The switch under test, queried over its control socket."""

    def __init__(self, arguments, stderr):
        self.control = arguments.folder / "control.sock"
        command = ["ip", "netns", "exec", f"{arguments.prefix}-sw", arguments.shunt, "run", "-c"]
        environment = {**os.environ, "RUST_LOG": "debug"}
        self.process = subprocess.Popen([*command, arguments.folder / "switch.toml"], stderr=stderr, env=environment)
        processes.append(self.process)
        until("the switch answers", self.answers)

    def ask(self, request):
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(LIMIT_S)
            peer.connect(str(self.control))
            peer.sendall(json.dumps({"id": 1, **request}).encode() + b"\n")
            answer = json.loads(peer.makefile("rb").readline())
        if "done" not in answer:
            fail(f"{request}: {answer}")
        return answer["done"]

    def answers(self):
        self.is_running()
        try:
            return self.ask({"request": "ports"})
        except OSError:
            return None

    def is_running(self):
        if self.process.poll() is not None:
            fail(f"the switch has ended with {self.process.returncode}")

    def lost_lines(self):
        counters = self.ask({"request": "counters"})
        return sum(counters["log_lines_lost"].values()), counters["log_lines_lost"], counters["log_lines_written"]

    def stop(self):
        self.is_running()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(LIMIT_S)
        if code != 0:
            fail(f"the switch has ended with {code} on SIGTERM")


processes = []


class Part:
    """A process beside the switch. It ends on SIGTERM and prints one JSON object."""

    def __init__(self, arguments, room, *command):
        prefix = ["ip", "netns", "exec", f"{arguments.prefix}-{room}"] if room else []
        command = [*prefix, sys.executable, HERE / "part.py", *map(str, command)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        processes.append(self.process)
        self.process.stdout.readline()

    def end(self):
        self.process.terminate()
        text, _ = self.process.communicate(timeout=LIMIT_S)
        if self.process.returncode != 0:
            fail(f"{self.process.args}: {self.process.returncode}")
        return json.loads(text)


def observe(arguments, case, switch):
    """Runs traffic and storms. Returns the observations of the processes."""
    folder = arguments.folder
    parts = {"receiver": Part(arguments, "h2", "receiver")}
    parts["sender"] = Part(arguments, "h1", "sender", "10.0.0.2")
    parts["control"] = Part(arguments, None, "control", folder / "control.sock")
    parts["openflow"] = Part(arguments, "sw", "openflow")
    actors = {name: part.process.pid for name, part in parts.items()}
    for cpu in os.sched_getaffinity(0):
        parts[f"witness {cpu}"] = Part(arguments, None, "witness", cpu)
    actors["switch"] = switch.process.pid
    parts["delays"] = Part(arguments, None, "delays", json.dumps(actors))
    storms = [Part(arguments, "sw", "storm"), Part(arguments, "sw", "storm"), Part(arguments, "h3", "flaps")]
    end = time.monotonic() + arguments.seconds
    while time.monotonic() < end:
        time.sleep(min(1, arguments.seconds))
        switch.is_running()
    until("lines are lost and counted", lambda: switch.lost_lines()[0] > 0)
    case.check_while_broken(switch)
    storm = {"peers": 0, "flaps": 0}
    for part in storms:
        for name, count in part.end().items():
            storm[name] += count
    sender = parts.pop("sender").end()
    # Wait for the last packets.
    time.sleep(0.5)
    return {"sender": sender, **{name: part.end() for name, part in parts.items()}, **storm}


def run(arguments, case):
    switch = Switch(arguments, case.stderr)
    case.started()
    switch.ask({"request": "load", "text": "priority=9,in_port=1,actions=output:2\n", "last": True})
    seen = observe(arguments, case, switch)
    lost, reasons, written = switch.lost_lines()
    case.mend(switch, until, fail)
    switch.stop()
    case.close()
    sent, received = seen["sender"]["sent"], seen["receiver"]["received"]
    if received == 0 or seen["control"]["answers"] == 0 or seen["openflow"]["answers"] == 0:
        fail(f"{case.name}: nothing was forwarded or answered: {sent} packets sent, {received} received")
    waits = stalls.judge(seen)
    figures = {
        "case": case.name,
        "seconds": arguments.seconds,
        "log lines lost": lost,
        **{name: count for name, count in reasons.items() if count},
        "log lines written": written,
        "refused peers": seen["peers"],
        "link flaps": seen["flaps"],
        "packets sent": sent,
        "packets lost": sent - received,
        "control requests": seen["control"]["answers"],
        "OpenFlow echoes": seen["openflow"]["answers"],
        **waits,
    }
    print(json.dumps(figures) if arguments.report else f"ok: {case.name}: {lost} log lines lost and counted", flush=True)
    if arguments.report:
        long = {name: value for name, value in waits.items() if name.endswith("set aside") and value > STALL_MS}
        if long or sent != received:
            return f"{case.name}: {long}, {sent - received} packets lost"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("prefix", help="prefix of the rooms' names")
    parser.add_argument("shunt", help="path of the shunt program")
    parser.add_argument("folder", type=pathlib.Path, help="folder that contains switch.toml")
    parser.add_argument("seconds", type=float, help="duration of each case")
    parser.add_argument("--report", action="store_true", help="print figures, and fail if a stall is too long")
    arguments = parser.parse_args()
    # On SIGTERM, run the `finally` blocks of this script.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    problems = []
    try:
        for case in cases.CASES:
            problems.append(run(arguments, case(arguments.folder)))
    finally:
        for process in processes:
            process.kill()
            process.wait()
    if any(problems):
        fail("; ".join(filter(None, problems)))


if __name__ == "__main__":
    main()
