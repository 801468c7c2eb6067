// SPDX-License-Identifier: Apache-2.0
//! Steps as places in an array.

use pipeline::Step;

/// Tables that have steps of their own.
const TABLES: usize = 256;
/// Steps that are not a table's.
const SINGLE: usize = 7;
/// Different steps there are.
pub const STEPS: usize = SINGLE + 4 * TABLES;

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
        Step::Extract(table) => SINGLE + 4 * usize::from(table),
        Step::Lookup(table) => SINGLE + 4 * usize::from(table) + 1,
        Step::Execute(table) => SINGLE + 4 * usize::from(table) + 2,
        Step::Probe(table) => SINGLE + 4 * usize::from(table) + 3,
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
        _ => {
            let table = ((slot - SINGLE) / 4) as u8;
            [Step::Extract(table), Step::Lookup(table), Step::Execute(table), Step::Probe(table)]
                [(slot - SINGLE) % 4]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_one_step_s() {
        assert!((0..STEPS).all(|at| slot(step(at)) == at));
        assert_eq!(slot(Step::Probe(255)), STEPS - 1);
    }
}
