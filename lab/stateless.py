#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests stateless forwarding between network namespaces, with networks that the planners configure.

Core switches use no tables. All switches are datapaths of one process, and every link is a veth pair.
docs/planning.md describes the plans.

    lab/stateless.py path     six switches in a row, KeyFlow: the first one pushes a key, the last pops it
    lab/stateless.py tree     the fat tree of k = 4, Tag-and-Forward: edge switches push and pop tags

Switches are configured by a file, `shunt flows load` and, in the tree, `shunt gates set`. Then hosts ping
each other and run TCP. Frames captured between switches are compared byte by byte with docs/wire-formats.md.

Needs root, `make` before, and the programs that `scripts/setup.sh test` installs.
"""

import argparse
import importlib.util
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

from program import PYTHON
from report import ROOT
from rooms import Failed, Rooms, done, wait_until
from switches import MTU

if importlib.util.find_spec("os_ken") is None:
    # The planners run in the environment of os-ken, which the distribution's Python lacks.
    if sys.executable == PYTHON or not os.path.exists(PYTHON):
        sys.exit("lab/stateless.py: %s has no os-ken: run scripts/setup.sh test first" % PYTHON)
    os.execv(PYTHON, [PYTHON, *sys.argv])
sys.path.insert(0, os.path.join(ROOT, "controller/src"))

# pylint: disable=wrong-import-position
from shunt_controller.planned import read_plan, sections_of  # noqa: E402
from shunt_controller.sections import TABLES, Bank, Flag, Gates, Trusted  # noqa: E402

SHUNT = os.environ.get("SHUNT", os.path.join(ROOT, "target/release/shunt"))
ROOM = "sw"
KEYFLOW, TF = 0x88B5, 0xFF1F
FLAGS = {Flag.NONE: "", Flag.SERVER: "server", Flag.EXTERNAL: "external", Flag.ASSISTS: "assists"}
# Minimum throughput of a working TCP connection.
MBIT_S_MIN = 1


def plan(folder, *arguments):
    """Runs the planner and returns the plan."""
    path = os.path.join(folder, "plan.json")
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "controller/src"))
    done([sys.executable, "-m", "shunt_controller.plan", *arguments, "--json", path], env=environment)
    return read_plan(path)


class Host:
    """A host in a separate room, connected to a port of a switch."""

    def __init__(self, number, switch, port):
        self.number, self.switch, self.port = number, switch, port
        self.room = "h%d" % number
        self.mac = "02:00:00:00:00:%02x" % number
        self.address = "10.0.0.%d" % number


class Network:
    """Switches in one process, and the hosts around them."""

    def __init__(self, rooms, folder, links, hosts):
        """Creates the links, which are tuples (switch, port, switch, port), and connects the hosts."""
        self.rooms, self.folder, self.hosts = rooms, folder, hosts
        self.devices = {}
        # The pushed header makes frames between switches longer than frames of hosts.
        self.mtu = MTU
        rooms.make(ROOM)
        for a, a_port, b, b_port in links:
            ends = "%sp%d" % (a, a_port), "%sp%d" % (b, b_port)
            rooms.cable(ROOM, ends[0], ROOM, ends[1])
            for end in ends:
                rooms.ip(ROOM, "link set %s mtu %d" % (end, self.mtu))
            self.devices.update({(a, a_port): ends[0], (b, b_port): ends[1]})
        for host in hosts:
            device = "%sp%d" % (host.switch, host.port)
            rooms.make(host.room)
            rooms.cable(ROOM, device, host.room, "eth0")
            rooms.ip(host.room, "link set eth0 address %s" % host.mac)
            rooms.ip(host.room, "address add %s/24 dev eth0" % host.address)
            self.devices[host.switch, host.port] = device
            for other in hosts:
                if other is not host:
                    rooms.ip(
                        host.room,
                        "neigh add %s lladdr %s dev eth0 nud permanent" % (other.address, other.mac),
                    )
        self.process = None

    def path(self, name):
        """Returns the path of a file of this run."""
        return os.path.join(self.folder, name)

    def socket(self, switch):
        """Returns the path of a switch's control socket."""
        return self.path("%s.sock" % switch)

    def start(self, configs):
        """Starts the switches. `configs` has the lines under [datapath.stateless] of each."""
        silent = self.path("silent.flows")
        with open(silent, "w", encoding="utf-8") as file:
            file.write("priority=0,actions=drop\n")
        text = ["[[worker]]"]
        for number, (switch, lines) in enumerate(configs.items(), 1):
            text += ["[[datapath]]", "id = %d" % number, 'control = "%s"' % self.socket(switch)]
            # Without a controller, a datapath would learn MAC addresses, which fails in networks with loops.
            text.append('flows = "%s"' % silent)
            text += ["[datapath.stateless]", *lines]
            for (owner, port), device in sorted(self.devices.items()):
                if owner == switch:
                    text += ["[[datapath.port]]", "number = %d" % port, 'name = "p%d"' % port]
                    text += ['driver = "af_packet"', 'device = "%s"' % device, "workers = [0]"]
        config = self.path("switches.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("\n".join(text) + "\n")
        self.rooms.run(ROOM, [SHUNT, "check", "-c", config])
        log_path = self.path("shunt.log")
        with open(log_path, "w", encoding="utf-8") as log:
            self.process = self.rooms.start(ROOM, [SHUNT, "run", "-c", config], log=log)

        def ready():
            with open(log_path, encoding="utf-8") as file:
                return file.read().count("shunt: ready") == len(configs)

        wait_until("%d datapaths are ready" % len(configs), ready, self.process)

    def shunt(self, switch, *arguments, text=None):
        """Runs a command of shunt against a switch. Returns its output."""
        command = [SHUNT, "--control", self.socket(switch), *arguments]
        answer = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if answer.returncode:
            raise Failed("%s: %s" % (" ".join(command), answer.stdout.strip()))
        return answer.stdout

    def load(self, switch, flows):
        """Replaces all flows of a switch."""
        self.shunt(switch, "flows", "clear")
        text = "priority=0,actions=drop\n" + "".join(flow + "\n" for flow in flows)
        self.shunt(switch, "flows", "load", "-", text=text)

    def stop(self):
        """Stops the switches, which must exit with 0 and delete their sockets."""
        process, self.process = self.process, None
        self.rooms.stop(process)
        left = [name for name in os.listdir(self.folder) if name.endswith(".sock")]
        if process.returncode or left:
            raise Failed("the switches ended with exit code %s and left these files: %s" % (process.returncode, left))

    def ping(self, host, other, count=5, size=56):
        """Sends pings, which must all be answered."""
        text = self.rooms.run(
            host.room,
            ["ping", "-n", "-i", "0.05", "-W", "2", "-c", str(count), "-s", str(size), other.address],
        )
        if " 0% packet loss" not in text:
            raise Failed("pings from %s to %s are lost: %s" % (host.room, other.room, text))

    def throughput(self, host, other, seconds=2):
        """Returns the TCP throughput between two hosts in Mbit/s; raises Failed if it is too low."""
        server = self.rooms.start(other.room, ["iperf3", "-s", "-1"])
        wait_until("iperf3 listens", lambda: "5201" in self.rooms.run(other.room, ["ss", "-ltn"]), server)
        text = self.rooms.run(host.room, ["iperf3", "-J", "-c", other.address, "-t", str(seconds)])
        self.rooms.stop(server)
        return received_mbit_s(text)

    def capture(self, devices, ethertype, host, other):
        """Returns the frame of one ping as each of these devices receives it."""
        files = [self.path("%s.pcap" % device) for device in devices]
        dumps = []
        for device, file in zip(devices, files):
            # -Q in: capture frames as received at this end of the link.
            command = ["tcpdump", "-Z", "root", "-i", device, "-Q", "in", "-U", "-c", "1", "-w", file]
            dumps.append(self.rooms.start(ROOM, command + ["ether", "proto", "0x%x" % ethertype]))
        for file, dump in zip(files, dumps):
            wait_until("tcpdump writes %s" % file, lambda file=file: os.path.exists(file), dump)
        self.ping(host, other, count=3)
        for dump in dumps:
            dump.wait(10)
            self.rooms.stop(dump)
        return [first_frame(file) for file in files]


def received_mbit_s(text):
    """Returns the throughput from the JSON output of iperf3."""
    try:
        result = json.loads(text)
        found = result["end"]["sum_received"]["bits_per_second"] / 1e6
    except (ValueError, LookupError, TypeError) as error:
        # The output of iperf3 contains its error message.
        raise Failed("iperf3 has no result: %s" % text.strip()[-500:]) from error
    if found < MBIT_S_MIN:
        raise Failed("TCP reaches %.3f Mbit/s; a working connection reaches at least %d" % (found, MBIT_S_MIN))
    return found


def first_frame(path):
    """Returns the first frame of a capture."""
    with open(path, "rb") as file:
        content = file.read()
    if len(content) < 40:
        raise Failed("%s contains no frame" % path)
    (length,) = struct.unpack_from("=I", content, 24 + 8)
    return content[40 : 40 + length]


def expect(what, found, wanted):
    """Raises Failed unless both values are equal."""
    if found != wanted:
        raise Failed("%s is %r, not %r" % (what, found, wanted))


def config_lines(sections, mtu=None):
    """Returns the configuration lines of a plan's sections, optionally with an MTU for the ports to other
    switches."""
    trusted, rest = trusted_of(sections), []
    lines = ["trusted = %s" % trusted]
    if mtu is not None:
        lines.append("mtu = [%s]" % ", ".join("[%d, %d]" % (port, mtu) for port in trusted))
    for section in sections:
        if isinstance(section, Bank) and section.residues:
            bank = section.residues
            labels = ", ".join('"tables"' if port == TABLES else str(port) for _, port in sorted(bank.labels.items()))
            rest += ["[[datapath.stateless.bank]]", "epoch = %d" % section.epoch, "id = %d" % bank.id, "labels = [%s]" % labels]
            rest.append("backups = [%s]" % ", ".join("[%d, %d]" % pair for pair in sorted(bank.backups.items())))
        if isinstance(section, Gates):
            gates = section.gates
            rest += ["[datapath.stateless.gates]", *("%s = %d" % pair for pair in numbers_of(gates))]
            ports = ('[%d, %d, "%s"]' % (port, gate.number, FLAGS[gate.flag]) for port, gate in sorted(gates.ports.items()))
            rest.append("ports = [%s]" % ", ".join(ports))
    return lines + rest


def gates_command(sections):
    """Returns the arguments of `shunt gates set` for the gates of the sections."""
    (gates,) = (section.gates for section in sections if isinstance(section, Gates))
    command = ["gates", "set", "--trusted", ",".join(map(str, trusted_of(sections)))]
    for key, value in numbers_of(gates):
        command += ["--%s" % key.replace("_", "-"), str(value)]
    for port, gate in sorted(gates.ports.items()):
        command.append("%d=%d%s" % (port, gate.number, ":" + FLAGS[gate.flag] if FLAGS[gate.flag] else ""))
    return command


def trusted_of(sections):
    """Returns the ports that lead to other switches."""
    (trusted,) = (section.ports for section in sections if isinstance(section, Trusted))
    return sorted(trusted)


def numbers_of(gates):
    """Returns the parameters of the gate arithmetic."""
    return [(key, getattr(gates, key)) for key in ("down_d", "up_d", "external_d", "server_gate_max")]


def ends_of(network):
    """Returns the links of a plan's network as tuples (switch, port, switch, port)."""
    return [(link["a"], link["a_port"], link["b"], link["b_port"]) for link in network["links"]]


def run_path(rooms, folder):
    """Tests six switches in a row."""
    count = 6
    names = ["s%d" % number for number in range(1, count + 1)]
    graph = os.path.join(folder, "path.json")
    with open(graph, "w", encoding="utf-8") as file:
        json.dump({"name": "path", "nodes": names, "links": [list(pair) for pair in zip(names, names[1:])]}, file)
    planned = plan(folder, "keyflow", graph)
    links = ends_of(planned["network"])
    hosts = [Host(1, names[0], 9), Host(2, names[-1], 9)]
    network = Network(rooms, folder, links, hosts)
    network.start({name: config_lines(sections, network.mtu) for name, sections in sections_of(planned).items()})
    (route_plan,) = planned["plans"]
    segments = {(route["from"], route["to"]): route["segments"] for route in route_plan["routes"]}
    for host, other in (hosts, hosts[::-1]):
        (segment,) = segments[host.switch, other.switch]
        push = "push_key(key=%s,width=%d,hops=%d)" % (segment["key"], route_plan["width_bits"], segment["hop_limit"])
        network.load(
            host.switch,
            [
                "priority=10,in_port=%d,dl_dst=%s,actions=%s,output:%d" % (host.port, other.mac, push, segment["out_port"]),
                "priority=20,dl_type=0x%x,actions=pop_key,goto_table:1" % KEYFLOW,
                "table=1,priority=10,dl_dst=%s,actions=output:%d" % (host.mac, host.port),
            ],
        )
    for name in names[1:-1]:
        network.load(name, [])
    network.ping(*hosts)
    network.ping(*hosts, size=1400)
    (segment,) = segments[names[0], names[-1]]
    # Ports at which s2 to s6 receive the first host's packets.
    inward = [next(b_port if a == before else a_port for a, a_port, b, b_port in links if {a, b} == {before, name})
              for before, name in zip(names, names[1:])]
    devices = [network.devices[name, port] for name, port in zip(names[1:], inward)]
    width = route_plan["width_bits"] // 8
    for passed, frame in enumerate(network.capture(devices, KEYFLOW, *hosts)):
        hops = segment["hop_limit"] - passed
        header = struct.pack(">HBBBBHH", KEYFLOW, 0x10, hops, width // 8, 0, 0x0800, 0)
        key = int(segment["key"], 16).to_bytes(width, "big")
        expect("header after %d switches" % (passed + 1), frame[12 : 22 + width], header + key)
        expect("IP version of the inner packet", frame[22 + width] >> 4, 4)
    print("path: pings pass six switches; the key stays, the hop limit falls from %d to %d"
          % (segment["hop_limit"], segment["hop_limit"] - len(devices) + 1))
    for name in names[1:-1]:
        shown = json.loads(network.shunt(name, "show", "stateless", "--json"))
        if shown["taken"] < 20 or any(shown["dropped"].values()):
            raise Failed("%s: %s" % (name, shown))
        tables = json.loads(network.shunt(name, "show", "tables", "--json"))["tables"]
        expect("lookups in tables of %s" % name, sum(table["lookups"] for table in tables), 0)
    print("path: no packet was looked up in a table of the switches between the ends")
    print("path: TCP reaches %.0f Mbit/s" % network.throughput(*hosts))
    # A host must not choose paths, so its port is not trusted.
    before = json.loads(network.shunt(names[0], "show", "stateless", "--json"))["dropped"]["untrusted_tag"]
    sender = "import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('eth0', 0)); s.send(bytes.fromhex('%s'))"
    forged = bytes(12) + struct.pack(">HBBBBHH", KEYFLOW, 0x10, 9, 1, 0, 0x0800, 0) + bytes(50)
    rooms.run(hosts[0].room, ["python3", "-c", sender % forged.hex()])
    wait_until(
        "a forged key is dropped",
        lambda: json.loads(network.shunt(names[0], "show", "stateless", "--json"))["dropped"]["untrusted_tag"] > before,
    )
    print("path: a key from a host is dropped as untrusted_tag")
    network.stop()


def run_tree(rooms, folder):
    """Tests the fat tree of k = 4."""
    planned = plan(folder, "fat-tree", "--k", "4")
    switches = {switch["name"]: switch for switch in planned["switches"]}
    short = {name: "n%d" % number for number, name in enumerate(switches)}
    links = [
        (short[a], a_port, short[b], b_port)
        for a, a_port, b, b_port in ends_of(planned["network"])
        if a in switches and b in switches
    ]
    # Two hosts at one edge switch, one host at another edge switch of its pod, and one host in another pod.
    first = planned["hosts"][0]
    pod = switches[first["switch"]]["pod"]
    chosen = [entry for entry in planned["hosts"] if entry["switch"] == first["switch"]][:2]
    chosen += [entry for entry in planned["hosts"] if switches[entry["switch"]]["pod"] == pod and entry["switch"] != first["switch"]][:1]
    chosen += [entry for entry in planned["hosts"] if switches[entry["switch"]]["pod"] != pod][-1:]
    hosts = [Host(number, short[entry["switch"]], entry["port"]) for number, entry in enumerate(chosen, 1)]
    gate = {host: entry["gate"] for host, entry in zip(hosts, chosen)}
    network = Network(rooms, folder, links, hosts)
    configured = {short[name]: sections for name, sections in sections_of(planned).items()}
    # The file configures the core switches. The command line configures all other switches.
    cores = {short[name] for name, switch in switches.items() if switch["layer"] == "core"}
    network.start({name: config_lines(sections) if name in cores else [] for name, sections in configured.items()})
    for name in configured.keys() - cores:
        network.shunt(name, *gates_command(configured[name]))
    form = "push_tf" if planned["header"]["name"] == "paper" else "push_tf_wide"
    names = {value: key for key, value in short.items()}
    for name in configured:
        network.load(name, [])
    tags, edges = {}, {}
    for host in hosts:
        switch = switches[names[host.switch]]
        flows = []
        for other in hosts:
            target = switches[names[other.switch]]
            if other is host:
                continue
            match = "priority=10,in_port=%d,dl_dst=%s" % (host.port, other.mac)
            if other.switch == host.switch:
                flows.append("%s,actions=output:%d" % (match, other.port))
                continue
            plane = (host.number + other.number) % len(switch["uplinks"])
            up = 0 if target["pod"] == switch["pod"] else planned["ups"][plane][other.number % len(planned["ups"][plane])]
            tags[host, other] = (host.number % 8, up, gate[other])
            flows.append("%s,actions=%s(%d,%d,%d),output:%d" % (match, form, *tags[host, other], switch["uplinks"][plane]))
        edges.setdefault(host.switch, []).extend(flows)
    for name, flows in edges.items():
        network.load(name, flows)
    for host in hosts:
        for other in hosts:
            if other is not host:
                network.ping(host, other)
    print("tree: %d hosts under %d switches ping each other, over edges, aggregation and cores" % (len(hosts), len(configured)))
    host, other = hosts[0], hosts[-1]
    uplinks = [network.devices[host.switch, port] for port in switches[names[host.switch]]["uplinks"]]
    # Tags are captured at the far ends of the uplinks.
    far = {}
    for a, a_port, b, b_port in links:
        far["%sp%d" % (a, a_port)], far["%sp%d" % (b, b_port)] = "%sp%d" % (b, b_port), "%sp%d" % (a, a_port)
    uplink = uplinks[(host.number + other.number) % len(uplinks)]
    (frame,) = network.capture([far[uplink]], TF, host, other)
    qid, up, down = tags[host, other]
    word = qid << 45 | up << planned["header"]["down_bits"] | down
    expect("tag", frame[12:22], struct.pack(">H", TF) + word.to_bytes(6, "big") + b"\x08\x00")
    print("tree: a tag on the wire is %s, as documented" % frame[12:20].hex())
    print("tree: TCP reaches %.0f Mbit/s" % network.throughput(host, other))
    for name in configured:
        if name not in edges:
            tables = json.loads(network.shunt(name, "show", "tables", "--json"))["tables"]
            expect("lookups in tables of %s" % name, sum(table["lookups"] for table in tables), 0)
    shown = network.shunt(host.switch, "gates", "show")
    if not re.search(r"^\s*%d\s+%d\s+server" % (host.port, gate[host]), shown, re.M):
        raise Failed("`shunt gates show` lacks the server gate: %s" % shown)
    print("tree: no packet was looked up in a table except at the edges")
    network.stop()


def main():
    """Runs the selected test."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("network", choices=["path", "tree"])
    network = parser.parse_args().network
    try:
        with Rooms() as rooms, tempfile.TemporaryDirectory(prefix="shunt-") as folder:
            {"path": run_path, "tree": run_tree}[network](rooms, folder)
    except Failed as failure:
        sys.exit("lab/stateless.py: %s" % failure)


if __name__ == "__main__":
    main()
