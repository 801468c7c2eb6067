# SPDX-License-Identifier: Apache-2.0
"""Tests of valid and invalid networks in files."""

import json

import networkx
import pytest
from networks import SAMPLES, sample
from shunt_controller.plan import files
from shunt_controller.plan.errors import PlanError
from shunt_controller.plan.network import Link
from shunt_controller.plan.routes import Trees


def test_ports_are_numbered_by_what_they_lead_to():
    edges = [(3, 1), (0, 3), (0, 1), (2, 0)]
    one = networkx.Graph()
    one.add_nodes_from(range(4))
    other = one.copy()
    one.add_edges_from(edges)
    other.add_edges_from(edges[::-1])
    assert files.of_graph("x", one).links == files.of_graph("x", other).links
    assert [peer.node for peer in files.of_graph("x", one).ports[0].values()] == [1, 2, 3]


def test_odd_graphml_is_handled():
    network = sample("odd.graphml")
    assert network.nodes == ("North", "Same (1)", "Same (2)", "Outside", "4")
    # Parallel links are kept; the loop is left out and reported.
    assert [(link.a, link.b) for link in network.links] == [(0, 1), (0, 1), (0, 2), (2, 3)]
    assert network.notes == ("1 links of a node to itself were left out",)
    assert network.neighbours[0] == {1: 1, 2: 3}
    assert [len(part) for part in network.components] == [4, 1]
    with pytest.raises(PlanError, match="has 2 parts without a link.*'4' is not reached from 'North'.*--largest"):
        network.need_connected()
    assert network.largest_part().nodes == network.nodes[:4]
    inside = files.read(str(SAMPLES / "odd.graphml"), internal_only=True)
    assert "Outside" not in inside.nodes and inside.notes[0] == "1 external nodes were left out"


def test_a_directed_graph_has_one_link_for_both_ways():
    graph = networkx.MultiDiGraph([(0, 1), (1, 0), (1, 2), (0, 1)])
    assert [(link.a, link.b) for link in files.of_graph("x", graph).links] == [(0, 1), (0, 1), (1, 2)]


def test_json_keeps_given_ports_and_comes_back():
    network = sample("backbone.json")
    isny, kehl = network.index("Isny"), network.index("Kehl")
    assert Link(isny, 7, kehl, 1) in network.links
    assert sorted(network.ports[isny]) == [1, 2, 7] and sorted(network.ports[kehl]) == [1, 9]
    assert files.of_json("x", json.loads(json.dumps(files.to_json(network)))) == network


def test_more_routes_than_can_be_planned_are_refused():
    with pytest.raises(PlanError, match="between all 2100 ends of ring take 4410000 steps; at most 4000000 are supported"):
        Trees(files.of_graph("ring", networkx.cycle_graph(2100)))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "an object with nodes and links"),
        ({"nodes": ["a"]}, "no list named links"),
        ({"nodes": [], "links": []}, "has no nodes"),
        ({"nodes": ["a", "a"], "links": []}, "two nodes called 'a'"),
        ({"nodes": ["a", 1], "links": []}, "1 is not a node"),
        ({"nodes": ["a"], "links": [["a", "b"]]}, "leads to 'b', which is not a node"),
        ({"nodes": ["a"], "links": [["a", "a"]]}, "from 'a' to itself"),
        ({"nodes": ["a", "b"], "links": [["a"]]}, "is not a link"),
        ({"nodes": ["a", "b"], "links": [{"a": "a", "b": "b", "a_port": 0}]}, "ports are 1 to"),
        ({"nodes": ["a", "b"], "links": [{"a": "a", "b": "b", "a_port": True}]}, "are not numbers"),
        ({"nodes": ["a", "b"], "links": [{"a": "a", "b": "b", "port": 1}]}, "'port' not known"),
        ({"nodes": ["a", {"name": "b", "role": "spine"}], "links": []}, "the role 'spine'"),
        (
            {"nodes": ["a", "b"], "links": [{"a": "a", "b": "b", "a_port": 1}, {"a": "b", "b": "a", "b_port": 1}]},
            "two links of x are at port 1 of 'a'",
        ),
    ],
)
def test_invalid_json_is_refused_with_the_reason(data, says):
    with pytest.raises(PlanError, match=says):
        files.of_json("x", data)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.graphml", b"<graphml", "not valid GraphML"),
        ("x.graphml", b"\xff\xfe\x00", "not valid GraphML"),
        ("x.graphml", b"<a/>", "not valid GraphML|no nodes"),
        ("x.json", b"{", "is not JSON"),
        ("x.json", b"[" * 100_000, "is not JSON"),
        ("x.gml", b"", "neither .graphml nor .json"),
    ],
)
def test_invalid_files_are_refused_with_the_reason(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(PlanError, match=says):
        files.read(str(tmp_path / name))
    with pytest.raises(PlanError, match="cannot be read"):
        files.read(str(tmp_path / "absent.json"))
