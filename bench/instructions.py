#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the exact number of instructions per packet in the cases of bench/instructions.json.

By default, callgrind counts them, with only the vector instructions that every CPU has. With `--steps`, the
program runs instruction by instruction (ptrace), with the widest vectors of this CPU. Each count is a row of
target/report/instructions.jsonl.

Exit codes: 0 success; 1 a case has grown by more than 3 percent (`--check`), or cannot be counted; 2 usage error.
"""

import argparse
import ctypes
import functools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS = ROOT / "bench" / "instructions.json"
REPORT = ROOT / "target" / "report" / "instructions.jsonl"

# Maximum ratio of a case's count to its usual count.
GROWTH_MAX = 1.03

# Numbers of bursts of the two callgrind runs. The difference of their counts excludes start and warm-up.
FEW_TURNS, MANY_TURNS = 200, 1_200

# Number of bursts that are run instruction by instruction, and maximum number of instructions.
STEPPED_TURNS, STEPS_MAX = 4, 20_000_000

PTRACE_TRACEME, PTRACE_CONT, PTRACE_SINGLESTEP = 0, 7, 9


class Failure(Exception):
    """A case that cannot be counted."""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    return done


def build() -> str:
    """Builds the benchmark `forward` and returns the path of the program."""
    subprocess.run(
        # Naming both packages gives all crates the features of `make test`, so that none is compiled twice.
        "cargo build --quiet --release --package shunt --package shunt-bench --bin forward".split(),
        cwd=ROOT,
        check=True,
    )
    metadata = json.loads(run("cargo", "metadata", "--no-deps", "--format-version", "1").stdout)
    return f"{metadata['target_directory']}/release/forward"


def by_callgrind(program: str, case: str) -> float:
    """Returns the instructions per packet, counted by callgrind."""
    counts = []
    for turns in (FEW_TURNS, MANY_TURNS):
        tool = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
        done = run(*tool, program, "--portable", "--case", case, "--turns", str(turns))
        collected = re.search(r"Collected : (\d+)", done.stderr)
        if not collected:
            raise Failure(f"callgrind printed no count: {done.stderr.strip()}")
        counts.append((int(collected[1]), int(done.stdout)))
    (few, few_packets), (many, many_packets) = counts
    return (many - few) / (many_packets - few_packets)


def by_steps(program: str, case: str) -> float:
    """Returns the instructions per packet, counted by single steps between the program's two signals."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        libc.ptrace(PTRACE_TRACEME, 0, None, None)
        os.dup2(writer, 1)
        arguments = [program, "--marks", "--case", case, "--turns", str(STEPPED_TURNS)]
        try:
            os.execv(program, arguments)
        finally:
            os._exit(127)
    os.close(writer)
    try:
        steps = count_steps(libc, child)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    with os.fdopen(reader) as output:
        return steps / int(output.read())


def count_all(program: str, cases: Iterable[str], steps: bool) -> Iterator[float]:
    """Yields the instructions per packet of each case. Callgrind runs on all CPUs: the load changes no count."""
    if steps:
        yield from (by_steps(program, case) for case in cases)
        return
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(functools.partial(by_callgrind, program), cases)


def count_steps(libc: ctypes.CDLL, child: int) -> int:
    """Runs a traced child to its end. Returns the number of instructions between its two signals."""
    request, steps, marks = PTRACE_CONT, 0, 0
    while True:
        _, status = os.waitpid(child, 0)
        if not os.WIFSTOPPED(status):
            if marks != 2 or os.waitstatus_to_exitcode(status) != 0:
                raise Failure(f"the traced program ended with status {status} after {marks} of 2 marks")
            return steps
        delivered = os.WSTOPSIG(status)
        if delivered == signal.SIGUSR1:
            marks += 1
            request = PTRACE_SINGLESTEP if marks == 1 else PTRACE_CONT
        elif delivered != signal.SIGTRAP:
            raise Failure(f"the traced program got signal {delivered}")
        steps += request == PTRACE_SINGLESTEP
        if steps > STEPS_MAX:
            raise Failure(f"more than {STEPS_MAX} instructions between the marks")
        if libc.ptrace(request, child, None, None) < 0:
            raise Failure(f"ptrace: {os.strerror(ctypes.get_errno())}")


def report(case: str, how: str, count: float, limit: float | None) -> str | None:
    """Appends a row to the report. Returns "met" or "missed", or None without a limit."""
    verdict = None if limit is None else "met" if count <= limit else "missed"
    row = {
        "figure": "instructions",
        "case": f"{case}, {how}",
        "ours": round(count, 1),
        "peer": None,
        "unit": "instructions/packet",
        "ratio": None,
        "low": round(count, 1),
        "high": round(count, 1),
        "runs": 1,
        "bar": None if limit is None else f"<= {limit:.1f}",
        "verdict": verdict,
    }
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    with REPORT.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    return verdict


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", action="store_true", help="count by single steps, with the widest vectors")
    parser.add_argument("--check", action="store_true", help="fail if a case has grown by more than 3 percent")
    parser.add_argument("--write", action="store_true", help="write the counts to the file of limits")
    parser.add_argument("--limits", type=Path, default=LIMITS, help="file of cases and usual counts")
    parser.add_argument("--program", type=Path, help="count this build of the benchmark `forward` instead of a new one")
    options = parser.parse_args()
    if options.steps and (options.check or options.write):
        parser.error("the limits are for portable vectors; omit --steps")
    counted, grown = {}, []
    try:
        limits = json.loads(options.limits.read_text(encoding="utf-8"))
        program = str(options.program.resolve()) if options.program else build()
        for (case, usual), count in zip(limits.items(), count_all(program, limits, options.steps)):
            limit = usual * GROWTH_MAX if options.check else None
            verdict = report(case, "widest vectors" if options.steps else "portable", count, limit)
            print(f"{count:8.1f} instructions/packet  {case}", flush=True)
            counted[case] = round(count, 1)
            if verdict == "missed":
                grown.append(f"{case}: {count:.1f}, {100 * (count / usual - 1):.1f} percent above {usual}")
    except (Failure, OSError, subprocess.SubprocessError, ValueError, ZeroDivisionError) as error:
        print(f"instructions: {error}", file=sys.stderr)
        return 1
    if options.write:
        options.limits.write_text(json.dumps(counted, indent=2) + "\n", encoding="utf-8")
    for case in grown:
        print(f"instructions: {case}", file=sys.stderr)
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
