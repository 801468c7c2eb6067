#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: test_upgrade.sh [UPGRADES]
#
# Upgrades of a running switch (`shunt upgrade`) while two hosts exchange numbered packets both ways. No
# packet may be lost, repeated or reordered. Rules, groups, meters and learned MACs stay, counters go on, and
# the sockets accept at all times. A new program that fails leaves the old one forwarding. Port 2 belongs to
# the driver af_xdp, the other ports to af_packet. UPGRADES is the number of upgrades in a row; the default
# is 3. UPGRADE_FLOWS and UPGRADE_GROUPS are the numbers of further flows and groups, and UPGRADE_PPS the
# rate in each direction.
#
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"
upgrades=${1:-3}
more_flows=${UPGRADE_FLOWS:-500}
more_groups=${UPGRADE_GROUPS:-20}
pps=${UPGRADE_PPS:-2000}

# Two workers. Packets from h1 to h2 pass from one to the other.
worker='[[worker]]'
top='upgrade = true'
settings="[datapath.store]
path = \"$folder/store\""
make_hosts 3
sed -i '/^number = 2$/,/^workers/{
    s/^workers = .*/workers = [1]/
    s/^driver = .*/driver = "af_xdp"/
}' "$folder/ports"
start_switch secure
config=$folder/switch.toml
control() { "$shunt" --control "$folder/control.sock" "$@"; }
# switch_pid: prints the process ID of the program that forwards.
switch_pid() { sed -n 's/.* as process \([0-9]*\)$/\1/p' "$folder/upgrade.log" | tail -n 1; }
# ended PID: returns whether the process has ended.
ended() { [ ! -d "/proc/$1" ] || grep '^State:.Z' "/proc/$1/status" >/dev/null; }
for n in 1 2 3; do
    for m in 1 2 3; do in_room "h$n" ip neigh replace "10.0.0.$m" lladdr "$(mac "$m")" dev eth0; done
done
{
    printf 'meter meter=5,pktps,burst,stats,bands=type=drop,rate=10000000,burst_size=10000000\n'
    printf 'group group_id=7,type=all,bucket=actions=output:2\n'
    for ((n = 0; n < more_groups; n++)); do printf 'group group_id=%s,type=all,bucket=actions=output:3\n' $((100 + n)); done
    printf 'priority=9,cookie=7,in_port=1,ip,nw_dst=10.0.0.2 actions=meter:5,group:7\n'
    printf 'priority=9,cookie=8,in_port=2,ip,nw_dst=10.0.0.1 actions=output:1\n'
    printf 'priority=9,in_port=3 actions=NORMAL\npriority=9,in_port=1,ip,nw_dst=10.0.0.3 actions=NORMAL\n'
    python3 -c '
import sys
for n in range(int(sys.argv[1])):
    print(f"priority=8,ip,nw_dst=10.{1 + n // 62500}.{n // 250 % 250}.{n % 250} actions=output:{n % 3 + 1}")' "$more_flows"
} >"$folder/start.flows"
control flows load "$folder/start.flows" >"$folder/load.log"
control flows dump >"$folder/flows-before"
# h3 sends a packet, so that its MAC is learned.
in_room h3 ping -q -c 1 -W 1 10.0.0.2 >"$folder/learn.log" || true
is_learned() { control show macs | grep "$(mac "$1")" >/dev/null; }
wait_until 'the MAC of h3 is learned' is_learned 3

traffic=$PWD/scripts/tests/reload_traffic.py
for way in 1-2 2-1; do
    from=${way%-*} to=${way#*-}
    background "receiver$to" "h$to" python3 "$traffic" receive 9000
    declare "receiver$to=$started"
    wait_until 'the receiver listens' logged "receiver$to" listening
    background "sender$from" "h$from" python3 "$traffic" send "10.0.0.$to" 9000 "$pps"
    declare "sender$from=$started"
done

# The listener for controllers must accept at all times.
cat >"$folder/connect.py" <<'CONNECT'
"""Connects again and again, until SIGTERM. Prints the number of connections, or the first refusal."""
import signal, socket, sys, time
over = False
def end(*_):
    global over
    over = True
signal.signal(signal.SIGTERM, end)
host, port = sys.argv[1].split(":")
count = 0
while not over:
    socket.create_connection((host, int(port)), timeout=10).close()
    count += 1
    time.sleep(0.005)
print("connected", count, flush=True)
CONNECT
background connect sw python3 "$folder/connect.py" "$openflow_listen"
connect=$started

upgrade() { control upgrade "$@" >>"$folder/upgrade.log" 2>"$folder/refused.log"; }
old=$switch
touch "$folder/upgrade.log"
for ((n = 0; n < upgrades; n++)); do
    upgrade || fail "the upgrade was refused: $(cat "$folder/refused.log")"
    wait_until 'the old process ends' ended "$old"
    old=$(switch_pid)
    kill -0 "$old" || fail 'the new process has ended'
    control show ports >"$folder/ports.log"
    control flows dump >"$folder/flows-after"
    cmp -s "$folder/flows-before" "$folder/flows-after" || fail 'the upgrade changed flows'
done
switch=$old
grep 'forwarded for' "$folder/upgrade.log" | sed 's/^/interruption: /'
ok "$upgrades upgrades in a row, with all flows, over the same control socket"

# Failures leave the running program forwarding.
if upgrade --program /nonexistent/shunt; then fail 'a missing program was started'; fi
grep -q 'No such file' "$folder/refused.log" || fail "the reason is missing: $(cat "$folder/refused.log")"
if upgrade --program /bin/false; then fail 'a program that fails took over'; fi
grep -q 'has ended before' "$folder/refused.log" || fail "the reason is missing: $(cat "$folder/refused.log")"
cp "$config" "$folder/right.toml"
printf '[nonsense]\n' >>"$config"
if upgrade; then fail 'a program with a broken configuration took over'; fi
grep -q nonsense "$folder/refused.log" || fail "the reason is missing: $(cat "$folder/refused.log")"
cp "$folder/right.toml" "$config"
printf '#!/bin/sh\nkill -9 $$\n' >"$folder/killed"
chmod 755 "$folder/killed"
if upgrade --program "$folder/killed"; then fail 'a killed program took over'; fi
# These programs take part in an upgrade and end too early. The end of their name says when: after they got
# the sockets (offered), after they reported to be ready, or after the old process has stopped using its
# sockets (drained). Each time, the old process must go on without losing a packet.
cat >"$folder/ends-offered" <<'PROGRAM'
#!/usr/bin/env python3
import json, os, socket, sys
step, link = sys.argv[0].rsplit("-", 1)[1], socket.socket(fileno=os.dup(0))
def receive():
    return json.loads(socket.recv_fds(link, 1 << 20, 250)[0])
for _ in range(receive()["datapaths"]):
    for port in receive()["ports"]:
        if "sockets" in port["way"]:
            receive()
if step == "offered":
    sys.exit(1)
link.send(b'"ready"')
assert receive() == "take_over"
if step == "ready":
    sys.exit(1)
link.send(b'"switched"')
assert receive() == "drained"
PROGRAM
chmod 755 "$folder/ends-offered"
for step in offered ready drained; do
    [ "$step" = offered ] || cp "$folder/ends-offered" "$folder/ends-$step"
    if upgrade --program "$folder/ends-$step"; then fail "a program that ends when it is $step took over"; fi
    grep -q 'the running program goes on' "$folder/refused.log" || fail "unexpected: $(cat "$folder/refused.log")"
done
kill -0 "$switch" || fail 'a failed upgrade ended the switch'
[ "$(control reload)" = 'nothing changed' ] || fail 'the switch is not changed after a failed upgrade'
upgrade || fail "an upgrade after failures was refused: $(cat "$folder/refused.log")"
wait_until 'the old process ends' ended "$switch"
switch=$(switch_pid)
ok 'missing, failing, killed and misconfigured programs change nothing'

for n in 1 2; do
    from=sender$n to=receiver$((3 - n))
    kill -TERM "${!from}"
    wait_until 'the sender ends' test -s "$folder/$from.log"
    kill -TERM "${!to}"
    wait_until 'the receiver ends' logged "$to" received
done
kill -TERM "$connect"
wait_until 'the connections end' logged connect connected
python3 - "$folder" >"$folder/check.log" <<'CHECK' || fail "packets were affected: $(cat "$folder/check.log")"
import json, sys
folder = sys.argv[1]
right = True
for sender, receiver in (1, 2), (2, 1):
    sent = int(open(f"{folder}/sender{sender}.log").read())
    seen = json.loads(open(f"{folder}/receiver{receiver}.log").read().splitlines()[-1])
    lost = sent - seen["received"] + seen["repeated"]
    print(f"sent {sent}, lost {lost}, {seen}")
    right &= lost == 0 and not seen["missing"] and not seen["repeated"] and not seen["disordered"]
sys.exit(not right)
CHECK
cat "$folder/check.log"
one=$(cat "$folder/sender1.log") two=$(cat "$folder/sender2.log")
control show flows >"$folder/flows.log"
grep 'cookie=0x7,' "$folder/flows.log" | grep "n_packets=$one," >/dev/null ||
    fail "the flow did not count all $one packets: $(grep 'cookie=0x7,' "$folder/flows.log")"
grep 'cookie=0x8,' "$folder/flows.log" | grep "n_packets=$two," >/dev/null ||
    fail "the flow did not count all $two packets: $(grep 'cookie=0x8,' "$folder/flows.log")"

ofctl dump-group-stats "tcp:$openflow_listen" group_id=7 >"$folder/group.log"
grep -q "packet_count=$one," "$folder/group.log" || fail "the group's counter: $(cat "$folder/group.log")"
ofctl meter-stats "tcp:$openflow_listen" meter=5 >"$folder/meter.log"
grep -q "packet_in_count:$one " "$folder/meter.log" || fail "the meter's counter: $(cat "$folder/meter.log")"
control show ports --json >"$folder/ports.json"
python3 -c '
import json, sys
ports = json.load(open(sys.argv[1]))["ports"]
one, two = int(sys.argv[2]), int(sys.argv[3])
for port, rx, tx in (0, one, two), (1, two, one):
    assert ports[port]["rx_packets"] >= rx and ports[port]["tx_packets"] >= tx, (ports[port], rx, tx)
' "$folder/ports.json" "$one" "$two" || fail 'the counters of ports'
is_learned 3 || fail 'a learned MAC is lost'
pings 3 1 || fail 'h3 does not reach h1'
ok 'no packet was lost, repeated or reordered, and all counters go on'

# After a restart, the rules come from the store.
kill -TERM "$switch"
wait_until 'the switch ends' ended "$switch"
background again sw "$shunt" run -c "$config"
wait_until 'the switch is ready' logged again ready
control flows dump >"$folder/flows-after"
cmp -s "$folder/flows-before" "$folder/flows-after" || fail 'the store has other flows'
ok 'the store has all flows after the upgrades'
