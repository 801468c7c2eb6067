#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Regenerates the output of ovs-ofctl for each flow:
#     sh ovs-golden.sh < ovs-flows.txt > new && mv new ovs-flows.txt
#
# Generated with Open vSwitch 3.1.0. Lines that begin with "=" are the output of ovs-ofctl, and lines that
# begin with "#" are comments. If Shunt prints a flow differently, two comments precede the flow: "# differs:"
# gives the reason, and "# ours:" gives Shunt's output.
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
