#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The time of day jumps by ten years in both directions while a switch with a store forwards pings. Timeouts,
# learned MAC addresses, ages of flows, the store and the log must not notice. A library replaces the clock of the
# switch, not that of the machine. SHUNT names another program.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/../tests/lib.sh"

library=$(compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' | head -n 1) || fail 'faketime is missing: run scripts/setup.sh nightly first'
make_hosts 2
shunt=${SHUNT:-$(test_build)}
# The library reads a file, which no thread of the switch may do.
cat - "$folder/ports" >"$folder/switch.toml" <<CONFIG
control = "$folder/control.sock"
security = { seccomp = "off" }
log = { format = "json" }
[[worker]]
[[datapath]]
id = 1
[datapath.openflow]
listen = "$openflow_listen"
fail_mode = "standalone"
[datapath.store]
path = "$folder/store"
durable = "barrier"
CONFIG
# shift_clock OFFSET: lets the time of day of the switch differ by this offset.
shift_clock() {
    echo "$1" >"$folder/offset.new"
    mv "$folder/offset.new" "$folder/offset"
}
start() {
    : >"$folder/switch.log"
    background switch sw env LD_PRELOAD="$library" FAKETIME_TIMESTAMP_FILE="$folder/offset" FAKETIME_NO_CACHE=1 \
        FAKETIME_DONT_FAKE_MONOTONIC=1 "$shunt" run -c "$folder/switch.toml"
    switch=$started
    wait_until 'the switch is ready' logged switch 'shunt: ready'
}
control() { "$shunt" --control "$folder/control.sock" "$@"; }
# year_is YEAR: returns whether the time in the last line of the log, which is JSON, is in this year.
year_is() { tail -n 1 "$folder/switch.log" | grep "\"$1-" >/dev/null; }
# ages_are_short: returns whether no flow is older than a minute.
ages_are_short() { ! flows | grep -E 'duration=[0-9]{3,}' >/dev/null && flows | grep 'cookie=0xa' >/dev/null; }

shift_clock '+0'
start
real=$(date +%Y)
background steady h1 ping -q -i 0.01 10.0.0.2
ping=$started
ofctl add-flow "tcp:$openflow_listen" 'cookie=0xa,priority=5,dl_vlan=1,idle_timeout=60,hard_timeout=90,actions=drop'
control show macs >"$folder/macs-before"
grep "$(mac 1)" "$folder/macs-before" >/dev/null || fail 'no MAC address is learned'
for jump in +3650d -3650d; do
    # One flow that must stay, and one whose timeout passes after the jump.
    ofctl add-flow "tcp:$openflow_listen" 'cookie=0xb,priority=6,dl_vlan=2,hard_timeout=1,actions=drop'
    ofctl add-flow "tcp:$openflow_listen" 'cookie=0xc,priority=6,dl_vlan=3,idle_timeout=30,actions=drop'
    shift_clock "$jump"
    wait_within 3 "the flow times out after a jump of $jump" has_no_flow 'cookie=0xb'
    ages_are_short || fail "after a jump of $jump, ages are wrong: $(flows | head -n 3)"
    has_flow 'cookie=0xc' >"$folder/waited.log" || fail "after a jump of $jump, a flow is gone"
    control show macs | grep "$(mac 1)" >/dev/null || fail "after a jump of $jump, a MAC address is forgotten"
done
kill -INT "$ping"
wait "$ping" || true
logged steady ' 0% packet loss' || fail "packets were lost: $(grep loss "$folder/steady.log")"
ok 'timeouts, ages, MAC addresses and pings are not disturbed by jumps of the clock'

# The kept times are those of the machine's monotonic clock: the flow of 90 s is neither too old nor too young.
kill -KILL "$switch"
wait "$switch" 2>/dev/null || true
shift_clock '+3650d'
start
year_is $((real + 10)) || year_is $((real + 9)) || fail "the switch does not see the other clock: $(tail -n 1 "$folder/switch.log")"
logged switch 'no later change is lost' || fail 'changes are lost'
age=$(sed -n 's/.*the last change kept is number [0-9]*, made \([0-9]*\)\.[0-9]* s before this start.*/\1/p' "$folder/switch.log")
[ "${age:-1000}" -lt 60 ] || fail "the start says that the last change was made $age s ago"
has_flow 'cookie=0xa' >"$folder/waited.log" || fail 'a flow is lost'
ages_are_short || fail "after a restart, ages are wrong: $(flows | head -n 3)"
ok "after a jump, a restart finds all flows with their ages; the last change was made $age s before"
