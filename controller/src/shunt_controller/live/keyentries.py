# SPDX-License-Identifier: Apache-2.0
"""The configuration of each switch for KeyFlow in a running network.

- Table 0 pops the keys that end at this switch, and sends these packets to table 2. It sends packets of known
  hosts, recognised by port and source address, to table 1. Packets of other hosts go to the controller. ARP
  replies and neighbour advertisements are also copied to it, so that it knows the addresses of hosts. Packets
  without a key at ports to switches are dropped, except if there are switches without stateless forwarding.
- Table 1 sends packets from hosts to a host at this switch, or with a key to another switch. Packets to other
  destinations go to the controller.
- Table 2 handles packets whose key ended here, like table 1, but drops packets to other destinations.

Entries match destinations by MAC address. A switch without hosts has no entries for hosts, unless it is a
waypoint.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from os_ken.ofproto import ofproto_v1_3 as ofp

from shunt_controller.actions import PopKey, PushKey
from shunt_controller.edges import ARRIVED, FROM_HOSTS, PRIORITY, Entry, ways_by
from shunt_controller.live.identifiers import Identifiers
from shunt_controller.live.keyroutes import Routes, Step
from shunt_controller.live.state import INGRESS, Flow, State
from shunt_controller.live.topology import Host, Topology
from shunt_controller.live.wire import flow_of, of_flows
from shunt_controller.plan.demand import LOCAL
from shunt_controller.plan.errors import need
from shunt_controller.sections import TABLES, Bank, Residues, Section, Trusted, Types

KEYED, TO_SWITCH, ANNOUNCED = 40, 35, 30
"""Priorities of table 0: packets with a key, packets from switches, and packets by which hosts announce
addresses. Packets of known hosts have PRIORITY."""

_ANNOUNCED: tuple[dict[str, Any], ...] = (
    {"eth_type": 0x0806, "arp_op": 2},
    {"eth_type": 0x86DD, "ip_proto": 58, "icmpv6_type": 136},
)


class Wanted(NamedTuple):
    """A switch at which packets to a host enter the network."""

    switch: int
    mac: str


def configurations(
    topology: Topology,
    identifiers: Identifiers,
    lanes: Collection[int],
    routes: Routes,
    wanted: Iterable[Wanted],
    width_bits: int,
    idle_s: int = 0,
) -> dict[int, State]:
    """Returns the configuration of each switch. If `idle_s` is not 0, switches remove entries at the start of
    routes after that time without packets."""
    trusted: dict[int, set[int]] = {switch: set() for switch in topology.switches}
    for port in topology.peers:
        trusted.setdefault(port.switch, set()).add(port.number)
    # Switches without stateless forwarding may send packets without a key.
    passes = FROM_HOSTS if any(switch not in lanes for switch in topology.switches) else None
    made = {switch: _Switch(switch, trusted[switch], switch in lanes, passes) for switch in topology.switches}
    hosts = {host.mac: host for host in topology.hosts if host.at.switch in made}
    for host in hosts.values():
        made[host.at.switch].deliver(host)
    for switch, mac in sorted(set(wanted)):
        to = hosts.get(mac)
        route = routes.routes.get((switch, to.at.switch)) if to else None
        for step in route.steps if route else ():
            made[step.switch].forward(mac, step, identifiers.epoch, width_bits, idle_s if step.switch == switch else 0)
    return {number: switch.state(identifiers, routes.backups.get(number, {})) for number, switch in made.items()}


class _Switch:
    """Collects the entries of a switch."""

    def __init__(self, number: int, trusted: set[int], has_lane: bool, passes: int | None) -> None:
        self._number, self._has_lane, self._trusted = number, has_lane, trusted
        self._at: dict[tuple[int, str], Step] = {}
        self._flows = [*_ANNOUNCING, *_MISSES]
        if has_lane:
            self._flows.append(_POP)
        self._flows += [_of_port(port, passes) for port in sorted(trusted)]

    def deliver(self, host: Host) -> None:
        """Adds entries for packets to and from a host at this switch."""
        tables = (FROM_HOSTS, ARRIVED) if self._has_lane else (FROM_HOSTS,)
        self._flows += _delivering(host.mac, host.at.number, tables)

    def forward(self, mac: str, step: Step, epoch: int, width_bits: int, idle_s: int) -> None:
        """Adds the entries for packets to a host at another switch."""
        before = self._at.setdefault((step.table, mac), step)
        need(before == step, f"two routes to {mac} need different entries at switch {self._number:x}")
        if before is step:
            self._flows += _forwarding(mac, step, epoch, width_bits, idle_s if step.table == FROM_HOSTS else 0)

    def state(self, identifiers: Identifiers, backups: Mapping[int, int]) -> State:
        """Returns the configuration."""
        sections: list[Section] = []
        if self._has_lane:
            sections.append(Trusted(self._trusted))
            if self._number in identifiers.ids:
                labels = {label: TABLES if port == LOCAL else port for label, port in enumerate(identifiers.labels[self._number])}
                residues = Residues(identifiers.ids[self._number], labels, dict(backups))
                sections.append(Bank(identifiers.epoch, residues))
        return of_flows(self._flows, sections)


# Entries do not change from plan to plan, so they are kept. They are many in large networks.
@lru_cache(1 << 17)
def _forwarding(mac: str, step: Step, epoch: int, width_bits: int, idle_s: int) -> list[Flow]:
    """Returns the entries for packets to a host at another switch."""
    push = (PushKey(step.key.value, width_bits, step.key.hop_limit, epoch),) if step.key else ()
    match, stage = {"eth_dst": mac}, INGRESS if step.table == FROM_HOSTS else step.rest
    found = [Entry(step.table, PRIORITY, match, push, **ways_by(list(step.ports)))]
    for port in step.returns:
        found.append(Entry(step.table, PRIORITY + 1, {"in_port": port, **match}, push, **ways_by(list(step.ports), port)))
    return [flow_of(entry, stage, idle_s) for entry in found]


@lru_cache(1 << 14)
def _delivering(mac: str, port: int, tables: tuple[int, ...]) -> list[Flow]:
    """Returns the entries for packets to and from a host at a port."""
    found = [flow_of(Entry(table, PRIORITY, {"eth_dst": mac}, port=port)) for table in tables]
    return [*found, flow_of(Entry(0, PRIORITY, {"in_port": port, "eth_src": mac}, goto=FROM_HOSTS), INGRESS + 1)]


@lru_cache(1 << 12)
def _of_port(port: int, passes: int | None) -> Flow:
    """Returns the entry for packets without a key at a port to a switch."""
    return flow_of(Entry(0, TO_SWITCH, {"in_port": port}, goto=passes))


_POP = flow_of(Entry(0, KEYED, {"eth_type": Types().keyflow}, (PopKey(),), goto=ARRIVED))
_ANNOUNCING = tuple(flow_of(Entry(0, ANNOUNCED, match, port=ofp.OFPP_CONTROLLER, goto=FROM_HOSTS)) for match in _ANNOUNCED)
_MISSES = tuple(flow_of(Entry(table, 0, {}, port=ofp.OFPP_CONTROLLER)) for table in (0, FROM_HOSTS))
