#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Mininet with Shunt as its switch. All hosts must reach each other and iperf must run: with Mininet's own
# controller, with a remote controller, and without a controller. Each switch must have its datapath ID, and
# an interrupted run must leave nothing behind.
set -euo pipefail
# Job control gives each run its own process group. If this test was started in the background, SIGINT is ignored,
# so `env` restores its default effect.
set -m
cd "$(dirname "$0")/../.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM HUP
fail() {
    printf 'test_mininet: %s\n' "$*" >&2
    cat "$folder/out" >&2
    exit 1
}

cargo build --quiet --release --package shunt --package shunt-bench --bin shunt
SHUNT=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release/shunt
export SHUNT

# Every process of a run inherits this variable, which identifies it.
readonly mark=SHUNT_TEST_MININET=$$
left() { grep -l -a -s "$mark" /proc/[0-9]*/environ; }
expect_nobody() {
    # A killed process may take a moment to end.
    for _ in $(seq 20); do
        left >/dev/null || return 0
        sleep 0.1
    done
    fail "$1 left these processes: $(left)"
}
# mininet TEXT OPTION...: runs Mininet; a line of its output must match TEXT.
mininet() {
    local text=$1
    shift
    timeout --foreground 60 env "$mark" lab/mn.sh "$@" >"$folder/out" 2>&1 || fail "exit code $?: mn $*"
    grep -q -x -- "$text" "$folder/out" || fail "no line matches '$text': mn $*"
    expect_nobody "mn $*"
    printf 'ok: mn %s: %s\n' "$*" "$(grep -x -- "$text" "$folder/out")"
}
all_of() { printf '[*][*][*] Results: 0%% dropped (%s/%s received)' "$1" "$1"; }
readonly speeds="[*][*][*] Results: \['[0-9.]* [MG]bits/sec', '[0-9.]* [MG]bits/sec'\]"

# Mininet runs the commands of --post in the network after the test.
mininet "$(all_of 12)" --topo tree,2 --test pingall --post /dev/stdin <<'POST'
sh for port in 6654 6655 6656; do ovs-ofctl -O OpenFlow13 show tcp:127.0.0.1:$port; done
dpctl show flows
POST
for number in 1 2 3; do
    grep -q "dpid:000000000000000$number" "$folder/out" || fail "no switch has datapath id $number"
done
grep -q 'dl_dst=.*actions=output' "$folder/out" || fail 'the controller has added no flow'
printf 'ok: three switches have their own datapath IDs, and flows of the controller\n'

mininet "$(all_of 6)" --topo single,3 --test pingall
mininet "$(all_of 12)" --topo tree,2 --controller none --test pingall
mininet "$(all_of 6)" --topo single,3 --controller remote,port=6653 --test pingall --pre /dev/stdin <<'PRE'
sh OVS_RUNDIR=/tmp ovs-testcontroller -O OpenFlow13 --detach ptcp:6653:127.0.0.1
PRE
mininet "$speeds" --topo tree,2 --test iperf

# Four datapaths of one process. `--post` runs before Mininet stops the switches.
mininet "$(all_of 12)" --switch shunt,shared=1,stateless=1 --topo linear,4 --controller none --test pingall --post /dev/stdin <<'POST'
sh echo processes: $(ps -C shunt -o pid= | wc -l)
sh echo long links: $(ip link show | grep -c ' mtu 1600 ')
s4 ovs-ofctl -O OpenFlow13 show tcp:127.0.0.1:6657
POST
for line in 'processes: 1' 'long links: 6' '.*dpid:0000000000000004.*'; do
    grep -q -x -- "$line" "$folder/out" || fail "no line matches '$line'"
done
printf 'ok: four switches share a process, and the links between them have a larger MTU\n'
# Mininet finds files of the checkout, but no files in /tmp.
networks=$(mktemp -d -p target)
trap 'rm -rf "$folder" "$networks"' EXIT
cat >"$networks/star.json" <<'NETWORK'
{"name": "star", "nodes": ["middle", "a", "b"], "links": [["a", "middle"], {"a": "middle", "a_port": 7, "b": "b"}]}
NETWORK
mininet "$(all_of 30)" --topo "graph,$networks/star.json,2" --controller none --test pingall --post /dev/stdin <<'POST'
links
POST
grep -q 's1-eth7<->s3-eth1' "$folder/out" || fail 'a link lacks the port of the file'
if timeout 60 lab/mn.sh --topo "graph,$networks/none.json" --test none >"$folder/out" 2>&1; then fail 'a missing file is no error'; fi
grep -q 'none.json cannot be read' "$folder/out" || fail 'the message does not name the missing file'
mininet '[*][*][*] Done' --topo fattree,4,1 --switch shunt,shared=1 --controller remote --test none --post /dev/stdin <<'POST'
links
POST
# Without a controller that is there, the switches forward nothing, so that packets do not circle.
[ "$(grep -c '<->' "$folder/out")" -eq 52 ] || fail 'a fat tree of k = 4 with 4 outside hosts has 52 links'

# Mininet gets a private /tmp, but must find a checkout below /tmp whose path has a space.
checkout="$(mktemp -d -p /tmp "shunt mininet XXXXXX")"
trap 'rm -rf "$folder" "$networks" "$checkout"' EXIT
mkdir -p "$checkout/target/release" "$checkout/target/tools"
cp -r lab "$checkout/"
cp "$SHUNT" "$checkout/target/release/"
if [ -d target/tools/bin ]; then cp -rL target/tools/bin "$checkout/target/tools/"; fi
program=$SHUNT
unset SHUNT
(cd "$checkout" && mininet "$(all_of 2)" --topo single,2 --test pingall)
# In this run, only the program is below /tmp.
SHUNT=$checkout/target/release/shunt mininet "$(all_of 2)" --topo single,2 --controller none --test pingall --post /dev/stdin <<'POST'
dpctl show flows
POST
grep -q 'priority=0.*actions=NORMAL' "$folder/out" || fail 'dpctl does not reach the switch'
export SHUNT=$program

# interrupt SIGNAL EXIT_CODE: interrupts a run while iperf is running.
interrupt() {
    local signal=$1 expected=$2 pid status=0
    : >"$folder/out"
    env --default-signal=INT "$mark" lab/mn.sh --topo tree,2 --test iperf >"$folder/out" 2>&1 &
    pid=$!
    until grep -q 'Iperf: testing' "$folder/out"; do
        kill -0 "$pid" 2>/dev/null || fail 'mn ended before iperf'
        sleep 0.05
    done
    kill -"$signal" -- "-$pid"
    wait "$pid" || status=$?
    [ "$status" -eq "$expected" ] || fail "after SIG$signal the exit code was $status, not $expected"
    expect_nobody "mn after SIG$signal"
    printf 'ok: SIG%s, nothing left behind\n' "$signal"
}
interrupt INT 130
interrupt TERM 143
