// SPDX-License-Identifier: Apache-2.0
//! Table of costs, and its agreement with real time.

use crate::cost::CostProbe;
use crate::cost::probe::{Counts, Rates};
use crate::cost::slots::{slots, step};
use pipeline::ProbeStep;
use std::fmt::{self, Display, Formatter};

/// Cost of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Step of the worker.
    pub step: ProbeStep,
    /// Whether the row covers packets that left the fast-forwarding path and pass the tables again.
    pub again: bool,
    /// Number of samples.
    pub samples: usize,
    /// Sum of the units of all samples.
    pub units: u64,
    /// Mean cost of a unit in nanoseconds.
    pub mean_ns: f64,
    /// Fixed cost per occurrence of the step in nanoseconds; the cost of its units is added.
    pub mark_ns: f64,
    /// Cost per unit in nanoseconds, in addition to `mark_ns`.
    pub each_ns: f64,
    /// Median over the samples of the cost per unit, in nanoseconds.
    pub p50_ns: f64,
    /// 99th percentile of the cost per unit, in nanoseconds.
    pub p99_ns: f64,
    /// 99.9th percentile of the cost per unit, in nanoseconds; the maximum if there are fewer than 1,000
    /// samples.
    pub p999_ns: f64,
}

/// Agreement of the costs with real time, measured in windows without preemption.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Agreement {
    /// Virtual time computed from mean costs, in nanoseconds.
    pub virtual_ns: f64,
    /// Virtual time computed from size-dependent costs, in nanoseconds.
    pub sized_ns: f64,
    /// Real time in nanoseconds.
    pub real_ns: f64,
    /// Number of windows compared.
    pub windows: usize,
    /// Number of windows that were excluded because of preemption.
    pub set_aside: usize,
    /// Preempted time in the excluded windows, in nanoseconds.
    pub stolen_ns: u64,
}

impl Agreement {
    /// Returns the virtual time, calculated from mean costs, divided by the real time.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.virtual_ns / self.real_ns
    }

    /// Returns the virtual time, calculated from size-dependent costs, divided by the real time.
    #[must_use]
    pub fn sized_ratio(&self) -> f64 {
        self.sized_ns / self.real_ns
    }
}

/// Costs of all steps.
#[derive(Clone)]
pub struct CostTable {
    rows: Vec<Row>,
    /// Mean costs per unit.
    means: Rates,
    /// 99.9th percentiles of the cost per unit.
    tails: Rates,
    /// Size-dependent costs: per occurrence and per unit.
    sized: Rates,
    /// Agreement with real time.
    pub agreement: Agreement,
}

impl CostTable {
    pub(super) fn new(rows: Vec<Row>) -> Self {
        let rates = |mark_ns: fn(&Row) -> f64, unit_ns: fn(&Row) -> f64| {
            let mut rates = Rates::none();
            for row in &rows {
                if let Some(slot) = slots(row.step).nth(usize::from(row.again)) {
                    (rates.mark_ns[slot], rates.unit_ns[slot]) = (mark_ns(row), unit_ns(row));
                }
            }
            rates
        };
        let means = rates(|_| 0.0, |row| row.mean_ns);
        let tails = rates(|_| 0.0, |row| row.p999_ns);
        let sized = rates(|row| row.mark_ns, |row| row.each_ns);
        Self { rows, means, tails, sized, agreement: Agreement::default() }
    }

    /// Returns a table in which every step has the same cost per unit, so that repeated runs give equal
    /// results.
    #[must_use]
    pub fn even(unit_ns: f64) -> Self {
        let mut even = Rates::none();
        even.unit_ns.fill(unit_ns);
        let (rows, agreement) = (Vec::new(), Agreement::default());
        Self { rows, means: even.clone(), tails: even.clone(), sized: even, agreement }
    }

    /// Returns a table with given costs in nanoseconds. Each element is a step, whether it is in the second
    /// pass, its cost per occurrence, and its cost per unit. All other steps cost nothing.
    #[must_use]
    pub fn given(steps: &[(ProbeStep, bool, f64, f64)]) -> Self {
        let row = |&(step, again, mark_ns, each_ns): &(ProbeStep, bool, f64, f64)| {
            let (mean_ns, p50_ns, p99_ns, p999_ns) = (each_ns, each_ns, each_ns, each_ns);
            Row { step, again, samples: 0, units: 0, mean_ns, mark_ns, each_ns, p50_ns, p99_ns, p999_ns }
        };
        Self::new(steps.iter().map(row).collect())
    }

    /// Returns a row for each step that occurred.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the mean cost in nanoseconds of a unit of a step, over both passes, or 0 if the step was not
    /// measured.
    #[must_use]
    pub fn cost_ns(&self, step: ProbeStep) -> f64 {
        let rows = self.rows.iter().filter(|row| row.step == step);
        let (units, ns) = rows.fold((0.0, 0.0), |(units, ns), row| {
            (units + row.units as f64, ns + row.units as f64 * row.mean_ns)
        });
        if units > 0.0 { ns / units } else { 0.0 }
    }

    /// Like [`CostTable::drive`], but each of the given steps costs its 99.9th percentile.
    pub(super) fn drive_by_tails_of(&self, probe: &mut CostProbe, steps: &[ProbeStep]) {
        let mut rates = self.means.clone();
        for slot in steps.iter().flat_map(|step| slots(*step)) {
            rates.unit_ns[slot] = self.tails.unit_ns[slot];
        }
        probe.start_virtual(rates);
    }

    /// Stops the probe. Returns the steps that occurred in virtual time and that cost nothing because this
    /// table has no row for them, each with whether it occurred in the second pass.
    pub fn free_steps(&self, probe: &mut CostProbe) -> Vec<(ProbeStep, bool)> {
        let counts = probe.take_counts();
        let costs = |slot: usize| self.sized.mark_ns[slot] > 0.0 || self.sized.unit_ns[slot] > 0.0;
        let has_row = |found| self.rows.iter().any(|row| (row.step, row.again) == found);
        let occurred = (0..counts.units.len()).filter(|slot| counts.units[*slot] > 0 && !costs(*slot));
        occurred.map(step).filter(|found| !has_row(*found)).collect()
    }

    /// Returns the total cost in nanoseconds of the counted units of these steps.
    pub(super) fn part_ns(&self, counts: &Counts, steps: &[ProbeStep]) -> f64 {
        let slots = steps.iter().flat_map(|step| slots(*step));
        slots.map(|slot| counts.units[slot] as f64 * self.means.unit_ns[slot]).sum()
    }

    /// Returns the total cost of the counted units in nanoseconds, computed from mean costs.
    pub(super) fn total_ns(&self, counts: &Counts) -> f64 {
        self.means.total_ns(counts)
    }

    /// Returns the total cost of the counted steps in nanoseconds, computed from size-dependent costs.
    pub(super) fn sized_ns(&self, counts: &Counts) -> f64 {
        self.sized.total_ns(counts)
    }

    /// Starts the probe's virtual clock at 0. Each step then advances it by the step's mean cost.
    pub fn drive(&self, probe: &mut CostProbe) {
        probe.start_virtual(self.means.clone());
    }

    /// Like [`CostTable::drive`], but with the 99.9th percentile of each step's cost. The virtual time of
    /// almost every poll iteration is then at least its real time.
    pub fn drive_by_tails(&self, probe: &mut CostProbe) {
        probe.start_virtual(self.tails.clone());
    }

    /// Like [`CostTable::drive`], but with size-dependent costs, for bursts of all sizes.
    pub fn drive_by_size(&self, probe: &mut CostProbe) {
        probe.start_virtual(self.sized.clone());
    }
}

impl fmt::Debug for CostTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("CostTable").field("rows", &self.rows).field("agreement", &self.agreement).finish()
    }
}

impl Display for CostTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<16} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "step", "samples", "units", "mean ns", "time ns", "unit ns", "p50 ns", "p99 ns", "p99.9 ns"
        )?;
        for row in &self.rows {
            let Row { step, again, samples, units, mean_ns, mark_ns, each_ns, p50_ns, p99_ns, p999_ns } = row;
            let step = format!("{step:?}{}", if *again { " *" } else { "" });
            writeln!(
                f,
                "{step:<16} {samples:>9} {units:>10} {mean_ns:>10.1} {mark_ns:>10.1} {each_ns:>10.1} {p50_ns:>10.1} \
                 {p99_ns:>10.1} {p999_ns:>10.1}"
            )?;
        }
        let a = &self.agreement;
        writeln!(
            f,
            "total: {:.0} us virtual, {:.0} us real, ratio {:.3} ({:.3} by sizes), over {} windows; {} excluded with {} us \
             stolen; * behind the fast-forwarding path",
            a.virtual_ns / 1e3,
            a.real_ns / 1e3,
            a.ratio(),
            a.sized_ratio(),
            a.windows,
            a.set_aside,
            a.stolen_ns / 1_000
        )
    }
}
