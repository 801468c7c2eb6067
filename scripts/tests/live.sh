# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Builds a network of switches and hosts for a controller that discovers it.
#
# A test sources this file after lib.sh.
# shellcheck source=scripts/tests/lib.sh
: "${folder:?lib.sh is sourced first}" "${prefix:?}" "${controller:?}"
other=''
# IDs of the processes that were started last.
switches='' app='' stream=''
readonly python=$PWD/target/tools/os-ken/bin/python
needs "$python"
export PYTHONPATH=$PWD/controller/src

# make_network SWITCHES LINK... -- HOST...: creates the namespaces and the configuration of a network. Switches
# are numbered from 1, which is also their datapath ID. LINK is "1:2 3:4", for port 2 of switch 1 and port 4 of
# switch 3. HOST is "1:9", for port 9 of switch 1; host N has the address 10.0.0.N. Device s1p2 is port 2 of
# switch 1, and device pN is the port of host N. Switch $other is not Shunt, and has no configuration.
make_network() {
    local switches=$1 link host a b n=0
    local -a links=() hosts=()
    shift
    while [ "$1" != -- ]; do links+=("$1") && shift; done
    shift
    hosts=("$@")
    make_hosts "${#hosts[@]}"
    for ((n = 1; n <= switches; n++)); do : >"$folder/ports.$n"; done
    for link in "${links[@]}"; do
        read -r a b <<<"$link"
        # The MTU leaves space for keys.
        ip -n "$prefix-sw" link add "s${a/:/p}" mtu 1600 type veth peer name "s${b/:/p}" mtu 1600
        ip -n "$prefix-sw" link set "s${a/:/p}" up
        ip -n "$prefix-sw" link set "s${b/:/p}" up
        add_port "${a%:*}" "${a#*:}" "s${a/:/p}"
        add_port "${b%:*}" "${b#*:}" "s${b/:/p}"
    done
    n=0
    for host in "${hosts[@]}"; do add_port "${host%:*}" "${host#*:}" "p$((++n))"; done
    printf '[[worker]]\n' >"$folder/switches.toml"
    for ((n = 1; n <= switches; n++)); do
        if [ "$n" = "$other" ]; then continue; fi
        printf '[[datapath]]\nid = %s\ncontrol = "%s"\n[datapath.openflow]\ncontrollers = ["tcp:%s"]\nfail_mode = "secure"\n' \
            "$n" "$folder/s$n.sock" "$controller"
        cat "$folder/ports.$n"
    done >>"$folder/switches.toml"
}
add_port() {
    printf '[[datapath.port]]\nnumber = %s\nname = "%s"\ndriver = "af_packet"\ndevice = "%s"\nworkers = [0]\n' \
        "$2" "$3" "$3" >>"$folder/ports.$1"
}

# start_switches: starts all switches in one process. $switches is its process ID.
start_switches() {
    shunt=$(test_build)
    background switches sw "$shunt" run -c "$folder/switches.toml"
    # shellcheck disable=SC2034,SC2154
    switches=$started
    wait_until 'all switches are ready' all_ready
}
all_ready() { [ "$(grep -c 'shunt: ready' "$folder/switches.log")" -eq "$(grep -c '^\[\[datapath\]\]' "$folder/switches.toml")" ]; }

# start_controller OPTION...: starts `shunt-controller run` in the room of the switches. $app is its process ID.
start_controller() {
    background app sw "$python" -m shunt_controller run "$@"
    # shellcheck disable=SC2034
    app=$started
}

# has_lines NAME TEXT COUNT: returns whether at least COUNT lines of NAME.log contain the text.
has_lines() { [ "$(grep -c -- "$2" "$folder/$1.log")" -ge "$3" ]; }

# begin_pings FROM TO: starts pings between hosts, 50 per second. end_pings prints the number of lost ones. The
# last one is not counted, because its answer may be on its way.
begin_pings() {
    : >"$folder/stream.log"
    background stream "h$1" ping -i 0.02 -W 2 "10.0.0.$2"
    stream=$started
    wait_until 'pings pass' logged stream 'time='
}
end_pings() {
    kill -INT "$stream"
    # The caller's subshell cannot wait for a process that is not its child.
    wait_until 'ping has ended' logged stream 'packets transmitted'
    local sent received last
    sent=$(sed -n 's/^\([0-9]*\) packets transmitted.*/\1/p' "$folder/stream.log")
    received=$(grep -c 'time=' "$folder/stream.log")
    last=$(grep -c "icmp_seq=$sent .*time=" "$folder/stream.log" || true)
    echo $((sent - 1 - (received - last)))
}

# without_loss FROM TO: sends three pings between hosts. Returns whether all are answered.
without_loss() { pings "$1" "$2" && logged ping ' 0% packet loss'; }
