#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tag-and-Forward over OpenFlow: os-ken loads the plan of a fat tree with k = 4 into twenty switches. Hosts at
# the same edge switch, in the same pod and in different pods must reach each other by tags in the format of
# docs/wire-formats.md. Flows must use all paths to another pod that have no failed uplink.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/tests/planned.sh
source scripts/tests/planned.sh

# h1 and h2 are at one edge switch, h3 at another edge switch of the same pod, and h4 in another pod. Servers
# have gates 2, 4, and so on.
places=('es1 1' 'es1 2' 'es2 1' 'es8 2')
load fat-tree --k 4

readonly to_h3='ether[12:2] = 0xff1f and ether[14:4] = 0 and ether[18:2] = 6 and ether[20:2] = 0x0800'
readonly to_h4='ether[12:2] = 0xff1f and ether[14:4] != 0 and ether[18:2] & 0x1fff = 32 and ether[20:2] = 0x0800'
# Capture packets from the aggregation switches to the edge switches of h3 and h4.
for port in s2p3 s2p4 s8p3 s8p4; do captured "$port" inbound "$port"; done
captured p3 'ether proto 0xff1f' at-h3
captured p4 'ether proto 0xff1f' at-h4
for pair in '1 2' '1 3' '3 1' '1 4' '4 1' '3 4'; do
    # shellcheck disable=SC2086
    pings $pair || fail "no pings pass between hosts $pair"
done
tagged() { [ $(($(seen "$1p3" "$2") + $(seen "$1p4" "$2"))) -gt 0 ]; }
wait_until 'packets with tags without UP arrive at the edge switch of h3' tagged s2 "$to_h3"
wait_until 'packets with tags with UP arrive at the edge switch of h4' tagged s8 "$to_h4"
ok 'pings pass at one edge switch, within a pod and between pods'

tcp 1 4 || fail 'no TCP passes between pods'
[ "$(seen at-h3 '')$(seen at-h4 '')" = 00 ] || fail 'tags reach a host'
ok 'TCP passes, and tags reach no host'

# send_flows FROM_PORT: sends datagrams of forty flows from h1 to h4, which are in different pods.
send_flows() {
    in_room h1 "$python" - "$1" <<'PYTHON'
import socket, sys

for number in range(40):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flow:
        flow.bind(("10.0.0.1", int(sys.argv[1]) + number))
        flow.sendto(b"flow", ("10.0.0.4", 9))
PYTHON
}
# Packets on the way down cannot avoid a failed link, so the test must not depend on replies.
ip -n "$prefix-h1" neigh replace 10.0.0.4 lladdr "$(mac 4)" dev eth0 nud permanent
# Capture at the far ends of the uplinks of h1's edge switch, and on the link to h4.
captured s9p1 'inbound and ether proto 0xff1f' plane-1
captured s10p1 'inbound and ether proto 0xff1f' plane-2
captured p4 'udp dst port 9' datagrams
# all_come FROM_PORT: returns whether a datagram of each flow has reached h4. It may have to be sent again.
all_come() {
    send_flows "$1"
    tcpdump -n -r "$folder/datagrams.pcap" "udp src portrange $1-$(($1 + 39))" 2>"$folder/read.log" |
        cut -d ' ' -f 3 | sort -u | wc -l | grep -x 40 >/dev/null
}
# way PLANE UP: returns whether packets took this plane with this value of UP. The last 13 bits are DOWN,
# preceded by UP.
way() { send_flows 3000 && [ "$(seen "plane-$1" "ether[16:4] = $(($2 << 13 | 32))")" -gt 0 ]; }
wait_until 'datagrams of all flows arrive at h4' all_come 3000
for way in '1 44' '1 48' '2 52' '2 56'; do
    # shellcheck disable=SC2086
    wait_until "flows to another pod go by plane and UP $way" way $way
done
ok 'flows to another pod take both uplinks, and all four cores'

ip -n "$prefix-sw" link set s1p3 down
before=$(seen plane-1 '')
wait_until 'datagrams of all flows arrive at h4 with an uplink down' all_come 4000
[ "$(seen plane-1 '')" -eq "$before" ] || fail 'packets pass an uplink that is down'
ok 'all flows take the other uplink when one is down'
