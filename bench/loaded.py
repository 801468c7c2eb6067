#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads plans over OpenFlow into the datapaths of some processes of `shunt run`, and checks the delivery.

The datapaths have ports without devices (`driver = "none"`). An os-ken application loads a plan
(controller/examples/load_plan.py). Then the state of all switches is dumped, and `shunt sim` sends packets
through switches with this state. All packets must be delivered. Figures are written to
target/report/loaded.jsonl. The graphs are in ../shared/data/topo beside the repository; without them, only
trees are loaded.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import datapaths
import program  # in lab, whose folder `datapaths` adds to the path
from datapaths import ROOT, SHUNT, Failed, Report, status

REPORT = str(ROOT / "target/report/loaded.jsonl")
GRAPHS = ROOT.parent / "shared/data/topo"
PYTHON = os.environ.get("PLAN_PYTHON", str(ROOT / "target/tools/os-ken/bin/python3"))
# Longest time in which all switches are loaded.
PATIENCE_S = 540.0
# The arguments of the planner and the number of random pairs of hosts.
CASES = {
    "Tag-and-Forward k = 4": (("fat-tree", "--k", "4"), 200),
    "KeyFlow k = 4": (("keyflow", "--k", "4"), 200),
    "Tag-and-Forward k = 16": (("fat-tree", "--k", "16"), 2_000),
    "KeyFlow k = 16": (("keyflow", "--k", "16"), 2_000),
    "KeyFlow Kdl": (("keyflow", "Kdl.graphml"), 2_000),
}


def simulated_hosts(plan: dict[str, Any]) -> list[tuple[str, int]]:
    """Returns the places of the simulated hosts, in the order of their addresses: the nodes that are no
    switches, or else one host at the lowest free port of each switch at which a route ends."""
    switches = [switch["name"] for switch in plan["switches"]]
    known, used = set(switches), {name: set() for name in switches}
    hosts = []
    for link in plan["network"]["links"]:
        ends = [(link["a"], link["a_port"]), (link["b"], link["b_port"])]
        inside = [end for end in ends if end[0] in known]
        for name, port in inside:
            used[name].add(port)
        if len(inside) == 1:
            hosts.append(inside[0])
    if hosts:
        return hosts
    ends = {route[end] for made in plan["plans"] for route in made["routes"] for end in ("from", "to")}
    free = {name: next(port for port in range(1, 65536) if port not in used[name]) for name in switches if name in ends}
    return list(free.items())


def write_configurations(folder: Path, plan: dict[str, Any], processes: int, controller: int) -> list[Path]:
    """Writes a configuration for each process, and the places of the hosts."""
    hosts = simulated_hosts(plan)
    ports: dict[str, set[int]] = {switch["name"]: set() for switch in plan["switches"]}
    for link in plan["network"]["links"]:
        for name, port in ((link["a"], link["a_port"]), (link["b"], link["b_port"])):
            if name in ports:
                ports[name].add(port)
    for name, port in hosts:
        ports[name].add(port)
    places = [
        {"address": ".".join(map(str, (10 << 24 | at).to_bytes(4, "big"))), "switch": name, "port": port}
        for at, (name, port) in enumerate(hosts)
    ]
    (folder / "hosts.json").write_text(json.dumps({"hosts": places}), encoding="utf-8")
    texts: list[list[str]] = [[] for _ in range(processes)]
    for number, (name, of_switch) in enumerate(ports.items(), 1):
        lines = texts[number % processes]
        lines += datapaths.datapath_lines(folder, number, controller)
        for port in sorted(of_switch):
            lines += ["[[datapath.port]]", f"number = {port}", f'name = "p{port}"', 'driver = "none"']
    made = []
    for number, lines in enumerate(text for text in texts if text):
        made.append(folder / f"process{number}.toml")
        made[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return made


def free_port() -> int:
    """Returns a TCP port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def run(command: list[str], into: Path | None = None, **environment: str) -> None:
    """Runs a command to its end, with its output in a file."""
    with open(into or os.devnull, "wb") as out:
        done = subprocess.run(
            command, env=dict(os.environ, **environment), stdout=out, stderr=subprocess.PIPE, check=False
        )
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {done.stderr.decode(errors='replace').strip()}")


def load(folder: Path, plan: dict[str, Any], processes: int) -> tuple[float, float, int]:
    """Loads the plan and dumps the state of all switches. Returns the time in seconds until all datapaths are
    ready, the time until all are loaded, and the resident memory of all processes in kB."""
    controller, names = free_port(), [switch["name"] for switch in plan["switches"]]
    (folder / "state").mkdir()
    with ExitStack() as stack:
        begin, running = time.monotonic(), []
        for number, config in enumerate(write_configurations(folder, plan, processes, controller)):
            inside = folder / f"log{number}"
            inside.mkdir()
            running.append((stack.enter_context(datapaths.switches(inside, config.read_text(encoding="utf-8"))), inside))
        for process, inside in running:
            count = (inside / "datapaths.toml").read_text(encoding="utf-8").count("[[datapath]]")
            datapaths.wait_until_ready(process, inside / "log", count, None)
        ready_s, begin = time.monotonic() - begin, time.monotonic()
        paths = ":".join(str(ROOT / path) for path in ("controller/src", "controller/examples"))
        log = stack.enter_context(open(folder / "application", "wb"))
        command = [PYTHON, str(ROOT / "lab/controllers/launch.py"), "load_plan", "--plan", str(folder / "plan.json")]
        command += ["--hosts", str(folder / "hosts.json"), "--ofp-tcp-listen-port", str(controller)]
        application = subprocess.Popen(command, env=dict(os.environ, PYTHONPATH=paths), stdout=log, stderr=log)
        stack.callback(application.wait)
        stack.callback(application.terminate)
        wait_until_loaded(application, folder / "application", len(names))
        loaded_s = time.monotonic() - begin
        kb = sum(status(process.pid, "VmRSS") for process, _ in running)
        for number, name in enumerate(names, 1):
            say = [SHUNT, "--control", f"{folder}/{number}.sock"]
            file = name.replace("%", "%25").replace("/", "%2F")
            run([*say, "flows", "dump"], folder / "state" / f"{file}.flows")
            run([*say, "show", "stateless", "--json"], folder / "state" / f"{file}.json")
    return ready_s, loaded_s, kb


def wait_until_loaded(application: subprocess.Popen[bytes], log: Path, switches: int) -> None:
    """Waits until the application has reported each switch as planned."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        text = log.read_text(encoding="utf-8", errors="replace")
        if application.poll() is not None or "not as planned" in text or "reports error" in text:
            raise Failed("the plan was not loaded: " + text[-2000:])
        if text.count(" is as planned") >= switches:
            return
        time.sleep(0.1)
    raise Failed(f"not all switches were loaded within {PATIENCE_S:.0f} s: " + text[-500:])


def measure(name: str, processes: int, report: Report) -> None:
    """Runs a case and writes its figures."""
    arguments, pairs = CASES[name]
    words = [str(GRAPHS / word) if word.endswith(".graphml") else word for word in arguments]
    with tempfile.TemporaryDirectory(prefix="shunt-loaded-") as made:
        folder = Path(made)
        plan_file = folder / "plan.json"
        command = [PYTHON, "-m", "shunt_controller.plan", *words, "--json", str(plan_file)]
        run(command, PYTHONPATH=str(ROOT / "controller/src"))
        plan = json.loads(plan_file.read_text(encoding="utf-8"))
        ready_s, loaded_s, kb = load(folder, plan, processes)
        scenario = folder / "network.toml"
        text = f'[network]\nplan = "plan.json"\nstate = "state"\n[network.traffic]\nsample = {pairs}\npaths = 4\n'
        if "keyflow" in arguments:
            text = text.replace("paths = 4\n", "")
        scenario.write_text(text, encoding="utf-8")
        begin = time.monotonic()
        run([SHUNT, "sim", str(scenario), "--json"], folder / "run.json")
        found = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        sim_s = time.monotonic() - begin
    case = f"{name}, {len(plan['switches'])} switches, {processes} processes"
    report.exact("time until all datapaths are ready", case, "s", round(ready_s, 2))
    report.exact("time from the controller's start until all are loaded", case, "s", round(loaded_s, 2))
    report.exact("resident memory of all processes", case, "MB", kb // 1024)
    report.exact("time of shunt sim", case, "s", round(sim_s, 2))
    sent, lost = found["sent"], found["lost"]
    report.exact("packets delivered by the dumped state", case, "packets", found["delivered"], f">= {sent}", lost == 0)
    if lost or not sent:
        raise Failed(f"{case}: {lost} of {sent} packets were lost")


def main() -> None:
    """Runs the cases."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--case", default="", help="run only cases whose names contain this text")
    parser.add_argument("--processes", type=int, default=2, help="processes of shunt run (default: 2)")
    parser.add_argument("--report", default=REPORT, help="file of the figures (default: target/report/loaded.jsonl)")
    options = parser.parse_args()
    if not any(options.case in name for name in CASES):
        parser.error(f"no case has {options.case!r} in its name; cases are: {'; '.join(CASES)}")
    with program.ending("run make and scripts/setup.sh networks"):
        report = Report(options.report)
        for name, (arguments, _) in CASES.items():
            graphs = [word for word in arguments if word.endswith(".graphml")]
            if options.case not in name:
                continue
            if all((GRAPHS / graph).exists() for graph in graphs):
                measure(name, options.processes, report)
            else:
                print(f"left out, because its graph is missing in {GRAPHS}: {name}")


if __name__ == "__main__":
    main()
