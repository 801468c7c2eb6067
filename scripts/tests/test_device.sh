#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The simulated device between three namespaced hosts. Pings and TCP pass with entries of ovs-ofctl and of the
# learning application on os-ken. A device in a process of its own forwards while its daemon is killed, and
# keeps its entries when the daemon returns.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

needs target/tools/os-ken/bin/python
port_settings=''
settings='[datapath.device]
kind = "rtl"'
make_hosts 3
start_switch secure
# device_is CONFIG TEXT: returns whether the report about the device contains the text.
device_is() { "$shunt" show device -c "$folder/$1.toml" | grep -- "$2"; }
wait_until 'the device has its entries' device_is switch 'state: ready'
for file in examples/device/*.flows; do
    "$shunt" check --offline -c examples/device/switch.toml --flows "$file" >"$folder/check.log" 2>&1 ||
        fail "$file is refused: $(cat "$folder/check.log")"
done
features() { ofctl dump-table-features "tcp:$openflow_listen" | grep -- "$1"; }
wait_until 'the number of entries is that of the device' features 'max_entries=31'
"$shunt" show tables -c "$folder/switch.toml" >"$folder/tables.log"
grep -q device "$folder/tables.log" || fail 'show tables does not name the device'
if "$shunt" show express -c "$folder/switch.toml" >"$folder/express.log" 2>&1; then
    fail 'the device has path records'
fi
grep -q 'a device forwards' "$folder/express.log" || fail 'show express gives no reason'

ofctl add-flow "tcp:$openflow_listen" 'priority=5,in_port=1,actions=output:2'
ofctl add-flow "tcp:$openflow_listen" 'priority=5,in_port=2,actions=goto_table:1'
ofctl add-flow "tcp:$openflow_listen" 'table=1,ip,actions=dec_ttl,output:1'
ofctl add-flow "tcp:$openflow_listen" 'table=1,arp,actions=output:1'
pings 1 2 || fail 'no pings pass the device'
in_room h1 ping -c 1 -W 5 10.0.0.2 >"$folder/hop.log" || fail 'no ping passes the device'
grep -q 'ttl=63' "$folder/hop.log" || fail 'the device does not decrement the TTL'
tcp 1 2 || fail 'no TCP passes the device'
wait_until 'the device counts the packets of an entry' has_flow 'in_port=1 actions=output:2'
wait_until 'the counters are read' has_flow 'n_packets=[1-9]'
if ofctl add-flow "tcp:$openflow_listen" 'actions=NORMAL' 2>"$folder/refused.log"; then
    fail 'the device accepted NORMAL'
fi
grep -q OFPBAC_BAD_OUT_PORT "$folder/refused.log" || fail 'NORMAL is refused with another error'
ofctl del-flows "tcp:$openflow_listen"
ok 'pings and TCP pass by entries of ovs-ofctl'

background learning sw target/tools/os-ken/bin/python lab/controllers/launch.py learning --idle-timeout 30
application=$started
wait_until 'the table-miss flow of the application' has_flow 'priority=0 actions=CONTROLLER:128'
for pair in '1 2' '3 1' '2 3'; do
    # shellcheck disable=SC2086
    pings $pair || fail "no pings pass between hosts $pair"
done
wait_until 'a flow from h1 to h2' has_flow "in_port=1,dl_src=$(mac 1),dl_dst=$(mac 2) actions=output:2"
tcp 2 1 || fail 'no TCP passes by the flows of the application'
if logged learning 'error'; then fail 'the switch refused a message'; fi
if logged learning 'Traceback'; then fail 'the application failed'; fi
ok 'pings and TCP pass by flows of the learning application'
kill "$application"
wait "$application" || true
kill "$switch"
wait "$switch" || fail "the switch ended with $?"

# The device in a process of its own.
device=$(dirname "$shunt")/shunt-device
background device sw "$device" --listen 127.0.0.1:6700 --port 1=p1 --port 2=p2 --port 3=p3
cat >"$folder/flows" <<'FLOWS'
priority=5,in_port=1,actions=output:2
priority=5,in_port=2,actions=output:1
FLOWS
cat >"$folder/apart.toml" <<CONFIG
control = "$folder/apart.sock"
[[datapath]]
id = 1
flows = "$folder/flows"
[datapath.openflow]
listen = "$openflow_listen"
[datapath.device]
kind = "udp"
address = "127.0.0.1:6700"
timeout = "200ms"
entries = 32
tables = [1, 1, 1, 1, 1]
[[datapath.port]]
number = 1
name = "p1"
[[datapath.port]]
number = 2
name = "p2"
CONFIG
background first sw "$shunt" run -c "$folder/apart.toml"
first=$started
wait_until 'the device is programmed' device_is apart 'state: ready, rewritten 1 times'
# One program serves an interface.
sed -e "s/$openflow_listen/127.0.0.1:6655/" -e "s/control.sock/other.sock/" "$folder/switch.toml" >"$folder/other.toml"
for command in "$shunt run -c $folder/other.toml" "$device --listen 127.0.0.1:6701 --port 1=p1"; do
    # shellcheck disable=SC2086
    if in_room sw timeout 20 $command >"$folder/taken.log" 2>&1; then
        fail "two programs serve the same interface: $command"
    fi
    grep -q 'another switch serves the device' "$folder/taken.log" || fail "the refusal of $command names no other switch"
done
pings 1 2 || fail 'no pings pass the device of another process'
kill -KILL "$first"
wait "$first" || true
pings 2 1 || fail 'the device does not forward without its daemon'
background second sw "$shunt" run -c "$folder/apart.toml"
second=$started
wait_until 'the entries are read back' device_is apart 'state: ready, rewritten 0 times'
pings 1 2 || fail 'no pings pass after the daemon has returned'
kill "$second"
wait "$second" || fail "the second daemon ended with $?"
ok 'the device forwards while its daemon is killed, and is read back'
