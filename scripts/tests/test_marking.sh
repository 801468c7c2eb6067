#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Low-latency entries from three sources: the cookie (ovs-ofctl), the experimenter instruction (os-ken with
# the package of controller/), and learning by the switch. While marks are added and removed, two hosts send
# numbered datagrams to each other. No datagram may be lost, duplicated or reordered.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

readonly python=target/tools/os-ken/bin/python
needs "$python"

make_hosts 2
# The worker is pinned, as sequence.py is, because packets that one CPU sends stay in order.
worker='cpu = 0'
# This test observes the fast-forwarding path, which path records would bypass.
settings='[datapath.express]
enabled = false
[datapath.low_latency]
cookie = "0x4c4c000000000000/0xffff000000000000"
learn = { enabled = true, min_pps = 200, window = "300ms", min_timeout = "10m" }'
start_switch secure

# show WHAT EXPRESSION: evaluates an expression on the output `d` of `shunt show WHAT --json`.
show() {
    in_room sw "$shunt" show "$1" --json -c "$folder/switch.toml" |
        python3 -c 'import json, sys; d = json.load(sys.stdin); print('"$2"')'
}
# Number of packets that stayed on the fast-forwarding path, and number of packets received.
path() { show ffp 'd["fast"], d["received"]'; }
hits() { show ffp 'sum(t["hits"] for t in d["tables"])'; }
records() { show ffp 'sum(t["records"] for t in d["tables"])'; }
# on_the_path: prints how many of at least 100 packets take the fast-forwarding path.
on_the_path() {
    local before received fast now end=$((SECONDS + 60))
    read -r before received < <(path)
    until read -r fast now < <(path) && [ "$now" -ge $((received + 100)) ]; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.02
    done
    echo $((fast - before))
}
on_path() { [ "$(on_the_path)" -ge 20 ]; }
off_path() { [ "$(on_the_path)" -eq 0 ]; }
flow() { in_room sw "$shunt" show flows -c "$folder/switch.toml" | grep "priority=$1,"; }
marked_as() { flow "$1" | grep -- "$2" >/dev/null; }
not_marked() {
    local line
    line=$(flow "$1") && ! grep -q low_latency <<<"$line"
}

udp=udp,in_port=1,nw_dst=10.0.0.0/24,actions=output:2
# Entries with a timeout below min_timeout are not learned. The test ends before these timeouts expire.
ofctl add-flows "tcp:$openflow_listen" - <<FLOWS
priority=1,in_port=1,idle_timeout=500,actions=output:2
priority=1,in_port=2,idle_timeout=500,actions=output:1
FLOWS
add() { ofctl add-flow "tcp:$openflow_listen" "$1"; }

background receiver2 h2 python3 scripts/tests/peers/sequence.py receive
receiver2=$started
background receiver1 h1 python3 scripts/tests/peers/sequence.py receive
receiver1=$started
wait_until 'the receivers are ready' logged receiver2 ready
wait_until 'the receivers are ready' logged receiver1 ready
# Neighbours must be known first, because a sender may drop a datagram that waits for ARP.
pings 1 2 || fail 'h1 does not reach h2'
background sender1 h1 python3 scripts/tests/peers/sequence.py send 10.0.0.2 1000
sender1=$started
background sender2 h2 python3 scripts/tests/peers/sequence.py send 10.0.0.1 200
sender2=$started

off_path || fail 'packets take the fast-forwarding path before anything is marked'
for _ in 1 2; do
    add "cookie=0x4c4c000000000001,idle_timeout=500,priority=10,$udp"
    marked_as 10 ' low_latency' || fail 'the cookie does not mark the entry'
    wait_until 'packets of the marked cookie take the path' on_path
    [ "$(hits)" -gt 0 ] || fail 'packets take the path although no record was hit'
    [ "$(records)" -gt 0 ] || fail 'packets take the path although there are no records'
    # A modification does not change the cookie.
    ofctl mod-flows "tcp:$openflow_listen" "$udp"
    marked_as 10 ' low_latency' || fail 'a modify removes the mark of the cookie'
    add "cookie=0x1,idle_timeout=500,priority=10,$udp"
    [ "$(records)" -eq 0 ] || fail 'records remain after the mark was removed'
    not_marked 10 || fail 'the mark remains although the cookie has changed'
    off_path || fail 'packets of an entry with another cookie take the path'
done
ok 'the cookie marks and unmarks an entry twice (ovs-ofctl)'

echo nothing >"$folder/word"
background marking sw env PYTHONPATH=controller/src "$python" lab/controllers/launch.py marking \
    --word-file "$folder/word"
# This other low-latency entry keeps the table on the fast-forwarding path. Packets of the application's flow
# must leave the path there.
add "cookie=0x4c4c000000000001,idle_timeout=500,priority=5,udp,in_port=1,nw_dst=10.9.0.0/16,actions=output:2"
wait_until 'the application reads its flow back' logged marking 'the switch reports nothing'
off_path || fail 'packets take the path although the file contains nothing'
for turn in 1 2; do
    reported() { [ "$(grep -c "the switch reports $1\$" "$folder/marking.log")" -ge "$turn" ]; }
    echo yes >"$folder/word"
    wait_until 'the switch reports yes' reported yes
    marked_as 20 ' low_latency' || fail 'the instruction does not mark the entry'
    wait_until 'packets take the path because of the instruction' on_path
    echo no >"$folder/word"
    wait_until 'the switch reports no' reported no
    not_marked 20 || fail 'the instruction does not remove the mark'
    off_path || fail 'packets take the path although the instruction forbids it'
done
if logged marking 'error'; then fail 'the switch refused a message'; fi
if logged marking 'Traceback'; then fail 'the application failed'; fi
flows >/dev/null || fail 'ovs-ofctl cannot read the flows'
ok 'the experimenter instruction marks and unmarks an entry twice (os-ken)'

ofctl del-flows "tcp:$openflow_listen" priority=20,in_port=1,udp --strict
# The flow lives long enough to be learned, and no other source marks it.
add "priority=10,$udp"
wait_until 'the busy flow is learned' marked_as 10 'low_latency=learned'
wait_until 'packets of the learned flow take the path' on_path
in_room sw "$shunt" flows dump -c "$folder/switch.toml" | grep priority=10,udp >"$folder/dumped"
if grep -q low_latency "$folder/dumped"; then fail 'a dump contains the mark of a learned flow'; fi
kill -TERM "$sender1"
wait "$sender1" || true
wait_until 'the idle flow loses its mark' not_marked 10
ok 'a busy flow is marked by learning, and loses the mark when it is idle'

kill -TERM "$sender2"
wait "$sender2" || true
kill -TERM "$receiver1" "$receiver2"
wait "$receiver1" "$receiver2" || true
for pair in '1 2' '2 1'; do
    read -r from to <<<"$pair"
    sent=$(sed -n 's/^sent //p' "$folder/sender$from.log")
    [ "$sent" -gt 100 ] || fail "h$from has sent only $sent datagrams"
    [ "$(tail -n 1 "$folder/receiver$to.log")" = "received $sent misplaced 0" ] ||
        fail "of $sent datagrams from h$from, h$to $(tail -n 1 "$folder/receiver$to.log")"
    ok "$sent datagrams from h$from to h$to: none lost, duplicated or reordered"
done
