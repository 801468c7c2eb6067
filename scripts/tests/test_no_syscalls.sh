#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A worker with in-memory ports must make no system call per packet. Ten times the packets must cause the same
# number of system calls.
set -euo pipefail
cd "$(dirname "$0")/../.."

case='exact, 100 rules on the 5-tuple'
turns=5000
# Allowance for calls of the C library, well below one call per 10,000 packets (144).
slack=10

fail() {
    printf 'test_no_syscalls: %s\n' "$*" >&2
    exit 1
}

cargo build --quiet --release --package shunt --package shunt-bench --bin forward
program=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release/forward
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# calls TURNS: prints the number of system calls of a run with this many bursts of 32 packets.
calls() {
    # The program prints the number of its packets.
    strace -f -c -o "$folder/$1" "$program" --case "$case" --turns "$1" >/dev/null
    awk '$NF == "total" { print $4 }' "$folder/$1"
}
few=$(calls "$turns")
many=$(calls "$((10 * turns))")
if [ -z "$few" ] || [ -z "$many" ]; then fail "strace counted nothing: $(cat "$folder"/*)"; fi
if [ "$many" -gt "$((few + slack))" ]; then
    cat "$folder/$((10 * turns))" >&2
    fail "$few system calls for $((32 * turns)) packets, $many for $((320 * turns))"
fi
printf 'ok: %s system calls for %s packets, %s for %s: no call per packet\n' \
    "$few" "$((32 * turns))" "$many" "$((320 * turns))"
