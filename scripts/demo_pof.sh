# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
#
# The POF part of demo.sh, which sources this file.
#
# Two switches with a cable between them carry the packets of h1 and h2 in a header that no parser knows. A
# POF controller installs the entries.

readonly pof_example=controller/examples/pof/encapsulate

# pof NUMBER COMMAND...: runs a command of the program for a switch.
pof() { "$shunt" --control "$tmp/pof$1.sock" "${@:2}"; }

# start_pof NUMBER: starts a switch between a host, at port 1, and the cable, at port 2. $started is its
# process ID.
start_pof() {
    cat >"$tmp/pof$1.toml" <<CONFIG
control = "$tmp/pof$1.sock"
[[worker]]
cpu = $switch_cpu
[[datapath]]
id = $1
[datapath.pof]
controllers = ["tcp:127.0.0.1:6633"]
[[datapath.port]]
number = 1
name = "host"
driver = "af_packet"
device = "veth$1"
workers = [0]
[[datapath.port]]
number = 2
name = "cable"
driver = "af_packet"
device = "cable$1"
workers = [0]
CONFIG
    ip netns exec "$prefix-sw" "$shunt" run -c "$tmp/pof$1.toml" >"$tmp/pof.out" 2>>"$tmp/switch.log" &
    started=$!
}

begin 'A protocol that nobody has standardised: switches insert a header, forward by it, and remove it'
ip -n "$prefix-sw" link set lo up
ip -n "$prefix-sw" link add cable1 type veth peer name cable2
for n in 1 2; do ip -n "$prefix-sw" link set "cable$n" up; done
sed 's/^/  /' "$pof_example.json"
: >"$tmp/switch.log"
ip netns exec "$prefix-sw" env PYTHONPATH=controller/src PYTHONDONTWRITEBYTECODE=1 \
    python3 "$pof_example.py" "$pof_example.json" >"$tmp/pof.log" 2>&1 &
pof_processes=("$!")
for _ in {1..100}; do
    grep -q ready "$tmp/pof.log" && break
    sleep 0.1
done
for n in 1 2; do
    start_pof "$n"
    pof_processes+=("$started")
done
for _ in {1..100}; do
    [ "$(grep -c ': installed ' "$tmp/pof.log")" -lt 2 ] || break
    sleep 0.1
done
sed 's/^/  /' "$tmp/pof.log"
[ "$(grep -c ': installed ' "$tmp/pof.log")" -eq 2 ] || fail 'the POF controller has not installed its programs'
expect_ping 1 2
say '  a trace of such a packet in switch 1, which inserts the header (0xff9b, version 1, 16 hops, circuit 7):'
pof 1 trace "in_port=1,icmp,nw_dst=$(address 2)" >"$tmp/trace.out"
grep -e 'add_field(96,64,0xff9b101000000007)' -e '^low latency: yes' "$tmp/trace.out" >"$tmp/lines.out" || fail 'the trace inserts no header'
[ "$(wc -l <"$tmp/lines.out")" -eq 2 ] || fail 'the trace has no inserted header, or is not low-latency'
sed 's/^ */    /' "$tmp/lines.out"
say '  the entry of switch 2 that matches circuit 7 and removes the header:'
pof 2 show flows >"$tmp/flows.out"
grep 'slice(base,16,32)=0x7 .*delete_field(96,64)' "$tmp/flows.out" >"$tmp/circuit.out" || fail 'switch 2 has no entry for circuit 7'
sed 's/^ */    /' "$tmp/circuit.out"
[ "$(sed 's/.*n_packets=\([0-9]*\).*/\1/' "$tmp/circuit.out")" -ge "$pings" ] || fail "circuit 7 carried fewer than $pings packets"
kill -TERM "${pof_processes[@]}"
wait "${pof_processes[@]}" || true
