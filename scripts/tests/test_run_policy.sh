#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The low-latency policy and the status page: entries that another controller adds are marked by the rules of a
# file, again after they were deleted and added, and differently after the file has changed. A file with an error
# changes nothing. The marks are read back as JSON.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/tests/live.sh
source scripts/tests/live.sh

make_network 1 -- 1:1 1:2
sed -i "s|^fail_mode.*|&\nlisten = [\"$openflow_listen\"]|" "$folder/switches.toml"
# policy MARK: writes the policy.
policy() {
    printf '[[rule]]\nname = "udp"\nmatch = {eth_type = 0x0800, ip_proto = 17}\nmark = "%s"\n' "$1" >"$folder/new.toml"
    mv "$folder/new.toml" "$folder/policy.toml"
}
policy fast
start_switches
if in_room sw "$python" -m shunt_controller run low-latency --policy "$folder/policy.toml" >"$folder/wrong.log" 2>&1; then
    fail 'a wrong policy is accepted'
fi
logged wrong 'policy.toml: line 1: rule 1 (udp): mark is .fast.; it must be low-latency or normal$' || fail 'the error of the policy is not reported'
policy low-latency
start_controller low-latency status --policy "$folder/policy.toml" --status-port 8653
wait_until 'the policy is read' logged app 'policy.toml: 1 rules'
ofctl add-flow "tcp:$openflow_listen" 'priority=7,udp,udp_dst=5,actions=output:2'
ofctl add-flow "tcp:$openflow_listen" 'priority=7,tcp,tcp_dst=5,actions=output:2'
# marked TEXT: returns whether the entry of UDP contains the text.
marked() { say 1 flows dump | grep udp | grep -- "$1"; }
wait_until 'the entry is marked' marked 'low_latency'
say 1 flows dump | grep tcp | grep low_latency && fail 'an entry that no rule covers is marked'
# status TEXT: returns whether the state contains the text.
status() { in_room sw curl -sS http://127.0.0.1:8653/v1/status | grep -F -- "$1"; }
wait_until 'the mark is read back' status '"rule": "udp", "wanted": "low-latency", "mark": "low-latency"'
ok 'an entry of another controller is marked, and the mark is read back'

ofctl del-flows "tcp:$openflow_listen" 'udp'
ofctl add-flow "tcp:$openflow_listen" 'priority=7,udp,udp_dst=5,actions=output:1'
wait_until 'an entry that was added again is marked' marked 'low_latency.*output:1\|output:1.*low_latency'
policy normal
wait_until 'the mark has changed' marked 'low_latency=false'
policy low-latency
# The status may still show the mark before, so read the entry itself.
wait_until 'the mark has changed again' marked '^low_latency[^=]'
policy fast
wait_until 'the error is reported' logged app 'mark is .fast.; it must be low-latency or normal; the rules from before stay in force'
wait_until 'the error is in the state' status "mark is 'fast'"
marked 'low_latency=false' && fail 'a policy with an error has changed a mark'
printf '' >"$folder/policy.toml"
kill -HUP "$app"
wait_until 'the entry is normal without its rule' marked 'low_latency=false'
ok 'marks follow the file, and a file with an error changes nothing'
