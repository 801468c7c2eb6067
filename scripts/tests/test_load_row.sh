#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A KeyFlow path of six switches over OpenFlow, which os-ken loads. Two hosts at its ends must reach each
# other. On the wire, the key must not change and the hop limit must decrease, as docs/wire-formats.md states.
# The four inner switches must have empty tables.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/tests/planned.sh
source scripts/tests/planned.sh

cat >"$folder/net.json" <<'NETWORK'
{"name": "row", "nodes": ["a", "b", "c", "d", "e", "f"], "links": [["a", "b"], ["b", "c"], ["c", "d"], ["d", "e"], ["e", "f"]]}
NETWORK
places=('a 9' 'f 9')
load keyflow "$folder/net.json"

# Port 1 of switches 2 to 6 leads to the previous switch, so packets of the first host arrive there.
for number in {2..6}; do captured "s${number}p1" inbound "at-$number"; done
captured p2 'ether proto 0x88b5' at-h2
pings 1 2 || fail 'no pings pass'
tcp 1 2 || fail 'no TCP passes'
read -r key hops < <("$python" - "$folder/plan.json" <<'PYTHON'
import json, sys

(plan,) = json.load(open(sys.argv[1]))["plans"]
(route,) = [route for route in plan["routes"] if (route["from"], route["to"]) == ("a", "f")]
(segment,) = route["segments"]
assert plan["width_bits"] == 64
print(segment["key"], segment["hop_limit"])
PYTHON
)
for number in {2..6}; do
    # The header has version 1 and epoch 0, this hop limit, an IPv4 payload, and this key of 8 bytes.
    wait_until "packets arrive at switch $number with the key $key and $((hops - number + 2)) hops left" has_seen "at-$number" \
        "ether[12:2] = 0x88b5 and ether[14] = 0x10 and ether[15] = $((hops - number + 2)) and ether[16] = 1 and ether[18:2] = 0x0800 and
        ether[22:4] = $((key >> 32)) and ether[26:4] = $((key & 0xffffffff))"
done
[ "$(seen at-h2 '')" -eq 0 ] || fail 'keys reach a host'
ok 'pings and TCP pass six switches; the key is unchanged, the hop limit decreases'

for number in {2..5}; do
    [ -z "$(say "$number" flows dump)" ] || fail "switch $number has entries"
    say "$number" show tables --json >"$folder/tables.json"
    "$python" -c 'import json, sys; sys.exit(any(table["lookups"] for table in json.load(sys.stdin)["tables"]))' <"$folder/tables.json" ||
        fail "packets were looked up in tables of switch $number"
done
ok 'no packet was looked up in a table of the switches between the ends'
