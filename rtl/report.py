#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what the last run of each step found, and compares the tables of the pages with the synthesis.

report.py          fails if a table in a README.md of rtl/ or in docs/hardware.md differs from the synthesis
report.py --write  writes these tables
"""

import json
import re
import sys
import xml.etree.ElementTree as tree
from pathlib import Path

from synth import DEVICE, MODULES, PAPER, REPORT, ROOT, label

PROOFS = ROOT / "target" / "report" / "rtl_proofs.jsonl"
# The step `volume` replaces the results of the bench `datapath` by those of one test.
RESULTS = [ROOT / "target" / "rtl" / "sim" / bench / "results.xml" for bench in ("datapath_cells", "datapath")]
PAGE = ROOT / "docs" / "hardware.md"
# Folders of modules that share one.
FOLDERS = {"splitter": "parser"} | dict.fromkeys(("message_filter", "message_engine", "reply_writer", "packet_in"), "control")
UNITS = {"lut": "LUTs", "ff": "flip-flops", "bram": "BRAM36", "uram": "URAM", "dsp": "DSP"}

# What must hold, and the test of the data plane's benches that asserts it.
TESTS = [
    ("64 bytes back to back, all PPUs edit: one frame per cycle; 16 + 12 x PPUs cycles, so 64 with 4 PPUs (at most 100)",
     "frames_of_64_bytes_leave_in_every_cycle"),
    ("65 to 1518 bytes at bus rate", "longer_frames_leave_at_bus_rate"),
    ("update of an entry in at most 64 cycles without stalling a search", "an_update_never_stalls_and_is_never_half_seen"),
    ("back-pressure and gaps change no frame", "back_pressure_and_gaps_change_no_frame"),
    ("ingress faster than egress: whole frames dropped and counted", "ingress_faster_than_egress_drops_whole_frames"),
    ("random programs equal the model", "random_programs_equal_the_model"),
]


def number(value):
    """A number of cells; half a block RAM exists."""
    return f"{value:,.1f}".removesuffix(".0")


def table(rows):
    """Rows of a Markdown table."""
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]])


def pages(rows):
    """Returns the table of each page."""
    used = {row["case"]: row for row in rows}
    found = {}
    for top, _, parameters in MODULES:
        row = used[label(top, parameters)]
        found.setdefault(ROOT / "rtl" / FOLDERS.get(top, top) / "README.md", []).append(
            [f"`{row['case']}`", *(number(row[kind]) for kind in UNITS)])
    texts = {page: table([["module", *UNITS.values()], *lines]) for page, lines in found.items()}
    lines = [["module", "instances", *UNITS.values()]]
    lines += [[f"`{row['case']}`", row["instances"], *(number(row[kind]) for kind in UNITS)]
              for row in rows if "instances" in row]
    total = {kind: used[f"total {kind}"] for kind in UNITS}
    lines.append(["sum", "", *(number(total[kind]["cells"]) for kind in UNITS)])
    lines.append(["share of the device", "", *(f"{total[kind]['ours']} %" for kind in UNITS)])
    lines.append(["target", "", *(f"{total[kind]['bar']:g} %" if "bar" in total[kind] else "none" for kind in UNITS)])
    lines.append(["verdict", "", *(total[kind].get("verdict", "") for kind in UNITS)])
    lines.append(["paper", "", *(f"{PAPER[kind]:g} %" if kind in PAPER else "not stated" for kind in UNITS)])
    return {**texts, PAGE: table(lines)}


def differing(texts, write):
    """Compares or writes the tables between the markers. Returns the pages that differ."""
    wrong = []
    for page, text in texts.items():
        old = page.read_text()
        new, count = re.subn(r"(<!-- resources -->\n)[^<]*(<!-- end -->)", lambda m: f"{m[1]}{text}{m[2]}", old)
        if count != 1:
            raise SystemExit(f"{page}: needs the markers <!-- resources --> and <!-- end --> once")
        if new != old and write:
            page.write_text(new)
        elif new != old:
            wrong.append(page)
    return wrong


def lines_of(path):
    """Objects of a report, none if it does not exist or is older than the RTL."""
    newest = max(file.stat().st_mtime for file in (ROOT / "rtl").glob("*/*.sv"))
    if not path.exists() or path.stat().st_mtime < newest:
        return []
    return [json.loads(line) for line in path.read_text().splitlines()] if path.suffix == ".jsonl" else [path]


def main():
    """Prints the table, and checks the pages."""
    out = []
    cases = {}
    for path in (path for file in RESULTS for path in lines_of(file)):
        cases |= {case.get("name"): "missed" if case.find("failure") is not None else "met"
                  for case in tree.parse(path).iter("testcase")}
    out += [(what, cases.get(test, "not run")) for what, test in TESTS]
    proofs = lines_of(PROOFS)
    out += [(f"proof: {row['case']}", row["verdict"]) for row in proofs] or [("proofs", "not run")]
    area = lines_of(REPORT)
    out += [(f"{UNITS[kind]}: {row['ours']} % of {DEVICE[kind]:,} (at most {row['bar']:g} %, paper {PAPER[kind]} %)", row["verdict"])
            for row in area for kind in PAPER if row["case"] == f"total {kind}"] or [("resources", "not run")]
    for what, verdict in out:
        print(f"{verdict:<8} {what}")
    wrong = differing(pages(area), "--write" in sys.argv) if area else []
    for page in wrong:
        print(f"{page.relative_to(ROOT)}: the table differs from the synthesis; run rtl/report.py --write")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
