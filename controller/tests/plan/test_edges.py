# SPDX-License-Identifier: Apache-2.0
"""Tests of the messages that are made from plans. With the sections and entries as sent on the wire, hosts
must reach each other."""

import json
import pathlib

import pytest
from os_ken.ofproto import ofproto_protocol
from os_ken.ofproto import ofproto_v1_3 as ofp

from shunt_controller import edges
from shunt_controller import sections as codec
from shunt_controller.actions import PopKey, PushKey, PushPolka, PushTf, PushTfWide
from shunt_controller.edges import Host, entries, groups, messages
from shunt_controller.plan import gf2
from shunt_controller.plan.cli import main
from shunt_controller.plan.errors import PlanError
from shunt_controller.plan.files import of_json
from shunt_controller.planned import read_plan, sections_of
from shunt_controller.sections import TABLES, Bank, Flag, Gates, Polka, Residues, Trusted

SAMPLES = pathlib.Path(__file__).parent / "samples"
HOST_PORT = 900
TURNS_MAX = 200


def made(tmp_path, *command):
    path = str(tmp_path / "plan.json")
    assert main([*command, "--json", path]) == 0
    return read_plan(path)


def ends(plan):
    """Returns one host at each end of a route or, in a fat tree, at each place for hosts in the plan."""
    if plan["kind"] == "tag-and-forward":
        places = [(host["switch"], host["port"]) for host in plan["hosts"]]
    else:
        routes = plan.get("plans", [plan])[-1]["routes"]
        places = [(name, HOST_PORT) for name in sorted({route["from"] for route in routes})]
    return [Host(f"10.0.{at // 250}.{at % 250 + 1}", *place) for at, place in enumerate(places)]


class Net:
    """Switches that forward as docs/planning.md defines, with the configuration that was sent."""

    def __init__(self, plan, hosts):
        network = of_json("plan", plan["network"])
        self.links = {}
        for link in network.links:
            a, b = (network.nodes[link.a], link.a_port), (network.nodes[link.b], link.b_port)
            self.links |= {a: b, b: a}
        self.sections = {name: codec.unpack(codec.pack(sections)) for name, sections in sections_of(plan).items()}
        self.entries = entries(plan, hosts)
        self.down = set()
        # Selects the bucket of a group that a flow uses.
        self.flow = 0

    def usable(self, switch, port):
        return (switch, port) not in self.down

    def send(self, host, address, kind=0x0800):
        """Returns the port by which a host's packet leaves the network, and its tag there."""
        switch, port, tag = host.switch, host.port, None
        for _ in range(TURNS_MAX):
            trusted = next(one.ports for one in self.sections[switch] if isinstance(one, Trusted))
            assert tag is None or port in trusted, f"a tag by port {port} of {switch}"
            out, tag = self.stateless(switch, port, tag) if tag else (TABLES, tag)
            if out == TABLES:
                out, tag = self.tables(switch, port, tag, address, kind)
            if out is None:
                return None, tag
            assert self.usable(switch, out)
            if (switch, out) not in self.links:
                return (switch, out), tag
            switch, port = self.links[switch, out]
        raise AssertionError("the packet loops")

    def stateless(self, switch, port, tag):
        for section in self.sections[switch]:
            if isinstance(tag, PushKey) and isinstance(section, Bank) and section.epoch == tag.epoch and section.residues:
                return self.keyed(switch, port, tag, section.residues)
            if isinstance(tag, PushPolka) and isinstance(section, Polka):
                return polka(tag, section.residues)
            if isinstance(tag, PushTf) and isinstance(section, Gates):
                return gated(port, tag, section.gates)
        return TABLES, tag

    def keyed(self, switch, port, tag, bank):
        out = bank.labels.get(gf2.remainder(tag.key, bank.id) if bank.polynomial else tag.key % bank.id)
        if out in (None, TABLES):
            return out, tag
        if not tag.hops:
            return None, tag
        if out == port or not self.usable(switch, out):
            out = bank.backups.get(out)
        if out is None or not self.usable(switch, out):
            return None, tag
        return out, PushKey(tag.key, tag.width_bits, tag.hops - 1, tag.epoch)

    def tables(self, switch, port, tag, address, kind):
        """Returns the output port of a packet. Output to the ingress port requires OFPP_IN_PORT."""

        def sent(name):
            if name == ofp.OFPP_IN_PORT:
                return port
            return None if name == port and (switch, port) in self.links else name

        table = 0
        while True:
            seen = {"in_port": port, "eth_type": {PushKey: 0x88B5, PushPolka: 0x8842}.get(type(tag), kind)}
            seen["ipv4_dst" if kind == 0x0800 else "arp_tpa"] = address
            fit = [
                entry
                for entry in self.entries[switch]
                if entry.table == table and all(seen.get(field) == value for field, value in entry.match.items())
            ]
            if not fit:
                return None, tag
            entry = max(fit, key=lambda entry: entry.priority)
            assert sum(one.priority == entry.priority for one in fit) == 1, fit
            for action in entry.actions:
                assert (tag is None) != isinstance(action, PopKey)
                tag = None if isinstance(action, PopKey) else action
            if entry.group is not None:
                usable = [way for way in entry.group.ways if self.usable(switch, way.port)]
                if not usable:
                    return None, tag
                way = usable[0 if entry.group.failover else self.flow % len(usable)]
                for action in way.actions:
                    assert tag is None
                    tag = action
                return sent(way.port if way.sent_by is None else way.sent_by), tag
            if entry.goto is None:
                out = sent(entry.port)
                return (out if self.usable(switch, out) else None), tag
            table = entry.goto


def polka(tag, residues):
    """Returns the output port and the tag of a PolKA packet, as freeRtr forwards it."""
    out = residues.labels.get(gf2.remainder(tag.key, residues.id))
    if out in (None, TABLES):
        return out, tag
    return (out, PushPolka(tag.key, tag.ttl - 1)) if tag.ttl > 1 else (None, tag)


def gated(port, tag, gates):
    """Returns the output of a Tag-and-Forward packet, by the arithmetic of the paper."""

    def f(gate, d):
        return -(-gate // d) * d if d else 0

    if gates.ports[port].flag == Flag.ASSISTS and tag.up and tag.down:
        number = f(tag.up, gates.up_d)
    else:
        outside = gates.external_d and tag.down > gates.server_gate_max
        number = f(tag.down, gates.external_d if outside else gates.down_d)
    out = next((out for out, gate in gates.ports.items() if gate.number == number), None)
    popped = out is not None and gates.ports[out].flag in (Flag.SERVER, Flag.EXTERNAL)
    return (None if out == port else out), (None if popped else tag)


COMMANDS = [
    ("keyflow", str(SAMPLES / "backbone.json")),
    ("keyflow", str(SAMPLES / "backbone.json"), "--protect"),
    ("keyflow", str(SAMPLES / "figure.json")),
    ("keyflow", "--k", "4"),
    ("polka", str(SAMPLES / "backbone.json")),
    ("polka", str(SAMPLES / "backbone.json"), "--freertr"),
    ("fat-tree", "--k", "4"),
    ("fat-tree", "--k", "4", "--wide"),
    ("fat-tree", "--k", "4", "--external", "2"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command).replace(str(SAMPLES), ""))
def test_every_host_reaches_every_other(tmp_path, command):
    plan = made(tmp_path, *command)
    hosts = ends(plan)
    net = Net(plan, hosts)
    # Servers of the tree are at the far ends of the links.
    delivered = {host: net.links.get((host.switch, host.port), (host.switch, host.port)) for host in hosts}
    net.links = {at: to for at, to in net.links.items() if to not in delivered.values()}
    for source in hosts:
        for target in hosts:
            for kind in (0x0800, 0x0806):
                assert net.send(source, target.address, kind) == ((target.switch, target.port), None)


def between(net, hosts):
    """Removes the links to servers, because the servers are the hosts of the tree."""
    at = {(host.switch, host.port) for host in hosts}
    net.links = {end: other for end, other in net.links.items() if end not in at and other not in at}


@pytest.mark.parametrize("k", [4, 6])
def test_tags_take_every_way_that_a_tree_has(tmp_path, k):
    plan = made(tmp_path, "fat-tree", "--k", str(k))
    hosts = ends(plan)
    net = Net(plan, hosts)
    between(net, hosts)
    pod = {switch["name"]: switch["pod"] for switch in plan["switches"]}
    uplinks = {switch["name"]: switch["uplinks"] for switch in plan["switches"] if switch["layer"] == "edge"}
    source = hosts[0]
    targets = [host for host in hosts if host.switch != source.switch]
    for target in targets:
        wanted = k // 2 if pod[target.switch] == pod[source.switch] else (k // 2) ** 2
        pushed = set()
        for net.flow in range(wanted):
            by, tag = net.tables(source.switch, source.port, None, target.address, 0x0800)
            pushed.add((by, tag.up))
            assert net.send(source, target.address) == ((target.switch, target.port), None)
        assert len(pushed) == wanted and {by for by, _ in pushed} == set(uplinks[source.switch])
        # No flow uses an uplink that is down.
        for port in uplinks[source.switch]:
            net.down = {(source.switch, port), net.links[source.switch, port]}
            for net.flow in range(wanted):
                assert net.send(source, target.address) == ((target.switch, target.port), None)
        net.down = set()


def test_groups_keep_their_numbers_when_hosts_come(tmp_path):
    plan = made(tmp_path, "fat-tree", "--k", "4")
    hosts = ends(plan)
    name = hosts[0].switch
    few, all_of_them = (groups(name, entries(plan, some)[name]) for some in ([hosts[0], *hosts[7:9]], hosts))
    assert len(few) == 2 and len(all_of_them) == 14
    assert all(all_of_them[number] == group for number, group in few.items())
    keyflow = made(tmp_path, "keyflow", str(SAMPLES / "backbone.json"), "--protect")
    hosts = ends(keyflow)
    few, all_of_them = (groups("Aalen", entries(keyflow, some)["Aalen"]) for some in (hosts[:3], hosts))
    assert few and all(all_of_them[number] == group for number, group in few.items())


def test_groups_have_no_more_buckets_than_a_switch_takes(tmp_path, monkeypatch):
    plan = made(tmp_path, "fat-tree", "--k", "6")
    hosts = ends(plan)
    monkeypatch.setattr(edges, "BUCKETS_MAX", 51 * 4)
    net = Net(plan, hosts)
    between(net, hosts)
    uplinks = {switch["name"]: switch["uplinks"] for switch in plan["switches"] if switch["layer"] == "edge"}
    taken = set()
    for name, ports in uplinks.items():
        own = groups(name, net.entries[name])
        assert sum(len(group.ways) for group in own.values()) <= 51 * 4
        # Each group has buckets for all uplinks.
        assert all({way.port for way in group.ways} == set(ports) for group in own.values())
        taken |= {(name, way.port, way.actions[0].up) for group in own.values() for way in group.ways}
    # All groups together use all tags: nine to other pods, and three within a pod.
    assert len(taken) == len(uplinks) * (9 + 3)
    for net.flow in range(4):
        for target in hosts[3:]:
            assert net.send(hosts[0], target.address) == ((target.switch, target.port), None)
    monkeypatch.setattr(edges, "GROUPS_MAX", 50)
    with pytest.raises(PlanError, match="es1 needs 51 groups to reach the hosts of other switches; a switch has at most 50"):
        entries(plan, hosts)


def test_waypoints_push_the_next_key(tmp_path):
    nodes = [f"s{number}" for number in range(30)]
    nodes = [{"name": nodes[0], "role": "edge"}, *nodes[1:-1], {"name": nodes[-1], "role": "edge"}]
    links = [[f"s{number}", f"s{number + 1}"] for number in range(29)]
    (tmp_path / "line.json").write_text(json.dumps({"name": "line", "nodes": nodes, "links": links}))
    plan = made(tmp_path, "keyflow", str(tmp_path / "line.json"))
    assert max(len(route["segments"]) for route in plan["plans"][0]["routes"]) > 1
    hosts = ends(plan)
    net = Net(plan, hosts)
    assert net.send(hosts[0], hosts[1].address) == ((hosts[1].switch, HOST_PORT), None)
    assert net.send(hosts[1], hosts[0].address) == ((hosts[0].switch, HOST_PORT), None)
    # A waypoint forwards a packet only if it has an entry for the packet's destination.
    assert net.send(hosts[0], "10.9.9.9") == (None, None)
    # Waypoints pop keys and push others; the tables of other core switches are empty.
    ways = {segment["path"][0] for route in plan["plans"][0]["routes"] for segment in route["segments"][1:]}
    core = {name: own for name, own in net.entries.items() if name not in ("s0", "s29")}
    assert ways and {name for name, own in core.items() if own} == ways
    for own in (own for own in core.values() if own):
        assert [(one.table, one.goto) for one in own if one.goto] == [(0, 2)]
        assert {one.table for one in own} == {0, 2}


def test_only_switches_with_hosts_have_entries(tmp_path):
    for command, places in (
        (("keyflow", str(SAMPLES / "backbone.json"), "--protect"), [("Aalen", 900), ("Aalen", 901), ("Kehl", 900)]),
        (("fat-tree", "--k", "4"), [("es1", 1), ("es1", 2), ("es8", 1)]),
    ):
        plan = made(tmp_path, *command)
        hosts = [Host(f"10.0.0.{number}", *place) for number, place in enumerate(places, 1)]
        net = Net(plan, hosts)
        between(net, hosts)
        assert {name for name, own in net.entries.items() if own} == {name for name, _ in places}
        for source in hosts:
            for target in hosts:
                assert net.send(source, target.address) == ((target.switch, target.port), None)


def test_no_entry_leads_where_no_host_is(tmp_path):
    plan = made(tmp_path, "keyflow", str(SAMPLES / "backbone.json"))
    own = entries(plan, [Host("10.0.0.1", "Aalen", 900), Host("10.0.0.2", "Kehl", 900)])["Aalen"]
    assert {address for one in own for field, address in one.match.items() if field != "eth_type"} == {"10.0.0.1", "10.0.0.2"}
    # Two entries are for the other host, four for the switch's own host. Two entries of table 0 lead to their
    # tables.
    assert len(own) == 2 + 4 + 2


def test_protected_routes_survive_any_link(tmp_path):
    plan = made(tmp_path, "keyflow", str(SAMPLES / "backbone.json"), "--protect")
    hosts = ends(plan)
    net = Net(plan, hosts)
    by_name = {host.switch: host for host in hosts}
    at_risk = survived = 0
    for route in plan["plans"][0]["routes"]:
        source, target = by_name[route["from"]], by_name[route["to"]]
        for segment in route["segments"]:
            for hop, guard in enumerate(segment["guards"]):
                a, b = segment["path"][hop : hop + 2]
                net.down = {end for end, other in net.links.items() if {end[0], other[0]} == {a, b}}
                reached = net.send(source, target.address)[0] == (target.switch, target.port)
                assert reached or "link" not in guard, (route, hop)
                at_risk, survived = at_risk + 1, survived + reached
    assert survived > at_risk * 9 // 10


def test_both_epochs_are_configured_while_a_plan_is_renumbered(tmp_path):
    old = made(tmp_path, "keyflow", str(SAMPLES / "backbone.json"))
    (tmp_path / "old.json").write_text(json.dumps(old))
    plan = made(tmp_path, "keyflow", str(SAMPLES / "backbone.json"), "--renumber", str(tmp_path / "old.json"), "--reserve", "3")
    changed = set()
    for name, sections in sections_of(plan).items():
        before = next(one for one in sections_of(old)[name] if isinstance(one, Bank) and one.epoch == 0)
        banks = [one for one in sections if isinstance(one, Bank)]
        assert banks[0] == before and banks[1].residues
        changed |= {name} if banks[1].residues != before.residues else set()
    assert changed
    hosts = ends(plan)
    pushed = [action for one in entries(plan, hosts)["Aalen"] for action in one.actions if isinstance(action, PushKey)]
    assert pushed and all(action.epoch == 1 for action in pushed)
    net = Net(plan, hosts)
    assert net.send(hosts[0], hosts[5].address)[0] == (hosts[5].switch, HOST_PORT)


def test_freertrs_nodes_know_their_neighbours_by_index(tmp_path):
    plan = made(tmp_path, "polka", str(SAMPLES / "figure.json"), "--freertr")
    configured = sections_of(plan)
    assert configured["4"] == [Trusted({1, 2}), Polka(Residues(0x10003, {0: TABLES, 1: 1, 3: 2}, polynomial=True))]
    host = Host("10.0.0.1", "1", HOST_PORT)
    (popped,) = (one for one in entries(plan, [host])["1"] if one.actions)
    assert (popped.match, popped.actions, popped.goto) == ({"eth_type": 0x8842}, (PopKey(),), 2)
    assert not entries(plan, [host])["4"]


def test_freertrs_headers_are_changed_at_waypoints(tmp_path):
    nodes = [f"s{number}" for number in range(30)]
    links = [[f"s{number}", f"s{number + 1}"] for number in range(29)]
    (tmp_path / "line.json").write_text(json.dumps({"name": "line", "nodes": nodes, "links": links}))
    plan = made(tmp_path, "polka", str(tmp_path / "line.json"), "--freertr")
    hosts = [Host(f"10.0.0.{at}", name, HOST_PORT) for at, name in enumerate(("s0", "s13", "s29"), 1)]
    net = Net(plan, hosts)
    for source in hosts:
        for target in hosts:
            assert net.send(source, target.address) == ((target.switch, HOST_PORT), None)
    assert 3 < sum(map(bool, net.entries.values())) < 15
    # Two routes diverge after a waypoint, but the waypoint can have only one entry per destination.
    other = json.loads(json.dumps(plan))
    route = next(route for route in other["routes"] if (route["from"], route["to"]) == ("s13", "s29"))
    there = next(route for route in other["routes"] if (route["from"], route["to"]) == ("s0", "s29"))
    route["segments"][1]["path"] = [there["segments"][-1]["path"][0], "s29"]
    with pytest.raises(PlanError, match="two routes to s29 continue differently from"):
        entries(other, hosts)


def test_entries_are_messages(tmp_path):
    plan = made(tmp_path, "keyflow", str(SAMPLES / "backbone.json"), "--protect")
    datapath = ofproto_protocol.ProtocolDesc(version=4)
    own = entries(plan, ends(plan))["Aalen"]
    sent = messages(datapath, own)
    mods = [message for message in sent if message.cls_msg_type == ofp.OFPT_GROUP_MOD]
    assert mods and all([bucket.watch_port for bucket in group.buckets] in ([1, 2], [2, 1]) for group in mods)
    assert {group.type for group in mods} == {ofp.OFPGT_FF}
    # Groups come first, because entries refer to them.
    assert len(sent) == len(mods) + len(own) and sent[: len(mods)] == mods
    for message in sent:
        message.serialize()
    assert any(isinstance(action, PushKey) for one in own for action in one.actions)
    wide = made(tmp_path, "fat-tree", "--k", "4", "--wide")
    own = entries(wide, ends(wide))["es1"]
    mods = [message for message in messages(datapath, own) if message.cls_msg_type == ofp.OFPT_GROUP_MOD]
    assert {group.type for group in mods} == {ofp.OFPGT_SELECT} and sorted(len(group.buckets) for group in mods) == [2] * 2 + [4] * 12
    for bucket in (bucket for group in mods for bucket in group.buckets):
        push, output = bucket.actions
        assert isinstance(push, PushTfWide) and bucket.watch_port == output.port and bucket.weight == 1


def test_damaged_plans_and_misplaced_hosts_are_refused_with_the_reason(tmp_path):
    plan = made(tmp_path, "fat-tree", "--k", "4")
    with pytest.raises(PlanError, match="10.0.0.1 is at nowhere, which is not a switch of the plan"):
        entries(plan, [Host("10.0.0.1", "nowhere", 1)])
    edge = next(one["name"] for one in plan["switches"] if one["layer"] == "edge")
    with pytest.raises(PlanError, match=f"10.0.0.1 is at port 99 of {edge}, which has no server gate"):
        entries(plan, [Host("10.0.0.1", edge, 99)])
    for cut in ("network", "switches", "server_gate_max"):
        with pytest.raises(PlanError, match="damaged|object"):
            sections_of({key: value for key, value in plan.items() if key != cut})
    for change, says in (({"kind": "x"}, "of kind x"), ({"version": 9}, "version 9"), ({"format": "x"}, "not a plan")):
        (tmp_path / "changed.json").write_text(json.dumps(plan | change))
        with pytest.raises(PlanError, match=says):
            read_plan(str(tmp_path / "changed.json"))
    with pytest.raises(PlanError, match="cannot be read"):
        read_plan(str(tmp_path / "none.json"))
