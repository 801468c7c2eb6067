#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Patch ports between two datapaths of one process: h1 is at datapath 1, h2 at datapath 2. ovs-ofctl sets the
# flows of each datapath. The link of a patch port follows the other port, and frames do not circulate forever.
#
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

make_hosts 2
shunt=$(test_build)
# port NUMBER DRIVER DEVICE WORKERS: prints a section with the name pNUMBER.
port() {
    printf '[[datapath.port]]\nnumber = %s\nname = "p%s"\ndriver = "%s"\ndevice = "%s"\nworkers = %s\n' "$1" "$@"
}
# datapath ID: prints a datapath without ports. ovs-ofctl connects to port 6660 + ID.
datapath() {
    printf '[[datapath]]\nid = %s\ncontrol = "%s/s%s.sock"\n' "$1" "$folder" "$1"
    printf '[datapath.openflow]\nlisten = "127.0.0.1:666%s"\n' "$1"
}
# The cable has two queues at one end and one at the other.
{
    printf '[[worker]]\n[[worker]]\n'
    datapath 1
    port 1 af_packet p1 '[0]'
    port 9 patch trunk '[0, 1]'
    datapath 2
    port 2 af_packet p2 '[1]'
    port 9 patch trunk '[1]'
} >"$folder/switch.toml"
background switch sw "$shunt" run -c "$folder/switch.toml"
switch=$started
# flows_of ID: replaces the flows of a datapath by those of the standard input.
flows_of() { ofctl replace-flows "tcp:127.0.0.1:666$1" -; }
# of_port ID PORT KEY: prints a value of a port, or of its losses.
of_port() {
    say "$1" show ports --json | python3 -c '
import json, sys
[port] = [port for port in json.load(sys.stdin)["ports"] if str(port["number"]) == sys.argv[1]]
print(port.get(sys.argv[2], port["dropped"].get(sys.argv[2], 0)))' "$2" "$3"
}
# reaches: sends two pings from h1 to h2.
reaches() { in_room h1 ping -q -c 2 -i 0.05 -W 5 10.0.0.2 >"$folder/ping.log"; }
# has ID PORT KEY VALUE: returns whether a value of a port is this.
has() { [ "$(of_port "$1" "$2" "$3")" = "$4" ]; }

wait_until 'the switch is ready' logged switch ready
wait_until 'the patch port of datapath 1 is up' has 1 9 up True
wait_until 'the patch port of datapath 2 is up' has 2 9 up True
printf 'in_port=1,actions=output:9\nin_port=9,actions=output:1\n' | flows_of 1
printf 'actions=NORMAL\n' | flows_of 2
reaches || fail 'h1 does not reach h2 over the patch ports'
# h2 leaves checksums and segmentation to its device, and both pass the patch ports.
tcp 2 1 || fail 'TCP does not pass the patch ports'
ofctl dump-flows tcp:127.0.0.1:6661 >"$folder/flows.log"
grep 'n_packets=[1-9].*in_port=9' "$folder/flows.log" >/dev/null || fail 'a flow counted nothing'
ok 'packets pass from one datapath to the other'

# The link follows the other port.
say 2 port remove 9 >"$folder/port.log"
wait_until 'the patch port of datapath 1 is down' has 1 9 up False
ofctl dump-ports-desc tcp:127.0.0.1:6661 >"$folder/ofctl.log"
grep -q LINK_DOWN "$folder/ofctl.log" || fail 'OpenFlow does not show that the link is down'
say 2 port add 9 --name p9 --driver patch --device trunk --workers 1 >"$folder/port.log"
wait_until 'the patch port of datapath 1 is up again' has 1 9 up True
wait_until 'the patch port of datapath 2 is up again' has 2 9 up True
reaches || fail 'h1 does not reach h2 after the patch port was added again'
ofctl mod-port tcp:127.0.0.1:6662 9 down
wait_until 'the link is down at datapath 1, because the port is set down at datapath 2' has 1 9 up False
ofctl mod-port tcp:127.0.0.1:6662 9 up
wait_until 'the link is up at both datapaths' has 1 9 up True
reaches || fail 'h1 does not reach h2 after the patch port was set up again'
ok 'the link of a patch port follows the other port'

# A third port with the same cable is refused, in a file and in a running switch.
{ cat "$folder/switch.toml" && port 8 patch trunk '[1]'; } >"$folder/third.toml"
refusal='the cable "trunk" connects two other ports; use another name'
if in_room sw "$shunt" check -c "$folder/third.toml" >"$folder/check.log" 2>&1; then fail 'a cable has three ports'; fi
grep -q "$refusal" "$folder/check.log" || fail 'the mistake is not described'
if say 2 port add 8 --name p8 --driver patch --device trunk --workers 1 >"$folder/port.log" 2>&1; then
    fail 'a third port was added'
fi
grep -q "$refusal" "$folder/port.log" || fail 'the refusal is not described'
ok 'a cable connects two ports'

# A loop over one cable. Each frame passes 64 patch ports: 32 arrive at datapath 1, which then drops the frame.
printf 'in_port=1,actions=output:9\nin_port=9,actions=in_port\n' | flows_of 1
printf 'in_port=9,actions=in_port\n' | flows_of 2
received=$(of_port 1 9 rx_packets)
in_room h1 python3 -c '
import socket
host = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
host.bind(("eth0", 0))
for _ in range(5):
    host.send(b"\xff" * 6 + bytes.fromhex("02000000000188b5") + b"\0" * 46)'
wait_until 'frames of the loop are dropped' has 1 9 tx_hop_limit 5
wait_until 'each frame has passed 64 patch ports' has 1 9 rx_packets $((received + 5 * 32))

# With three cables, broadcasts also multiply, and fill the rings.
for n in 7 8; do
    for id in 1 2; do
        say "$id" port add "$n" --name "p$n" --driver patch --device "loop$n" --workers $((id - 1)) >"$folder/port.log"
    done
done
for n in 7 8; do for id in 1 2; do wait_until 'the cables of the loop are up' has "$id" "$n" up True; done; done
printf 'actions=FLOOD\n' | flows_of 1
printf 'actions=FLOOD\n' | flows_of 2
in_room h1 ping -q -b -c 1 -W 0.1 10.0.0.255 >"$folder/ping.log" 2>&1 || true
# is_quiet: returns whether no frame circulates.
is_quiet() {
    local before
    before=$(of_port 1 9 rx_packets)
    sleep 0.3
    has 1 9 rx_packets "$before"
}
wait_until 'the frames of the loop are gone' is_quiet
[ "$(of_port 1 9 tx_hop_limit)" -gt 5 ] || fail 'the frames of the second loop were not counted'
for n in 7 8; do say 1 port remove "$n" >"$folder/port.log"; done
reaches || fail 'h1 does not reach h2 after the loop was removed'
kill -TERM "$switch"
wait "$switch" || fail 'the switch has failed'
ok 'frames pass at most 64 patch ports'
