#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The demo must pass twice at the same time. It must leave no namespace, process or temporary file, even when
# interrupted in any of its phases.
set -euo pipefail
# Job control gives each demo its own process group. If this test was started in the background or by nohup,
# SIGINT or SIGHUP is ignored, so `env` restores their default effects.
set -m

folder=$(mktemp -d)
mkdir "$folder/tmp"
trap 'rm -rf "$folder"' EXIT
export TMPDIR=$folder/tmp

fail() {
    printf 'test_demo: %s\n' "$*" >&2
    exit 1
}

# expect_clean PID: fails if anything of the demo with this process ID is left.
expect_clean() {
    if ip netns list | grep "^shunt-demo-$1-"; then fail "demo $1 left these namespaces"; fi
    if grep -l -a "shunt-demo-$1-" /proc/[0-9]*/cmdline 2>/dev/null; then fail "demo $1 left these processes"; fi
    # Ignore a zombie: a process that has ended but was not yet collected by init.
    if pgrep -g "$1" -r D,R,S,T -a; then fail "demo $1 left these processes"; fi
}
expect_no_files() {
    [ -z "$(ls -A "$TMPDIR")" ] || fail "files are left: $(ls -A "$TMPDIR")"
}

scripts/demo.sh >"$folder/first.out" 2>&1 &
first=$!
scripts/demo.sh >"$folder/second.out" 2>&1 &
second=$!
for run in "first $first" "second $second"; do
    read -r name pid <<<"$run"
    wait "$pid" || {
        cat "$folder/$name.out" >&2
        fail "the $name of two demos at a time failed"
    }
done
expect_clean "$first"
expect_clean "$second"
expect_no_files
printf 'ok: two demos at a time, nothing left behind\n'

# interrupt SIGNAL EXIT_CODE TEXT: sends SIGNAL to the whole group when the demo has printed TEXT.
interrupt() {
    local signal=$1 expected=$2 text=$3 pid status=0
    local TMPDIR=$folder/$BASHPID
    local out=$TMPDIR.out
    # Bash ends job control in a subshell.
    set -m
    mkdir "$TMPDIR"
    : >"$out"
    env --default-signal=INT,HUP,TERM scripts/demo.sh >"$out" 2>&1 &
    pid=$!
    until grep -q -- "$text" "$out"; do
        kill -0 "$pid" 2>/dev/null || {
            cat "$out" >&2
            fail "the demo ended before it printed: $text"
        }
        sleep 0.02
    done
    # Bash discards a SIGINT if the command for which it waits ends normally at the same moment. So send the
    # signal again if the demo still runs after three seconds. The demo ignores signals while it cleans up.
    while grep '^State:.[^Z]' "/proc/$pid/status" >/dev/null 2>&1; do
        kill -"$signal" -- "-$pid"
        for ((n = 0; n < 30; n++)); do
            grep '^State:.[^Z]' "/proc/$pid/status" >/dev/null 2>&1 || break
            sleep 0.1
        done
    done
    wait "$pid" || status=$?
    if [ "$status" -ne "$expected" ]; then
        cat "$out" >&2
        fail "after SIG$signal at '$text' the demo's exit code was $status, not $expected"
    fi
    expect_clean "$pid"
    expect_no_files
    printf 'ok: SIG%s at "%s", nothing left behind\n' "$signal" "$text"
}
# side_by_side NAME...: interrupts several demos at the same time; each NAME is "SIGNAL EXIT_CODE TEXT".
side_by_side() {
    local each signal expected text pids=() pid failed=0
    for each in "$@"; do
        read -r signal expected text <<<"$each"
        interrupt "$signal" "$expected" "$text" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    [ "$failed" -eq 0 ] || exit 1
}
side_by_side 'INT 130 in a network namespace' 'INT 130 One switch between them' 'TERM 143 h1 -> h2  ok'
side_by_side 'INT 130 Bulk traffic' 'HUP 129 TCP h1' 'INT 130 A protocol that nobody'
side_by_side 'TERM 143 a trace of such a packet' 'INT 130 p50 us' 'TERM 143 in a lane of their own'
