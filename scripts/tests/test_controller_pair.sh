#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two controllers share a network by etcd. Twice, the master is killed while it gives all switches new IDs and
# keys, under pings. The other controller must take over within 3 s, complete the plan, and lose no ping. Then
# etcd is stopped: the master goes on, and a failed link is repaired. A master that was stopped for a time must
# not change switches any more.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/tests/live.sh
source scripts/tests/live.sh

command -v etcd >/dev/null || fail 'etcd is missing: run scripts/setup.sh test first'
readonly etcd_url=http://127.0.0.1:2379
# Lease of the controllers in milliseconds. In the first part, a switch is stopped while etcd does not answer for a
# time. The lease must then be longer, because a master that a switch does not confirm gives up after it.
readonly short_ms=1200 long_ms=4000
lease_ms=$long_ms
# IDs of the processes of etcd, and of the controllers by name.
etcd='' middle=''
declare -A controllers=()

# The paths from 1 to 4 lead over 2 or 3. Further cables, which are connected later, need new IDs.
links=('1:1 2:1' '1:2 3:1' '2:2 4:1' '3:2 4:2' '2:3 3:3')
first_cables=() second_cables=()
for n in 10 11 12 13 14 15; do
    links+=("2:$n 3:$n") && first_cables+=("s2p$n")
    links+=("1:$n 4:$n") && second_cables+=("s1p$n")
done
make_network 4 "${links[@]}" -- 1:9 4:9 1:8
sed -i 's|^controllers = .*|controllers = ["tcp:127.0.0.1:6653", "tcp:127.0.0.1:6655"]|' "$folder/switches.toml"
printf '%s\n' "${links[@]// /-}" >"$folder/cables"

start_etcd() {
    background etcd sw etcd --data-dir "$folder/etcd" --listen-client-urls "$etcd_url" \
        --advertise-client-urls "$etcd_url" --listen-peer-urls http://127.0.0.1:2380 --logger zap --log-level error
    etcd=$started
    wait_until 'etcd answers' in_room sw curl -fsS "$etcd_url/health"
}
# start_one NAME PORT: starts a controller that listens at a port.
start_one() {
    : >"$folder/$1.log"
    background "$1" sw "$python" -m shunt_controller run keyflow --lldp-period 1 --reserve 1 --ofp-tcp-listen-port "$2" \
        --etcd "$etcd_url" --controller-id "$1" --lease "$((lease_ms / 1000)).$((lease_ms % 1000 / 100))"
    controllers[$1]=$started
}
# kill_one NAME: kills a controller. $killed is the time.
kill_one() {
    killed=$(date +%s%N)
    kill -KILL "${controllers[$1]}"
    { wait "${controllers[$1]}" || true; } 2>/dev/null
}
# takes_over NAME: waits until a controller is the master of all switches, and checks the time since $killed: 3 s
# with the default lease, and more with a longer one.
takes_over() {
    local text="controller $1 is the master of all 4 connected switches" line within_ms=$((lease_ms - short_ms + 3000))
    wait_within 10 "$1 is the master" logged "$1" "$text"
    # A line begins with date and time, as in 2026-01-31 12:00:00,123.
    line=$(grep "$text" "$folder/$1.log" | tail -n 1 | cut -d ' ' -f 1,2)
    took_ms=$(($(date -d "${line/,/.}" +%s%3N) - killed / 1000000))
    [ "$took_ms" -le "$within_ms" ] || fail "$1 took over only after $took_ms ms"
}
# whole: returns whether all switches have one plan, which etcd has. If not all cables of a group are found at once,
# the master may choose IDs twice, so any epoch is right.
whole() {
    local n
    in_room sw curl -fsS "$etcd_url/v3/kv/range" -d "{\"key\":\"$(printf /shunt/default/plan/keyflow | base64 -w 0)\"}" >"$folder/etcd.json"
    for n in 1 2 3 4; do
        say "$n" show stateless --json >"$folder/stateless.$n"
        say "$n" flows dump >"$folder/flows.$n"
    done
    "$python" scripts/tests/peers/whole_plan.py "$folder"
}
# with_bank EPOCH: prints the number of switches with IDs of an epoch.
with_bank() {
    local n
    for n in 1 2 3 4; do say "$n" show stateless --json; done | grep -c "\"epoch\": *$1" || true
}
# connect NAME CABLE...: connects cables, and waits until the master gives switches new IDs.
connect() {
    local name=$1 device
    shift
    : >"$folder/$name.log"
    for device in "$@"; do ip -n "$prefix-sw" link set "$device" up; done
    wait_within 20 "$name chooses new IDs" logged "$name" 'new IDs'
}
# start_halves: starts switches 1 and 4, and switches 2 and 3, in one process each. $middle is the latter's ID.
start_halves() {
    local half
    shunt=$(test_build)
    for half in '1 4' '2 3'; do
        awk -v half=" $half " 'BEGIN { RS = "\\[\\[datapath\\]\\]\n" }
            NR == 1 { printf "%s", $0; next }
            { split($0, words, "[ \n]"); if (index(half, " " words[3] " ")) printf "[[datapath]]\n%s", $0 }' \
            "$folder/switches.toml" >"$folder/switches-${half/ /-}.toml"
        background switches sw "$shunt" run -c "$folder/switches-${half/ /-}.toml"
    done
    middle=$started
    wait_until 'all switches are ready' all_ready
}

start_etcd
start_halves
for device in "${first_cables[@]}" "${second_cables[@]}"; do ip -n "$prefix-sw" link set "$device" down; done
start_one one 6653
wait_until 'the first controller is the master' logged one 'is the master of term 1'
start_one two 6655
wait_until 'the second controller is connected' has_lines two 'is connected; controller two stands by' 4
wait_until 'the network is planned' logged one 'are as planned'
# found A B: returns whether hosts reach each other; the controller learns their locations.
found() { in_room "h$1" ping -q -c 1 -W 1 "10.0.0.$2" >"$folder/ping.log"; }
for pair in '1 2' '3 2'; do
    # shellcheck disable=SC2086
    wait_until "pings pass between hosts $pair" found $pair
done
wait_until 'all switches have one plan, which etcd has' whole
if logged two 'is the master\|changes$'; then fail 'the standby has changed switches'; fi
ok 'the first controller is the master, and the second one stands by'

# The master waits for etcd before it changes switches. Then switches 2 and 3 do not answer.
new=1
if [ "$(with_bank 1)" -eq 4 ]; then new=0; fi
begin_pings 1 2
kill -STOP "$etcd"
connect one "${first_cables[@]}"
wait_until 'the plan that waits is reported' logged one 'a plan with other IDs or gates waits until etcd has stored them'
[ "$(with_bank "$new")" -eq 0 ] || fail 'switches are changed before the plan is stored'
kill -STOP "$middle"
kill -CONT "$etcd"
has_new() { say 1 show stateless --json | grep "\"epoch\": *$new"; }
wait_until 'switch 1 has new IDs' has_new
kill_one one
kill -CONT "$middle"
ok 'the first controller is killed when it has changed switches 1 and 4, and not 2 and 3'
takes_over two
wait_until 'the plan is complete' whole
lost=$(end_pings)
[ "$lost" -eq 0 ] || fail "$lost pings are lost when the master is killed"
ok "the second controller took over within $took_ms ms, and completed the plan; no ping is lost"

# Both controllers are started again with the default lease.
kill -TERM "${controllers[two]}"
{ wait "${controllers[two]}" || true; } 2>/dev/null
lease_ms=$short_ms
start_one two 6655
wait_until 'the second controller is the master again' logged two 'controller two is the master of all 4 connected switches'
start_one one 6653
wait_until 'the first controller is connected again' has_lines one 'is connected; controller one stands by' 4
wait_until 'the plan is kept' whole
begin_pings 1 2
connect two "${second_cables[@]}"
both() { [ "$(with_bank 0)" -eq 4 ] && [ "$(with_bank 1)" -eq 4 ]; }
wait_until 'all switches have IDs of both epochs' both
kill_one two
ok "the second controller is killed when $(with_bank 0) and $(with_bank 1) switches have IDs of the two epochs"
takes_over one
wait_until 'the plan is complete' whole
lost=$(end_pings)
[ "$lost" -eq 0 ] || fail "$lost pings are lost when the master is killed for the second time"
ok "the first controller took over within $took_ms ms, and completed the plan; no ping is lost"

# ticks NAME: prints the CPU time of a controller in units of 10 ms.
ticks() { awk '{ print $14 + $15 }' "/proc/${controllers[$1]}/stat"; }
start_one two 6655
wait_until 'the second controller is connected again' has_lines two 'is connected; controller two stands by' 4
before=$(ticks one)
sleep 2
usual=$(($(ticks one) - before))
kill -KILL "$etcd"
{ wait "$etcd" || true; } 2>/dev/null
wait_until 'the failure of etcd is reported' logged one 'etcd at 127.0.0.1:2379 does not answer: Connection refused; the switches keep this'
before=$(ticks one)
sleep 2
used=$(($(ticks one) - before))
[ "$used" -lt $((usual + 60)) ] || fail "without etcd, the master needs $((used * 5)) ms of CPU time per second, and $((usual * 5)) ms with etcd"
begin_pings 1 2
for device in "${second_cables[@]}"; do ip -n "$prefix-sw" link set "$device" down; done
sleep 1.5
lost=$(end_pings)
[ "$lost" -lt 50 ] || fail "$lost pings, of 50 per second, are lost when links fail while there is no etcd"
without_loss 1 2 || fail 'pings are lost after links have failed while there is no etcd'
ok "without etcd, the master repairs the paths of failed links; $lost pings of 50 per second were lost"
start_etcd
sleep 2
if logged one 'no longer the master' || logged two 'is the master'; then fail 'the master has changed while there was no etcd'; fi
wait_until 'all switches have one plan, which etcd has' whole
ok 'when etcd is back, the same controller is the master'

begin_pings 1 2
killed=$(date +%s%N)
kill -STOP "${controllers[one]}"
takes_over two
kill -CONT "${controllers[one]}"
wait_within 5 'the first controller stands by' logged one 'controller one is no longer the master'
: >"$folder/one.log"
wait_until 'all switches have one plan, which etcd has' whole
sleep 1
lost=$(end_pings)
[ "$lost" -eq 0 ] || fail "$lost pings are lost when the master stops for a time"
if logged one 'changes$\|is the master'; then fail 'a deposed master changes switches'; fi
ok "the second controller took over within $took_ms ms when the first one stopped, which then stood by"

killed=$(date +%s%N)
kill -TERM "${controllers[two]}"
takes_over one
[ "$took_ms" -lt "$lease_ms" ] || fail "after SIGTERM, the other controller took over only after $took_ms ms"
logged two 'controller two gives up the mastership and ends' || fail 'SIGTERM does not give up the mastership'
ok "after SIGTERM, the other controller took over within $took_ms ms"
for log in "$folder"/{one,two}.log; do
    if grep -q 'Traceback\|internal error' "$log"; then fail 'a controller has an internal error'; fi
done
