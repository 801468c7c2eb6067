#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: test_upgrade_kinds.sh
#
# Upgrades of a switch that uses much of what an upgrade must continue: two datapaths with a patch port between
# them, the user nobody, a service manager, shaped queues of both drivers, a controller over TLS, metrics, a
# store, and a mirror to a file. An upgrade without traffic must change no counter. In upgrades under traffic, no
# packet may be lost, repeated or reordered, although queues are full and packets pass both datapaths.
#
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

command -v openssl >/dev/null || fail 'openssl is missing: run scripts/setup.sh test first'
readonly limit_ms=4000 rate_kbps=1000
# The user of the switch needs its folder.
chmod 755 "$folder"
chown nobody "$folder"
shunt=$(test_build)
# h1 is at datapath 1, h2 at datapath 2. h3 and h4 are behind shaped queues of datapath 1.
make_hosts 4
for n in 1 2 3 4; do
    for m in 1 2 3 4; do in_room "h$n" ip neigh replace "10.0.0.$m" lladdr "$(mac "$m")" dev eth0; done
done

# certificate NAME: issues a certificate of the authority for 127.0.0.1.
certificate() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" \
        -keyout "$folder/$1.key" -out "$folder/$1.csr" 2>>"$folder/openssl.log"
    printf 'subjectAltName = IP:127.0.0.1\nbasicConstraints = CA:FALSE\n' >"$folder/extensions"
    openssl x509 -req -in "$folder/$1.csr" -CA "$folder/ca.pem" -CAkey "$folder/ca.key" -CAcreateserial \
        -days 30 -extfile "$folder/extensions" -out "$folder/$1.pem" 2>>"$folder/openssl.log"
}
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=ca \
    -keyout "$folder/ca.key" -out "$folder/ca.pem" 2>>"$folder/openssl.log"
certificate switch
certificate controller
chown nobody "$folder/switch.key"

# port NUMBER DRIVER DEVICE WORKER: prints a section with the name pNUMBER.
port() {
    printf '[[datapath.port]]\nnumber = %s\nname = "p%s"\ndriver = "%s"\ndevice = "%s"\nworkers = [%s]\n' "$1" "$@"
}
# shaped: prints the queues of a port.
shaped() { printf '[[datapath.port.queue]]\nid = 0\n[[datapath.port.queue]]\nid = 1\nmax_rate_kbps = %s\nlimit_frames = 2048\n' "$rate_kbps"; }
{
    cat <<CONFIG
upgrade = true
metrics = "127.0.0.1:9494"
[security]
user = "nobody"
[tls]
certificate = "$folder/switch.pem"
private_key = "$folder/switch.key"
ca = "$folder/ca.pem"
[[worker]]
[[worker]]
[[datapath]]
id = 1
control = "$folder/s1.sock"
[datapath.openflow]
listen = "127.0.0.1:6661"
controllers = ["ssl:127.0.0.1:6653"]
fail_mode = "secure"
[datapath.store]
path = "$folder/store1"
[[datapath.mirror]]
name = "span"
ingress = ["p1"]
file = "$folder/span.pcapng"
snap_bytes = 60
CONFIG
    port 1 af_packet p1 0
    port 3 af_packet p3 0
    shaped
    port 4 af_xdp p4 1
    shaped
    port 9 patch trunk 1
    cat <<CONFIG
[[datapath]]
id = 2
control = "$folder/s2.sock"
[datapath.openflow]
listen = "127.0.0.1:6662"
controllers = ["tcp:127.0.0.1:6643"]
fail_mode = "secure"
[datapath.store]
path = "$folder/store2"
CONFIG
    port 2 af_packet p2 0
    port 9 patch trunk 1
} >"$folder/switch.toml"

# Controllers that only say hello and answer echo requests. They print each connection, and each lost one.
cat >"$folder/controller.py" <<'CONTROLLER'
"""controller.py PORT [CERTIFICATE KEY CA]"""
import socket, ssl, struct, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
context = None
if len(sys.argv) > 2:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=sys.argv[4])
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    context.verify_mode = ssl.CERT_REQUIRED
print("listening", flush=True)
while True:
    link = server.accept()[0]
    try:
        if context:
            link = context.wrap_socket(link, server_side=True)
        link.sendall(struct.pack("!BBHI", 4, 0, 8, 1) + struct.pack("!BBHI", 4, 5, 8, 2))
        stream = link.makefile("rb")
        while header := stream.read(8):
            _, kind, length, number = struct.unpack("!BBHI", header)
            body = stream.read(length - 8)
            if kind == 6:
                print("datapath", int.from_bytes(body[:8], "big"), flush=True)
            if kind == 2:
                link.sendall(struct.pack("!BBHI", 4, 3, length, number) + body)
        print("closed", flush=True)
    except OSError as error:
        print("lost", error, flush=True)
    link.close()
CONTROLLER
background secure sw python3 "$folder/controller.py" 6653 "$folder/controller.pem" "$folder/controller.key" "$folder/ca.pem"
background plain sw python3 "$folder/controller.py" 6643
for name in secure plain; do wait_until 'the controller listens' logged "$name" listening; done

readonly manager=$folder/notify.sock
background reports sw scripts/tests/notified.py "$manager"
wait_until 'the service manager listens' [ -S "$manager" ]
export NOTIFY_SOCKET=$manager WATCHDOG_USEC=$((limit_ms * 1000))
background switch sw "$shunt" run -c "$folder/switch.toml"
unset NOTIFY_SOCKET WATCHDOG_USEC
switch=$started
readonly first=$started
wait_until 'the switch is ready' logged switch 'metrics at'
# privileges: prints the user, the capabilities and the filter of each kind of thread.
privileges() {
    local task name
    for task in "/proc/$switch/task"/*; do
        name=$(cat "$task/comm")
        # The thread that compiles tables comes and goes.
        [ "$name" != bases ] || continue
        awk -v name="$name" '/^(Uid|Gid|Groups|Cap[A-Z].*|NoNewPrivs|Seccomp):/ { print name, $0 }' "$task/status"
    done | sort -u
}
privileges >"$folder/privileges-before"
grep -q "^worker-0 Uid:.$(id -u nobody)" "$folder/privileges-before" || fail 'the switch does not run as nobody'

# connections NAME: prints how often a datapath has connected to the controller.
connections() { grep -c '^datapath' "$folder/$1.log" || true; }
has_connections() { [ "$(connections "$1")" -ge "$2" ]; }
for name in secure plain; do wait_until "the controller $name is connected" has_connections "$name" 1; done
logged secure 'datapath 1' || fail 'another datapath connected over TLS'
has_link() { say "$1" show ports --json | grep '"link_up":true,[^}]*"number":9' >/dev/null; }
for id in 1 2; do wait_until 'the patch port is up' has_link "$id"; done

# Numbered packets of h1 to h2 pass both datapaths, those to h3 and h4 a shaped queue each.
say 1 flows load - >"$folder/load.log" <<'FLOWS'
meter meter=5,pktps,burst,stats,bands=type=drop,rate=10000000,burst_size=10000000
group group_id=7,type=all,bucket=actions=output:9
table=0,priority=9,cookie=12,in_port=1,udp,nw_dst=10.0.0.2 actions=meter:5,goto_table:1
table=1,priority=9,cookie=112,udp actions=group:7
table=0,priority=9,cookie=13,in_port=1,udp,nw_dst=10.0.0.3 actions=set_queue:1,output:3
table=0,priority=9,cookie=14,in_port=1,udp,nw_dst=10.0.0.4 actions=set_queue:1,output:4
table=0,priority=9,cookie=21,in_port=9,udp actions=output:1
table=0,priority=1 actions=NORMAL
FLOWS
say 2 flows load - >"$folder/load.log" <<'FLOWS'
meter meter=6,pktps,burst,stats,bands=type=drop,rate=10000000,burst_size=10000000
group group_id=8,type=all,bucket=actions=output:2
table=0,priority=9,cookie=12,in_port=9,udp actions=meter:6,group:8
table=0,priority=9,cookie=21,in_port=2,udp actions=output:9
table=0,priority=1 actions=NORMAL
FLOWS
for n in 2 3 4; do in_room "h$n" ping -q -c 3 -i 0.01 -W 1 10.0.0.1 >"$folder/ping.log" || fail "h$n does not reach h1"; done

traffic=$PWD/scripts/tests/reload_traffic.py
# send WAY PPS [BURST]: begins to send numbered packets. WAY has the numbers of both hosts.
send() {
    background "receiver$1" "h${1#?}" python3 "$traffic" receive "90$1"
    declare -g "receiver$1=$started"
    wait_until 'the receiver listens' logged "receiver$1" listening
    background "sender$1" "h${1%?}" python3 "$traffic" send "10.0.0.${1#?}" "90$1" "${@:2}"
    declare -g "sender$1=$started"
}
waiting() {
    say 1 show ports --json | python3 -c '
import json, sys
print(min(sum(queue["waiting"] for queue in port["queues"])
          for port in json.load(sys.stdin)["ports"] if port["number"] in (3, 4)))'
}
frames_wait() { [ "$(waiting)" -gt 50 ]; }
no_frame_waits() {
    ! say 1 show ports --json | grep '"waiting":[1-9]' >/dev/null
}
ended() { [ ! -d "/proc/$1" ] || grep '^State:.Z' "/proc/$1/status" >/dev/null; }
# upgrade ID [OPTION...]: upgrades by the control socket of this datapath.
upgrade() {
    say "$1" upgrade "${@:2}" >"$folder/upgrade.log" 2>&1 || fail "the upgrade was refused: $(cat "$folder/upgrade.log")"
    wait_until 'the old process ends' ended "$switch"
    note_process
}
# note_process: sets $switch to the process ID of the program that forwards.
note_process() {
    switch=$(sed -n 's/.* as process \([0-9]*\)$/\1/p' "$folder/upgrade.log")
    kill -0 "$switch" || fail 'the new process has ended'
}

# counts ID: prints everything that a datapath counts and has learned.
counts() {
    local page
    for page in flows tables macs ports counters; do say "$1" show "$page" --json; done | python3 -c '
import json, sys
# Times go on. Latencies, and what describes the process, begin again.
LEFT_OUT = {"age_s", "duration_ms", "raw", "gaps_aside", "gaps", "stolen_ns", "log_lines_written"}
def reduced(value):
    if isinstance(value, dict):
        return {key: reduced(one) for key, one in value.items() if key not in LEFT_OUT}
    return [reduced(one) for one in value] if isinstance(value, list) else value
for line in sys.stdin:
    print(json.dumps(reduced(json.loads(line)), sort_keys=True, indent=1))'
    for page in dump-group-stats meter-stats queue-stats dump-ports; do
        ofctl "$page" "tcp:127.0.0.1:666$1" | sed 's/duration[=:][0-9.]*s//; s/(xid=[^)]*)//'
    done
}

# After a burst, packets of 880 bits arrive almost as fast as they leave their queue, so frames wait for many
# seconds. A busy worker sends a little less than the rate, so the queue must have room for more.
readonly ways=(12 21 13 14) queue_pps=$((rate_kbps * 970 / 880))
begin_traffic() {
    send 12 1000
    send 21 1000
    send 13 "$queue_pps" 800
    send 14 "$queue_pps" 800
    wait_until 'frames wait in both shaped queues' frames_wait
}
# end_traffic: ends the senders, then the receivers. No packet may be lost, repeated or reordered. Adds the
# numbers of packets to `sent`.
declare -A sent=()
end_traffic() {
    local way from to
    for way in "${ways[@]}"; do
        from=sender$way
        kill -TERM "${!from}"
        wait_until 'the sender ends' test -s "$folder/$from.log"
    done
    wait_until 'the queues are empty' no_frame_waits
    for way in "${ways[@]}"; do
        to=receiver$way
        kill -TERM "${!to}"
    done
    for way in "${ways[@]}"; do
        from=$folder/sender$way.log to=$folder/receiver$way.log
        wait_until 'the receiver ends' logged "receiver$way" received
        python3 -c '
import json, sys
sent = int(open(sys.argv[1]).read())
seen = json.loads(open(sys.argv[2]).read().splitlines()[-1])
print(f"sent {sent}, {seen}")
sys.exit(sent == 0 or seen["received"] != sent or seen["repeated"] > 0 or seen["disordered"] > 0)
' "$from" "$to" >"$folder/check.log" || fail "packets of $way are affected: $(cat "$folder/check.log")"
        sent[$way]=$((${sent[$way]:-0} + $(cat "$from")))
        rm "$from" "$to"
    done
}

begin_traffic
end_traffic
for id in 1 2; do counts "$id" >"$folder/before$id.log"; done
upgrade 1
for id in 1 2; do
    counts "$id" >"$folder/after$id.log"
    diff "$folder/before$id.log" "$folder/after$id.log" >"$folder/changed.log" ||
        fail "an upgrade without traffic changed datapath $id"
done
ok 'counters, tables, groups, meters, queues and MACs of both datapaths are the same after an upgrade'

for id in 2 1; do
    begin_traffic
    upgrade "$id"
    grep 'forwarded for' "$folder/upgrade.log" | sed 's/^/interruption: /'
    end_traffic
done
# has ID COOKIE PACKETS: checks the counter of a flow.
has() {
    say "$1" show flows >"$folder/flows.log"
    grep "cookie=0x$2,.* n_packets=$3," "$folder/flows.log" >"$folder/found.log" ||
        fail "the flow with the cookie $2 of datapath $1 did not count $3 packets: $(cat "$folder/flows.log")"
}
for id in 1 2; do
    has "$id" "$(printf %x 12)" "${sent[12]}"
    has "$id" "$(printf %x 21)" "${sent[21]}"
    ofctl dump-group-stats "tcp:127.0.0.1:666$id" >"$folder/group.log"
    grep -q "packet_count=${sent[12]}," "$folder/group.log" || fail "the group's counter: $(cat "$folder/group.log")"
    ofctl meter-stats "tcp:127.0.0.1:666$id" >"$folder/meter.log"
    grep -q "packet_in_count:${sent[12]} " "$folder/meter.log" || fail "the meter's counter: $(cat "$folder/meter.log")"
done
for n in 3 4; do
    has 1 "$(printf %x $((10 + n)))" "${sent[1$n]}"
    ofctl queue-stats "tcp:127.0.0.1:6661" "$n" 1 >"$folder/queue.log"
    grep -q "pkts=${sent[1$n]}, errors=0" "$folder/queue.log" || fail "the queue's counter: $(cat "$folder/queue.log")"
done
ok 'under traffic, no packet is lost, repeated or reordered, and everything counts'

# A MAC that is learned while the new program prepares itself, after it got all others.
printf '#!/bin/sh\nsleep 1\nexec "%s" "$@"\n' "$shunt" >"$folder/slow"
chmod 755 "$folder/slow"
upgrade 1 --program "$folder/slow" &
upgrading=$!
sleep 0.5
in_room h1 python3 -c '
import socket
host = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
host.bind(("eth0", 0))
host.send(bytes.fromhex("020000000002" "020000000099" "88b5") + bytes(46))'
wait "$upgrading" || fail "the upgrade failed: $(cat "$folder/upgrade.log")"
note_process
say 1 show macs >"$folder/macs.log"
grep -q 02:00:00:00:00:99 "$folder/macs.log" || fail 'a MAC that was learned during the preparation is lost'
ok 'a MAC that is learned during the preparation is known afterwards'

# The file has all frames that port 1 received.
in_file() { tshark -r "$folder/span.pcapng" 2>"$folder/tshark.log" | wc -l; }
received=$(say 1 show ports --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["ports"][0]["rx_packets"])')
has_all_frames() { [ "$(in_file)" -eq "$received" ]; }
wait_within 5 "$received frames are in the file of the mirror" has_all_frames
say 1 show mirrors >"$folder/mirrors.log"
grep -q "span.pcapng, $received frames" "$folder/mirrors.log" || fail 'the mirror does not count the frames in its file'
ok "the file of the mirror has all $received frames of five processes"

for name in secure plain; do
    wait_until "the controller $name is connected again" has_connections "$name" 5
    [ "$(connections "$name")" -eq 5 ] || fail "the controller $name is connected more often than once for each process"
done
in_room sw curl --silent --fail http://127.0.0.1:9494/metrics >"$folder/metrics.log" || fail 'there are no metrics'
grep '^shunt_port_rx_packets_total{.*name="p1"' "$folder/metrics.log" >"$folder/found.log" || fail 'metrics of ports are missing'
grep -q " $received\$" "$folder/found.log" || fail "port 1 received $received packets, not $(cat "$folder/found.log")"
privileges >"$folder/privileges-after"
diff "$folder/privileges-before" "$folder/privileges-after" >"$folder/changed.log" || fail 'the privileges of threads are changed'
ok 'controllers connect again, over TLS too; metrics go on; the threads have no more privileges than before'

# Rules that are added now are in the stores.
for id in 1 2; do
    printf 'table=0,priority=7,cookie=77,in_port=9,udp,nw_dst=10.0.9.9 actions=drop\n' | say "$id" flows load - >"$folder/load.log"
    say "$id" flows dump >"$folder/flows$id"
done
kill -TERM "$switch"
wait_until 'the switch ends' ended "$switch"
if grep -E 'WARN|ERROR' "$folder/switch.log" >"$folder/problems.log"; then fail 'an upgrade caused a warning'; fi
background again sw "$shunt" run -c "$folder/switch.toml"
wait_until 'the switch is ready again' logged again 'metrics at'
for id in 1 2; do
    say "$id" flows dump | diff "$folder/flows$id" - >"$folder/changed.log" || fail "the store of datapath $id has other flows"
done
ok 'the stores have all flows after upgrades of the user nobody'

# The service manager takes reports only from the main process. It must always know which process this is.
wait_until 'the switch reports that it stops' logged reports 'STOPPING=1'
python3 - "$folder/reports.log" "$first" "$switch" "$limit_ms" >"$folder/check.log" 2>&1 <<'CHECK' || fail "reports: $(cat "$folder/check.log")"
import sys
main, last = int(sys.argv[2]), int(sys.argv[3])
limit = int(sys.argv[4]) / 1000
mains, ready, stops, fed, longest = [main], set(), [], None, 0.0
for line in open(sys.argv[1]):
    time, sender, report = line.split(maxsplit=2)
    time, sender, report = float(time), int(sender), report.strip()
    if sender != main:
        # An old process may still feed the watchdog for a moment.
        assert report == "WATCHDOG=1" and sender in mains, f"{sender} is not the main process: {line}"
        continue
    assert not stops, f"after the end: {line}"
    if report.startswith("MAINPID="):
        assert main in ready, f"before the process was ready: {line}"
        main = int(report.removeprefix("MAINPID="))
        mains.append(main)
    elif report == "READY=1":
        ready.add(main)
    elif report == "STOPPING=1":
        stops.append(main)
    elif report == "WATCHDOG=1":
        longest = max(longest, time - (fed or time))
        fed = time
assert mains[-1] == last and len(mains) == 5, f"main processes: {mains}, but the last one is {last}"
assert ready == set(mains), f"ready: {ready}, but main processes: {mains}"
assert stops == [last], f"stopped: {stops}"
assert longest < limit, f"the watchdog was not fed for {longest} s"
CHECK
ok 'the service manager knows the main process, and gets its reports'
