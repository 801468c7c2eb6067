#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tools that measure latency during a flood. The demo's replay of captures must recognize its frames, even
# tagged, and report lost frames. The lab's pings, during a flood and over a row of switches, must write their
# figures and leave nothing behind when interrupted.
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

python3 scripts/tests/replay_matching.py 2>"$folder/matching.log" || fail 'the tests of matching frames failed'
ok 'received frames are matched by bytes and order'

# replay TO [OPTION...] CAPTURE...: replays from h1. The file `result` gets the numbers of sent, received and
# lost frames.
replay() {
    local to=$1
    shift
    python3 scripts/demo_replay.py --from "$prefix-h1" --to "$prefix-$to" --seconds 1 --result "$folder/result" \
        "$@" >"$folder/replay.log" 2>&1
}
for room in h1 h2 h3; do make_room "$room"; done
ip link add eth0 netns "$prefix-h1" type veth peer name eth0 netns "$prefix-h2"
# No frame arrives over this cable.
ip link add eth0 netns "$prefix-h3" type veth peer name other netns "$prefix-h3"
for room in h1 h2 h3; do ip -n "$prefix-$room" link set eth0 up; done
replay h2 scripts/data/ptp_ethernet.pcap crates/wire/tests/data/802.1ad_QinQ.pcap || fail 'the replay failed'
[ "$(cat "$folder/result")" = '100 100 0' ] || fail "sent, arrived, lost: $(cat "$folder/result")"
ok 'all frames of two interleaved captures arrive, tags included'
if replay h3 --least-percent 1 scripts/data/ptp_ethernet.pcap; then fail 'the replay succeeds although nothing arrives'; fi
[ "$(cat "$folder/result")" = '100 0 100' ] || fail "sent, arrived, lost: $(cat "$folder/result")"
ok 'lost frames are reported'
if replay h2 crates/wire/tests/data/dsa.pcap; then fail 'a capture that is not Ethernet is replayed'; fi
grep -q 'frames are not Ethernet' "$folder/replay.log" || fail 'the reason for the refusal is missing'
ok 'a capture that is not Ethernet is refused'

SHUNT=$(test_build)
export SHUNT
# Job control gives each run its own process group. If this test was started in the background, SIGINT is ignored,
# so `env` restores its default effect.
set -m
# expect_nothing PID: fails if a process of the lab's run with this process ID is left.
expect_nothing() {
    if ip netns list | grep "^shunt-lab-$1-"; then fail "the lab left these namespaces"; fi
    if pgrep -g "$1" -r D,R,S,T -a; then fail "the lab left these processes"; fi
}
lab() {
    env --default-signal=INT lab/lanes.py --rounds 1 --pings 20 --report "$folder/figures" "$@" >"$folder/lab.log" 2>&1 &
    started=$!
}
# On a busy machine, a switch may lose many pings beside the flood.
lab --flood 65000 --pings 80
wait "$started" || fail 'the lab failed'
for name in 'lanes off' 'Open vSwitch' 'Linux bridge'; do
    grep -q "p99.*lanes on against $name" "$folder/figures" || fail "there is no figure against $name"
done
expect_nothing "$started"
ok 'pings beside a flood through four switches'

lab/rtt.py --rounds 1 --pings 20 --hops 2 --report "$folder/rtt" >"$folder/lab.log" 2>&1 || fail 'the lab failed'
for name in 'Open vSwitch, afxdp' 'Linux bridge'; do
    grep -q "RTT over 2 switches, median.*af_xdp against $name" "$folder/rtt" || fail "there is no round trip against $name"
done
ok 'round trips over switches in a row'

# interrupt SIGNAL EXIT_CODE: interrupts a run while a flood is sent.
interrupt() {
    local status=0
    lab --flood 65000 --pings 1000
    wait_until 'the flood has begun' pgrep -g "$started" -x iperf3
    kill -"$1" -- "-$started"
    wait "$started" || status=$?
    [ "$status" -eq "$2" ] || fail "after SIG$1 the lab's exit code was $status, not $2"
    expect_nothing "$started"
    ok "SIG$1, nothing left behind"
}
interrupt INT 130
interrupt TERM 143
