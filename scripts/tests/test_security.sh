#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A switch that has given up its privileges must do all that it does otherwise. It runs as the user `nobody`, and
# allows the group `daemon` to control it. Its threads must have the capabilities and filters of
# docs/security.md. Pings must pass, before and after a reload that opens a port, and after an interface was
# removed and came back. Users of the group may connect to the control socket, others get an explanation.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

command -v setpriv >/dev/null || fail 'setpriv is missing: install util-linux'

# The user of the switch needs its folder.
chmod 755 "$folder"
chown nobody "$folder"
make_hosts 2
export control_access=', group = "daemon"'
export top='metrics = "127.0.0.1:9494"
[security]
user = "nobody"
seccomp = "on"'
export settings="[datapath.store]
path = \"$folder/store\""
start_switch standalone
readonly config=$folder/switch.toml
pings 1 2 || fail 'no pings pass'
ok 'the switch forwards as the user nobody'

# field THREAD FIELD: prints a field of /proc/PID/task/*/status of all threads whose name begins with THREAD.
field() {
    local task
    for task in "/proc/$switch/task"/*; do
        [[ "$(cat "$task/comm")" == "$1"* ]] || continue
        awk -v key="$2:" '$1 == key { print $2 }' "$task/status"
    done
}
# all THREAD FIELD VALUE: every thread of this name must have this value.
all() {
    local values
    values=$(field "$1" "$2" | sort -u)
    [ "$values" = "$3" ] || fail "threads $1 have $2 $values, not $3"
}
nobody=$(id -u nobody)
# CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK, CAP_BPF; for the reload thread also CAP_NET_BIND_SERVICE.
readonly nobody devices=0000008000007000 of_reload=0000008000007400 none=0000000000000000
for thread in shunt worker-0 reload store store-sync metrics log links signals; do
    all "$thread" Uid "$nobody"
    all "$thread" NoNewPrivs 1
    all "$thread" Seccomp 2
    case $thread in
        shunt | worker-0) capabilities=$devices ;;
        reload) capabilities=$of_reload ;;
        *) capabilities=$none ;;
    esac
    all "$thread" CapPrm "$capabilities"
    all "$thread" CapEff "$capabilities"
done
if field '' CapAmb | grep -v "^$none\$" >"$folder/ambient.log"; then fail 'a thread has ambient capabilities'; fi
ok 'threads have only their own capabilities, and filters of system calls'

# as GROUP COMMAND...: runs a command as the user and group, without other groups.
as() {
    local user=$1 group=$2
    shift 2
    setpriv --reuid "$user" --regid "$group" --clear-groups "$@"
}
[ "$(stat -c '%U %G %a' "$folder/control.sock")" = 'nobody daemon 660' ] ||
    fail "the socket is of $(stat -c '%U %G %a' "$folder/control.sock")"
# The program may be in a folder that others cannot enter.
cp "$shunt" "$folder/shunt"
readonly control=$folder/control.sock
as games daemon "$folder/shunt" --control "$control" show ports >"$folder/shown.log" ||
    fail 'a member of the group may not connect'
refused() { ! as games games "$folder/shunt" --control "$control" show ports 2>"$folder/refused.log"; }
refused || fail 'another user may connect'
grep -q 'you may not connect to this control socket; it is for the user nobody and the group daemon' \
    "$folder/refused.log" || fail "another user reads: $(cat "$folder/refused.log")"
ok 'the group may connect to the control socket, others read why not'

in_room sw curl --silent --fail http://127.0.0.1:9494/metrics >"$folder/metrics.log" || fail 'there are no metrics'
grep -q '^process_open_fds [0-9]' "$folder/metrics.log" || fail 'metrics of the process are missing'

# A change of many flows, on a thread of its own, which starts another thread to compile the table.
for ((n = 0; n < 5000; n++)); do
    printf 'cookie=%s,priority=8,ip,nw_dst=10.1.%s.%s,actions=drop\n' $((n % 25 ? 1 : 2)) $((n / 250)) $((n % 250))
done >"$folder/many.flows"
"$shunt" --control "$control" flows load "$folder/many.flows" >"$folder/load.log"
ofctl del-flows "tcp:$openflow_listen" 'cookie=2/-1'
compiles() { [ "$(field bases Seccomp | sort -u)" = 2 ]; }
wait_until 'a thread compiles the table' compiles
[ "$("$shunt" --control "$control" flows dump | grep -c 'cookie=0x1,')" = 4800 ] || fail 'flows are lost'
ok 'a change of many flows starts a thread that compiles the table'

# A reload opens a port and changes the mode of the socket.
make_room h3
ip -n "$prefix-sw" link add p3 type veth peer name eth0 netns "$prefix-h3"
ip -n "$prefix-sw" link set p3 up
ip -n "$prefix-h3" address add 10.0.0.3/24 dev eth0
ip -n "$prefix-h3" link set eth0 up
printf '[[datapath.port]]\nnumber = 3\nname = "p3"\ndriver = "af_packet"\ndevice = "p3"\nworkers = [0]\n' >>"$config"
sed -i 's/, group = "daemon"/, group = "daemon", mode = "0600"/' "$config"
"$shunt" reload -c "$config" >"$folder/reload.log" || fail 'the reload failed'
grep -q 'the control socket has the owner that of the switch, the group daemon and the mode 0600' "$folder/reload.log" ||
    fail "the reload says: $(cat "$folder/reload.log")"
[ "$(stat -c %a "$control")" = 600 ] || fail 'the mode of the socket is not changed'
wait_until 'pings pass through the new port' pings 1 3
# A group that does not exist leaves everything as it was.
sed 's/group = "daemon"/group = "shunt-no-group"/' "$config" >"$folder/wrong.toml"
cp "$config" "$folder/right.toml"
cp "$folder/wrong.toml" "$config"
if "$shunt" --control "$control" reload 2>"$folder/wrong.log"; then fail 'an unknown group was accepted'; fi
grep -q '"shunt-no-group" is not in /etc/group' "$folder/wrong.log" || fail "the reload says: $(cat "$folder/wrong.log")"
cp "$folder/right.toml" "$config"
ok 'a reload opens a port and changes the access to the socket'

# The worker opens the interface again.
ip -n "$prefix-sw" link delete p2
ip -n "$prefix-sw" link add p2 type veth peer name eth0 netns "$prefix-h2"
ip -n "$prefix-h2" link set eth0 address "$(mac 2)"
ip -n "$prefix-h2" address add 10.0.0.2/24 dev eth0
ip -n "$prefix-h2" link set eth0 up
wait_until 'pings pass through the interface that came back' pings 1 2
ok 'an interface that came back is opened again'

kill -HUP "$switch"
wait_until 'the file was read after SIGHUP' logged switch 'SIGHUP: nothing changed'
kill -TERM "$switch"
status=0
wait "$switch" || status=$?
[ "$status" -eq 0 ] || fail "the switch ended with $status"
[ ! -e "$control" ] || fail 'the socket is still there'
ok 'the switch ends as usual'
