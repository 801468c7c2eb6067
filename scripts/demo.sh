#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Demo: four hosts in network namespaces around one switch.
#
# The steps are learned forwarding, a flow file that connects one pair of hosts and blocks another, a header
# that no parser knows (demo_pof.sh), and industrial frames during a flood (demo_lanes.sh). Needs root.
# `make demo` builds first. Concurrent runs do not collide, because names contain the process ID. Everything
# is removed on exit. The exit code is 0 only if every step passed.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin

readonly shunt=${SHUNT:-${CARGO_TARGET_DIR:-target}/release/shunt}
readonly prefix=shunt-demo-$$
readonly hosts=(1 2 3 4)
readonly pings=3
step='checking the requirements of the demo'
interrupted=''
tmp=''
switch_cpu=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*\([0-9]*\).*/\1/p' /proc/self/status)
readonly switch_cpu

say() { printf '%s\n' "$*"; }
fail() {
    say "  !! $*" >&2
    exit 1
}
begin() {
    step=$1
    say ''
    say "== $step"
}

clean_up() {
    local status=$? ns pid
    # A second Ctrl-C must not interrupt the clean-up.
    trap '' INT TERM HUP
    set +e
    for ns in "$prefix-sw" "${hosts[@]/#/$prefix-h}"; do
        [ -e "/run/netns/$ns" ] || continue
        for signal in TERM KILL; do
            for pid in $(ip netns pids "$ns"); do kill -"$signal" "$pid" 2>/dev/null; done
            for _ in {1..20}; do
                [ -z "$(ip netns pids "$ns")" ] && break
                sleep 0.1
            done
        done
        ip netns del "$ns"
    done
    # All child processes have received the signal, but a large process may take a moment to end.
    wait
    if [ -n "$interrupted" ]; then
        say "demo: interrupted by SIG$interrupted; everything is cleaned up" >&2
    elif [ "$status" -ne 0 ]; then
        say "demo: FAILED in step: $step" >&2
        if [ -s "$tmp/switch.log" ]; then
            say 'The last lines of the switch:' >&2
            tail -n 20 "$tmp/switch.log" >&2
        fi
    fi
    [ -n "$tmp" ] && rm -rf "$tmp"
    exit "$status"
}
trap clean_up EXIT
trap 'interrupted=INT; exit 130' INT
trap 'interrupted=TERM; exit 143' TERM
trap 'interrupted=HUP; exit 129' HUP

in_host() { # in_host N COMMAND...
    local host=$1
    shift
    ip netns exec "$prefix-h$host" "$@"
}
address() { printf '10.77.0.%s' "$1"; }
control() { "$shunt" --control "$tmp/control.sock" "$@"; }

# start_switch [SETTINGS]: starts a switch with additional lines of configuration. $switch is its process ID.
start_switch() {
    {
        printf 'control = "%s/control.sock"\n[[worker]]\ncpu = %s\n' "$tmp" "$switch_cpu"
        printf '[[datapath]]\nid = 1\n%s\n' "${1:-}"
        for n in "${hosts[@]}"; do
            printf '[[datapath.port]]\nnumber = %s\nname = "p%s"\ndriver = "af_packet"\ndevice = "veth%s"\nworkers = [0]\n' \
                "$n" "$n" "$n"
        done
    } >"$tmp/switch.toml"
    : >"$tmp/switch.log"
    ip netns exec "$prefix-sw" "$shunt" run -c "$tmp/switch.toml" >"$tmp/switch.out" 2>"$tmp/switch.log" &
    switch=$!
    for _ in {1..100}; do
        grep -q -i ready "$tmp/switch.log" && break
        kill -0 "$switch" 2>/dev/null || fail 'the switch ended before it was ready'
        sleep 0.1
    done
    grep -i ready "$tmp/switch.log" || fail 'the switch was not ready within 10 seconds'
}
stop_switch() {
    kill -TERM "$switch"
    wait "$switch" || fail "on SIGTERM the switch exited with $?, not 0"
}

# ping_pair FROM TO: returns whether every ping was answered.
ping_pair() {
    in_host "$1" ping -q -c "$pings" -i 0.2 -W 2 "$(address "$2")" >"$tmp/ping.out" 2>&1
}
expect_ping() {
    ping_pair "$1" "$2" || {
        cat "$tmp/ping.out" >&2
        fail "h$1 does not reach h$2"
    }
    say "  h$1 -> h$2  ok"
}
expect_no_ping() {
    if ping_pair "$1" "$2"; then fail "h$1 reaches h$2, which the flow file forbids"; fi
    grep -q ', 0 received' "$tmp/ping.out" || fail "some pings from h$1 to h$2 came back; the flow file forbids all"
    say "  h$1 -> h$2  dropped, as the flow file says"
}

# iperf_server N: starts a server on host N for one run. $server is its process ID.
iperf_server() {
    (exec ip netns exec "$prefix-h$1" iperf3 -s -1) >"$tmp/iperf-server.out" 2>&1 &
    server=$!
    for _ in {1..50}; do
        [ -n "$(in_host "$1" ss -Hltn 'sport = :5201')" ] && break
        sleep 0.1
    done
}

# iperf FROM TO [OPTION...]: runs iperf once and prints one line.
iperf() {
    local from=$1 to=$2 server
    shift 2
    iperf_server "$to"
    in_host "$from" timeout 30 iperf3 -J -c "$(address "$to")" "$@" >"$tmp/iperf.json" || {
        cat "$tmp/iperf.json" "$tmp/iperf-server.out" >&2
        fail "iperf3 from h$from to h$to failed"
    }
    wait "$server"
    python3 scripts/demo_figures.py iperf "h$from -> h$to" <"$tmp/iperf.json"
}

# ARP packets may be in flight while the counters are read, so the first sum may be wrong.
expect_counters_add_up() {
    for _ in {1..10}; do
        control show counters --json >"$tmp/counters.json"
        if python3 scripts/demo_figures.py counters <"$tmp/counters.json" >"$tmp/sum.out" 2>&1; then
            cat "$tmp/sum.out"
            return
        fi
        sleep 0.5
    done
    cat "$tmp/sum.out" >&2
    fail 'the counters do not add up'
}

[ "$(id -u)" -eq 0 ] || fail 'the demo creates network namespaces: run it as root (sudo make demo)'
[ -x "$shunt" ] || fail "$shunt is missing: run \`make demo\`, which builds it"

begin 'Four hosts, each in a network namespace, one cable each to the switch'
tmp=$(mktemp -d)
ip netns add "$prefix-sw"
for n in "${hosts[@]}"; do ip netns add "$prefix-h$n"; done
# Without IPv6, hosts send no packets on their own, which would change the counters.
for ns in "$prefix-sw" "${hosts[@]/#/$prefix-h}"; do
    # shellcheck disable=SC2016
    ip netns exec "$ns" bash -c 'for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do [ ! -e "$f" ] || echo 1 >"$f"; done'
done
for n in "${hosts[@]}"; do
    ip link add "veth$n" netns "$prefix-sw" type veth peer name eth0 netns "$prefix-h$n"
    ip -n "$prefix-sw" link set "veth$n" up
    ip -n "$prefix-h$n" link set lo up
    ip -n "$prefix-h$n" link set eth0 up
    ip -n "$prefix-h$n" address add "$(address "$n")/24" dev eth0
    say "  h$n  $(address "$n")  on port p$n"
done

begin 'One switch between them, without a controller: it learns addresses by itself'
start_switch

begin 'Every host pings every other'
for a in "${hosts[@]}"; do
    for b in "${hosts[@]}"; do
        [ "$a" = "$b" ] || expect_ping "$a" "$b"
    done
done

begin "Bulk traffic, the hosts' offloads as they are by default"
iperf 1 2 -t 3
iperf 3 4 -t 3
iperf 4 1 -u -b 100M -t 2
iperf 2 3 -u -b 100M -t 2

begin 'What the switch saw'
control show ports
control show counters
expect_counters_add_up

begin 'A flow file: h1 and h2 pinned to each other, h1 to h3 dropped, the rest as before'
cat >"$tmp/demo.flows" <<FLOWS
priority=200,in_port=1,ip,nw_dst=$(address 3),actions=drop
priority=100,in_port=1,ip,nw_dst=$(address 2),actions=output:2
priority=100,in_port=1,arp,arp_tpa=$(address 2),actions=output:2
priority=100,in_port=2,ip,nw_dst=$(address 1),actions=output:1
priority=100,in_port=2,arp,arp_tpa=$(address 1),actions=output:1
priority=0,actions=NORMAL
FLOWS
sed 's/^/  /' "$tmp/demo.flows"
control flows load "$tmp/demo.flows"

begin 'The same pings under these flows'
expect_ping 1 2
expect_ping 2 1
expect_no_ping 1 3
expect_no_ping 3 1
expect_ping 1 4
expect_ping 2 3
expect_ping 3 4

begin 'What the flows and the switch counted'
control show flows | tee "$tmp/flows.out"
control show counters
# This flow must have counted the echo requests of h1 and the replies to h3.
python3 scripts/demo_figures.py flow "nw_dst=$(address 3)" "$((2 * pings))" <"$tmp/flows.out"
expect_counters_add_up

begin 'The switch stops on SIGTERM'
stop_switch

# shellcheck source=scripts/demo_pof.sh
source scripts/demo_pof.sh

# shellcheck source=scripts/demo_lanes.sh
source scripts/demo_lanes.sh

say ''
say 'demo: every step held; everything is cleaned up'
