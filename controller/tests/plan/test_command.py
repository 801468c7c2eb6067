# SPDX-License-Identifier: Apache-2.0
"""Tests of the command line, and of the JSON that it writes and reads."""

import json
import pathlib
import subprocess
import sys

import pytest
from networks import SAMPLES
from shunt_controller.plan import documents, files
from shunt_controller.plan.cli import controller, main
from shunt_controller.plan.walk import Entry, Failure, Walk, by_key

BACKBONE = str(SAMPLES / "backbone.json")
FIGURE = str(SAMPLES / "figure.json")


@pytest.fixture
def out(tmp_path):
    """Path of the plan."""
    return str(tmp_path / "plan.json")


def walk_document(path: str, epoch: int, failure: Failure | None = None) -> list[str]:
    """Walks a packet along each route, using only the document. Returns the drop reasons, or "" for a packet
    that arrives."""
    data = documents.read_document(path)
    network = files.of_json("x", data["network"])
    at = [made["epoch"] for made in data["plans"]].index(epoch)
    bank = documents.plan_of(path, data, at).bank
    walk = Walk(network, bank.backups, failure)
    found = []
    for route in data["plans"][at]["routes"]:
        for segment in route["segments"]:
            says = by_key(bank, int(segment["key"], 16))
            first = Entry(network.index(segment["path"][0]), segment["out_port"], segment["backup_port"])
            outcome = walk.run(first, says, segment["hop_limit"])
            reason = outcome.reason or ("" if network.nodes[outcome.node] == segment["path"][-1] else "elsewhere")
            if reason:
                break
        found.append(reason)
    return found


def test_a_plan_can_be_followed_by_its_document(out, capsys):
    assert main(["keyflow", BACKBONE, "--protect", "--json", out]) == 0
    printed = capsys.readouterr().out
    assert "backbone: 11 nodes, 14 links" in printed and "110 keys" in printed
    assert set(walk_document(out, 0)) == {""}
    data = documents.read_document(out)
    assert data["plans"][0]["width_bits"] == 128 and data["plans"][0]["coded"] == "hops"
    assert {switch["banks"][0]["labels"][0] for switch in data["switches"]} == {"tables"}
    assert any(switch["banks"][0]["backups"] for switch in data["switches"])


def test_links_that_cannot_be_protected_are_reported(tmp_path, out, capsys):
    # A ring of four with a leaf, bridged to a ring of three.
    links = ["ab", "bc", "cd", "da", "ax", "bp", "pq", "qr", "rp"]
    (tmp_path / "net.json").write_text(json.dumps({"nodes": list("abcdpqrx"), "links": [list(link) for link in links]}))
    assert main(["keyflow", str(tmp_path / "net.json"), "--protect", "--json", out]) == 0
    printed = {line[:32].strip(): line[32:].strip() for line in capsys.readouterr().out.splitlines()}
    assert printed["links protected, by all routes"] == "7 of 9 (77.8 %)"
    assert printed["without a detour"] == "1 that lead to leaves, 1 others"
    assert printed["of links with a detour"] == "7 of 7 (100.0 %)"
    assert main(["check", out]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[-4:] == ["9", "7", "1", "1"]


def test_the_papers_figure_from_files(tmp_path, out):
    (tmp_path / "routes.json").write_text('[["1", "4", "3", "5", "6"]]')
    assert main(["keyflow", FIGURE, "--routes", str(tmp_path / "routes.json"), "--json", out]) == 0
    data = documents.read_document(out)
    assert data["plans"][0]["coded"] == "core"
    assert [bool(switch["banks"]) for switch in data["switches"]] == [False, True, True, True, False]
    assert walk_document(out, 0) == [""]


def test_growth_and_renumbering(tmp_path, out):
    whole = files.read(BACKBONE)
    small = str(tmp_path / "small.json")
    documents.write(small, files.to_json(whole.part(range(9), "a part")))
    old, new = str(tmp_path / "old.json"), str(tmp_path / "new.json")
    assert main(["keyflow", small, "--reserve", "2", "--json", old]) == 0
    assert main(["keyflow", BACKBONE, "--extend", old, "--json", out]) == 0
    before = {switch["name"]: switch["banks"][0] for switch in documents.read_document(old)["switches"]}
    after = {switch["name"]: switch["banks"][0] for switch in documents.read_document(out)["switches"]}
    assert len(after) == 11
    for name, bank in before.items():
        assert after[name]["id"] == bank["id"] and after[name]["labels"][: len(bank["labels"])] == bank["labels"]
    assert set(walk_document(out, 0)) == {""}
    # The new document contains the banks of both epochs. A packet uses the bank of its key's epoch.
    assert main(["keyflow", BACKBONE, "--renumber", out, "--json", new]) == 0
    data = documents.read_document(new)
    assert [made["epoch"] for made in data["plans"]] == [0, 1]
    assert all([bank["epoch"] for bank in switch["banks"]] == [0, 1] for switch in data["switches"])
    assert any(switch["banks"][0]["id"] != switch["banks"][1]["id"] for switch in data["switches"])
    assert set(walk_document(new, 0)) == set(walk_document(new, 1)) == {""}
    # A further renumbering replaces the older bank.
    assert main(["keyflow", BACKBONE, "--renumber", new, "--reserve", "1", "--json", out]) == 0
    assert [made["epoch"] for made in documents.read_document(out)["plans"]] == [1, 0]


def test_compare_prints_the_table(capsys):
    assert main(["compare", BACKBONE, FIGURE]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("network") and lines[1].startswith("backbone") and lines[3].startswith("mean of all")


def test_output_is_the_same_every_time(tmp_path):
    said = []
    for name in ("a", "b"):
        assert main(["keyflow", BACKBONE, "--protect", "--sample", "40", "--json", str(tmp_path / name)]) == 0
        said.append((tmp_path / name).read_text())
    assert said[0] == said[1] and json.loads(said[0])["plans"][0]["width_bits"] == 128


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["keyflow", BACKBONE, "--extend", "/dev/zero"], "/dev/zero is not a regular file"),
        (["keyflow", BACKBONE, "--routes", "/dev/zero"], "/dev/zero is not a regular file"),
        (["compare", "/dev/zero"], "/dev/zero is not a regular file"),
        (["keyflow", "absent.json"], "plan keyflow: absent.json cannot be read: No such file"),
        (["keyflow", BACKBONE, "--routes", FIGURE], "routes must be a list of lists"),
        (["keyflow", BACKBONE, "--extend", FIGURE], "is not a KeyFlow plan"),
        (["keyflow", BACKBONE, "--coded", "core"], "is an end of routes and in the keys of others"),
        (["keyflow", BACKBONE, "--reserve", "-1"], "--reserve is 0 to 1024"),
        (["keyflow", BACKBONE, "--sample", "0"], "must be at least 1"),
        (["keyflow", BACKBONE, "--json", "/absent/plan.json"], "/absent/plan.json cannot be written"),
        (["keyflow", str(SAMPLES / "odd.graphml")], "2 parts without a link"),
        (["compare", "absent.graphml"], "plan compare: absent.graphml cannot be read"),
    ],
)
def test_errors_are_explained(arguments, says, capsys):
    assert main(arguments) == 1
    assert says in capsys.readouterr().err


def test_damaged_plans_are_refused(tmp_path, out, capsys):
    assert main(["keyflow", BACKBONE, "--json", out]) == 0
    data = json.loads(pathlib.Path(out).read_text(encoding="utf-8"))
    data["switches"][0]["banks"][0]["id"] = None
    (tmp_path / "damaged.json").write_text(json.dumps(data))
    data["version"] = 2
    (tmp_path / "newer.json").write_text(json.dumps(data))
    for name, says in (("damaged", "the ID of Aalen is None, which is not an integer"), ("newer", "has version 2; the supported version is 1")):
        assert main(["keyflow", BACKBONE, "--extend", str(tmp_path / f"{name}.json")]) == 1
        assert says in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["compare"], ["keyflow", BACKBONE, "--width", "65"], ["absent"]])
def test_wrong_use_is_exit_code_2(arguments, capsys):
    for entry, first in ((main, []), (controller, ["plan"])):
        with pytest.raises(SystemExit) as left:
            entry([*first, *arguments])
        assert left.value.code == 2 and "usage:" in capsys.readouterr().err


def test_python_runs_it_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "shunt_controller.plan", "--help"],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(SAMPLES.parents[2] / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert "keyflow" in done.stdout and "compare" in done.stdout


def test_check_detects_changed_plans(tmp_path, out, capsys):
    assert main(["keyflow", BACKBONE, "--protect", "--json", out]) == 0
    assert main(["keyflow", BACKBONE, "--renumber", out, "--json", out]) == 0
    capsys.readouterr()
    assert main(["check", out]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["0", "110"], ["1", "110"]]
    sound = json.loads(pathlib.Path(out).read_text(encoding="utf-8"))

    def refusal(change) -> str:
        data = json.loads(json.dumps(sound))
        change(data)
        (tmp_path / "changed.json").write_text(json.dumps(data))
        assert main(["check", str(tmp_path / "changed.json")]) == 1
        return capsys.readouterr().err

    first = ("plans", 0, "routes", 5, "segments", 0)

    def change(data, steps, **values):
        for step in steps:
            data = data[step]
        data.update(values)

    assert "faults under epoch 0" in refusal(lambda data: change(data, first, key="0x0"))
    assert "faults under epoch 0" in refusal(lambda data: change(data, first, hop_limit=0, key="0x1"))
    assert "does not end at" in refusal(lambda data: data["plans"][1]["routes"][3].update(to="Kehl"))
    assert "with" in refusal(lambda data: [switch["banks"][0].update(backups={}) for switch in data["switches"]])
    assert "Gera has no link at port 99" in refusal(lambda data: change(data, first, out_port=99))
    bank = ("switches", 3, "banks", 0)
    assert "Dorf has no link at port 77" in refusal(lambda data: change(data, bank, labels=["tables", 77]))
    assert "Dorf has the ID -3; IDs are 2 to 4294967295" in refusal(lambda data: change(data, bank, id=-3))
    assert "have no link" in refusal(lambda data: change(data, first, path=["Aalen", "Kehl"], guards=[""]))
    assert "it has no plans" in refusal(lambda data: data.update(plans=[]))
    assert "is damaged" in refusal(lambda data: change(data, first, key=None))
    assert "has the key -5; keys are at least 0" in refusal(lambda data: change(data, first, key="-0x5"))
    assert "the ID of Dorf is inf, which is not an integer" in refusal(lambda data: change(data, bank, id=float("inf")))
    assert "has no node 'nobody'" in refusal(lambda data: change(data, first, path=["nobody"]))
