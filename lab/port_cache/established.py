#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures in virtual time how known flows fare while a search worker looks up new flows.

Runs the scenario examples/sim/search-worker.toml with `shunt sim`, with other rates, traffic and seeds. The
costs of the worker's steps are those of the scenario, so the same build always prints the same table.

- Half of all packets are of known flows. The others begin new flows, or are of known flows too (`hits`).
- A port is flooded with new flows, with packets of one known flow (`hits`), or not at all. Known flows send
  to two other ports.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import tables
from cells import mean_and_half

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCENARIO = os.path.join(ROOT, "examples/sim/search-worker.toml")
SHUNT = os.path.join(os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target"), "release/shunt")
# Total rates in packets/s. Each run has about `PACKETS` packets of known flows.
RATES = (100_000, 400_000, 800_000)
PACKETS = 20_000
# Rate of a flood: 64-byte packets at 1 Gbit/s.
FLOOD_PPS = 1_488_000
FLOOD_MS = 40
SEEDS = 10
INLINE = ('searcher = "worker"\nservice = "1us"', 'searcher = "inline"')


def traffic(name, port, rate, flows, known):
    """Returns a kind of traffic in the format of the scenario."""
    if known:
        packets = "udp,nw_src=10.%d.1.0/24,nw_dst=10.0.0.0/24,tp_src=1000,tp_dst=2000" % port
    else:
        packets = "udp,nw_src=10.64.0.0/12,nw_dst=10.0.0.0/24,tp_src=0/0,tp_dst=2000"
    # A flow sends its second packet after all others have sent one.
    return """
[[traffic]]
name = "%s"
port = %d
rate_pps = %d
packets = "%s"
flows = %d
known = %s
popularity = "%s"
""" % (name, port, rate, packets, flows, str(known).lower(), "uniform" if known else "in_turn")


def lasting(text, span_ms):
    """Returns a scenario with another duration."""
    return re.sub(r"(?m)^duration = .*$", 'duration = "%dus"' % (1_000 * span_ms), text)


def scenarios():
    """Yields the case, the rate and the text of each scenario, without a seed."""
    with open(SCENARIO, encoding="utf-8") as file:
        base = file.read().split("[[traffic]]")[0]
    if INLINE[0] not in base:
        raise ValueError("the scenario has no search worker")
    inline = base.replace(*INLINE)
    for rate in RATES:
        half = rate // 2
        span_ms = 1_000 * PACKETS / half
        known = traffic("known", 1, half, 100, True)
        fresh = traffic("other", 1, half, int(half * (span_ms + 10) / 1e3), False)
        others = traffic("other", 1, half, 100, True).replace("10.1.1", "10.2.1")
        yield "hits", rate, lasting(base, span_ms) + known + others
        yield "worker", rate, lasting(base, span_ms) + known + fresh
        yield "inline", rate, lasting(inline, span_ms) + known + fresh
    others = traffic("known", 1, 200_000, 100, True) + traffic("second", 4, 200_000, 100, True)
    base, inline = (lasting(text, FLOOD_MS) for text in (base, inline))
    fresh = traffic("other", 3, FLOOD_PPS, int(FLOOD_PPS * (FLOOD_MS + 5) / 1e3), False)
    yield "no flood", 0, base + others
    yield "flood, hits", FLOOD_PPS, base + others + traffic("other", 3, FLOOD_PPS, 1, True)
    yield "flood, worker", FLOOD_PPS, base + others + fresh
    yield "flood, inline", FLOOD_PPS, inline + others + fresh


def run(job):
    """Runs a scenario with a seed, and returns its results."""
    (case, rate, text), seed = job
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        command = [SHUNT, "sim", "--json", "--seed", str(seed), file.name]
        found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
    parts = [part for part in found["traffic"] if part["name"] != "other"]
    offered, delivered = (sum(part[key] for part in parts) for key in ("offered", "delivered"))
    return {
        "case": case,
        "rate_pps": rate,
        "seed": seed,
        "offered": offered,
        "delivered": delivered,
        "overtaken": sum(part["overtaken"] for part in found["traffic"]),
        "p50_ns": max(part["latency_ns"]["p50"] for part in parts),
        "p99_ns": max(part["latency_ns"]["p99"] for part in parts),
        "p99_9_ns": max(part["latency_ns"]["p99_9"] for part in parts),
        "new_p99_9_ns": sum(part["latency_ns"]["p99_9"] for part in found["traffic"] if part["name"] == "other"),
        "busy_percent": found["busy_percent"],
        "port_cache": found["port_cache"],
    }


def measure(seeds=SEEDS, wanted=""):
    """Runs all scenarios with all seeds, and returns the results."""
    chosen = [scenario for scenario in scenarios() if wanted in "%s %d" % scenario[:2]]
    jobs = [(scenario, seed) for scenario in chosen for seed in range(1, 1 + seeds)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(run, jobs))


def within(values, scale=1.0):
    """Returns the mean of these values, and half of its 95 % interval."""
    return tables.within(*mean_and_half([value / scale for value in values]))


def table(found):
    """Yields the results as a table."""
    by_case = {}
    for cell in found:
        by_case.setdefault((cell["case"], cell["rate_pps"]), {})[cell["seed"]] = cell
    names = "traffic", "packets/s", "worker has packets, percent", "delivered, percent", "p50, us", "p99, us", "p99.9, us"
    yield tables.head(*names, "others: p99.9, us", "p99.9, percent above hits")
    for (case, rate), cells in by_case.items():
        cell = cells.values()
        peer = by_case.get(("flood, hits" if case.startswith("flood") else "hits", rate))
        more = "-"
        if peer and peer is not cells:
            more = within([100 * (cells[seed]["p99_9_ns"] / peer[seed]["p99_9_ns"] - 1) for seed in cells])
        delivered = "%.4g" % (100 * sum(c["delivered"] for c in cell) / sum(c["offered"] for c in cell))
        times = [within([c[key] for c in cell], 1e3) for key in ("p50_ns", "p99_ns", "p99_9_ns")]
        times.append(within([c["new_p99_9_ns"] for c in cell], 1e3))
        busy = "%.3g" % (sum(c["busy_percent"] for c in cell) / len(cell))
        yield tables.row(case, rate or "-", busy, delivered, *times, more)
    yield ""


def main():
    """Measures, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of seeds")
    parser.add_argument("--only", default="", help="run only cases whose name and rate contain this text")
    options = parser.parse_args()
    found = measure(options.seeds, options.only)
    sys.stdout.writelines("%s\n" % line for line in table(found))


if __name__ == "__main__":
    main()
