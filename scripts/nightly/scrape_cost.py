#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what scrapes of a switch under load cost.

    scrape_cost.py SHUNT CONFIG SWITCH_PID FLOOD_PID COPIES BLOCKS LIMIT_MS COST_PERCENT

The switch sends COPIES copies of each packet of port 1 (device p1) to port 2 (device p2), in the network namespace
of this script. The flood sends more packets to port 1 than the switch can forward. It is ended after the
measurement.

A block has two windows with a scrape at their start and two without, in the order ABBA or BAAB, so that a
steady change of the machine's speed has no effect on it. The packets that the windows with a scrape lack, by
the rate of the others, are the time of forwarding that a scrape costs. A scrape each second costs this time of
each second. The result is the median of all blocks with its confidence interval.

Exit code 1: a limit is exceeded. For the packets per second, the whole interval must exceed the limit. Exit
code 3: the run is not valid, because packets were lost elsewhere than in the receive ring of port 1, the switch
could forward all packets, the worker did not have its CPU, or a scrape did not have fresh metrics.
"""

import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

URL = "http://127.0.0.1:9494/metrics"
WINDOW_S = 0.25
# Two scrapes must be further apart than 0.2 s, during which the switch sends the same metrics again.
PAUSE_S = 0.1
# A counter is read again if the clock shows a longer time between the reads before and after it.
READ_S = 0.0002
READ_TRIES = 20
# Time without a packet after which all queues are empty.
SETTLE_S = 0.5
# A window has a surplus if more than this share of the packets was dropped.
SURPLUS = 0.01
# Share of the windows that may have no surplus.
IDLE_SHARE = 0.05
# Share of its CPU that the worker must have had. Otherwise the machine had other work.
WORKER_SHARE = 0.8
CONFIDENCE = 0.95
NOT_VALID = 3


def statistic(device: str, name: str) -> int:
    """Returns a counter of the kernel."""
    return int(Path(f"/sys/class/net/{device}/statistics/{name}").read_text())


@dataclass
class Reading:
    """Counters at one time: packets that reached port 1, forwarded packets, and CPU times in seconds."""

    at_s: float
    reached: int
    forwarded: float
    worker_s: float
    other_s: float


@dataclass
class Window:
    """Differences of two readings."""

    seconds: float
    reached: int
    forwarded: float
    worker_s: float
    other_s: float

    def has_surplus(self) -> bool:
        """Returns whether more packets arrived than the switch could forward."""
        return self.reached - self.forwarded > SURPLUS * self.forwarded


@dataclass
class Results:
    """Results of all blocks and scrapes."""

    windows: list[Window] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    cost_ms: list[float] = field(default_factory=list)
    by_cpu_ms: list[float] = field(default_factory=list)
    other_ms: list[float] = field(default_factory=list)
    scrape_ms: list[float] = field(default_factory=list)
    scraped: list[int] = field(default_factory=list)


def median_with_interval(values: list[float]) -> tuple[float, float, float]:
    """Returns the median and its confidence interval, whose ends are order statistics.

    With fewer than 6 values, the interval contains all of them.
    """
    ordered, count = sorted(values), len(values)
    below, rank = 1, 0
    # `below` of `2 ** count` outcomes have at most `rank` values below the median.
    while 2 * below <= (1 - CONFIDENCE) * 2**count:
        rank += 1
        below += math.comb(count, rank)
    rank = max(rank - 1, 0)
    return statistics.median(ordered), ordered[rank], ordered[-1 - rank]


def quartiles(values: list[float]) -> str:
    """Returns the median and the quartiles as text."""
    ordered = sorted(values)
    low, high = ordered[len(values) // 4], ordered[-1 - len(values) // 4]
    return f"{statistics.median(ordered):.2f} (quartiles {low:.2f} to {high:.2f})"


class Load:
    """A switch under load."""

    def __init__(self, shunt: str, config: str, pid: int, copies: int) -> None:
        self.shunt, self.config, self.copies = shunt, config, copies
        self.tasks = Path(f"/proc/{pid}/task")
        self.results = Results()

    def show(self, report: str) -> Any:
        """Returns the answer of `shunt show`."""
        command = [self.shunt, "show", report, "--json", "-c", self.config]
        return json.loads(subprocess.check_output(command, timeout=60))

    def cpu_s(self) -> tuple[float, float]:
        """Returns the CPU time of workers and of all other threads."""
        worker_ns = other_ns = 0
        for task in self.tasks.iterdir():
            used_ns = int((task / "schedstat").read_text().split()[0])
            if (task / "comm").read_text().startswith("worker"):
                worker_ns += used_ns
            else:
                other_ns += used_ns
        return worker_ns / 1e9, other_ns / 1e9

    def read(self) -> Reading:
        """Reads all counters. Reads again if something else ran in between."""
        for _ in range(READ_TRIES):
            before_s = time.monotonic()
            sent, reached = statistic("p2", "tx_packets"), statistic("p1", "rx_packets")
            after_s = time.monotonic()
            if after_s - before_s < READ_S:
                break
        return Reading((before_s + after_s) / 2, reached, sent / self.copies, *self.cpu_s())

    def scrape(self) -> None:
        """Scrapes the switch once."""
        began_s = time.monotonic()
        with urllib.request.urlopen(URL, timeout=10) as answer:
            text: str = answer.read().decode()
        self.results.scrape_ms.append((time.monotonic() - began_s) * 1e3)
        if not text.endswith("# EOF\n"):
            sys.exit(f"a scrape ends with {text[-100:]!r}")
        received = next(line for line in text.splitlines() if line.startswith("shunt_packets_received_total"))
        self.results.scraped.append(int(received.split()[-1]))

    def window(self, action: Callable[[], None]) -> Window:
        """Measures a window with an action at its start."""
        before = self.read()
        action()
        # A slow action makes the window longer.
        time.sleep(max(before.at_s + WINDOW_S - time.monotonic(), WINDOW_S / 5))
        after = self.read()
        time.sleep(PAUSE_S)
        window = Window(
            seconds=after.at_s - before.at_s,
            reached=after.reached - before.reached,
            forwarded=after.forwarded - before.forwarded,
            worker_s=after.worker_s - before.worker_s,
            other_s=after.other_s - before.other_s,
        )
        self.results.windows.append(window)
        return window

    def block(self, begins_with_scrape: bool) -> None:
        """Measures a block of four windows."""
        with_scrape, without = [], []
        for outer in (True, False, False, True):
            if outer == begins_with_scrape:
                with_scrape.append(self.window(self.scrape))
            else:
                without.append(self.window(lambda: None))
        results = self.results
        seconds = sum(window.seconds for window in with_scrape)
        rate = sum(window.forwarded for window in without) / sum(window.seconds for window in without)
        if rate == 0:
            sys.exit("no packets are forwarded")
        lost = rate * seconds - sum(window.forwarded for window in with_scrape)
        results.rates.append(rate)
        results.cost_ms.append(lost / rate / len(with_scrape) * 1e3)
        with_cpu, without_cpu = (
            sum(window.forwarded for window in windows) / sum(window.worker_s for window in windows)
            for windows in (with_scrape, without)
        )
        results.by_cpu_ms.append((1 - with_cpu / without_cpu) * seconds / len(with_scrape) * 1e3)
        # Other threads also have work that does not belong to scrapes.
        usual_s = sum(window.other_s for window in without) / sum(window.seconds for window in without)
        other_s = sum(window.other_s for window in with_scrape) - usual_s * seconds
        results.other_ms.append(other_s / len(with_scrape) * 1e3)



@dataclass
class Totals:
    """Counters of the switch, and the kernel's numbers of packets that reached port 1 and left port 2."""

    ports: list[dict[str, Any]]
    counters: dict[str, Any]
    reached: int
    left: int


def totals(load: Load) -> Totals:
    """Returns the counters of a switch whose traffic has ended."""

    before = None
    while (ports := load.show("ports")["ports"]) != before:
        before = ports
        time.sleep(SETTLE_S)
    return Totals(ports, load.show("counters"), statistic("p1", "rx_packets"), statistic("p2", "tx_packets"))


def worker_share(results: Results) -> float:
    """Returns the share of a CPU that the worker used in all windows."""
    return sum(window.worker_s for window in results.windows) / sum(window.seconds for window in results.windows)


def faults(results: Results, last: Totals, copies: int) -> list[str]:
    """Returns why the run is not valid."""
    one, two = last.ports
    ring = one["dropped"].get("rx_kernel", 0)
    found = []
    for name, more, less in (
        ("before port 1", last.reached, one["rx_packets"] + ring),
        ("by the driver of port 1", one["rx_dropped"], ring),
        ("in the switch", last.counters["received"], last.counters["forwarded"]),
        ("between the ports", one["rx_packets"] * copies, two["tx_packets"]),
        ("by the driver of port 2", two["tx_dropped"], 0),
        ("after port 2", two["tx_packets"], last.left),
    ):
        if more != less:
            found.append(f"{more - less} packets were lost {name}")
    idle = sum(not window.has_surplus() for window in results.windows)
    if idle > IDLE_SHARE * len(results.windows):
        found.append(f"in {idle} of {len(results.windows)} windows, the switch could forward almost all packets")
    if worker_share(results) < WORKER_SHARE:
        found.append(f"the worker had only {worker_share(results):.0%} of its CPU")
    stale = sum(after == before for before, after in zip(results.scraped, results.scraped[1:]))
    if stale > 0:
        found.append(f"{stale} of {len(results.scraped)} scrapes had the metrics of the one before")
    print(
        f"of {last.reached} packets, {ring / last.reached:.1%} were dropped by the ring of port 1; "
        f"{idle} of {len(results.windows)} windows had no surplus of packets"
    )
    return found


def report(results: Results, limit_ms: float, cost_percent: float) -> list[str]:
    """Prints the results, and returns which limits are exceeded."""
    print(
        f"{statistics.median(results.rates) / 1e3:.0f} kpps without scrapes; "
        f"the worker used {worker_share(results):.0%} of its CPU"
    )
    print(
        f"a scrape takes {quartiles(results.scrape_ms)} ms, "
        f"and {quartiles(results.other_ms)} ms of CPU time of other threads than the workers'"
    )
    # 10 ms of a second are 1 %.
    for name, costs_ms in (("packets/s", results.cost_ms), ("packets/s of the workers' CPU time", results.by_cpu_ms)):
        percent, low, high = (cost_ms / 10 for cost_ms in median_with_interval(costs_ms))
        print(f"a scrape each second costs {percent:.2f} % of the {name} ({low:.2f} to {high:.2f} %)")
    _, low, high = (cost_ms / 10 for cost_ms in median_with_interval(results.cost_ms))
    verdict = "met" if high <= cost_percent else "missed" if low > cost_percent else "unclear"
    print(f"at most {cost_percent:g} % of the packets/s: {verdict}")
    exceeded = []
    if verdict == "missed":
        exceeded.append("scrapes cost too many packets")
    if statistics.median(results.scrape_ms) > limit_ms:
        exceeded.append("a scrape takes too long")
    if statistics.median(results.other_ms) > cost_percent * 10:
        exceeded.append("scrapes take too much CPU time")
    return exceeded


def main(arguments: list[str]) -> int:
    """Measures all blocks, and returns the exit code."""
    shunt, config, switch, flood, copies, blocks, limit_ms, cost_percent = arguments
    load = Load(shunt, config, int(switch), int(copies))
    load.window(lambda: None)
    load.results.windows.clear()
    for block in range(int(blocks)):
        load.block(block % 2 == 0)
    os.kill(int(flood), signal.SIGTERM)
    exceeded = report(load.results, float(limit_ms), float(cost_percent))
    found = faults(load.results, totals(load), load.copies)
    for text in (*exceeded, *(f"the run is not valid: {text}" for text in found)):
        print(text)
    return NOT_VALID if found else 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
