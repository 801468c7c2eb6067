#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test_broken_log.sh [SECONDS]: a switch whose stderr fails, under traffic and storms of log lines: closed, on a full disk, a
# pipe that nobody reads, a journal that is gone. It goes on, and counts the lines it loses. With SECONDS, each case takes so
# long, the figures are printed, and stalls of more than 50 ms are failures, preemption set aside. SHUNT names another program.
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

export PYTHONDONTWRITEBYTECODE=1
readonly seconds=${1:-2}
report=()
[ $# -eq 0 ] || report=(--report)

make_hosts 3
# Nothing but the test's own packets passes.
for n in 1 2; do ip -n "$prefix-h$n" neighbor add "10.0.0.$((3 - n))" lladdr "$(mac $((3 - n)))" dev eth0; done
if [ -z "${SHUNT:-}" ]; then
    cargo build --quiet --package shunt
    SHUNT=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/debug/shunt
fi
cat - "$folder/ports" >"$folder/switch.toml" <<CONFIG
control = "$folder/control.sock"
[[worker]]
[[datapath]]
id = 1
[datapath.openflow]
listen = "$openflow_listen"
CONFIG
# What a case mounts goes with the namespace, whatever happens.
unshare --mount --propagation private scripts/tests/broken_log/run.py \
    "$prefix" "$SHUNT" "$folder" "$seconds" "${report[@]}" &
wait $! || fail 'see above'
