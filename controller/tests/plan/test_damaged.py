# SPDX-License-Identifier: Apache-2.0
"""Tests of damaged plans. Each must be refused with an explanation, or yield messages that can be sent to a
switch."""

import copy
import json
import os
import random

import networkx
import pytest
from networks import SAMPLES
from os_ken.ofproto import ofproto_protocol

from shunt_controller.edges import Host, entries, messages
from shunt_controller.stateless import StatelessMod
from shunt_controller.plan import files
from shunt_controller.plan.check import check
from shunt_controller.plan.cli import main
from shunt_controller.plan.documents import document, plan_of
from shunt_controller.plan.errors import PlanError
from shunt_controller.plan.protection import plan_protected
from shunt_controller.plan.routes import Trees
from shunt_controller.planned import read_plan, sections_of

TIMES = 400
WORSE = [
    None, True, "", "x", "-0x5", "tables", [], [[]], [[], []], {}, {"": None}, 0, -1, 1, 2, 1.5, float("inf"), float("-inf"),
    float("nan"), 1 << 16, 1 << 32, 1 << 64, 1 << 300, "0x" + "f" * 80,
]  # fmt: skip
PLANS = {
    "keyflow": (("keyflow", str(SAMPLES / "figure.json")), [("1", 900), ("6", 900)]),
    "protected": (("keyflow", str(SAMPLES / "backbone.json"), "--protect"), [("Aalen", 900), ("Kehl", 900)]),
    "polynomials": (("polka", str(SAMPLES / "figure.json")), [("1", 900), ("6", 900)]),
    "freertr": (("polka", str(SAMPLES / "figure.json"), "--freertr"), [("1", 900), ("6", 900)]),
    "tree": (("fat-tree", "--k", "4"), [("es1", 1), ("es2", 1), ("es8", 1)]),
}


def made(tmp_path, name):
    command, places = PLANS[name]
    path = str(tmp_path / "plan.json")
    assert main([*command, "--json", path]) == 0
    return read_plan(path), [Host(f"10.0.0.{at}", *place) for at, place in enumerate(places, 1)]


def make_messages(plan, hosts):
    """Makes all messages that an application sends for a plan."""
    datapath = ofproto_protocol.ProtocolDesc(version=4)
    configured, put = sections_of(plan), entries(plan, hosts)
    for sections in configured.values():
        StatelessMod(datapath, sections).serialize()
    for own in put.values():
        for message in messages(datapath, own):
            message.serialize()


def places_of(data):
    """Yields every place in a document as a container with a key or an index."""
    found = []
    rest = [data]
    while rest:
        holder = rest.pop()
        for at in list(holder) if isinstance(holder, dict) else range(len(holder)):
            found.append((holder, at))
            if isinstance(holder[at], dict | list):
                rest.append(holder[at])
    return found


@pytest.mark.parametrize("name", PLANS)
def test_a_damaged_plan_is_refused_with_an_explanation_or_can_be_sent(tmp_path, name):
    plan, hosts = made(tmp_path, name)
    make_messages(plan, hosts)
    draw = random.Random(name)
    refused = 0
    for _ in range(TIMES):
        worse = copy.deepcopy(plan)
        holder, at = draw.choice(places_of(worse))
        if draw.random() < 0.1:
            del holder[at]
        else:
            holder[at] = draw.choice(WORSE)
        try:
            make_messages(worse, hosts)
        except PlanError as error:
            refused += 1
            assert str(error) and "Traceback" not in str(error)
    assert refused > TIMES // 20


def everywhere(plan):
    """Returns one host at each switch, so that the messages cover the whole plan."""
    return [Host(f"10.0.0.{at}", switch["name"], 900) for at, switch in enumerate(plan["switches"], 1)]


CHECKED = [name for name, (command, _) in PLANS.items() if command[0] != "fat-tree" and "--freertr" not in command]


@pytest.mark.parametrize("name", [*CHECKED, "split"])
def test_a_plan_that_check_accepts_can_be_sent_and_others_are_refused(tmp_path, capsys, name):
    plan = split() if name == "split" else made(tmp_path, name)[0]
    path = tmp_path / "damaged.json"
    draw = random.Random(f"check {name}")
    codes = {0: 0, 1: 0}
    for _ in range(TIMES):
        worse = copy.deepcopy(plan)
        for _ in range(draw.choice((1, 1, 2))):
            holder, at = draw.choice(places_of(worse))
            if draw.random() < 0.3:
                del holder[at]
            elif type(holder[at]) is int and draw.random() < 0.5:
                holder[at] += draw.choice((-300, -1, 1, 300, 1 << 40))
            else:
                holder[at] = draw.choice(WORSE)
        path.write_text(json.dumps(worse))
        capsys.readouterr()
        code = main(["check", str(path)])
        codes[code] += 1
        said = capsys.readouterr().err
        assert (said == "") if code == 0 else said.startswith("plan check: ") and said.count("\n") == 1
        if code == 0:
            make_messages(worse, everywhere(worse))
    assert codes[0] > 0 and codes[1] > TIMES // 4, codes


def split():
    """Returns a plan with split routes, in which waypoints send packets back."""
    network = files.of_graph("ring", networkx.cycle_graph(16))
    pairs = [(source, destination) for destination in (0, 5) for source in range(16) if source != destination]
    data = json.loads(json.dumps(document(plan_protected(Trees(network), "hops", 64, pairs))))
    assert any("return_ports" in segment for route in data["plans"][0]["routes"] for segment in route["segments"])
    return data


def first_segment(data):
    """Returns the first segment of the first route."""
    return data["plans"][0]["routes"][0]["segments"][0]


def wider(data):
    """Replaces a key by a key that has the same residues but is too wide."""
    product = 1
    for switch in data["switches"]:
        product *= switch["banks"][0]["id"]
    segment = first_segment(data)
    segment["key"] = f"{int(segment['key'], 16) + (product << 300):#x}"


def lasting(data):
    first_segment(data)["hop_limit"] = 300


def returning(data):
    segment = first_segment(data)
    segment["return_ports"] = [segment["out_port"]]


def without_segments(data):
    data["plans"][0]["routes"][0]["segments"] = []


def other_backup(data):
    first_segment(data)["backup_port"] = 77


def links(data):
    first_segment(data)["guards"][0] = "links"


def unlike(data):
    """Changes the hop limit that one of several routes with the same waypoint needs at the waypoint."""
    seen = set()
    for route in data["plans"][0]["routes"]:
        for segment in route["segments"][1:]:
            if (segment["path"][0], route["to"]) in seen:
                segment["hop_limit"] += 1
                return
            seen.add((segment["path"][0], route["to"]))
    raise AssertionError("no waypoint has two routes")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (wider, "bits, which does not fit 64"),
        (lasting, "has the hop limit 300; hop limits are 0 to 255"),
        (returning, "but does not begin at a waypoint"),
        (without_segments, "has no segments"),
        (other_backup, "has no link at port 77"),
        (links, "has the guards ['links']; supported are '', 'link', 'node', 'link+node'"),
        (unlike, "needs a different entry there"),
    ],
)
def test_check_reports_plans_that_cannot_be_deployed(tmp_path, capsys, damage, said):
    data = split()
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(data))
    assert main(["check", str(path)]) == 0
    damage(data)
    path.write_text(json.dumps(data))
    assert main(["check", str(path)]) == 1
    assert said in capsys.readouterr().err


def test_routes_with_different_entries_at_a_waypoint_are_refused():
    data = split()
    hosts = everywhere(data)
    make_messages(data, hosts)
    unlike(data)
    with pytest.raises(PlanError, match="need different entries at"):
        make_messages(data, hosts)


def test_no_guard_is_for_the_last_switch():
    """If the destination of a packet fails, no detour can help."""
    data = split()
    assert not check(plan_of("x", data)).faults
    hops = 0
    for route in data["plans"][0]["routes"]:
        guards = route["segments"][-1]["guards"]
        guards[-1] = "link+node" if guards[-1] == "link" else "node"
        hops += 1
    faults = check(plan_of("x", data)).faults
    assert len([fault for fault in faults if "its last guard promises delivery" in fault]) == hops


@pytest.mark.parametrize(
    ("name", "steps", "value"),
    [
        ("tree", ("switches", 0, "uplinks"), []),
        ("tree", ("ups",), [[], []]),
        ("tree", ("ups",), []),
        ("tree", ("ups", 0, 0), 44.5),
        ("tree", ("switches", 0, "uplinks", 0), 1 << 40),
        ("tree", ("switches", 0, "gates", 0, 1), float("inf")),
        ("protected", ("switches", 0, "banks", 0, "id"), float("inf")),
        ("protected", ("switches", 0, "banks", 0, "id"), 1),
        ("protected", ("plans", 0, "routes", 0, "segments", 0, "out_port"), -1),
        ("protected", ("plans", 0, "routes", 0, "segments", 0, "hop_limit"), 256),
        ("protected", ("plans", 0, "epoch"), 7),
        ("protected", ("kind",), []),
    ],
)
def test_the_refusal_is_explained(tmp_path, name, steps, value):
    plan, _ = made(tmp_path, name)
    # There is a host at each switch, so that the messages cover the whole plan.
    hosts = [Host(f"10.0.0.{at}", switch["name"], 1 if name == "tree" else 900) for at, switch in enumerate(plan["switches"][:8], 1)]
    make_messages(plan, hosts)
    holder = plan
    for step in steps[:-1]:
        holder = holder[step]
    holder[steps[-1]] = value
    with pytest.raises(PlanError):
        make_messages(plan, hosts)


def test_a_kind_that_is_not_a_string_is_refused(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps({"format": "shunt-plan", "version": 1, "kind": []}))
    with pytest.raises(PlanError, match=r"is a plan of kind \[\]; supported kinds are keyflow"):
        read_plan(str(tmp_path / "plan.json"))


def test_only_regular_files_up_to_the_maximum_size_are_read(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", str(tmp_path), str(tmp_path / "pipe")):
        with pytest.raises(PlanError, match=f"{path} is not a regular file"):
            read_plan(path)
    (tmp_path / "large.json").write_text(json.dumps("x" * 98))
    monkeypatch.setattr(files, "PLAN_MAX_BYTES", 100)
    with pytest.raises(PlanError, match="is not a plan"):
        read_plan(str(tmp_path / "large.json"))
    monkeypatch.setattr(files, "PLAN_MAX_BYTES", 99)
    with pytest.raises(PlanError, match="large.json has 100 bytes; at most 99 are supported"):
        read_plan(str(tmp_path / "large.json"))
    # Files that the kernel generates report a size of 0.
    with pytest.raises(PlanError, match="has more than 99 bytes, which is the maximum"):
        read_plan("/proc/self/status")


def test_servers_ports_are_not_trusted_whatever_their_role(tmp_path):
    path = str(tmp_path / "tree.json")
    assert main(["fat-tree", "--k", "4", "--json", path]) == 0
    plan = read_plan(path)
    with_roles = sections_of(plan)
    plan["network"]["nodes"] = [node if isinstance(node, str) else node["name"] for node in plan["network"]["nodes"]]
    assert sections_of(plan) == with_roles
