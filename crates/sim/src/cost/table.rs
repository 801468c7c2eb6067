// SPDX-License-Identifier: Apache-2.0
//! The cost table, and how it holds against real time.

use crate::cost::CostProbe;
use crate::cost::slots::{STEPS, slot};
use pipeline::Step;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

/// One step's cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The step.
    pub step: Step,
    /// How often it was measured.
    pub samples: usize,
    /// Units in all samples.
    pub units: u64,
    /// Mean cost of a unit, ns: what virtual time is made of.
    pub mean_ns: f64,
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
    /// What the table says of what was counted, ns.
    pub virtual_ns: f64,
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
}

/// The cost of a unit of each step.
#[derive(Clone)]
pub struct CostTable {
    rows: Vec<Row>,
    costs_ns: Arc<[f64]>,
    tails_ns: Arc<[f64]>,
    /// How the table holds against real time.
    pub agreement: Agreement,
}

impl CostTable {
    pub(super) fn new(rows: Vec<Row>) -> Self {
        let mut costs_ns = vec![0.0; STEPS];
        let mut tails_ns = vec![0.0; STEPS];
        for row in &rows {
            costs_ns[slot(row.step)] = row.mean_ns;
            tails_ns[slot(row.step)] = row.p999_ns;
        }
        let (costs_ns, tails_ns) = (costs_ns.into(), tails_ns.into());
        Self { rows, costs_ns, tails_ns, agreement: Agreement::default() }
    }

    /// A table by which a unit of every step costs the same: virtual time then tells the work of turns, and two runs tell
    /// the same.
    #[must_use]
    pub fn even(unit_ns: f64) -> Self {
        let costs_ns: Arc<[f64]> = vec![unit_ns; STEPS].into();
        Self { rows: Vec::new(), tails_ns: Arc::clone(&costs_ns), costs_ns, agreement: Agreement::default() }
    }

    /// A row for each step that happened.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Mean cost of a unit of a step, ns; 0 for a step that was not measured.
    #[must_use]
    pub fn cost_ns(&self, step: Step) -> f64 {
        self.costs_ns[slot(step)]
    }

    /// The same by mean costs, but for these steps by the 99.9th percentile.
    pub(super) fn drive_by_tails_of(&self, probe: &mut CostProbe, steps: &[Step]) {
        let mut costs_ns = self.costs_ns.to_vec();
        steps.iter().for_each(|step| costs_ns[slot(*step)] = self.tails_ns[slot(*step)]);
        probe.start_virtual(costs_ns.into());
    }

    /// What the units of these steps cost, ns.
    pub(super) fn part_ns(&self, units: &[u64], steps: &[Step]) -> f64 {
        steps.iter().map(|step| units[slot(*step)] as f64 * self.cost_ns(*step)).sum()
    }

    /// What these units of the steps cost, ns.
    pub(super) fn total_ns(&self, units: &[u64]) -> f64 {
        units.iter().zip(self.costs_ns.iter()).map(|(units, cost_ns)| *units as f64 * cost_ns).sum()
    }

    /// Makes a probe's virtual time pass by this table, from 0.
    pub fn drive(&self, probe: &mut CostProbe) {
        probe.start_virtual(Arc::clone(&self.costs_ns));
    }

    /// The same with the 99.9th percentile of each step's cost for every unit: no turn is told shorter than it was but by
    /// luck, and most are told longer.
    pub fn drive_by_tails(&self, probe: &mut CostProbe) {
        probe.start_virtual(Arc::clone(&self.tails_ns));
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
            "{:<14} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "step", "samples", "units", "mean ns", "p50 ns", "p99 ns", "p99.9 ns"
        )?;
        for row in &self.rows {
            let Row { step, samples, units, mean_ns, p50_ns, p99_ns, p999_ns } = row;
            let step = format!("{step:?}");
            writeln!(
                f,
                "{step:<14} {samples:>9} {units:>10} {mean_ns:>10.1} {p50_ns:>10.1} {p99_ns:>10.1} {p999_ns:>10.1}"
            )?;
        }
        let a = &self.agreement;
        writeln!(
            f,
            "total: {:.0} us virtual, {:.0} us real, ratio {:.3}, over {} windows; {} set aside with {} us stolen",
            a.virtual_ns / 1e3,
            a.real_ns / 1e3,
            a.ratio(),
            a.windows,
            a.set_aside,
            a.stolen_ns / 1_000
        )
    }
}
