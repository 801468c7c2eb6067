#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `shunt-controller run keyflow` discovers a network of four switches and loads KeyFlow into it. All hosts must
# reach each other by keys, also after a link has failed, a host has moved, the switches have lost their state,
# and while the controller is restarted. LLDP frames of a host must make no link.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/tests/live.sh
source scripts/tests/live.sh

# Switches 1 and 4 have hosts. From one to the other there is a path over 2, and another over 3.
make_network 4 '1:1 2:1' '1:2 3:1' '2:2 4:1' '3:2 4:2' '2:3 3:3' -- 1:9 4:9 1:8
start_switches
start_controller keyflow status --lldp-period 1
wait_until 'all links are found' has_lines app 'link found' 5
wait_until 'the network is planned' logged app 'are as planned'

# pings_all: sends pings between all hosts. Returns whether none is lost.
pings_all() {
    local a b
    for a in 1 2 3; do
        for b in 1 2 3; do
            if [ "$a" != "$b" ]; then without_loss "$a" "$b" || return 1; fi
        done
    done
}
wait_until 'the controller knows that ports lead to hosts' pings 1 2
wait_until 'the controller has learned all hosts' pings_all
pings_all || fail 'not all hosts reach each other'
ok 'all hosts reach each other'

for n in 2 3; do
    if say $n flows dump | grep -e 'dl_dst=' -e 'dl_src='; then fail "core switch $n has entries of hosts"; fi
done
say 1 flows dump | grep 'dl_dst=02:00:00:00:00:02 actions=push_key' >/dev/null || fail 'switch 1 pushes no key'
ok 'core switches have no entries of hosts'

in_room sw curl -sS http://127.0.0.1:8653/v1/status >"$folder/status.json"
"$python" - "$folder/status.json" <<'PYTHON' || fail "the status is wrong: $(cat "$folder/status.json")"
import json, sys
state = json.load(open(sys.argv[1], encoding="utf-8"))
(keyflow,) = [one for kind, one in state["applications"].items() if kind == "keyflow"]
assert len(keyflow["switches"]) == 4 and not keyflow["problems"], keyflow
assert all(one["state"] == "as planned" and one["id"] > 1 for one in keyflow["switches"].values()), keyflow
assert keyflow["routes"] == 2 and len(state["topology"]["links"]) == 5, state
PYTHON
ok 'the status reports IDs and routes'

# The path from 1 to 4 is over switch 2 or 3.
path=2
say 1 flows dump | grep 'dl_dst=02:00:00:00:00:02 actions=push_key.*,output:1$' >/dev/null || path=3
begin_pings 1 2
ip -n "$prefix-sw" link set "s4p$((path - 1))" down
sleep 1.5
lost=$(end_pings)
[ "$lost" -lt 25 ] || fail "$lost pings, of 50 per second, are lost when a link fails"
say 1 flows dump | grep "dl_dst=02:00:00:00:00:02 actions=push_key.*,output:$((4 - path))\$" >/dev/null || fail 'keys are not changed after a failure'
pings_all || fail 'pings are lost after the failure of a link'
ok "after the failure of a link there are new keys; $lost pings of 50 per second were lost"
ip -n "$prefix-sw" link set "s4p$((path - 1))" up
wait_until 'the link is found again' has_lines app 'link found' 6

# A restarted controller finds everything as it should be, and sends no changes.
begin_pings 1 2
kill "$app"
wait "$app" || true
mv "$folder/app.log" "$folder/app-1.log"
sleep 1
start_controller keyflow status --lldp-period 1
wait_until 'the restarted controller has planned the network' logged app 'are as planned'
sleep 1
lost=$(end_pings)
[ "$lost" -eq 0 ] || fail "$lost pings are lost while the controller is restarted"
if logged app ' changes$'; then fail 'the restarted controller changes switches'; fi
ok 'a restart of the controller loses no packets and changes nothing'
pings_all || fail 'pings are lost after the restart of the controller'

# Host 3 sends frames of a port of switch 2. Then hosts 2 and 3 pass frames on to each other.
in_room h3 "$python" scripts/tests/lldp_attacks.py forge 2 3
logged app 'LLDP frame at port 8 of switch 1 is not of this controller' || fail 'a forged LLDP frame is not reported'
in_room h2 "$python" scripts/tests/lldp_attacks.py relay "$prefix-h3" >"$folder/relay.log"
grep -q '^[1-9]' "$folder/relay.log" || fail 'no LLDP frames reach hosts'
logged app 'a host is at port 8 of switch 1, so an LLDP frame' || fail 'LLDP frames that hosts pass on are not reported'
[ "$(grep -c 'link found' "$folder/app.log")" -eq 5 ] || fail 'hosts have made a link'
pings_all || fail 'pings are lost after hosts have sent LLDP frames'
ok 'LLDP frames of hosts make no link'

# Host 3 moves to the place of host 2, and host 2 leaves.
ip -n "$prefix-h3" link set eth0 down
ip -n "$prefix-h2" link set eth0 address "$(mac 3)"
ip -n "$prefix-h2" address add 10.0.0.3/24 dev eth0
in_room h2 ping -q -c 1 -W 5 -I 10.0.0.3 10.0.0.1 >"$folder/ping.log" || fail 'a host that has moved reaches no other'
logged app 'host 02:00:00:00:00:03 has moved from port 8 of switch 1 to port 9 of switch 4' || fail 'a move is not reported'
pings 1 3 || fail 'a host that has moved is not reached'
ok 'a host moves'

# All switches lose their state.
kill -KILL "$switches"
{ wait "$switches" || true; } 2>/dev/null
mv "$folder/switches.log" "$folder/switches-1.log"
mv "$folder/app.log" "$folder/app-2.log"
: >"$folder/app.log"
start_switches
begin=$(date +%s%N)
wait_until 'hosts reach each other after the switches have lost their state' in_room h1 ping -q -c 1 -W 0.2 10.0.0.3
took_ms=$((($(date +%s%N) - begin) / 1000000))
ok "after a restart of all switches without state, hosts reach each other within $took_ms ms"
if grep -q Traceback "$folder"/app*.log; then fail 'the controller has an internal error'; fi
