# SPDX-License-Identifier: Apache-2.0
"""Tests of the places of hosts, which are checked against plans, and of the application that reads them."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from networks import SAMPLES

from shunt_controller.edges import entries
from shunt_controller.places import Host, names, read_places, unreached
from shunt_controller.plan.cli import main
from shunt_controller.plan.errors import PlanError
from shunt_controller.planned import read_plan

ROOT = pathlib.Path(__file__).parents[3]
BACKBONE = str(SAMPLES / "backbone.json")


def made(tmp_path, *command):
    path = str(tmp_path / "plan.json")
    assert main([*command, "--json", path]) == 0
    return read_plan(path)


@pytest.mark.parametrize(
    ("hosts", "says"),
    [
        ([("10.0.0.999", "Aalen", 9)], "'10.0.0.999', at Aalen, is not an IPv4 address of a host"),
        ([("10.0.0.01", "Aalen", 9)], "is not an IPv4 address"),
        ([("224.0.0.1", "Aalen", 9)], "is not an IPv4 address of a host"),
        ([("10.0.0.1", "nowhere", 9)], "10.0.0.1 is at nowhere, which is not a switch of the plan"),
        ([("10.0.0.1", "Aalen", 1)], "10.0.0.1 is at port 1 of Aalen, which leads to another switch"),
        ([("10.0.0.1", "Aalen", 0)], "10.0.0.1 is at port 0 of Aalen; ports are 1 to 0xffffff00"),
        ([("10.0.0.1", "Aalen", 1 << 40)], "ports are 1 to 0xffffff00"),
        (
            [("10.0.0.1", "Aalen", 9), ("10.0.0.1", "Kehl", 8)],
            "10.0.0.1 is at two places, port 9 of Aalen and port 8 of Kehl",
        ),
        ([("10.0.0.1", "Aalen", 9), ("10.0.0.1", "Aalen", 9)], "10.0.0.1 is at two places"),
    ],
)
def test_hosts_that_do_not_fit_the_plan_are_refused(tmp_path, hosts, says):
    plan = made(tmp_path, "keyflow", BACKBONE)
    with pytest.raises(PlanError) as raised:
        entries(plan, [Host(*host) for host in hosts])
    assert says in str(raised.value)


def test_several_addresses_may_be_at_a_port(tmp_path):
    for command, place, other in ((("keyflow", BACKBONE), ("Aalen", 9), ("Kehl", 8)), (("fat-tree", "--k", "4"), ("es1", 1), ("es8", 2))):
        plan = made(tmp_path, *command)
        own = entries(plan, [Host("10.0.0.1", *place), Host("10.0.0.2", *place), Host("10.0.0.3", *other)])
        assert len(own[other[0]]) > len(entries(plan, [Host("10.0.0.1", *place), Host("10.0.0.3", *other)])[other[0]])


@pytest.mark.parametrize(
    ("datapaths", "says"),
    [
        ({"1": 1, "3": 2, "4": 3, "5": 3, "6": 4}, "4 and 5 have the same datapath ID, 3"),
        ({"1": 1, "3": 2, "4": 3, "5": 4}, "datapaths lacks these switches of the plan: 6"),
        ({"1": 1, "3": 2, "4": 3, "5": 4, "6": 5, "x": 6}, "datapaths names switches that the plan lacks: x"),
        ({"1": -1, "3": 2, "4": 3, "5": 4, "6": 5}, "the datapath ID of 1 is -1; datapath IDs have 64 bits"),
        ({"1": 1 << 64, "3": 2, "4": 3, "5": 4, "6": 5}, "datapath IDs have 64 bits"),
    ],
)
def test_datapaths_that_do_not_fit_the_plan_are_refused(tmp_path, datapaths, says):
    plan = made(tmp_path, "keyflow", str(SAMPLES / "figure.json"))
    with pytest.raises(PlanError) as raised:
        names(plan, datapaths)
    assert says in str(raised.value)


def test_datapaths_are_numbered_in_the_order_of_the_plan_unless_they_are_given(tmp_path):
    plan = made(tmp_path, "keyflow", str(SAMPLES / "figure.json"))
    order = [switch["name"] for switch in plan["switches"]]
    assert names(plan, {}) == dict(enumerate(order, 1))
    given = {name: 100 - number for number, name in enumerate(order)}
    assert names(plan, given) == {number: name for name, number in given.items()}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "has no list named hosts"),
        ('{"hosts": {}}', "has no list named hosts"),
        ('{"hosts": [[]]}', "hosts[0] is not a host"),
        ('{"hosts": [{"address": "10.0.0.1", "switch": "a"}]}', "hosts[0] is not a host; hosts have an address, a switch and"),
        ('{"hosts": [{"address": "10.0.0.1", "switch": "a", "port": 1e400}]}', "hosts[0] is not a host"),
        ('{"hosts": [{"address": "10.0.0.1", "switch": "a", "port": true}]}', "hosts[0] is not a host"),
        ('{"hosts": [], "datapaths": []}', "datapaths must be an object that maps names to integers"),
        ('{"hosts": [], "datapaths": {"a": 1e400}}', "datapaths must be an object that maps names to integers"),
        ('{"hosts": [', "is not JSON"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_files_without_the_places_of_hosts_are_refused(tmp_path, text, says):
    (tmp_path / "hosts.json").write_text(text)
    with pytest.raises(PlanError) as raised:
        read_places(str(tmp_path / "hosts.json"))
    assert says in str(raised.value) and "hosts.json" in str(raised.value)
    with pytest.raises(PlanError, match="/dev/zero is not a regular file"):
        read_places("/dev/zero")


def test_pairs_without_a_route_are_named(tmp_path):
    plan = made(tmp_path, "keyflow", BACKBONE, "--sample", "100")
    planned = {(route["from"], route["to"]) for route in plan["plans"][0]["routes"]}
    hosts = [Host(f"10.0.0.{at}", switch["name"], 900) for at, switch in enumerate(plan["switches"], 1)]
    missing = unreached(plan, hosts)
    assert len(planned) == 100 and len(missing) == 10 and not planned & set(missing)
    # No route is missing between switches without hosts.
    a, b = missing[0]
    some = [host for host in hosts if host.switch in (a, b)]
    assert set(unreached(plan, some)) == {(a, b), (b, a)} & set(missing)
    freertr = made(tmp_path, "polka", BACKBONE, "--freertr", "--sample", "100")
    assert len(unreached(freertr, hosts)) == 10
    whole = made(tmp_path, "keyflow", BACKBONE)
    assert not unreached(whole, hosts) and not unreached(made(tmp_path, "fat-tree", "--k", "4"), hosts)


def start(tmp_path, hosts, *options):
    """Runs the application, which must end at its start with an error."""
    (tmp_path / "hosts.json").write_text(json.dumps(hosts))
    command = [sys.executable, str(ROOT / "lab/controllers/launch.py"), "load_plan", "--ofp-tcp-listen-port", "0"]
    environment = dict(os.environ, PYTHONPATH=f"{ROOT}/controller/src:{ROOT}/controller/examples", PYTHONDONTWRITEBYTECODE="1")
    options = options or ("--plan", str(tmp_path / "plan.json"), "--hosts", str(tmp_path / "hosts.json"))
    return subprocess.run([*command, *options], env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"hosts": [{"address": "10.0.0.999", "switch": "Aalen", "port": 9}]}, "'10.0.0.999', at Aalen, is not an IPv4 address"),
        ({"hosts": [{"address": "10.0.0.1", "switch": "Aalen", "port": 1}]}, "which leads to another switch"),
        ({"datapaths": {"Aalen": 1}}, "datapaths lacks these switches of the plan: Berg, Calw, Dorf, Egge, Fels and 5 more"),
    ],
)
def test_the_application_ends_with_an_explanation(tmp_path, change, says):
    made(tmp_path, "keyflow", BACKBONE)
    ended = start(tmp_path, {"hosts": [], **change})
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("load_plan: ") and says in ended.stderr


def test_the_application_needs_its_files(tmp_path):
    ended = start(tmp_path, {}, "--plan", str(tmp_path / "absent.json"), "--hosts", str(tmp_path / "hosts.json"))
    assert ended.returncode == 1 and "absent.json cannot be read: No such file" in ended.stderr
    ended = start(tmp_path, {}, "--plan", "x")
    assert ended.returncode == 1 and "load_plan: --plan and --hosts are required" in ended.stderr
