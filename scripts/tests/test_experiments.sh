#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The experiments with controllers that set up paths. With KeyFlow, one switch sends a packet-in, and two
# switches get an entry each; with flows per hop, each switch sends one in both directions. The time grows with the distance of the
# controller. The page gets the values. An interrupt leaves nothing behind.
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

SHUNT=$(test_build)
export SHUNT
readonly values=$folder/report/experiments
lab/first_packet.py --rounds 1 --hops 3 --into "$values" >"$folder/first_packet.log" 2>&1 || fail 'the experiment with first packets failed'
# row COLUMN KIND: prints a value of the experiment with first packets.
row() { python3 -c 'import csv, sys
rows = csv.DictReader(line for line in open(sys.argv[1]) if not line.startswith("#"))
print(*[one[sys.argv[2]] for one in rows if one["kind"] == sys.argv[3]])' "$values/first_packet.csv" "$@"; }
# The answer to the ping may arrive before its entry, and then it is a packet-in, too.
for kind in 'KeyFlow [12] 2' 'flows per hop 6 6' 'Open vSwitch, flows per hop 6 6'; do
    name=${kind% * *} counts=${kind#"$name "}
    # shellcheck disable=SC2053  # the right side is a pattern
    [[ "$(row packet_ins "$name") $(row changes "$name")" == $counts ]] ||
        fail "$name has $(row packet_ins "$name") packet-ins and $(row changes "$name") changes, not $counts"
done
ok 'KeyFlow needs one switch to ask, and changes two; with flows per hop, each switch sends packet-ins'

lab/remote_control.py --rounds 2 --delay 40 --into "$values" >"$folder/remote_control.log" 2>&1 || fail 'the experiment with remote control failed'
python3 - "$values/remote_control.csv" <<'PYTHON' || fail "the times do not fit the distance: $(cat "$values/remote_control.csv")"
import csv, sys

rows = csv.DictReader(line for line in open(sys.argv[1], encoding="utf-8") if not line.startswith("#"))
least_ms = {row["kind"]: float(row["least_us"]) / 1000 for row in rows}
# One switch sends a packet-in, or five switches do in both directions.
assert 40 <= least_ms["KeyFlow"] < least_ms["flows per hop"], least_ms
assert least_ms["flows per hop"] >= 400 and least_ms["Open vSwitch, flows per hop"] >= 400, least_ms
for kind in ("without controller", "Open vSwitch, without controller"):
    assert least_ms[kind] < least_ms["KeyFlow"], least_ms
PYTHON
ok 'the first packet waits for the controller once per packet-in'

cp docs/experiments.md "$folder/experiments.md"
lab/experiments.py --reports "$folder/report" --page "$folder/experiments.md" >"$folder/page.log" 2>&1 || fail 'the page is not written'
grep -q '^| 3 | .* | .* |' "$folder/experiments.md" || fail 'the page lacks the values of first packets'
grep -q '^| 40 ms | ' "$folder/experiments.md" || fail 'the page lacks the values of remote control'
python3 -c 'import sys, xml.dom.minidom as dom
for path in sys.argv[1:]: dom.parse(path)' "$folder"/experiments/{first-packet,remote-control}.svg || fail 'a plot is malformed'
ok 'the page has the values and plots'

# If this test was started in the background, SIGINT is ignored, so `env` restores its default effect.
set -m
env --default-signal=INT lab/first_packet.py --hops 2 --into "$values" >"$folder/interrupted.log" 2>&1 &
started=$!
set +m
wait_until 'the switches run' pgrep -g "$started" -f 'shunt run'
kill -INT -- "-$started"
status=0
wait "$started" || status=$?
[ "$status" -eq 130 ] || fail "after SIGINT the exit code was $status"
if ip netns list | grep "^shunt-lab-$started-"; then fail 'the lab left these namespaces'; fi
if pgrep -g "$started" -r D,R,S,T -a; then fail 'the lab left these processes'; fi
if [ -e "$values/first_packet.csv.new" ]; then fail 'the lab left an unfinished file'; fi
ok 'SIGINT, nothing left behind'
