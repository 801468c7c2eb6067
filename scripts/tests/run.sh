#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs every test of a folder: run.sh [FOLDER [COMMAND...]] (default: this folder). Two tests run at a time, because
# most tests only wait most of the time. When a test has ended, prints its output and its time in seconds.
#
# COMMAND runs at the same time, on CPU time that the tests leave. No test may build in the folder in which it
# builds, because the test would wait for it. Needs root.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly folder=${1:-scripts/tests}
readonly command=("${@:2}")
# The second lane. Its tests spend their time waiting, have generous time limits, and use namespaces with names of
# their own. All other tests are in the first lane, which takes less time than the second.
readonly beside=(
    test_controller test_controller_faults test_controller_hybrid test_controller_modes test_controller_pair
    test_controller_units test_datapaths test_experiments test_faucet test_load_plan
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

# The tests use this program (lib.sh).
SHUNT_TEST_PROGRAM=$(scripts/tests/build.sh)
export SHUNT_TEST_PROGRAM

logs=$(mktemp -d)
readonly logs
others=''
spare=''
# end_group PID: ends a process group.
end_group() {
    [ -n "$1" ] || return 0
    kill -TERM -- "-$1" 2>/dev/null || true
    while kill -0 -- "-$1" 2>/dev/null; do sleep 0.1; done
}
clean_up() {
    # A second Ctrl-C must not interrupt the clean-up.
    trap '' INT TERM HUP
    end_group "$others"
    end_group "$spare"
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

# spare_time: runs the command with a priority below all normal processes.
spare_time() {
    local start=$SECONDS status=0
    chrt --idle 0 "${command[@]}" >"$logs/spare" 2>&1 || status=$?
    printf '== %s, %s s\n' "${command[*]}" $((SECONDS - start)) | cat - "$logs/spare"
    [ "$status" -eq 0 ] || printf '%s\n' "${command[*]}" >>"$logs/failed"
    return "$status"
}

# Job control gives other lanes process groups, which a signal can end, and SIGINT its default effect.
set -m
lane "${beside[@]}" &
others=$!
if [ "${#command[@]}" -gt 0 ]; then
    spare_time &
    spare=$!
fi
set +m
for name in "${first[@]}"; do
    run "$name"
    # Do not go on after a failure of the second lane or of the command.
    [ ! -e "$logs/failed" ] || exit 1
done
status=0
if [ -n "$others" ]; then
    wait "$others" || status=$?
    others=''
    [ "$status" -eq 0 ] || exit "$status"
fi
if [ -n "$spare" ]; then
    wait "$spare" || status=$?
    spare=''
    exit "$status"
fi
