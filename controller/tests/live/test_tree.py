# SPDX-License-Identifier: Apache-2.0
"""Fat trees in discovered topologies."""

from dataclasses import replace

from shunt_controller.live.topology import Host, Link, Port, Topology
from shunt_controller.live.tree import Ports, links_of, ports_of, problems, recognized
from shunt_controller.plan import fattree, gates, tags


def topology(k: int = 4, outside: int = 0) -> Topology:
    """Returns a fat tree with a host at each server port, as it is discovered."""
    network = fattree.make(k, outside)
    switches = [node for node, role in enumerate(network.roles) if role != "host"]
    number = {node: 0x100 + node for node in switches}
    ports = {number[node]: frozenset(network.ports[node]) for node in switches}
    links, hosts = set(), []
    for link in network.links:
        a, b = Port(number[link.a], link.a_port), link.b
        if b in number:
            links.add(Link.of(a, Port(number[b], link.b_port)))
        else:
            hosts.append(Host(f"02:00:00:00:{b >> 8:02x}:{b & 255:02x}", a, (f"10.0.{b >> 8}.{b & 255}",)))
    return Topology(ports, frozenset(links), tuple(sorted(hosts, key=lambda host: host.mac)))


def test_a_tree_is_recognized_with_its_server_ports():
    found = topology(4, 1)
    tree = recognized(found, Ports())
    assert tree is not None and problems(found) == []
    assert links_of(tree) == found.links
    numbering = gates.number(tree)
    assert not tags.prove(numbering).failed
    at = {(host.at.switch, host.at.number) for host in found.hosts}
    flagged = {(0x100 + node, gate.port) for node, one in numbering.switches.items() for gate in one.gates.values() if gate.flag in (gates.SERVER, gates.EXTERNAL)}
    assert flagged == at


def test_gates_do_not_depend_on_ports_that_are_down():
    found = topology(4)
    tree = recognized(found, Ports())
    assert tree is not None
    edge = found.hosts[0].at
    down = replace(found, switches={**found.switches, edge.switch: found.switches[edge.switch] - {edge.number}})
    again = recognized(down, ports_of(tree, found.switches))
    assert again is not None and again.servers == tree.servers


def test_a_switch_with_more_servers_makes_the_tree_oversubscribed():
    found = topology(4)
    edge = found.hosts[0].at.switch
    more = replace(found, switches={**found.switches, edge: found.switches[edge] | {50, 51}})
    tree = recognized(more, Ports())
    assert tree is not None and tree.places == 4
    assert all(len({place.port for place in places}) == 4 for places in tree.servers.values())
    assert not tags.prove(gates.number(tree)).failed


def test_other_networks_are_refused_with_the_reason():
    found = topology(4)
    link = sorted(found.links)[5]
    a, b = link
    text = problems(replace(found, links=found.links - {link}))
    assert text == [f"a cable is missing between port {a.number} of switch {a.switch:x} and port {b.number} of switch {b.switch:x}"]
    assert recognized(replace(found, links=found.links - {link}), Ports()) is None
    few = dict(found.switches)
    del few[a.switch]
    assert "19 switches" in problems(Topology(few))[0]
    assert "0 switches" in problems(Topology())[0]
    tree = recognized(found, Ports())
    assert tree is not None
    above = int(tree.network.nodes[tree.aggregations[0][0]], 16)
    strange = replace(found, hosts=(*found.hosts, Host("02:ff:00:00:00:00", Port(above, 60))))
    assert problems(strange) == [f"host 02:ff:00:00:00:00 is at port 60 of the aggregation switch {above:x}; servers are at edge switches"]
    assert recognized(strange, Ports()) is None
