#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Controllers whose network goes away without a word: one that was idle, one in the midst of a dump that it does not
# read, one that had said nothing, and one that the switch had called. Echo requests find them out within half a minute,
# nothing of them is left, every packet between two hosts passes meanwhile, and the called one is found again.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH=$PWD/target/tools/bin:$PATH:/usr/sbin:/sbin

readonly name=shunt-ho-$$
folder=$(mktemp -d)
pids=()
fail() {
    printf 'test_half_open: %s\n' "$*" >&2
    cat "$folder"/*.log >&2
    exit 1
}
cleanup() {
    if [ "${#pids[@]}" -gt 0 ]; then kill "${pids[@]}" 2>/dev/null || true; fi
    wait
    for room in sw c h1 h2; do ip netns del "$name-$room" 2>/dev/null || true; done
    rm -rf "$folder"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

cargo build --quiet --package shunt
program=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/debug/shunt

for room in sw c h1 h2; do ip netns add "$name-$room"; done
for number in 1 2; do
    ip -n "$name-sw" link add "p$number" type veth peer name eth0 netns "$name-h$number"
    ip -n "$name-sw" link set "p$number" up
    ip -n "$name-h$number" addr add "10.0.0.$number/24" dev eth0
    ip -n "$name-h$number" link set eth0 up
    cat >>"$folder/ports" <<PORT
[[datapath.port]]
number = $number
name = "p$number"
driver = "af_packet"
device = "p$number"
workers = [0]
PORT
done
# The controllers' network.
ip -n "$name-sw" link add ctl type veth peer name eth0 netns "$name-c"
ip -n "$name-sw" addr add 10.1.0.1/24 dev ctl
ip -n "$name-sw" link set ctl up
ip -n "$name-sw" link set lo up
ip -n "$name-c" addr add 10.1.0.2/24 dev eth0
ip -n "$name-c" link set eth0 up
cat - "$folder/ports" >"$folder/switch.toml" <<CONFIG
control = "$folder/control.sock"
[[worker]]
[[datapath]]
id = 1
[datapath.openflow]
controllers = ["tcp:10.1.0.2:6653"]
listen = "10.1.0.1:6654"
fail_mode = "secure"
CONFIG

# It only listens and answers: flows are ours.
cat >"$folder/peer.py" <<'PEER'
import socket, struct, sys, time
HELLO = struct.pack("!BBHI", 4, 0, 8, 1)
DUMP = struct.pack("!BBHIHHI", 4, 18, 56, 2, 1, 0, 0) + struct.pack("!B3xII4xQQHHI", 255, 2**32 - 1, 2**32 - 1, 0, 0, 1, 4, 0)
what = sys.argv[1]
if what == "called":
    listener = socket.create_server(("10.1.0.2", 6653))
    # None of them is closed from this side.
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
sw() { ip netns exec "$name-sw" "$@"; }
peer() {
    ip netns exec "$name-c" python3 "$folder/peer.py" "$1" >"$folder/$1.log" 2>&1 &
    pids+=($!)
}
# wait_for SECONDS WHAT COMMAND...
wait_for() {
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || fail "waited in vain until $what"
        sleep 0.1
    done
}
lines() {
    local count
    count=$(grep -c -s -- "$2" "$folder/$1.log") || true
    [ "${count:-0}" -ge "$3" ]
}
RUST_LOG=info ip netns exec "$name-sw" "$program" run -c "$folder/switch.toml" 2>"$folder/switch.log" &
switch=$!
pids+=("$switch")
sockets() { find "/proc/$switch/fd" -lname 'socket:*' 2>/dev/null | wc -l; }
has_sockets() { [ "$(sockets)" -eq "$1" ]; }
wait_for 10 'the switch is ready' lines switch 'ready' 1
ofctl() { sw ovs-ofctl -O OpenFlow13 --timeout=10 "$@"; }
{
    printf 'in_port=1,actions=output:2\nin_port=2,actions=output:1\n'
    for n in $(seq 20000); do printf 'table=1,ip,nw_dst=10.%d.%d.1,actions=output:2\n' "$((n / 250))" "$((n % 250))"; done
} >"$folder/flows"
ofctl add-flows tcp:10.1.0.1:6654 "$folder/flows"
flows() { ofctl --no-names --no-stats dump-flows tcp:10.1.0.1:6654 | sort; }
flows >"$folder/before"

# While it calls in vain it may have a socket for that.
sleep 0.5
few=$(sockets)
for kind in called silent idle dump; do peer "$kind"; done
for kind in silent idle dump called; do wait_for 10 "$kind is connected" lines "$kind" "$kind" 1; done
wait_for 10 'four are connected' has_sockets "$((few + 4))"
sleep 1

ip netns exec "$name-h1" ping -q -i 0.01 10.0.0.2 >"$folder/ping.log" &
ping=$!
pids+=("$ping")
ip -n "$name-c" link set eth0 down
printf 'ok: four controllers vanish\n'
began=$SECONDS
wait_for 20 'who said nothing is given up' lines switch 'closed: no HELLO came in time' 1
wait_for 45 'the others are given up' lines switch 'closed: the peer did not answer an echo request in time' 3
printf 'ok: all are given up after %s s\n' "$((SECONDS - began))"
wait_for 20 'no connection is left' has_sockets "$few"

ip -n "$name-c" link set eth0 up
wait_for 60 'the called one is found again' lines called 'called' 2
printf 'ok: the called one is found again after %s s\n' "$((SECONDS - began))"
kill -INT "$ping"
wait "$ping" || true
grep -q ' 0% packet loss' "$folder/ping.log" || fail 'packets were lost'
flows >"$folder/after"
cmp -s "$folder/before" "$folder/after" || fail 'the flow table has changed'
printf 'ok: %s; the flow table is as it was\n' "$(grep 'packet loss' "$folder/ping.log")"
