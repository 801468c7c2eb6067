#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No case of bench/instructions.json may exceed its stated number of instructions per packet by more than 3
# percent. The check must detect a case that does.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

bench/instructions.py --check
printf '{"exact, 1 rule, every packet misses": 100}\n' >"$folder/limits.json"
if bench/instructions.py --check --limits "$folder/limits.json" 2>"$folder/errors"; then
    printf 'test_instructions: the check did not report a case above a limit of 100 instructions\n' >&2
    exit 1
fi
grep -q 'percent above 100' "$folder/errors" || { cat "$folder/errors" >&2; exit 1; }
printf 'ok: no case exceeds its limit, and the check reports a case that does\n'
