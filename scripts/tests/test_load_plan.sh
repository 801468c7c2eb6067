#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A KeyFlow plan over OpenFlow, which os-ken loads into four switches. Two hosts must reach each other by
# keys, even when a link of the path fails. The header on the wire must have the format of
# docs/wire-formats.md.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/tests/planned.sh
source scripts/tests/planned.sh

# From one host to the other there is a path over b, and another over c.
cat >"$folder/net.json" <<'NETWORK'
{"name": "diamond",
 "nodes": [{"name": "a", "role": "edge"}, "b", "c", {"name": "d", "role": "edge"}],
 "links": [{"a": "a", "a_port": 1, "b": "b", "b_port": 1}, {"a": "a", "a_port": 2, "b": "c", "b_port": 1},
           {"a": "b", "a_port": 2, "b": "d", "b_port": 1}, {"a": "c", "a_port": 2, "b": "d", "b_port": 2},
           {"a": "b", "a_port": 3, "b": "c", "b_port": 3}]}
NETWORK
places=('a 9' 'd 9')
load keyflow "$folder/net.json" --protect

# The header has version 1 and epoch 0, a key of 16 bytes, and an IPv4 payload.
readonly keyed='ether[12:2] = 0x88b5 and ether[14] = 0x10 and ether[16] = 2 and ether[18:2] = 0x0800'
captured s4p1 inbound by-b
captured s4p2 inbound by-c
captured p2 'ether proto 0x88b5' at-h2
pings 1 2 || fail 'no pings pass'
way=by-b other=by-c cable=s2p2
has_seen by-b "$keyed" || { way=by-c other=by-b cable=s3p2; }
wait_until 'packets with keys arrive at switch d' has_seen "$way" "$keyed"
tcp 1 2 || fail 'no TCP passes'
ok "pings and TCP pass ($way)"

before=$(seen "$other" "$keyed")
more_keys() { [ "$(seen "$other" "$keyed")" -gt "$before" ]; }
ip -n "$prefix-sw" link set "$cable" down
wait_until 'pings pass around the link that is down' pings 1 2
wait_until 'packets with keys go the other way' more_keys
tcp 1 2 || fail 'no TCP passes around the link that is down'
[ "$(seen at-h2 '')" -eq 0 ] || fail 'keys reach a host'
ok 'pings and TCP pass around a link that is down'
