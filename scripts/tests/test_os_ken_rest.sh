#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The REST application of lab/controllers on os-ken, with three namespaced hosts. The test sends every
# request. Answers must be those of the switch, and traffic must follow the flows.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

needs target/tools/os-ken/bin/python
make_hosts 3
background rest sw target/tools/os-ken/bin/python lab/controllers/launch.py rest --http-port 8080
start_switch secure
in_room sw python3 scripts/tests/os_ken_rest.py "$prefix" 2>"$folder/check.log" ||
    fail "$(grep -m 1 '^[A-Za-z.]*Error' "$folder/check.log" || printf 'the checks ended early')"
if logged rest 'Traceback'; then fail 'the application failed'; fi
