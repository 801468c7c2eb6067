#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: test_upgrade_load.sh [UPGRADES]
#
# Upgrades under load. For each upgrade, prints the number of lost packets and, as RFC 7654 does, the longest
# gap between two packets at the receiver. The test fails if a packet was lost during an upgrade, or if any
# packet was repeated or reordered.
#
# The report shows the CPU time that the host of a virtual machine took (steal time). Workers stop for this time.
# A machine that is too slow for the rate loses packets without an upgrade, too. So the first run has no
# upgrade, and the test does not fail for packets that were lost before or after an upgrade.
#
# UPGRADES is the number of upgrades (1), UPGRADE_PPS the rate in packets/s (200000), UPGRADE_SECONDS the
# time of each run (12), UPGRADE_FLOWS the number of flows (100000), UPGRADE_GROUPS the number of groups
# (1000), UPGRADE_DRIVER the driver of both ports (af_packet), and UPGRADE_RING the number of packets of their
# receive rings (16384; 0 is the default of the driver). The default ring of 4,096 packets is full after 20 ms at
# this rate, and the host of a virtual machine may stop a CPU for longer.
#
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/../tests/lib.sh"
upgrades=${1:-1}
pps=${UPGRADE_PPS:-200000}
more_flows=${UPGRADE_FLOWS:-100000}
more_groups=${UPGRADE_GROUPS:-1000}
seconds=${UPGRADE_SECONDS:-12}
driver=${UPGRADE_DRIVER:-af_packet}
ring=${UPGRADE_RING:-16384}
if [ "$driver" = af_packet ] && [ "$ring" -gt 0 ]; then
    port_settings+=$'\n'"receive_ring = $ring"
fi

top='upgrade = true'
make_hosts 2
traffic=${UPGRADE_TRAFFIC:-}
if [ -z "$traffic" ]; then
    nice cargo build --quiet --release -p port --example numbered
    traffic=$(cargo metadata --no-deps --format-version 1 |
        sed 's|.*"target_directory":"\([^"]*\)".*|\1/release/examples/numbered|')
fi
start_switch secure
control() { "$shunt" --control "$folder/control.sock" "$@"; }
ended() { [ ! -d "/proc/$1" ] || grep '^State:.Z' "/proc/$1/status" >/dev/null; }
in_room h1 ip neigh replace 10.0.0.2 lladdr "$(mac 2)" dev eth0
for ((n = 0; n < more_groups; n++)); do printf 'group group_id=%s,type=all,bucket=actions=output:2\n' $((100 + n)); done >"$folder/start.flows"
python3 -c '
import sys
print("meter meter=5 pktps burst stats bands=type=drop rate=100000000 burst_size=100000000")
print("priority=9,cookie=7,in_port=1,ip,nw_dst=10.0.0.2 actions=output:2")
for n in range(int(sys.argv[1])):
    print(f"priority=8,ip,nw_dst=10.{1 + n // 62500}.{n // 250 % 250}.{n % 250} actions=output:2")' "$more_flows" >>"$folder/start.flows"
control flows load "$folder/start.flows" >"$folder/load.log"
old=$switch
# rx_and_tx: prints the packets received by port 1, sent by port 2, and lost by both ports.
rx_and_tx() {
    control show ports --json | python3 -c '
import json, sys
one, two = json.load(sys.stdin)["ports"][:2]
print(one["rx_packets"], two["tx_packets"], one["rx_dropped"] + two["tx_dropped"])'
}
# stolen_ms: prints the CPU time that the host of a virtual machine has taken from its CPUs so far.
stolen_ms() { awk -v hz="$(getconf CLK_TCK)" '$1 == "cpu" { print int($9 * 1000 / hz) }' /proc/stat; }
for ((n = 0; n <= upgrades; n++)); do
    stolen=$(stolen_ms)
    read -r rx tx lost < <(rx_and_tx)
    : >"$folder/receiver.log"
    background receiver h2 "$traffic" receive eth0
    wait_until 'the receiver listens' logged receiver listening
    background sender h1 "$traffic" send eth0 10.0.0.2 "$pps" "$seconds"
    sender=$started
    sleep 1
    begun=0 ended=0
    if [ "$n" -gt 0 ]; then
        begun=$(date +%s%3N)
        control upgrade >"$folder/upgrade.log" || fail 'the upgrade was refused'
        wait_until 'the old process ends' ended "$old"
        ended=$(date +%s%3N)
        old=$(sed -n 's/.* as process \([0-9]*\)$/\1/p' "$folder/upgrade.log")
    else
        printf 'no upgrade in this run\n' >"$folder/upgrade.log"
    fi
    wait "$sender" || fail 'the sender has failed'
    wait_until 'the receiver ends' logged receiver received
    sent=$(tail -n 1 "$folder/sender.log")
    read -r rx_after tx_after lost_after < <(rx_and_tx)
    python3 - "$n" "$seconds" "$sent" $((rx_after - rx)) $((tx_after - tx)) $((lost_after - lost)) "$begun" "$ended" \
        "$(tail -n 1 "$folder/receiver.log")" "$(tail -n 1 "$folder/upgrade.log")" $(($(stolen_ms) - stolen)) <<'REPORT' ||
import json, sys

# A packet may wait in a ring before the receiver notices that the one before it is missing.
LATER_MS = 100
n, seconds, sent, rx, tx, lost, begun, ended = map(int, sys.argv[1:9])
seen, waited, stolen_ms = json.loads(sys.argv[9]), sys.argv[10], sys.argv[11]
during = sum(count for at, count in seen["losses"] if begun <= at <= ended + LATER_MS)
print(f"upgrade {n}: sent {sent} ({sent / seconds:.0f}/s), lost during the upgrade {during}, "
      f"in all {sent - seen['received']}: not received by the switch {sent - rx}, not sent by it {rx - tx}, "
      f"dropped by its ports {lost}, by the receiver {seen['dropped']}; repeated {seen['repeated']}, "
      f"reordered {seen['disordered']}, longest gap {seen['gap_us'] / 1e3:.1f} ms; "
      f"the host took {stolen_ms} ms of CPU time; {waited}")
sys.exit(during or rx != tx or seen["repeated"] or seen["disordered"])
REPORT
        failed_runs=$((${failed_runs:-0} + 1))
done
[ "${failed_runs:-0}" -eq 0 ] || fail "packets were lost, repeated or reordered in $failed_runs of $((upgrades + 1)) runs"
ok "$upgrades upgrades at $pps packets/s with $more_flows flows and $more_groups groups"
