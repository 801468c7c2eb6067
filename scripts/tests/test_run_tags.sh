#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tag-and-Forward with a running controller: shunt-controller discovers a fat tree of k = 4 with twenty switches
# in one process and sets all gates. Hosts reach each other with tags. The controller names a cable that is
# missing. After a failure of a link, traffic returns. A restart of the controller changes nothing, also while
# links do not work.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/tests/live.sh
source scripts/tests/live.sh

# Edge switches are 1 to 8, aggregation switches 9 to 16, core switches 17 to 20. Ports 1 and 2 lead down, and
# ports 3 and 4 up. Port N of a core switch leads to pod N.
links=()
for pod in 0 1 2 3; do
    for plane in 0 1; do
        above=$((9 + 2 * pod + plane))
        for n in 0 1; do
            links+=("$((1 + 2 * pod + n)):$((3 + plane)) $above:$((1 + n))")
            links+=("$above:$((3 + n)) $((17 + 2 * plane + n)):$((pod + 1))")
        done
    done
done
make_network 20 "${links[@]}" -- 1:1 1:2 2:1 8:2
# Only the last switch has the queue that a QID selects at the end of this test.
sed -i '/^device = "s20p/{n;a [[datapath.port.queue]]\nid = 5
}' "$folder/switches.toml"
start_switches
# The cable is between an edge switch and an aggregation switch, in a pod without hosts of this test.
ip -n "$prefix-sw" link set s3p3 down
start_controller tag-and-forward --lldp-period 1
wait_until 'the missing cable is named' logged app 'waiting for a fat tree: a cable is missing between .*switch 3 and .*switch b'
ok 'a missing cable is named'

ip -n "$prefix-sw" link set s3p3 up
wait_until 'all switches are as planned' logged app 'all 20 switches are as planned'
grep -o 'all 20 switches.*' "$folder/app.log" | head -n 1
for port in s2p3 s2p4 s8p3 s8p4; do captured "$port" inbound "$port"; done
captured p4 'ether proto 0xff1f' at-h4
pings() { in_room "h$1" ping -c 1 -W 2 "10.0.0.$2"; }
for pair in '1 2' '1 3' '1 4' '3 4'; do
    # shellcheck disable=SC2086
    wait_until "pings pass between hosts $pair" pings $pair
done
tagged() { [ $(($(seen "$1p3" "$2") + $(seen "$1p4" "$2"))) -gt 0 ]; }
# The last words are UP and DOWN of a tag. The switch of h4 has one server port, which has its first gate, 30.
wait_until 'tags without UP arrive within the pod' tagged s2 'ether[12:2] = 0xff1f and ether[14:4] = 0 and ether[18:2] = 6'
wait_until 'tags with UP arrive at another pod' tagged s8 'ether[12:2] = 0xff1f and ether[14:4] != 0 and ether[18:2] & 0x1fff = 30'
[ "$(seen at-h4 '')" = 0 ] || fail 'tags reach a host'
ok 'hosts reach each other with tags'

begin_pings 1 4
lines=$(grep -c 'changes' "$folder/app.log")
kill "$app"
wait "$app" || true
: >"$folder/app.log"
start_controller tag-and-forward --lldp-period 1
wait_until 'the controller has found the tree again' logged app 'all 20 switches are as planned'
lost=$(end_pings)
[ "$lost" = 0 ] || fail "$lost pings were lost during a restart of the controller"
[ "$(grep -c 'changes' "$folder/app.log" || true)" = 0 ] || fail 'the controller has changed switches after its restart'
[ "$lines" -gt 0 ]
ok 'a restart of the controller changes nothing and loses no packet'

# A core link of h1's pod fails. The groups of all edge switches lose the tags that lead through it.
begin_pings 1 4
for port in s9p3 s9p4 s10p3; do ip -n "$prefix-sw" link set "$port" down; done
wait_until 'groups of the edge switch have changed' logged app 'switch 1: [1-9][0-9]* changes'
sleep 1
lost=$(end_pings)
[ "$lost" -le 50 ] || fail "$lost pings were lost after failures of three links"
for pair in '1 4' '3 4' '4 1'; do
    # shellcheck disable=SC2086
    pings $pair || fail "no pings pass between hosts $pair after failures"
done
ok "traffic is back after failures of three links; $lost pings of 50 per second were lost"

# The restarted controller knows the tree from the gates, and finds the three links missing.
sleep 2
begin_pings 1 4
kill "$app"
wait "$app" || true
mv "$folder/app.log" "$folder/app-2.log"
: >"$folder/app.log"
start_controller tag-and-forward --lldp-period 1
wait_until 'the controller has taken over the tree' logged app 'all 20 switches are as planned'
lost=$(end_pings)
[ "$lost" = 0 ] || fail "$lost pings were lost during a restart of the controller with failed links"
if logged app 'changes'; then fail 'the controller has changed switches after its restart with failed links'; fi
logged app 'taken over from the gates of the switches: the link from port 3 of switch 9 .*does not work' ||
    fail 'the links that do not work are not named'
ok 'a restart of the controller while links do not work changes nothing and loses no packet'
before=$(grep -c 'link found' "$folder/app.log")
for port in s9p3 s9p4 s10p3; do ip -n "$prefix-sw" link set "$port" up; done
wait_until 'the links are found again' has_lines app 'link found' $((before + 3))
wait_until 'groups of the edge switch use them again' logged app 'switch 1: [1-9][0-9]* changes'
pings 1 4 || fail 'no pings pass after the links work again'
ok 'links that work again are used again'

kill "$app"
wait "$app" || true
mv "$folder/app.log" "$folder/app-3.log"
: >"$folder/app.log"
start_controller tag-and-forward --lldp-period 1 --qid 46=5
for place in 'switch 1 .* at ports 1, 2, 3 and 4' 'switch 13 .* at ports 1, 2, 3 and 4'; do
    wait_until 'missing queues are named' logged app "${place/ .* / has no queue 5 }; packets with DSCP 46 use queue 0 there"
done
if logged app 'switch 14 has no queue'; then fail 'a queue is named that the switch has'; fi
in_room h1 ping -c 1 -W 2 -Q 184 10.0.0.4 || fail 'packets with DSCP 46 do not arrive'
ok 'queues that a switch lacks are named'
if grep -q Traceback "$folder"/app*.log; then fail 'the controller has an internal error'; fi
