#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The POF applications of controller/examples/pof with a switch between six namespaced hosts. Each application
# installs its program. Then hosts send the frames of the application's tests, and copies with random changes.
# Each host must receive exactly what the interpreter of controller/tests/pof sends. Low-latency entries must
# be marked, and their packets must take the fast-forwarding path, or hit path records.
#
# SHUNT names the program of the switch. Without it, the script builds one.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

readonly python=target/tools/os-ken/bin/python
readonly referee=scripts/tests/peers/pof_referee.py
needs "$python"
shunt=${SHUNT:-}
if [ -z "$shunt" ]; then
    shunt=$(test_build)
fi
(cd controller && SHUNT=$shunt "../$python" -m pytest -q tests/pof) || fail "the tests of controller/tests/pof fail"

"$python" scripts/tests/peers/pof_replay.py "$shunt" >"$folder/replay.log" || fail 'shunt replay differs from the interpreter'
ok "$(wc -l <"$folder/replay.log") replays of the programs as flow files send what the interpreter sends"

make_hosts 6
export POF_DIALECT

# start_pof EXPRESS: starts a switch with the express path on (true) or off (false).
start_pof() {
    cat - "$folder/ports" >"$folder/switch.toml" <<CONFIG
control = "$folder/control.sock"
[[worker]]
[[datapath]]
id = 1
[datapath.pof]
controllers = ["tcp:127.0.0.1:6633"]
dialect = "$POF_DIALECT"
tables = [10, 10, 5, 20]
[datapath.express]
enabled = $1
CONFIG
    : >"$folder/switch.log"
    background switch sw "$shunt" run -c "$folder/switch.toml"
    switch=$started
    wait_until 'the switch is ready' logged switch ready
}
# end ID: ends a process of this test.
end() {
    kill -TERM "$1"
    wait "$1" || true
}
# start_application NAME: starts an application in the switch's namespace.
start_application() {
    "$python" "$referee" settings "$1" >"$folder/$1.json"
    : >"$folder/application.log"
    background application sw env PYTHONPATH=controller/src "$python" "controller/examples/pof/$1.py" \
        "$folder/$1.json" --dialect "$POF_DIALECT"
    application=$started
    wait_until "$1 listens" logged application ready
}
# installed: returns whether the application has installed its program. Fails if the switch has refused it.
installed() {
    ! logged application 'not installed' || fail "$(grep 'not installed' "$folder/application.log")"
    logged application ': installed '
}
ask() { in_room sw "$shunt" "$@" -c "$folder/switch.toml"; }
# number WHAT EXPRESSION: evaluates an expression on the output `d` of `shunt show WHAT --json`.
number() { ask show "$1" --json | python3 -c 'import json, sys; d = json.load(sys.stdin); print('"$2"')'; }
# flood NAME low|normal COUNT [NUMBER]
flood() { "$python" "$referee" flood "$1" "$prefix" "${@:2}"; }
# list_paths NAME: sets $paths to the sequences of tables of the application's low-latency packets.
list_paths() {
    "$python" "$referee" paths "$1" >"$folder/paths.log" || fail "$1: $(tail -n 1 "$folder/paths.log")"
    mapfile -t paths <"$folder/paths.log"
}
compare() {
    "$python" "$referee" compare "$1" "$prefix" >"$folder/compare.log" || fail "$1, express path $2: frames differ"
    ok "express path $2: $(tail -n 1 "$folder/compare.log")"
}

# fast_path NAME: for each sequence of tables, a flow of low-latency entries takes the fast-forwarding path.
# Another flow does not.
fast_path() {
    local before after path
    for path in "${!paths[@]}"; do
        flood "$1" low 50 "$path"
        before=$(number ffp 'd["fast"]')
        flood "$1" low 200 "$path"
        after=$(number ffp 'd["fast"]')
        [ $((after - before)) -ge 180 ] ||
            fail "$1, ${paths[path]}: $((after - before)) of 200 low-latency packets took the path"
    done
    before=$after
    flood "$1" normal 200
    after=$(number ffp 'd["fast"]')
    [ "$after" -eq "$before" ] || fail "$1: $((after - before)) of 200 normal packets took the path"
    [ "$(number ffp 'sum(t["hits"] for t in d["tables"])')" -gt 0 ] || fail "$1: no record was hit"
    ok "$1: low-latency packets of ${#paths[@]} sequences of tables take the fast-forwarding path, normal packets do not"
}

# traces NAME: a trace of each kind of packet states whether it is low-latency.
traces() {
    local kind number port hex expected frames=('normal 0')
    for number in "${!paths[@]}"; do frames+=("low $number"); done
    for kind in "${frames[@]}"; do
        read -r kind number <<<"$kind"
        read -r port hex < <("$python" "$referee" frame "$1" "$kind" "$number")
        ask trace --in-port "$port" --hex "$hex" >"$folder/trace.log"
        expected='low latency: yes'
        [ "$kind" = low ] || expected='low latency: no'
        grep -q "^$expected" "$folder/trace.log" || fail "$1: no \"$expected\" in: $(cat "$folder/trace.log")"
        grep -q '^result: forwarded' "$folder/trace.log" || fail "$1: $(tail -n 1 "$folder/trace.log")"
    done
    ok "$1: traces of ${#frames[@]} packets"
}

# marks NAME: the switch has as many entries, and low-latency entries, as the interpreter.
marks() {
    local expected found
    ask show flows >"$folder/flows.log"
    expected=$("$python" "$referee" marks "$1")
    found="$(grep -c ' table=' "$folder/flows.log") $(grep -c ' low_latency ' "$folder/flows.log")"
    [ "$found" = "$expected" ] || fail "$1: entries and marks are $found, but must be $expected"
    ok "$1: ${found% *} entries, of which ${found#* } are low-latency entries"
}

# real_pings: hosts in two subnets reach each other through the router, which answers ARP.
real_pings() {
    local n
    for n in 1 2; do
        ip -n "$prefix-h$n" address add "10.0.$n.$n/24" dev eth0
        ip -n "$prefix-h$n" route add default via "10.0.$n.254"
    done
    in_room h1 ping -q -c 5 -i 0.2 -W 5 10.0.2.2 >"$folder/ping.log" || fail 'h1 does not reach h2 through the router'
    in_room h1 ping -q -c 1 -t 1 -W 1 10.0.2.2 >"$folder/ping.log" && fail 'a packet with TTL 1 is forwarded'
    for n in 1 2; do ip -n "$prefix-h$n" address del "10.0.$n.$n/24" dev eth0; done
    ok 'hosts in two subnets reach each other, and the router answers ARP'
    # Static neighbours, because the router answers no neighbour solicitations.
    for n in 2 3; do
        in_room "h$n" sysctl -q -w net.ipv6.conf.eth0.disable_ipv6=0
        ip -n "$prefix-h$n" address add "2001:db8:$n::$n/48" dev eth0 nodad
        ip -n "$prefix-h$n" neighbour add "2001:db8:$n::fe" lladdr "02:00:00:00:0$n:fe" dev eth0
        ip -n "$prefix-h$n" route add 2001:db8::/32 via "2001:db8:$n::fe"
    done
    in_room h3 ping -q -c 5 -i 0.2 -W 5 2001:db8:2::2 >"$folder/ping.log" || fail 'h3 does not reach h2 by IPv6'
    in_room h3 ping -q -c 1 -t 1 -W 1 2001:db8:2::2 >"$folder/ping.log" && fail 'a packet with hop limit 1 is forwarded'
    for n in 2 3; do in_room "h$n" sysctl -q -w net.ipv6.conf.eth0.disable_ipv6=1; done
    ok 'hosts in two subnets reach each other by IPv6'
}

# run_application NAME: both forwarding modes with one application.
run_application() {
    local hits before path
    list_paths "$1"
    start_application "$1"
    start_pof false
    wait_until "$1 installs its program" installed
    marks "$1"
    compare "$1" off
    fast_path "$1"
    traces "$1"
    [ "$1-$POF_DIALECT" != router-1.4.0.015 ] || real_pings
    end "$switch"

    : >"$folder/application.log"
    start_pof true
    wait_until "$1 installs its program again" installed
    compare "$1" on
    for path in "${!paths[@]}"; do
        before=$(number express 'd["sum"]["hits"]')
        flood "$1" low 200 "$path"
        hits=$(($(number express 'd["sum"]["hits"]') - before))
        [ "$hits" -ge 180 ] || fail "$1, ${paths[path]}: only $hits hits of path records"
        ok "$1, ${paths[path]}: $hits hits of path records"
    done
    end "$switch"
    ! logged application Traceback || fail "$1 failed"
    end "$application"
}

for POF_DIALECT in 1.4.0.015 1.2; do
    for name in router vehicles ndn encapsulate; do run_application "$name"; done
done
