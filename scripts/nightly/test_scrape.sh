#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: test_scrape.sh [FLOWS [BLOCKS]]
#
# The cost of scrapes: a switch with many flows receives more frames than it can forward. A scrape may take
# SCRAPE_LIMIT_MS, in the median. With a scrape each second, the switch may forward SCRAPE_COST_PERCENT fewer
# packets, in the median of all blocks of scripts/nightly/scrape_cost.py. The test fails if the whole confidence
# interval of this median is worse. The CPU time of a scrape each second may be SCRAPE_COST_PERCENT of a CPU.
#
# The worker is pinned to the last CPU. The sender and the client of the scrapes, which are not part of a switch,
# run on the other CPUs. The other threads of the switch may run anywhere.
#
# The test also fails if the run is not valid: if frames were lost elsewhere than in the receive ring of port 1,
# if the switch could forward all frames, or if other processes used the worker's CPU. SHUNT names another program.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/../tests/lib.sh"
flows=${1:-1000000} blocks=${2:-200}
: "${SCRAPE_LIMIT_MS:=50}" "${SCRAPE_COST_PERCENT:=1}"
# One CPU sends about as many frames as a worker can forward to one port. A worker that sends four copies of each
# can forward fewer, so it never waits for frames.
copies=4
cpu=$(($(nproc --all) - 1))
[ "$cpu" -gt 0 ] || fail 'the test needs two CPUs'

top='metrics = "127.0.0.1:9494"'
make_hosts 2
shunt=${SHUNT:-$(test_build)}
cat - "$folder/ports" >"$folder/switch.toml" <<CONFIG
control = "$folder/control.sock"
$top
[[worker]]
cpu = $cpu
[[datapath]]
id = 1
[datapath.openflow]
fail_mode = "secure"
CONFIG
background switch sw "$shunt" run -c "$folder/switch.toml"
switch=$started
wait_until 'the switch is ready' logged switch ready
python3 - "$flows" "$copies" >"$folder/flows" <<'FLOWS'
"""Prints flows: one that all packets of the test hit, and many others in two tables."""
import sys
print("priority=10,in_port=1,actions=" + ",".join(["output:2"] * int(sys.argv[2])))
for n in range(int(sys.argv[1]) - 1):
    a, b, c = n >> 16, n >> 8 & 255, n & 255
    print(f"table={n % 2},priority=20,ip,nw_dst=172.{a}.{b}.{c},actions=output:1")
FLOWS
"$shunt" flows load -c "$folder/switch.toml" "$folder/flows" >"$folder/load.log"
outside=(taskset --cpu-list "0-$((cpu - 1))")
background flood h1 "${outside[@]}" python3 lab/send_flows.py eth0 "$(mac 2)" 64 1000000
flood=$started
flows_are() { in_room sw curl -sS --fail http://127.0.0.1:9494/metrics | awk '/^shunt_table_entries\{/ { sum += $2 } END { exit sum != '"$flows"' }'; }
wait_until 'the metrics show all flows' flows_are
status=0
in_room sw "${outside[@]}" scripts/nightly/scrape_cost.py "$shunt" "$folder/switch.toml" "$switch" "$flood" "$copies" \
    "$blocks" "$SCRAPE_LIMIT_MS" "$SCRAPE_COST_PERCENT" >"$folder/measure.log" 2>&1 || status=$?
case $status in
    0) sed 's/^/ok: /' "$folder/measure.log" ;;
    3) fail 'the run is not valid' ;;
    *) fail 'scrapes cost too much' ;;
esac
