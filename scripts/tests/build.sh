#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the programs `shunt` and `shunt-device` as `cargo test` does for the unit tests, so that crates are
# compiled once, and prints the path of `shunt`. Cargo builds the programs for the two named tests. `cargo build`
# would enable fewer features of external crates.
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo test --quiet --workspace --features shunt/dpdk,shunt/rtl,device_sim/datapath --no-run \
    --test broken_output --test edges
cargo metadata --no-deps --format-version 1 | sed 's|.*"target_directory":"\([^"]*\)".*|\1/debug/shunt|'
