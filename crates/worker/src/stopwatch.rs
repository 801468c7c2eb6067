// SPDX-License-Identifier: Apache-2.0
//! Times one burst of many, step by step, and sums up what lookups cost: so the control thread knows what a LUT saves.

use flow::Nanos;
use pipeline::{Probe, Step};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One burst of so many is timed.
const BURSTS: u32 = 1_024;

/// A step that took longer a packet was interrupted, or its packets found everything cold: it does not count.
const LONGEST_NS: u64 = 2_000;

/// Readings of the clock from which its own cost is told.
const READINGS: usize = 64;

/// The time that a step took, and for how many packets.
#[derive(Debug, Default)]
pub(crate) struct Cost {
    ns: AtomicU64,
    packets: AtomicU64,
}

impl Cost {
    fn add(&self, ns: u64, packets: u32) {
        self.ns.store(self.ns.load(Relaxed) + ns, Relaxed);
        self.packets.store(self.packets.load(Relaxed) + u64::from(packets), Relaxed);
    }

    /// Nanoseconds and packets since the worker began.
    pub fn read(&self) -> (u64, u64) {
        (self.ns.load(Relaxed), self.packets.load(Relaxed))
    }
}

/// What a table's steps cost in one worker.
#[derive(Debug, Default)]
pub(crate) struct TableCosts {
    pub extract: Cost,
    pub probe: Cost,
    pub lookup: Cost,
}

/// The costs of all tables in one worker, which is the only one to write.
#[derive(Debug)]
pub(crate) struct Costs {
    tables: Box<[TableCosts]>,
}

impl Default for Costs {
    fn default() -> Self {
        Self { tables: (0..=u8::MAX).map(|_| TableCosts::default()).collect() }
    }
}

impl Costs {
    pub fn table(&self, number: u8) -> Option<&TableCosts> {
        self.tables.get(usize::from(number))
    }
}

/// What looking up a packet costs in a table, picoseconds: means over the bursts that were timed. 0: none was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookupCosts {
    /// Finding headers and building the key.
    pub extract_ps: u64,
    /// Looking it up in the LUT.
    pub probe_ps: u64,
    /// Looking it up in the table.
    pub lookup_ps: u64,
}

impl LookupCosts {
    /// The means over all workers.
    pub(crate) fn over<'a>(costs: impl Iterator<Item = &'a TableCosts> + Clone) -> Self {
        let mean = |cost: fn(&TableCosts) -> &Cost| {
            let sums = costs.clone().map(|costs| cost(costs).read());
            let (ns, packets) = sums.fold((0, 0), |sum, (ns, packets)| (sum.0 + ns, sum.1 + packets));
            (ns * 1_000).checked_div(packets).unwrap_or(0)
        };
        Self {
            extract_ps: mean(|costs| &costs.extract),
            probe_ps: mean(|costs| &costs.probe),
            lookup_ps: mean(|costs| &costs.lookup),
        }
    }
}

/// Listens to the bursts that are timed.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    clock: fn() -> Nanos,
    /// What it takes to read the clock, ns.
    reading_ns: u64,
    last: Nanos,
    until_next: u32,
    costs: Arc<Costs>,
}

impl Stopwatch {
    pub fn new(clock: fn() -> Nanos, costs: Arc<Costs>) -> Self {
        let readings: [Nanos; READINGS] = std::array::from_fn(|_| clock());
        let between = readings.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
        Self { clock, reading_ns: between.min().unwrap_or(0), last: 0, until_next: BURSTS, costs }
    }

    /// Whether the burst that is forwarded next is timed.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        self.until_next -= 1;
        if self.until_next > 0 {
            return false;
        }
        self.until_next = BURSTS;
        self.last = (self.clock)();
        true
    }
}

impl Probe for Stopwatch {
    fn mark(&mut self, step: Step, units: u32) {
        let now = (self.clock)();
        let ns = now.saturating_sub(self.last).saturating_sub(self.reading_ns);
        self.last = now;
        let cost = match step {
            Step::Extract(table) => self.costs.table(table).map(|costs| &costs.extract),
            Step::Probe(table) => self.costs.table(table).map(|costs| &costs.probe),
            Step::Lookup(table) => self.costs.table(table).map(|costs| &costs.lookup),
            _ => None,
        };
        if let Some(cost) = cost
            && ns <= LONGEST_NS * u64::from(units)
        {
            cost.add(ns, units);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local!(static NOW: Cell<Nanos> = const { Cell::new(0) });

    /// Each reading takes 10 ns.
    fn clock() -> Nanos {
        NOW.with(|now| {
            now.set(now.get() + 10);
            now.get()
        })
    }

    fn pass(ns: Nanos) {
        NOW.with(|now| now.set(now.get() + ns));
    }

    #[test]
    fn one_burst_of_many_is_timed_without_the_readings() {
        let costs = Arc::new(Costs::default());
        let mut stopwatch = Stopwatch::new(clock, Arc::clone(&costs));
        let due = (0..3 * BURSTS).filter(|_| stopwatch.is_due()).count();
        assert_eq!(due, 3);
        let mut step = |step, ns, units| {
            pass(ns);
            stopwatch.mark(step, units);
        };
        step(Step::Admit, 5, 32);
        step(Step::Probe(7), 64, 32);
        step(Step::Lookup(7), 90, 3);
        step(Step::Lookup(7), 3 * LONGEST_NS + 1, 3);
        step(Step::Execute(7), 1_000, 32);
        let told = LookupCosts::over([costs.table(7).unwrap()].into_iter());
        assert_eq!(told, LookupCosts { extract_ps: 0, probe_ps: 2_000, lookup_ps: 30_000 });
    }
}
