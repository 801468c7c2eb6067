#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The unit tests of controller/, except those of tests/pof, which test_pof.sh runs with a switch.
set -euo pipefail
cd "$(dirname "$0")/../../controller"

readonly python=../target/tools/os-ken/bin/python
[ -x "$python" ] || {
    printf 'test_controller_units: os-ken is missing: run scripts/setup.sh test first\n' >&2
    exit 1
}
"$python" -m pytest -q --ignore=tests/pof
