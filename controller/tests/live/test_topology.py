# SPDX-License-Identifier: Apache-2.0
"""Tests of discovered topologies as input of planners."""

from shunt_controller.live.topology import Host, Link, Port, Topology, switch_name, switch_of

A, B = 0xA, 0xB00000000001
LINK = Link.of(Port(B, 7), Port(A, 3))
HOST = Host("02:00:00:00:00:01", Port(A, 1), ("10.0.0.1",))
PAIR = Topology({B: frozenset({7, 8}), A: frozenset({1, 3})}, frozenset({LINK}), (HOST,))


def test_a_link_has_two_peers_and_the_other_ports_are_edge_ports():
    assert PAIR.peers == {Port(A, 3): Port(B, 7), Port(B, 7): Port(A, 3)}
    assert (PAIR.edge_ports(A), PAIR.edge_ports(B)) == ({1}, {8})


def test_a_network_of_planners_keeps_port_numbers():
    network = PAIR.network()
    assert [switch_of(name) for name in network.nodes] == [A, B]
    assert network.ports == ({3: (1, 7)}, {7: (0, 3)})


def test_hosts_are_nodes_on_request():
    network = PAIR.network(hosts=True)
    assert network.nodes == (switch_name(A), switch_name(B), HOST.mac)
    assert network.roles == ("core", "core", "host")
    assert network.ports[0] == {1: (2, 1), 3: (1, 7)}
