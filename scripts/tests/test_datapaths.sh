#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Many datapaths without devices in one process: threads, start time and processor time. Plans that os-ken loads
# into such datapaths must deliver in a simulation of the dumped state.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

needs target/tools/os-ken/bin/python
make_room sw
shunt=$(test_build)
SHUNT=$shunt in_room sw bench/datapaths.py --datapaths 60 --settle 1 --idle 4 --report "$folder/report" \
    >"$folder/datapaths.log" 2>&1 || fail 'a figure misses its bar'
ok '60 datapaths need few threads and little processor time'

cat >"$folder/bare.toml" <<CONFIG
control = "$folder/bare.sock"
[[datapath]]
id = 1
[datapath.openflow]
listen = "$openflow_listen"
[[datapath.port]]
number = 1
name = "p1"
driver = "none"
[[datapath.port]]
number = 2
name = "p2"
driver = "none"
CONFIG
background bare sw "$shunt" run -c "$folder/bare.toml"
bare=$started
wait_until 'the switch is ready' logged bare ready
ofctl dump-ports-desc "tcp:$openflow_listen" >"$folder/ports.log"
if grep -q LINK_DOWN "$folder/ports.log"; then fail 'a port without a device is down'; fi
ofctl add-flow "tcp:$openflow_listen" 'in_port=1,actions=output:2'
has_flow 'in_port=1 actions=output:2' >"$folder/flow.log" || fail 'the flow was not added'
ofctl packet-out "tcp:$openflow_listen" 'in_port=1,packet=ffffffffffff020000000001080645,actions=output:2' ||
    fail 'a packet-out was refused'
for page in ports counters tables ffp express stateless; do
    "$shunt" show "$page" -c "$folder/bare.toml" >"$folder/show.log" 2>&1 || fail "show $page failed"
done
kill "$bare"
wait "$bare" || fail "the switch ended with $?"
ok 'a datapath without workers serves controllers and shunt show'

SHUNT=$shunt in_room sw bench/loaded.py --case 'k = 4' --report "$folder/report" >"$folder/loaded.log" 2>&1 ||
    fail 'the dumped state of a plan does not deliver'
ok 'plans of k = 4, loaded over OpenFlow, deliver in a simulation of the dumped state'

# The times are not checked: the machine may be busy, and k = 6 has no target.
SHUNT=$shunt in_room sw bench/gates.py --k 6 --runs 3 --report "$folder/gates.jsonl" >"$folder/gates.log" 2>&1 ||
    fail 'a controller does not set the gates of a tree'
[ "$(grep -c '^6,[1-3],45,' "$folder/gates.csv")" -eq 3 ] || fail "gates.csv is wrong: $(cat "$folder/gates.csv")"
ok 'a controller sets the gates of k = 6 in three runs'
