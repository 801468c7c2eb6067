// SPDX-License-Identifier: Apache-2.0
//! Steps as places in an array.

use pipeline::Step;

/// Tables that have steps of their own.
const TABLES: usize = 256;
/// Steps that are not a table's.
const SINGLE: usize = 8;
/// Steps of each table.
const OF_TABLE: usize = 5;
/// Different steps there are.
pub const STEPS: usize = SINGLE + OF_TABLE * TABLES;

/// A step's place.
pub(super) fn slot(step: Step) -> usize {
    match step {
        Step::Turn => 0,
        Step::Receive => 1,
        Step::Admit => 2,
        Step::Finish => 3,
        Step::Transmit => 4,
        Step::Change => 5,
        Step::Swap => 6,
        Step::Clean => 7,
        Step::Extract(table) => SINGLE + OF_TABLE * usize::from(table),
        Step::Lookup(table) => SINGLE + OF_TABLE * usize::from(table) + 1,
        Step::Execute(table) => SINGLE + OF_TABLE * usize::from(table) + 2,
        Step::Probe(table) => SINGLE + OF_TABLE * usize::from(table) + 3,
        Step::Verify(table) => SINGLE + OF_TABLE * usize::from(table) + 4,
    }
}

/// The step at a place.
pub(super) fn step(slot: usize) -> Step {
    match slot {
        0 => Step::Turn,
        1 => Step::Receive,
        2 => Step::Admit,
        3 => Step::Finish,
        4 => Step::Transmit,
        5 => Step::Change,
        6 => Step::Swap,
        7 => Step::Clean,
        _ => {
            let table = ((slot - SINGLE) / OF_TABLE) as u8;
            [
                Step::Extract(table),
                Step::Lookup(table),
                Step::Execute(table),
                Step::Probe(table),
                Step::Verify(table),
            ][(slot - SINGLE) % OF_TABLE]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_one_step_s() {
        assert!((0..STEPS).all(|at| slot(step(at)) == at));
        assert_eq!(slot(Step::Verify(255)), STEPS - 1);
    }
}
