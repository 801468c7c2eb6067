#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs every test of this folder, one after another. Needs root.
set -euo pipefail
cd "$(dirname "$0")/../.."
for test in scripts/tests/test_*.sh; do
    printf '== %s\n' "$test"
    "$test"
done
