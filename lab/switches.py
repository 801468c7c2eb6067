# SPDX-License-Identifier: Apache-2.0
"""A road is two hosts with a chain of two-port switches between them. The switches are Shunt, Open vSwitch or
Linux bridges.
"""

import json
import os
import signal
import time

from report import ROOT
from rooms import Failed, wait_until

# Folder into which scripts/setup.sh unpacks Open vSwitch if it is not installed.
TOOLS = os.path.join(ROOT, "target/tools/ovs")
# MTU of links between switches, whose frames may have a key or a tag.
MTU = 1600
# Time for a switch to load its flows.
START_S = 120
# Time in which a signal for a process group reaches all its processes.
SIGNAL_S = 0.5
# Ports a and b are connected, and pings are low-latency. Open vSwitch gets the same flows without this mark.
FLOWS = """
priority=20,icmp,in_port=%(a)d,nw_dst=10.0.0.2/32,%(mark)sactions=output:%(b)d
priority=20,icmp,in_port=%(b)d,nw_dst=10.0.0.1/32,%(mark)sactions=output:%(a)d
priority=10,in_port=%(a)d,actions=output:%(b)d
priority=10,in_port=%(b)d,actions=output:%(a)d
"""
# Flows between the same ports by the hosts' MAC addresses, without marks.
MAC_FLOWS = """
in_port=%(a)d,dl_dst=02:00:00:00:00:02,actions=output:%(b)d
in_port=%(b)d,dl_dst=02:00:00:00:00:01,actions=output:%(a)d
"""


class Road:
    """Two hosts and a chain of switches between them. A subclass is a kind of switch. `name` is also the name
    of the switches' room. Switch n (from 1) has port 2n-1 towards the first host and port 2n towards the
    second."""

    flows = FLOWS

    def __init__(self, rooms, name, folder, cpus, hops=1):
        # The second of the two CPUs is for forwarding.
        self.rooms, self.cpus = rooms, cpus
        self.folder = os.path.join(folder, name)
        os.mkdir(self.folder)
        self.switch, self.hosts = name, [name + "-h1", name + "-h2"]
        self.pairs = [(2 * hop + 1, 2 * hop + 2) for hop in range(hops)]
        # The process that forwards, or None if the kernel forwards.
        self.process = None
        rooms.make(self.switch)
        for (_, end), (begin, _) in zip(self.pairs, self.pairs[1:]):
            rooms.cable(self.switch, "p%d" % end, self.switch, "p%d" % begin)
        for number, host in enumerate(self.hosts, 1):
            rooms.make(host)
            rooms.cable(self.switch, "p%d" % (1 if number == 1 else 2 * hops), host, "eth0")
            rooms.ip(host, "link set eth0 address %s" % mac(number))
            rooms.ip(host, "address add 10.0.0.%d/24 dev eth0" % number)
            # Open vSwitch in userspace does not complete checksums that a host leaves to its device.
            rooms.run(host, ["ethtool", "-K", "eth0", "tx", "off"])
        for host, other in zip(self.hosts, (2, 1)):
            rooms.ip(host, "neigh add 10.0.0.%d lladdr %s dev eth0 nud permanent" % (other, mac(other)))
        self.begin()

    def begin(self):
        """Starts the switches."""
        raise NotImplementedError

    def path(self, name):
        """Returns the path of a file of this switch."""
        return os.path.join(self.folder, name)

    def write(self, name, text):
        """Writes a file of this switch and returns its path."""
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def packets(self, host, direction):
        """Returns the number of packets that host 0 or 1 has sent ("tx") or received ("rx")."""
        counter = "/sys/class/net/eth0/statistics/%s_packets" % direction
        return int(self.rooms.run(self.hosts[host], ["cat", counter]))

    # Beginning of the forwarding thread's name, or None if the process's main thread forwards.
    thread = None

    def forwarder(self):
        """Returns the ID of the forwarding thread, or None if the kernel forwards."""
        if self.process is None or self.thread is None:
            return self.process and self.process.pid
        folder = "/proc/%d/task" % self.process.pid
        try:
            for tid in os.listdir(folder):
                try:
                    name = text_of("%s/%s/comm" % (folder, tid))
                except OSError:
                    # Another thread has ended since the threads were listed.
                    continue
                if name.startswith(self.thread):
                    return int(tid)
            raise ProcessLookupError
        except OSError:
            # Ctrl-C ends the switch, too. This process may get the signal a moment later.
            time.sleep(SIGNAL_S)
            raise Failed("%s: the forwarding thread has ended" % self.switch) from None

    def pause(self, number=signal.SIGSTOP):
        """Pauses the switches, so that busy-polling switches leave the CPU to others."""
        if self.process:
            self.process.send_signal(number)

    def resume(self):
        """Resumes the switches after a pause."""
        self.pause(signal.SIGCONT)

    def waited_s(self):
        """Returns the time in seconds for which the forwarding thread was ready to run but waited for its
        CPU."""
        thread = self.forwarder()
        return int(text_of("/proc/%d/schedstat" % thread).split()[1]) / 1e9 if thread else 0.0


class Shunt(Road):
    """Shunt with one worker. Each of several switches is a pair of ports of one datapath. `settings` are
    added to its configuration."""

    settings = ""
    driver, idle = "af_packet", "adaptive"
    thread = "worker"

    def begin(self):
        config = 'control = "%s"\n[[worker]]\ncpu = %d\nidle = "%s"\n' % (self.path("control"), self.cpus[1], self.idle)
        config += "[[datapath]]\nid = 1\n" + self.settings
        for number in (number for pair in self.pairs for number in pair):
            config += '[[datapath.port]]\nnumber = %d\nname = "p%d"\n' % (number, number)
            config += 'driver = "%s"\ndevice = "p%d"\nworkers = [0]\n' % (self.driver, number)
        flows = "".join(self.flows % {"mark": "low_latency,", "a": a, "b": b} for a, b in self.pairs)
        self.run(["run", "-c", self.write("switch.toml", config), "--flows", self.write("flows", flows)])

    def run(self, arguments, datapaths=1):
        """Starts shunt and waits until all datapaths are ready."""
        shunt = os.environ.get("SHUNT", os.path.join(ROOT, "target/release/shunt"))
        if not os.access(shunt, os.X_OK):
            raise Failed("%s is missing: run make first" % shunt)
        with open(self.path("log"), "w+", encoding="utf-8") as log:
            self.process = self.rooms.start(self.switch, [shunt, *arguments], self.cpus, log)
            try:
                ready = lambda: text_of(self.path("log")).count("shunt: ready") == datapaths  # noqa: E731
                wait_until("shunt is ready", ready, self.process, START_S)
            except Failed as failed:
                raise Failed("%s: %s" % (failed, text_of(self.path("log")))) from None


class Datapaths(Shunt):
    """Shunt with one datapath for each switch, in one process."""

    def begin(self):
        config = "[[worker]]\ncpu = %d\nidle = %s\n" % (self.cpus[1], json.dumps(self.idle))
        datapaths = self.datapaths()
        for number, (name, ports, flows, lines) in enumerate(datapaths, 1):
            config += "[[datapath]]\nid = %d\ncontrol = %s\n" % (number, json.dumps(self.path(name)))
            config += "flows = %s\n" % json.dumps(self.write(name + ".flows", flows))
            config += "".join(line + "\n" for line in lines)
            for port, device in ports:
                config += '[[datapath.port]]\nnumber = %d\nname = "p%d"\n' % (port, port)
                config += 'driver = "%s"\ndevice = "%s"\nworkers = [0]\n' % (self.driver, device)
        self.run(["run", "-c", self.write("switches.toml", config)], len(datapaths))

    def datapaths(self):
        """Returns the name of each datapath, its ports as pairs of number and device, the lines of its flow
        file, and further lines of its configuration."""
        raise NotImplementedError


class LanesOn(Shunt):
    """Shunt with both lanes."""

    settings = "[datapath.lanes]\nenabled = true\n"


class LanesOff(Shunt):
    """Shunt with one lane."""

    settings = "[datapath.lanes]\nenabled = false\n"


class OpenVswitch(Road):
    """Open vSwitch as Debian packages it, with the userspace datapath and ports on the kernel's sockets."""

    # Type of each port, and a setting that is applied before the ports are added.
    port_type, setting = "system", ""

    def begin(self):
        environment = dict(os.environ)
        for name in ("OVS_RUNDIR", "OVS_DBDIR", "OVS_SYSCONFDIR", "OVS_LOGDIR"):
            environment[name] = self.folder
        schemas = [root + "/usr/share/openvswitch/vswitch.ovsschema" for root in (TOOLS, "")]
        schema = next((schema for schema in schemas if os.path.exists(schema)), None)
        if schema is None:
            raise Failed("vswitch.ovsschema is missing: scripts/setup.sh lab unpacks it")
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
        if self.setting:
            run("ovs-vsctl", "--db=" + socket, "--timeout=20", "set", "Open_vSwitch", ".", self.setting % (1 << self.cpus[1]))
        for name, ports, flows in self.bridges():
            setup = "add-br %s -- set bridge %s datapath_type=netdev fail_mode=secure protocols=OpenFlow13" % (name, name)
            for number, device in ports:
                setup += " -- add-port %s %s" % (name, device)
                setup += " -- set interface %s type=%s ofport_request=%d" % (device, self.port_type, number)
            run("ovs-vsctl", "--db=" + socket, "--timeout=20", *setup.split())
            wait_until("%s is ready" % name, lambda name=name: os.path.exists(self.path(name + ".mgmt")), self.process)
            flows = self.write(name + ".flows", flows)
            run("ovs-ofctl", "-O", "OpenFlow13", "--bundle", "add-flows", "unix:" + self.path(name + ".mgmt"), flows)

    def bridges(self):
        """Returns the name of each bridge, its ports as pairs of number and device, and the lines of its
        flows."""
        flows = self.flows % {"mark": "", "a": 1, "b": 2}
        return [
            ("br%d" % hop, [(number, "p%d" % port) for number, port in enumerate(pair, 1)], flows)
            for hop, pair in enumerate(self.pairs)
        ]


class Bridge(Road):
    """Bridges of the Linux kernel."""

    def begin(self):
        for hop, pair in enumerate(self.pairs):
            self.rooms.ip(self.switch, "link add br%d type bridge" % hop)
            for port in pair:
                self.rooms.ip(self.switch, "link set p%d master br%d" % (port, hop))
            self.rooms.ip(self.switch, "link set br%d up" % hop)


def mac(number):
    """Returns a host's MAC address."""
    return "02:00:00:00:%02x:%02x" % divmod(number, 256)


def text_of(path):
    """Returns the text of a file, which may be a log that is being written."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def tool(name):
    """Returns the path of a program of Open vSwitch."""
    for folder in ("/usr/bin/", "/usr/sbin/", "/usr/lib/openvswitch-switch/"):
        if os.path.exists(TOOLS + folder + name):
            return TOOLS + folder + name
    return name
