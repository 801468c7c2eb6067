# SPDX-License-Identifier: Apache-2.0
"""Packets that hosts send and switches have no entry for: the controller answers questions for MAC
addresses by ARP and ND, and forwards other packets until there is an entry."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from os_ken.ofproto import ofproto_v1_3 as ofp
from os_ken.ofproto import ofproto_v1_3_parser as parser

from shunt_controller.apps.discovery import Discovery
from shunt_controller.apps.switches import Switches
from shunt_controller.live import frames
from shunt_controller.live.bucket import Buckets
from shunt_controller.live.lldp import ETHERTYPE as LLDP
from shunt_controller.live.topology import Host, Port, Topology

HELD_MAX, HELD_S = 256, 2.5
"""Packets that are held until it is known whether their port leads to a host, and for how long."""
FLOODS_PER_S, RELAYS_PER_S = 50.0, 200.0
"""Packets of a port per second that are sent to all hosts, and to one host."""


class Packet(NamedTuple):
    """A packet that the controller has received."""

    at: Port
    data: bytes
    facts: frames.Facts
    until_s: float


def packet_of(message: Any) -> Packet | None:
    """Returns the packet of a packet-in. Returns None for packets that are not to be forwarded: LLDP,
    packets for the next switch only, and copies of packets that the switch handles itself."""
    facts = frames.read(bytes(message.data))
    if facts is None or facts.eth_type == LLDP or frames.is_reserved(facts.dst):
        return None
    if facts.announces and message.table_id == 0:
        return None
    return Packet(Port(message.datapath.id, message.match["in_port"]), bytes(message.data), facts, time.monotonic() + HELD_S)


class HostPackets:
    """Handles packets of hosts. All methods must be called by the same thread. `topology` returns the current
    topology. `relays` is called for each packet to a known host, and returns whether the packet is delivered."""

    def __init__(
        self, discovery: Discovery, switches: Switches, topology: Callable[[], Topology], relays: Callable[[Packet, Host], bool]
    ) -> None:
        self._discovery, self._switches, self._topology, self._relays = discovery, switches, topology, relays
        self._held: list[Packet] = []
        self._floods = Buckets(FLOODS_PER_S, 2 * FLOODS_PER_S)
        self._deliveries = Buckets(RELAYS_PER_S, 2 * RELAYS_PER_S)

    def step(self) -> None:
        """Handles packets again that are held."""
        held, self._held = self._held, []
        for packet in held:
            self.received(packet)

    def received(self, packet: Packet) -> None:
        """Answers or forwards a packet, or holds it."""
        now_s, facts, topology = time.monotonic(), packet.facts, self._topology()
        if not self._discovery.is_edge(packet.at):
            if now_s < packet.until_s and len(self._held) < HELD_MAX and packet.at not in topology.peers:
                self._held.append(packet)
            return
        hosts = {host.mac: host for host in topology.hosts}
        to = hosts.get(facts.dst)
        if to is None:
            owners = [host for host in hosts.values() if facts.asks in host.addresses] if facts.asks else []
            if len(owners) == 1 and not facts.is_tagged and owners[0].mac != facts.src:
                self._send(packet.at.switch, [packet.at.number], frames.answer(facts, owners[0].mac))
            elif self._floods.allows(packet.at, now_s):
                self._flood(packet, topology)
        elif self._relays(packet, to) and to.at != packet.at and self._deliveries.allows(packet.at, now_s):
            self._send(to.at.switch, [to.at.number], packet.data)

    def _flood(self, packet: Packet, topology: Topology) -> None:
        """Sends a packet to all other hosts."""
        for number in self._switches.connected:
            ports = sorted(topology.edge_ports(number)) if number in topology.switches else []
            self._send(number, [port for port in ports if Port(number, port) != packet.at and self._discovery.is_edge(Port(number, port))], packet.data)

    def _send(self, number: int, ports: list[int], data: bytes) -> None:
        switch = self._switches.connected.get(number)
        if switch is not None and ports:
            actions = [parser.OFPActionOutput(port) for port in ports]
            switch.datapath.send_msg(parser.OFPPacketOut(switch.datapath, ofp.OFP_NO_BUFFER, ofp.OFPP_CONTROLLER, actions, data))
