#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `shunt top` on a terminal. It must draw, react to keys, follow a new size and restore the terminal. It must
# report when its switch ends. Needs no privileges.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
switch=''
clean_up() {
    [ -z "$switch" ] || kill "$switch" 2>/dev/null || true
    rm -rf "$folder"
}
trap clean_up EXIT

cat >"$folder/switch.toml" <<TOML
control = "$folder/control.sock"
[[worker]]
[[datapath]]
id = 1
[[datapath.port]]
number = 1
name = "p1"
driver = "mem"
device = "null"
workers = [0]
TOML
target/release/shunt run -c "$folder/switch.toml" 2>"$folder/switch.log" &
switch=$!
for _ in {1..100}; do
    grep -q ready "$folder/switch.log" && break
    sleep 0.1
done
scripts/tests/terminal_top.py target/release/shunt "$folder/control.sock" "$switch"
