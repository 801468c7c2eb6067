# SPDX-License-Identifier: Apache-2.0
"""A network of switches as planners see it: nodes, links, and the ports of links."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from shunt_controller.plan.errors import PlanError, need

NODES_MAX = 100_000
LINKS_MAX = 1_000_000
PORT_MAX = 0xFFFF_FF00
"""Highest port number of OpenFlow."""

ROLES = ("core", "edge", "host")
"""Roles of nodes. A host is not a switch. An edge switch may be the end of a route, but no route crosses it.
A core switch has no such restriction."""


class Link(NamedTuple):
    """A link between two nodes, given by their indices, with its port number at each node."""

    a: int
    a_port: int
    b: int
    b_port: int


class Peer(NamedTuple):
    """The other end of a port's link."""

    node: int
    port: int


@dataclass(frozen=True)
class Network:
    """Nodes in the order of their file, and links. Ports of a node are numbered from 1."""

    name: str
    nodes: tuple[str, ...]
    roles: tuple[str, ...]
    links: tuple[Link, ...]
    notes: tuple[str, ...] = ()
    """Descriptions of parts of the file that were left out."""

    @cached_property
    def ports(self) -> tuple[dict[int, Peer], ...]:
        """Ports of each node in ascending order, with their peers."""
        found: list[dict[int, Peer]] = [{} for _ in self.nodes]
        for link in self.links:
            found[link.a][link.a_port] = Peer(link.b, link.b_port)
            found[link.b][link.b_port] = Peer(link.a, link.a_port)
        return tuple(dict(sorted(ports.items())) for ports in found)

    @cached_property
    def neighbours(self) -> tuple[dict[int, int], ...]:
        """Neighbours of each node in ascending order, with the lowest port that leads to each."""
        found: list[dict[int, int]] = []
        for ports in self.ports:
            lowest: dict[int, int] = {}
            for port, peer in ports.items():
                lowest.setdefault(peer.node, port)
            found.append(dict(sorted(lowest.items())))
        return tuple(found)

    @cached_property
    def indices(self) -> dict[str, int]:
        """Node index by name."""
        return {name: index for index, name in enumerate(self.nodes)}

    def index(self, name: str) -> int:
        """Returns the index of a node by its name. Raises PlanError if there is no such node."""
        if name not in self.indices:
            raise PlanError(f"{self.name} has no node {name!r}")
        return self.indices[name]

    @cached_property
    def components(self) -> list[list[int]]:
        """Returns the connected components, the largest one first."""
        seen = [False] * len(self.nodes)
        found = []
        for start in range(len(self.nodes)):
            if seen[start]:
                continue
            seen[start] = True
            queue, members = deque([start]), []
            while queue:
                node = queue.popleft()
                members.append(node)
                for peer in self.neighbours[node]:
                    if not seen[peer]:
                        seen[peer] = True
                        queue.append(peer)
            found.append(sorted(members))
        return sorted(found, key=lambda members: (-len(members), members[0]))

    def part(self, members: Iterable[int], note: str) -> "Network":
        """Returns the network of some nodes and the links between them. Ports keep their numbers."""
        kept = sorted(set(members))
        place = {node: index for index, node in enumerate(kept)}
        links = tuple(
            Link(place[link.a], link.a_port, place[link.b], link.b_port)
            for link in self.links
            if link.a in place and link.b in place
        )
        nodes, roles = (tuple(of[node] for node in kept) for of in (self.nodes, self.roles))
        return Network(self.name, nodes, roles, links, (*self.notes, note))

    def largest_part(self) -> "Network":
        """Returns the network itself if it is connected, otherwise its largest connected part."""
        if len(self.components) <= 1:
            return self
        largest = self.components[0]
        left = len(self.nodes) - len(largest)
        return self.part(largest, f"{left} nodes outside of the largest connected part were left out")

    def need_connected(self) -> None:
        """Raises an error unless the network is connected."""
        need(len(self.nodes) >= 2, f"{self.name} has {len(self.nodes)} nodes; routes need at least two")
        if len(self.components) > 1:
            cut = self.nodes[self.components[1][0]]
            raise PlanError(
                f"{self.name} has {len(self.components)} parts without a link between them ({cut!r} is not reached from "
                f"{self.nodes[self.components[0][0]]!r}); --largest plans only its largest part"
            )


class Wire(NamedTuple):
    """A link in a file: the names of its ends, and its ports if they are given."""

    a: str
    b: str
    a_port: int | None = None
    b_port: int | None = None


def build(name: str, nodes: Sequence[tuple[str, str]], wires: Sequence[Wire], notes: Sequence[str] = ()) -> Network:
    """Builds a network from nodes (name, role) and links. Ports that are not given get the lowest free
    numbers, in the order of links."""
    need(bool(nodes), f"{name} has no nodes")
    need(len(nodes) <= NODES_MAX, f"{name} has {len(nodes)} nodes; at most {NODES_MAX} are supported")
    need(len(wires) <= LINKS_MAX, f"{name} has {len(wires)} links; at most {LINKS_MAX} are supported")
    indices: dict[str, int] = {}
    for node, role in nodes:
        need(node not in indices, f"{name} has two nodes called {node!r}")
        need(role in ROLES, f"{node!r} has the role {role!r}; roles are {', '.join(ROLES)}")
        indices[node] = len(indices)
    taken: list[set[int]] = [set() for _ in nodes]
    for wire in wires:
        for node, port in ((wire.a, wire.a_port), (wire.b, wire.b_port)):
            need(node in indices, f"a link of {name} leads to {node!r}, which is not a node")
            if port is not None:
                need(1 <= port <= PORT_MAX, f"{node!r} has a port {port}; ports are 1 to {PORT_MAX}")
                need(port not in taken[indices[node]], f"two links of {name} are at port {port} of {node!r}")
                taken[indices[node]].add(port)
        need(wire.a != wire.b, f"a link of {name} leads from {wire.a!r} to itself")
    lowest = [1] * len(nodes)

    def free(node: int) -> int:
        while lowest[node] in taken[node]:
            lowest[node] += 1
        taken[node].add(lowest[node])
        return lowest[node]

    links = []
    for wire in wires:
        a, b = indices[wire.a], indices[wire.b]
        a_port = free(a) if wire.a_port is None else wire.a_port
        links.append(Link(a, a_port, b, free(b) if wire.b_port is None else wire.b_port))
    return Network(name, tuple(node for node, _ in nodes), tuple(role for _, role in nodes), tuple(links), tuple(notes))
