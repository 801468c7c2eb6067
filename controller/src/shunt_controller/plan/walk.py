# SPDX-License-Identifier: Apache-2.0
"""Models the forwarding of KeyFlow packets by core switches, and walks through a network of such switches.

This is the data plane that plans are made for, exactly as docs/planning.md defines it. A switch has a bank
(ID, label map, backups) and the state of its ports. A packet carries key, hop limit and epoch, and only the
hop limit changes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from shunt_controller.plan.demand import LOCAL
from shunt_controller.plan.network import Network, Peer
from shunt_controller.plan.numbering import Bank

Says = Callable[[int], int | str]
"""Function that returns the port that a packet's label selects at a switch, or the drop reason."""

NO_LABEL = "no_label"
PORT_DOWN = "port_down"
HOP_LIMIT = "hop_limit"
NODE_DOWN = "node_down"
INGRESS_PORT = "ingress_port"


class Failure(NamedTuple):
    """A failed part: one link, given by a port at one end, or a node with all its links."""

    node: int
    port: int | None = None


class Entry(NamedTuple):
    """An entry that pushes a key, at the start of a route or at a waypoint."""

    node: int
    out_port: int
    backup_port: int | None = None
    """Output port that is used if `out_port` is down."""
    return_ports: Collection[int] = ()
    """The ports among `out_port` and `backup_port` by which packets may leave even if they arrived at the
    same port."""

    def choose(self, in_port: int | None, down: set[int]) -> int | str:
        """Returns the output port, or the drop reason. A fast-failover group only checks that a port is up.
        """
        chosen = self.out_port if self.out_port not in down else self.backup_port
        if chosen is None or chosen in down:
            return PORT_DOWN
        return INGRESS_PORT if chosen == in_port and chosen not in self.return_ports else chosen


class Outcome(NamedTuple):
    """The end of a packet's walk. If the tables of `node` received it, `reason` is empty. Otherwise `reason`
    is the drop reason at `node`."""

    node: int
    in_port: int | None
    """Ingress port at `node`."""
    reason: str
    forwarded: int
    """Number of times that core switches forwarded the packet. The hop limit counts the same forwarding
    steps. The entry of the first switch is not counted."""
    visited: tuple[int, ...]
    """Visited switches, starting with the first one."""


def choose(out_port: int, in_port: int | None, backups: Mapping[int, int], down: set[int]) -> int | None:
    """Returns the output port: the port of the label, or its backup if that port is down or is the ingress
    port. Returns None if there is no backup, or if the backup is also down."""
    if out_port != in_port and out_port not in down:
        return out_port
    backup = backups.get(out_port)
    return None if backup in down else backup


def by_key(bank: Bank, key: int) -> Says:
    """Returns a function that gives the port that a key selects at each switch. A switch without an ID uses
    its tables."""
    known: dict[int, int | str] = {}

    def says(node: int) -> int | str:
        if node not in known:
            modulus = bank.ids[node]
            label = bank.arithmetic.residue(key, modulus) if modulus else 0
            labels = bank.labels[node] if modulus else [LOCAL]
            known[node] = labels[label] if label < len(labels) else NO_LABEL
        return known[node]

    return says


class Walk:
    """Walks through one network with at most one failure."""

    def __init__(self, network: Network, backups: Sequence[Mapping[int, int]], failure: Failure | None = None) -> None:
        self.network, self.backups = network, backups
        self.down: dict[int, set[int]] = {}
        self.dead = failure.node if failure and failure.port is None else -1
        if failure:
            ports = network.ports[failure.node]
            for port in [failure.port] if failure.port is not None else list(ports):
                peer = ports[port]
                self.down.setdefault(failure.node, set()).add(port)
                self.down.setdefault(peer.node, set()).add(peer.port)

    def run(self, entry: Entry, says: Says, hop_limit: int, in_port: int | None = None) -> Outcome:
        """Walks a packet from the entry that pushes its key. `in_port` is the ingress port if the entry is at
        a waypoint, and None at the start of a route."""
        none: set[int] = set()
        ports, down, backups = self.network.ports, self.down, self.backups
        node, forwarded = entry.node, 0
        visited = [node]
        first = entry.choose(in_port, down.get(node, none))
        if isinstance(first, str):
            return Outcome(node, in_port, first, 0, tuple(visited))
        chosen: int | None = first
        seen: set[Peer] = set()
        while chosen is not None:
            arrived = ports[node][chosen]
            node, in_port = arrived
            visited.append(node)
            said = says(node) if node != self.dead else NODE_DOWN
            if said == LOCAL:
                return Outcome(node, in_port, "", forwarded, tuple(visited))
            if isinstance(said, str):
                return Outcome(node, in_port, said, forwarded, tuple(visited))
            # A packet that arrives again by the same port loops until its hop limit is reached.
            if forwarded == hop_limit or arrived in seen:
                return Outcome(node, in_port, HOP_LIMIT, forwarded, tuple(visited))
            seen.add(arrived)
            chosen = choose(said, in_port, backups[node], down.get(node, none))
            forwarded += chosen is not None
        return Outcome(node, in_port, PORT_DOWN, forwarded, tuple(visited))
