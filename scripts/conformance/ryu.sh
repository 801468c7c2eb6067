#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the Ryu switch test tool against Shunt: 991 cases of OpenFlow 1.3 in 144 files, as os-ken ships them.
#
# Needs root. Each shard is a separate network namespace:
#
#     suite (controller, 127.0.0.1:6653) -+- Shunt (datapath 1):        u1 u2 u3
#                                         |                             |  |  |   veth pairs
#                                         +- Open vSwitch (datapath 2): t1 t2 t3  (sends and receives packets)
#
# ryu.sh [--only REGEX] [--skip REGEX] [--no-throughput] [--shards N] [--as-it-is] [--at-least N]
#        [--limit SECONDS] [--report FOLDER]
#
#   --only, --skip    select case files by their path below the cases (action/, SET_FIELD, match/, group/)
#   --no-throughput   skip the 51 cases that send for 30 s each to measure a rate
#   --shards N        run N namespaces in parallel (default 3; they mostly wait)
#   --as-it-is        keep the two parts of the suite that ryu_runner.py otherwise replaces
#   --at-least N      exit with 1 if fewer cases passed
#   --limit SECONDS   stop after this time (default 3600)
#   --report FOLDER   folder for ryu.jsonl, one line per case, and ryu.txt, the summary
#                     (default target/report/conformance)
#
# SHUNT is the program (default: the release build). The exit code is 0 if every case was run, even if some
# failed, unless --at-least is given.
set -euo pipefail
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/sbin:/sbin

readonly shunt=${SHUNT:-${CARGO_TARGET_DIR:-target}/release/shunt}
readonly python=target/tools/ryu/bin/python
readonly prefix=shunt-ryu-$$
readonly controller=127.0.0.1:6653

only='' skip='' throughput=yes shards=3 as_it_is='' at_least=0 limit_s=3600 report=target/report/conformance
while [ $# -gt 0 ]; do
    case $1 in
        --only) only=$2 && shift ;;
        --skip) skip=$2 && shift ;;
        --no-throughput) throughput=no ;;
        --shards) shards=$2 && shift ;;
        --as-it-is) as_it_is=--as-it-is ;;
        --at-least) at_least=$2 && shift ;;
        --limit) limit_s=$2 && shift ;;
        --report) report=$2 && shift ;;
        *)
            sed -n '3,/^set -/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2
            exit 2
            ;;
    esac
    shift
done

folder=''
fail() {
    printf 'ryu: %s\n' "$*" >&2
    exit 1
}

# Stops all processes in the namespace of a shard.
end_all_in() {
    local signal pid
    for signal in TERM KILL; do
        for pid in $(ip netns pids "$1"); do kill -"$signal" "$pid" 2>/dev/null; done
        for _ in {1..30}; do
            [ -z "$(ip netns pids "$1")" ] && return
            sleep 0.1
        done
    done
}
clean_up() {
    local status=$? number
    trap '' INT TERM HUP
    set +e
    for ((number = 0; number < shards; number++)); do
        [ -e "/run/netns/$prefix-$number" ] || continue
        end_all_in "$prefix-$number"
        ip netns del "$prefix-$number"
    done
    wait
    [ -n "$folder" ] && rm -rf "$folder"
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# wait_until SECONDS COMMAND...: returns whether the command succeeded within this time.
wait_until() {
    local tenths=$(($1 * 10))
    shift
    while ! "$@" >/dev/null 2>&1; do
        ((tenths-- > 0)) || return 1
        sleep 0.1
    done
}

make_namespace() { # make_namespace NAME
    local n
    ip netns add "$1"
    ip -n "$1" link set lo up
    # The cases would count the hosts' own IPv6 traffic.
    # shellcheck disable=SC2016
    ip netns exec "$1" bash -c 'for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do [ ! -e "$f" ] || echo 1 >"$f"; done'
    for n in 1 2 3; do
        ip -n "$1" link add "u$n" mtu 9000 type veth peer name "t$n" mtu 9000
        for end in u t; do
            ip netns exec "$1" ethtool -K "$end$n" tx off rx off tso off gso off gro off >/dev/null 2>&1
            ip -n "$1" link set "$end$n" up
        done
    done
}

# Starts a separate Open vSwitch for a shard, with database, files and sockets in the shard's folder.
start_tester() { # start_tester NAME FOLDER
    local room=$1 home=$2/tester n
    local vsctl=(ovs-vsctl "--db=unix:$home/db" --timeout=20)
    mkdir "$home"
    ovsdb-tool create "$home/conf.db" "$schema"
    export OVS_RUNDIR=$home OVS_LOGDIR=$home OVS_DBDIR=$home OVS_SYSCONFDIR=$home
    ip netns exec "$room" ovsdb-server "$home/conf.db" "--remote=punix:$home/db" --unixctl="$home/ovsdb.ctl" \
        >"$home/ovsdb.log" 2>&1 &
    wait_until 10 "${vsctl[@]}" --no-wait init || fail "ovsdb-server does not answer: $(cat "$home/ovsdb.log")"
    ip netns exec "$room" "$vswitchd" "unix:$home/db" --unixctl="$home/vswitchd.ctl" --disable-system \
        >"$home/vswitchd.log" 2>&1 &
    # Disable the flow cache, which follows changes of the tables with a delay even after a barrier.
    "${vsctl[@]}" set Open_vSwitch . other-config:flow-limit=0
    "${vsctl[@]}" add-br tester -- set bridge tester datapath_type=netdev protocols=OpenFlow13 fail_mode=secure \
        other-config:datapath-id=0000000000000002 other-config:disable-in-band=true
    for n in 1 2 3; do
        "${vsctl[@]}" add-port tester "t$n" -- set interface "t$n" "ofport_request=$n"
    done
    "${vsctl[@]}" set-controller tester "tcp:$controller" -- set controller tester max_backoff=1000
}

start_shunt() { # start_shunt NAME FOLDER
    local n
    {
        printf 'control = "%s/control.sock"\n[[worker]]\n[[datapath]]\nid = 1\n' "$2"
        printf '[datapath.openflow]\ncontrollers = ["tcp:%s"]\nfail_mode = "secure"\n' "$controller"
        for n in 1 2 3; do
            printf '[[datapath.port]]\nnumber = %s\nname = "u%s"\ndriver = "af_packet"\ndevice = "u%s"\nworkers = [0]\n' \
                "$n" "$n" "$n"
        done
    } >"$2/switch.toml"
    ip netns exec "$1" "$shunt" run -c "$2/switch.toml" >"$2/switch.log" 2>&1 &
    switches+=($!)
}

is_listening() { [ -n "$(ip netns exec "$1" ss -Hltn 'sport = :6653')" ]; }

[ "$(id -u)" -eq 0 ] || fail 'the suite runs in network namespaces: run it as root (sudo make conformance)'
[ -x "$shunt" ] || fail "$shunt is missing: run \`make conformance\`, which builds it"
scripts/setup.sh conformance
# scripts/setup.sh unpacks Open vSwitch into these folders if it is not installed.
PATH=$PWD/target/tools/ovs/usr/bin:$PWD/target/tools/ovs/usr/sbin:$PATH
vswitchd=$(command -v ovs-vswitchd || printf '%s' "$PWD/target/tools/ovs/usr/lib/openvswitch-switch/ovs-vswitchd")
schema=/usr/share/openvswitch/vswitch.ovsschema
[ -e "$schema" ] || schema=$PWD/target/tools/ovs$schema

folder=$(mktemp -d)
shards=$("$python" scripts/conformance/ryu_cases.py "$folder" "$shards" "$only" "$skip" "$throughput")
suites=() switches=()
for ((number = 0; number < shards; number++)); do
    room=$prefix-$number
    make_namespace "$room"
    ip netns exec "$room" "$python" scripts/conformance/ryu_runner.py "$folder/$number/cases" \
        "$folder/$number/results" $as_it_is >"$folder/$number/suite.log" 2>&1 &
    suites+=($!)
    wait_until 30 is_listening "$room" || fail "the suite does not listen: $(tail -n 20 "$folder/$number/suite.log")"
    start_tester "$room" "$folder/$number"
    start_shunt "$room" "$folder/$number"
done

status=0
for ((number = 0; number < shards; number++)); do
    while kill -0 "${suites[number]}" 2>/dev/null; do
        sleep 0.5
        if ! kill -0 "${switches[number]}" 2>/dev/null; then
            printf 'ryu: Shunt has ended in shard %s:\n' "$number" >&2
            tail -n 20 "$folder/$number/switch.log" >&2
            status=1
            break
        elif [ "$SECONDS" -gt "$limit_s" ]; then
            printf 'ryu: shard %s has not ended after %s seconds\n' "$number" "$limit_s" >&2
            status=1
            break
        fi
    done
    if [ "$status" -eq 0 ] && ! wait "${suites[number]}"; then
        printf 'ryu: the suite failed in shard %s:\n' "$number" >&2
        tail -n 20 "$folder/$number/suite.log" >&2
        status=1
    fi
done

mkdir -p "$report"
cat "$folder"/*/results >"$report/ryu.jsonl"
python3 scripts/conformance/ryu_summary.py "$at_least" <"$report/ryu.jsonl" | tee "$report/ryu.txt" || status=1
printf '\n%s seconds; the results are in %s/ryu.jsonl\n' "$SECONDS" "$report"
[ "$status" -eq 0 ]
