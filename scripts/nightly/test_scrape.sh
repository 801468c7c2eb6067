#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: test_scrape.sh [FLOWS [PAIRS]]
#
# The cost of scrapes: a switch with many flows forwards frames of two hosts as fast as it can. A scrape may take
# SCRAPE_LIMIT_MS, in the median. Windows with a scrape each second alternate with windows without scrapes. With
# scrapes, the switch may forward SCRAPE_COST_PERCENT fewer packets, in the median of all pairs of windows. The
# test fails if the whole confidence interval of this median is worse. The CPU time of a scrape each second may
# be SCRAPE_COST_PERCENT of a CPU. SHUNT names another program.
set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/../tests/lib.sh"
flows=${1:-1000000} pairs=${2:-20}
: "${SCRAPE_LIMIT_MS:=50}" "${SCRAPE_COST_PERCENT:=1}"

top='metrics = "127.0.0.1:9494"'
make_hosts 2
shunt=${SHUNT:-$(test_build)}
cat - "$folder/ports" >"$folder/switch.toml" <<CONFIG
control = "$folder/control.sock"
$top
[[worker]]
[[datapath]]
id = 1
[datapath.openflow]
fail_mode = "secure"
CONFIG
background switch sw "$shunt" run -c "$folder/switch.toml"
switch=$started
wait_until 'the switch is ready' logged switch ready
python3 - "$flows" >"$folder/flows" <<'FLOWS'
"""Prints flows: one that all packets of the test hit, and many others in two tables."""
import sys
print("priority=10,in_port=1,actions=output:2")
for n in range(int(sys.argv[1]) - 1):
    a, b, c = n >> 16, n >> 8 & 255, n & 255
    print(f"table={n % 2},priority=20,ip,nw_dst=172.{a}.{b}.{c},actions=output:1")
FLOWS
"$shunt" flows load -c "$folder/switch.toml" "$folder/flows" >"$folder/load.log"
cat >"$folder/measure.py" <<'MEASURE'
"""Measures scrapes of a switch under load: measure.py PID PAIRS DEVICE LIMIT_MS COST_PERCENT"""
import math, pathlib, statistics, sys, threading, time, urllib.request

WINDOW_S = 2.0
pid, pairs, device = sys.argv[1], int(sys.argv[2]), sys.argv[3]
limit_ms, cost_percent = float(sys.argv[4]), float(sys.argv[5])
counter = pathlib.Path(f"/sys/class/net/{device}/statistics/tx_packets")
# Metrics that are younger than this are sent again.
FRESH_S = 0.3


def scrape():
    began = time.monotonic()
    with urllib.request.urlopen("http://127.0.0.1:9494/metrics", timeout=10) as answer:
        text = answer.read()
    assert text.endswith(b"# EOF\n"), text[-100:]
    return (time.monotonic() - began) * 1e3


def cpu_s(wanted):
    """Returns the CPU time of the threads whose names `wanted` accepts, in seconds."""
    total = 0.0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if wanted((task / "comm").read_text().strip()):
            total += int((task / "schedstat").read_text().split()[0]) / 1e9
    return total


def is_worker(name):
    return name.startswith("worker")


def window(scrapes):
    """Returns packets per second, packets per second of the workers' CPU time, and CPU time of other threads."""
    times = []
    end = threading.Event()

    def scraper():
        while not end.is_set():
            times.append(scrape())
            end.wait(1.0)

    thread = threading.Thread(target=scraper)
    before = (int(counter.read_text()), cpu_s(is_worker), cpu_s(lambda name: not is_worker(name)), time.monotonic())
    if scrapes:
        thread.start()
    time.sleep(WINDOW_S)
    packets, worker_s, other_s, now_s = (
        after - first
        for after, first in zip(
            (int(counter.read_text()), cpu_s(is_worker), cpu_s(lambda name: not is_worker(name)), time.monotonic()),
            before,
        )
    )
    end.set()
    if scrapes:
        thread.join()
    return packets / now_s, packets / worker_s, other_s, times


def summary(values):
    low, high = sorted(values)[len(values) // 4], sorted(values)[-1 - len(values) // 4]
    return f"{statistics.median(values):.3f} (quartiles {low:.3f} to {high:.3f})"


def interval(values):
    """Returns the confidence interval of the median, of 95 %. With fewer than 6 values, it has all of them."""
    count = len(values)
    outside = 0
    while 2 * sum(math.comb(count, below) for below in range(outside + 1)) <= 0.05 * 2**count:
        outside += 1
    rank = max(outside - 1, 0)
    return sorted(values)[rank], sorted(values)[count - 1 - rank]


window(False)
rates, by_cpu, costs, scrapes_ms, absolute = [], [], [], [], []
for pair in range(pairs):
    results = {}
    for scrapes in (False, True) if pair % 2 else (True, False):
        results[scrapes] = window(scrapes)
        time.sleep(FRESH_S)
    rates.append(results[True][0] / results[False][0])
    by_cpu.append(results[True][1] / results[False][1])
    absolute.append(results[False][0])
    times = results[True][3]
    costs.append((results[True][2] - results[False][2]) * 1e3 / len(times))
    scrapes_ms += times
print(f"{statistics.median(absolute) / 1e3:.0f} kpps without scrapes")
print(f"a scrape takes {summary(scrapes_ms)} ms, and {summary(costs)} ms of CPU time of other threads than the workers'")
print(f"packets per second with a scrape each second, by those without: {summary(rates)}")
print(f"packets per second of the workers' CPU time, by those without: {summary(by_cpu)}")
assert min(absolute) > 1_000, "no packets are forwarded"
assert statistics.median(scrapes_ms) <= limit_ms, "a scrape takes too long"
assert statistics.median(costs) <= cost_percent * 10, "scrapes take too much CPU time"
low, high = interval(rates)
least = 1 - cost_percent / 100
verdict = "met" if low >= least else "missed" if high < least else "unclear, because this machine is busy"
print(f"at least {least:.2f} of the packets per second: {low:.3f} to {high:.3f}, {verdict}")
assert high >= least, "scrapes cost too many packets"
MEASURE
background flood h1 python3 lab/send_flows.py eth0 "$(mac 2)" 64 1000000
flows_are() { in_room sw curl -sS --fail http://127.0.0.1:9494/metrics | awk '/^shunt_table_entries\{/ { sum += $2 } END { exit sum != '"$flows"' }'; }
wait_until 'the metrics show all flows' flows_are
in_room sw python3 "$folder/measure.py" "$switch" "$pairs" p2 "$SCRAPE_LIMIT_MS" "$SCRAPE_COST_PERCENT" >"$folder/measure.log" 2>&1 ||
    fail 'scrapes cost too much'
sed 's/^/ok: /' "$folder/measure.log"
