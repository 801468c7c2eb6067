# SPDX-License-Identifier: Apache-2.0
"""Shunt as a Mininet switch: mn --custom lab/shunt_mininet.py --switch shunt --topo tree,2 --test pingall

The switch is one `shunt run` process in Mininet's root namespace, with one AF_PACKET port per interface. The
command is taken from SHUNT, otherwise from target/release of the current folder, otherwise from PATH. With a
controller, the switch is in secure mode unless fail_mode=standalone is given (--switch
shunt,fail_mode=standalone). Without a controller, the switch learns addresses itself.
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


class ShuntSwitch(Switch):
    """A datapath in a separate process."""

    running = set()

    def __init__(self, name, fail_mode="secure", workers=1, **params):
        super().__init__(name, **params)
        self.fail_mode = fail_mode
        self.workers = int(workers)
        self.process = None
        self.folder = None
        self.channels = []

    @classmethod
    def setup(cls):
        """Reports missing programs before the network is built."""
        command()

    def _configuration(self, controllers):
        lines = ["control = " + quoted(self._control())]
        lines += ["[[worker]]"] * self.workers
        lines += ["[[datapath]]", "id = %d" % int(self.dpid, 16), "[datapath.openflow]"]
        self.channels = [(c.IP(), c.port) for c in controllers]
        channels = ["tcp:%s:%d" % channel for channel in self.channels]
        lines.append("controllers = " + json.dumps(channels))
        if channels:
            lines.append("fail_mode = " + quoted(self.fail_mode))
        if self.listenPort:
            lines.append("listen = " + quoted("127.0.0.1:%d" % self.listenPort))
        for intf in self.intfList():
            number = self.ports[intf]
            if number <= 0 or intf.name == "lo":
                continue
            lines += [
                "[[datapath.port]]",
                "number = %d" % number,
                "name = " + quoted(intf.name),
                'driver = "af_packet"',
                "device = " + quoted(intf.name),
                "workers = " + json.dumps(list(range(self.workers))),
            ]
        return "\n".join(lines) + "\n"

    def _control(self):
        return os.path.join(self.folder, "control.sock")

    def start(self, controllers):
        """Starts the process and waits until it forwards."""
        self.folder = tempfile.mkdtemp(prefix="shunt-mininet-")
        configuration = os.path.join(self.folder, "switch.toml")
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(self._configuration(controllers))
        log = os.path.join(self.folder, "switch.log")
        with open(log, "w", encoding="utf-8") as file:
            # In its own session, the process does not get Mininet's Ctrl-C. It ends when Mininet ends.
            run = ["setpriv", "--pdeathsig", "TERM", command(), "run", "-c", configuration]
            self.process = subprocess.Popen(run, stdout=file, stderr=file, start_new_session=True)
        ShuntSwitch.running.add(self)
        end = time.monotonic() + READY_S
        while time.monotonic() < end and self.process.poll() is None:
            with open(log, encoding="utf-8") as file:
                if "ready" in file.read():
                    return
            time.sleep(0.02)
        with open(log, encoding="utf-8") as file:
            error("*** %s did not become ready:\n%s" % (self.name, file.read()))
        self._end()
        raise SystemExit(1)

    def connected(self):
        """Returns whether the process has a TCP connection to one of its controllers. Without controllers,
        returns True."""
        if not self.channels:
            return True
        folder = "/proc/%d/fd" % self.process.pid
        sockets = set()
        for name in os.listdir(folder):
            try:
                sockets.add(os.readlink(os.path.join(folder, name)))
            except FileNotFoundError:
                continue
        ports = {"%04X" % port for _, port in self.channels}
        with open("/proc/%d/net/tcp" % self.process.pid, encoding="ascii") as file:
            for line in file.readlines()[1:]:
                _, _, remote, state, *_, inode = line.split()[:10]
                if state == "01" and remote.split(":")[1] in ports and "socket:[%s]" % inode in sockets:
                    return True
        return False

    def dpctl(self, *args):
        """Runs a command of shunt against this switch, such as: dpctl show flows."""
        return self.cmd(shlex.join([command(), "--control", self._control()] + list(args)))

    def stop(self, deleteIntfs=True):
        """Stops the process and deletes its files."""
        self._end()
        super().stop(deleteIntfs)

    @classmethod
    def end_all(cls):
        """Stops all switches. Mininet's cleanup calls this method, because it does not stop switches
        itself."""
        for switch in list(cls.running):
            switch._end()

    def _end(self):
        ShuntSwitch.running.discard(self)
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                info("*** %s did not end on SIGTERM and was killed\n" % self.name)
                self.process.kill()
                self.process.wait()
            self.process = None
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None


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
mininet.clean.addCleanupCallback(ShuntSwitch.end_all)

# Without --controller, `mn` searches for a controller and asks this class first.
Controller.isAvailable = classmethod(lambda cls: OVSController.isAvailable())
Controller.__new__ = lambda cls, *_, **__: object.__new__(Controller13 if cls is Controller else cls)

switches = {"shunt": ShuntSwitch}
controllers = {"of13": Controller13}
