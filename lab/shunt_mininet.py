# SPDX-License-Identifier: Apache-2.0
"""Shunt as a Mininet switch: mn --custom lab/shunt_mininet.py --switch shunt --topo tree,2 --test pingall

A switch is one `shunt run` process in Mininet's root namespace, with one AF_PACKET port per interface. With
--switch shunt,shared=1, all switches are datapaths of one process. With stateless=1, they forward packets of
KeyFlow and Tag-and-Forward without tables.

The command is taken from SHUNT, otherwise from target/release of the current folder, otherwise from PATH.
With a controller, a switch is in secure mode unless fail_mode=standalone is given. Without a controller, it
learns addresses itself. Further topologies are in lab/topologies.py, which --custom loads as well.
"""

import atexit
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

import mininet.clean
import mininet.net
from mininet.log import error, info
from mininet.node import Controller, OVSController, Switch

READY_S = 10
STOP_S = 5
IPERF_S = 30
# The header of stateless forwarding makes frames between switches longer than frames of hosts.
TAGGED_MTU = 1600


def command():
    """Returns the path of the shunt command."""
    built = os.path.abspath("target/release/shunt")
    found = os.environ.get("SHUNT") or (built if os.access(built, os.X_OK) else shutil.which("shunt"))
    if not found:
        raise SystemExit("the shunt command is missing: run `make`, or set SHUNT to its path")
    return found


def quoted(text):
    """Returns a text as a TOML string."""
    return json.dumps(text)


class Process:
    """One `shunt run` process with the datapaths of some switches."""

    running = set()

    def __init__(self, switches, workers):
        self.switches = switches
        self.workers = workers
        self.folder = tempfile.mkdtemp(prefix="shunt-mininet-")
        self.child = None

    def control(self, switch):
        """Returns the path of a datapath's control socket."""
        return os.path.join(self.folder, "%s.sock" % switch.name)

    def start(self):
        """Starts the process and waits until all datapaths forward."""
        configuration = os.path.join(self.folder, "switches.toml")
        lines = ["[[worker]]"] * self.workers
        for switch in self.switches:
            lines += switch.datapath(self.control(switch))
        with open(configuration, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        log = os.path.join(self.folder, "switches.log")
        with open(log, "w", encoding="utf-8") as file:
            # In its own session, the process does not get Mininet's Ctrl-C. It ends when Mininet ends.
            run = ["setpriv", "--pdeathsig", "TERM", command(), "run", "-c", configuration]
            self.child = subprocess.Popen(run, stdout=file, stderr=file, start_new_session=True)
        Process.running.add(self)
        end = time.monotonic() + READY_S
        while time.monotonic() < end and self.child.poll() is None:
            with open(log, encoding="utf-8") as file:
                if file.read().count("shunt: ready") == len(self.switches):
                    return
            time.sleep(0.02)
        with open(log, encoding="utf-8") as file:
            names = " ".join(switch.name for switch in self.switches)
            error("*** %s did not become ready:\n%s" % (names, file.read()))
        self.stop()
        raise SystemExit(1)

    def connections(self, ports):
        """Returns the number of TCP connections of the process to these ports."""
        folder = "/proc/%d/fd" % self.child.pid
        sockets = set()
        for name in os.listdir(folder):
            try:
                sockets.add(os.readlink(os.path.join(folder, name)))
            except FileNotFoundError:
                continue
        ports = {"%04X" % port for port in ports}
        found = 0
        with open("/proc/%d/net/tcp" % self.child.pid, encoding="ascii") as file:
            for line in file.readlines()[1:]:
                _, _, remote, state, *_, inode = line.split()[:10]
                found += state == "01" and remote.split(":")[1] in ports and "socket:[%s]" % inode in sockets
        return found

    def stop(self):
        """Stops the process and deletes its files."""
        Process.running.discard(self)
        if self.child is not None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(STOP_S)
            except subprocess.TimeoutExpired:
                names = " ".join(switch.name for switch in self.switches)
                info("*** %s did not end on SIGTERM and was killed\n" % names)
                self.child.kill()
                self.child.wait()
            self.child = None
        shutil.rmtree(self.folder, ignore_errors=True)

    @classmethod
    def stop_all(cls):
        """Stops all processes. Mininet's cleanup calls this method, because it does not stop switches
        itself."""
        for process in list(cls.running):
            process.stop()


class ShuntSwitch(Switch):
    """A datapath. Each has a process of its own, or all that are `shared` have one process. `stateless`
    switches forward tagged packets without tables; the links between them get a larger MTU."""

    def __init__(self, name, fail_mode="secure", workers=1, shared=False, stateless=False, **params):
        super().__init__(name, **params)
        self.fail_mode = fail_mode
        self.workers = int(workers)
        self.shared, self.stateless = is_on("shared", shared), is_on("stateless", stateless)
        self.process = None
        self.channels = []

    @classmethod
    def setup(cls):
        """Reports missing programs before the network is built."""
        command()

    def datapath(self, control):
        """Returns the configuration lines of the datapath."""
        lines = ["[[datapath]]", "id = %d" % int(self.dpid, 16), "control = " + quoted(control)]
        lines += ["[datapath.openflow]", "controllers = " + json.dumps(["tcp:%s:%d" % channel for channel in self.channels])]
        if self.channels:
            lines.append("fail_mode = " + quoted(self.fail_mode))
        if self.listenPort:
            lines.append("listen = " + quoted("127.0.0.1:%d" % self.listenPort))
        if self.stateless:
            lines.append("[datapath.stateless]")
        for intf in self.interfaces():
            number = self.ports[intf]
            lines += [
                "[[datapath.port]]",
                "number = %d" % number,
                "name = " + quoted(intf.name),
                'driver = "af_packet"',
                "device = " + quoted(intf.name),
                "workers = " + json.dumps(list(range(self.workers))),
            ]
        return lines

    def interfaces(self):
        """Returns the interfaces that are ports of the datapath."""
        return [intf for intf in self.intfList() if self.ports[intf] > 0 and intf.name != "lo"]

    def start(self, controllers):
        """Starts the process, unless it is shared and `batchStartup` starts it."""
        self.channels = [(c.IP(), c.port) for c in controllers]
        if self.stateless:
            for intf in self.interfaces():
                ends = (intf.link.intf1, intf.link.intf2) if intf.link else ()
                if ends and all(isinstance(end.node, Switch) for end in ends):
                    self.cmd("ip link set dev %s mtu %d" % (shlex.quote(intf.name), TAGGED_MTU))
        if not self.shared:
            self.process = Process([self], self.workers)
            self.process.start()

    @classmethod
    def batchStartup(cls, switches, **_):
        """Starts the shared process. Mininet calls this method after `start` of all switches."""
        sharing = [switch for switch in switches if switch.shared]
        if sharing:
            process = Process(sharing, max(switch.workers for switch in sharing))
            for switch in sharing:
                switch.process = process
            process.start()
        return switches

    def connected(self):
        """Returns whether the process has at least as many TCP connections to controllers as datapaths.
        Without controllers, returns True."""
        if not self.channels:
            return True
        ports = [port for _, port in self.channels]
        return self.process.connections(ports) >= len(self.process.switches)

    def dpctl(self, *args):
        """Runs a command of shunt against this switch, such as: dpctl show flows."""
        return self.cmd(shlex.join([command(), "--control", self.process.control(self)] + list(args)))

    def stop(self, deleteIntfs=True):
        """Stops the process and deletes its files."""
        if self.process is not None:
            self.process.stop()
            self.process = None
        super().stop(deleteIntfs)


def is_on(name, value):
    """Returns the value of a parameter that is on or off. Command lines have 1 or 0."""
    if value in (True, False, "1", "0"):
        return bool(int(value))
    raise SystemExit("%s is %r; it must be 1 or 0" % (name, value))


class Controller13(OVSController):
    """ovs-testcontroller as Mininet starts it, but with OpenFlow 1.3 instead of its default 1.0."""

    def __init__(self, name, **params):
        params.setdefault("cargs", "-O OpenFlow13 ptcp:%s")
        super().__init__(name, **params)

    def start(self):
        """Starts the controller with a folder for its socket, because the default folder exists only where
        Open vSwitch runs."""
        folder = tempfile.mkdtemp(prefix="shunt-mininet-")
        # After an interrupt, Mininet's cleanup kills controllers by name and does not call `stop`.
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self.cmd("export OVS_RUNDIR=" + shlex.quote(folder))
        super().start()


def wait_for_iperf(client, server, port, timeout=IPERF_S):
    """Waits until an iperf server answers a short iperf.

    Mininet tests with an empty connection and then waits for two reports of the server: of that connection
    and of the measurement. Since iperf 2.0.14, the server reports no empty connection, so Mininet 2.3.0 waits
    forever. This happens with any switch, even between directly connected hosts
    (github.com/mininet/mininet/issues/1060).
    """
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if "/sec" in client.cmd("timeout 5 iperf -c %s -p %d -n 128K" % (server, port)):
            return True
        time.sleep(0.1)
    return False


mininet.net.waitListening = wait_for_iperf
mininet.clean.addCleanupCallback(Process.stop_all)

# Without --controller, `mn` searches for a controller and asks this class first.
Controller.isAvailable = classmethod(lambda cls: OVSController.isAvailable())
Controller.__new__ = lambda cls, *_, **__: object.__new__(Controller13 if cls is Controller else cls)

switches = {"shunt": ShuntSwitch}
controllers = {"of13": Controller13}
