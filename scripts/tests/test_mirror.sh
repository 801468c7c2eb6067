#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: test_mirror.sh
#
# Mirrors between namespaces: to a port, which gets nothing but copies, and to pcapng files, which tshark reads.
#
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

# Port 3 is served by another worker than the ports 1 and 2.
worker='[[worker]]'
make_hosts 3
sed -i '/^number = 3$/,/^workers/s/^workers = .*/workers = [1]/' "$folder/ports"
start_switch standalone
control() { "$shunt" --control "$folder/control.sock" "$@"; }
# Known neighbours and learned addresses, so that no packet is sent to all ports.
for n in 1 2 3; do
    for m in 1 2 3; do in_room "h$n" ip neigh replace "10.0.0.$m" lladdr "$(mac "$m")" dev eth0; done
done
pings 1 2 || fail 'h1 does not reach h2'
# ping FROM COUNT [ARGUMENT...]: sends pings from a host to the host 3 - FROM.
ping() {
    local from=$1 count=$2
    shift 2
    in_room "h$from" ping -q -c "$count" -i 0.01 -W 5 "$@" "10.0.0.$((3 - from))" >"$folder/ping.log"
}
# shown NAME MEMBER: prints a member of a mirror.
shown() {
    control show mirrors --json | python3 -c '
import json, sys
name, member = sys.argv[1:]
(mirror,) = [mirror for mirror in json.load(sys.stdin)["mirrors"] if mirror["name"] == name]
print(mirror[member])' "$@"
}
is_shown() { [ "$(shown "$1" "$2")" = "$3" ]; }

# To a port.
background copies h3 tcpdump --immediate-mode -U -n -Q in -i eth0 -w "$folder/copies.pcap"
wait_until 'tcpdump listens at h3' logged copies 'listening on'
control mirror add span --both p1 --to-port p3 >"$folder/mirror.log"
grep -q 'mirror span is added, to port 3' "$folder/mirror.log" || fail 'the mirror was not added'
ping 1 10 || fail 'h1 does not reach h2 while its port is mirrored'
has_count() { [ "$(seen copies "$1")" -eq "$2" ]; }
wait_until 'h3 gets the copies of ten requests' has_count 'icmp[0] = 8 and src 10.0.0.1' 10
wait_until 'h3 gets the copies of ten answers' has_count 'icmp[0] = 0 and dst 10.0.0.1' 10
is_shown span mirrored 20 || fail "$(shown span mirrored) frames were copied instead of 20"
ok 'a port gets the copies of what another port receives and sends'
# A packet of h3 would reach h1, and a broadcast of h2 would reach h3, through an ordinary port.
if in_room h3 ping -q -c 1 -W 1 10.0.0.1 >"$folder/ping.log" 2>&1; then fail 'a packet entered by the mirror port'; fi
in_room h2 ping -q -b -c 2 -i 0.1 -W 1 10.0.0.255 >"$folder/ping.log" 2>&1 || true
wait_until 'the copies of the broadcast reach h3' has_count 'icmp and dst 10.0.0.255' 2
has_count 'icmp' 22 || fail 'h3 got more than the copies'
control show counters | grep 'port_not_receiving' >"$folder/found.log" || fail 'the packets of h3 were not counted'
ok 'a mirror port forwards no other traffic'
control mirror remove span >"$folder/mirror.log"
pings 3 1 || fail 'the port does not forward after the mirror was removed'
ok 'after the mirror is removed, its port forwards again'

# To files: what port 1 receives and port 2 sends, without and with a tag.
capture=$folder/a.pcapng
control mirror add file --ingress p1 --egress p2 --to-file "$capture" --snap-bytes 60 --write >"$folder/mirror.log"
control mirror add tagged --ingress p1 --vlan 10 --to-file "$folder/tagged.pcapng" >"$folder/mirror.log"
grep -q '^name = "file"' "$folder/switch.toml" || fail 'the mirror was not written to the configuration'
control reload >"$folder/reload.log"
grep -q 'mirror tagged is removed' "$folder/reload.log" || fail 'the reload did not remove the other mirror'
control mirror add tagged --ingress p1 --vlan 10 --to-file "$folder/tagged.pcapng" >"$folder/mirror.log"
ping 1 20 -s 1000 || fail 'h1 does not reach h2 while frames are written'
# Five frames from h1 to h2 with a tag of VLAN 10.
in_room h1 python3 -c '
import socket
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.bind(("eth0", 0))
for _ in range(5):
    sender.send(bytes.fromhex("020000000002" "020000000001" "8100000a" "88b5") + bytes(60))'
wait_until 'the file has the frames with tags' is_shown tagged written 5
wait_until 'the file has all frames' is_shown file written 50
control mirror remove file >"$folder/mirror.log"
# fields FILE FILTER FIELD...: prints the fields of the captured frames that match the filter.
fields() {
    local file=$1 filter=$2 field list=()
    shift 2
    for field in "$@"; do list+=(-e "$field"); done
    tshark -r "$file" -Y "$filter" -T fields "${list[@]}" 2>"$folder/tshark.log"
}
expected=$(printf '20 p1\t0x00000001\t60\t1042\n20 p2\t0x00000002\t60\t1042')
found=$(fields "$capture" 'icmp.type == 8 && !vlan' frame.interface_name frame.packet_flags frame.cap_len frame.len |
    sort | uniq -c | sed 's/^ *//')
[ "$found" = "$expected" ] || fail "the file has other frames: $found"
# The requests with tags arrived at port 1 and left by port 2.
[ "$(fields "$capture" 'vlan.id == 10' frame.interface_name | sort | uniq -c | tr -s ' \n' ' ')" = ' 5 p1 5 p2 ' ] ||
    fail 'the file lacks frames with tags'
found=$(fields "$folder/tagged.pcapng" '' vlan.id | sort | uniq -c | sed 's/^ *//')
[ "$found" = '5 10' ] || fail "the file of VLAN 10 has other frames: $found"
# The time stamps are those of the system's clock.
age=$(fields "$capture" 'frame.number == 1' frame.time_epoch | awk -v now="$(date +%s)" '{print now - $1}')
awk -v age="$age" 'BEGIN {exit !(age > -2 && age < 60)}' || fail "the first frame seems to be $age s old"
ok 'files have the frames of the selected ports and VLANs, with directions, lengths and times'

# Limits and errors end only the mirror.
control mirror add few --ingress p1 --to-file "$folder/few.pcapng" --max-packets 3 >"$folder/mirror.log"
ping 1 20 || fail 'h1 does not reach h2 while a mirror ends'
wait_until 'the mirror has ended' is_shown few state ended
shown few reason | grep 'limit of 3 frames' >"$folder/found.log" || fail "the mirror has ended because $(shown few reason)"
wait_until 'the end is in the log' logged switch 'mirror few has ended'
[ "$(fields "$folder/few.pcapng" '' frame.number | wc -l)" -eq 3 ] || fail 'the file has not three frames'
# refused TEXT ARGUMENT...: checks that a mirror is refused with this text.
refused() {
    local text=$1
    shift
    if control mirror add bad "$@" >"$folder/mirror.log" 2>&1; then fail "a mirror was not refused: $text"; fi
    grep -q -- "$text" "$folder/mirror.log" || fail "$(cat "$folder/mirror.log")"
}
refused 'cannot open' --ingress p1 --to-file "$folder/no/folder/x"
refused 'is not a pcapng file' --ingress p1 --to-file "$folder/switch.toml"
refused 'no port has the number or name "p9"' --ingress p9 --to-port p3
refused 'so copies would be copied' --both p1,p3 --to-port p3
refused 'is also that of mirror' --ingress p1 --to-file "$folder/few.pcapng"
pings 1 2 || fail 'h1 does not reach h2 at the end'
ok 'limits, bad files and mistakes are reported and disturb no traffic'

# A capture is complete when the switch ends.
control mirror add last --ingress p1 --to-file "$folder/last.pcapng" >"$folder/mirror.log"
ping 1 20
kill -TERM "$switch"
wait "$switch" || fail 'the switch has failed'
[ "$(fields "$folder/last.pcapng" 'icmp' frame.number | wc -l)" -eq 20 ] || fail 'the last file is incomplete'
ok 'files are complete when the switch ends'
