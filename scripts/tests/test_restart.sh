#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A switch with a store between namespaces. It is killed under traffic and started again: the first packet must
# be forwarded by the restored rules, and no rule whose barrier was answered may be lost. Then with damaged
# files, a full disk, and a second process on the same store.
#
# RESTART_FLOWS and RESTART_GROUPS are the numbers of rules, RESTART_KILLS that of kills at random times, and
# RESTART_SEED the seed of these times. Forwarding must begin again RESTART_LIMIT_MS after exec, in the median.
# Only changes of the last RESTART_LOSS_MS before a kill may be lost. The limit on an idle machine is 50; a busy
# machine may keep the writing thread waiting for longer.
# RESTART_PPS adds a flood of this rate. SHUNT names another program.
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

: "${RESTART_FLOWS:=5000}" "${RESTART_GROUPS:=100}" "${RESTART_KILLS:=3}" "${RESTART_SEED:=$RANDOM}"
: "${RESTART_LIMIT_MS:=2000}" "${RESTART_LOSS_MS:=250}" "${RESTART_PPS:=0}"

make_hosts 2
shunt=${SHUNT:-$(test_build)}
store=$folder/disk/store
mkdir "$folder/disk"

# configure DURABLE [FLOW_FILE]: writes the configuration.
configure() {
    cat - "$folder/ports" >"$folder/switch.toml" <<CONFIG
control = "$folder/control.sock"
[[worker]]
[[datapath]]
id = 1
${2:+flows = \"$2\"}
[datapath.openflow]
listen = "$openflow_listen"
fail_mode = "secure"
[datapath.store]
path = "$store"
durable = "$1"
CONFIG
}

cat >"$folder/exec.py" <<'EXEC'
"""Writes the time in ns into a file and executes a program in its own place."""
import os, sys, time
with open(sys.argv[1], "w") as file:
    file.write(str(time.monotonic_ns()))
os.execv(sys.argv[2], sys.argv[2:])
EXEC

# start: starts the switch in the mount namespace of `keeper`, and waits until it is ready.
start() {
    : >"$folder/switch.log"
    background switch sw nsenter --mount="/proc/$keeper/ns/mnt" python3 "$folder/exec.py" \
        "$folder/exec_ns" "$shunt" run -c "$folder/switch.toml"
    switch=$started
    wait_until 'the switch is ready' logged switch 'shunt: ready'
}
# end SIGNAL: ends the switch.
end() {
    kill -"$1" "$switch"
    wait "$switch" 2>/dev/null || true
}
# store_is STATE: returns whether `shunt show store` prints this state.
store_is() { "$shunt" show store -c "$folder/switch.toml" | grep -- "state: $1"; }
# count_flows N: returns whether the switch has N flows.
count_flows() { [ "$("$shunt" flows dump -c "$folder/switch.toml" | grep -vc '^group\|^meter')" -eq "$1" ]; }

# The mount namespace with the disk of the store: a tmpfs, whose size the test changes.
background keeper sw unshare --mount sleep 100000
keeper=$started
on_disk() { nsenter --mount="/proc/$keeper/ns/mnt" "$@"; }
has_own_mounts() { [ "$(readlink "/proc/$keeper/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ] && [ "$(cat "/proc/$keeper/comm")" = sleep ]; }
wait_until 'the keeper has its mount namespace' has_own_mounts
on_disk mount -t tmpfs -o size=1g tmpfs "$folder/disk"

python3 - "$RESTART_FLOWS" "$RESTART_GROUPS" >"$folder/rules" <<'RULES'
"""Prints rules: between h1 and h2 by a group and a meter, and many others."""
import sys
flows, groups = int(sys.argv[1]), int(sys.argv[2])
print("meter meter=1 kbps bands=type=drop rate=10000000")
for group in range(groups):
    print(f"group group_id={group},type=indirect,bucket=output:{1 + group % 2}")
print("priority=10,in_port=1,cookie=0x11,actions=group:1")
print("priority=10,in_port=2,cookie=0x12,actions=meter:1,group:0")
for n in range(flows - 2):
    address = f"10.{100 + (n >> 16)}.{n >> 8 & 255}.{n & 255}"
    print(f"priority=20,ip,nw_dst={address},cookie=0x{n + 32:x},actions=group:{n % groups}")
RULES

configure interval
start
logged switch "store $store: is new" || fail 'the first start does not say that the store is new'
"$shunt" flows load -c "$folder/switch.toml" "$folder/rules" >"$folder/load.log"
pings 1 2 || fail 'h1 does not reach h2'
"$shunt" flows dump -c "$folder/switch.toml" | sort >"$folder/before"
wait_until 'the store is complete' store_is complete

cat >"$folder/watch.py" <<'WATCH'
"""Receives UDP packets on port 9 and prints the time of the first packet after each gap of 20 ms, in ns."""
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 9))
s.settimeout(0.02)
first = True
while True:
    try:
        s.recv(100)
    except TimeoutError:
        first = True
        continue
    if first:
        print(time.monotonic_ns(), flush=True)
        first = False
WATCH
cat >"$folder/send.py" <<'SEND'
"""Sends a UDP packet each 0.5 ms from h1 to port 9 of h2."""
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    try:
        s.sendto(b"x" * 40, ("10.0.0.2", 9))
    except OSError:
        pass
    time.sleep(0.0005)
SEND
ip -n "$prefix-h1" neighbour replace 10.0.0.2 lladdr "$(mac 2)" dev eth0
ip -n "$prefix-h2" neighbour replace 10.0.0.1 lladdr "$(mac 1)" dev eth0
background watch h2 python3 "$folder/watch.py"
background send h1 python3 "$folder/send.py"
arrived() { [ "$(wc -l <"$folder/watch.log")" -gt "$1" ]; }
wait_until 'packets arrive' arrived 0

if [ "$RESTART_PPS" -gt 0 ]; then
    background flood h1 python3 lab/send_flows.py eth0 "$(mac 2)" 64 1000000 "$RESTART_PPS"
fi

# A controller changes flows until the switch is killed at a random time.
churn=$PWD/scripts/tests/restart_churn.py
RANDOM=$RESTART_SEED
times=() restored=() most_lost=0 changes=0
for ((kill = 1; kill <= RESTART_KILLS; kill++)); do
    : >"$folder/churn.log"
    background churn sw "$churn" run "$openflow_listen" $((kill * 1000000 % 8000000)) "$folder/churned"
    churning=$started
    wait_until 'the controller of the test is connected' logged churn connected
    sleep "0.$(printf '%03d' $((RANDOM % 400 + 100)))"
    killed_ns=$(date +%s%N)
    end KILL
    wait "$churning" || fail 'the controller of the test has failed'
    gaps=$(wc -l <"$folder/watch.log")
    sleep 0.1
    start
    wait_until 'packets arrive again' arrived "$gaps"
    first=$(sed -n "$((gaps + 1))p" "$folder/watch.log")
    times+=($(((first - $(cat "$folder/exec_ns")) / 1000000)))
    restored+=("$(sed -n 's/.*: restored .* in \([0-9]*\) ms$/\1/p' "$folder/switch.log")")
    "$shunt" flows dump -c "$folder/switch.toml" | sort >"$folder/after"
    "$churn" check "$folder/churned" "$killed_ns" "$folder/after" "$RESTART_LOSS_MS" >"$folder/check.log" 2>&1 ||
        fail "kill $kill with seed $RESTART_SEED: $(cat "$folder/check.log")"
    read -r answered lost <"$folder/check.log"
    changes=$((changes + answered)) most_lost=$((lost > most_lost ? lost : most_lost))
    grep -vE 'cookie=0xc0de[0-9a-f]{8}' "$folder/after" | diff - "$folder/before" >"$folder/difference.log" ||
        fail "rules have changed: $(head -n 4 "$folder/difference.log")"
    logged switch 'the last change kept is number' || fail 'the start does not report the last change'
    ofctl del-flows "tcp:$openflow_listen" 'cookie=0xc0de00000000/0xffff00000000'
done
[ "$changes" -gt $((RESTART_KILLS * 10)) ] || fail "only $changes changes were made before the kills"
median=$(printf '%s\n' "${times[@]}" | sort -n | sed -n "$(((RESTART_KILLS + 1) / 2))p")
ok "$RESTART_KILLS kills under traffic with seed $RESTART_SEED: of $changes answered changes, at most $most_lost were lost at a kill"
ok "forwarding again $median ms after exec in the median, with $RESTART_FLOWS flows: $(printf '%s\n' "${times[@]}" | sort -n | xargs) ms"
ok "in these starts, decoding and installing the rules took $(printf '%s\n' "${restored[@]}" | sort -n | xargs) ms"
[ "$median" -le "$RESTART_LIMIT_MS" ] || fail "forwarding began again $median ms after exec"

# Under a controller: flows are deleted by their cookies, as after flow-restore-wait.
ofctl add-flow "tcp:$openflow_listen" 'cookie=0xdeadbee1,priority=5,in_port=1,dl_vlan=1,actions=drop'
ofctl del-flows "tcp:$openflow_listen" 'cookie=0xdeadbee0/0xfffffff0'
sleep "$(printf '%d.%03d' $(((RESTART_LOSS_MS + 10) / 1000)) $(((RESTART_LOSS_MS + 10) % 1000)))"
end KILL
start
if flows | grep 0xdeadbee; then fail 'deleted flows have returned'; fi
ok 'flows that were deleted by their cookies do not return'

# A clean end keeps everything, and a flow file does not replace the store.
end TERM
echo 'priority=1,actions=drop' >"$folder/other"
configure barrier "$folder/other"
start
logged switch 'are not loaded, because the store' || fail 'the start does not say that the flow file is not loaded'
count_flows "$RESTART_FLOWS" || fail 'the flow file has changed the rules'
ok 'the store has precedence over a flow file'

# A second process on the same store.
sed "s|^control = .*|control = \"$folder/second.sock\"|;s|$openflow_listen|127.0.0.1:6655|" "$folder/switch.toml" >"$folder/second.toml"
sed -i '/^\[\[datapath.port\]\]/,$d' "$folder/second.toml"
if in_room sw nsenter --mount="/proc/$keeper/ns/mnt" timeout 20 "$shunt" run -c "$folder/second.toml" >"$folder/second.log" 2>&1; then
    fail 'a second process uses the same store'
fi
logged second 'another datapath or process uses this store' || fail 'the second process does not give the reason'
ok 'a second process does not use the same store'

# A damaged log: the switch starts with an earlier state, and forwards. The new flows are in the newest log, even
# if a snapshot has just made the logs before it needless.
python3 -c 'for n in range(100): print(f"priority=7,cookie=0xf002,in_port=1,dl_vlan={n},actions=drop")' >"$folder/more"
"$shunt" flows load -c "$folder/switch.toml" "$folder/more" >"$folder/load.log"
wait_until 'the store is complete' store_is complete
end KILL
newest=$(on_disk find "$store" -name 'log-*' -size +1k | sort | tail -n 1)
on_disk python3 - "$newest" <<'DAMAGE'
import sys
with open(sys.argv[1], "r+b") as file:
    data = bytearray(file.read())
    data[len(data) // 2] ^= 0xFF
    file.seek(0)
    file.write(data)
DAMAGE
start
logged switch 'it is kept as damaged-' || fail 'the start does not report the damaged file'
on_disk ls "$store" | grep '^damaged-' >/dev/null || fail 'the damaged file is not kept'
"$shunt" show ports -c "$folder/switch.toml" >"$folder/ports.log" || fail 'the switch does not answer'
ok 'a damaged log does not prevent the start'

# A full disk: the switch forwards and says why the store fails. With space, the store is complete again.
end KILL
on_disk rm -rf "$store"
configure interval
start
"$shunt" flows load -c "$folder/switch.toml" "$folder/rules" >"$folder/load.log"
wait_until 'the store is complete' store_is complete
on_disk bash -c "head -c 2G /dev/zero >'$folder/disk/filler' 2>/dev/null" || true
for ((n = 0; n < 40; n++)); do
    ofctl add-flow "tcp:$openflow_listen" "cookie=0xf000,priority=6,in_port=1,dl_vlan=$((100 + n)),actions=drop"
done
python3 -c 'for n in range(4000): print(f"priority=7,cookie=0xf001,in_port=1,dl_vlan={n},actions=drop")' >"$folder/more"
"$shunt" flows load -c "$folder/switch.toml" "$folder/more" >"$folder/load.log"
wait_until 'the store reports the full disk' store_is 'failing: No space left'
pings 1 2 || fail 'the switch does not forward while the disk is full'
"$shunt" flows dump -c "$folder/switch.toml" | sort >"$folder/before"
on_disk rm "$folder/disk/filler"
wait_until 'the store is complete again' store_is complete
end KILL
start
"$shunt" flows dump -c "$folder/switch.toml" | sort | diff - "$folder/before" >"$folder/difference.log" ||
    fail "rules are lost after the disk was full: $(head -n 4 "$folder/difference.log")"
ok 'a full disk does not disturb forwarding, and nothing is lost when there is space again'

# A start while the disk is full.
end KILL
on_disk bash -c "head -c 2G /dev/zero >'$folder/disk/filler' 2>/dev/null" || true
start
"$shunt" flows dump -c "$folder/switch.toml" | sort | diff - "$folder/before" >"$folder/difference.log" ||
    fail "rules are lost at a start with a full disk: $(head -n 4 "$folder/difference.log")"
pings 1 2 || fail 'the switch does not forward after a start with a full disk'
ok 'the switch starts while the disk is full'
