#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The learning switch of lab/controllers on os-ken, between three namespaced hosts. Pings and TCP must pass,
# and each pair must get its flow. Idle flows must be removed and reported to the application, as must a
# pulled cable.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

needs target/tools/os-ken/bin/python
make_hosts 3
background learning sw target/tools/os-ken/bin/python lab/controllers/launch.py learning --idle-timeout 3
start_switch secure

wait_until 'the table-miss flow of the application' has_flow 'priority=0 actions=CONTROLLER:128'
for pair in '1 2' '3 1' '2 3'; do
    # shellcheck disable=SC2086
    pings $pair || fail "no pings pass between hosts $pair"
done
wait_until 'a flow from h1 to h2' has_flow "in_port=1,dl_src=$(mac 1),dl_dst=$(mac 2) actions=output:2"
wait_until 'a flow from h3 to h1' has_flow "in_port=3,dl_src=$(mac 3),dl_dst=$(mac 1) actions=output:1"
ok 'pings pass between three hosts, and the application has added flows'

tcp 2 1 || fail 'no TCP passes between the hosts'
ok 'TCP passes'

wait_until 'idle flows are removed' has_no_flow idle_timeout
for pair in '1 2' '2 1' '1 3' '3 1' '2 3' '3 2'; do
    read -r from to <<<"$pair"
    wait_until "the application gets the flow-removed message of the flow from h$from to h$to" \
        logged learning "flow $(mac "$from") -> $(mac "$to") removed, idle, [1-9][0-9]* packets"
done
ok 'idle flows are removed and reported to the application'

pings 1 2 || fail 'h1 does not reach h2 after the flow was removed'
ip -n "$prefix-h2" link set eth0 down
wait_until 'the application gets the message that port 2 is down' logged learning 'port 2 is down'
wait_until 'the flows to h2 are removed' has_no_flow "dl_dst=$(mac 2)"
ip -n "$prefix-h2" link set eth0 up
pings 1 2 || fail 'h1 does not reach h2 after the cable was plugged in again'
ok 'the flows to a pulled cable are removed'

if logged learning 'error'; then fail 'the switch refused a message'; fi
if logged learning 'Traceback'; then fail 'the application failed'; fi
