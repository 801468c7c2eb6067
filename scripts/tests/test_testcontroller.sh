#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ovs-testcontroller makes Shunt a learning switch between two namespaced hosts. Pings and TCP must pass, and
# flows must appear. After the controller has ended, the switch must learn by itself.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

make_hosts 2
OVS_RUNDIR=$folder background controller sw ovs-testcontroller -O OpenFlow13 ptcp:6653:127.0.0.1
learner=$started
start_switch standalone

wait_until 'the flow of the controller' has_flow CONTROLLER
if has_flow NORMAL; then fail 'the flow of standalone mode still exists'; fi
pings 1 2 || fail 'h1 does not reach h2 through the controller'
wait_until 'a flow to h2' has_flow 'actions=output:2'
ok 'pings pass, and the controller has added flows'

tcp 1 2 || fail 'no TCP passes between the hosts'
ok 'TCP passes'

kill "$learner"
wait_until 'the switch learns by itself' has_flow 'priority=0 actions=NORMAL'
pings 1 2 || fail 'h1 does not reach h2 without the controller'
ok 'without the controller the switch learns by itself'
