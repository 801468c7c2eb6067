# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# The low-latency part of demo.sh, which sources this file.
#
# Low-latency industrial frames go from h1 to h2 at a steady rate: alone, and during a UDP flood through the
# same ports, with the lanes off and on. Latency is printed every second. Only loss and counters are checked.

readonly industrial_mac=02:53:48:4e:00:01
readonly frames_per_s=100

# Floods the switch: each datagram leaves h1 as 44 packets in one system call. $flood and $server are process
# IDs.
start_flood() {
    iperf_server 2
    (exec ip netns exec "$prefix-h1" iperf3 -c "$(address 2)" -u -b 0 -l 65000 -t 60) >"$tmp/flood.out" 2>&1 &
    flood=$!
    sleep 1
    kill -0 "$flood" 2>/dev/null || {
        cat "$tmp/flood.out" >&2
        fail 'there is no flood: iperf3 ended'
    }
}
stop_flood() {
    kill "$flood" "$server" 2>/dev/null || true
    wait "$flood" "$server" || true
}

# replay SECONDS LEAST_PERCENT: replays frames, and adds the numbers of sent and received frames to $sent and
# $arrived.
replay() {
    local more_sent more_arrived
    python3 scripts/demo_replay.py --from "$prefix-h1" --to "$prefix-h2" --rate "$frames_per_s" --seconds "$1" \
        --least-percent "$2" --result "$tmp/replay.out" "${captures[@]}" || fail 'too few industrial frames arrived'
    read -r more_sent more_arrived _ <"$tmp/replay.out"
    sent=$((sent + more_sent))
    arrived=$((arrived + more_arrived))
}

# expect_counted: the industrial flow must have counted at least the frames that arrived, and at most those
# that were sent.
expect_counted() {
    control show flows >"$tmp/flows.out"
    python3 scripts/demo_figures.py flow "dl_src=$industrial_mac" "$arrived" "$sent" <"$tmp/flows.out"
}

captures=()
for capture in modbus s7comm ptpv2 profinet-io-le; do
    [ -e "../shared/data/pcap/$capture.pcap" ] && captures+=("../shared/data/pcap/$capture.pcap")
done
[ "${#captures[@]}" -gt 0 ] || captures=(scripts/data/ptp_ethernet.pcap)

# start_lanes true|false: starts a switch with lanes on or off. It has the industrial flow and learns all
# other addresses.
start_lanes() {
    start_switch "[datapath.lanes]
enabled = $1"
    control flows load "$tmp/lanes.flows"
    sent=0
    arrived=0
}

cat >"$tmp/lanes.flows" <<FLOWS
priority=100,in_port=1,dl_src=$industrial_mac,low_latency,actions=output:2
priority=0,actions=NORMAL
FLOWS

begin "Industrial frames, marked low-latency: $frames_per_s a second from h1 to h2, one-way latency"
sed 's/^/  /' "$tmp/lanes.flows"
say "  captures: ${captures[*]##*/}"
start_lanes false
replay 3 100

begin 'The same beside a UDP flood from h1 to h2, in one lane'
start_flood
replay 5 0
stop_flood
expect_counted
control show counters
expect_counters_add_up
stop_switch

begin 'The same beside the flood, in a lane of their own'
start_lanes true
start_flood
replay 5 50
stop_flood
expect_counted
control show counters
expect_counters_add_up
stop_switch
