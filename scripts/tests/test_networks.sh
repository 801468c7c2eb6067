#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Networks in virtual time, with plans that the planners make here.
#
# In fat trees with k = 6, all hosts send to all others, by tags over every path and by keys. In random graphs
# of unusual shapes, nothing may be lost at protected hops, with or without split routes. Smaller networks are
# in examples/sim/plans.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"
readonly python=target/tools/os-ken/bin/python
needs "$python"

python3 scripts/tests/protected_bench.py >"$folder/bench.log" 2>&1 ||
    { tail -n 20 "$folder/bench.log" >&2; fail "bench/protected.py can pass although no packet tests the guards"; }
ok "bench/protected.py reports missing files"

shunt=$(test_build)
# delivered PLANNER PATHS LINKS: each of 54 hosts must reach every other host. There must be PATHS paths, the
# longest with LINKS links.
delivered() {
    PYTHONPATH=controller/src "$python" -m shunt_controller.plan "$1" --k 6 --json "$folder/plan.json" >"$folder/plan.log"
    printf '[network]\nplan = "plan.json"\n[network.require]\ndelivered = 1.0\n' >"$folder/network.toml"
    "$shunt" sim "$folder/network.toml" --json >"$folder/run.json" || fail "$1: the simulation reports an error"
    "$python" - "$folder/run.json" "$@" <<'PYTHON' || fail "$1: the figures are not the expected ones"
import json, sys

path, planner, paths, links = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    run = json.load(file)
found = [run["pairs"], run["paths"], run["delivered"], run["hops"]["max"], len(run["switches"])]
wanted = [54 * 53, int(paths), int(paths), int(links), 45]
assert found == wanted, f"{planner}: {found}, not {wanted}"
# Only edge switches have entries.
assert sum(switch["entries"] > 0 for switch in run["switches"]) == 18, run["switches"]
PYTHON
    ok "$1: $2 packets between 54 hosts arrive at their destinations"
}
# Of the 53 other hosts, 45 are in other pods with 9 paths to each, 6 at other edge switches of the pod with 3
# paths to each, and 2 at the same edge switch.
delivered fat-tree $((54 * (45 * 9 + 6 * 3 + 2))) 4
delivered keyflow $((54 * 53)) 4

# Graphs "odd 1" and "odd 10" with keys of 64 and 128 bits. Routes of the second graph are split.
PLAN_PYTHON=$python SHUNT=$shunt bench/protected.py --quick --odd 11 --case "odd 1" --packets 20000 \
    --report "$folder/protected.jsonl" >"$folder/protected.log" ||
    { tail -n 20 "$folder/protected.log" >&2; fail "a guard of a protected plan does not hold"; }
[[ $(tail -n 1 "$folder/protected.log") == "4 plans, 2 split, 0 refused, 0 failed" ]] ||
    fail "the number of plans is not the expected one: $(tail -n 1 "$folder/protected.log")"
ok "all guards of 4 protected plans of odd graphs hold; 2 of the plans have split routes"
