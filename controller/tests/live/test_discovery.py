# SPDX-License-Identifier: Apache-2.0
"""Tests of discovery: the topology must be that of the network, whatever hosts send."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from model import network

from shunt_controller.live import lldp
from shunt_controller.live.discovery import Discovery
from shunt_controller.live.lldp import Probe
from shunt_controller.live.probes import Probes
from shunt_controller.live.timing import Timing
from shunt_controller.live.topology import Link, Port, Topology

KEY = b"k" * 32
TIMING = Timing()
A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"


class Cables:
    """Discovery of a network whose cables carry frames at once."""

    def __init__(self, topology: Topology) -> None:
        self.peers, self.now_s, self.texts = dict(topology.peers), 100.0, []
        self.seen: dict[Port, list[bytes]] = {}
        """Frames that have left the network at each port, where a host may have recorded them."""
        nonces = itertools.count()
        self.state = Discovery(TIMING, lambda: next(nonces).to_bytes(8), lambda kind, text: self.texts.append(text))
        for switch, ports in topology.switches.items():
            self.state.connected(switch, dict.fromkeys(ports, True), self.now_s)

    def receive(self, data: bytes, at: Port) -> None:
        self.state.received(lldp.read(data, KEY), at, self.now_s)

    def run(self, seconds: float, step_s: float = 0.1) -> None:
        """Lets time pass."""
        for _ in range(round(seconds / step_s)):
            self.now_s += step_s
            for probe in list(self.state.due(self.now_s)):
                data = lldp.build(probe, KEY, 15)
                if probe.sender in self.peers:
                    self.receive(data, self.peers[probe.sender])
                else:
                    self.seen.setdefault(probe.sender, []).append(data)
            self.state.update(self.now_s)

    @property
    def links(self) -> frozenset[Link]:
        return self.state.topology().links


@st.composite
def topologies(draw) -> Topology:
    count = draw(st.integers(1, 6))
    tree = [(draw(st.integers(1, node - 1)), node) for node in range(2, count + 1)]
    more = draw(st.lists(st.tuples(st.integers(1, count), st.integers(1, count)), max_size=5))
    pairs = tree + [(a, b) for a, b in more if a != b] or [(1, 2)]
    return network(pairs, draw(st.lists(st.sampled_from(sorted({end for pair in pairs for end in pair})), max_size=4)))


@given(topologies())
@settings(max_examples=40, deadline=None)
def test_all_links_are_found_and_only_those(topology):
    cables = Cables(topology)
    cables.run(2)
    assert cables.links == topology.links
    cables.run(40)
    assert cables.links == topology.links and not cables.state.refused


@given(topologies(), st.data())
@settings(max_examples=60, deadline=None)
def test_hosts_make_no_link(topology, data):
    """Hosts send packets, frames that they have recorded, and altered ones, at any port."""
    cables = Cables(topology)
    edges = [Port(switch, port) for switch in topology.switches for port in topology.edge_ports(switch)]
    cables.run(3)
    for number, port in enumerate(edges):
        assert cables.state.learn(f"02:00:00:00:01:{number:02x}", port, (), cables.now_s)
    for _ in range(data.draw(st.integers(0, 20)) if edges else 0):
        recorded = cables.seen[data.draw(st.sampled_from(edges))]
        frame = bytearray(data.draw(st.sampled_from(recorded[-3:])))
        if data.draw(st.booleans()):
            frame[data.draw(st.integers(14, len(frame) - 1))] ^= data.draw(st.integers(1, 255))
        cables.receive(bytes(frame), data.draw(st.sampled_from(edges)))
        cables.run(data.draw(st.sampled_from([0.1, 2.0])))
        assert cables.links == topology.links


def test_hosts_that_pass_all_frames_on_to_each_other_make_no_link():
    cables = Cables(network([(1, 2)], [1, 2]))
    one, two = Port(1, 101), Port(2, 102)
    cables.run(2)
    for mac, port in ((A, one), (B, two)):
        assert cables.state.learn(mac, port, (), cables.now_s)
    cables.peers |= {one: two, two: one}
    cables.run(60)
    assert len(cables.links) == 1 and len(cables.state.hosts) == 2
    assert any("a host is at port 101 of switch 1" in text for text in cables.texts)
    # An operator has replaced the hosts by a cable.
    flap(cables, one)
    flap(cables, two)
    cables.run(2)
    assert len(cables.links) == 2 and not cables.state.hosts


def test_a_frame_that_returns_to_its_port_is_refused():
    cables = Cables(network([(1, 2)], [1]))
    cables.run(2)
    cables.receive(cables.seen[Port(1, 101)][-1], Port(1, 101))
    assert cables.state.refused == 1 and "or a copy" in cables.texts[-1]


def test_a_nonce_is_accepted_once_and_while_it_is_one_of_the_last_two():
    nonces = iter([b"1", b"2", b"3"])
    probes, port = Probes(TIMING, lambda: next(nonces)), Port(1, 1)
    probes.up(port, 0.0)
    sent = [probe for now_s in (0.0, 0.3, 1.0) for probe in probes.due(now_s)]
    assert [probe.nonce for probe in sent] == [b"1", b"2", b"3"]
    assert not probes.accept(sent[0]), "too old"
    assert probes.accept(sent[2]) and not probes.accept(sent[2])
    assert probes.accept(sent[1]) and not probes.accept(Probe(Port(1, 2), b"2"))
    probes.down(port)
    assert not probes.accept(sent[1]) and not list(probes.due(9.0))


def test_one_direction_is_no_link():
    cables = Cables(network([(1, 2)], []))
    del cables.peers[Port(2, 1)]
    cables.run(20)
    assert not cables.links


def test_a_link_ends_at_once_with_its_port_and_later_without_frames():
    cables = Cables(network([(1, 2), (2, 3)], []))
    cables.run(2)
    assert len(cables.links) == 2
    cables.state.port(Port(1, 1), False, cables.now_s)
    assert cables.state.update(cables.now_s) and len(cables.links) == 1
    cables.peers.clear()
    cables.run(TIMING.lifetime_s - 1)
    assert len(cables.links) == 1
    cables.run(1 + TIMING.period_s)
    assert not cables.links


def flap(cables: Cables, port: Port) -> None:
    cables.state.port(port, False, cables.now_s)
    cables.state.update(cables.now_s)
    cables.state.port(port, True, cables.now_s)


def test_a_link_that_fails_repeatedly_is_used_less_and_less():
    cables = Cables(network([(1, 2)], []))
    cables.run(2)
    for hold_s in (1, 2, 4, 8, 16, 30, 30):
        flap(cables, Port(1, 1))
        cables.run(hold_s - 0.5)
        assert not cables.links, hold_s
        cables.run(6)
        assert cables.links, hold_s
    cables.run(TIMING.calm_s + 1)
    flap(cables, Port(1, 1))
    cables.run(6)
    assert cables.links


def test_a_cable_that_is_plugged_elsewhere_makes_another_link():
    cables = Cables(network([(1, 2), (3, 4)], []))
    cables.run(2)
    for port in cables.peers:
        cables.state.port(port, False, cables.now_s)
    cables.peers = network([(1, 2), (3, 4)], []).peers
    cables.peers = {Port(1, 1): Port(3, 1), Port(3, 1): Port(1, 1), Port(2, 1): Port(4, 1), Port(4, 1): Port(2, 1)}
    for port in cables.peers:
        cables.state.port(port, True, cables.now_s)
    cables.run(7)
    assert cables.links == {Link(Port(1, 1), Port(3, 1)), Link(Port(2, 1), Port(4, 1))}


def test_a_switch_without_connection_keeps_its_links_for_a_time():
    cables = Cables(network([(1, 2)], [1]))
    cables.run(2)
    cables.state.learn(A, Port(1, 101), (), cables.now_s)
    cables.state.disconnected(1, cables.now_s)
    cables.run(TIMING.absent_s - 6)
    assert cables.links and cables.state.hosts
    cables.run(7)
    assert not cables.links and not cables.state.hosts and 1 not in cables.state.topology().switches
    cables.state.connected(1, {1: True, 101: True}, cables.now_s)
    cables.run(7)
    assert cables.links


def test_links_of_switches_that_return_after_a_while_are_kept():
    cables = Cables(network([(1, 2), (2, 3)], []))
    cables.run(2)
    links = cables.links
    # The last frames are older than their lifetime when the switches return, but younger than the switches'.
    cables.run(TIMING.period_s - 0.5)
    for switch in (1, 2, 3):
        cables.state.disconnected(switch, cables.now_s)
    cables.run(TIMING.absent_s - 0.5)
    assert cables.links == links
    for switch in (1, 2, 3):
        cables.state.connected(switch, {1: True, 2: switch == 2}, cables.now_s)
    cables.peers = {end: peer for end, peer in cables.peers.items() if {end.switch, peer.switch} == {1, 2}}
    assert cables.links == links
    cables.run(TIMING.lifetime_s - 1)
    assert cables.links == links
    # The cable between switches 2 and 3 is gone, which shows a lifetime later.
    cables.run(2)
    assert {(a.switch, b.switch) for a, b in cables.links} == {(1, 2)}


def test_a_switch_that_returns_with_a_port_down_has_no_link():
    cables = Cables(network([(1, 2)], []))
    cables.run(2)
    cables.state.disconnected(1, cables.now_s)
    cables.state.connected(1, {1: False}, cables.now_s)
    cables.state.update(cables.now_s)
    assert not cables.links


def test_hosts_are_learned_only_at_ports_that_lead_to_no_switch():
    cables = Cables(network([(1, 2)], [1]))
    inner, outer = Port(1, 1), Port(1, 101)
    for port in (inner, outer):
        assert not cables.state.learn(A, port, (), cables.now_s), "a port that has just come up may lead to a switch"
    cables.run(2)
    assert not cables.state.learn(A, inner, (), cables.now_s)
    assert cables.state.learn(A, outer, ("10.0.0.1",), cables.now_s)
    # The frames of the link no longer arrive, but the cable is still there.
    cables.peers.clear()
    cables.run(30)
    assert not cables.links and not cables.state.learn(B, inner, (), cables.now_s)
    flap(cables, inner)
    cables.run(2)
    assert cables.state.learn(B, inner, (), cables.now_s)
    assert not cables.state.learn(B, Port(7, 1), (), cables.now_s)


def test_a_switch_that_connects_late_takes_the_place_of_hosts():
    cables = Cables(network([(1, 2)], []))
    cables.state = Discovery(TIMING, lambda: cables.texts.append("") or len(cables.texts).to_bytes(8), lambda kind, text: None)
    cables.state.connected(1, {1: True}, cables.now_s)
    cables.run(3)
    assert cables.state.learn(A, Port(1, 1), (), cables.now_s)
    cables.state.connected(2, {1: True}, cables.now_s + 1)
    cables.run(7)
    assert cables.links and not cables.state.hosts


def test_hosts_of_a_port_that_is_down_are_kept_for_a_time():
    cables = Cables(network([(1, 2)], [1]))
    cables.run(2)
    cables.state.learn(A, Port(1, 101), (), cables.now_s)
    cables.state.port(Port(1, 101), False, cables.now_s)
    cables.run(TIMING.host_hold_s - 1)
    assert cables.state.hosts
    cables.run(2)
    assert not cables.state.hosts


@given(st.integers(0, 2**64 - 1), st.integers(1, 2**32 - 1), st.binary(min_size=8, max_size=8), st.data())
def test_frames_are_read_as_built_and_not_otherwise(switch, port, nonce, data):
    probe = Probe(Port(switch, port), nonce)
    frame = lldp.build(probe, KEY, 15)
    assert lldp.read(frame, KEY) == probe
    assert lldp.read(frame, b"another") is None
    assert lldp.read(frame[: data.draw(st.integers(0, len(frame) - 3))], KEY) is None
    at, bit = data.draw(st.integers(16, len(frame) - 4)), data.draw(st.integers(0, 7))
    changed = bytearray(frame)
    changed[at] ^= 1 << bit
    # The time to live and the kinds of TLVs are not authenticated.
    assert lldp.read(bytes(changed), KEY) in (None, probe)


@given(st.binary(max_size=100))
def test_any_bytes_are_no_frame(data):
    assert lldp.read(data, KEY) is None
