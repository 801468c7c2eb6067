#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tag-and-Forward over OpenFlow: the plan of a fat tree with k = 4, loaded by os-ken into twenty switches that connect; hosts of one
# edge switch, of one pod and of two pods reach each other by tags as docs/wire-formats.md has them.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/tests/planned.sh
source scripts/tests/planned.sh

# h1 and h2 are at one edge switch, h3 at another of its pod, h4 in another pod. Server gates are 2, 4, ... in their order.
places=('es1 1' 'es1 2' 'es2 1' 'es8 2')
load fat-tree --k 4

readonly to_h3='ether[12:2] = 0xff1f and ether[14:4] = 0 and ether[18:2] = 6 and ether[20:2] = 0x0800'
readonly to_h4='ether[12:2] = 0xff1f and ether[14:4] != 0 and ether[18:2] & 0x1fff = 32 and ether[20:2] = 0x0800'
# What the aggregation switches send to the edges of h3 and h4.
for port in s2p3 s2p4 s8p3 s8p4; do captured "$port" inbound "$port"; done
captured p3 'ether proto 0xff1f' at-h3
captured p4 'ether proto 0xff1f' at-h4
for pair in '1 2' '1 3' '3 1' '1 4' '4 1' '3 4'; do
    # shellcheck disable=SC2086
    pings $pair || fail "no pings pass between hosts $pair"
done
tagged() { [ $(($(seen "$1p3" "$2") + $(seen "$1p4" "$2"))) -gt 0 ]; }
wait_until 'packets with tags without UP come to the edge of h3' tagged s2 "$to_h3"
wait_until 'packets with tags with UP come to the edge of h4' tagged s8 "$to_h4"
ok 'pings pass within an edge, within a pod and between pods'

tcp 1 4 || fail 'no TCP passes between pods'
[ "$(seen at-h3 '')$(seen at-h4 '')" = 00 ] || fail 'tags reach a host'
ok 'TCP passes, and tags reach no host'
