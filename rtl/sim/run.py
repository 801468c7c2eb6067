#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the cocotb test benches: run.py [NAME...]. Needs cocotb 1.9 and Verilator 5.006.

RTL_OPTIMISE is the option of the C++ compiler, -O1 by default."""

import os
import re
import subprocess
import sys
import sysconfig
import xml.etree.ElementTree as tree
from pathlib import Path

import cocotb.config

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "target" / "rtl" / "sim"

# Tests of throughput and latency.
RATE = (
    "frames_of_64_bytes_leave_in_every_cycle", "each_kind_of_action_passes_a_frame_in_every_cycle",
    "longer_frames_leave_at_bus_rate", "frames_that_grow_leave_at_bus_rate", "latency_grows_with_the_number_of_beats",
)
# Bench: folder, top module, parameters, and its tests if not all. Tables are small where their size does not matter,
# because simulation time grows with it.
BENCHES = {
    "datapath": ("datapath", "datapath", {"PPUS": 3, "ENTRIES": 16}),
    "nic_shell": ("nic_shell", "nic_shell", {"CHANNELS": 4, "INGRESS_BEATS": 64, "EGRESS_BEATS": 64, "PRIMITIVE": 1}),
    "tcam": ("tcam", "tcam", {"ENTRIES": 64, "PRIMITIVE": 1}),
    "tcam_paged": ("tcam_paged", "tcam_paged", {"ENTRIES": 64}),
    "hit_counter": ("hit_counter", "hit_counter", {"ENTRIES": 16}),
    "device": ("device", "device", {"CHANNELS": 4, "PPUS": 2, "ENTRIES": 16, "EGRESS_BEATS": 64}),
    "control": ("control", "control", {"PPUS": 3, "ENTRIES": 16, "LOWER": 2, "UPPER": 6, "MESSAGE_BEATS": 64, "PRIMITIVE": 1}),
    "datapath_cells": ("datapath", "datapath", {"PPUS": 1, "ENTRIES": 32, "PRIMITIVE": 1}),
    "datapath_4_ppus": ("datapath", "datapath", {"PPUS": 4, "ENTRIES": 32}, RATE),
}


def sources():
    """Files of rtl/files.f."""
    return [ROOT / line for line in (ROOT / "rtl" / "files.f").read_text().split()]


def build(name, top, parameters):
    """Builds a bench, if a source has changed since the last build. Returns the program."""
    folder = BUILD / name
    program = folder / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    # The bench sees only the ports of the top module: other visible signals would slow the simulation down.
    public = folder / "public.vlt"
    text = next(path for path in sources() if path.stem == top).read_text()
    ports = re.findall(r"^ +(?:input|output) .*?(\w+),?(?: *//.*)?$", text, re.M)
    lines = [f'public_flat_rw -module "{top}" -var "{port}"' for port in ports]
    public.write_text("\n".join(["`verilator_config", *lines, ""]))
    libraries = cocotb.config.libs_dir
    command = [
        "verilator", "--cc", "--exe", "--build", "-j", "2", "--vpi", "--prefix", "Vtop", "-o", "bench", "-O3",
        "--x-assign", "unique", "--x-initial", "unique", "--top-module", top, "-Mdir", str(folder), "-Wno-fatal",
        # Refused parameters end the build.
        "-Werror-USERFATAL",
        "-LDFLAGS", f"-Wl,-rpath,{libraries} -L{libraries} -lcocotbvpi_verilator",
        "-MAKEFLAGS", "OPT_FAST=" + os.environ.get("RTL_OPTIMISE", "-O1"),
        *(f"-G{key}={value}" for key, value in parameters.items()),
        str(ROOT / "rtl" / "lint.vlt"), str(public), *map(str, sources()),
        str(Path(cocotb.config.share_dir) / "lib" / "verilator" / "verilator.cpp"),
    ]
    with open(folder / "build.log", "w", encoding="utf-8") as log:
        if subprocess.run(command, stdout=log, stderr=log, check=False).returncode != 0:
            raise SystemExit(f"{name}: the build failed; see {log.name}")
    return program


def run(name):
    """Builds and runs a bench. Returns the number of failed tests."""
    folder, top, parameters, *tests = BENCHES[name]
    program = build(name, top, parameters)
    results = program.parent / "results.xml"
    results.unlink(missing_ok=True)
    paths = [ROOT / "rtl" / folder, ROOT / "rtl" / "sim", sysconfig.get_path("purelib")]
    modules = sorted(path.stem for path in (ROOT / "rtl" / folder).glob("test_*.py"))
    environment = {
        **({"TESTCASE": ",".join(tests[0])} if tests else {}), **os.environ,
        "MODULE": ",".join(modules), "TOPLEVEL": top, "TOPLEVEL_LANG": "verilog",
        "COCOTB_RESULTS_FILE": str(results), "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "LIBPYTHON_LOC": subprocess.run(
            [sys.executable, "-m", "find_libpython"], capture_output=True, text=True, check=True
        ).stdout.strip(),
        **{key: str(value) for key, value in parameters.items()},
    }
    # Registers without a reset begin with random values.
    seed = int(os.environ.get("RTL_SEED", "1")) % (1 << 31)
    command = [str(program), "+verilator+rand+reset+2", f"+verilator+seed+{max(seed, 1)}"]
    code = subprocess.run(command, cwd=program.parent, env=environment, check=False).returncode
    if code != 0:
        raise SystemExit(f"{name}: the simulation ended with status {code}")
    if not results.exists():
        raise SystemExit(f"{name}: no test ran")
    cases = list(tree.parse(results).iter("testcase"))
    failed = sum(case.find("failure") is not None for case in cases)
    return failed if cases else 1


def main():
    """Runs the named benches, or all."""
    failed = {name: run(name) for name in sys.argv[1:] or BENCHES}
    for name, count in failed.items():
        print(f"{name}: {'passed' if count == 0 else f'{count} tests failed'}")
    return int(any(failed.values()))


if __name__ == "__main__":
    sys.exit(main())
