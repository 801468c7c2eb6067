#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A build without DPDK must not need any DPDK library. It must explain in one line how to get DPDK ports.
set -euo pipefail
cd "$(dirname "$0")/../.."

program=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release/shunt
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    printf 'test_without_dpdk: %s\n' "$*" >&2
    exit 1
}

if ldd "$program" | grep librte_ >/dev/null; then fail "$program is a build with DPDK"; fi
cat >"$folder/switch.toml" <<END
control = "$folder/control.sock"
[dpdk]
eal = ["--no-huge"]
[[worker]]
[[datapath]]
id = 1
[[datapath.port]]
number = 1
name = "p1"
driver = "dpdk"
device = "net_null0"
workers = [0]
END
for command in check run; do
    status=0
    timeout 20 "$program" "$command" -c "$folder/switch.toml" >"$folder/out" 2>"$folder/err" || status=$?
    if [ "$status" -ne 1 ]; then fail "$command ended with $status: $(cat "$folder/out" "$folder/err")"; fi
    if [ "$(wc -l <"$folder/err")" -ne 1 ]; then fail "$command prints more than one line: $(cat "$folder/err")"; fi
    grep -q 'port p1: this build has no driver dpdk; build it with .make dpdk.' "$folder/err" ||
        fail "$command says: $(cat "$folder/err")"
done
printf 'ok: %s\n' "$(cat "$folder/err")"
