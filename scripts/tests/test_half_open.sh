#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The network of four connected controllers fails silently. One controller is idle, one does not read the dump
# that it requested, one has sent nothing, and one accepted a connection of the switch. Within half a minute,
# the switch must notice missing echo replies or a missing HELLO, and release all resources of the
# connections. Meanwhile, every packet between two hosts must pass. Afterwards the switch must reconnect to
# its controller.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

make_hosts 2
# Network of the controllers.
make_room c
ip -n "$prefix-sw" link add ctl type veth peer name eth0 netns "$prefix-c"
ip -n "$prefix-sw" address add 10.1.0.1/24 dev ctl
ip -n "$prefix-sw" link set ctl up
ip -n "$prefix-c" address add 10.1.0.2/24 dev eth0
ip -n "$prefix-c" link set eth0 up
controller=10.1.0.2:6653
openflow_listen=10.1.0.1:6654

# The controller only listens and answers; the test adds the flows.
cat >"$folder/peer.py" <<'PEER'
import socket, struct, sys, time
HELLO = struct.pack("!BBHI", 4, 0, 8, 1)
DUMP = struct.pack("!BBHIHHI", 4, 18, 56, 2, 1, 0, 0) + struct.pack("!B3xII4xQQHHI", 255, 2**32 - 1, 2**32 - 1, 0, 0, 1, 4, 0)
what = sys.argv[1]
if what == "called":
    listener = socket.create_server(("10.1.0.2", 6653))
    # This side never closes a connection.
    kept = []
    while True:
        peer, _ = listener.accept()
        peer.sendall(HELLO)
        print("called", flush=True)
        kept.append(peer)
peer = socket.socket()
peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
peer.connect(("10.1.0.1", 6654))
if what != "silent":
    peer.sendall(HELLO)
if what == "dump":
    peer.sendall(DUMP * 200)
print(what, flush=True)
time.sleep(600)
PEER
peer() { background "$1" c python3 "$folder/peer.py" "$1"; }
# lines LOG TEXT COUNT: returns whether the log has at least COUNT lines with the text.
lines() {
    local count
    count=$(grep -c -s -- "$2" "$folder/$1.log") || true
    [ "${count:-0}" -ge "$3" ]
}
sockets() { find "/proc/$switch/fd" -lname 'socket:*' 2>/dev/null | wc -l; }
has_sockets() { [ "$(sockets)" -eq "$1" ]; }

export RUST_LOG=info
start_switch secure
{
    printf 'in_port=1,actions=output:2\nin_port=2,actions=output:1\n'
    for n in $(seq 20000); do printf 'table=1,ip,nw_dst=10.%d.%d.1,actions=output:2\n' "$((n / 250))" "$((n % 250))"; done
} >"$folder/flows"
ofctl add-flows "tcp:$openflow_listen" "$folder/flows"
all_flows() { ofctl --no-names --no-stats dump-flows "tcp:$openflow_listen" | sort; }
all_flows >"$folder/before"

# The switch may have opened a socket for each connection attempt.
sleep 0.5
few=$(sockets)
for kind in called silent idle dump; do peer "$kind"; done
for kind in silent idle dump called; do wait_until "$kind is connected" lines "$kind" "$kind" 1; done
wait_until 'four controllers are connected' has_sockets "$((few + 4))"
sleep 1

background ping h1 ping -q -i 0.01 10.0.0.2
ping=$started
ip -n "$prefix-c" link set eth0 down
ok 'four controllers vanish'
began=$SECONDS
wait_within 20 'the silent controller is disconnected' lines switch 'closed: no HELLO came in time' 1
wait_within 45 'the other controllers are disconnected' lines switch 'closed: the peer did not answer an echo request in time' 3
ok "all controllers are disconnected after $((SECONDS - began)) s"
wait_within 20 'no connection is left' has_sockets "$few"

ip -n "$prefix-c" link set eth0 up
wait_until 'the switch reconnects to its controller' lines called 'called' 2
ok "the switch reconnects to its controller after $((SECONDS - began)) s"
kill -INT "$ping"
wait "$ping" || true
logged ping ' 0% packet loss' || fail 'packets were lost'
all_flows >"$folder/after"
cmp -s "$folder/before" "$folder/after" || fail 'the flow table has changed'
ok "$(grep 'packet loss' "$folder/ping.log"); the flow table is unchanged"
