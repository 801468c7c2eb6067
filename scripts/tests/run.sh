#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs every test of a folder: run.sh [FOLDER] (default: this folder). The tests run one after another, except
# that some run beside test_rtl.sh. Needs root.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly folder=${1:-scripts/tests}
# Simulations occupy one CPU for minutes. Meanwhile the other CPU runs tests that wait for most of their time,
# whose limits of time are wide, and whose namespaces have names of their own.
readonly long=test_rtl beside=(test_datapaths test_half_open test_pof)

for name in "$long" "${beside[@]}"; do
    [ -x "$folder/$name.sh" ] || {
        printf 'run: %s is missing; correct the list in this script\n' "$folder/$name.sh" >&2
        exit 1
    }
done

run() {
    printf '== %s\n' "$folder/$1.sh"
    "$folder/$1.sh"
}
runs_beside() { [[ " ${beside[*]} " == *" $1 "* ]]; }
run_beside() {
    local name
    for name in "${beside[@]}"; do run "$name" || return 1; done
}

log=$(mktemp)
others=''
clean_up() {
    # A second Ctrl-C must not interrupt the clean-up.
    trap '' INT TERM HUP
    if [ -n "$others" ]; then
        kill -TERM -- "-$others" 2>/dev/null || true
        while kill -0 -- "-$others" 2>/dev/null; do sleep 0.1; done
    fi
    rm -f "$log"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

for path in "$folder"/test_*.sh; do
    name=$(basename "$path" .sh)
    if runs_beside "$name"; then continue; fi
    if [ "$name" != "$long" ]; then
        run "$name"
        continue
    fi
    # Job control gives the other tests a process group, which a signal can end, and SIGINT its default effect.
    set -m
    run_beside >"$log" 2>&1 &
    others=$!
    set +m
    run "$name"
    status=0
    wait "$others" || status=$?
    others=''
    cat "$log"
    [ "$status" -eq 0 ] || exit "$status"
done
