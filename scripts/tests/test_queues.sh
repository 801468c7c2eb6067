#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Egress queues between namespaces. A flood into a queue with a maximum rate must arrive at that rate, and
# pings in another queue of the port must not be lost. ovs-ofctl must read the settings and counters of
# queues.
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

readonly rate_kbps=4000

make_hosts 3
cat >>"$folder/ports" <<QUEUES
[[datapath.port.queue]]
id = 1
max_rate_kbps = $rate_kbps
[[datapath.port.queue]]
id = 7
min_rate_kbps = 1000000
max_rate_kbps = 2500000
priority = 7
limit_frames = 16
QUEUES
start_switch secure
ofctl add-flow "tcp:$openflow_listen" 'priority=10,udp,in_port=1,actions=set_queue:1,output:3'
ofctl add-flow "tcp:$openflow_listen" 'priority=5,icmp,in_port=2,actions=set_queue:7,output:3'
ofctl add-flow "tcp:$openflow_listen" 'priority=0,actions=NORMAL'
pings 2 3 || fail 'h2 does not reach h3'

# A veth reports a speed of 10 Gbit/s. Rates are reported in thousandths of this speed.
ofctl queue-get-config "tcp:$openflow_listen" 3 >"$folder/config.log"
for part in 'queue 0' 'queue 1: max_rate:0.1%' 'queue 7: min_rate:10.0% max_rate:25.0%'; do
    tr -s ' \n' ' ' <"$folder/config.log" | grep -- "$part" >/dev/null ||
        fail "queue-get-config does not report $part: $(cat "$folder/config.log")"
done
ofctl queue-get-config "tcp:$openflow_listen" >"$folder/all.log"
grep -q 'queue 7' "$folder/all.log" || fail "queue-get-config of all ports: $(cat "$folder/all.log")"
# After an error of the switch, ovs-ofctl prints the error but may exit with 0.
refused() {
    local error=$1
    shift
    ofctl "$@" >"$folder/refused.log" 2>&1 || true
    grep -q "$error" "$folder/refused.log" || fail "$*: $(cat "$folder/refused.log")"
}
refused OFPQOFC_BAD_PORT queue-stats "tcp:$openflow_listen" 9
refused OFPQOFC_BAD_QUEUE queue-stats "tcp:$openflow_listen" 3 5
refused OFPQOFC_BAD_PORT queue-get-config "tcp:$openflow_listen" 9
ok 'ovs-ofctl reads the configuration of queues, and gets errors for unknown ones'

# sent QUEUE: prints the bytes that the queue has sent.
sent() { ofctl queue-stats "tcp:$openflow_listen" 3 "$1" | sed -n 's/.*bytes=\([0-9]*\).*/\1/p'; }

background iperf-server h3 iperf3 --server --one-off
wait_until 'iperf3 listens' in_room h3 bash -c 'ss -Hltn "sport = :5201" | grep .'
background flood h1 iperf3 --client 10.0.0.3 --udp --bitrate 40M --length 1200 --time 30
wait_until 'the flood fills its queue' counters_have queue_full
before=$(sent 1)
begin_ns=$(date +%s%N)
in_room h2 ping -q -c 20 -i 0.1 -W 5 10.0.0.3 >"$folder/ping.log" || fail "pings: $(cat "$folder/ping.log")"
after=$(sent 1)
took_ms=$((($(date +%s%N) - begin_ns) / 1000000))
kbps=$(((after - before) * 8 / took_ms))
if [ "$kbps" -lt $((rate_kbps * 7 / 10)) ] || [ "$kbps" -gt $((rate_kbps * 13 / 10)) ]; then
    fail "a queue of $rate_kbps kbit/s sent $kbps"
fi
grep -q ' 0% packet loss' "$folder/ping.log" || fail "pings of another queue are lost: $(cat "$folder/ping.log")"
ok "a flood of 40 Mbit/s leaves at about $rate_kbps kbit/s, and pings in another queue are not lost"

"$shunt" show ports -c "$folder/switch.toml" >"$folder/ports.log"
grep -q "^ *3 *7 *1000000 *2500000 *7 *0 *16 " "$folder/ports.log" || fail "shunt show ports: $(cat "$folder/ports.log")"
grep -q 'queue_full=' "$folder/ports.log" || fail "the port's losses: $(cat "$folder/ports.log")"
ofctl queue-stats "tcp:$openflow_listen" 3 1 >"$folder/stats.log"
grep -q 'errors=[1-9]' "$folder/stats.log" || fail "drops of the queue: $(cat "$folder/stats.log")"
"$shunt" show counters -c "$folder/switch.toml" >"$folder/counters.log"
grep -q '^port 3, queue 1 *queue_frames *[0-9]* *1024$' "$folder/counters.log" ||
    fail "the queue's limit is not shown: $(cat "$folder/counters.log")"
ok 'the queues are shown with their sent and dropped packets'

kill "$started"
wait_until 'the queue is empty' counters_have '^port 3, queue 1 *queue_frames *0 '
ofctl queue-stats "tcp:$openflow_listen" | grep 'port 3 queue 1' >/dev/null || fail 'queue-stats of all ports'
ok 'all waiting frames have left'
