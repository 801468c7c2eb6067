#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Stateless forwarding between namespaces: six switches in a row by KeyFlow, and the fat tree of k = 4 by
# Tag-and-Forward. Each network runs in one process. Tests pings, TCP, and every byte of headers on the wire.
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

SHUNT=$(test_build)
export SHUNT
for network in path tree; do
    lab/stateless.py "$network" >"$folder/$network.log" 2>&1 &
    started=$!
    wait "$started" || fail "the $network failed"
    # Other tests run at the same time, so look only for namespaces of this run.
    if ip netns list | grep "^shunt-lab-$started-"; then fail 'the lab left these namespaces'; fi
    while read -r line; do ok "$line"; done <"$folder/$network.log"
done
ok 'nothing left behind'
