#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prometheus scrapes a switch that forwards between two hosts. Its values must equal those of `shunt show`,
# promtool must find no fault in the text, and every query of the dashboard must be valid and have data.
# Clients that send garbage or nothing must disturb neither the scrapes nor the pings. The log is JSON; a
# level changes while the switch runs.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"

command -v prometheus >/dev/null || fail 'prometheus is missing: run scripts/setup.sh test first'
export top='metrics = "127.0.0.1:9494"
log = { format = "json", levels = { daemon = "error" } }'
make_hosts 2
start_switch standalone
logged switch '"message":"shunt: metrics at http://127.0.0.1:9494/metrics"' || fail 'the address of the metrics is not reported'

cat >"$folder/prometheus.yml" <<'CONFIG'
global: { scrape_interval: 1s, scrape_timeout: 1s }
scrape_configs:
  - { job_name: shunt, static_configs: [{ targets: ["127.0.0.1:9494"] }] }
CONFIG
background prometheus sw prometheus --config.file="$folder/prometheus.yml" --web.listen-address=127.0.0.1:9090 \
    --storage.tsdb.path="$folder/prometheus"
# query EXPRESSION: prints the values that Prometheus has now.
query() {
    in_room sw curl -sS --fail -G --data-urlencode "query=$1" http://127.0.0.1:9090/api/v1/query |
        python3 -c 'import json, sys
for sample in json.load(sys.stdin)["data"]["result"]: print(sample["value"][1])'
}
# is EXPRESSION VALUE: returns whether Prometheus has this single value.
is() { [ "$(query "$1")" = "$2" ]; }
cat >"$folder/compare.py" <<'COMPARE'
"""Compares the values of Prometheus with those of `shunt show`: compare.py SHUNT CONFIGURATION"""
import json, subprocess, sys, urllib.parse, urllib.request

shunt, configuration = sys.argv[1:]

def value(query):
    url = "http://127.0.0.1:9090/api/v1/query?query=" + urllib.parse.quote(query)
    (sample,) = json.load(urllib.request.urlopen(url))["data"]["result"]
    return int(sample["value"][1])

def show(report):
    return json.loads(subprocess.check_output([shunt, "show", report, "--json", "-c", configuration]))

ports, counters, tables = show("ports")["ports"], show("counters"), show("tables")["tables"]
expected = {}
for port in ports:
    for name in ("rx_packets", "rx_bytes", "rx_dropped", "tx_packets", "tx_bytes", "tx_dropped"):
        expected[f'shunt_port_{name}_total{{port="{port["number"]}"}}'] = port[name]
for name in ("received", "forwarded", "consumed"):
    expected[f"shunt_packets_{name}_total"] = counters[name]
expected['shunt_table_lookups_total{table="0"}'] = tables[0]["lookups"]
expected["sum(shunt_latency_seconds_count)"] = sum(lane["raw"]["frames"] for lane in counters["lanes"].values())
assert counters["received"] > 0
found = {query: value(query) for query in expected}
assert found == expected, (found, expected)
COMPARE
wait_until 'Prometheus has scraped the switch' is 'up{job="shunt"}' 1
ok 'Prometheus scrapes the switch'

pings 1 2 || fail 'no pings pass'
pings 2 1 || fail 'no pings pass back'
wait_until 'Prometheus and shunt show agree' in_room sw python3 "$folder/compare.py" "$shunt" "$folder/switch.toml"
ok 'Prometheus and shunt show agree'

scrape() { in_room sw curl -sS --fail --max-time 5 http://127.0.0.1:9494/metrics; }
scrape >"$folder/metrics.txt"
# promtool reads the older text form, which has no units and no end mark.
grep -v -e '^# UNIT' -e '^# EOF' "$folder/metrics.txt" | sed '/^# TYPE /s/ info$/ gauge/' |
    promtool check metrics >"$folder/promtool.log" 2>&1 || status=$?
# promtool ends with 3 if it only disapproves of names. OpenMetrics requires these names.
case "${status:-0}" in
    0 | 3) ;;
    *) fail "promtool ended with $status: $(head -n 3 "$folder/promtool.log")" ;;
esac
if grep -E 'error|invalid|duplicate' "$folder/promtool.log"; then fail 'promtool finds faults'; fi
python3 - examples/grafana/shunt.json >"$folder/queries" <<'QUERIES'
import json, sys
for panel in json.load(open(sys.argv[1]))["panels"]:
    for target in panel["targets"]:
        print(target["expr"].replace("$datapath", ".*").replace("$__rate_interval", "10s"))
QUERIES
sleep 2
while read -r expression; do
    found=$(query "$expression") || fail "not a query: $expression"
    # Some queries have data only after losses or with more than one table.
    [ -n "$found" ] || case "$expression" in *drop* | *lost* | *' > '* | *lut* | *cache* | *queue_waiting*) ;; *)
        fail "no data: $expression"
        ;;
    esac
done <"$folder/queries"
ok "$(wc -l <"$folder/queries") queries of the dashboard are valid"

background steady h1 ping -q -i 0.01 10.0.0.2
ping=$started
cat >"$folder/rude.py" <<'RUDE'
import os, socket
held = []
for number in range(1000):
    peer = socket.create_connection(("127.0.0.1", 9494))
    peer.setblocking(False)
    try:
        peer.send([b"", b"GET /metrics HTTP/1.1\r\nA: ", os.urandom(4000), b"A" * 60000][number % 4])
    except OSError:
        pass
    held.append(peer)
print("done")
RUDE
in_room sw python3 "$folder/rude.py" >"$folder/rude.log" || fail 'the rude clients failed'
for _ in {1..10}; do scrape | tail -n 1 | grep -x '# EOF' >/dev/null || fail 'a scrape failed beside rude clients'; done
wait_until 'Prometheus scrapes the switch as before' is 'min_over_time(up{job="shunt"}[5s])' 1
kill -INT "$ping"
wait "$ping" || true
logged steady ' 0% packet loss' || fail 'packets were lost'
ok "rude clients disturb nothing: $(grep 'packet loss' "$folder/steady.log")"

control() { "$shunt" --control "$folder/control.sock" "$@"; }
control log show | grep -E '^daemon +error' >/dev/null || fail 'the level of the configuration is not shown'
if logged switch 'OpenFlow 1.3'; then fail 'the level was too low at the start'; fi
control log set channels info >/dev/null
ofctl show "tcp:$openflow_listen" >/dev/null
wait_until 'the connection is logged' logged switch '"level":"INFO".*OpenFlow 1.3.*"target":"switch::channels"'
if control log set model info 2>"$folder/refused.log"; then fail 'a wrong module is accepted'; fi
logged refused 'is not a module that logs; use one of switch, channels' || fail 'the refusal does not name the modules'
grep '^{' "$folder/switch.log" | python3 -c 'import json, sys
for line in sys.stdin: assert {"timestamp", "level", "message", "target"} <= json.loads(line).keys(), line'
if grep -v '^{' "$folder/switch.log"; then fail 'a line of the log is not JSON'; fi
ok 'the log is JSON, and its levels change'
