# SPDX-License-Identifier: Apache-2.0
"""Open vSwitch with DPDK as Debian packages it: one forwarding thread from a capture to a null device."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import time

from machine import FORWARDING_CPU, ROOT, Failed, Process, Thread, wait_until
from switch import Switch

# Folder into which scripts/setup.sh unpacks programs that are not installed.
TOOLS = os.path.join(ROOT, "target/tools")
PLACES = ["/usr/bin", "/usr/sbin", "/usr/lib/openvswitch-switch-dpdk"]
PLACES += [TOOLS + "/ovs/usr/bin", TOOLS + "/ovs-dpdk/usr/lib/openvswitch-switch-dpdk"]
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
# Settings of the flow caches, by their names in tables. All other settings are the package's defaults.
CACHES = {
    "no cache": "emc-insert-inv-prob=0 smc-enable=false",
    "EMC": "emc-insert-inv-prob=100 smc-enable=false",
    "SMC": "emc-insert-inv-prob=0 smc-enable=true",
    "EMC and SMC": "emc-insert-inv-prob=100 smc-enable=true",
}
MANY, FEW = 1_000_000, 1000
ANSWER_S = 120
FILL_LIMIT_S = 120
FILL_LOOK_S = 1.0


def tool(name):
    """Returns the path of a program, installed or unpacked."""
    for place in PLACES:
        if os.access(os.path.join(place, name), os.X_OK):
            return os.path.join(place, name)
    raise Failed("%s is missing: scripts/setup.sh bench-peers unpacks it" % name)


class OpenVswitch(Switch):
    """A database, a switch, and a bridge with two ports. With `tuned`, its limits on flows are raised."""

    name = "Open vSwitch"

    def __init__(self, folder, flows, capture, tuned=True):
        super().__init__()
        self.folder = os.path.join(folder, "ovs")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        self.environment = dict(os.environ)
        for name in ("OVS_RUNDIR", "OVS_DBDIR", "OVS_SYSCONFDIR", "OVS_LOGDIR"):
            self.environment[name] = self.folder
        self.tuned, self.flow_limit = tuned, MANY
        self.begin(lambda: self._begin(flows, capture))

    def _begin(self, flows, capture):
        self.database = "unix:" + self._path("db.sock")
        schema = next(path for path in (TOOLS + "/ovs" + SCHEMA, SCHEMA) if os.path.exists(path))
        self._run("ovsdb-tool", "create", self._path("conf.db"), schema)
        server = self._start("ovsdb-server", self._path("conf.db"), "--remote=p" + self.database)
        wait_until("ovsdb-server listens", lambda: os.path.exists(self._path("db.sock")), server)
        self._vsctl("--no-wait", "init")
        options = "dpdk-init=true dpdk-lcore-mask=0x1 pmd-cpu-mask=%#x" % (1 << FORWARDING_CPU)
        if self.tuned:
            options += " max-idle=600000 flow-limit=%d min-revalidate-pps=0" % MANY
        self._vsctl("--no-wait", "set", "Open_vSwitch", ".", *settings(options))
        # DPDK allocates hugepages on demand and creates no files. The telemetry socket of a paused program
        # would block other programs.
        extra = 'other_config:dpdk-extra="--no-pci --in-memory --no-telemetry"'
        self._vsctl("--no-wait", "set", "Open_vSwitch", ".", extra)
        control = "--unixctl=" + self._path("vs.ctl")
        self.process = self._start("ovs-vswitchd-dpdk", self.database, "--disable-system", control)
        bridge = "add-br br0 -- set bridge br0 datapath_type=netdev fail_mode=secure protocols=OpenFlow13"
        self._vsctl(*bridge.split())
        # The receiving port is added last, after the rules are installed.
        self._port(2, "net_null0,no-rx=1")
        manage = self._path("br0.mgmt")
        wait_until("br0 is there", lambda: os.path.exists(manage), self.process)
        self._run("ovs-ofctl", "-O", "OpenFlow13", "add-flows", "unix:" + manage, flows)
        self._port(1, "net_pcap0,rx_pcap=%s,infinite_rx=1" % capture)
        self.thread = Thread(self.process, "pmd-c%02d" % FORWARDING_CPU)
        wait_until("packets arrive", lambda: self.count() > 0, self.process)

    def _path(self, name):
        return os.path.join(self.folder, name)

    def _start(self, name, *arguments):
        command = [tool(name), *arguments, "-vconsole:warn", "-vsyslog:off"]
        return self.started(Process(command, self._path(name + ".log"), self.environment))

    def _run(self, name, *arguments):
        command = [tool(name), *arguments]
        found = subprocess.run(command, capture_output=True, text=True, env=self.environment, check=False)
        if found.returncode:
            raise Failed("%s: %s" % (name, found.stderr.strip()))
        return found.stdout

    def _vsctl(self, *arguments):
        self._run("ovs-vsctl", "--db=" + self.database, "--timeout=30", *arguments)

    def _port(self, number, device):
        name = "p%d" % number
        command = ["add-port", "br0", name, "--", "set", "Interface", name, "type=dpdk", "ofport_request=%d" % number]
        self._vsctl(*command, "options:dpdk-devargs=" + device)
        error = self._run("ovs-vsctl", "--db=" + self.database, "get", "Interface", name, "error").strip()
        if error not in ("[]", '""'):
            raise Failed("Open vSwitch does not accept %s: %s" % (device, error))

    def ask(self, method, *parameters):
        """Returns the answer of `ovs-appctl METHOD`, without starting that program."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ANSWER_S)
            connection.connect(self._path("vs.ctl"))
            request = {"id": 0, "method": method, "params": list(map(str, parameters))}
            connection.sendall(json.dumps(request).encode())
            text = b""
            answer = None
            while answer is None:
                try:
                    piece = connection.recv(1 << 16)
                except TimeoutError:
                    raise Failed("Open vSwitch does not answer %s" % method) from None
                if not piece:
                    raise Failed("Open vSwitch has ended:\n" + self.process.output())
                text += piece
                with contextlib.suppress(ValueError):
                    answer = json.loads(text)
        if answer["error"] is not None:
            raise Failed("%s: %s" % (method, answer["error"]))
        return answer["result"]

    def stats(self):
        """Returns figures of the forwarding thread by name, from `dpif-netdev/pmd-stats-show`."""
        text = self.ask("dpif-netdev/pmd-stats-show").split("main thread")[0]
        return {name.strip(): float(value) for name, value in re.findall(r"^\s*([a-z .]+): ([\d.]+)", text, re.M)}

    def count(self):
        return int(self.stats().get("packets received", 0))

    def sent(self):
        text = self.ask("dpctl/show", "-s", "netdev@ovs-netdev")
        sent = re.search(r"port \d+: p2 .*?TX packets:(\d+)", text, re.S)
        if not sent:
            raise Failed("dpctl/show says: " + text)
        return self.count(), int(sent[1])

    def choose(self, setting):
        """Selects one of CACHES. The suffix `, few flows` limits the datapath to 1,000 flows."""
        cache, _, few = setting.partition(", ")
        self._vsctl("set", "Open_vSwitch", ".", *settings(CACHES[cache]))
        self.flow_limit = FEW if few else MANY
        self.lift_limit()
        if few:
            self.forget()

    def lift_limit(self):
        """Raises the dynamic flow limit, which starts at 10,000 and grows by 1,000 twice per second."""
        if self.tuned:
            self.ask("upcall/set-flow-limit", self.flow_limit)

    def fill(self):
        """Waits until the flows of all packets are in the datapath. The wait ends when no flow was added for
        a second, or after two minutes."""
        end = time.monotonic() + FILL_LIMIT_S
        before = -1
        self.thread.go_first(True)
        try:
            while time.monotonic() < end:
                self.lift_limit()
                now = self.flows()
                if now == before:
                    break
                before = now
                time.sleep(FILL_LOOK_S)
        finally:
            self.thread.go_first(False)
        return self.flows()

    def flows(self):
        """Returns the number of flows in the datapath."""
        found = re.search(r"flows\s*: \(current (\d+)\)", self.ask("upcall/show"))
        return int(found[1]) if found else 0

    def forget(self):
        """Removes all flows from the datapath."""
        self.ask("revalidator/purge")


def settings(text):
    """Returns arguments for `ovs-vsctl set Open_vSwitch .`"""
    return ["other_config:" + each for each in text.split()]
