#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of the crates `frame` and `port` with the address sanitizer and its leak detector. It covers
# the C shim of the DPDK driver, but not DPDK. Needs root for the tests in network namespaces.
#
# DPDK_PACKETS is the number of packets in the test that looks for lost mbufs (default: 10,000,000).
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
# The sanitizer is an unstable compiler flag; this variable makes the stable compiler accept it.
export RUSTC_BOOTSTRAP=1
# With `--target`, these flags do not apply to build scripts and procedural macros.
export RUSTFLAGS="${RUSTFLAGS:-} -Zsanitizer=address"
export "CFLAGS_${host//-/_}=-fsanitize=address -fno-omit-frame-pointer"
export DPDK_PACKETS=${DPDK_PACKETS:-10000000}

suppressions=$(mktemp)
trap 'rm -f "$suppressions"' EXIT
# DPDK keeps its arguments until the end of the process.
printf 'leak:port::dpdk::shim::start_eal\n' >"$suppressions"
export LSAN_OPTIONS=suppressions=$suppressions:print_suppressions=0

cargo test --target "$host" --package frame --package port --features port/dpdk --lib --tests
