// SPDX-License-Identifier: Apache-2.0
//! Bypass of LUTs that cost more than they save. If a LUT is bypassed, the fast-forwarding path looks up
//! packets in the table itself. The control thread decides by measured costs and the LUT's hit rate; workers
//! get the decision as an update.
//!
//! With a LUT, each packet costs a probe, and a miss also costs a lookup in the table. Without a LUT, each
//! packet costs a lookup. A bypassed LUT is tried again after a pause, which doubles with each failed trial.

use crate::stopwatch::{Sums, TableCosts};
use dataplane::LutFigures;
use flow::Nanos;

/// Period of decisions in nanoseconds.
const PERIOD_NS: Nanos = Nanos(1_000_000_000);

/// Minimum number of timed packets for each cost.
const PACKETS_MIN: u64 = 64;

/// A LUT is bypassed if it costs more than the table by more than this percentage.
const WORSE_PERCENT: u64 = 10;

/// A LUT on trial is kept if it costs less than the table by at least this percentage.
const BETTER_PERCENT: u64 = 10;

/// Number of periods after a LUT is created in which no decision is made, because it is still learning.
const YOUNG: u32 = 2;

/// Minimum pause before a trial, in nanoseconds. `PAUSE_MAX_NS` is the maximum.
const PAUSE_MIN_NS: Nanos = Nanos(30 * 1_000_000_000);
const PAUSE_MAX_NS: Nanos = Nanos(3_600 * 1_000_000_000);

/// Decision about a table's LUT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BypassChoice {
    /// No change.
    Stay,
    /// Bypass the LUT.
    GiveUp,
    /// Try a LUT again.
    Try,
}

/// Measurements and state of one table's LUT.
#[derive(Debug)]
pub(crate) struct Bypass {
    next_ns: Nanos,
    periods: u32,
    on_trial: bool,
    bypassed_ns: Option<Nanos>,
    pause_ns: Nanos,
    costs: Measured,
    figures: LutFigures,
}

impl Default for Bypass {
    fn default() -> Self {
        Self {
            next_ns: Nanos(0),
            periods: 0,
            on_trial: false,
            bypassed_ns: None,
            pause_ns: PAUSE_MIN_NS,
            costs: Measured::default(),
            figures: LutFigures::default(),
        }
    }
}

/// Costs summed over all workers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    probe: Sums,
    lookup: Sums,
}

impl Measured {
    pub fn over<'a>(costs: impl Iterator<Item = &'a TableCosts>) -> Self {
        costs.fold(Self::default(), |sum, costs| Self {
            probe: sum.probe + costs.probe.read(),
            lookup: sum.lookup + costs.lookup.read(),
        })
    }
}

impl Bypass {
    /// Restarts the measurement. Called after the table got a new LUT, or lost its LUT for a reason other
    /// than cost.
    pub fn reset(&mut self) {
        *self = Self { costs: self.costs, next_ns: self.next_ns, ..Self::default() };
    }

    /// Decides whether to bypass the LUT of a table, or to try a LUT again. `figures` are the counters of the
    /// current LUT.
    pub fn choose_mode(&mut self, now: Nanos, measured: Measured, figures: LutFigures) -> BypassChoice {
        if let Some(since) = self.bypassed_ns {
            if now < since + self.pause_ns {
                return BypassChoice::Stay;
            }
            self.pause_ns = (self.pause_ns * 2).min(PAUSE_MAX_NS);
            (self.bypassed_ns, self.on_trial, self.periods) = (None, true, 0);
            self.begin(now, measured, LutFigures::default());
            return BypassChoice::Try;
        }
        if now < self.next_ns {
            return BypassChoice::Stay;
        }
        let Some(saves) = self.saves(measured, figures) else {
            self.next_ns = now + PERIOD_NS;
            return BypassChoice::Stay;
        };
        self.begin(now, measured, figures);
        self.periods += 1;
        if self.periods <= YOUNG {
            return BypassChoice::Stay;
        }
        let demanded = if self.on_trial { BETTER_PERCENT as i64 } else { -(WORSE_PERCENT as i64) };
        if saves < demanded {
            self.bypassed_ns = Some(now);
            return BypassChoice::GiveUp;
        }
        (self.on_trial, self.pause_ns) = (false, PAUSE_MIN_NS);
        BypassChoice::Stay
    }

    fn begin(&mut self, now: Nanos, measured: Measured, figures: LutFigures) {
        (self.next_ns, self.costs, self.figures) = (now + PERIOD_NS, measured, figures);
    }

    /// Returns the percentage of lookup cost that the LUT saved since the last decision, or `None` if too few
    /// packets were measured.
    fn saves(&self, measured: Measured, figures: LutFigures) -> Option<i64> {
        let known = |sums: Sums, before: Sums| (sums - before).mean_ps(PACKETS_MIN);
        let probe = known(measured.probe, self.costs.probe)?;
        let lookup = known(measured.lookup, self.costs.lookup)?;
        // The LUT may have been recreated since the last decision, with counters at 0.
        let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        let misses = since(figures.misses, self.figures.misses);
        let hits =
            since(figures.hits, self.figures.hits) + since(figures.normal_hits, self.figures.normal_hits);
        let in_vain = lookup * misses / (hits + misses).max(1);
        let with = i64::try_from(probe + in_vain).ok()?;
        let without = i64::try_from(lookup.max(1)).ok()?;
        Some((without - with) * 100 / without)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos(1_000_000_000);

    /// A simulated table. Its LUT costs `probe` ns per packet, and its lookup costs `lookup` ns. One packet
    /// in ten misses the LUT.
    struct Table {
        bypass: Bypass,
        measured: Measured,
        figures: LutFigures,
        now: Nanos,
    }

    impl Table {
        fn new() -> Self {
            Self {
                bypass: Bypass::default(),
                measured: Measured::default(),
                figures: LutFigures::default(),
                now: SECOND,
            }
        }

        /// Runs for `seconds`. Returns the first decision other than `Stay`, and the time of this decision.
        fn run(&mut self, seconds: u64, probe: u64, lookup: u64) -> Option<(BypassChoice, u64)> {
            for passed in 1..=seconds {
                self.now += SECOND;
                self.measured.probe += Sums { ns: probe * 100, packets: 100 };
                self.measured.lookup += Sums { ns: lookup * 100, packets: 100 };
                (self.figures.hits, self.figures.misses) =
                    (self.figures.hits + 900, self.figures.misses + 100);
                match self.bypass.choose_mode(self.now, self.measured, self.figures) {
                    BypassChoice::Stay => {}
                    verdict => return Some((verdict, passed)),
                }
            }
            None
        }
    }

    #[test]
    fn a_lut_is_kept_if_it_saves_time_and_bypassed_otherwise() {
        assert_eq!(Table::new().run(1_000, 5, 20), None);
        assert_eq!(Table::new().run(1_000, 19, 20), None, "a small saving changes nothing");
        assert_eq!(Table::new().run(1_000, 20, 10), Some((BypassChoice::GiveUp, 3)));
    }

    #[test]
    fn a_bypassed_lut_is_tried_again_after_growing_pauses() {
        let mut table = Table::new();
        assert!(matches!(table.run(10, 20, 10), Some((BypassChoice::GiveUp, _))));
        assert_eq!(table.run(100, 20, 10), Some((BypassChoice::Try, 30)));
        assert_eq!(table.run(100, 20, 10), Some((BypassChoice::GiveUp, 3)));
        assert_eq!(table.run(100, 20, 10), Some((BypassChoice::Try, 60)));
        // The table has grown, so that lookups take longer and its LUT now saves time.
        assert_eq!(table.run(1_000, 20, 100), None);
        assert_eq!(table.run(10, 200, 100), Some((BypassChoice::GiveUp, 1)));
        assert_eq!(
            table.run(100, 20, 10),
            Some((BypassChoice::Try, 30)),
            "a successful trial shortens the next pause"
        );
    }

    #[test]
    fn too_few_measurements_change_nothing() {
        let mut table = Table::new();
        for _ in 0..100 {
            table.now += SECOND;
            table.measured.probe += Sums { ns: 9_000, packets: 10 };
            assert_eq!(
                table.bypass.choose_mode(table.now, table.measured, table.figures),
                BypassChoice::Stay
            );
        }
    }
}
