// SPDX-License-Identifier: Apache-2.0
//! Names of steps in files.

use flow::TableId;
use pipeline::ProbeStep;

/// Names of steps that do not belong to a table.
const SINGLE: [(&str, ProbeStep); 16] = [
    ("turn", ProbeStep::Turn),
    ("receive", ProbeStep::Receive),
    ("admit", ProbeStep::Admit),
    ("finish", ProbeStep::Finish),
    ("transmit", ProbeStep::Transmit),
    ("change", ProbeStep::Change),
    ("swap", ProbeStep::Swap),
    ("clean", ProbeStep::Clean),
    ("stateless", ProbeStep::Stateless),
    ("express", ProbeStep::Express),
    ("leave", ProbeStep::Leave),
    ("recorded", ProbeStep::Recorded),
    ("learn", ProbeStep::Learn),
    ("surplus", ProbeStep::Surplus),
    ("assign", ProbeStep::Assign),
    ("enqueue", ProbeStep::Enqueue),
];

/// Name of a step, and the function that creates the step for a table number.
type OfTable = (&'static str, fn(TableId) -> ProbeStep);

/// Names of the steps of a table.
const OF_TABLE: [OfTable; 5] = [
    ("extract", ProbeStep::Extract),
    ("lookup", ProbeStep::Lookup),
    ("execute", ProbeStep::Execute),
    ("probe", ProbeStep::Probe),
    ("verify", ProbeStep::Verify),
];

/// Returns a step's name, and its table if it belongs to one.
#[must_use]
pub fn step_name(step: ProbeStep) -> (&'static str, Option<TableId>) {
    let table = match step {
        ProbeStep::Extract(table)
        | ProbeStep::Lookup(table)
        | ProbeStep::Execute(table)
        | ProbeStep::Probe(table)
        | ProbeStep::Verify(table) => Some(table),
        _ => None,
    };
    let name = match table {
        Some(table) => OF_TABLE.iter().find(|(_, make)| make(table) == step).map(|(name, _)| *name),
        None => SINGLE.iter().find(|(_, single)| *single == step).map(|(name, _)| *name),
    };
    (name.unwrap_or_default(), table)
}

/// Returns the step with this name. A table must be given if and only if the step belongs to a table.
///
/// # Errors
/// Returns a description of the valid names.
pub fn step_named(name: &str, table: Option<TableId>) -> Result<ProbeStep, String> {
    let single = SINGLE.iter().find(|(known, _)| *known == name).map(|(_, step)| *step);
    let of_table = OF_TABLE.iter().find(|(known, _)| *known == name).map(|(_, step)| *step);
    match (single, of_table, table) {
        (Some(step), _, None) => Ok(step),
        (_, Some(step), Some(table)) => Ok(step(table)),
        (Some(_), _, Some(_)) => Err(format!("\"{name}\" is not a step of a table; leave the table out")),
        (_, Some(_), None) => {
            Err(format!("\"{name}\" is a step of a table; name the table, such as table = 0"))
        }
        (None, None, _) => {
            let known = SINGLE.iter().map(|(name, _)| *name).chain(OF_TABLE.iter().map(|(name, _)| *name));
            let known = known.collect::<Vec<_>>().join(", ");
            Err(format!("there is no step \"{name}\"; steps are {known}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_step() {
        for (name, step) in SINGLE {
            assert_eq!((step_name(step), step_named(name, None)), ((name, None), Ok(step)));
            assert!(step_named(name, Some(TableId(1))).unwrap_err().contains("leave the table out"));
        }
        for (name, step) in OF_TABLE {
            assert_eq!(
                (step_name(step(TableId(7))), step_named(name, Some(TableId(7)))),
                ((name, Some(TableId(7))), Ok(step(TableId(7))))
            );
            assert!(step_named(name, None).unwrap_err().contains("table = 0"));
        }
        assert!(step_named("ponder", None).unwrap_err().contains("turn, receive"));
    }
}
