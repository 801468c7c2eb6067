// SPDX-License-Identifier: Apache-2.0
//! Mapping of steps to array indices (slots).

use pipeline::Step;

/// Number of tables with separate steps.
const TABLES: usize = 256;
/// Number of steps that do not belong to a table.
const SINGLE: usize = 9;
/// Number of steps per table.
const OF_TABLE: usize = 5;
/// Number of slots. Each step of a table has two: for a burst's first pass through the tables, and for
/// packets that left the fast-forwarding path and pass the tables again.
pub const STEPS: usize = SINGLE + 2 * OF_TABLE * TABLES;

/// Returns the slot of a step in the first pass.
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
        Step::Stateless => 8,
        Step::Extract(table) => SINGLE + OF_TABLE * usize::from(table),
        Step::Lookup(table) => SINGLE + OF_TABLE * usize::from(table) + 1,
        Step::Execute(table) => SINGLE + OF_TABLE * usize::from(table) + 2,
        Step::Probe(table) => SINGLE + OF_TABLE * usize::from(table) + 3,
        Step::Verify(table) => SINGLE + OF_TABLE * usize::from(table) + 4,
    }
}

/// Returns all slots of a step.
pub(super) fn slots(step: Step) -> impl Iterator<Item = usize> {
    let first = slot(step);
    let again = (first >= SINGLE).then_some(first + OF_TABLE * TABLES);
    std::iter::once(first).chain(again)
}

/// Returns the step of a slot, and whether it is in the second pass.
pub(super) fn step(slot: usize) -> (Step, bool) {
    let again = slot >= SINGLE + OF_TABLE * TABLES;
    let first = if again { slot - OF_TABLE * TABLES } else { slot };
    let step = match first {
        0 => Step::Turn,
        1 => Step::Receive,
        2 => Step::Admit,
        3 => Step::Finish,
        4 => Step::Transmit,
        5 => Step::Change,
        6 => Step::Swap,
        7 => Step::Clean,
        8 => Step::Stateless,
        _ => {
            let table = ((first - SINGLE) / OF_TABLE) as u8;
            [
                Step::Extract(table),
                Step::Lookup(table),
                Step::Execute(table),
                Step::Probe(table),
                Step::Verify(table),
            ][(first - SINGLE) % OF_TABLE]
        }
    };
    (step, again)
}

/// Determines from the steps of a burst which pass it is in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Course {
    /// Current table.
    at: Option<u8>,
    /// Whether the entries found there were executed.
    executed: bool,
    /// Whether the second pass has begun: a table was followed by itself or a lower one.
    again: bool,
    /// Number of packets that reached the table.
    came: u32,
}

impl Course {
    /// Returns the slot of the next step and its units. Executing a table's entries costs time for packets
    /// that leave the path as well. In the first pass, every packet that reached the table is therefore a
    /// unit.
    #[inline]
    pub fn follow(&mut self, step: Step, mut units: u32) -> (usize, u32) {
        match step {
            Step::Receive | Step::Admit => *self = Self::default(),
            // The backlog processed in an iteration without arrivals was on the path before.
            Step::Turn => *self = Self { again: true, ..Self::default() },
            Step::Extract(table) => {
                self.enter(table);
                self.came = units;
            }
            Step::Execute(table) => {
                if self.executed || self.at != Some(table) {
                    self.enter(table);
                }
                self.executed = true;
                if !self.again {
                    units = units.max(self.came);
                }
                self.came = 0;
            }
            Step::Verify(_) => self.executed = false,
            _ => {}
        }
        let place = slot(step);
        let moved = if self.again && place >= SINGLE { OF_TABLE * TABLES } else { 0 };
        (place + moved, units)
    }

    fn enter(&mut self, table: u8) {
        self.again |= self.at.is_some_and(|at| table <= at);
        (self.at, self.executed, self.came) = (Some(table), false, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_one_step_s() {
        for at in 0..STEPS {
            let (step, again) = step(at);
            assert_eq!(slots(step).nth(usize::from(again)), Some(at));
        }
        assert_eq!(slots(Step::Verify(255)).last(), Some(STEPS - 1));
        assert_eq!(slots(Step::Finish).count(), 1);
    }

    #[test]
    fn the_second_way_begins_where_a_table_comes_again() {
        let mut course = Course::default();
        let mut ways = |steps: &[(Step, u32)]| -> Vec<(bool, u32)> {
            let follow = |(one, units): &(Step, u32)| {
                let (at, units) = course.follow(*one, *units);
                (step(at).1, units)
            };
            steps.iter().map(follow).collect()
        };
        let path = [(Step::Admit, 9), (Step::Extract(0), 9), (Step::Probe(0), 9), (Step::Execute(0), 0)];
        assert_eq!(ways(&path), [(false, 9); 4]);
        let tables = [(Step::Extract(0), 7), (Step::Lookup(0), 7), (Step::Execute(0), 8)];
        assert_eq!(ways(&tables), [(true, 7), (true, 7), (true, 8)]);
        // Packets with a cached result need no key.
        let known = [(Step::Admit, 4), (Step::Extract(1), 4), (Step::Execute(1), 1), (Step::Execute(1), 3)];
        assert_eq!(ways(&known), [(false, 4), (false, 4), (false, 4), (true, 3)]);
        // Nothing was received.
        assert_eq!(ways(&[(Step::Turn, 1), (Step::Execute(1), 8)]), [(false, 1), (true, 8)]);
    }
}
