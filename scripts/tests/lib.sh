# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Common functions of the tests with a switch between namespaced hosts. A test sources this file first:
#
#     # shellcheck source=scripts/tests/lib.sh
#     source "$(dirname "$0")/lib.sh"
#
# Rooms are namespaces: `sw` for the switch and its controllers, `h1`, `h2` and so on for hosts. Concurrent
# runs do not collide, because names contain the process ID. On exit, processes, namespaces and files are
# removed. After a failure, the end of each log is printed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PATH=$PWD/target/tools/bin:$PATH:/usr/sbin:/sbin

test_name=$(basename "$0" .sh)
readonly test_name
readonly prefix=shunt-test-$$
folder=$(mktemp -d)
readonly folder
# Address of the switch's controller with its protocol, tcp or ssl, and address at which the switch accepts
# other connections.
controller=127.0.0.1:6653
protocol=tcp
openflow_listen=127.0.0.1:6654
rooms=()
switch=''
shunt=''
# Additional configuration: `top` has lines before the first table, `worker` has lines for the worker, and
# `settings` has lines before the ports.
top=''
worker=''
settings=''
# Driver of the ports, and their further settings; set them before `make_hosts`.
driver=af_packet
port_settings='workers = [0]'
# Further settings of the control socket, such as `, group = "shunt"`.
control_access=''
# ID of the process that `background` started last.
started=''
failed=''

# fail TEXT: ends the test with a message.
fail() {
    failed=$*
    exit 1
}
# needs FILE: fails unless scripts/setup.sh has installed the file.
needs() { [ -x "$1" ] || fail "$1 is missing: run scripts/setup.sh test first"; }
ok() { printf 'ok: %s\n' "$*"; }

# end_rooms: stops all processes in the test's namespaces, by SIGKILL if necessary.
end_rooms() {
    local signal room pids
    for signal in TERM KILL; do
        for _ in {1..30}; do
            pids=''
            for room in "${rooms[@]}"; do pids+=" $(ip netns pids "$prefix-$room" 2>/dev/null)"; done
            [ -n "${pids// /}" ] || return 0
            # shellcheck disable=SC2086
            kill -"$signal" $pids 2>/dev/null
            sleep 0.1
        done
    done
}
clean_up() {
    local status=$? log
    # A second Ctrl-C must not interrupt the clean-up.
    trap '' INT TERM HUP
    set +e
    end_rooms
    wait
    for room in "${rooms[@]}"; do ip netns del "$prefix-$room" 2>/dev/null; done
    if [ "$status" -ne 0 ] && [ "$status" -lt 128 ]; then
        for log in "$folder"/*.log; do
            [ -s "$log" ] || continue
            printf -- '-- the end of %s\n' "${log##*/}" >&2
            tail -n 40 "$log" | cut -c 1-300 >&2
        done
        printf '%s: %s\n' "$test_name" "${failed:-failed}" >&2
    fi
    # A test that failed may have left a mount.
    rm -rf --one-file-system "$folder"
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
trap 'failed=${failed:-"line $LINENO: $BASH_COMMAND"}' ERR

# in_room ROOM COMMAND...: runs the command in a room.
in_room() {
    local room=$1
    shift
    ip netns exec "$prefix-$room" "$@"
}

# background NAME ROOM COMMAND...: starts a process with output to NAME.log. $started is its process ID.
background() {
    local log=$folder/$1.log room=$2
    shift 2
    ip netns exec "$prefix-$room" "$@" >>"$log" 2>&1 &
    started=$!
}

# wait_until WHAT COMMAND...: repeats the command until it succeeds. Fails with WHAT after a minute. The
# command's output is in waited.log.
wait_until() { wait_within 60 "$@"; }
# wait_within SECONDS WHAT COMMAND...: like wait_until, with another time limit.
wait_within() {
    local seconds=$1 what=$2 end=$((SECONDS + $1))
    shift 2
    until "$@" >"$folder/waited.log" 2>&1; do
        [ "$SECONDS" -lt "$end" ] || fail "timed out after $seconds s, waiting for: $what"
        sleep 0.1
    done
}

# logged NAME TEXT: returns whether NAME.log contains the text (a basic regular expression).
logged() { grep -q -- "$2" "$folder/$1.log"; }

make_room() {
    # The name is recorded first, so that Ctrl-C leaves no namespace.
    rooms+=("$1")
    ip netns add "$prefix-$1"
    # Without IPv6, hosts send no packets on their own.
    # shellcheck disable=SC2016
    in_room "$1" bash -c 'for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do [ ! -e "$f" ] || echo 1 >"$f"; done'
    ip -n "$prefix-$1" link set lo up
}

# make_hosts N: creates rooms h1 to hN (10.0.0.1 to 10.0.0.N). Host N has a cable to port N in room sw.
make_hosts() {
    local n
    make_room sw
    for ((n = 1; n <= $1; n++)); do
        make_room "h$n"
        ip -n "$prefix-sw" link add "p$n" type veth peer name eth0 netns "$prefix-h$n"
        ip -n "$prefix-sw" link set "p$n" up
        ip -n "$prefix-h$n" link set eth0 address "$(mac "$n")"
        ip -n "$prefix-h$n" address add "10.0.0.$n/24" dev eth0
        ip -n "$prefix-h$n" link set eth0 up
        printf '[[datapath.port]]\nnumber = %s\nname = "p%s"\ndriver = "%s"\ndevice = "p%s"\n%s\n' \
            "$n" "$n" "$driver" "$n" "$port_settings" >>"$folder/ports"
    done
}
mac() { printf '02:00:00:00:00:%02x' "$1"; }

# test_build: prints the path of the program, which run.sh has built, or which this function builds.
test_build() {
    if [ -n "${SHUNT_TEST_PROGRAM:-}" ]; then
        printf '%s\n' "$SHUNT_TEST_PROGRAM"
    else
        scripts/tests/build.sh
    fi
}

# start_switch FAIL_MODE: starts a switch that connects to $controller and listens for ovs-ofctl at
# $openflow_listen. $switch is its process ID, $shunt the program.
start_switch() {
    local control="\"$folder/control.sock\""
    [ -z "$control_access" ] || control="{ path = $control$control_access }"
    cat - "$folder/ports" >"$folder/switch.toml" <<CONFIG
control = $control
$top
[[worker]]
$worker
[[datapath]]
id = 1
[datapath.openflow]
controllers = ["$protocol:$controller"]
listen = "$openflow_listen"
fail_mode = "$1"
$settings
CONFIG
    shunt=$(test_build)
    background switch sw "$shunt" run -c "$folder/switch.toml"
    # shellcheck disable=SC2034
    switch=$started
    wait_until 'the switch is ready' logged switch ready
}

ofctl() { in_room sw ovs-ofctl -O OpenFlow13 --timeout=10 "$@"; }
flows() { ofctl --no-names dump-flows "tcp:$openflow_listen"; }
# has_flow TEXT: returns whether a flow contains the text.
has_flow() { flows | grep -- "$1"; }
has_no_flow() {
    local all
    all=$(flows) && ! grep -- "$1" <<<"$all"
}

# counters_have TEXT: returns whether a line of the switch's counters matches TEXT (a basic regular
# expression).
counters_have() { "$shunt" show counters -c "$folder/switch.toml" | grep -- "$1"; }

# pings FROM TO: sends three pings between hosts.
pings() { in_room "h$1" ping -q -c 3 -i 0.2 -W 5 "10.0.0.$2" >"$folder/ping.log"; }

# tcp FROM TO: sends TCP at full speed for a second.
tcp() {
    background iperf-server "h$2" iperf3 --server --one-off
    wait_until 'iperf3 listens' in_room "h$2" bash -c 'ss -Hltn "sport = :5201" | grep .'
    in_room "h$1" timeout 20 iperf3 --client "10.0.0.$2" --time 1 >"$folder/iperf.log" 2>&1
    grep -q receiver "$folder/iperf.log"
}

# say NUMBER WORD...: runs a command of `shunt` on one of several switches, whose sockets are sNUMBER.sock.
say() {
    local number=$1
    shift
    "$shunt" --control "$folder/s$number.sock" "$@"
}

# captured DEVICE FILTER NAME: captures packets of a device in room sw to NAME.pcap.
captured() {
    background "$3" sw tcpdump --immediate-mode -U -n -i "$1" -w "$folder/$3.pcap" "$2"
    wait_until "tcpdump listens at $1" logged "$3" 'listening on'
}
# seen NAME FILTER: prints the number of captured packets that match the filter.
seen() { tcpdump -n -r "$folder/$1.pcap" "$2" 2>"$folder/waited.log" | wc -l; }
has_seen() { [ "$(seen "$@")" -gt 0 ]; }
