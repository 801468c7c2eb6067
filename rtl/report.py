#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what the last run of each step found, and compares the tables of the pages with the synthesis.

report.py          fails if a requirement is missed, or if a table in a README.md of rtl/ or in docs/hardware.md
                   differs from the synthesis
report.py --write  writes these tables
"""

import json
import re
import sys
import xml.etree.ElementTree as tree
from pathlib import Path

from formal.prove import PROOFS, REPORT as PROVED
from synth import DEVICE, ENTRIES, MODULES, PAPER, PPUS, REPORT, ROOT, label

STEPS = ROOT / "target" / "report" / "rtl_steps.jsonl"
# The step `volume` replaces the results of the bench `datapath` by those of one test.
BENCHES = ("device", "control", "nic_shell", "tcam", "tcam_paged", "datapath_cells", "datapath_4_ppus", "datapath")
SIMULATED = ROOT / "target" / "rtl" / "sim"
PAGE = ROOT / "docs" / "hardware.md"
# Results of the benchmark of the daemon, bench/src/bin/device.rs.
DAEMON = ROOT / "target" / "report" / "device.jsonl"
# Folders of modules that share one.
FOLDERS = {"splitter": "parser"} | dict.fromkeys(("message_filter", "message_engine", "reply_writer", "packet_in"), "control")
UNITS = {"lut": "LUTs", "ff": "flip-flops", "bram": "BRAM36", "uram": "URAM", "dsp": "DSP"}

# Number of a requirement, what must hold, and the test that asserts it; before a slash, the bench that must run it.
TESTS = [
    (2, "64 bytes back to back, 1 PPU edits: one frame per cycle, latency 28 cycles",
     "datapath_cells/frames_of_64_bytes_leave_in_every_cycle"),
    (2, "64 bytes back to back, 4 PPUs edit: one frame per cycle, latency 64 cycles (at most 100)",
     "datapath_4_ppus/frames_of_64_bytes_leave_in_every_cycle"),
    (2, "64 bytes back to back, 4 PPUs execute an action of each kind: one frame per cycle",
     "datapath_4_ppus/each_kind_of_action_passes_a_frame_in_every_cycle"),
    (2, "4 PPUs, latency 66 cycles with 65 bytes, 88 with 1518 (at most 100)",
     "datapath_4_ppus/latency_grows_with_the_number_of_beats"),
    (2, "4 PPUs, 65 to 1518 bytes at bus rate", "datapath_4_ppus/longer_frames_leave_at_bus_rate"),
    (2, "4 PPUs, 60 to 1518 bytes that grow by an edit, at bus rate",
     "datapath_4_ppus/frames_that_grow_leave_at_bus_rate"),
    (3, "search in 4 cycles (at most 4), one in every cycle", "tcam/entries_are_found_and_near_misses_are_not"),
    (3, "update of an entry in at most 64 cycles without stalling a search",
     "an_update_never_stalls_and_is_never_half_seen"),
    (3, "an update takes effect for all keys in the same cycle", "an_entry_changes_for_all_keys_in_one_cycle"),
    (4, "two-clock variant: a search in two cycles, latency 5 cycles, also during an update of 17 cycles",
     "searches_see_updates_whole_and_do_not_wait"),
    (5, "random programs equal the model of the benches", "random_programs_equal_the_model"),
    (6, "Flow_request to Flow_reply in at most 200 cycles", "a_flow_request_is_answered_in_time"),
    (8, "runts, giants, aborted and malformed frames are dropped", "bad_frames_are_dropped_whole_and_counted"),
    (8, "back-pressure and gaps change no frame", "back_pressure_and_gaps_change_no_frame"),
    (8, "back-pressure of each channel changes no frame", "back_pressure_in_random_patterns_changes_no_frame"),
    (8, "ingress faster than egress: whole frames dropped and counted", "ingress_faster_than_egress_drops_whole_frames"),
    (8, "overload: drops at known places, no corrupted frame", "overload_drops_frames_at_known_places_and_corrupts_none"),
    (8, "malformed and spoofed datagrams", "malformed_and_spoofed_frames_are_dropped_with_their_reason"),
    (8, "repeated, late and stale datagrams", "duplicates_late_and_stale_messages_do_no_harm"),
    (8, "restart of the daemon", "a_daemon_that_restarts_finds_the_state_and_old_datagrams_do_no_harm"),
]
# The same of steps.
STEP_OF = [
    (5, "captures and compiled flow tables, also while they change in traffic, equal `reference`", "reference"),
    (5, "250,000 frames in 100 random programs, whose entries change in traffic, equal the software model", "reference"),
    (5, "100,000 frames in 100 random programs equal the model of the benches", "volume"),
    (5, "planted faults are caught", "faults"),
    (8, "back-pressure in each pattern of 10 cycles changes no frame that grows", "reference"),
    (7, "the simulated device forwards between ports, programmed by a daemon", "device"),
]
# Figures of the daemon, each at the 99th percentile, and their limits in microseconds.
FIGURES = [
    ("flow-mod and barrier, daemon's share", 50),
    ("reaction to a new flow, local controller", None),
    ("reaction to a new flow, learning application on os-ken", None),
]
# Requirements that `make rtl` does not check.
ELSEWHERE = [
    (7, "pings and TCP pass the simulated device, by ovs-ofctl and by os-ken: scripts/tests/test_device.sh"),
    (8, "the device forwards while the daemon is killed, and is read back: scripts/tests/test_device.sh"),
]
# The steps of `make rtl` before the report, and what they may take together, in seconds.
ALL_STEPS = ("lint", "simulate", "reference", "device", "volume", "faults", "prove", "synthesise")
TIME_MAX = 40 * 60


def number(value):
    """A number of cells; half a block RAM exists."""
    return f"{value:,.1f}".removesuffix(".0")


def table(rows):
    """Rows of a Markdown table."""
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]])


def two_clock(used, total):
    """Rows of the TCAMs with one and with two cycles per search, and of devices with them."""
    one, two = used[f"tcam ENTRIES={ENTRIES}"], used[f"tcam_paged ENTRIES={ENTRIES}"]
    changed = {kind: total[kind]["cells"] + PPUS * (two[kind] - one[kind]) for kind in UNITS}
    return [
        ["", *UNITS.values()],
        [f"TCAMs, {PPUS * ENTRIES:,} entries, one cycle", *(number(PPUS * one[kind]) for kind in UNITS)],
        [f"TCAMs, {PPUS * ENTRIES:,} entries, two cycles", *(number(PPUS * two[kind]) for kind in UNITS)],
        ["sum of the device, one cycle", *(number(total[kind]["cells"]) for kind in UNITS)],
        ["sum of the device, two cycles", *(number(changed[kind]) for kind in UNITS)],
        ["share of the device, two cycles", *(f"{round(100 * changed[kind] / DEVICE[kind], 2)} %" for kind in UNITS)],
    ]


def pages(rows):
    """Returns the tables by page and name."""
    used = {row["case"]: row for row in rows}
    found = {}
    for top, _, parameters in MODULES:
        row = used[label(top, parameters)]
        found.setdefault(ROOT / "rtl" / FOLDERS.get(top, top) / "README.md", []).append(
            [f"`{row['case']}`", *(number(row[kind]) for kind in UNITS)])
    texts = {(page, "resources"): table([["module", *UNITS.values()], *lines]) for page, lines in found.items()}
    lines = [["module", "instances", *UNITS.values()]]
    lines += [[f"`{row['case']}`", row["instances"], *(number(row[kind]) for kind in UNITS)]
              for row in rows if "instances" in row]
    total = {kind: used[f"total {kind}"] for kind in UNITS}
    lines.append(["sum", "", *(number(total[kind]["cells"]) for kind in UNITS)])
    lines.append(["share of the device", "", *(f"{total[kind]['ours']} %" for kind in UNITS)])
    lines.append(["target", "", *(f"{total[kind]['bar']:g} %" if "bar" in total[kind] else "none" for kind in UNITS)])
    lines.append(["verdict", "", *(total[kind].get("verdict", "") for kind in UNITS)])
    lines.append(["paper", "", *(f"{PAPER[kind]:g} %" if kind in PAPER else "not stated" for kind in UNITS)])
    return {**texts, (PAGE, "resources"): table(lines), (PAGE, "two clocks"): table(two_clock(used, total))}


def differing(texts, write):
    """Compares or writes the tables between the markers. Returns the pages that differ."""
    wrong = []
    for (page, name), text in texts.items():
        old = page.read_text()
        new, count = re.subn(rf"(<!-- {name} -->\n)[^<]*(<!-- end -->)", lambda m: f"{m[1]}{text}{m[2]}", old)
        if count != 1:
            raise SystemExit(f"{page}: needs the markers <!-- {name} --> and <!-- end --> once")
        if new != old and write:
            page.write_text(new)
        elif new != old:
            wrong.append(page)
    return wrong


def newest_source(*patterns):
    """Time of the last change to the RTL, and to other files of rtl/."""
    return max(file.stat().st_mtime for pattern in ("*/*.sv", *patterns) for file in (ROOT / "rtl").glob(pattern))


def lines_of(path):
    """Objects of a report, none if it does not exist."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def verdict_of(case):
    """Verdict of a test case."""
    if case.find("skipped") is not None:
        return "not run"
    return "met" if case.find("failure") is None and case.find("error") is None else "missed"


def tests():
    """Verdicts of the requirements that tests of benches assert. Of several benches, the worst verdict counts."""
    found, newest = {}, newest_source("*/*.py")
    for bench in BENCHES:
        path = SIMULATED / bench / "results.xml"
        if path.exists() and path.stat().st_mtime >= newest:
            for case in tree.parse(path).iter("testcase"):
                for name in (case.get("name"), f"{bench}/{case.get('name')}"):
                    found.setdefault(name, set()).add(verdict_of(case))
    worst = {name: next(verdict for verdict in ("missed", "met", "not run") if verdict in verdicts)
             for name, verdicts in found.items()}
    return [(must, what, worst.get(test, "not run")) for must, what, test in TESTS]


def steps():
    """Verdicts of the requirements that steps assert, and times of the steps that ended since the last change."""
    newest = newest_source("*/*.py")
    last = {row["step"]: row for row in lines_of(STEPS) if row["at"] >= newest}
    if "all_faults" in last:
        last.setdefault("faults", last["all_faults"])
    verdicts = {"passed": "met", "failed": "missed"}
    rows = [(must, what, verdicts[last[step]["verdict"]] if step in last else "not run") for must, what, step in STEP_OF]
    passed = {step: last[step]["seconds"] for step in ALL_STEPS if step in last and last[step]["verdict"] == "passed"}
    total = sum(passed.values())
    times = ", ".join(f"{step} {seconds} s" for step, seconds in passed.items())
    verdict = "not run" if len(passed) < len(ALL_STEPS) else "met" if total <= TIME_MAX else "missed"
    return [(1, f"all steps in {total} s (at most {TIME_MAX} s): {times or 'none passed'}", verdict), *rows]


def resources(area):
    """Verdicts of the resources."""
    return [(4, f"{UNITS[kind]}: {row['ours']} % of {DEVICE[kind]:,} (at most {row['bar']:g} %, paper {PAPER[kind]} %)",
             row["verdict"])
            for row in area for kind in PAPER if row["case"] == f"total {kind}"] or [(4, "resources", "not run")]


def proofs():
    """Verdicts of the proofs and their mutations."""
    newest, rows = newest_source("formal/prove.py"), {name: [] for name in PROOFS}
    for row in lines_of(PROVED):
        name = row["case"].split()[0]
        if name in rows and row.get("at", 0) >= newest:
            rows[name].append((3, f"proof: {row['case']}", row["verdict"]))
    return [row for name, found in rows.items() for row in found or [(3, f"proof: {name}", "not run")]]


def daemon():
    """Verdicts of the last run of the benchmark of the daemon, whose age is not checked."""
    last = {row["figure"]: row["ours"] for row in lines_of(DAEMON) if row["case"] == "p99"}
    rows = []
    for figure, limit in FIGURES:
        value, bar = last.get(figure), f" (at most {limit} us)" if limit else ""
        verdict = "not run" if value is None else "reported" if not limit else "met" if value <= limit else "missed"
        measured = "" if value is None else f": {value:.0f} us"
        rows.append((6, f"{figure}, 99th percentile{measured}{bar}", verdict))
    return rows


def main():
    """Prints the table, and checks the pages."""
    area = lines_of(REPORT) if REPORT.exists() and REPORT.stat().st_mtime >= newest_source() else []
    elsewhere = [(must, f"run by make test: {what}", "-") for must, what in ELSEWHERE]
    rows = [*steps(), *tests(), *resources(area), *proofs(), *daemon(), *elsewhere]
    for must, what, verdict in sorted(rows, key=lambda row: row[0]):
        print(f"must {must}  {verdict:<8} {what}")
    wrong = differing(pages(area), "--write" in sys.argv) if area else []
    for page in wrong:
        print(f"{page.relative_to(ROOT)}: the table differs from the synthesis; run rtl/report.py --write")
    return int(bool(wrong) or any(verdict == "missed" for _, _, verdict in rows))


if __name__ == "__main__":
    sys.exit(main())
