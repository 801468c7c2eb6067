#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ovs-testcontroller makes a learning switch of Shunt between two namespaced hosts: pings and TCP pass (whose first
# packets go by way of the controller), flows appear, and the switch learns by itself once the controller is gone.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH=$PWD/target/tools/bin:$PATH:/usr/sbin:/sbin

readonly name=shunt-tc-$$
folder=$(mktemp -d)
pids=()
fail() {
    printf 'test_testcontroller: %s\n' "$*" >&2
    cat "$folder"/*.log >&2
    exit 1
}
cleanup() {
    if [ "${#pids[@]}" -gt 0 ]; then kill "${pids[@]}" 2>/dev/null || true; fi
    wait
    for room in sw h1 h2; do ip netns del "$name-$room" 2>/dev/null || true; done
    rm -rf "$folder"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

cargo build --quiet --package shunt
program=$(cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/debug/shunt

for room in sw h1 h2; do ip netns add "$name-$room"; done
for number in 1 2; do
    ip -n "$name-sw" link add "p$number" type veth peer name eth0 netns "$name-h$number"
    ip -n "$name-sw" link set "p$number" up
    ip -n "$name-h$number" addr add "10.0.0.$number/24" dev eth0
    ip -n "$name-h$number" link set eth0 up
    cat >>"$folder/ports" <<PORT
[[datapath.port]]
number = $number
name = "p$number"
driver = "af_packet"
device = "p$number"
workers = [0]
PORT
done
ip -n "$name-sw" link set lo up
cat - "$folder/ports" >"$folder/switch.toml" <<CONFIG
control = "$folder/control.sock"
[[worker]]
[[datapath]]
id = 1
[datapath.openflow]
controllers = ["tcp:127.0.0.1:6653"]
listen = "127.0.0.1:6654"
fail_mode = "standalone"
CONFIG

export OVS_RUNDIR=$folder
ip netns exec "$name-sw" ovs-testcontroller -O OpenFlow13 ptcp:6653:127.0.0.1 2>"$folder/controller.log" &
controller=$!
pids+=("$controller")
ip netns exec "$name-sw" "$program" run -c "$folder/switch.toml" 2>"$folder/switch.log" &
pids+=($!)
ofctl() { ip netns exec "$name-sw" ovs-ofctl -O OpenFlow13 --timeout=10 "$@"; }
flows() { ofctl --no-names dump-flows tcp:127.0.0.1:6654; }
# wait_for TEXT: until a flow has it.
wait_for() {
    for _ in $(seq 200); do
        if flows 2>>"$folder/ofctl.log" | grep -q -- "$1"; then return; fi
        sleep 0.1
    done
    fail "no flow has: $1"
}
wait_for 'CONTROLLER'
if flows | grep -q NORMAL; then fail 'the standalone default is still there'; fi

pings() { ip netns exec "$name-h1" ping -q -c 3 -i 0.2 -W 5 10.0.0.2 >"$folder/ping.log"; }
pings || fail 'h1 does not reach h2 through the controller'
wait_for 'actions=output:2'
printf 'ok: pings pass, the controller has made flows\n'

ip netns exec "$name-h2" iperf3 --server --one-off >"$folder/server.log" 2>&1 &
pids+=($!)
for _ in $(seq 50); do
    if ip netns exec "$name-h1" iperf3 --client 10.0.0.2 --time 1 >"$folder/iperf.log" 2>&1; then break; fi
    sleep 0.2
done
grep -q 'receiver' "$folder/iperf.log" || fail 'no TCP between the hosts'
printf 'ok: TCP passes\n'

kill "$controller"
wait_for 'priority=0 actions=NORMAL'
pings || fail 'h1 does not reach h2 without the controller'
printf 'ok: without the controller the switch learns by itself\n'
