#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Switches have a configuration that `shunt-controller run keyflow` cannot use: IDs with a common factor, a label
# without a port, and a link whose MTU leaves no space for keys. Each fault is reported in a sentence, and hosts
# reach each other.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/tests/live.sh
source scripts/tests/live.sh

make_network 3 '1:1 2:1' '2:2 3:1' -- 1:9 3:9
mv "$folder/switches.toml" "$folder/plain.toml"

# configured ID LABELS OPTION...: starts the switches, and the controller with the options. Switch 2 gets the ID
# and the labels; switches 1 and 3 have the IDs 6 and 25.
configured() {
    awk -v id="$1" -v labels="$2" '
        { print }
        /^id = / { number = $3 }
        /^fail_mode/ {
            print "[datapath.stateless]"
            print "trusted = " (number == 2 ? "[1, 2]" : "[1]")
            if (number == 2) print "mtu = [[1, 1600], [2, 1510]]"
            print "[[datapath.stateless.bank]]\nepoch = 0\narithmetic = \"integer\""
            print "id = " (number == 2 ? id : number == 1 ? 6 : 25)
            print "labels = " (number == 2 ? labels : "[\"tables\", 1]")
        }' "$folder/plain.toml" >"$folder/switches.toml"
    start_switches
    shift 2
    start_controller keyflow --lldp-period 1 "$@"
}
# ended: stops the switches and the controller.
ended() {
    kill "$switches" "$app"
    wait "$switches" "$app" || true
    if grep -q Traceback "$folder/app.log"; then fail 'the controller has an internal error'; fi
    rm "$folder/switches.log" "$folder/app.log"
}
renumbered() { say 2 show stateless --json | grep -o '"epoch": *1' >/dev/null; }

configured 9 '["tables", 1, 2]'
wait_until 'the common factor is reported' logged app \
    'all switches get new IDs, under epoch 1: the IDs of switches 1 and 2, 6 and 9, have a common factor'
wait_until 'hosts reach each other' pings 1 2
wait_until 'switches have new IDs' renumbered
ok 'IDs with a common factor are reported and replaced'
wait_until 'the MTU is reported' logged app \
    'port 2 of switch 2 has an MTU of 1510 bytes and drops longer packets; packets of hosts with an MTU of 1500 bytes are up to 1516 bytes long there'
if logged app 'port 1 of switch 2 has an MTU'; then fail 'an MTU that suffices is reported'; fi
if in_room h1 ping -q -c 1 -W 1 -s 1472 10.0.0.2 >"$folder/ping.log"; then fail 'the link carries packets above its MTU'; fi
in_room h1 ping -q -c 3 -i 0.2 -W 2 -s 1460 10.0.0.2 >"$folder/ping.log" || fail 'packets that fit do not pass'
ok 'an MTU that leaves no space for keys is reported'
ended

configured 35 '["tables", 1, 0, 2]'
wait_until 'the label is reported' logged app 'all switches get new IDs, under epoch 1: switch 2 has the label 2 without a port'
wait_until 'hosts reach each other' pings 1 2
wait_until 'switches have new IDs' renumbered
ok 'a label without a port is reported, and the IDs are replaced'
ended

# These IDs have no common factor, so they are taken over.
configured 77 '["tables", 1, 2]' --host-mtu 1400
wait_until 'hosts reach each other' pings 1 2
if logged app 'new IDs\|has an MTU'; then fail 'a configuration without faults is reported'; fi
ok 'a configuration without faults is taken over'
ended
