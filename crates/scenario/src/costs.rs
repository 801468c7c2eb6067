// SPDX-License-Identifier: Apache-2.0
//! Costs of a worker's steps, as scenarios and reports represent them.

use crate::error::ScenarioError;
use config::Mistake;
use config::mistakes::{at, wrong};
use flow::TableId;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use sim::cost::{CostTable, step_name, step_named};
use std::fmt;

/// Maximum number of steps in a list.
const STEPS: usize = 4_096;

/// Maximum cost of a step or a unit, in ns.
const COST_NS: f64 = 1e9;

/// Source of the costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum CostsSection {
    /// Measured on this machine before the run.
    #[default]
    Measured,
    /// Every step has the same cost per unit, in ns.
    Even(f64),
    /// The listed steps have these costs. All other steps cost nothing.
    Given(Vec<StepCost>),
}

/// The cost of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepCost {
    /// Name of the step.
    pub step: String,
    /// Table number, for steps that belong to a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<TableId>,
    /// Whether the cost applies to packets that left the fast-forwarding path or come from the backlog.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// Fixed cost of the step, in ns.
    pub time_ns: f64,
    /// Cost per unit of the step, in ns.
    pub unit_ns: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Even {
    unit_ns: f64,
}

impl<'de> Deserialize<'de> for CostsSection {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;

        impl<'de> Visitor<'de> for Read {
            type Value = CostsSection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"measured\", { unit_ns = 10 } or a list of steps")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<CostsSection, E> {
                match text {
                    "measured" => Ok(CostsSection::Measured),
                    _ => {
                        let says = format!(
                            "\"{text}\" is unknown; write \"measured\", {{ unit_ns = 10 }} or a list of steps"
                        );
                        Err(E::custom(says))
                    }
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CostsSection, A::Error> {
                Even::deserialize(MapAccessDeserializer::new(map))
                    .map(|even| CostsSection::Even(even.unit_ns))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<CostsSection, A::Error> {
                let mut steps = Vec::new();
                while let Some(step) = list.next_element()? {
                    steps.push(step);
                }
                Ok(CostsSection::Given(steps))
            }
        }

        from.deserialize_any(Read)
    }
}

impl CostsSection {
    /// Returns the cost table if the scenario gives the costs, or `None` if they are to be measured.
    pub fn table(&self) -> Result<Option<CostTable>, Mistake> {
        match self {
            Self::Measured => Ok(None),
            Self::Even(unit_ns) => {
                at("costs.unit_ns", cost(*unit_ns).and_then(above_0))?;
                Ok(Some(CostTable::even(*unit_ns)))
            }
            Self::Given(steps) => given(steps).map(Some),
        }
    }
}

fn given(list: &[StepCost]) -> Result<CostTable, Mistake> {
    if list.len() > STEPS {
        return Err(wrong("costs", format!("has {} steps; the maximum is {STEPS}", list.len())));
    }
    let mut steps = Vec::with_capacity(list.len());
    for (n, given) in list.iter().enumerate() {
        let key = |name: &str| format!("costs[{n}].{name}");
        let step = at(key("step"), step_named(&given.step, given.table))?;
        if given.again && given.table.is_none() {
            return Err(wrong(key("again"), "is for steps of tables; leave it out"));
        }
        if steps.iter().any(|(other, again, _, _)| (*other, *again) == (step, given.again)) {
            return Err(wrong(key("step"), "is given twice; give each step once"));
        }
        at(key("time_ns"), cost(given.time_ns))?;
        at(key("unit_ns"), cost(given.unit_ns))?;
        steps.push((step, given.again, given.time_ns, given.unit_ns));
    }
    if !steps.iter().any(|(_, _, time_ns, unit_ns)| time_ns + unit_ns > 0.0) {
        return Err(wrong("costs", "has no step that costs anything, so no time would pass"));
    }
    Ok(CostTable::given(&steps))
}

fn cost(ns: f64) -> Result<f64, String> {
    let right = (0.0..=COST_NS).contains(&ns);
    if right { Ok(ns) } else { Err(format!("{ns} is out of range; use 0 to {COST_NS:.0} ns")) }
}

fn above_0(ns: f64) -> Result<f64, String> {
    if ns > 0.0 { Ok(ns) } else { Err("is 0, so no time would pass; use 10, for instance".to_owned()) }
}

/// Returns the steps of a cost table. A scenario that lists these steps gives the same result as this run.
pub fn steps_of(table: &CostTable) -> Vec<StepCost> {
    let step = |row: &sim::cost::Row| {
        let (name, of_table) = step_name(row.step);
        StepCost {
            step: name.into(),
            table: of_table,
            again: row.again,
            time_ns: tenths(row.mark_ns),
            unit_ns: tenths(row.each_ns),
        }
    };
    table.rows().iter().map(step).collect()
}

/// Rounds to tenths of a nanosecond, because smaller differences are noise.
fn tenths(ns: f64) -> f64 {
    (ns * 10.0).round() / 10.0
}

/// Returns the cost table of measured steps.
pub fn table_of(steps: &[StepCost]) -> Result<CostTable, ScenarioError> {
    given(steps).map_err(ScenarioError::Costs)
}

impl fmt::Display for StepCost {
    /// Writes the step as a line of a scenario's list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{ step = \"{}\", ", self.step)?;
        if let Some(table) = self.table {
            write!(f, "table = {table}, ")?;
        }
        if self.again {
            f.write_str("again = true, ")?;
        }
        write!(f, "time_ns = {:?}, unit_ns = {:?} }}", self.time_ns, self.unit_ns)
    }
}

/// Costs of a run, and how they were obtained.
pub struct Costs {
    pub table: CostTable,
    /// Source of the costs, as named in the report.
    pub from: &'static str,
    pub steps: Vec<StepCost>,
    /// Ratio of virtual time to real time during the measurement, if there was one.
    pub agreement: Option<f64>,
}
