#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `shunt-controller run keyflow` in a network in which one switch is Open vSwitch, without stateless forwarding.
# Packets with keys must cross it, and its own host must be reached.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/tests/live.sh
source scripts/tests/live.sh

vswitchd=$(command -v ovs-vswitchd || printf '%s' "$PWD/target/tools/ovs/usr/lib/openvswitch-switch/ovs-vswitchd")
vsctl=$(command -v ovs-vsctl || printf '%s' "$PWD/target/tools/ovs/usr/bin/ovs-vsctl")
schema=/usr/share/openvswitch/vswitch.ovsschema
[ -r "$schema" ] || schema=$PWD/target/tools/ovs/usr/share/openvswitch/vswitch.ovsschema
needs "$vswitchd"
needs "$vsctl"

# Hosts 1 and 2 are at the ends of the line 1 - 2 - 3 - 4, and host 3 is at switch 2.
# shellcheck disable=SC2034
other=2
make_network 4 '1:1 2:1' '2:2 3:1' '3:2 4:1' -- 1:9 4:9 2:9
start_switches

export OVS_RUNDIR=$folder OVS_LOGDIR=$folder OVS_DBDIR=$folder
ovsdb-tool create "$folder/conf.db" "$schema"
background ovsdb sw ovsdb-server "$folder/conf.db" "--remote=punix:$folder/db" "--unixctl=$folder/ovsdb.ctl"
db=unix:$folder/db
wait_until 'ovsdb-server answers' in_room sw "$vsctl" "--db=$db" --timeout=5 --no-wait init
background vswitchd sw "$vswitchd" "$db" --disable-system "--unixctl=$folder/vswitchd.ctl"
wait_until 'Open vSwitch has a bridge' in_room sw "$vsctl" "--db=$db" --timeout=10 \
    --may-exist add-br br0 -- set bridge br0 datapath_type=netdev fail_mode=secure protocols=OpenFlow13 other-config:datapath-id=0000000000000002 \
    -- --may-exist add-port br0 s2p1 -- set interface s2p1 ofport_request=1 \
    -- --may-exist add-port br0 s2p2 -- set interface s2p2 ofport_request=2 \
    -- --may-exist add-port br0 p3 -- set interface p3 ofport_request=9 \
    -- set-controller br0 "tcp:$controller"

start_controller keyflow --lldp-period 1
wait_until 'all links are found' has_lines app 'link found' 3
wait_until 'the network is planned' logged app 'are as planned'
logged app 'switch 2 forwards by flow entries only' || fail 'Open vSwitch is not recognised'

pings_all() {
    local a b
    for a in 1 2 3; do
        for b in 1 2 3; do
            if [ "$a" != "$b" ]; then without_loss "$a" "$b" || return 1; fi
        done
    done
}
wait_until 'the controller has learned all hosts' pings_all
pings_all || fail 'not all hosts reach each other'
ok 'all hosts reach each other'

readonly keyed='ether proto 0x88b5'
captured s2p1 "$keyed" at-2
captured p3 "$keyed" at-h3
without_loss 1 2 || fail 'pings are lost'
without_loss 3 2 || fail 'pings are lost'
has_keys() { [ "$(seen at-2 '')" -ge 6 ]; }
wait_until 'packets with keys cross Open vSwitch' has_keys
[ "$(seen at-h3 '')" -eq 0 ] || fail 'keys reach a host'
ok 'packets with keys cross Open vSwitch'
if grep -q 'Traceback\|refuses' "$folder/app.log"; then fail 'the controller has an internal error'; fi
