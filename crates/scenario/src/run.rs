// SPDX-License-Identifier: Apache-2.0
//! Runs a scenario of switches without links.

use crate::costs::{Costs, CostsSection, steps_of, table_of};
use crate::error::ScenarioError;
use crate::limits::LONGEST_NS;
use crate::report::{self, Offered, ScenarioOutcome};
use crate::switch::SimulatedSwitch;
use sim::arrivals::{Case, Class, ClassReport, Harness, Load, Pressure, Report, capacity_pps, measure};
use sim::cost::{CostTable, MeasurePlan};
use std::path::PathBuf;

/// Extent of the cost measurement.
const PLAN: MeasurePlan = MeasurePlan { windows: 400, turns: 16, lead: 0, warm_up: 20 };

/// Share of packets lost for lack of space above which a switch counts as overloaded.
const OVERLOAD: f64 = 0.01;

/// A scenario of switches that get the same traffic, without links between them.
#[derive(Clone, Debug)]
pub struct SwitchScenario {
    pub(crate) path: PathBuf,
    pub(crate) seed: u64,
    pub(crate) switches: Vec<SimulatedSwitch>,
    pub(crate) costs: CostsSection,
    /// Offered load relative to the lowest capacity among the switches. If it is given, the rates of all
    /// loads are relative, and the run computes the final rates.
    pub(crate) factor: Option<f64>,
    /// Number of packets to arrive, if it is given instead of a duration.
    pub(crate) packets: Option<u64>,
}

impl SwitchScenario {
    /// Runs the simulation, and returns the outcome of each switch. All switches get packets of the same
    /// flows at the same times. With given costs, the same file and seed give the same outcome.
    ///
    /// # Errors
    ///
    /// Returns an error if a switch refuses its rules, if a capacity is 0 although the load is relative to
    /// it, or if the run is too long.
    pub fn run(&self) -> Result<Vec<ScenarioOutcome>, ScenarioError> {
        sim::fix_hashes(self.seed);
        let mut costs = match self.costs.table().map_err(ScenarioError::Costs)? {
            None => self.measure(&vec![Pressure::KeepsUp; self.switches.len()])?,
            Some(table) => {
                let from = if matches!(self.costs, CostsSection::Even(_)) { "even" } else { "given" };
                let given = || Costs { steps: steps_of(&table), table: table.clone(), from, agreement: None };
                self.switches.iter().map(|_| given()).collect()
            }
        };
        let capacities = self.capacities(&costs)?;
        let least_pps = capacities.iter().flatten().copied().min_by(f64::total_cmp);
        let loads: Vec<Load> = self.switches.iter().map(|one| self.offered(&one.load, least_pps)).collect();
        if let Some(load) = loads.iter().find(|load| load.span_ns > LONGEST_NS) {
            return Err(ScenarioError::TooLong(self.path.clone(), load.span_ns));
        }
        let mut found = self.run_all(&loads, &costs)?;
        // Packets cost more when they wait in a full backlog, so the costs are measured again under overload.
        let is_measured = costs.iter().any(|costs| costs.agreement.is_some());
        if is_measured && found.iter().any(is_overloaded) {
            let pressure =
                |report| if is_overloaded(report) { Pressure::Overloaded } else { Pressure::KeepsUp };
            costs = self.measure(&found.iter().map(pressure).collect::<Vec<_>>())?;
            found = self.run_all(&loads, &costs)?;
        }
        let offered =
            self.switches.iter().zip(&loads).zip(capacities).map(|((one, load), capacity_pps)| Offered {
                switch: one.name.clone(),
                load,
                capacity_pps,
                has_port_cache: one.config.port_cache.is_some(),
            });
        let runs = offered.zip(costs).zip(&found);
        Ok(runs
            .map(|((offered, costs), report)| report::outcome(&self.path, offered, costs, report))
            .collect())
    }

    /// Returns the capacity of each switch, if the scenario has a load factor.
    fn capacities(&self, costs: &[Costs]) -> Result<Vec<Option<f64>>, ScenarioError> {
        let capacity = |(switch, costs): (&SimulatedSwitch, &Costs)| {
            if self.factor.is_none() {
                return Ok(None);
            }
            match capacity_pps(&switch.switch(), &switch.load, &costs.table)? {
                0.0 => Err(ScenarioError::NoCapacity(self.path.clone())),
                pps => Ok(Some(pps)),
            }
        };
        self.switches.iter().zip(costs).map(capacity).collect()
    }

    fn run_all(&self, loads: &[Load], costs: &[Costs]) -> Result<Vec<Report>, ScenarioError> {
        let run = |((switch, load), costs): ((&SimulatedSwitch, &Load), &Costs)| {
            Ok(Harness::new(&switch.switch(), load)?.run(&costs.table))
        };
        self.switches.iter().zip(loads).zip(costs).map(run).collect()
    }

    /// Measures the costs of each switch's worker. Measurements of the switches alternate.
    fn measure(&self, pressures: &[Pressure]) -> Result<Vec<Costs>, ScenarioError> {
        let cases = self.switches.iter().zip(pressures).map(|(switch, pressure)| Case {
            switch: switch.switch(),
            load: &switch.load,
            pressure: *pressure,
        });
        let cases: Vec<Case<'_>> = cases.collect();
        let costs = |(table, pressure): (&CostTable, &Pressure)| {
            let agreement = Some(table.agreement.sized_ratio());
            // Uses the rounded steps that the report prints, so that a run with these steps has the same
            // result.
            let steps = steps_of(table);
            let from = match pressure {
                Pressure::KeepsUp => "measured with a worker that keeps up",
                Pressure::Overloaded => "measured with an overloaded worker",
            };
            Ok(Costs { table: table_of(&steps)?, from, steps, agreement })
        };
        measure(&cases, PLAN)?.iter().zip(pressures).map(costs).collect()
    }

    /// Returns a load with its final rates and duration.
    fn offered(&self, load: &Load, capacity_pps: Option<f64>) -> Load {
        // Rounds up to whole packets per second, so that a run with the printed rate has the same result.
        let scale = match (self.factor, capacity_pps) {
            (Some(factor), Some(capacity_pps)) => (factor * capacity_pps).ceil(),
            _ => 1.0,
        };
        let scaled = |class: &Class| Class { rate_pps: class.rate_pps * scale, ..class.clone() };
        let classes: Vec<Class> = load.classes.iter().map(scaled).collect();
        let all_pps: f64 = classes.iter().map(|class| class.rate_pps).sum();
        let span_ns = self.packets.map_or(load.span_ns, |packets| packets as f64 * 1e9 / all_pps);
        Load { classes, span_ns, ..*load }
    }
}

fn is_overloaded(report: &Report) -> bool {
    let offered: u64 = report.classes.iter().map(|class| class.offered).sum();
    let lost: u64 = report.classes.iter().map(ClassReport::crowded_out).sum();
    lost as f64 > offered as f64 * OVERLOAD
}
