#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A switch whose stderr fails under traffic and storms of log lines: test_broken_log.sh [SECONDS]
#
# Stderr is a closed pipe, a full disk, a pipe without a reader, or a journal that has ended. The switch must
# continue and count the lost lines. With SECONDS, each case takes this long, figures are printed, and a stall
# of more than 50 ms without preemption is a failure. SHUNT names another program.
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

export PYTHONDONTWRITEBYTECODE=1
readonly seconds=${1:-2}
report=()
[ $# -eq 0 ] || report=(--report)

make_hosts 3
# Only packets of the test may pass.
for n in 1 2; do ip -n "$prefix-h$n" neighbor add "10.0.0.$((3 - n))" lladdr "$(mac $((3 - n)))" dev eth0; done
if [ -z "${SHUNT:-}" ]; then
    SHUNT=$(test_build)
fi
cat - "$folder/ports" >"$folder/switch.toml" <<CONFIG
control = "$folder/control.sock"
[[worker]]
[[datapath]]
id = 1
[datapath.openflow]
listen = "$openflow_listen"
CONFIG
# Mounts of a case vanish together with the namespace.
unshare --mount --propagation private scripts/tests/broken_log/run.py \
    "$prefix" "$SHUNT" "$folder" "$seconds" "${report[@]}" &
wait $! || fail 'see above'
