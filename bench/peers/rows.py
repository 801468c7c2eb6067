# SPDX-License-Identifier: Apache-2.0
"""The rows of the comparison: which rules, which traffic, how each side is set, and the bar."""

import dataclasses
import functools

from rules import FAMILIES, MacTable, RuleSet
from shunt import Settings
from traffic import Traffic, to_stations

# What Shunt's path must reach against Open vSwitch, by flows.
BARS = {1: 1.75, 100: 2.5, 10_000: 5.0, 100_000: 9.0}
NEW_BAR, L2_BAR = 100.0, 0.6
# What its tables alone must reach.
TABLES_BARS = {10_000: 2.5, 100_000: 6.0}
# LUTs as large as the flows, as far as they go.
LUTS = {1: 4096, 100: 4096, 10_000: 16_384, 100_000: 65_536}
# No cache of either side reaches so far back: see README.md.
NEW = 200_000
ROUTED, STATIONS = "routed", "stations"


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
        """As tables have it."""
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
        """Its flows, as an object with `lines`."""
        return MacTable(self.flows) if self.kind == STATIONS else rule_set(self.version, self.hard)

    def packets(self):
        """Its capture's packets."""
        if self.kind == STATIONS:
            return to_stations(self.rules())
        return Traffic(self.rules()).packets(self.flows, zipf=self.popularity == "zipf")


@functools.cache
def rule_set(version, hard):
    """The same rules for all rows."""
    return RuleSet(FAMILIES[version], hard)


def routed(flows, version, popularity="uniform", **how):
    """A row over three tables, with Shunt's path on."""
    settings = Settings(lut_entries=LUTS.get(flows, 4096))
    return Row(flows, version, popularity=popularity, ours=settings, **how)


def tables(flows, version, popularity="uniform", **how):
    """The same without the path."""
    return Row(flows, version, popularity=popularity, ours=Settings(marked=False, ffp=False), **how)


def named():
    """The rows of every run."""
    for version in (6, 4):
        yield from (routed(flows, version, bar=bar) for flows, bar in BARS.items())
        yield routed(NEW, version, "new", bar=NEW_BAR)
        yield from (tables(flows, version, bar=bar) for flows, bar in TABLES_BARS.items())
    for stations in (1, 1000):
        yield Row(stations, kind=STATIONS, ours=Settings(marked=False, ffp=False), bar=L2_BAR)
    yield Row(10_000, 6, popularity="zipf", ours=Settings(defaults=True))


def full():
    """The whole matrix; the named rows first."""
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
