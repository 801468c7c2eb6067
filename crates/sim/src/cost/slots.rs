// SPDX-License-Identifier: Apache-2.0
//! Mapping of steps to array indices, called slots.

use flow::TableId;
use pipeline::ProbeStep;

/// Number of tables with separate steps.
const TABLES: usize = 256;
/// Number of steps that do not belong to a table.
const SINGLE: usize = 16;
/// Number of steps per table.
const OF_TABLE: usize = 5;
/// Number of slots. Each step of a table has two slots: one for a burst's first pass through the tables, and
/// one for packets that left the fast-forwarding path and pass the tables again.
pub const STEPS: usize = SINGLE + 2 * OF_TABLE * TABLES;

/// Returns the slot of a step in the first pass.
pub(super) fn slot(step: ProbeStep) -> usize {
    match step {
        ProbeStep::Turn => 0,
        ProbeStep::Receive => 1,
        ProbeStep::Admit => 2,
        ProbeStep::Finish => 3,
        ProbeStep::Transmit => 4,
        ProbeStep::Change => 5,
        ProbeStep::Swap => 6,
        ProbeStep::Clean => 7,
        ProbeStep::Stateless => 8,
        ProbeStep::Express => 9,
        ProbeStep::Leave => 10,
        ProbeStep::Recorded => 11,
        ProbeStep::Learn => 12,
        ProbeStep::Surplus => 13,
        ProbeStep::Assign => 14,
        ProbeStep::Enqueue => 15,
        ProbeStep::Extract(table) => SINGLE + OF_TABLE * table.index(),
        ProbeStep::Lookup(table) => SINGLE + OF_TABLE * table.index() + 1,
        ProbeStep::Execute(table) => SINGLE + OF_TABLE * table.index() + 2,
        ProbeStep::Probe(table) => SINGLE + OF_TABLE * table.index() + 3,
        ProbeStep::Verify(table) => SINGLE + OF_TABLE * table.index() + 4,
    }
}

/// Returns all slots of a step.
pub(super) fn slots(step: ProbeStep) -> impl Iterator<Item = usize> {
    let first = slot(step);
    let again = (first >= SINGLE).then_some(first + OF_TABLE * TABLES);
    std::iter::once(first).chain(again)
}

/// Returns the step of a slot, and whether the slot belongs to the second pass.
pub(super) fn step(slot: usize) -> (ProbeStep, bool) {
    let again = slot >= SINGLE + OF_TABLE * TABLES;
    let first = if again { slot - OF_TABLE * TABLES } else { slot };
    let step = match first {
        0 => ProbeStep::Turn,
        1 => ProbeStep::Receive,
        2 => ProbeStep::Admit,
        3 => ProbeStep::Finish,
        4 => ProbeStep::Transmit,
        5 => ProbeStep::Change,
        6 => ProbeStep::Swap,
        7 => ProbeStep::Clean,
        8 => ProbeStep::Stateless,
        9 => ProbeStep::Express,
        10 => ProbeStep::Leave,
        11 => ProbeStep::Recorded,
        12 => ProbeStep::Learn,
        13 => ProbeStep::Surplus,
        14 => ProbeStep::Assign,
        15 => ProbeStep::Enqueue,
        _ => {
            let table = ((first - SINGLE) / OF_TABLE) as u8;
            [
                ProbeStep::Extract(TableId(table)),
                ProbeStep::Lookup(TableId(table)),
                ProbeStep::Execute(TableId(table)),
                ProbeStep::Probe(TableId(table)),
                ProbeStep::Verify(TableId(table)),
            ][(first - SINGLE) % OF_TABLE]
        }
    };
    (step, again)
}

/// Tracks which pass through the tables a burst is in, from the steps that the worker reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Course {
    /// Current table.
    at: Option<TableId>,
    /// Whether the entries found in the current table were executed.
    executed: bool,
    /// Whether the second pass has begun: a table was followed by itself or by a lower table.
    again: bool,
    /// Number of packets that reached the current table.
    came: u32,
}

impl Course {
    /// Returns the slot and the units of the next step. In the first pass, every packet that reached a table
    /// is a unit of the table's execute step, even if it leaves the fast-forwarding path there.
    #[inline]
    pub fn follow(&mut self, step: ProbeStep, mut units: u32) -> (usize, u32) {
        match step {
            ProbeStep::Receive | ProbeStep::Admit => *self = Self::default(),
            // An iteration without arrivals processes the backlog, whose packets have already left the
            // fast-forwarding path.
            ProbeStep::Turn => *self = Self { again: true, ..Self::default() },
            ProbeStep::Extract(table) => {
                self.enter(table);
                self.came = units;
            }
            ProbeStep::Execute(table) => {
                if self.executed || self.at != Some(table) {
                    self.enter(table);
                }
                self.executed = true;
                if !self.again {
                    units = units.max(self.came);
                }
                self.came = 0;
            }
            ProbeStep::Verify(_) => self.executed = false,
            _ => {}
        }
        let place = slot(step);
        let moved = if self.again && place >= SINGLE { OF_TABLE * TABLES } else { 0 };
        (place + moved, units)
    }

    fn enter(&mut self, table: TableId) {
        self.again |= self.at.is_some_and(|at| table <= at);
        (self.at, self.executed, self.came) = (Some(table), false, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::TableId;

    #[test]
    fn every_slot_belongs_to_one_step() {
        for at in 0..STEPS {
            let (step, again) = step(at);
            assert_eq!(slots(step).nth(usize::from(again)), Some(at));
        }
        assert_eq!(slots(ProbeStep::Verify(TableId(255))).last(), Some(STEPS - 1));
        assert_eq!(slots(ProbeStep::Finish).count(), 1);
    }

    #[test]
    fn the_second_pass_begins_when_a_table_repeats() {
        let mut course = Course::default();
        let mut ways = |steps: &[(ProbeStep, u32)]| -> Vec<(bool, u32)> {
            let follow = |(one, units): &(ProbeStep, u32)| {
                let (at, units) = course.follow(*one, *units);
                (step(at).1, units)
            };
            steps.iter().map(follow).collect()
        };
        let path = [
            (ProbeStep::Admit, 9),
            (ProbeStep::Extract(TableId(0)), 9),
            (ProbeStep::Probe(TableId(0)), 9),
            (ProbeStep::Execute(TableId(0)), 0),
        ];
        assert_eq!(ways(&path), [(false, 9); 4]);
        let tables = [
            (ProbeStep::Extract(TableId(0)), 7),
            (ProbeStep::Lookup(TableId(0)), 7),
            (ProbeStep::Execute(TableId(0)), 8),
        ];
        assert_eq!(ways(&tables), [(true, 7), (true, 7), (true, 8)]);
        // Packets with a cached result need no key.
        let known = [
            (ProbeStep::Admit, 4),
            (ProbeStep::Extract(TableId(1)), 4),
            (ProbeStep::Execute(TableId(1)), 1),
            (ProbeStep::Execute(TableId(1)), 3),
        ];
        assert_eq!(ways(&known), [(false, 4), (false, 4), (false, 4), (true, 3)]);
        // No packet was received.
        assert_eq!(
            ways(&[(ProbeStep::Turn, 1), (ProbeStep::Execute(TableId(1)), 8)]),
            [(false, 1), (true, 8)]
        );
    }
}
