# SPDX-License-Identifier: Apache-2.0
"""Rows of the comparison: rules, traffic, configuration of each side, and the target."""

import dataclasses
import functools

from rules import FAMILIES, MacTable, RuleSet
from shunt import RECORDS, Settings
from traffic import Traffic, to_stations

# Minimum speed of Shunt with path records, relative to Open vSwitch, by IP version and number of flows.
BARS = {6: {1: 2.2, 100: 2.8, 10_000: 4.5, 100_000: 6.0}, 4: {1: 1.9, 100: 2.6, 10_000: 4.5, 100_000: None}}
FLOWS = (1, 100, 10_000, 100_000)
NEW_BAR = 100.0
# Minimum speed relative to testpmd: for L2 forwarding (by number of flows), for the action NORMAL, and for
# the program macswap, which has no tables.
L2_BARS, NORMAL_BAR, MACSWAP_BAR = {1: 0.6, 1000: 0.6, 10_000: 0.55, 100_000: 0.55}, 0.5, 0.75
# Minimum speed relative to the build given by `--before`: if every packet is a new flow, and with default
# settings.
BEFORE_NEW_BAR, BEFORE_DEFAULTS_BAR = 0.95, 0.9
# Minimum speed of Shunt with the port cache, relative to Shunt without it.
PORT_CACHE_BAR = 0.88
# Minimum speed of the POF router, relative to the same router in OpenFlow.
POF_BAR = 0.9
# Minimum speed of Shunt's tables without the fast-forwarding path, relative to Open vSwitch.
TABLES_BARS = {10_000: 2.5, 100_000: 6.0}
# Number of LUT records by number of flows.
LUTS = {1: 4096, 100: 4096, 10_000: 16_384, 100_000: 65_536}
# Number of path records in rows that have more flows than the default number of records.
MANY_RECORDS = 262_144
# More flows than the caches of either switch hold; see README.md.
NEW = 200_000
ROUTED, STATIONS, LEARNED, MACSWAP = "routed", "stations", "learned", "macswap"


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the comparison. `popularity` is uniform, zipf or new. With `before`, the peer is another build
    of Shunt. With `peer`, it is the same build with these settings. With `pof`, Shunt forwards by the flows of
    a POF program, and the peer by those of OpenFlow."""

    flows: int
    version: int = 4
    hard: bool = True
    rewrites: bool = False
    popularity: str = "uniform"
    kind: str = ROUTED
    ours: Settings = Settings()
    bar: float = None
    before: bool = False
    peer: Settings = None
    pof: bool = False

    @property
    def name(self):
        """Name of the row in tables."""
        if self.kind == MACSWAP:
            return "from port to port without tables, %d flow%s" % (self.flows, "s" * (self.flows > 1))
        if self.kind == LEARNED:
            parts = ["NORMAL, %d learned MACs" % self.flows]
        elif self.kind == STATIONS:
            parts = ["L2 by destination MAC, %d flow%s" % (self.flows, "s" * (self.flows > 1))]
        else:
            parts = self._routed_parts()
        parts += ["express path"] * (self.ours.records > 0)
        parts += ["port cache"] * self.ours.port_cache
        parts += ["against the build before"] * self.before
        return ", ".join(parts)

    def _routed_parts(self):
        parts = ["IPv%d" % self.version, "hard" if self.hard else "easy"]
        parts += ["rewriting"] * self.rewrites
        parts += ["POF"] * self.pof
        if self.popularity == "new":
            parts.append("every packet a new flow")
        else:
            parts.append("%d flow%s" % (self.flows, "s" * (self.flows > 1)))
        parts += ["by Zipf's law"] * (self.popularity == "zipf")
        parts += ["FFP off"] * (not self.ours.ffp and not self.ours.records)
        parts += ["all defaults"] * self.ours.defaults
        return parts

    def rules(self):
        """Flows of the row, as an object with the method `lines`."""
        if self.kind == ROUTED:
            return rule_set(self.version, self.hard)
        return MacTable(self.flows, learned=self.kind == LEARNED)

    def our_lines(self):
        """Flows of Shunt's side."""
        return list(self.rules().pof_lines() if self.pof else self.rules().lines(self.rewrites, ours=True))

    def packets(self):
        """Packets of the row's capture."""
        if self.kind != ROUTED:
            return to_stations(self.rules())
        return Traffic(self.rules()).packets(self.flows, zipf=self.popularity == "zipf")


@functools.cache
def rule_set(version, hard):
    """Returns the rule set of a kind, which all rows of this kind share."""
    return RuleSet(FAMILIES[version], hard)


def routed(flows, version, popularity="uniform", **how):
    """Returns a row over three tables, with Shunt's fast-forwarding path enabled."""
    settings = Settings(lut_entries=LUTS.get(flows, 4096))
    return Row(flows, version, popularity=popularity, ours=settings, **how)


def tables(flows, version, popularity="uniform", **how):
    """Returns a row over three tables, with Shunt's fast-forwarding path disabled."""
    return Row(flows, version, popularity=popularity, ours=Settings(marked=False, ffp=False), **how)


def express(flows, version, popularity="uniform", **how):
    """Returns a row over three tables with rewrites, with path records and without the FFP."""
    return Row(flows, version, popularity=popularity, rewrites=True, ours=by_records(flows), **how)


def by_records(flows):
    """Returns settings with path records. There is at least one record for each flow, unless every packet is
    a new flow."""
    records = MANY_RECORDS if RECORDS < flows < NEW else RECORDS
    return Settings(marked=False, ffp=False, records=records)


def cached(flows, version):
    """Returns a row over three tables that compares Shunt with the port cache with Shunt without it."""
    row = express(flows, version, bar=PORT_CACHE_BAR)
    return dataclasses.replace(row, ours=dataclasses.replace(row.ours, port_cache=True), peer=row.ours)


def of_pof(flows, version):
    """Returns a row over three tables that compares the router as a POF program with the same in OpenFlow."""
    row = express(flows, version, bar=POF_BAR, pof=True)
    return dataclasses.replace(row, peer=row.ours)


def named():
    """Returns the rows that every run measures."""
    for version in (6, 4):
        yield from (express(flows, version, bar=bar) for flows, bar in BARS[version].items())
        yield express(NEW, version, "new", bar=NEW_BAR)
        yield from (routed(flows, version, rewrites=True) for flows in FLOWS)
        yield from (tables(flows, version, bar=bar) for flows, bar in TABLES_BARS.items())
        yield cached(100, version)
        yield from (of_pof(flows, version) for flows in (100, 10_000))
    for stations, bar in L2_BARS.items():
        yield Row(stations, kind=STATIONS, ours=by_records(stations), bar=bar)
    yield Row(1000, kind=LEARNED, ours=by_records(1000), bar=NORMAL_BAR)
    for stations in (1, 1000):
        yield Row(stations, kind=STATIONS, ours=Settings(marked=False, ffp=False))
        yield Row(stations, kind=MACSWAP, bar=MACSWAP_BAR)
    yield Row(10_000, 6, popularity="zipf", ours=Settings(defaults=True))


def before():
    """Returns the rows against another build of Shunt."""
    for version in (6, 4):
        yield express(NEW, version, "new", bar=BEFORE_NEW_BAR, before=True)
        yield Row(10_000, version, ours=Settings(defaults=True), bar=BEFORE_DEFAULTS_BAR, before=True)


def full():
    """Returns all combinations, the named rows first."""
    yield from named()
    for version in (6, 4):
        for hard in (True, False):
            for rewrites in (False, True):
                how = {"hard": hard, "rewrites": rewrites}
                if not hard or not rewrites:
                    yield from (routed(flows, version, **how) for flows in FLOWS)
                yield routed(NEW, version, "new", **how)
            yield from (routed(flows, version, "zipf", hard=hard) for flows in (10_000, 100_000))
        yield tables(100, version)
        yield tables(NEW, version, "new")
