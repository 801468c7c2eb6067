# SPDX-License-Identifier: Apache-2.0
"""A discovered network at one moment: switches, links, and the locations of hosts. Values of this module never
change; discovery makes a new one for each change."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from shunt_controller.plan.network import Network, Wire, build


SWITCH_MAX = (1 << 64) - 1
"""Maximum datapath ID."""
PORT_MAX = 0xFFFFFF00
"""Maximum number of a port (OFPP_MAX)."""


class Port(NamedTuple):
    """A port of a switch."""

    switch: int
    """Datapath ID."""
    number: int
    """OpenFlow port number."""


class Link(NamedTuple):
    """A link between two switches that works in both directions. `a` is less than `b`."""

    a: Port
    b: Port

    @classmethod
    def of(cls, one: Port, other: Port) -> "Link":
        """Returns the link between two ports, given in any order."""
        return cls(min(one, other), max(one, other))


@dataclass(frozen=True)
class Host:
    """A host where its packets have entered the network."""

    mac: str
    """MAC address in lower case with colons."""
    at: Port
    addresses: tuple[str, ...] = ()
    """IPv4 and IPv6 addresses in ascending order of their text."""


@dataclass(frozen=True)
class Topology:
    """Switches that are connected to the controller, links between them, and hosts."""

    switches: dict[int, frozenset[int]] = field(default_factory=dict)
    """Numbers of the ports of each switch whose link is up, by datapath ID."""
    links: frozenset[Link] = frozenset()
    hosts: tuple[Host, ...] = ()
    """Hosts in ascending order of their MAC addresses. No two have the same MAC address."""

    @cached_property
    def peers(self) -> dict[Port, Port]:
        """The other end of each port that has a link to a switch."""
        return {end: other for link in self.links for end, other in (link, reversed(link))}

    def edge_ports(self, switch: int) -> frozenset[int]:
        """Returns the ports of a switch that lead to no other switch: to hosts, to the outside, or nowhere."""
        return frozenset(number for number in self.switches[switch] if Port(switch, number) not in self.peers)

    def network(self, name: str = "the network", hosts: bool = False) -> Network:
        """Returns the network as planners see it, without the hosts unless `hosts` is true. Switches are named
        after their datapath IDs (:func:`switch_name`), hosts after their MAC addresses, in this order. Raises
        PlanError if two hosts are to be nodes and are at the same port."""
        wires = [Wire(switch_name(a.switch), switch_name(b.switch), a.number, b.number) for a, b in sorted(self.links)]
        nodes = [(switch_name(switch), "core") for switch in sorted(self.switches)]
        if hosts:
            nodes += [(host.mac, "host") for host in self.hosts]
            wires += [Wire(switch_name(host.at.switch), host.mac, host.at.number) for host in self.hosts]
        return build(name, nodes, wires)


def switch_name(switch: int) -> str:
    """Returns the name of a switch in plans: its datapath ID with 16 hexadecimal digits."""
    return f"{switch:016x}"


def is_port_number(number: object) -> bool:
    """Returns whether a value is the number of a port that a switch may have."""
    return type(number) is int and 0 < number <= PORT_MAX


def switch_of(name: str) -> int:
    """Returns the datapath ID of a switch by its name in a plan. Raises ValueError if the name is not exactly that
    of :func:`switch_name`."""
    number = int(name, 16)
    if not 0 <= number <= SWITCH_MAX or switch_name(number) != name:
        raise ValueError(f"{name[:40]!r} is no datapath ID with 16 hexadecimal digits")
    return number
