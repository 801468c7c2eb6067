# SPDX-License-Identifier: Apache-2.0
"""Tests of fat trees: how they are recognized, their gates, and the targets of tags."""

import json
import random
from itertools import combinations, pairwise, product

import networkx
import pytest
from networks import sample
from shunt_controller.plan import fattree, files, gates, tags
from shunt_controller.plan.cli import main
from shunt_controller.plan.documents import write
from shunt_controller.plan.errors import PlanError
from shunt_controller.plan.files import to_json
from shunt_controller.plan.network import Network, Wire, build
from shunt_controller.plan.wiring import Shape, nearest
from test_wiring import cables


def figure() -> fattree.FatTree:
    """Returns the tree of the papers' figure: k = 4, with two external links at each core."""
    return fattree.find(fattree.make(4, 2))


def named(numbering: gates.Numbering) -> dict[str, list[int]]:
    """Returns gates by the name of the switch."""
    nodes = numbering.tree.network.nodes
    return {nodes[node]: sorted(switch.gates) for node, switch in numbering.switches.items()}


def shuffled(network: Network, seed: int) -> Network:
    """Returns the same network with other names, and with nodes and links in another order. Its ports
    therefore differ, too."""
    draw = random.Random(seed)
    order = draw.sample(range(len(network.nodes)), len(network.nodes))
    name = {node: f"n{place}" for place, node in enumerate(order)}
    wires = []
    for link in draw.sample(network.links, len(network.links)):
        ends = draw.sample([name[link.a], name[link.b]], 2)
        wires.append(Wire(*ends))
    return build("shuffled", [(name[node], "core") for node in order], wires)


def test_the_gates_of_the_figure():
    numbering = gates.number(figure())
    assert numbering.external_first == 42
    found = named(numbering)
    for edge in range(8):
        assert found[f"es{edge + 1}"] == [4 * edge + 2, 4 * edge + 4, 48, 56]
    for switch in range(8):
        up = [44, 48] if switch % 2 == 0 else [52, 56]
        assert found[f"as{switch + 1}"] == [8 * (switch // 2) + 4, 8 * (switch // 2) + 8, *up]
    for core in range(4):
        assert found[f"cs{core + 1}"] == [8, 16, 24, 32, 42 + 4 * core, 44 + 4 * core]
    steps = {switch.layer: (switch.down_d, switch.up_d, switch.external_d) for switch in numbering.switches.values()}
    assert steps == {"edge": (2, 8, 0), "aggregation": (4, 4, 0), "core": (8, 0, 2)}


def test_the_packet_of_the_figure():
    tree = figure()
    numbering = gates.number(tree)
    network = tree.network
    es1, as1, cs2, as7, es8 = (network.index(name) for name in ("es1", "as1", "cs2", "as7", "es8"))
    arrival = tags.walk(numbering, es1, tags.Tag(network.neighbours[es1][as1], 48, 30))
    assert arrival.visited == (es1, as1, cs2, as7, es8)
    assert arrival.gate and (arrival.gate.gate, arrival.gate.flag) == (30, "G_SRV")
    assert [tags.f(48, 4), tags.f(30, 8), tags.f(30, 4), tags.f(30, 2)] == [48, 32, 32, 30]


def test_flags():
    numbering = gates.number(figure())
    for switch in numbering.switches.values():
        for gate in switch.gates.values():
            expected = {
                "edge": "G_SRV" if gate.gate <= 32 else "",
                "aggregation": "G_ASS" if gate.gate <= 32 else "",
                "core": "G_EXT" if gate.gate > 32 else "",
            }
            assert gate.flag == expected[switch.layer]


@pytest.mark.parametrize(("k", "outside"), [(4, 0), (4, 2), (4, 3), (6, 0), (6, 1), (8, 2)])
def test_every_tag_of_a_tree_in_any_wiring_arrives(k, outside):
    network = shuffled(fattree.make(k, outside), 10 * k + outside)
    tree = fattree.find(network, k)
    assert tree.k == k
    numbering = gates.number(tree)
    proof = tags.prove(numbering, None if k < 8 else 300)
    assert not proof.failed and proof.switches_max == 5
    if k < 8:
        half, edges = k // 2, k * k // 2
        cross = edges * (edges - half) * half * half * half
        near = edges * (half - 1) * half * half
        assert proof.walks == cross + near + edges * half * half * gates.outside_of(tree)


@pytest.mark.parametrize(("k", "header"), [(24, gates.PAPER), (48, gates.WIDE)])
def test_large_trees_by_sample(k, header):
    numbering = gates.number(fattree.find(fattree.make(k)), header)
    assert not tags.prove(numbering, 40).failed


def test_a_tree_without_servers_has_gates_for_them():
    whole = fattree.make(4)
    bare = whole.part((node for node, role in enumerate(whole.roles) if role != "host"), "without servers")
    numbering = gates.number(fattree.find(bare))
    assert named(numbering) == named(gates.number(fattree.find(whole)))
    es1 = numbering.switches[0].by_port
    # Ports of links keep their numbers. Servers get the lowest free numbers.
    assert {port: (gate.gate, gate.to) for port, gate in es1.items() if gate.flag} == {1: (2, None), 2: (4, None)}
    assert not tags.prove(numbering).failed


def properties(numbering: gates.Numbering) -> list[str]:
    """Returns the properties P1 to P4 of the papers that the gates violate."""
    tree, broken = numbering.tree, []
    layers = {
        "edge": [node for pod in tree.edges for node in pod],
        "aggregation": [node for row in tree.aggregations for node in row],
        "core": [node for plane in tree.cores for node in plane],
    }
    of = {node: switch.gates for node, switch in numbering.switches.items()}
    highest = numbering.server_gate_max
    low = {node: [gate for gate in found if gate <= highest] for node, found in of.items()}
    high = {node: [gate for gate in found if gate > highest] for node, found in of.items()}
    for side, order in ((low, ("edge", "aggregation", "core")), (high, ("core", "aggregation", "edge"))):
        first = sorted(gate for node in layers[order[0]] for gate in side[node])
        if first[0] <= 0 or first[0] % 2 or any(b - a != gates.STEP for a, b in pairwise(first)):
            broken.append("P1")
        for below, above in pairwise(order):
            if not {g for n in layers[above] for g in side[n]} <= {max(side[n]) for n in layers[below]}:
                broken.append("P3")
        for layer in order:
            steps = {b - a for node in layers[layer] for a, b in pairwise(sorted(side[node]))}
            if len(steps) != 1:
                broken.append("P4")
    if any(len(set(low[node] + high[node])) != len(numbering.switches[node].by_port) for node in of):
        broken.append("P2")
    return broken


@pytest.mark.parametrize("first", [36, 38, 40, 44])
def test_external_gates_that_only_the_papers_allow_are_refused(first):
    tree = figure()
    numbering = gates.number(tree, external_first=first, checked=False)
    assert properties(numbering) == []
    assert tags.prove(numbering).failed
    with pytest.raises(PlanError, match=f"external gates begin at {first}, which is not 2 more than a multiple of 8"):
        gates.number(tree, external_first=first)


def test_server_gates_that_only_the_papers_allow_are_refused():
    tree = figure()
    numbering = gates.number(tree, server_first=4, checked=False)
    assert properties(numbering) == []
    assert tags.prove(numbering).failed
    with pytest.raises(PlanError, match="server gates begin at 4, which is not 2 more than a multiple of 8"):
        gates.number(tree, server_first=4)


def test_the_rule_allows_exactly_the_gates_whose_tags_arrive():
    tree = figure()
    for first in range(34, 76, 2):
        numbering = gates.number(tree, external_first=first, checked=False)
        assert bool(tags.prove(numbering).failed) == bool(gates.breaches(tree, 2, first, 2)), first
    for first in range(2, 36, 2):
        numbering = gates.number(tree, server_first=first, checked=False)
        assert bool(tags.prove(numbering).failed) == bool(gates.breaches(tree, first, numbering.external_first, 2)), first


def test_no_tag_loops():
    """A packet with any tag leaves the tree, or is dropped at the fifth switch at the latest, although tags
    have no hop limit."""
    numbering = gates.number(figure())
    ports = numbering.tree.network.ports
    # Switches treat all values above the highest gate alike, so one of them is enough.
    values = [*range(60), 8191]
    for edge, (up, down) in product((numbering.tree.edges[0][0], numbering.tree.edges[3][1]), product(values, values)):
        for gate in numbering.switches[edge].by_port.values():
            if gate.flag:
                continue
            node, in_port = ports[edge][gate.port]
            for _ in range(5):
                switch = numbering.switches[node]
                out = tags.forward(switch, numbering.server_gate_max, switch.by_port[in_port], up, down)
                if out is None or out.flag in ("G_SRV", "G_EXT"):
                    break
                node, in_port = ports[node][out.port]
            else:
                pytest.fail(f"UP {up}, DOWN {down} from edge {edge}")


@pytest.mark.parametrize(
    ("k", "header", "outside", "says"),
    [
        (
            26,
            gates.PAPER,
            0,
            "k = 26 has server gates up to 8788, and DOWN has 13 bits, up to 8191; the wide variant has 16",
        ),
        (24, gates.PAPER, 5, "has gates up to .* and DOWN has 13 bits"),
        (4, gates.Header("narrow", 29, 4), 0, "k = 4 has server gates up to 32, and DOWN has 4 bits, up to 15$"),
    ],
)
def test_trees_that_do_not_fit_the_header_are_refused(k, header, outside, says):
    with pytest.raises(PlanError, match=says):
        gates.number(fattree.find(fattree.make(k, outside)), header)


def changed(change) -> Network:
    """Returns the tree of k = 4 after a change to its graph."""
    network = fattree.make(4)
    graph = networkx.MultiGraph()
    graph.add_nodes_from(network.nodes)
    graph.add_edges_from((network.nodes[link.a], network.nodes[link.b]) for link in network.links)
    change(graph)
    return files.of_graph("tree", graph)


def rewire(*moves):
    """Moves links: each (a, b, c, d) removes the link a - b and adds c - d."""

    def change(graph):
        for a, b, *_ in moves:
            graph.remove_edge(a, b)
        for *_, c, d in moves:
            graph.add_edge(c, d)

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda graph: graph.add_edge("es1", "as1"), "the cable from port 2 of es1 to port 2 of as1 is not part of the tree"),
        (lambda graph: graph.remove_node("cs4"), r"it has 19 switches; no fat tree .* \(k = 4 has 20\)"),
        (lambda graph: graph.remove_edge("as1", "cs1"), "a cable is missing between as1 and cs1$"),
        (
            lambda graph: graph.add_edge("as1", "extra"),
            "extra is at the aggregation switch as1; servers are at edge switches",
        ),
        (
            rewire(("es1", "as1", "es1", "es3"), ("es3", "as3", "as1", "as3")),
            "es1 to port 1 of es3 and the cable from port 2 of as1 to port 2 of as3 are swapped: port 1 of es1 must lead to port 2 of as1",
        ),
        # Two edge switches of different pods swap one of their links.
        (
            rewire(("es1", "as1", "es1", "as3"), ("es3", "as3", "es3", "as1")),
            "port 2 of es1 must lead to port 2 of as1, and port 1 of es3 to port 1 of as3$",
        ),
        # One pod groups the cores differently: {1, 3} and {2, 4} instead of {1, 2} and {3, 4}.
        (
            rewire(("as3", "cs2", "as3", "cs3"), ("as4", "cs3", "as4", "cs2")),
            "port 4 of as3 must lead to port 2 of cs2, and port 3 of as4 to port 2 of cs3$",
        ),
        (
            rewire(
                ("as1", "cs2", "as1", "cs3"),
                ("as2", "cs3", "as2", "cs2"),
                ("as3", "cs1", "as3", "cs4"),
                ("as4", "cs4", "as4", "cs1"),
            ),
            "port 4 of as1 must lead to port 1 of cs2, .*; .* port 4 of as3 must lead to port 2 of cs1, and",
        ),
        (rewire(("as1", "cs1", "as1", "as2"), ("as2", "cs3", "cs1", "cs3")), "as2 and .* are swapped: port 3 of as1"),
    ],
)
def test_networks_that_are_not_fat_trees_are_refused_with_the_reason(change, says):
    with pytest.raises(PlanError, match=f"tree is not a fat tree: .*({says})"):
        fattree.find(changed(change))


@pytest.mark.parametrize("with_servers", [True, False])
def test_each_single_wrong_cable_of_a_file_is_named(with_servers, tmp_path, capsys):
    whole = to_json(fattree.make(4))
    if not with_servers:
        # A switch that has lost a cable then has one link, like a server.
        servers = {node["name"] for node in whole["nodes"] if isinstance(node, dict) and node["role"] == "host"}
        whole["nodes"] = [node for node in whole["nodes"] if isinstance(node, str) or node["name"] not in servers]
        whole["links"] = [link for link in whole["links"] if not {link["a"], link["b"]} & servers]
    names = [node if isinstance(node, str) else node["name"] for node in whole["nodes"]]
    switches = {name for name in names if name.startswith(("es", "as", "cs"))}
    cables = [link for link in whole["links"] if {link["a"], link["b"]} <= switches]
    path = tmp_path / "tree.json"

    def printed(links):
        path.write_text(json.dumps({**whole, "links": links}))
        assert main(["fat-tree", str(path), "--json", str(tmp_path / "plan.json")]) == 1
        assert not (tmp_path / "plan.json").exists()
        return capsys.readouterr().err

    def cable(link):
        return f"port {link['a_port']} of {link['a']} to port {link['b_port']} of {link['b']}"

    assert len(cables) == 32
    for gone in cables:
        text = printed([link for link in whole["links"] if link is not gone])
        assert f"a cable is missing between {gone['a']} and {gone['b']}\n" in text
    for a, b in combinations(sorted(switches), 2):
        new = {"a": a, "a_port": 77, "b": b, "b_port": 78}
        assert f"the cable from {cable(new)} is not part of the tree\n" in printed([*whole["links"], new])
    for first, second in pairwise(cables):
        new = [{**first, "b": second["b"], "b_port": second["b_port"]}, {**second, "b": first["b"], "b_port": first["b_port"]}]
        if {first["a"], first["b"]} & {second["a"], second["b"]}:
            continue
        text = printed([*(link for link in whole["links"] if link not in (first, second)), *new])
        assert "are swapped" in text or "wrong switch" in text
        assert all(cable(link) in text for link in new) or text.count("cable") >= 2


def test_an_oversubscribed_tree_of_a_file_is_planned(tmp_path, capsys):
    whole = to_json(fattree.make(4))
    without = {"as2", "as4", "as6", "as8", "cs2", "cs3", "cs4"}
    graph = {
        **whole,
        "nodes": [node for node in whole["nodes"] if (node if isinstance(node, str) else node["name"]) not in without],
        "links": [link for link in whole["links"] if not {link["a"], link["b"]} & without],
    }
    graph["nodes"] += [{"name": f"more{n}", "role": "host"} for n in range(3)]
    graph["links"] += [{"a": "es1", "b": f"more{n}"} for n in range(3)]
    (tmp_path / "tree.json").write_text(json.dumps(graph))
    for arguments in (["--k", "4"], []):
        assert main(["fat-tree", str(tmp_path / "tree.json"), *arguments]) == 0
        text = capsys.readouterr().out
        assert "k = 4 with 1 of 2 planes and 1 of 2 core switches in each, 13 switches, 19 servers of 40" in text
        assert "1 for a server of another pod, 1 within its own" in text and "all arrived" in text
    assert main(["keyflow", str(tmp_path / "tree.json"), "--fat-tree"]) == 0


def test_other_networks_and_another_k_are_refused():
    with pytest.raises(PlanError, match="backbone is not a fat tree: it has 11 switches"):
        fattree.find(sample("backbone.json"))
    with pytest.raises(PlanError, match="it has 20 switches; no fat tree of k = 6 has this number"):
        fattree.find(fattree.make(4), 6)
    with pytest.raises(PlanError, match="an even number from 4 to 64, not 5"):
        fattree.make(5)
    # 20 switches in a ring.
    with pytest.raises(PlanError, match="leads to a wrong switch: .*; and 12 more"):
        fattree.find(files.of_graph("ring", networkx.cycle_graph(20)))


def test_a_tree_from_graphml_and_back_as_a_document(tmp_path, capsys):
    network = shuffled(fattree.make(4, 1), 3)
    graph = networkx.Graph()
    graph.add_nodes_from(network.nodes)
    graph.add_edges_from((network.nodes[link.a], network.nodes[link.b]) for link in network.links)
    networkx.write_graphml(graph, tmp_path / "tree.graphml")
    out = str(tmp_path / "plan.json")
    assert main(["fat-tree", str(tmp_path / "tree.graphml"), "--k", "4", "--json", out]) == 0
    printed = capsys.readouterr().out
    assert "k = 4, 20 switches, 16 servers of 16, 4 links outside" in printed and "all arrived" in printed
    follow(files.read_json(out, (tmp_path / "plan.json").read_bytes()))


def follow(data):
    """Walks every tag through the tree, using only the JSON document."""
    network = files.of_json("x", data["network"])
    switches = {switch["name"]: switch for switch in data["switches"]}
    assert (data["k"], data["header"]) == (4, {"name": "paper", "up_bits": 32, "down_bits": 13})
    pod_of = {name: switch["pod"] for name, switch in switches.items()}
    count = 0
    for name, switch in switches.items():
        if switch["layer"] != "edge":
            continue
        for host in data["hosts"]:
            if host["switch"] == name:
                continue
            ups = [[0]] * 2 if pod_of[host["switch"]] == switch["pod"] else data["ups"]
            for out_port, row in zip(switch["uplinks"], ups, strict=True):
                for up in row:
                    assert arrive(network, switches, data["server_gate_max"], name, out_port, up, host["gate"]) == (
                        host["switch"],
                        host["port"],
                    )
                    count += 1
    assert count == 8 * (12 * 4 + 2 * 2)


def arrive(network, switches, server_gate_max, at, port, up, down):
    """Returns the switch and port by which a tag leaves the tree."""
    while True:
        peer = network.ports[network.index(at)][port]
        at = network.nodes[peer.node]
        switch = switches[at]
        came = next(gate for gate in switch["gates"] if gate[0] == peer.port)
        goes_up = came[2] == "G_ASS" and up and down
        external = switch["external_d"] and down > server_gate_max
        gate, d = (up, switch["up_d"]) if goes_up else (down, switch["external_d"] if external else switch["down_d"])
        number = gate if gate % d == 0 else (gate // d + 1) * d
        port, _, flag, _ = next(found for found in switch["gates"] if found[1] == number)
        if flag in ("G_SRV", "G_EXT"):
            return at, port


def test_keys_of_fat_trees_share_ids_between_planes(tmp_path, capsys):
    assert main(["keyflow", "--k", "48", "--sample", "300"]) == 0
    printed = capsys.readouterr().out
    width = next(int(line.split()[-1]) for line in printed.splitlines() if line.startswith("key of any path"))
    assert width <= 24
    # Keys also arrive in a tree that is wired differently. Each route is a random shortest path.
    write(str(tmp_path / "tree.json"), to_json(shuffled(fattree.make(6), 1)))
    assert main(["keyflow", str(tmp_path / "tree.json"), "--fat-tree"]) == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fat-tree"], "give a GRAPH or --k"),
        (["fat-tree", "--k", "4", "--external-first", "40"], "which is not 2 more than a multiple of 8"),
        (["fat-tree", "--k", "4", "--walk", "0"], "must be at least 1"),
        (["fat-tree", "--k", "4", "--external", "99"], "supported are 0 to 4"),
        (["fat-tree", "x.json", "--external", "1"], "--external is for generated trees"),
        (["keyflow", "--k", "4", "x.json"], "give either a GRAPH or --k, not both"),
        (["keyflow"], "give a GRAPH or --k"),
        (["keyflow", "--k", "4", "--coded", "hops"], "the switches between its edge switches"),
    ],
)
def test_errors_are_explained(arguments, says, capsys):
    assert main(arguments) == 1
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(("k", "planes", "uplinks", "places"), [(4, 1, 2, 2), (4, 2, 1, 6), (6, 2, 3, 5), (6, 3, 2, 3)])
def test_tags_arrive_in_oversubscribed_trees(k, planes, uplinks, places):
    shape = Shape(k, planes, uplinks)
    links, _ = cables(shape)
    network = Network("tree", tuple(f"n{node}" for node in range(shape.switches)), ("core",) * shape.switches, tuple(links))
    wiring = nearest(shape.switches, links)
    servers = {edge: fattree.filled(network, edge, [], places) for pod in wiring.edges for edge in pod}
    outside = {core: fattree.filled(network, core, [], 1) for plane in wiring.cores for core in plane}
    numbering = gates.number(fattree.FatTree(network, k, wiring.edges, wiring.aggregations, wiring.cores, servers, outside))
    proof = tags.prove(numbering)
    assert proof.walks and not proof.failed
