// SPDX-License-Identifier: Apache-2.0
//! Measures the cost of lookups by timing one burst in many, step by step. From these costs, the control
//! thread decides whether a LUT is worthwhile.

use flow::{Nanos, TableId};
use pipeline::{Probe, ProbeStep};
use std::ops::{Add, AddAssign, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Maximum time in nanoseconds per packet. A step that took longer was interrupted or had cold caches, and is
/// not counted.
const LONGEST_NS: Nanos = Nanos(2_000);

/// Number of clock readings from which the cost of one reading is estimated.
const READINGS: usize = 64;

/// Accumulated time of a step, and its number of packets. Written by one worker.
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

    /// Returns the sums since the worker started.
    pub fn read(&self) -> Sums {
        Sums { ns: self.ns.load(Relaxed), packets: self.packets.load(Relaxed) }
    }
}

/// A total time, and the number of packets processed in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub ns: u64,
    pub packets: u64,
}

impl Sums {
    /// Returns the mean in picoseconds per packet, or `None` for fewer than `at_least` packets.
    pub fn mean_ps(self, at_least: u64) -> Option<u64> {
        (self.ns * 1_000).checked_div(self.packets).filter(|_| self.packets >= at_least)
    }
}

impl Add for Sums {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { ns: self.ns + other.ns, packets: self.packets + other.packets }
    }
}

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Sums {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { ns: self.ns - before.ns, packets: self.packets - before.packets }
    }
}

/// Costs of a table's steps in one worker.
#[derive(Debug, Default)]
pub(crate) struct TableCosts {
    pub extract: Cost,
    pub probe: Cost,
    pub lookup: Cost,
}

/// Costs of all tables in one worker, which is the only writer.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Costs {
    tables: Box<[TableCosts]>,
}

impl Default for Costs {
    fn default() -> Self {
        Self { tables: TableId::all().map(|_| TableCosts::default()).collect() }
    }
}

impl Costs {
    pub fn table(&self, number: TableId) -> Option<&TableCosts> {
        self.tables.get(number.index())
    }
}

/// Mean costs of looking up a packet in a table, in picoseconds, over the timed bursts. The costs are 0 if no
/// burst was timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookupCosts {
    /// Time for parsing headers and building the key.
    pub extract_ps: u64,
    /// Time for looking up the key in the LUT.
    pub probe_ps: u64,
    /// Time for looking up the key in the table.
    pub lookup_ps: u64,
}

impl LookupCosts {
    /// Returns the means over all workers.
    pub(crate) fn over<'a>(costs: impl Iterator<Item = &'a TableCosts> + Clone) -> Self {
        let mean = |cost: fn(&TableCosts) -> &Cost| {
            let sums = costs.clone().fold(Sums::default(), |sums, costs| sums + cost(costs).read());
            sums.mean_ps(1).unwrap_or(0)
        };
        Self {
            extract_ps: mean(|costs| &costs.extract),
            probe_ps: mean(|costs| &costs.probe),
            lookup_ps: mean(|costs| &costs.lookup),
        }
    }
}

/// A probe for timed bursts.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    clock: fn() -> Nanos,
    /// Cost of reading the clock in nanoseconds.
    reading_ns: Nanos,
    last: Nanos,
    /// One in this many bursts is timed.
    bursts: u32,
    until_next: u32,
    costs: Arc<Costs>,
}

impl Stopwatch {
    /// Creates a stopwatch that times one in `bursts` bursts. `bursts` must be at least 1.
    pub fn new(clock: fn() -> Nanos, bursts: u32, costs: Arc<Costs>) -> Self {
        let readings: [Nanos; READINGS] = std::array::from_fn(|_| clock());
        let between = readings.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
        Self {
            clock,
            reading_ns: between.min().unwrap_or_default(),
            last: Nanos(0),
            bursts,
            until_next: bursts,
            costs,
        }
    }

    /// Returns whether the next burst is timed. Called once per burst.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        self.until_next -= 1;
        if self.until_next > 0 {
            return false;
        }
        self.until_next = self.bursts;
        self.last = (self.clock)();
        true
    }
}

impl Probe for Stopwatch {
    fn compares(&self) -> bool {
        true
    }

    fn mark(&mut self, step: ProbeStep, units: u32) {
        let now = (self.clock)();
        let ns = now.saturating_sub(self.last).saturating_sub(self.reading_ns);
        self.last = now;
        let cost = match step {
            ProbeStep::Extract(table) => self.costs.table(table).map(|costs| &costs.extract),
            ProbeStep::Probe(table) => self.costs.table(table).map(|costs| &costs.probe),
            ProbeStep::Lookup(table) => self.costs.table(table).map(|costs| &costs.lookup),
            _ => None,
        };
        if let Some(cost) = cost
            && ns <= LONGEST_NS * u64::from(units)
        {
            cost.add(ns.0, units);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::TableId;
    use std::cell::Cell;

    thread_local!(static NOW: Cell<Nanos> = const { Cell::new(Nanos(0)) });

    /// Reads a clock that advances by 10 ns with each reading.
    fn clock() -> Nanos {
        NOW.with(|now| {
            now.set(now.get() + Nanos(10));
            now.get()
        })
    }

    fn pass(ns: Nanos) {
        NOW.with(|now| now.set(now.get() + ns));
    }

    #[test]
    fn one_burst_of_many_is_timed_without_the_readings() {
        let costs = Arc::new(Costs::default());
        let mut stopwatch = Stopwatch::new(clock, 100, Arc::clone(&costs));
        let due: Vec<u32> = (1..=350).filter(|_| stopwatch.is_due()).collect();
        assert_eq!(due, [100, 200, 300]);
        let mut step = |step, ns, units| {
            pass(ns);
            stopwatch.mark(step, units);
        };
        step(ProbeStep::Admit, Nanos(5), 32);
        step(ProbeStep::Probe(TableId(7)), Nanos(64), 32);
        step(ProbeStep::Lookup(TableId(7)), Nanos(90), 3);
        step(ProbeStep::Execute(TableId(7)), Nanos(1_000), 32);
        // A span of more than 2,000 ns per packet is not counted.
        step(ProbeStep::Lookup(TableId(7)), Nanos(6_001), 3);
        step(ProbeStep::Extract(TableId(7)), Nanos(6_000), 3);
        let reported = LookupCosts::over([costs.table(TableId(7)).unwrap()].into_iter());
        assert_eq!(reported, LookupCosts { extract_ps: 2_000_000, probe_ps: 2_000, lookup_ps: 30_000 });
    }
}
