#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A switch at home: VLANs, storm limits and limits of addresses with NORMAL, between hosts. Two hosts are in
# VLAN 10 and one in VLAN 20. The fourth has both VLANs on a trunk. The settings change by `shunt port set` and
# `shunt reload` while the switch runs.
#
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

make_hosts 4
for n in 1 2; do ip -n "$prefix-h$n" address add "10.0.10.$n/24" dev eth0; done
ip -n "$prefix-h3" address add 10.0.20.3/24 dev eth0
background trunk_host h4 scripts/tests/vlan_host.py eth0 "$(mac 4)" 10=10.0.10.4 20=10.0.20.4 0=10.0.10.14
wait_until 'the host of the trunk is ready' logged trunk_host ready
start_switch secure
config=$folder/switch.toml
control() { "$shunt" --control "$folder/control.sock" "$@"; }
printf 'priority=0 actions=NORMAL\n' | control flows load - >"$folder/load.log"

# reaches FROM ADDRESS: returns whether a host gets an answer. An answer may need an ARP exchange before.
reaches() { in_room "h$1" ping -q -c 2 -i 0.1 -W 1 "$2" >"$folder/ping.log" 2>&1; }
# is_cut_off FROM ADDRESS: returns whether a host gets no answer.
is_cut_off() { ! in_room "h$1" ping -q -c 1 -W 0.4 "$2" >"$folder/ping.log" 2>&1; }
# forget: removes the addresses that hosts know, so that the next packet is a broadcast.
forget() { for n in 1 2 3 4; do ip -n "$prefix-h$n" neigh flush all >"$folder/flush.log" 2>&1; done; }
# dropped REASON: prints the number of packets dropped by this reason.
dropped() { control show counters --json | python3 -c "import json, sys; print(json.load(sys.stdin)['dropped']['$1'])"; }

reaches 1 10.0.0.3 || fail 'h1 does not reach h3, although no port has a VLAN'
if control show ports | grep vlans >/dev/null; then fail 'VLANs are shown although no port has one'; fi

# Access ports and a trunk. One command and one reload change the ports.
control port set p1 --tag 10 >"$folder/set.log"
grep -q 'port 1 (p1): VLAN mode access 10;' "$folder/set.log" || fail 'the change of p1 was not reported'
sed -i '/^number = 1$/a tag = 10' "$config"
sed -i '/^number = 2$/a tag = 10' "$config"
sed -i '/^number = 3$/a tag = 20' "$config"
sed -i '/^number = 4$/a vlan_mode = "trunk"\ntrunks = [10, 20]' "$config"
control reload >"$folder/reload.log"
grep -q 'port 4 (p4): VLAN mode trunk, VLANs 10,20;' "$folder/reload.log" || fail 'the change of p4 was not reported'
control show ports >"$folder/ports.log"
grep -q 'access 20' "$folder/ports.log" || fail 'show ports lacks the VLAN of p3'
forget
captured p3 'ether src 02:00:00:00:00:01' of-vlan-20
captured p4 'ether src 02:00:00:00:00:01' trunk
reaches 1 10.0.10.2 || fail 'h1 does not reach h2 in VLAN 10'
reaches 1 10.0.10.4 || fail 'h1 does not reach VLAN 10 of the trunk'
reaches 3 10.0.20.4 || fail 'h3 does not reach VLAN 20 of the trunk'
is_cut_off 1 10.0.0.3 || fail 'h1 reaches h3, which is in another VLAN'
control show macs >"$folder/macs.log"
grep -qE '10 +02:00:00:00:00:01' "$folder/macs.log" || fail 'the address of h1 was not learned in VLAN 10'
grep -qE '20 +02:00:00:00:00:03' "$folder/macs.log" || fail 'the address of h3 was not learned in VLAN 20'
wait_until 'the trunk has sent frames with a tag' has_seen trunk 'vlan 10'
[ "$(seen trunk 'not vlan')" -eq 0 ] || fail 'the trunk has sent a frame of h1 without a tag'
[ "$(seen of-vlan-20 '')" -eq 0 ] || fail 'h3 has got a frame of h1'
ok 'access ports and a trunk separate VLANs, and only the trunk has tags'

# A frame of another VLAN at an access port.
before=$(dropped wrong_vlan)
in_room h1 python3 - <<'SEND'
import socket
host = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
host.bind(("eth0", 0))
tag = bytes.fromhex("81000014")
host.send(b"\xff" * 6 + bytes.fromhex("020000000001") + tag + b"\x88\xb5" + b"\0" * 46)
SEND
# is_counted: returns whether a frame of another VLAN was counted.
is_counted() { [ "$(dropped wrong_vlan)" -gt "$before" ]; }
wait_until 'frames of another VLAN are counted' is_counted
[ "$(seen of-vlan-20 '')" -eq 0 ] || fail 'h3 has got a tagged frame of h1'
ok 'frames of another VLAN are dropped and counted'

# The native VLAN of a trunk has no tag.
control port set p4 --vlan-mode native-untagged --tag 10 --trunks 20 >"$folder/set.log"
forget
reaches 1 10.0.10.14 || fail 'h1 does not reach the native VLAN'
reaches 3 10.0.20.4 || fail 'h3 does not reach VLAN 20 beside the native VLAN'
[ "$(seen trunk 'not vlan')" -gt 0 ] || fail 'the native VLAN has a tag'
ok 'a native VLAN is sent without a tag'

# A refused change leaves everything as it was, and without VLANs all hosts meet again.
if control port set p1 --vlan-mode sometimes 2>"$folder/refused.log"; then fail 'a mode was invented'; fi
grep -q 'there is no mode "sometimes"' "$folder/refused.log" || fail "the refusal is unclear"
reaches 1 10.0.10.2 || fail 'h1 no longer reaches h2 after a refused change'
for n in 1 2 3 4; do control port set "p$n" --no-vlans --write >"$folder/set.log"; done
if grep -qE '^(tag|trunks|vlan_mode) =' "$config"; then fail 'VLANs are still in the file'; fi
forget
reaches 1 10.0.0.3 || fail 'h1 does not reach h3 after the VLANs were removed'
ok 'a refused change has no effect, and VLANs can be removed'

# A storm limit drops broadcasts above the limit, and closes the port. Other ports are not affected.
# blasts: sends 60 broadcasts from h1.
blasts() { in_room h1 ping -q -b -c 60 -i 0.005 -W 0.1 10.0.0.255 >"$folder/ping.log" 2>&1 || true; }
control port set p1 --storm broadcast=10/10 >"$folder/set.log"
grep -q 'broadcasts limited to 10/s, burst 10' "$folder/set.log" || fail 'the limit was not reported'
blasts
# limits: returns whether broadcasts above the limit were dropped.
limits() { [ "$(dropped storm_broadcast)" -gt 20 ]; }
wait_until 'broadcasts above the limit are dropped' limits
reaches 1 10.0.0.2 || fail 'known addresses are limited as well'
control port set p1 --storm broadcast=10/10,action=shut,reopen=1500ms >"$folder/set.log"
blasts
wait_until 'the storm closes the port' logged switch 'port 1 (p1) is closed for 1500 ms: it received too many broadcasts'
control show ports >"$folder/ports.log"
grep -q blocked "$folder/ports.log" || fail 'show ports does not show the closed port'
control trace --in-port 1 --hex ffffffffffff0200000000010800 >"$folder/trace.log"
grep -q 'port 1 (p1) is closed by its storm limit' "$folder/trace.log" || fail 'a trace does not name the storm limit'
ofctl show "tcp:$openflow_listen" >"$folder/ofctl.log"
grep -q BLOCKED "$folder/ofctl.log" || fail 'OpenFlow does not show the closed port as blocked'
reaches 2 10.0.0.3 || fail 'other ports are closed as well'
wait_until 'the port opens again' logged switch 'port 1 (p1) is open again'
control port set p1 --no-storm >"$folder/set.log"
reaches 1 10.0.0.2 || fail 'h1 does not reach h2 after the storm'
ok 'a storm limit drops broadcasts, closes the port and opens it again'

# A second address at a port for one address is not learned, but reached by floods.
control port set p1 --mac-limit 1 >"$folder/set.log"
forget
reaches 1 10.0.0.2 || fail 'h1 does not reach h2 with its only address'
ip -n "$prefix-h1" link add link eth0 name second type macvlan mode bridge
ip -n "$prefix-h1" address add 10.0.0.101/24 dev second
ip -n "$prefix-h1" link set second up
in_room h1 ping -q -c 3 -i 0.1 -W 1 -I second 10.0.0.2 >"$folder/ping.log" || fail 'the second address is cut off'
control show ports --json >"$folder/ports.json"
python3 - "$folder/ports.json" <<'CHECK' || fail 'the limit of addresses was not kept'
import json, sys
port = json.load(open(sys.argv[1]))["ports"][0]
print(port["macs"], port["macs_refused"])
sys.exit(not (port["macs"] == 1 and port["macs_refused"] > 0))
CHECK
ok 'a port learns no more addresses than its limit'
