#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Links between namespaces. When the switch is ready, the ports that it set up must have a link. A short loss
# of link must be reported to a controller as down and up. Each of many short losses must be reported at most
# once.
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

cat >"$folder/watch.py" <<'WATCH'
"""Prints each change of a port's link that the switch reports: its name, and "up" or "down"."""
import socket, struct, sys
host, port = sys.argv[1].split(":")
peer = socket.create_connection((host, int(port)))
peer.sendall(struct.pack("!BBHI", 4, 0, 8, 1))
stream = peer.makefile("rb")
# All ports are up when the controller connects. Reports of a port's other changes are ignored.
links = {}
while True:
    version, kind, length, xid = struct.unpack("!BBHI", stream.read(8))
    body = stream.read(length - 8)
    if kind == 0:
        print("connected", flush=True)
    elif kind == 2:
        peer.sendall(struct.pack("!BBHI", 4, 3, length, xid) + body)
    elif kind == 12:
        name = body[8 + 16 : 8 + 32].rstrip(b"\0").decode()
        (state,) = struct.unpack_from("!I", body, 8 + 36)
        link = "down" if state & 1 else "up"
        if links.get(name, "up") != link:
            print(name, link, flush=True)
        links[name] = link
WATCH

# The kernel delays reports about p1 by up to a second, because p1 and its peer have equal interface indices.
make_hosts 3
# p2 uses the other driver.
sed -i '/^name = "p2"$/,/^driver/s/^driver = .*/driver = "af_xdp"/' "$folder/ports"
for n in 1 2 3; do ip -n "$prefix-sw" link set "p$n" down; done
start_switch standalone
"$shunt" show ports -c "$folder/switch.toml" --json >"$folder/ready.log"
python3 - "$folder/ready.log" <<'UP' || fail "a port has no link when the switch is ready: $(cat "$folder/ready.log")"
import json, sys
sys.exit(not all(port["up"] and port["speed_mbps"] == 10000 for port in json.load(open(sys.argv[1]))["ports"]))
UP
pings 1 2 || fail 'h1 does not reach h2'
pings 3 1 || fail 'h3 does not reach h1'
"$shunt" show counters -c "$folder/switch.toml" >"$folder/counters.log"
! grep -q port_not_receiving "$folder/counters.log" || fail "packets were dropped at a port without a link: $(cat "$folder/counters.log")"
ok 'all ports have their links, and their speeds, when the switch is ready'

background watch sw python3 "$folder/watch.py" "$openflow_listen"
wait_until 'the watcher is connected' logged watch connected
# count PORT STATE: prints how often this state of the port was reported.
count() { grep -c "^$1 $2\$" "$folder/watch.log" || true; }
reported() { [ "$(count "$1" down)" -eq "$2" ] && [ "$(count "$1" up)" -eq "$2" ]; }
# flap ROOM DEVICE MS: sets a device down for this time, then up again.
flap() {
    ip -n "$prefix-$1" link set "$2" down
    sleep "$(printf '0.%03d' "$3")"
    ip -n "$prefix-$1" link set "$2" up
}

for n in 1 2 3; do
    flaps=0
    for ms in 10 100 400 10; do
        flap "h$n" eth0 "$ms"
        flaps=$((flaps + 1))
        wait_until "p$n is reported down and up $flaps times" reported "p$n" "$flaps"
    done
    flap sw "p$n" 10
    wait_until "p$n is reported down and up after it was set down itself" reported "p$n" $((flaps + 1))
done
ok 'flaps of 10, 100 and 400 ms are each reported as down and up'

# settled PORT: returns whether the port was last reported as up, and as often down as up.
settled() { [ "$(grep "^$1 " "$folder/watch.log" | tail -n 1)" = "$1 up" ] && [ "$(count "$1" down)" -eq "$(count "$1" up)" ]; }
before=$(count p3 down)
for _ in {1..40}; do flap h3 eth0 1; done
sleep 1.5
wait_until 'the last report says that p3 is up' settled p3
after=$(count p3 down)
if [ "$after" -le "$before" ] || [ "$after" -gt $((before + 40)) ]; then
    fail "40 flaps were reported as $((after - before))"
fi
pings 1 3 || fail 'h1 does not reach h3 after the link of h3 went down and up'
ok "40 flaps in a row were reported as $((after - before)), the last as up"

# Delete the interface, and create another one with the same name.
ip -n "$prefix-sw" link del p3
gone() { [ "$(count p3 down)" -gt "$after" ]; }
wait_until 'p3 is reported down without an interface' gone
downs=$(count p3 down)
[ "$downs" -eq $((after + 1)) ] || fail "p3 was reported down $((downs - after)) times"
ip -n "$prefix-sw" link add p3 type veth peer name eth0 netns "$prefix-h3"
ip -n "$prefix-h3" link set eth0 address "$(mac 3)"
ip -n "$prefix-h3" address add 10.0.0.3/24 dev eth0
ip -n "$prefix-h3" link set eth0 up
wait_until 'p3 is up again' settled p3
pings 1 3 || fail 'h1 does not reach h3 over the new cable'
ok 'a deleted interface has no link until another interface with its name exists'
