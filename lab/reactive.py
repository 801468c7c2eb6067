# SPDX-License-Identifier: Apache-2.0
"""Chains of switches whose controllers set up paths when the first packet arrives: KeyFlow, and flows at each
switch of a path."""

import json
import os
import re
import signal
import sys
import time

from program import PLANNING, PYTHON
from report import ROOT
from rooms import Failed, wait_until
from switches import MTU, OpenVswitch, Shunt, mac, text_of, tool

CONTROLLER_PORT, RELAY_PORT = 6653, 6654
# Time after which a path that is not used is removed, and time until all its entries are gone for sure.
IDLE_S, GONE_S = 1, 2.6
READY_S = 60
HOSTS = ",".join("%s=%d" % (mac(number), number) for number in (1, 2))


class Reactive:
    """A chain with a controller. It comes before the kind of switch in the list of base classes. With a
    delay, or if messages are counted, connections pass a relay."""

    # Words after the controller's Python, or None for switches that learn addresses without a controller.
    controller = None
    delay_ms, is_relayed = 0.0, False
    relay = None

    def begin(self):
        """Starts the controller, the relay, and the switches."""
        for (_, end), (begin, _) in zip(self.pairs, self.pairs[1:]):
            for device in (end, begin):
                self.rooms.ip(self.switch, "link set p%d mtu %d" % (device, MTU))
        self.port = CONTROLLER_PORT
        if self.controller is not None:
            self._start([PYTHON, *self.controller], "controller")
        if self.is_relayed and self.controller is not None:
            self.port = RELAY_PORT
            words = [sys.executable, os.path.join(ROOT, "lab/relay.py"), str(RELAY_PORT), str(CONTROLLER_PORT), str(self.delay_ms / 2)]
            self.relay = self._start([*words, self.path("counts")], "relay")
        self.begin_switches()

    def _start(self, command, name):
        with open(self.path(name + ".log"), "w", encoding="utf-8") as log:
            return self.rooms.start(self.switch, command, self.cpus[:1], log, env=os.environ | PLANNING)

    def counted(self):
        """Returns the number of messages since the previous call, by their kinds."""
        path = self.path("counts")
        if os.path.exists(path):
            os.unlink(path)
        self.relay.send_signal(signal.SIGUSR1)
        wait_until("the relay has counted messages", lambda: os.path.exists(path), self.relay)
        return json.loads(text_of(path))

    def ping(self, host=0):
        """Sends one ping from a host to the other. Returns its round-trip time in us, or None if it is lost."""
        command = ["ping", "-n", "-W", "2", "-c", "1", "10.0.0.%d" % (2 - host)]
        try:
            found = re.search(r"time=([\d.]+) ms", self.rooms.run(self.hosts[host], command))
        except Failed:
            return None
        return 1000 * float(found[1]) if found else None

    def passes(self):
        """Returns whether pings pass in both directions."""
        return self.ping(0) is not None and self.ping(1) is not None


class OnShunt(Reactive, Shunt):
    """Switches are datapaths of one process."""

    def begin_switches(self):
        """Starts the switches."""
        config = "[[worker]]\ncpu = %d\n" % self.cpus[1]
        for number, (a, b) in enumerate(self.pairs, 1):
            config += '[[datapath]]\nid = %d\ncontrol = "%s"\n' % (number, self.path("s%d" % number))
            if self.controller is not None:
                config += '[datapath.openflow]\nfail_mode = "secure"\ncontrollers = ["tcp:127.0.0.1:%d"]\n' % self.port
            for port, device in ((1, a), (2, b)):
                config += '[[datapath.port]]\nnumber = %d\nname = "p%d"\n' % (port, port)
                config += 'driver = "af_packet"\ndevice = "p%d"\nworkers = [0]\n' % device
        self.run(["run", "-c", self.write("switches.toml", config)], len(self.pairs))


class OnOpenVswitch(Reactive, OpenVswitch):
    """Switches are bridges of one process."""

    flows = ""

    def begin_switches(self):
        """Starts the switches."""
        OpenVswitch.begin(self)
        database = "--db=unix:" + self.path("db.sock")
        for name, _, _ in self.bridges():
            words = ["set-fail-mode", name, "standalone"]
            if self.controller is not None:
                # The controller limits packet-ins by default.
                words = ["set-controller", name, "tcp:127.0.0.1:%d" % self.port, "--", "set", "controller", name]
                words += ["connection-mode=out-of-band", "max_backoff=1000"]
            self.rooms.run(self.switch, [tool("ovs-vsctl"), database, "--timeout=20", *words])


# With a long period, frames of LLDP are not among the messages that are counted.
KEYFLOW = ["-m", "shunt_controller", "run", "keyflow", "--mode", "reactive", "--idle-timeout", str(IDLE_S), "--lldp-period", "60"]
FLOWS = [os.path.join(ROOT, "lab/controllers/launch.py"), "flows", "--port-of", HOSTS, "--idle-timeout", str(IDLE_S)]
# Name of each kind, and its switches, controller and short name.
KINDS = {
    "KeyFlow": (OnShunt, KEYFLOW, "key"),
    "flows per hop": (OnShunt, FLOWS, "hop"),
    "flows per path": (OnShunt, [*FLOWS, "--whole-path"], "path"),
    "Open vSwitch, flows per hop": (OnOpenVswitch, FLOWS, "ovs-hop"),
    "Open vSwitch, flows per path": (OnOpenVswitch, [*FLOWS, "--whole-path"], "ovs-path"),
}
LOCAL = {
    "without controller": (OnShunt, None, "local"),
    "Open vSwitch, without controller": (OnOpenVswitch, None, "ovs-local"),
}


def roads_of(kinds, rooms, folder, cpus, hops, delay_ms=0.0, is_relayed=False):
    """Creates a chain of each kind, and waits until pings pass them."""
    roads = {}
    for name, (base, controller, short) in kinds.items():
        kind = type(base.__name__, (base,), {"controller": controller, "delay_ms": delay_ms, "is_relayed": is_relayed})
        roads[name] = kind(rooms, short, folder, cpus, hops)
    for name, road in roads.items():
        wait_until("pings pass %s" % name, road.passes, road.process, READY_S)
    return roads


def first_packets(roads, rounds, order):
    """Returns the round-trip times in us of the first packets of paths, by kind. A lost packet is None."""
    times = {name: [] for name in roads}
    for _ in range(rounds):
        time.sleep(GONE_S)
        for name in order.sample(list(roads), len(roads)):
            times[name].append(roads[name].ping())
    return times


def answered(times):
    """Returns the times of answered pings. Raises Failed if more than half are lost."""
    found = [time_us for time_us in times if time_us is not None]
    if 2 * len(found) < len(times):
        raise Failed("%d of %d first packets are lost" % (len(times) - len(found), len(times)))
    return found
