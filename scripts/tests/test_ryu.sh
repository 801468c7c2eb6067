#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs a part of the Ryu switch test tool: all cases of actions and set_field, and some matches.
# `make conformance` runs all cases. Needs the release build. All 268 selected cases should pass, but a few
# may fail on a busy machine.
set -euo pipefail
cd "$(dirname "$0")/../.."

report=$(mktemp -d)
trap 'rm -rf "$report"' EXIT
scripts/conformance/ryu.sh --only '^action/|^match/(06_VLAN_VID|31_IPV6_ND_TARGET|37_PBB_ISID|39_IPV6_EXTHDR)\.' \
    --no-throughput --at-least 264 --limit 120 --report "$report"
