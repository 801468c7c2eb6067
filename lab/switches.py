# SPDX-License-Identifier: Apache-2.0
"""Switches of two ports, each between two hosts of its own: Shunt, Open vSwitch in userspace, a Linux bridge."""

import os

from report import ROOT
from rooms import Failed, done, wait_until

# Where scripts/setup.sh unpacks Open vSwitch if it is not installed.
TOOLS = os.path.join(ROOT, "target/tools/ovs")
# Port 1 leads to port 2 and back, and pings are marked; Open vSwitch gets the same without the mark.
FLOWS = """
priority=20,icmp,in_port=1,nw_dst=10.0.0.2/32,%(mark)sactions=output:2
priority=20,icmp,in_port=2,nw_dst=10.0.0.1/32,%(mark)sactions=output:1
priority=10,in_port=1,actions=output:2
priority=10,in_port=2,actions=output:1
"""


class Road:
    """Two hosts with a switch between them; a subclass is a switch. Its name is that of its rooms."""

    def __init__(self, rooms, name, folder, cpus):
        # Of two CPUs, the second is for forwarding.
        self.rooms, self.cpus = rooms, cpus
        self.folder = os.path.join(folder, name)
        os.mkdir(self.folder)
        self.switch, self.hosts = name, [name + "-h1", name + "-h2"]
        # What forwards is in this process; none where the kernel does.
        self.process = None
        rooms.make(self.switch)
        for number, host in enumerate(self.hosts, 1):
            rooms.make(host)
            rooms.cable(self.switch, "p%d" % number, host, "eth0")
            rooms.ip(host, "link set eth0 address %s" % mac(number))
            rooms.ip(host, "address add 10.0.0.%d/24 dev eth0" % number)
            # Open vSwitch in userspace does not finish checksums that a host leaves to its device.
            rooms.run(host, ["ethtool", "-K", "eth0", "tx", "off"])
        for host, other in zip(self.hosts, (2, 1)):
            rooms.ip(host, "neigh add 10.0.0.%d lladdr %s dev eth0 nud permanent" % (other, mac(other)))
        self.begin()

    def begin(self):
        """Brings the switch up."""
        raise NotImplementedError

    def path(self, name):
        """A file of this switch."""
        return os.path.join(self.folder, name)

    def write(self, name, text):
        """Writes a file of this switch; its path."""
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def packets(self, host, direction):
        """How many packets a host (0, 1) has sent ("tx") or received ("rx")."""
        counter = "/sys/class/net/eth0/statistics/%s_packets" % direction
        return int(self.rooms.run(self.hosts[host], ["cat", counter]))

    def forwarder(self):
        """The thread that forwards; none where the kernel does."""
        return self.process.pid if self.process else None

    def waited_s(self):
        """How long the thread that forwards has been ready to run while others had its CPU."""
        thread = self.forwarder()
        return int(text_of("/proc/%d/schedstat" % thread).split()[1]) / 1e9 if thread else 0.0


class Shunt(Road):
    """Shunt with one worker. `settings` go into its configuration."""

    settings = ""

    def forwarder(self):
        folder = "/proc/%d/task" % self.process.pid
        return next(int(tid) for tid in os.listdir(folder) if text_of("%s/%s/comm" % (folder, tid)).startswith("worker"))

    def begin(self):
        shunt = os.environ.get("SHUNT", os.path.join(ROOT, "target/release/shunt"))
        if not os.access(shunt, os.X_OK):
            raise Failed("there is no %s: run make first" % shunt)
        config = 'control = "%s"\n[[worker]]\ncpu = %d\n[[datapath]]\nid = 1\n' % (self.path("control"), self.cpus[1])
        config += self.settings
        for number in (1, 2):
            config += '[[datapath.port]]\nnumber = %d\nname = "p%d"\n' % (number, number)
            config += 'driver = "af_packet"\ndevice = "p%d"\nworkers = [0]\n' % number
        flows = self.write("flows", FLOWS % {"mark": "low_latency,"})
        with open(self.path("log"), "w+", encoding="utf-8") as log:
            command = [shunt, "run", "-c", self.write("switch.toml", config), "--flows", flows]
            self.process = self.rooms.start(self.switch, command, self.cpus, log)
            try:
                wait_until("shunt is ready", lambda: "ready" in text_of(self.path("log")), self.process)
            except Failed as failed:
                raise Failed("%s: %s" % (failed, text_of(self.path("log")))) from None


class LanesOn(Shunt):
    """Shunt with its two lanes."""

    settings = "[datapath.lanes]\nenabled = true\n"


class LanesOff(Shunt):
    """Shunt with one lane."""

    settings = "[datapath.lanes]\nenabled = false\n"


class OpenVswitch(Road):
    """Open vSwitch of the distribution, its datapath in userspace, ports as the kernel's sockets give them."""

    def begin(self):
        environment = dict(os.environ)
        for name in ("OVS_RUNDIR", "OVS_DBDIR", "OVS_SYSCONFDIR", "OVS_LOGDIR"):
            environment[name] = self.folder
        schemas = [root + "/usr/share/openvswitch/vswitch.ovsschema" for root in (TOOLS, "")]
        schema = next((schema for schema in schemas if os.path.exists(schema)), None)
        if schema is None:
            raise Failed("there is no vswitch.ovsschema: scripts/setup.sh lab unpacks it")
        database, socket = self.path("conf.db"), "unix:" + self.path("db.sock")
        quiet = ["-vconsole:off", "-vsyslog:off"]

        def run(name, *arguments):
            self.rooms.run(self.switch, [tool(name), *arguments], env=environment)

        def start(name, *arguments):
            return self.rooms.start(self.switch, [tool(name), *arguments, *quiet], self.cpus[1:], env=environment)

        run("ovsdb-tool", "create", database, schema)
        server = start("ovsdb-server", database, "--remote=p" + socket)
        wait_until("ovsdb-server is ready", lambda: os.path.exists(self.path("db.sock")), server)
        run("ovs-vsctl", "--db=" + socket, "--timeout=20", "--no-wait", "init")
        self.process = start("ovs-vswitchd", socket, "--disable-system")
        setup = "add-br br0 -- set bridge br0 datapath_type=netdev fail_mode=secure protocols=OpenFlow13"
        for number in (1, 2):
            setup += " -- add-port br0 p%d -- set interface p%d ofport_request=%d" % (number, number, number)
        run("ovs-vsctl", "--db=" + socket, "--timeout=20", *setup.split())
        wait_until("br0 is ready", lambda: os.path.exists(self.path("br0.mgmt")), self.process)
        flows = self.write("flows", FLOWS % {"mark": ""})
        run("ovs-ofctl", "-O", "OpenFlow13", "add-flows", "unix:" + self.path("br0.mgmt"), flows)


class Bridge(Road):
    """The kernel's own bridge."""

    def begin(self):
        self.rooms.ip(self.switch, "link add br0 type bridge")
        for port in ("p1", "p2"):
            self.rooms.ip(self.switch, "link set %s master br0" % port)
        self.rooms.ip(self.switch, "link set br0 up")


def mac(number):
    """A host's MAC address."""
    return "02:00:00:00:00:%02x" % number


def text_of(path):
    """A file's text."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def tool(name):
    """A program of Open vSwitch."""
    for folder in ("/usr/bin/", "/usr/sbin/", "/usr/lib/openvswitch-switch/"):
        if os.path.exists(TOOLS + folder + name):
            return TOOLS + folder + name
    return name
