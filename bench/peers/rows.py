# SPDX-License-Identifier: Apache-2.0
"""Rows of the comparison: rules, traffic, configuration of each side, and the target."""

import dataclasses
import functools

from rules import FAMILIES, MacTable, RuleSet
from shunt import Settings
from traffic import Traffic, to_stations

# Minimum speed of Shunt with the fast-forwarding path, relative to Open vSwitch, by number of flows.
BARS = {1: 1.75, 100: 2.5, 10_000: 5.0, 100_000: 9.0}
NEW_BAR = 100.0
# Minimum speed relative to testpmd: of L2 forwarding, and of Shunt's frames without tables.
L2_BAR, MACSWAP_BAR = 0.6, 0.75
# Minimum speed of Shunt's tables without the fast-forwarding path, relative to Open vSwitch.
TABLES_BARS = {10_000: 2.5, 100_000: 6.0}
# Number of LUT records by number of flows. There are at least as many records as flows, except beyond the
# largest LUT.
LUTS = {1: 4096, 100: 4096, 10_000: 16_384, 100_000: 65_536}
# More flows than the caches of either switch hold; see README.md.
NEW = 200_000
ROUTED, STATIONS, MACSWAP = "routed", "stations", "macswap"


@dataclasses.dataclass(frozen=True)
class Row:
    """A row. `popularity` is uniform, zipf or new."""

    flows: int
    version: int = 4
    hard: bool = True
    rewrites: bool = False
    popularity: str = "uniform"
    kind: str = ROUTED
    ours: Settings = Settings()
    bar: float = None

    @property
    def name(self):
        """Name of the row in tables."""
        if self.kind == MACSWAP:
            return "from port to port without tables, %d flow%s" % (self.flows, "s" * (self.flows > 1))
        if self.kind == STATIONS:
            return "L2 by destination MAC, %d flow%s" % (self.flows, "s" * (self.flows > 1))
        parts = ["IPv%d" % self.version, "hard" if self.hard else "easy"]
        parts += ["rewriting"] * self.rewrites
        if self.popularity == "new":
            parts.append("every packet a new flow")
        else:
            parts.append("%d flow%s" % (self.flows, "s" * (self.flows > 1)))
        parts += ["by Zipf's law"] * (self.popularity == "zipf")
        parts += ["FFP off"] * (not self.ours.ffp)
        parts += ["all defaults"] * self.ours.defaults
        return ", ".join(parts)

    def rules(self):
        """Flows of the row, as an object with the method `lines`."""
        return rule_set(self.version, self.hard) if self.kind == ROUTED else MacTable(self.flows)

    def packets(self):
        """Packets of the row's capture."""
        if self.kind != ROUTED:
            return to_stations(self.rules())
        return Traffic(self.rules()).packets(self.flows, zipf=self.popularity == "zipf")


@functools.cache
def rule_set(version, hard):
    """Returns the rule set; all rows share one per kind."""
    return RuleSet(FAMILIES[version], hard)


def routed(flows, version, popularity="uniform", **how):
    """Returns a row over three tables, with Shunt's fast-forwarding path enabled."""
    settings = Settings(lut_entries=LUTS.get(flows, 4096))
    return Row(flows, version, popularity=popularity, ours=settings, **how)


def tables(flows, version, popularity="uniform", **how):
    """Returns a row over three tables, with Shunt's fast-forwarding path disabled."""
    return Row(flows, version, popularity=popularity, ours=Settings(marked=False, ffp=False), **how)


def named():
    """Returns the rows of every run."""
    for version in (6, 4):
        yield from (routed(flows, version, bar=bar) for flows, bar in BARS.items())
        yield routed(NEW, version, "new", bar=NEW_BAR)
        yield from (tables(flows, version, bar=bar) for flows, bar in TABLES_BARS.items())
    for stations in (1, 1000):
        yield Row(stations, kind=STATIONS, ours=Settings(marked=False, ffp=False), bar=L2_BAR)
        yield Row(stations, kind=MACSWAP, bar=MACSWAP_BAR)
    yield Row(10_000, 6, popularity="zipf", ours=Settings(defaults=True))


def full():
    """Returns all combinations, the named rows first."""
    yield from named()
    for version in (6, 4):
        for hard in (True, False):
            for rewrites in (False, True):
                if hard and not rewrites:
                    continue
                how = {"hard": hard, "rewrites": rewrites}
                yield from (routed(flows, version, **how) for flows in BARS)
                yield routed(NEW, version, "new", **how)
            yield from (routed(flows, version, "zipf", hard=hard) for flows in (10_000, 100_000))
        yield tables(100, version)
        yield tables(NEW, version, "new")
