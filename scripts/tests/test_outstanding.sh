#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A flood to a slow device. The switch must give the device no more normal frames than `outstanding_bytes`
# allows, and drop excess frames under a named reason. Low-latency packets must neither be lost nor wait
# behind a long kernel queue.
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

# Bytes that a frame of the flood takes in the kernel, and number of frames that may be outstanding.
readonly frame_bytes=2304 frames=8

make_hosts 3
sed -i "/name = \"p3\"/a outstanding_bytes = $((frames * frame_bytes))" "$folder/ports"
# The device sends 10 Mbit/s, and the flood offers five times as much.
ip netns exec "$prefix-sw" tc qdisc add dev p3 root handle 1: htb default 1
ip netns exec "$prefix-sw" tc class add dev p3 parent 1: classid 1:1 htb rate 10mbit
cat >"$folder/rules.flows" <<FLOWS
priority=20,icmp,low_latency,actions=NORMAL
priority=10,arp,actions=NORMAL
priority=5,udp,in_port=1,actions=output:3
priority=0,actions=NORMAL
FLOWS
start_switch secure
"$shunt" flows load -c "$folder/switch.toml" "$folder/rules.flows"
pings 2 3 || fail 'h2 does not reach h3'

background iperf-server h3 iperf3 --server --one-off
wait_until 'iperf3 listens' in_room h3 bash -c 'ss -Hltn "sport = :5201" | grep .'
background flood h1 iperf3 --client 10.0.0.3 --udp --bitrate 50M --length 1200 --time 30
wait_until 'the slow port drops excess frames' counters_have transmit_full
in_room h2 ping -q -c 100 -i 0.02 -W 5 10.0.0.3 >"$folder/ping.log" &
pinging=$!
longest=0
while kill -0 "$pinging" 2>/dev/null; do
    waiting=$(in_room sw tc -s qdisc show dev p3 | sed -n 's/.*backlog [0-9]*[KM]*b \([0-9]*\)p.*/\1/p')
    if [ "$waiting" -gt "$longest" ]; then longest=$waiting; fi
done
wait "$pinging" || fail "pings are lost: $(cat "$folder/ping.log")"
grep -q ' 0% packet loss' "$folder/ping.log" || fail "pings are lost: $(cat "$folder/ping.log")"
# A ping and a frame in transmission may be there in addition to the flood's frames.
if [ "$longest" -eq 0 ] || [ "$longest" -gt "$((frames + 4))" ]; then
    fail "$longest packets waited in the kernel, but at most $frames may be outstanding"
fi
ok "beside a flood no ping is lost, and at most $longest packets wait in the kernel"
sed -n 's/^rtt/rtt of pings beside the flood:/p' "$folder/ping.log"
"$shunt" show counters -c "$folder/switch.toml" >"$folder/counters.log"
grep -q "^port 3, worker 0 *outstanding_bytes *[0-9]* *$((frames * frame_bytes))$" "$folder/counters.log" ||
    fail "the limit of port 3 is not shown: $(cat "$folder/counters.log")"
ok 'the limit is shown with the outstanding bytes'
kill "$switch"
wait "$switch" || fail 'the switch did not exit with 0'
logged switch 'frames for devices (shutdown)' || fail 'the log does not report the frames that waited at shutdown'
ok 'frames that waited at shutdown are logged'
