#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The runner of `make nightly`. A failed step must fail the run, but not stop other steps. A step that passed
# must not be repeated until its command changes. An interrupted step must end, and be repeated. No step may
# run if git fails.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export NIGHTLY_STEPS=$folder/steps.sh NIGHTLY_FOLDER=$folder/nightly

fail() {
    printf 'test_nightly: %s\n' "$*" >&2
    [ ! -e "$folder/out" ] || cat "$folder/out" >&2
    exit 1
}

# expect STATUS COMMAND...: runs the command with output to $folder/out; its exit code must be STATUS.
expect() {
    local expected=$1 status=0
    shift
    "$@" >"$folder/out" 2>&1 || status=$?
    [ "$status" -eq "$expected" ] || fail "$* ended with $status instead of $expected"
}

# row STEP VERDICT: the table must have this row.
row() { grep -q "^$1  *$2 " "$folder/out" || fail "no row \`$1 $2\`"; }

cat >"$NIGHTLY_STEPS" <<END
step first "echo run >>'$folder/first'"
step second "true; false; echo wrong >'$folder/second'"
step third "echo \\\$BASHPID >'$folder/third'; [ -e '$folder/short' ] || exec sleep 60"
END
scripts/nightly.sh >"$folder/out" 2>&1 &
runner=$!
for _ in {1..100}; do
    [ ! -s "$folder/third" ] || break
    sleep 0.1
done
[ -s "$folder/third" ] || fail 'the step after a failed one was not started in 10 s'
kill -TERM "$runner"
status=0
wait "$runner" || status=$?
[ "$status" -eq 143 ] || fail "the interrupted run ended with $status"
row first passed
row second 'failed(1)'
row third interrupted
[ ! -e "$folder/second" ] || fail 'a failed command did not end its step'
! kill -0 "$(cat "$folder/third")" 2>/dev/null || fail 'the interrupted step still runs'

touch "$folder/short"
expect 1 scripts/nightly.sh
row first passed-before
row third passed
sed -i '/^step second/d; s/^step first "/&true; /' "$NIGHTLY_STEPS"
expect 0 scripts/nightly.sh 'f*'
row first passed
! grep -q '^third' "$folder/out" || fail 'a step ran that no pattern matches'
[ "$(wc -l <"$folder/first")" -eq 2 ] || fail 'the first step did not run twice'
expect 2 scripts/nightly.sh none

# If git fails, the tested commit is unknown, so no step may run.
mkdir "$folder/bin"
printf '#!/bin/sh\nexit 128\n' >"$folder/bin/git"
chmod +x "$folder/bin/git"
expect 1 env PATH="$folder/bin:$PATH" scripts/nightly.sh 'f*'
grep -q '^nightly: git cannot determine' "$folder/out" || fail 'the failure of git is not reported'
! grep -q '^first' "$folder/out" || fail 'a step is in the table although git failed'

# The patterns of `make nightly` match names of steps, not files.
make --no-print-directory --dry-run nightly NIGHTLY='l*' >"$folder/out"
grep -q '^set -f; scripts/nightly.sh l[*]$' "$folder/out" || fail 'the shell expanded the pattern of make'
printf 'ok: failed, interrupted and finished steps are handled, and no step runs if git fails\n'
