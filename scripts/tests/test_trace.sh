#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `shunt trace` between two namespaced hosts. Pings must be recorded and agree with the rules, through the
# tables and on the fast-forwarding path. One command must report why other packets are dropped. Nothing may
# be recorded after the tracer has ended.
#
# A switch cannot be made to fail on request. crates/worker/tests/traces.rs therefore checks that a fault of a
# worker is found, and crates/shunt/tests/trace.rs that the exit code is then 1.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

make_hosts 2
start_switch secure
cat >"$folder/t.flows" <<FLOWS
priority=9,icmp,in_port=p1,nw_dst=10.0.0.2,low_latency actions=output:p2
priority=5,in_port=p2 actions=output:p1
priority=5,arp,in_port=p1 actions=output:p2
priority=1,udp actions=drop
FLOWS
ask() { in_room sw "$shunt" "$@" -c "$folder/switch.toml"; }
ask flows load "$folder/t.flows" >/dev/null
# has TEXT: fails unless the trace has printed this text.
has() { grep -F -- "$1" "$folder/trace.log" >/dev/null || fail "no \"$1\" in: $(cat "$folder/trace.log")"; }
# live ARGUMENTS...: traces in the background. Traffic must continue until the trace has printed its results.
live() {
    : >"$folder/trace.log"
    background trace sw "$shunt" trace --live -c "$folder/switch.toml" "$@"
    trace=$started
}
ping_once() { in_room h1 ping -q -c 1 -W 5 10.0.0.2 >"$folder/ping.log"; }
# traffic_until COMMAND...: sends the packets of $traffic until the command succeeds.
traffic_until() {
    local end=$((SECONDS + 60))
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || fail "timed out after 60 s, waiting for: $*"
        "$traffic" || fail "$traffic failed"
        sleep 0.1
    done
}
has_ended() { ! kill -0 "$trace" 2>/dev/null; }

traffic=ping_once
live icmp --count 6 --timeout 60
traffic_until has_ended
wait "$trace" || fail "the trace ended with $?"
has 'result: forwarded: port 2'
has 'result: forwarded: port 1'
has 'by a path record'
has '6 packets recorded, 6 compared with the rules, 0 faults'
ok 'real pings: worker and rules agree, also on packets with a path record'

send_udp() { in_room h1 bash -c 'echo >/dev/udp/10.0.0.2/9'; }
traffic=send_udp
live in_port=1,udp --count 1 --timeout 60
traffic_until has_ended
wait "$trace" || fail "the trace ended with $?"
has 'result: dropped (no_output)'
has 'the rules agree: the entry that it hits in table 0 drops it: actions=drop'
ask trace in_port=p1,udp,nw_dst=10.0.0.2,tp_dst=9 >"$folder/trace.log"
has 'result: dropped (no_output): the entry that it hits in table 0 drops it: actions=drop'
ok 'one command explains why a packet was dropped, for a real and for a synthetic packet'

traffic=ping_once
live icmp --count 100000 --timeout 600
traffic_until logged trace 'the rules agree'
kill "$trace"
wait "$trace" 2>/dev/null && fail 'the trace has not ended'
wait_until 'another client can trace' ask trace --live in_port=99 --count 1 --timeout 1
ask show counters --json | python3 -c '
import json, sys
traced = json.load(sys.stdin)["traced"]
assert traced["compared"] == traced["recorded"] >= 8 and traced["faults"] == 0, traced'
ok 'a tracer that is killed leaves nothing behind'
