# SPDX-License-Identifier: Apache-2.0
"""What a core switch does with a KeyFlow packet, and a walk through a network of such switches.

This is the data plane that plans are made for, word for word that of docs/planning.md. A switch knows its bank (ID, label
map, backups) and which of its ports are up; a packet carries key, hop limit and epoch, and nothing in it but the hop limit
is ever changed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from shunt_controller.plan.demand import LOCAL
from shunt_controller.plan.network import Network, Peer
from shunt_controller.plan.numbering import Bank

Says = Callable[[int], int | str]
"""Asked about a switch: the port that a packet's label stands for there, or why there is none."""

NO_LABEL = "no_label"
PORT_DOWN = "port_down"
HOP_LIMIT = "hop_limit"
NODE_DOWN = "node_down"
INGRESS_PORT = "ingress_port"


class Failure(NamedTuple):
    """What is down: one link, given by a port at one end, or a node with all its links."""

    node: int
    port: int | None = None


class Entry(NamedTuple):
    """The entry of a switch that pushes a key: where a route begins, or at a waypoint."""

    node: int
    out_port: int
    backup_port: int | None = None
    """Should `out_port` be down."""
    return_ports: Collection[int] = ()
    """Those of the two that it sends a packet by even if the packet came in by them."""

    def choose(self, in_port: int | None, down: set[int]) -> int | str:
        """The port that it sends a packet by, or why it drops it. Being up is all that a fast-failover group asks of a port."""
        chosen = self.out_port if self.out_port not in down else self.backup_port
        if chosen is None or chosen in down:
            return PORT_DOWN
        return INGRESS_PORT if chosen == in_port and chosen not in self.return_ports else chosen


class Outcome(NamedTuple):
    """Where a packet ended. `reason` is empty if it got to the tables of `node`, else why it was dropped there."""

    node: int
    in_port: int | None
    """The port that it came to `node` by."""
    reason: str
    forwarded: int
    """Times that a core switch passed it on, which is what the hop limit counts; the first switch's entry is none."""
    visited: tuple[int, ...]
    """Switches, from the first one."""


def choose(out_port: int, in_port: int | None, backups: Mapping[int, int], down: set[int]) -> int | None:
    """The port a switch sends by: the one that the label stands for, or its backup where that is down or is the one that the
    packet has come by; none if the backup is down too, or there is none."""
    if out_port != in_port and out_port not in down:
        return out_port
    backup = backups.get(out_port)
    return None if backup in down else backup


def by_key(bank: Bank, key: int) -> Says:
    """What a key's residues stand for. A switch without an ID leaves tagged packets to its tables."""
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
    """Walks through one network, with one failure at most."""

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
        """A packet that an entry pushes a key on and sends. At a waypoint it came in by `in_port`, where a route begins from a
        host."""
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
            # What has come here by the same port before goes the same way again, until its hop limit ends it.
            if forwarded == hop_limit or arrived in seen:
                return Outcome(node, in_port, HOP_LIMIT, forwarded, tuple(visited))
            seen.add(arrived)
            chosen = choose(said, in_port, backups[node], down.get(node, none))
            forwarded += chosen is not None
        return Outcome(node, in_port, PORT_DOWN, forwarded, tuple(visited))
