// SPDX-License-Identifier: Apache-2.0
//! What the worker's steps cost, as a scenario says it and a report writes it down.

use super::ScenarioError;
use crate::config::Mistake;
use crate::config::mistakes::{at, wrong};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use sim::cost::{CostTable, step_name, step_named};
use std::fmt;

/// Steps of a list at most: more than there are.
const STEPS: usize = 4_096;

/// Most that a step or a unit of it may cost, ns.
const COST_NS: f64 = 1e9;

/// Where costs are from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Costs {
    /// Measured on the machine, before the run.
    #[default]
    Measured,
    /// The same for a unit of every step, ns.
    Even(f64),
    /// Of these steps; others cost nothing.
    Given(Vec<StepCost>),
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepCost {
    /// Its name.
    pub step: String,
    /// Its table, if it is one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<u8>,
    /// Of packets that left the fast-forwarding path, or are worked off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// What it costs each time, ns.
    pub time_ns: f64,
    /// What each unit of it costs, ns.
    pub unit_ns: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Even {
    unit_ns: f64,
}

impl<'de> Deserialize<'de> for Costs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;

        impl<'de> Visitor<'de> for Read {
            type Value = Costs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"measured\", { unit_ns = 10 } or a list of steps")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Costs, E> {
                match text {
                    "measured" => Ok(Costs::Measured),
                    _ => {
                        let says = format!(
                            "\"{text}\" is unknown; write \"measured\", {{ unit_ns = 10 }} or a list of steps"
                        );
                        Err(E::custom(says))
                    }
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Costs, A::Error> {
                Even::deserialize(MapAccessDeserializer::new(map)).map(|even| Costs::Even(even.unit_ns))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Costs, A::Error> {
                let mut steps = Vec::new();
                while let Some(step) = list.next_element()? {
                    steps.push(step);
                }
                Ok(Costs::Given(steps))
            }
        }

        from.deserialize_any(Read)
    }
}

impl Costs {
    /// A table of costs that are given; none if they are to be measured.
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
        return Err(wrong("costs", format!("has {} steps; {STEPS} is the most", list.len())));
    }
    let mut steps = Vec::with_capacity(list.len());
    for (n, given) in list.iter().enumerate() {
        let key = |name: &str| format!("costs[{n}].{name}");
        let step = at(key("step"), step_named(&given.step, given.table))?;
        if given.again && given.table.is_none() {
            return Err(wrong(key("again"), "is for steps of tables; leave it away"));
        }
        if steps.iter().any(|(other, again, _, _)| (*other, *again) == (step, given.again)) {
            return Err(wrong(key("step"), "is there twice; give each step once"));
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

/// A table's steps, for whoever wants to run by them again.
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

/// Tenths of a nanosecond: less is noise.
fn tenths(ns: f64) -> f64 {
    (ns * 10.0).round() / 10.0
}

/// The table of these steps, which are known to be right.
pub fn table_of(steps: &[StepCost]) -> Result<CostTable, ScenarioError> {
    given(steps).map_err(ScenarioError::Costs)
}

impl fmt::Display for StepCost {
    /// As a line of a scenario's list.
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
