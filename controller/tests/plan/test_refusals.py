# SPDX-License-Identifier: Apache-2.0
"""Tests that the unprotected hops of a protected plan are listed, each with its reason."""

import json
from itertools import pairwise

import pytest
from networks import graphs
from shunt_controller.plan.cli import main
from shunt_controller.plan.documents import read_document
from shunt_controller.plan.network import Wire, build
from shunt_controller.plan.protection import plan_protected
from shunt_controller.plan.refusals import Reason, refusals
from shunt_controller.plan.routes import Listed, Trees


def test_each_hop_is_promised_or_refused():
    for network in graphs():
        made = plan_protected(Trees(network), "hops", 64)
        refused = {(id(one.route), one.node, one.following, one.kind) for one in refusals(made)}
        assert len(refused) == sum(1 for _ in refusals(made))
        for route in made.routes:
            for segment in route.segments:
                for hop, guard in zip(pairwise(segment.nodes), segment.guards, strict=True):
                    assert ("link" in guard) != ((id(route), *hop, "link") in refused)
                    is_end = hop[1] == route.destination
                    assert is_end or ("node" in guard) != ((id(route), *hop, "node") in refused)


def test_each_hop_has_the_right_reason():
    # A ring of four, with leaves at two neighbours. The leaves have a short route.
    links = ["ab", "bc", "cd", "da", "ax", "by"]
    network = build("ring", [(name, "core") for name in "abcdxy"], [Wire(*link) for link in links])
    made = plan_protected(Listed(network, [[network.index(name) for name in "xaby"]]), "hops", 64)
    found = [(network.nodes[one.node] + network.nodes[one.following], one.kind, one.reason) for one in refusals(made)]
    no_way = Reason.NO_WAY
    assert found == [("xa", "link", no_way), ("xa", "node", no_way), ("ab", "node", no_way), ("by", "link", no_way)]


def test_keys_without_room_are_a_reason():
    # The detour around a long ring does not fit into the key.
    names = [f"n{number}" for number in range(40)]
    wires = [Wire(a, b) for a, b in pairwise([*names, names[0]])]
    network = build("ring", [(name, "core") for name in names], wires)
    made = plan_protected(Trees(network), "hops", 64, [(0, 5), (0, 19)])
    reasons = {(one.kind, one.reason) for one in refusals(made)}
    assert ("link", Reason.NO_ROOM) in reasons and ("node", Reason.NO_ROOM) in reasons
    assert all(one.reason != Reason.NO_WAY for one in refusals(made))


def test_refused_hops_are_counted_and_written(tmp_path, capsys):
    links = ["ab", "bc", "cd", "da", "ax", "bp", "pq", "qr", "rp"]
    network, out, refused = (str(tmp_path / name) for name in ("net.json", "plan.json", "refused.txt"))
    (tmp_path / "net.json").write_text(json.dumps({"nodes": list("abcdpqrx"), "links": [list(link) for link in links]}))
    assert main(["keyflow", network, "--protect", "--json", out, "--refused", refused]) == 0
    printed = {line[:32].strip(): line[32:].strip() for line in capsys.readouterr().out.splitlines()}
    guards = [guard for route in read_document(out)["plans"][0]["routes"] for guard in route["segments"][0]["guards"]]
    lines = (tmp_path / "refused.txt").read_text().splitlines()
    of_links = [line for line in lines if ": link " in line]
    assert len(of_links) == sum("link" not in guard for guard in guards) == int(printed["hops whose link may not fail"])
    assert "x to a: link x - a: no other path exists" in lines
    assert main(["keyflow", network, "--refused", refused]) == 1
    assert "--refused needs --protect" in capsys.readouterr().err


@pytest.mark.parametrize("nodes", [["a"], ["a", "b"]])
def test_a_network_that_cannot_be_planned_is_refused_with_the_reason(tmp_path, capsys, nodes):
    (tmp_path / "net.json").write_text(json.dumps({"nodes": nodes, "links": []}))
    assert main(["keyflow", str(tmp_path / "net.json"), "--protect"]) == 1
    assert capsys.readouterr().err.startswith("plan keyflow: net has ")
