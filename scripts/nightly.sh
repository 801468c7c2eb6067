#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the checks that take too long for CI: nightly.sh [-l] [PATTERN...]
#
# Runs the steps of scripts/nightly/steps.sh whose names match a shell pattern such as `oracle-*` (default:
# all). `-l` only lists names and commands.
#
# A step that passed leaves a stamp with commit and command in target/nightly, and does not run again while
# both are unchanged. To repeat all steps, remove this folder. A failed step does not stop the next steps, but
# the exit code is 1. The table at the end has the verdict, time and log file of each step.
#
# NIGHTLY_STEPS names another list of steps, NIGHTLY_FOLDER another folder for stamps and logs.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly steps=${NIGHTLY_STEPS:-scripts/nightly/steps.sh}
readonly folder=${NIGHTLY_FOLDER:-target/nightly}

names=()
commands=()
# step NAME COMMAND: called by the list of steps. bash runs the command in the root of the repository.
step() {
    names+=("$1")
    commands+=("$2")
}

# Prints the commit and a checksum of uncommitted changes. Failures are returned explicitly, because `set -e`
# has no effect where this function is called.
state() {
    local commit changes
    commit=$(git rev-parse HEAD) || return
    changes=$(git status --porcelain --untracked-files=all) || return
    if [ -z "$changes" ]; then
        printf '%s\n' "$commit"
        return
    fi
    {
        printf '%s\n' "$changes" &&
            git diff HEAD &&
            git ls-files -z --others --exclude-standard | xargs -0 -r cat
    } | sha256sum | sed "s/^\(.\{16\}\).*/$commit with changes \1/"
}

# is_wanted NAME PATTERN...: returns whether a step is selected.
is_wanted() {
    local name=$1 pattern
    shift
    if [ $# -eq 0 ]; then return 0; fi
    for pattern in "$@"; do
        # shellcheck disable=SC2053  # the right side is a pattern
        if [[ $name == $pattern ]]; then return 0; fi
    done
    return 1
}

rows=()
failures=0
print_table() {
    local row
    [ "${#rows[@]}" -gt 0 ] || return 0
    printf '\n%-28s %-14s %8s  %s\n' step verdict seconds log
    for row in "${rows[@]}"; do
        # shellcheck disable=SC2086  # $row has four words
        printf '%-28s %-14s %8s  %s\n' $row
    done
}

child=''
interrupt() {
    trap '' INT TERM HUP
    if [ -n "$child" ]; then
        # Signal the step's process group, and wait until the step has cleaned up.
        kill -TERM -- "-$child" 2>/dev/null || true
        wait "$child" || true
        rows+=("$running interrupted - $log")
    fi
    print_table
    exit "$1"
}
trap 'interrupt 130' INT
trap 'interrupt 143' TERM
trap 'interrupt 129' HUP

# run_step NAME COMMAND: runs a step unless its stamp is valid.
run_step() {
    local name=$1 command=$2 stamp=$folder/$1.passed expected started seconds status=0
    running=$name
    log=$folder/$name.log
    expected=$(printf 'state: %s\ncommand: %s' "$tested" "$command")
    if [ -e "$stamp" ] && [ "$(head -n -1 "$stamp")" = "$expected" ]; then
        seconds=$(tail -n 1 "$stamp")
        rows+=("$name passed-before ${seconds#seconds: } $log")
        return
    fi
    rm -f "$stamp"
    printf '== %s: %s\n' "$name" "$command"
    started=$SECONDS
    setsid bash -c "set -euo pipefail; $command" </dev/null >"$log" 2>&1 &
    child=$!
    wait "$child" || status=$?
    child=''
    seconds=$((SECONDS - started))
    if [ "$status" -eq 0 ]; then
        printf '%s\nseconds: %s\n' "$expected" "$seconds" >"$stamp.new"
        mv "$stamp.new" "$stamp"
        rows+=("$name passed $seconds $log")
    else
        failures=$((failures + 1))
        rows+=("$name failed($status) $seconds $log")
        printf -- '-- the end of %s\n' "$log"
        tail -n 20 "$log" | cut -c 1-300
    fi
}

list_only=''
if [ "${1:-}" = -l ]; then
    list_only=yes
    shift
fi
# shellcheck source=scripts/nightly/steps.sh
source "$steps"
mkdir -p "$folder"
for pattern in "$@"; do
    matched=''
    for name in "${names[@]}"; do if is_wanted "$name" "$pattern"; then matched=yes; fi; done
    if [ -z "$matched" ]; then
        printf 'nightly: no step matches %s; the steps are: %s\n' "$pattern" "${names[*]}" >&2
        exit 2
    fi
done
tested=''
if [ -z "$list_only" ] && ! tested=$(state); then
    printf 'nightly: git cannot determine the tested commit\n' >&2
    exit 1
fi
for index in "${!names[@]}"; do
    is_wanted "${names[index]}" "$@" || continue
    if [ -n "$list_only" ]; then
        printf '%-28s %s\n' "${names[index]}" "${commands[index]}"
    else
        run_step "${names[index]}" "${commands[index]}"
    fi
done
[ -z "$list_only" ] || exit 0
print_table
if [ "$failures" -gt 0 ]; then
    printf 'nightly: %s failed\n' "$failures"
    exit 1
fi
printf 'nightly: every step passed\n'
