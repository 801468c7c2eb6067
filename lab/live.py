# SPDX-License-Identifier: Apache-2.0
"""Networks for experiments with a running controller: switches are datapaths of one process, and links are veth
pairs in one network namespace."""

import json
import os
import re
import subprocess
import time

from program import PLANNING, PYTHON
from report import ROOT
from rooms import Failed, wait_until
from switches import MTU, mac, text_of

SHUNT = os.environ.get("SHUNT", os.path.join(ROOT, "target/release/shunt"))
ROOM = "sw"
# Time for switches to start.
START_S = 60
# Prints a network of the planners: a fat tree, or the network of a file.
PLANNER = """
import json, sys
from shunt_controller.plan import fattree, files
network = fattree.make(int(sys.argv[1])) if sys.argv[1].isdigit() else files.read(sys.argv[1])
print(json.dumps({"roles": network.roles, "links": network.links}))
"""


class Live:
    """A network of switches, and hosts at some of their ports. Switches are numbered from 1, which is also
    their datapath ID. Device s1p2 is port 2 of switch 1. Host N is in room hN and has the address 10.0.0.N."""

    def __init__(self, rooms, folder, links, hosts=()):
        self.rooms, self.folder, self.links, self.hosts = rooms, folder, links, list(hosts)
        self.ports = {}
        for a, a_port, b, b_port in links:
            self.ports.setdefault(a, []).append(a_port)
            self.ports.setdefault(b, []).append(b_port)
        for switch, port in self.hosts:
            self.ports.setdefault(switch, []).append(port)
        self.switches = self.controller = None
        rooms.make(ROOM)
        commands = []
        for a, a_port, b, b_port in links:
            ends = "s%dp%d" % (a, a_port), "s%dp%d" % (b, b_port)
            commands.append("link add %s mtu %d type veth peer name %s mtu %d" % (ends[0], MTU, ends[1], MTU))
            commands += ["link set %s up" % end for end in ends]
        self.batch(commands)
        for number, (switch, port) in enumerate(self.hosts, 1):
            room = "h%d" % number
            rooms.make(room)
            rooms.cable(ROOM, "s%dp%d" % (switch, port), room, "eth0")
            rooms.ip(room, "link set eth0 address %s" % mac(number))
            rooms.ip(room, "address add 10.0.0.%d/24 dev eth0" % number)

    def batch(self, commands):
        """Runs many commands of `ip` in the room of the switches."""
        self.rooms.run(ROOM, ["sh", "-c", "ip -batch - <<'END'\n%s\nEND" % "\n".join(commands)])

    def set_link(self, device, is_up):
        """Takes a device up or down."""
        self.rooms.ip(ROOM, "link set %s %s" % (device, "up" if is_up else "down"))

    def start_switches(self):
        """Starts the process of all switches, and waits until they forward."""
        lines = ["[[worker]]"]
        for number, ports in sorted(self.ports.items()):
            lines += ["[[datapath]]", "id = %d" % number, "control = %s" % json.dumps(self.control(number))]
            lines += ["[datapath.openflow]", 'controllers = ["tcp:127.0.0.1:6653"]', 'fail_mode = "secure"']
            for port in sorted(ports):
                device = "s%dp%d" % (number, port)
                lines += ["[[datapath.port]]", "number = %d" % port, 'name = "%s"' % device, 'driver = "af_packet"']
                lines += ['device = "%s"' % device, "workers = [0]"]
        config, log = os.path.join(self.folder, "switches.toml"), os.path.join(self.folder, "switches.log")
        with open(config, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        with open(log, "w", encoding="utf-8") as file:
            self.switches = self.rooms.start(ROOM, [SHUNT, "run", "-c", config], log=file)
        try:
            wait_until("the switches are ready", lambda: text_of(log).count("shunt: ready") == len(self.ports), self.switches, START_S)
        except Failed as failed:
            raise Failed("%s; the log ends with:\n%s" % (failed, text_of(log)[-1000:])) from failed

    def control(self, switch):
        """Returns the path of a datapath's socket."""
        return os.path.join(self.folder, "s%d.sock" % switch)

    def kill_switches(self):
        """Ends the process of the switches as a crash does."""
        self.switches.kill()
        self.switches.wait()
        self.rooms.processes.remove(self.switches)

    def start_controller(self, *arguments):
        """Starts `shunt-controller run` with a new log."""
        with open(self.log_file, "w", encoding="utf-8") as file:
            command = [PYTHON, "-m", "shunt_controller", "run", *arguments]
            self.controller = self.rooms.start(ROOM, command, log=file, env=os.environ | PLANNING)

    def stop_controller(self):
        """Ends the controller."""
        self.rooms.stop(self.controller)

    @property
    def log_file(self):
        """Path of the controller's log."""
        return os.path.join(self.folder, "controller.log")

    def count(self, pattern):
        """Returns the number of lines of the controller's log in which a regular expression occurs."""
        return len(re.findall(pattern, text_of(self.log_file), re.MULTILINE))

    def wait_for(self, pattern, count=1, limit_s=60):
        """Waits until the controller's log has a number of lines with a regular expression."""
        try:
            wait_until("the log has %r" % pattern, lambda: self.count(pattern) >= count, self.controller, limit_s)
        except Failed as failed:
            raise Failed("%s; the log ends with:\n%s" % (failed, text_of(self.log_file)[-2000:])) from failed


class Stream:
    """Pings from one host to another, at a constant interval."""

    def __init__(self, live, src, dst, interval_s=0.02):
        self.interval_s = interval_s
        command = ["ping", "-D", "-n", "-i", str(interval_s), "-W", "2", "10.0.0.%d" % dst]
        self.process = live.rooms.start("h%d" % src, command, log=subprocess.PIPE, text=True)
        self.rooms = live.rooms

    def end(self):
        """Ends the stream. Returns the number of lost pings and the longest time without answers, in seconds.
        The last ping is not counted, because its answer may be on its way."""
        end = time.time()
        self.process.send_signal(2)
        output, _ = self.process.communicate(timeout=10)
        self.rooms.processes.remove(self.process)
        received = [(float(at), int(number)) for at, number in re.findall(r"^\[([\d.]+)\].*icmp_seq=(\d+) .*time=", output, re.MULTILINE)]
        sent = int(re.search(r"(\d+) packets transmitted", output).group(1))
        if not received:
            return sent, float("inf")
        arrived = {number for _, number in received}
        # Pings may still be without answers at the end.
        times = [*(at for at, _ in received), end]
        gap_s = max(b - a for a, b in zip(times, times[1:]))
        return sum(number not in arrived for number in range(1, sent)), gap_s


def planned(what):
    """Returns the links between the switches of a fat tree, given by its k, or of a network file. Also returns
    the ports for hosts."""
    done = subprocess.run([PYTHON, "-c", PLANNER, str(what)], env=os.environ | PLANNING, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(done.stderr.strip().rsplit("\n", 1)[-1])
    network = json.loads(done.stdout)
    switches = (node for node, role in enumerate(network["roles"]) if role != "host")
    number = {node: at for at, node in enumerate(switches, 1)}
    links, hosts = [], []
    for a, a_port, b, b_port in network["links"]:
        if a in number and b in number:
            links.append((number[a], a_port, number[b], b_port))
        else:
            hosts.append((number[a], a_port) if a in number else (number[b], b_port))
    return links, hosts


def since(begin):
    """Returns the time in seconds since a time of time.monotonic()."""
    return time.monotonic() - begin
