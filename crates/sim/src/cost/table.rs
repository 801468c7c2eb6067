// SPDX-License-Identifier: Apache-2.0
//! The cost table, and how it holds against real time.

use crate::cost::CostProbe;
use crate::cost::probe::{Counts, Rates};
use crate::cost::slots::slots;
use pipeline::Step;
use std::fmt::{self, Display, Formatter};

/// One step's cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The step.
    pub step: Step,
    /// Of those packets of a burst that go through the tables again, having left the fast-forwarding path.
    pub again: bool,
    /// How often it was measured.
    pub samples: usize,
    /// Units in all samples.
    pub units: u64,
    /// Mean cost of a unit, ns.
    pub mean_ns: f64,
    /// What the step costs each time, ns, whatever its size, and then each unit of it.
    pub mark_ns: f64,
    /// See `mark_ns`.
    pub each_ns: f64,
    /// Median over the samples of a unit's cost, ns.
    pub p50_ns: f64,
    /// 99th percentile, ns.
    pub p99_ns: f64,
    /// 99.9th percentile, ns: what virtual time is made of where the longest turn is told. Of fewer than 1,000 samples the
    /// highest.
    pub p999_ns: f64,
}

/// Whether the costs add up to real time, over windows in which no time was stolen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Agreement {
    /// What the table says by mean costs of what was counted, ns.
    pub virtual_ns: f64,
    /// The same by costs that tell sizes apart.
    pub sized_ns: f64,
    /// What it took, ns.
    pub real_ns: f64,
    /// Windows compared.
    pub windows: usize,
    /// Windows with stolen time, of both kinds, which were set aside.
    pub set_aside: usize,
    /// Time stolen in them, ns.
    pub stolen_ns: u64,
}

impl Agreement {
    /// Virtual time divided by real time.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.virtual_ns / self.real_ns
    }

    /// The same by costs that tell sizes apart.
    #[must_use]
    pub fn sized_ratio(&self) -> f64 {
        self.sized_ns / self.real_ns
    }
}

/// The cost of a unit of each step.
#[derive(Clone)]
pub struct CostTable {
    rows: Vec<Row>,
    /// By mean costs of a unit.
    means: Rates,
    /// By the 99.9th percentile of a unit's cost.
    tails: Rates,
    /// By costs that tell sizes apart.
    sized: Rates,
    /// How the table holds against real time.
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

    /// A table by which a unit of every step costs the same: virtual time then tells the work of turns, and two runs tell
    /// the same.
    #[must_use]
    pub fn even(unit_ns: f64) -> Self {
        let mut even = Rates::none();
        even.unit_ns.fill(unit_ns);
        let (rows, agreement) = (Vec::new(), Agreement::default());
        Self { rows, means: even.clone(), tails: even.clone(), sized: even, agreement }
    }

    /// A table of steps with so much each time and so much a unit, ns: (step, on the second way, each time, a unit). A step
    /// that is not there costs nothing.
    #[must_use]
    pub fn given(steps: &[(Step, bool, f64, f64)]) -> Self {
        let row = |&(step, again, mark_ns, each_ns): &(Step, bool, f64, f64)| {
            let (mean_ns, p50_ns, p99_ns, p999_ns) = (each_ns, each_ns, each_ns, each_ns);
            Row { step, again, samples: 0, units: 0, mean_ns, mark_ns, each_ns, p50_ns, p99_ns, p999_ns }
        };
        Self::new(steps.iter().map(row).collect())
    }

    /// A row for each step that happened.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Mean cost of a unit of a step, ns, on both ways; 0 for a step that was not measured.
    #[must_use]
    pub fn cost_ns(&self, step: Step) -> f64 {
        let rows = self.rows.iter().filter(|row| row.step == step);
        let (units, ns) = rows.fold((0.0, 0.0), |(units, ns), row| {
            (units + row.units as f64, ns + row.units as f64 * row.mean_ns)
        });
        if units > 0.0 { ns / units } else { 0.0 }
    }

    /// The same by mean costs, but for these steps by the 99.9th percentile.
    pub(super) fn drive_by_tails_of(&self, probe: &mut CostProbe, steps: &[Step]) {
        let mut rates = self.means.clone();
        for slot in steps.iter().flat_map(|step| slots(*step)) {
            rates.unit_ns[slot] = self.tails.unit_ns[slot];
        }
        probe.start_virtual(rates);
    }

    /// What the units of these steps cost, ns.
    pub(super) fn part_ns(&self, counts: &Counts, steps: &[Step]) -> f64 {
        let slots = steps.iter().flat_map(|step| slots(*step));
        slots.map(|slot| counts.units[slot] as f64 * self.means.unit_ns[slot]).sum()
    }

    /// What these units of the steps cost, ns.
    pub(super) fn total_ns(&self, counts: &Counts) -> f64 {
        self.means.total_ns(counts)
    }

    /// The same by costs that tell sizes apart.
    pub(super) fn sized_ns(&self, counts: &Counts) -> f64 {
        self.sized.total_ns(counts)
    }

    /// Makes a probe's virtual time pass by this table, from 0.
    pub fn drive(&self, probe: &mut CostProbe) {
        probe.start_virtual(self.means.clone());
    }

    /// The same with the 99.9th percentile of each step's cost for every unit: no turn is told shorter than it was but by
    /// luck, and most are told longer.
    pub fn drive_by_tails(&self, probe: &mut CostProbe) {
        probe.start_virtual(self.tails.clone());
    }

    /// The same by costs that tell sizes apart, so much each time and so much a unit: for bursts of all sizes.
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
            "total: {:.0} us virtual, {:.0} us real, ratio {:.3} ({:.3} by sizes), over {} windows; {} set aside with {} us \
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
