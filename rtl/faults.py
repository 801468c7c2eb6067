#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants faults into copies of rtl/. Each must be caught by its named test of the bench `datapath`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "target" / "rtl" / "fault"

# Name: file, text, replacement, test that must fail.
FAULTS = {
    "entry_stays_valid_during_its_update": (
        "table_writer/table_writer.sv", "mark <= target;\n                state <= LOAD;", "state <= LOAD;",
        "an_update_never_stalls_and_is_never_half_seen",
    ),
    "row_is_loaded_one_entry_short": (
        "table_writer/table_writer.sv", "LOAD_LAST = 5'(ROW_ENTRIES + 1)", "LOAD_LAST = 5'(ROW_ENTRIES)",
        "an_update_never_stalls_and_is_never_half_seen",
    ),
    "bad_frame_stays_in_the_buffer": (
        "frame_buffer/frame_buffer.sv", "if (beat_last && !good) write_at", "if (1'b0) write_at",
        "bad_frames_are_dropped_whole_and_counted",
    ),
    "full_beat_is_followed_by_an_empty_one": (
        "deparser/deparser.sv", "full = total > 8'd64", "full = total >= 8'd64",
        "frames_of_64_bytes_leave_in_every_cycle",
    ),
    "header_waits_one_cycle_too_long": (
        "delay_line/delay_line.sv", "LAST = 5'(CYCLES - 2)", "LAST = 5'(CYCLES - 1)",
        "frames_of_64_bytes_leave_in_every_cycle",
    ),
    "payload_ignores_back_pressure": (
        "deparser/deparser.sv", "in_payload && payload_valid && (room || !sends)", "in_payload && payload_valid",
        "back_pressure_and_gaps_change_no_frame",
    ),
}


def caught(name):
    """Returns whether the test of a fault fails, and not the build."""
    file, text, replacement, test = FAULTS[name]
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(ROOT / "rtl", COPY / "rtl", ignore=shutil.ignore_patterns("__pycache__"))
    path = COPY / "rtl" / file
    source = path.read_text()
    if source.count(text) != 1:
        raise SystemExit(f"{name}: {file} must contain this text once: {text}")
    path.write_text(source.replace(text, replacement))
    result = subprocess.run(
        [sys.executable, COPY / "rtl" / "sim" / "run.py", "datapath"], env={**os.environ, "TESTCASE": test},
        capture_output=True, text=True, check=False, timeout=300,
    )
    return "datapath: 1 tests failed" in result.stdout and f"{test} failed" in result.stdout


def main():
    """Plants the named faults, or all."""
    missed = 0
    for name in sys.argv[1:] or FAULTS:
        found = caught(name)
        missed += not found
        print(f"{'caught' if found else 'MISSED'} {name}", flush=True)
    return int(missed != 0)


if __name__ == "__main__":
    sys.exit(main())
