#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the time in which a controller sets all gates of a fat tree, for Tag-and-Forward.

Two processes of `shunt run` have a datapath for each switch. Their ports have no devices (`driver = "none"`),
so the topology is given to the controller (gate_rounds.py). Figures are written to
target/report/gates.jsonl, and the times of all runs to target/report/gates.csv, in milliseconds:

- `plan_ms`: from the topology to the plan.
- `set_ms`: from the plan until each switch has confirmed its configuration with a barrier reply. The
  configuration has the gates, the trusted ports and the entries that a switch has without hosts.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import datapaths
import program  # like `results` in lab, whose folder `datapaths` adds to the path
from datapaths import ROOT, Failed, Report
from loaded import PYTHON, free_port
from results import write_about

REPORT = str(ROOT / "target/report/gates.jsonl")
# Limit of the 95th percentile of `set_ms`, by k.
BARS_MS = {4: 20.0, 16: 1000.0}
# External gates of each core switch, as in the paper's tree of k = 4 with 88 gates.
OUTSIDE = 2
# Time limit of a run, and of the connection of all switches.
PATIENCE_S = 60.0


def configurations(folder: Path, k: int, processes: int, controller: int) -> list[str]:
    """Returns the configuration of each process."""
    half, texts = k // 2, [[] for _ in range(processes)]
    # Edge and aggregation switches have k ports. The planner numbers core switches last.
    ports = [k] * (2 * half * k) + [k + OUTSIDE] * (half * half)
    for number, count in enumerate(ports, 1):
        lines = texts[number % processes]
        lines += datapaths.datapath_lines(folder, number, controller)
        for port in range(1, count + 1):
            lines += ["[[datapath.port]]", f"number = {port}", f'name = "p{port}"', 'driver = "none"']
    return ["\n".join(lines) + "\n" for lines in texts if lines]


def percentiles(values: list[float]) -> tuple[float, float]:
    """Returns the 5th and the 95th percentile, by nearest rank."""
    ordered = sorted(values)
    return tuple(ordered[max(0, math.ceil(share * len(ordered)) - 1)] for share in (0.05, 0.95))


def rounds(k: int, runs: int, processes: int) -> list[dict[str, float]]:
    """Runs the switches and the controller. Returns the figures of each run."""
    with tempfile.TemporaryDirectory(prefix="shunt-gates-") as name, ExitStack() as stack:
        folder, controller = Path(name), free_port()
        for number, text in enumerate(configurations(folder, k, processes, controller)):
            inside = folder / str(number)
            inside.mkdir()
            process = stack.enter_context(datapaths.switches(inside, text))
            datapaths.wait_until_ready(process, inside / "log", text.count("[[datapath]]"), None)
        log = stack.enter_context(open(folder / "controller", "wb"))
        command = [PYTHON, str(ROOT / "lab/controllers/launch.py"), "gate_rounds", "--k", str(k), "--runs", str(runs)]
        command += ["--outside", str(OUTSIDE), "--ofp-tcp-listen-port", str(controller)]
        paths = ":".join(str(ROOT / path) for path in ("controller/src", "bench"))
        application = subprocess.Popen(command, env=dict(os.environ, PYTHONPATH=paths), stdout=subprocess.PIPE, stderr=log)
        stack.callback(application.wait)
        stack.callback(application.terminate)
        return read(application, folder / "controller", runs)


def read(application: subprocess.Popen[bytes], log: Path, runs: int) -> list[dict[str, float]]:
    """Reads the lines of all runs."""
    assert application.stdout is not None
    os.set_blocking(application.stdout.fileno(), False)
    data, end = b"", time.monotonic() + PATIENCE_S
    while data.count(b"\n") < runs:
        more = application.stdout.read() or b""
        data += more
        if more:
            end = time.monotonic() + PATIENCE_S
        if time.monotonic() > end or application.poll() is not None:
            text = log.read_text(encoding="utf-8", errors="replace")[-2000:]
            raise Failed(f"only {len(data.splitlines())} of {runs} runs ended: {text}")
        time.sleep(0.05)
    return [json.loads(line) for line in data.splitlines()]


def measure(k: int, options: argparse.Namespace, report: Report, table: csv.DictWriter) -> bool:
    """Measures a tree. Returns whether the time clears its target."""
    found = rounds(k, options.runs, options.processes)
    case = f"k = {k}, {found[0]['switches']} switches, {found[0]['gates']} gates"
    for run in found:
        table.writerow({"k": k, **run})
    plans, sets = ([run[key] for run in found] for key in ("plan_ms", "set_ms"))
    report.alone("time to plan", case, "ms", plans)
    # Later runs find serialised entries in the controller's caches.
    report.exact("time to set all gates, first run", case, "ms", round(sets[0], 3))
    if k not in BARS_MS:
        report.alone("time to set all gates", case, "ms", sets)
        return True
    return report.within("time to set all gates, 90 % interval", case, "ms", sets, *percentiles(sets), BARS_MS[k]) == "met"


def main() -> None:
    """Measures the trees. The exit code is 1 if a time misses its target."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--k", type=int, action="append", help="even k of a tree; may be repeated (default: 4 and 16)")
    parser.add_argument("--runs", type=int, default=100, help="number of runs (default: 100)")
    parser.add_argument("--processes", type=int, default=2, help="processes of shunt run (default: 2)")
    parser.add_argument("--report", default=REPORT, help="file of the figures (default: target/report/gates.jsonl)")
    options = parser.parse_args()
    if options.runs < 1 or options.processes < 1 or any(k < 4 or k % 2 for k in options.k or []):
        parser.error("k is an even number from 4 on; runs and processes are at least 1")
    with program.ending("run make and scripts/setup.sh networks"):
        write_about(options.report)
        report, path = Report(options.report), Path(options.report).with_suffix(".csv")
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, ["k", "run", "switches", "gates", "entries", "plan_ms", "set_ms"])
            table.writeheader()
            results = [measure(k, options, report, table) for k in options.k or BARS_MS]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
