#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The switch under a service manager: it must report that it is ready, reloads and stops, and feed the watchdog
# only while its control thread and its worker make progress. The unit file must be valid, and hardened at least
# as much as docs/security.md says.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

readonly manager=$folder/notify.sock limit_ms=1600
make_hosts 2
background reports sw scripts/tests/notified.py "$manager"
wait_until 'the service manager listens' [ -S "$manager" ]
export NOTIFY_SOCKET=$manager WATCHDOG_USEC=$((limit_ms * 1000))
start_switch standalone
unset NOTIFY_SOCKET WATCHDOG_USEC
wait_until 'the switch reports that it is ready' logged reports 'READY=1'
logged reports 'STATUS=forwards packets; datapaths: 1, ports at the start: 2' || fail 'there is no status'
pings 1 2 || fail 'no pings pass'

# fed SECONDS: prints how often the watchdog is fed in this time.
fed() {
    local before
    before=$(grep -c 'WATCHDOG=1' "$folder/reports.log" || true)
    sleep "$1"
    echo $(($(grep -c 'WATCHDOG=1' "$folder/reports.log") - before))
}
wait_until 'the watchdog is fed' logged reports 'WATCHDOG=1'
[ "$(fed 1.6)" -ge 2 ] || fail 'the watchdog is not fed often enough'
ok 'the switch reports that it is ready and works'

for thread in worker-0 shunt; do
    scripts/tests/notified.py --stop "$thread" "$switch" 3 &
    stopped=$!
    # Reports may come for half of the limit.
    sleep 1
    count=$(fed 1.6)
    [ "$count" -eq 0 ] || fail "the watchdog was fed $count times while the thread $thread stood still"
    wait "$stopped" || fail "the thread $thread was not stopped"
    [ "$(fed 1.2)" -ge 1 ] || fail "the watchdog is not fed again after the thread $thread goes on"
done
ok 'a thread that stands still ends the reports'

kill -HUP "$switch"
wait_until 'the switch reports the reload' logged reports 'RELOADING=1'
wait_until 'the switch reports the result' logged reports 'STATUS=forwards packets; the last reload changed nothing'
logged reports 'MONOTONIC_USEC=[0-9]' || fail 'the reload has no time'
[ "$(grep -c 'READY=1' "$folder/reports.log")" -eq 2 ] || fail 'the switch is not ready after the reload'
kill -TERM "$switch"
status=0
wait "$switch" || status=$?
[ "$status" -eq 0 ] || fail "the switch ended with $status"
wait_until 'the switch reports that it stops' logged reports 'STOPPING=1'
ok 'reloading and stopping are reported'

# Other versions of systemd rate other settings.
version=$(systemd-analyze --version 2>/dev/null | sed -n '1s/systemd \([0-9]*\).*/\1/p' || true)
read -r stated rated < <(tr '\n' ' ' <docs/security.md |
    sed -n 's/.*exposure level of the unit is \([0-9.]*\) (systemd \([0-9]*\)).*/\1 \2\n/p')
if [ "$version" = "$rated" ]; then
    score=$(systemd-analyze security --offline=yes packaging/shunt.service |
        sed -n 's/.*Overall exposure level for shunt.service: \([0-9.]*\).*/\1/p')
    [ "$score" = "$stated" ] || fail "the exposure level is $score; docs/security.md says $stated"
    ok "the exposure level of the unit is $score"
fi
