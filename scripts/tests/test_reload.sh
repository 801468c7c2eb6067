#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: test_reload.sh [RELOADS]
#
# Changes of the configuration while two hosts exchange numbered packets. Ports are added, removed and changed
# by `shunt reload`, by SIGHUP and by `shunt port`. No packet between the hosts may be lost, repeated or
# reordered, all flows and their counters must stay, and a refused change must have no effect. RELOADS is the
# number of reloads with random differences; the default is 40. RELOAD_SEED is their seed.
#
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"
reloads=${1:-40}

cat >"$folder/watch.py" <<'WATCH'
"""Prints each port status that the switch reports: add, delete or modify, and the port's number and name."""
import socket, struct, sys
host, port = sys.argv[1].split(":")
peer = socket.create_connection((host, int(port)))
peer.sendall(struct.pack("!BBHI", 4, 0, 8, 1))
stream = peer.makefile("rb")
while True:
    version, kind, length, xid = struct.unpack("!BBHI", stream.read(8))
    body = stream.read(length - 8)
    if kind == 0:
        print("connected", flush=True)
    elif kind == 2:
        peer.sendall(struct.pack("!BBHI", 4, 3, length, xid) + body)
    elif kind == 12:
        (number,) = struct.unpack_from("!I", body, 8)
        name = body[8 + 16 : 8 + 32].rstrip(b"\0").decode()
        print(["add", "delete", "modify"][body[0]], number, name, flush=True)
WATCH

# Two workers. Packets from h1 to h2 pass from one to the other.
worker='[[worker]]'
make_hosts 3
sed -i '/^number = 2$/,/^workers/s/^workers = .*/workers = [1]/' "$folder/ports"
# The section of the third port begins at line 13. The switch starts without the port.
sed -n '13,$p' "$folder/ports" >"$folder/third"
sed -i '13,$d' "$folder/ports"
start_switch secure
config=$folder/switch.toml
control() { "$shunt" --control "$folder/control.sock" "$@"; }
for n in 1 2 3; do
    for m in 1 2 3; do in_room "h$n" ip neigh replace "10.0.0.$m" lladdr "$(mac "$m")" dev eth0; done
done
{
    printf 'priority=9,cookie=7,in_port=1,ip,nw_dst=10.0.0.2 actions=output:2\n'
    printf 'priority=9,in_port=2,ip,nw_dst=10.0.0.1 actions=output:1\n'
    printf 'priority=9,ip,nw_dst=10.0.0.3 actions=output:3\npriority=9,in_port=3,ip,nw_dst=10.0.0.1 actions=output:1\n'
    for ((n = 0; n < 1000; n++)); do
        printf 'priority=8,ip,nw_dst=10.1.%s.%s actions=output:%s\n' $((n / 250)) $((n % 250)) $((n % 3 + 1))
    done
} >"$folder/start.flows"
control flows load "$folder/start.flows" >"$folder/load.log"
control flows dump >"$folder/flows-before"
background watch sw python3 "$folder/watch.py" "$openflow_listen"
wait_until 'the watcher is connected' logged watch connected

traffic=$PWD/scripts/tests/reload_traffic.py
background receiver h2 python3 "$traffic" receive 9000
receiver=$started
wait_until 'the receiver listens' logged receiver listening
background sender h1 python3 "$traffic" send 10.0.0.2 9000 2000
sender=$started

# Step by step: a port comes, carries traffic, and goes.
# reported TEXT: returns whether the watcher saw this port status.
reported() { logged watch "^$1\$"; }
cat "$folder/third" >>"$config"
control reload >"$folder/reload.log"
grep -q 'port 3 (p3) is added, af_packet p3' "$folder/reload.log" || fail 'the port was not added'
wait_until 'controllers learn of the new port' reported 'add 3 p3'
pings 3 1 || fail 'h3 does not reach h1 over the new port'
ok 'a reload adds a port, which carries traffic'
control port set p3 --name core --queue id=1,max_rate_kbps=50000 >"$folder/set.log"
wait_until 'controllers learn of the new name' reported 'modify 3 core'
control show ports | grep core >/dev/null || fail 'the port has its old name'
pings 3 1 || fail 'h3 does not reach h1 through the egress queues'
control reload >"$folder/reload.log"
grep -q 'has the name p3' "$folder/reload.log" || fail 'the reload did not restore the name'
sed -i '/^number = 3$/,$d' "$config"
sed -i '$d' "$config"
hangup() { kill -HUP "$switch"; }
hangup
wait_until 'controllers learn that the port is gone' reported 'delete 3 p3'
wait_until 'the result of SIGHUP is in the log' logged switch 'SIGHUP: port 3 (p3) is removed'
kill -0 "$switch" || fail 'SIGHUP ended the switch'
ok 'SIGHUP removes the port, and shunt port set changes one'

# The command line writes changes back, and keeps comments.
printf '# the last line\n' >>"$config"
control port add 3 --name p3 --driver af_packet --device p3 --workers 0 --write >"$folder/add.log"
grep -q '^device = "p3"$' "$config" || fail 'the file was not written back'
grep -q '^# the last line$' "$config" || fail 'a comment was lost'
[ "$(control reload)" = 'nothing changed' ] || fail 'the file and the switch differ after --write'
pings 3 1 || fail 'h3 does not reach h1 over the port of the command line'
control port remove 3 --write >"$folder/remove.log"
! grep -q 'device = "p3"' "$config" || fail 'the port is still in the file'
[ "$(control reload)" = 'nothing changed' ] || fail 'the file and the switch differ after the removal'
if control port add 4 --name p4 --driver af_packet --device nosuch0 --workers 0 --write 2>"$folder/absent.log"; then
    fail 'a port without a device was added'
fi
grep -q nosuch0 "$folder/absent.log" || fail "the message does not name the device: $(cat "$folder/absent.log")"
! grep -q nosuch0 "$config" || fail 'a refused port was written to the file'
ok 'shunt port adds and removes a port, and writes the file'

"$PWD/scripts/tests/reload_differences.py" "$shunt" "$config" "$reloads" "${RELOAD_SEED:-1}" >"$folder/differences.log" 2>&1 ||
    fail "a reload had another result than expected: $(cat "$folder/differences.log")"
ok "$(cat "$folder/differences.log")"

kill -TERM "$sender"
wait_until 'the sender ends' test -s "$folder/sender.log"
kill -TERM "$receiver"
wait_until 'the receiver ends' logged receiver received
control show counters >"$folder/counters.log"
control show ports >"$folder/ports.log"
control flows dump >"$folder/flows-after"
python3 - "$folder" >"$folder/check.log" <<'CHECK' ||
import json, sys
folder = sys.argv[1]
sent = int(open(f"{folder}/sender.log").read())
seen = json.loads(open(f"{folder}/receiver.log").read().splitlines()[-1])
print(f"sent {sent}, {seen}")
right = seen["received"] == sent and not seen["missing"] and not seen["repeated"] and not seen["disordered"]
sys.exit(not right)
CHECK
    fail "packets of unchanged ports were affected: $(cat "$folder/check.log")"
cmp -s "$folder/flows-before" "$folder/flows-after" || fail 'flows were changed'
sent=$(cat "$folder/sender.log")
control show flows | grep 'cookie=0x7,' | grep "n_packets=$sent," >/dev/null ||
    fail "the flow did not count all $sent packets: $(control show flows | grep 'cookie=0x7,')"
ok "no packet of $sent was lost, repeated or reordered, and all flows and counters are there"
