#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Applies the patches of rtl/faults/ to copies of rtl/, one at a time: faults.py [--all | NAME...].

Without names, it applies those with the line `# sample`: about one for each module, on benches that are built
quickly. `make nightly` applies all.

The test that a patch names after `# fails:` must fail. A line `# bench:` names its bench; the default is
`datapath_cells`, which is small and contains the memory cells and multiplexer cells.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATCHES = ROOT / "rtl" / "faults"
COPY = ROOT / "target" / "rtl" / "fault"
BENCH = "datapath_cells"


def caught(name):
    """Returns whether the test of a fault fails, and not the build."""
    patch = PATCHES / f"{name}.patch"
    text = patch.read_text()
    test = re.search(r"^# fails: (\w+)$", text, re.M)[1]
    named = re.search(r"^# bench: (\w+)$", text, re.M)
    bench = named[1] if named else BENCH
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(ROOT / "rtl", COPY / "rtl", ignore=shutil.ignore_patterns("__pycache__"))
    result = subprocess.run(
        ["patch", "--quiet", "--fuzz=0", "-p1", "-i", patch], cwd=COPY, capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        raise SystemExit(f"{name}.patch no longer applies; update it: {result.stdout.strip()}")
    # Quick compilation matters more than quick simulation.
    result = subprocess.run(
        [sys.executable, COPY / "rtl" / "sim" / "run.py", bench], capture_output=True, text=True, check=False,
        env={**os.environ, "TESTCASE": test, "RTL_OPTIMISE": "-O0"}, timeout=900,
    )
    return f"{bench}: 1 tests failed" in result.stdout and f"{test} failed" in result.stdout


def main():
    """Plants the named faults, all, or the sample."""
    names = sys.argv[1:]
    if names in ([], ["--all"]):
        patches = sorted(PATCHES.glob("*.patch"))
        names = [patch.stem for patch in patches if names or re.search("^# sample$", patch.read_text(), re.M)]
    missed = 0
    for name in names:
        start = time.monotonic()
        found = caught(name)
        missed += not found
        print(f"{'caught' if found else 'MISSED'} {name} ({time.monotonic() - start:.0f} s)", flush=True)
    if not names:
        raise SystemExit("no fault was planted")
    return int(missed != 0)


if __name__ == "__main__":
    sys.exit(main())
