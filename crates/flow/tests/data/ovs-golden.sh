#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes anew what ovs-ofctl prints of each flow: sh ovs-golden.sh < ovs-flows.txt > new && mv new ovs-flows.txt
# (made with Open vSwitch 3.1.0). Lines beginning with "=" are ovs-ofctl's answers, with "#" comments. Where this switch prints
# a flow differently, "# differs:" before it says why, and "# ours:" what it prints.
set -eu
one=$(mktemp)
trap 'rm -f "$one"' EXIT
while IFS= read -r line; do
    case $line in
    '='*) continue ;;
    '#'* | '') printf '%s\n' "$line"; continue ;;
    esac
    printf '%s\n' "$line" > "$one"
    printf '%s\n' "$line"
    ovs-ofctl -O OpenFlow13 parse-flows "$one" 2> /dev/null | sed -n 's/^OFPT_FLOW_MOD (OF1.3) (xid=0x1): ADD /= /p' | grep . \
        || printf '= refused\n'
done
