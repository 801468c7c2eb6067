# SPDX-License-Identifier: Apache-2.0
"""Tables of docs/port-cache-figures.md that have no plot."""

from cells import difference, gains, mean_and_half, percent, twins, verdict

POSITIONS = {"aggregation": "aggregation switch", "core": "core switch"}
ROUTINGS = {
    "spanning-tree": "spanning tree",
    "random": "random",
    "ecmp": "ECMP",
    "elephant-aware": "elephant-aware",
}
LAYERS = ("edge", "aggregation", "core", "total")
ALL_SEARCHES = 2**32 - 1
# Ports of a switch of the tree, and its warm-up in cells that do not state it. In a warm-up, a searcher must be
# able to fill all records of its switch as often as `FILLINGS`: fewer searches leave the caches cold.
TREE_PORTS = 8
TREE_WARM_UP_NS = 15e6
FILLINGS = 4


def service(nanos):
    """Returns a service time as text."""
    return "%g us" % (nanos / 1e3) if nanos < 1_000_000 else "%g ms" % (nanos / 1e6)


def row(*values):
    """Returns a line of a table."""
    return "| %s |" % " | ".join(str(value) for value in values)


def head(*names):
    """Returns the first two lines of a table."""
    return "%s\n|%s" % (row(*names), "---|" * len(names))


def within(mean, half):
    """Returns a mean with half the length of its interval."""
    return "%.3g ± %.2g" % (mean, half)


def exceptions(sweep):
    """Yields the cells in which the hit rate is not above that of `blocking`."""
    yield head("queue", "cells", "above `blocking`", "noise", "equal", "below `blocking`", "largest deficit")
    queues = sweep.where(mode="nonblocking").values("queue")
    rates, rows = percent("hits"), {}
    for queue in queues:
        counts, least = {"above": 0, "noise": 0, "equal": 0, "below": 0}, 0
        for ours, peer in twins(sweep, queue):
            gain, half = mean_and_half(gains(ours, peer, rates))
            counts[verdict(gain, half)] += 1
            least = min(least, gain)
            place = (peer["position"], peer["bytes"], peer["service_ns"], peer["cache"])
            rows.setdefault(place, (rates(peer), {}))[1][queue] = gain, half
        yield row(queue, sum(counts.values()), *counts.values(), "%.3g" % -least)
    yield ""
    yield "Cells that are not above `blocking` with some queue, and by how many percentage points they are above:"
    yield ""
    yield head("cell", "`blocking`, percent", *("queue %s" % queue for queue in queues))
    for (position, length, nanos, cache), (rate, by_queue) in sorted(rows.items()):
        if any(verdict(*gain) != "above" for gain in by_queue.values()):
            cell = "%s, %s bytes, %s, %s entries" % (position, length, service(nanos), cache)
            yield row(cell, "%.4g" % rate, *(within(*by_queue[queue]) for queue in queues))
    yield ""


def routing(cells):
    """Yields the hit rates by routing, and their differences from those with ECMP."""
    for position, name in POSITIONS.items():
        yield "Hit rate by routing, %s (percent of offered packets, mean and 95 %% interval of %d seeds):" % (
            name,
            max((len(cell["each"]) for cell in cells.cells), default=0),
        )
        yield ""
        yield head("", *ROUTINGS.values())
        here = cells.where(position=position)
        for length in here.values("bytes"):
            found = [here.one(bytes=length, routing=key) for key in ROUTINGS]
            rates = [mean_and_half([percent("hits")(run) for run in cell["each"].values()]) for cell in found]
            yield row("%s bytes" % length, *(within(*rate) for rate in rates))
        for length in here.values("bytes"):
            ecmp = here.one(bytes=length, routing="ecmp")
            columns = []
            for key in ROUTINGS:
                gain = difference(here.one(bytes=length, routing=key), ecmp, percent("hits"))
                columns.append("-" if key == "ecmp" else "%s, %s" % (within(*gain), verdict(*gain)))
            yield row("%s bytes, difference from ECMP" % length, *columns)
        yield ""


def victims(cells):
    """Yields the hit rates with CLOCK and LRU."""
    yield head("switch", "cache entries per port", "CLOCK", "LRU", "LRU less CLOCK")
    for position, name in POSITIONS.items():
        for cache in cells.values("cache"):
            clock, lru = (cells.one(position=position, cache=cache, victim=victim) for victim in ("clock", "lru"))
            gain = mean_and_half(gains(lru, clock, percent("hits")))
            rates = ["%.4g" % percent("hits")(cell) for cell in (clock, lru)]
            yield row(name, cache, *rates, "%s, %s" % (within(*gain), verdict(*gain)))
    yield ""


def selection(cells):
    """Yields the hit rates with other numbers of sources and other limits of searches."""
    caches = cells.values("cache")
    usual = {"mode": "nonblocking", "pending_part": 4, "searches": 64}
    rows = [("1/%d pending, 64 searches" % part, dict(usual, pending_part=part)) for part in (1, 2, 4, 8)]
    for searches in (16, 256, ALL_SEARCHES):
        number = "all" if searches == ALL_SEARCHES else searches
        rows.append(("1/4 pending, %s searches" % number, dict(usual, searches=searches)))
    rows.append(("`blocking`", {"mode": "blocking"}))
    for position, name in POSITIONS.items():
        yield "Hit rate, queue 64, searches of 10 us, %s (percent of offered packets):" % name
        yield ""
        yield head("sources", "limits", *("%s entries" % cache for cache in caches))
        for sources in cells.values("sources"):
            for title, wanted in rows:
                here = cells.where(position=position, sources=sources, **wanted)
                yield row(sources, title, *("%.4g" % percent("hits")(here.one(cache=cache)) for cache in caches))
        yield ""


def per_flow(cell):
    """Returns the searches of an experiment per flow."""
    return (cell["searched_ever"] + cell["uncached_ever"]) / cell["flows"]


def searches(small, largest):
    """Yields the searches per flow, in the caches of the sweep and in a cache that removes no record."""
    caches = small.values("cache")
    yield head("switch", "mode", *("%s entries" % cache for cache in caches))
    for position, name in POSITIONS.items():
        here = small.where(position=position)
        for queue in (0, 64, 128):
            line = here.where(mode="nonblocking", queue=queue)
            yield row(name, "queue %d" % queue, *("%.4g" % per_flow(line.one(cache=cache)) for cache in caches))
        line = here.where(mode="blocking")
        yield row(name, "`blocking`", *("%.4g" % per_flow(line.one(cache=cache)) for cache in caches))
    yield ""
    yield "Cache of 4,096 entries, queue 4,096:"
    yield ""
    yield head("switch", "time of a search", "flows", "removed records", "searches", "searches per flow")
    for cell in sorted(largest.cells, key=lambda cell: (cell["position"], cell["service_ns"])):
        counts = cell["flows"], cell["evicted_ever"], cell["searched_ever"] + cell["uncached_ever"]
        yield row(POSITIONS[cell["position"]], service(cell["service_ns"]), *counts, "%.6g" % per_flow(cell))
    yield ""


def lost_percent(cell):
    """Returns the packets that were lost in switches or at full links, in percent of those that arrived."""
    lost = cell["queue_full"] + cell["ring_full"] + cell["link_full"]
    return 100 * lost / max(1, cell["offered"])


def each(cell, value):
    """Returns the mean of the seeds, and half the length of its 95 % interval."""
    return within(*mean_and_half([value(run) for run in cell["each"].values()]))


def is_cold(cell):
    """Returns whether the warm-up is too short for the searches that fill the caches of a switch of the tree."""
    runs = cell["each"].values()
    warm_up_ns = min(run.get("warm_up_ns", TREE_WARM_UP_NS) for run in runs)
    return warm_up_ns < FILLINGS * TREE_PORTS * cell["cache"] * cell["service_ns"]


def searches_of(cell):
    """Returns the time of a search as text, with a mark if the values of the cell are not valid."""
    mark = ", **not valid: caches are still cold**" if is_cold(cell) else ""
    return service(cell["service_ns"]) + mark


def tree(cells):
    """Yields the results of port caches in all switches of a tree."""
    parts = {"hits": "record_hits", "merged": "merged", "new": "searched", "passed": "passed"}
    parts |= {"uncached": "uncached", "dropped": "dropped"}
    order = [(nanos, mode) for nanos in cells.values("service_ns") for mode in ("nonblocking", "blocking")]
    found = [(nanos, mode, layer, cells.one(service_ns=nanos, mode=mode, position=layer)) for nanos, mode in order for layer in LAYERS]
    found = [row for row in found if row[3]]
    yield "Counters of the port caches, in percent of the packets in (all seeds):"
    yield ""
    yield head("searches", "mode", "layer", "packets in", *parts)
    for nanos, mode, layer, cell in found:
        shares = ["%.4g" % (100 * cell[key] / max(1, cell["received"])) for key in parts.values()]
        yield row(searches_of(cell), "`%s`" % mode, layer, cell["received"], *shares)
    yield ""
    yield "Packets that arrived, in percent (mean and 95 %% interval of %d seeds), and their time in a switch:" % seeds(found)
    yield ""
    yield head("searches", "mode", "layer", "hit rate", "`miss_queue_full`", "`ring_full`", "`link_queue_full`", "p50, us", "p99, us", "p99.9, us")
    for nanos, mode, layer, cell in found:
        if layer != "total":
            shares = [each(cell, percent(key)) for key in ("hits", "queue_full", "ring_full", "link_full")]
            yield row(searches_of(cell), "`%s`" % mode, layer, *shares, *delays(cell))
    yield ""
    yield "Packets from host to host:"
    yield ""
    yield head("searches", "mode", "sent", "delivered, percent", "overtaken", "p50, us", "p99, us", "p99.9, us", "hit rate of all switches")
    for nanos, mode, layer, cell in found:
        if layer == "total":
            delivered = each(cell, lambda run: 100 * run["delivered"] / max(1, run["sent"]))
            rate = each(cell, percent("hits"))
            yield row(searches_of(cell), "`%s`" % mode, cell["sent"], delivered, cell["overtaken"], *delays(cell), rate)
    yield ""
    yield "Offered load of the links of hosts, on average and at the host that sends most, by seed:"
    yield ""
    yield head("searches", "warm-up", "counted time", "load")
    for nanos in dict.fromkeys(nanos for nanos, *_ in found):
        runs = list(next(cell for place, *_, cell in found if place == nanos)["each"].values())
        loads = ", ".join("%.1f %% and %.1f %%" % (100 * run["load"], 100 * run["load_max"]) for run in runs)
        times = ["%g ms" % (runs[0].get(key, usual) / 1e6) for key, usual in (("warm_up_ns", TREE_WARM_UP_NS), ("span_ns", 0))]
        yield row(service(nanos), *times, loads)
    yield ""


def seeds(found):
    """Returns the number of seeds."""
    return max((len(cell["each"]) for *_, cell in found), default=0)


def delays(cell):
    """Returns the quantiles of delays in microseconds, as means of the seeds."""
    runs = cell["each"].values()
    return ["%.4g" % (sum(run[key] for run in runs) / len(runs) / 1e3) for key in ("p50_ns", "p99_ns", "p99_9_ns")]


def captures(cells):
    """Yields the hit rates and losses with recorded captures in both modes."""
    yield head("capture", "packets", "time of a search", "hit rate", "with `blocking`", "lost", "with `blocking`")
    for name in cells.values("capture"):
        for nanos in cells.values("service_ns"):
            here = cells.where(capture=name, service_ns=nanos)
            both = here.one(mode="nonblocking"), here.one(mode="blocking")
            rates = ["%.4g" % percent("hits")(cell) for cell in both]
            lost = [cell["queue_full"] + cell["ring_full"] for cell in both]
            yield row(name, both[0]["offered"], service(nanos), *rates, *lost)
    yield ""


def fewest(cells):
    """Returns the fewest searches of an experiment, with the name of the experiment."""
    runs = [run for cell in cells.cells for run in cell["each"].values()]
    run = min(runs, key=lambda run: run["searched"] + run["uncached"])
    where = "%(part)s, seed %(seed)d, %(position)s, %(bytes)d bytes, cache %(cache)d, queue %(queue)d, %(mode)s" % run
    return run["searched"] + run["uncached"], "%s, %s" % (where, service(run["service_ns"]))
