# SPDX-License-Identifier: Apache-2.0
"""A model of a network whose switches have planned configurations: it forwards packets step by step."""

from dataclasses import dataclass, replace

from os_ken.ofproto import ofproto_v1_3 as ofp

from shunt_controller.actions import PopKey, PushKey
from shunt_controller.live.state import State
from shunt_controller.live.topology import Host, Link, Port, Topology
from shunt_controller.sections import TABLES, Bank, Trusted, Types


@dataclass(frozen=True)
class Packet:
    """A packet at a port of a switch."""

    at: Port
    src: str
    dst: str
    key: tuple[int, int, int] | None = None
    """Key, hop limit and epoch of the header that the packet has."""


class Lost(Exception):
    """A packet was dropped, or went to the controller."""


class Model:
    """The network. `states` may change between steps."""

    def __init__(self, topology: Topology, states: dict[int, State], lanes: set[int], down: frozenset[Port] = frozenset()):
        self.topology, self.states, self.lanes, self.down = topology, states, lanes, down

    def enter(self, src: Host, dst: Host) -> Packet:
        """Returns a packet that a host has just sent."""
        return Packet(src.at, src.mac, dst.mac)

    def step(self, packet: Packet) -> Packet | Port:
        """Forwards a packet by one switch. Returns it at the next switch, or the port by which it has left the
        network."""
        switch = packet.at.switch
        state = self.states.get(switch, State())
        out, packet = self._lane(state, packet) if packet.key and switch in self.lanes else (None, packet)
        if out is None:
            out, packet = self._tables(state, packet)
        port = Port(switch, packet.at.number if out == ofp.OFPP_IN_PORT else out)
        if port in self.down:
            raise Lost(f"{port} is down")
        peer = self.topology.peers.get(port)
        if peer is None:
            if packet.key:
                raise Lost(f"a key leaves the network at {port}")
            return port
        return replace(packet, at=peer)

    def deliver(self, packet: Packet) -> Port:
        """Forwards a packet until it leaves the network."""
        for _ in range(300):
            moved = self.step(packet)
            if isinstance(moved, Port):
                return moved
            packet = moved
        raise Lost("a loop")

    def _lane(self, state: State, packet: Packet) -> tuple[int | None, Packet]:
        key, hops, epoch = packet.key
        trusted, bank = state.sections.get((Trusted.kind, 0)), state.sections.get((Bank.kind, epoch))
        if trusted is None or packet.at.number not in trusted.ports:
            raise Lost(f"{packet.at} is not trusted")
        if bank is None:
            return None, packet
        own = bank.residues
        out = own.labels.get(key % own.id)
        if out is None:
            raise Lost(f"switch {packet.at.switch} has no such label")
        if out == TABLES:
            return None, packet
        if hops == 0:
            raise Lost("hop limit")
        if out == packet.at.number or Port(packet.at.switch, out) in self.down:
            out = own.backups.get(out)
            if out is None:
                raise Lost(f"no backup at {packet.at.switch}")
        return out, replace(packet, key=(key, hops - 1, epoch))

    def _tables(self, state: State, packet: Packet) -> tuple[int, Packet]:
        table: int | None = 0
        while table is not None:
            found = [flow for flow in state.flows.values() if flow.id.table == table and _matches(flow.match, packet)]
            if not found:
                raise Lost(f"no entry in table {table} of switch {packet.at.switch} for {packet}")
            entry = max(found, key=lambda flow: flow.id.priority).entry
            for action in entry.actions:
                packet = _acted(action, packet)
            if entry.group is not None:
                for way in state.planned[entry.group.number].ways:
                    if Port(packet.at.switch, way.port) not in self.down:
                        return way.port if way.sent_by is None else way.sent_by, packet
                raise Lost("no port of the group is up")
            if entry.port is not None:
                if entry.port == ofp.OFPP_CONTROLLER or entry.port == packet.at.number:
                    raise Lost(f"switch {packet.at.switch} sends {packet} to {entry.port:#x}, table {table}")
                return entry.port, packet
            if entry.goto is None:
                raise Lost(f"switch {packet.at.switch} drops {packet}")
            table = entry.goto
        raise Lost("no output")


def _matches(match: dict, packet: Packet) -> bool:
    eth_type = Types().keyflow if packet.key else 0x0800
    facts = {"in_port": packet.at.number, "eth_src": packet.src, "eth_dst": packet.dst, "eth_type": eth_type}
    return all(facts.get(name) == value for name, value in match.items())


def _acted(action: object, packet: Packet) -> Packet:
    if isinstance(action, PopKey):
        assert packet.key, "pop of no key"
        return replace(packet, key=None)
    assert isinstance(action, PushKey)
    assert packet.key is None, "two keys"
    return replace(packet, key=(action.key, action.hops, action.epoch))


def host(number: int, switch: int, port: int) -> Host:
    """Returns a host."""
    return Host(f"02:00:00:00:00:{number:02x}", Port(switch, port), (f"10.0.0.{number}",))


def network(pairs: list[tuple[int, int]], at: list[int], without: frozenset[int] = frozenset()) -> Topology:
    """Returns a network with a link for each pair of switches, and hosts at switches. Links are numbered by
    their order; those in `without` do not exist. Ports keep their numbers."""
    ports: dict[int, int] = {}

    def port(switch: int) -> Port:
        ports[switch] = ports.get(switch, 0) + 1
        return Port(switch, ports[switch])

    links = [Link.of(port(a), port(b)) for a, b in pairs]
    hosts = tuple(host(number, switch, 100 + number) for number, switch in enumerate(at, 1))
    kept = frozenset(link for number, link in enumerate(links) if number not in without)
    places = {switch: {one.at.number for one in hosts if one.at.switch == switch} for switch in ports}
    return Topology({switch: frozenset(range(1, count + 1)) | places[switch] for switch, count in ports.items()}, kept, hosts)
