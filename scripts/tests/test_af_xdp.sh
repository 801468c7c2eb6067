#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Hosts with all offloads around a switch with af_xdp ports. Ping, TCP and UDP must pass with correct
# checksums. The switch must survive a pulled cable, and leave nothing at the interfaces.
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2034
driver=af_xdp
make_hosts 2
start_switch standalone </dev/null

wait_until 'a ping passes' in_room h1 ping -q -c 1 -W 1 10.0.0.2
pings 1 2
ok 'hosts reach each other'
tcp 1 2
ok 'TCP passes'
background iperf-server h2 iperf3 --server --one-off
wait_until 'iperf3 listens' in_room h2 bash -c 'ss -Hltn "sport = :5201" | grep .'
in_room h1 timeout 20 iperf3 --client 10.0.0.2 --udp --bitrate 20M --length 1000 --time 1 --json >"$folder/udp.log" 2>&1
# Some datagrams are lost on a busy machine.
python3 - "$folder/udp.log" <<'CHECK' || fail 'UDP does not pass'
import json, sys
with open(sys.argv[1]) as file:
    total = json.load(file)["end"]["sum"]
assert total["packets"] > 100 and total["lost_percent"] < 50, total
CHECK
ok 'UDP passes'
for host in h1 h2; do
    # shellcheck disable=SC2016
    wrong=$(in_room "$host" awk '/^(Udp|Tcp):/ { if ($1 in at) print $at[$1]; else for (n = 2; n <= NF; n++) if ($n == "InCsumErrors") at[$1] = n }' /proc/net/snmp)
    [ "$wrong" = $'0\n0' ] || fail "$host received wrong checksums: $wrong"
done
ok 'all checksums are correct'

sed -e 's/af_xdp/af_packet/' -e 's/control.sock/other.sock/' -e '/^listen/d' "$folder/switch.toml" >"$folder/other.toml"
if in_room sw "$shunt" run -c "$folder/other.toml" 2>"$folder/other.log"; then fail 'two switches serve one interface'; fi
grep -q 'another switch serves the device' "$folder/other.log" || fail 'the refusal does not name the other switch'
ok 'an interface is served by only one switch, whatever the driver'

ip -n "$prefix-sw" link del p1
# shellcheck disable=SC2016
wait_until 'the port is down' bash -c '"$1" --control "$2" show ports | grep -w p1 | grep -w down' _ "$shunt" "$folder/control.sock"
ip -n "$prefix-sw" link add p1 type veth peer name eth0 netns "$prefix-h1"
ip -n "$prefix-h1" link set eth0 address "$(mac 1)"
ip -n "$prefix-h1" address add 10.0.0.1/24 dev eth0
ip -n "$prefix-h1" link set eth0 up
ip -n "$prefix-sw" link set p1 up
wait_until 'a ping passes again' in_room h1 ping -q -c 1 -W 1 10.0.0.2
ok 'packets pass after a cable was pulled and plugged in again'

kill "$switch"
wait "$switch" || fail 'the switch did not exit with 0'
if ip -d -n "$prefix-sw" link show | grep xdp; then fail 'an XDP program is still attached to an interface'; fi
ok 'no XDP program stays attached to an interface'
