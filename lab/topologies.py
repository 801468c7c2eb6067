# SPDX-License-Identifier: Apache-2.0
"""Topologies for Mininet: mn --custom lab/shunt_mininet.py,lab/topologies.py --topo graph,Abilene.graphml

| topology | network |
|---|---|
| `graph,FILE[,HOSTS]` | a GraphML file of the Topology Zoo, or a network of docs/planning.md as JSON, with HOSTS hosts (default 1) at each node |
| `fattree,K[,OUTSIDE]` | the fat tree of even k with a host for each server, and OUTSIDE hosts (default 0) at each core switch |

Rows of switches are a part of Mininet: --topo linear,10. Switches have the datapath IDs 1, 2, ... in the order
of the file, and the port numbers of the file. Without numbers, ports are numbered as planners number them.
Hosts have the names h1, h2, ..., and their ports have higher numbers than the ports of links.
"""

import json
import os
import subprocess

from mininet.topo import Topo

# The planners read networks. They run in the environment of os-ken, which the distribution's Python lacks.
PLANNER = """
import json, sys
from shunt_controller.plan import fattree, files
from shunt_controller.plan.errors import PlanError
try:
    kind, *values = sys.argv[1:]
    network = files.read(values[0]) if kind == "graph" else fattree.make(int(values[0]), int(values[1]))
except PlanError as error:
    sys.exit(str(error))
print(json.dumps({"nodes": network.nodes, "roles": network.roles, "links": network.links}))
"""


def planned(*arguments):
    """Returns the network that the planners read or make."""
    python = os.path.abspath("target/tools/os-ken/bin/python")
    if not os.access(python, os.X_OK):
        raise SystemExit("%s is missing: run scripts/setup.sh lab in the root of the repository" % python)
    environment = dict(os.environ, PYTHONPATH=os.path.abspath("controller/src"))
    run = subprocess.run([python, "-c", PLANNER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         env=environment, text=True, check=False)
    if run.returncode:
        raise SystemExit(run.stderr.strip())
    return json.loads(run.stdout)


def count(what, text, most):
    """Returns a number of the command line, from 0 to `most`."""
    if not str(text).isdigit() or int(text) > most:
        raise SystemExit("%s is %r; it must be a number from 0 to %d" % (what, text, most))
    return int(text)


class Planned(Topo):
    """A network that the planners read or make, with further hosts at each switch."""

    def fill(self, network, hosts):
        """Adds the nodes and links of a network, then `hosts` hosts at each switch."""
        names, switches, taken = [], [], []
        for role in network["roles"]:
            is_host = role == "host"
            number = sum(name.startswith("h") == is_host for name in names) + 1
            name = "%s%d" % ("h" if is_host else "s", number)
            names.append(self.addHost(name) if is_host else self.addSwitch(name, dpid="%x" % number))
            if not is_host:
                switches.append(len(names) - 1)
            taken.append(0)
        for a, a_port, b, b_port in network["links"]:
            ends = {}
            for node, port, key in ((a, a_port, "port1"), (b, b_port, "port2")):
                taken[node] = max(taken[node], port)
                # Mininet numbers the interfaces of hosts from 0.
                ends[key] = port - 1 if network["roles"][node] == "host" else port
            self.addLink(names[a], names[b], **ends)
        number = sum(name.startswith("h") for name in names)
        for node in switches:
            for port in range(taken[node] + 1, taken[node] + 1 + hosts):
                number += 1
                self.addLink(self.addHost("h%d" % number), names[node], port1=0, port2=port)


class Graph(Planned):
    """A network of a file."""

    def build(self, file, hosts=1):
        """Reads the file. Mininet passes the parameters of --topo."""
        self.fill(planned("graph", str(file)), count("the number of hosts", hosts, 100))


class FatTree(Planned):
    """The fat tree of an even k."""

    def build(self, k=4, outside=0):
        """Makes the tree. Mininet passes the parameters of --topo."""
        numbers = [str(count(what, value, 64)) for what, value in (("k", k), ("the number of outside hosts", outside))]
        self.fill(planned("fat-tree", *numbers), 0)


topos = {"graph": Graph, "fattree": FatTree}
