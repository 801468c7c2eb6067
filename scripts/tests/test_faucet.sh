#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Faucet configures Shunt as a VLAN of two untagged ports and one tagged port, with an ACL. The ACL blocks one
# TCP port and, by a mask, all TCP ports with a certain bit. Pings and only allowed TCP ports must pass, and
# the host at the tagged port must be part of the VLAN.
#
# In the first of two runs, Faucet uses its settings for Open vSwitch. In the second, it configures the tables
# with TABLE_FEATURES, and floods by groups.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

# TCP ports with and without bit 1024.
readonly allowed_ports=(1023 5001 6144) blocked_ports=(5002 1024 5120 6143)

configure() { # configure HARDWARE GROUP_TABLE
    cat >"$folder/faucet.yaml" <<CONFIG
vlans:
  office:
    vid: 100
acls:
  ports:
    - rule: {dl_type: 0x800, nw_proto: 6, tcp_dst: 5002, actions: {allow: 0}}
    - rule: {dl_type: 0x800, nw_proto: 6, tcp_dst: 1024/1024, actions: {allow: 0}}
    - rule: {actions: {allow: 1}}
dps:
  shunt:
    dp_id: 1
    hardware: $1
    group_table: $2
    ofchannel_log: $folder/faucet-messages.log
    interfaces:
      1: {native_vlan: office, acl_in: ports}
      2: {native_vlan: office}
      3: {tagged_vlans: [office]}
CONFIG
}

start_faucet() {
    : >"$folder/faucet-log.log"
    background faucet sw env PATH="$PWD/target/tools/faucet/bin:$PATH" PYTHONWARNINGS=ignore \
        FAUCET_CONFIG="$folder/faucet.yaml" FAUCET_LOG="$folder/faucet-log.log" \
        FAUCET_EXCEPTION_LOG="$folder/faucet-exceptions.log" FAUCET_PROMETHEUS_ADDR=127.0.0.1 \
        target/tools/faucet/bin/faucet --ryu-ofp-listen-host 127.0.0.1 --ryu-ofp-tcp-listen-port 6653
    faucet=$started
}

# answer PORT: prints the answer of h2 to h1 on this TCP port.
answer() { in_room h1 timeout 2 bash -c "exec 3<>/dev/tcp/10.0.0.2/$1 && cat <&3"; }
answers() { [ "$(answer "$1")" = "port $1" ]; }

check_traffic() { # check_traffic PROFILE
    # The tagged host sends first, and receives the other hosts' first ARP requests.
    : >"$folder/tagged.log"
    background tagged h3 python3 scripts/tests/peers/tagged_host.py eth0 100 10.0.0.3 10.0.0.1
    wait_until 'the tagged host gets an answer in its VLAN' logged tagged 'answered 10.0.0.1'
    in_room h1 ip neigh flush all
    pings 1 2 || fail "$1: h1 does not reach h2"
    wait_until 'the tagged host receives a request of h1 in its VLAN' logged tagged 'heard 10.0.0.1'
    if logged tagged '^untagged\|^VLAN'; then fail "$1: a frame of another VLAN, or of none, left the tagged port"; fi
    local port
    for port in "${allowed_ports[@]}"; do wait_until "TCP port $port, which is allowed" answers "$port"; done
    for port in "${blocked_ports[@]}"; do
        if answer "$port" >/dev/null 2>&1; then fail "$1: TCP port $port passes, which is blocked"; fi
        # The port is open on h2 itself. The ACL applies only to h1's port of the switch.
        [ "$(in_room h2 bash -c "exec 3<>/dev/tcp/10.0.0.2/$port && cat <&3")" = "port $port" ] ||
            fail "no program listens on TCP port $port of h2"
    done
    has_flow "tp_dst=0x400/0x400" >/dev/null || fail "$1: the switch lacks the rule with a mask"
    ok "$1: pings and ${#allowed_ports[@]} allowed TCP ports pass, ${#blocked_ports[@]} blocked ones do not; the tagged port is part of the VLAN"
}

stop_faucet() {
    kill "$faucet"
    wait "$faucet" || true
}

needs target/tools/faucet/bin/faucet
make_hosts 3
start_switch secure
background answers h2 python3 scripts/tests/peers/tcp_answer.py "${allowed_ports[@]}" "${blocked_ports[@]}"
wait_until 'h2 listens' logged answers ready

configure 'Open vSwitch' false
start_faucet
wait_until 'flows of Faucet' has_flow 'CONTROLLER:96'
check_traffic 'Open vSwitch'
stop_faucet

configure GenericTFM true
start_faucet
has_group() { ofctl dump-groups "tcp:$openflow_listen" | grep type=all; }
wait_until 'groups of Faucet' has_group
wait_until 'flows of Faucet' has_flow 'group:'
check_traffic GenericTFM
logged faucet-messages OFPTableFeaturesStatsRequest || fail 'Faucet has sent no TABLE_FEATURES request'
stop_faucet

# Faucet continues after an error, so only its log shows the error.
if logged faucet-log OFError; then fail 'the switch refused a message of Faucet'; fi
if [ -s "$folder/faucet-exceptions.log" ]; then fail 'Faucet failed'; fi
ok 'the switch accepts the tables that Faucet configures, and refuses no message'
