// SPDX-License-Identifier: Apache-2.0
//! Runs a scenario of one switch.

use crate::costs::{Costs, CostsSection, steps_of, table_of};
use crate::error::ScenarioError;
use crate::limits::LONGEST_NS;
use crate::report::{self, Offered, ScenarioOutcome};
use sim::arrivals::{
    Case, Class, ClassReport, Harness, Load, Marks, Pressure, Report, Switch, capacity_pps, measure,
};
use sim::cost::MeasurePlan;
use std::path::PathBuf;

/// Extent of the cost measurement.
const PLAN: MeasurePlan = MeasurePlan { windows: 400, turns: 16, lead: 0, warm_up: 20 };

/// Share of packets lost for lack of space above which a switch counts as overloaded.
const OVERLOAD: f64 = 0.01;

/// A scenario of one switch and its traffic.
#[derive(Clone, Debug)]
pub struct SwitchScenario {
    pub(crate) path: PathBuf,
    pub(crate) seed: u64,
    /// Flows of the switch in the flow syntax.
    pub(crate) rules: String,
    pub(crate) ports: u32,
    pub(crate) config: worker::WorkerSetConfig,
    pub(crate) marks: Marks,
    pub(crate) costs: CostsSection,
    /// Arriving packets. If `factor` is given, their rates are relative, and the run computes the final
    /// rates.
    pub(crate) load: Load,
    /// Offered load relative to the switch's capacity.
    pub(crate) factor: Option<f64>,
    /// Number of packets to arrive, if it is given instead of a duration.
    pub(crate) packets: Option<u64>,
}

impl SwitchScenario {
    /// Runs the simulation. With given costs, the same file and seed give the same outcome.
    ///
    /// # Errors
    ///
    /// Returns an error if the switch refuses its rules, if its capacity is 0 although the load is relative
    /// to it, or if the run is too long.
    pub fn run(&self) -> Result<ScenarioOutcome, ScenarioError> {
        sim::fix_hashes(self.seed);
        let mut costs = match self.costs.table().map_err(ScenarioError::Costs)? {
            None => self.measure(Pressure::KeepsUp)?,
            Some(table) => {
                let from = if matches!(self.costs, CostsSection::Even(_)) { "even" } else { "given" };
                Costs { steps: steps_of(&table), table, from, agreement: None }
            }
        };
        let capacity =
            self.factor.map(|_| capacity_pps(&self.switch(), &self.load, &costs.table)).transpose()?;
        if capacity == Some(0.0) {
            return Err(ScenarioError::NoCapacity(self.path.clone()));
        }
        let load = self.offered(capacity);
        if load.span_ns > LONGEST_NS {
            return Err(ScenarioError::TooLong(self.path.clone(), load.span_ns));
        }
        let mut found = Harness::new(&self.switch(), &load)?.run(&costs.table);
        // Packets cost more when they wait in a full backlog, so the costs are measured again under overload.
        if costs.agreement.is_some() && is_overloaded(&found) {
            costs = self.measure(Pressure::Overloaded)?;
            found = Harness::new(&self.switch(), &load)?.run(&costs.table);
        }
        let has_port_cache = self.config.port_cache.is_some();
        let offered = Offered { load: &load, capacity_pps: capacity, has_port_cache };
        Ok(report::outcome(&self.path, &offered, costs, &found))
    }

    fn switch(&self) -> Switch<'_> {
        let Self { rules, ports, marks, .. } = self;
        Switch { rules, added: "", ports: *ports, config: self.config, marks: *marks, maker: None }
    }

    /// Measures the costs of a worker.
    fn measure(&self, pressure: Pressure) -> Result<Costs, ScenarioError> {
        let case = Case { switch: self.switch(), load: &self.load, pressure };
        let tables = measure(&[case], PLAN)?;
        let agreement = tables.first().map(|table| table.agreement.sized_ratio());
        // Uses the rounded steps that the report prints, so that a run with these steps has the same result.
        let steps = tables.first().map(steps_of).unwrap_or_default();
        let from = match pressure {
            Pressure::KeepsUp => "measured with a worker that keeps up",
            Pressure::Overloaded => "measured with an overloaded worker",
        };
        Ok(Costs { table: table_of(&steps)?, from, steps, agreement })
    }

    /// Returns the load with its final rates and duration.
    fn offered(&self, capacity_pps: Option<f64>) -> Load {
        // Rounds up to whole packets per second, so that a run with the printed rate has the same result.
        let scale = match (self.factor, capacity_pps) {
            (Some(factor), Some(capacity_pps)) => (factor * capacity_pps).ceil(),
            _ => 1.0,
        };
        let scaled = |class: &Class| Class { rate_pps: class.rate_pps * scale, ..class.clone() };
        let classes: Vec<Class> = self.load.classes.iter().map(scaled).collect();
        let all_pps: f64 = classes.iter().map(|class| class.rate_pps).sum();
        let span_ns = self.packets.map_or(self.load.span_ns, |packets| packets as f64 * 1e9 / all_pps);
        Load { classes, span_ns, ..self.load }
    }
}

fn is_overloaded(report: &Report) -> bool {
    let offered: u64 = report.classes.iter().map(|class| class.offered).sum();
    let lost: u64 = report.classes.iter().map(ClassReport::crowded_out).sum();
    lost as f64 > offered as f64 * OVERLOAD
}
