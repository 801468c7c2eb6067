#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants faults into copies of rtl/. Each must be caught by its named test."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "target" / "rtl" / "fault"

# Name: file, text, replacement, test that must fail, and its bench if that is not `datapath`.
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
    "first_channel_always_wins": (
        "nic_shell/frame_mux.sv", "found_above ? first_above : first", "first",
        "all_channels_share_the_bus_fairly_and_without_a_bubble", "nic_shell",
    ),
    "dropped_frame_leaves_its_first_beats": (
        "nic_shell/frame_fifo.sv", "if (beat_last && !commit && !cut) write_at", "if (1'b0) write_at",
        "a_slow_channel_blocks_no_other_and_drops_are_counted_there", "nic_shell",
    ),
    "filter_ignores_the_udp_checksum": (
        "control/message_filter.sv", " || fold(e_sum) != 16'hffff", "",
        "malformed_and_spoofed_frames_are_dropped_with_their_reason", "control",
    ),
    "filter_ignores_the_source_port": (
        "control/message_filter.sv", "|| udp[63:48] != addresses.daemon_port", "",
        "malformed_and_spoofed_frames_are_dropped_with_their_reason", "control",
    ),
    "duplicate_is_executed_again": (
        "control/message_engine.sv", "is_seen = seen_valid_q && seen_q.id == id", "is_seen = 1'b0",
        "duplicates_late_and_stale_messages_do_no_harm", "control",
    ),
    "late_flow_mod_is_executed": (
        "control/message_engine.sv", "is_late = above_mod[31] || above_mod == 0", "is_late = 1'b0",
        "duplicates_late_and_stale_messages_do_no_harm", "control",
    ),
    "window_is_one_id_too_long": (
        "control/message_engine.sv", "oldest <= id - 32'(MESSAGE_WINDOW);", "oldest <= id - 32'(MESSAGE_WINDOW) - 32'd1;",
        "duplicates_late_and_stale_messages_do_no_harm", "control",
    ),
    "packet_in_waits_for_a_beat_too_many": (
        "control/packet_in.sv", "left > 16'(PACKET_BYTE)", "left >= 16'(PACKET_BYTE)",
        "packet_ins_and_packet_outs_are_moved_byte_for_byte", "control",
    ),
    "hits_in_turn_lose_a_count": (
        "hit_counter/hit_counter.sv", "is_old = written && sum_at == hit_at", "is_old = 1'b0",
        "every_hit_is_counted", "hit_counter",
    ),
    "new_entry_keeps_the_old_count": (
        "datapath/datapath.sv", ".clear(write[p] && address == '0)", ".clear(1'b0)",
        "a_programmed_device_forwards_counts_and_is_read_back", "device",
    ),
}


def caught(name):
    """Returns whether the test of a fault fails, and not the build."""
    file, text, replacement, test, *given = FAULTS[name]
    bench = given[0] if given else "datapath"
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(ROOT / "rtl", COPY / "rtl", ignore=shutil.ignore_patterns("__pycache__"))
    path = COPY / "rtl" / file
    source = path.read_text()
    if source.count(text) != 1:
        raise SystemExit(f"{name}: {file} must contain this text once: {text}")
    path.write_text(source.replace(text, replacement))
    result = subprocess.run(
        [sys.executable, COPY / "rtl" / "sim" / "run.py", bench], env={**os.environ, "TESTCASE": test},
        capture_output=True, text=True, check=False, timeout=300,
    )
    return f"{bench}: 1 tests failed" in result.stdout and f"{test} failed" in result.stdout


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
