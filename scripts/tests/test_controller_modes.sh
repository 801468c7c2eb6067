#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Modes of `shunt-controller run keyflow`: a reactive network has keys only for hosts that exchange packets, and
# removes them when they are not used. In a protected network, packets go around a link that fails, even if the
# controller does nothing. A second switch with the same datapath ID is refused, and so are wrong options.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/tests/live.sh
source scripts/tests/live.sh

make_network 4 '1:1 2:1' '1:2 3:1' '2:2 4:1' '3:2 4:2' '2:3 3:3' -- 1:9 4:9 4:8
start_switches
start_controller keyflow --mode reactive --idle-timeout 2 --lldp-period 1
wait_until 'the network is planned' logged app 'are as planned'
# keys SWITCH HOST: returns whether a switch pushes keys on packets to a host.
keys() { say "$1" flows dump | grep "dl_dst=$(mac "$2") actions=push_key" >/dev/null; }
no_keys() { ! keys "$@"; }

wait_until 'hosts reach each other' pings 1 2
wait_until 'pings pass without loss' without_loss 1 2
{ keys 1 2 && keys 4 1; } || fail 'the edge switches push no keys'
if keys 1 3; then fail 'there are keys to a host that gets no packets'; fi
ok 'keys are installed for the hosts that exchange packets'
wait_until 'unused keys are removed' no_keys 1 2
wait_until 'unused keys are removed' no_keys 4 1
pings 1 3 || fail 'hosts do not reach each other after keys were removed'
ok 'unused keys are removed, and installed again for the next packets'

kill "$app"
wait "$app" || true
mv "$folder/app.log" "$folder/app-1.log"
start_controller keyflow --protect --lldp-period 1
wait_until 'the network is planned with protection' logged app 'are as planned'
wait_until 'pings pass without loss' without_loss 1 2
say 1 flows dump | grep 'type=ff' >/dev/null || fail 'switch 1 has no group with a backup'
for device in s1p1 s4p1; do
    begin_pings 1 2
    # The switches must send packets around the failure without the controller.
    kill -STOP "$app"
    ip -n "$prefix-sw" link set "$device" down
    sleep 1
    lost=$(end_pings)
    kill -CONT "$app"
    [ "$lost" -lt 10 ] || fail "$lost pings, of 50 per second, are lost when a protected link fails"
    before=$(grep -c 'link found' "$folder/app.log")
    ip -n "$prefix-sw" link set "$device" up
    wait_until 'the link is found again' has_lines app 'link found' $((before + 1))
    sleep 1.5
    ok "$lost pings are lost when device $device fails in a protected network"
done

# A second switch with the datapath ID of switch 1.
printf '[[worker]]\n[[datapath]]\nid = 1\ncontrol = "%s"\n[datapath.openflow]\ncontrollers = ["tcp:%s"]\nfail_mode = "secure"\n' \
    "$folder/double.sock" "$controller" >"$folder/double.toml"
begin_pings 1 2
background double sw "$shunt" run -c "$folder/double.toml"
wait_until 'the second switch is reported' logged app 'two switches have the datapath ID 1'
sleep 1
lost=$(end_pings)
[ "$lost" -eq 0 ] || fail "$lost pings are lost when a second switch has the datapath ID of another"
ok 'a second switch with the same datapath ID is refused'

for options in '--width 7' '--reserve -1' '--ofp-tcp-listen-port 6653'; do
    # shellcheck disable=SC2086
    if in_room sw timeout 20 "$python" -m shunt_controller run keyflow $options >"$folder/bad.log" 2>&1; then
        fail "the controller accepts $options"
    fi
    if grep -q Traceback "$folder/bad.log" || [ ! -s "$folder/bad.log" ]; then fail "$options is not refused with a sentence: $(cat "$folder/bad.log")"; fi
done
ok 'wrong options are refused'
if grep -q 'Traceback\|refuses' "$folder"/app*.log; then fail 'the controller has an internal error'; fi
