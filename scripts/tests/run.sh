#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs every test of a folder: run.sh [FOLDER] (default: this folder). Two tests run at a time, because most tests
# only wait most of the time. When a test has ended, prints its output and its time in seconds. Needs root.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly folder=${1:-scripts/tests}
# The second lane. Its tests spend their time waiting, have generous time limits, and use namespaces with names of
# their own. All other tests are in the first lane, which takes less time than the second.
readonly beside=(
    test_controller test_controller_faults test_controller_hybrid test_controller_modes test_controller_pair
    test_controller_units test_datapaths test_experiments test_faucet test_half_open test_load_plan
    test_load_row test_load_tags test_os_ken_learning test_os_ken_rest test_pof test_run_policy test_run_tags
    test_testcontroller
)

for name in "${beside[@]}"; do
    [ -x "$folder/$name.sh" ] || {
        printf 'run: %s is missing; correct the list in this script\n' "$folder/$name.sh" >&2
        exit 1
    }
done
first=()
for path in "$folder"/test_*.sh; do
    name=$(basename "$path" .sh)
    [[ " ${beside[*]} " == *" $name "* ]] || first+=("$name")
done

logs=$(mktemp -d)
readonly logs
others=''
clean_up() {
    # A second Ctrl-C must not interrupt the clean-up.
    trap '' INT TERM HUP
    if [ -n "$others" ]; then
        kill -TERM -- "-$others" 2>/dev/null || true
        while kill -0 -- "-$others" 2>/dev/null; do sleep 0.1; done
    fi
    # The other lane may have printed more after the failure.
    if [ -s "$logs/failed" ]; then printf 'run: failed: %s\n' "$(paste -sd ' ' "$logs/failed")" >&2; fi
    rm -rf "$logs"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# run NAME: runs a test, and prints its output in one piece, so that the lanes do not mix.
run() {
    local start=$SECONDS status=0
    "$folder/$1.sh" >"$logs/$1" 2>&1 || status=$?
    {
        printf '== %s, %s s\n' "$folder/$1.sh" $((SECONDS - start))
        cat "$logs/$1"
    } >"$logs/$1.all"
    cat "$logs/$1.all"
    [ "$status" -eq 0 ] || printf '%s\n' "$1" >>"$logs/failed"
    return "$status"
}
lane() {
    local name
    for name in "$@"; do run "$name" || return; done
}

# Job control gives the second lane a process group, which a signal can end, and SIGINT its default effect.
set -m
lane "${beside[@]}" &
others=$!
set +m
for name in "${first[@]}"; do
    run "$name"
    # Do not go on after a failure of the second lane.
    if [ -n "$others" ] && ! kill -0 "$others" 2>/dev/null; then
        wait "$others"
        others=''
    fi
done
if [ -n "$others" ]; then
    status=0
    wait "$others" || status=$?
    others=''
    [ "$status" -eq 0 ] || exit "$status"
fi
