// SPDX-License-Identifier: Apache-2.0
//! The compiled programs in use. Entries with equal instructions share a program. A program's ID can be
//! reused as soon as the operation that removes the program is queued, because workers apply operations in
//! order.

use actions::{Program, ProgramId};
use flow::{FlowEntry, Instructions};
use pipeline::Update;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    instructions: Arc<Instructions>,
    kind: ProgramKind,
}

/// Properties of an entry, besides its instructions, that determine its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ProgramKind {
    /// Whether packets that hit the entry stay low-latency.
    pub low_latency: bool,
    /// Whether the entry is its table's table-miss entry.
    pub miss_entry: bool,
}

impl ProgramKind {
    /// Returns the kind of an entry's program.
    pub fn of(entry: &FlowEntry) -> Self {
        Self { low_latency: is_low_latency(entry), miss_entry: is_miss_entry(entry) }
    }
}

/// Programs, by the instructions and properties from which they were compiled.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    ids: HashMap<Key, ProgramId>,
    slots: Vec<Slot>,
    free: Vec<ProgramId>,
    changed: Vec<ProgramId>,
    /// Number of program IDs for which workers have allocated space.
    room: usize,
}

#[derive(Debug, Default)]
struct Slot {
    key: Option<Key>,
    program: Option<Arc<Program>>,
    users: usize,
}

/// If more programs than this change, all programs are sent as one swap.
const SINGLY: usize = 16;

/// Returns whether packets that hit the entry stay low-latency. This is the case if the entry is marked and
/// its instructions permit it.
pub(crate) fn is_low_latency(entry: &FlowEntry) -> bool {
    entry.low_latency && entry.instructions.may_be_low_latency()
}

/// Returns whether the entry is a table-miss entry, which has priority 0 and an empty match.
fn is_miss_entry(entry: &FlowEntry) -> bool {
    entry.priority == 0 && entry.matching.is_any()
}

impl Programs {
    /// Returns the ID of the program for these instructions, and counts one more user of the program.
    pub fn acquire(&mut self, instructions: &Arc<Instructions>, kind: ProgramKind) -> ProgramId {
        let key = Key { instructions: Arc::clone(instructions), kind };
        if let Some(id) = self.ids.get(&key) {
            self.slots[*id as usize].users += 1;
            return *id;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as ProgramId
        });
        let program = Program::compile(instructions, kind.low_latency, kind.miss_entry);
        self.slots[id as usize] = Slot { key: Some(key.clone()), program: Some(Arc::new(program)), users: 1 };
        self.ids.insert(key, id);
        self.changed.push(id);
        id
    }

    /// Counts one more user of a program that has users.
    pub fn acquire_again(&mut self, id: ProgramId) {
        let slot = &mut self.slots[id as usize];
        debug_assert!(slot.users > 0, "program {id} has users");
        slot.users += 1;
    }

    /// Returns the program with this ID.
    pub fn get(&self, id: ProgramId) -> Option<&Program> {
        self.slots.get(id as usize)?.program.as_deref()
    }

    /// Counts one fewer user of a program. The ID of a program without users becomes free.
    pub fn release(&mut self, id: ProgramId) {
        let Some(slot) = self.slots.get_mut(id as usize) else { return };
        slot.users = slot.users.saturating_sub(1);
        if slot.users == 0
            && let Some(key) = slot.key.take()
        {
            slot.program = None;
            self.ids.remove(&key);
            self.free.push(id);
            self.changed.push(id);
        }
    }

    /// Appends the changes since the last call to each worker's updates.
    pub fn updates(&mut self, parts: &mut [Vec<Update>]) {
        if self.changed.is_empty() {
            return;
        }
        if self.slots.len() > self.room || self.changed.len() > SINGLY {
            self.room = self.slots.len().next_power_of_two().max(64);
            for parts in parts {
                let mut all: Vec<Option<Arc<Program>>> =
                    self.slots.iter().map(|slot| slot.program.clone()).collect();
                all.resize(self.room, None);
                parts.push(Update::SwapPrograms(all));
            }
        } else {
            for id in &self.changed {
                for parts in &mut *parts {
                    parts.push(Update::Program(*id, self.slots[*id as usize].program.clone()));
                }
            }
        }
        self.changed.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{Action, PortNo};

    const LOW_LATENCY: ProgramKind = ProgramKind { low_latency: true, miss_entry: false };

    #[test]
    fn equal_instructions_share_a_program_and_the_last_user_frees_it() {
        let out = |port| Arc::new(Instructions::apply(vec![Action::output(port)]));
        let mut programs = Programs::default();
        let a = programs.acquire(&out(PortNo(1)), ProgramKind::default());
        assert_eq!(programs.acquire(&out(PortNo(1)), ProgramKind::default()), a);
        let b = programs.acquire(&out(PortNo(1)), LOW_LATENCY);
        assert_ne!(a, b);
        let mut parts = [Vec::new(), Vec::new()];
        programs.updates(&mut parts);
        assert!(matches!(&parts[1][..], [Update::SwapPrograms(all)] if all.len() == 64));
        programs.release(a);
        assert!(programs.slots[a as usize].program.is_some());
        programs.release(a);
        assert!(programs.slots[a as usize].program.is_none());
        assert_eq!(programs.acquire(&out(PortNo(2)), ProgramKind::default()), a, "the ID is reused");
        let mut parts = [Vec::new()];
        programs.updates(&mut parts);
        assert!(matches!(&parts[0].last(), Some(Update::Program(id, Some(_))) if *id == a));
    }

    #[test]
    fn many_changed_programs_or_more_than_fit_are_sent_as_one_swap() {
        let out = |port| Arc::new(Instructions::apply(vec![Action::output(port)]));
        let mut programs = Programs::default();
        let mut port = 0;
        let mut swaps = |count: u32, released: &[ProgramId]| {
            released.iter().for_each(|id| programs.release(*id));
            (0..count).for_each(|_| {
                port += 1;
                programs.acquire(&out(PortNo(port)), ProgramKind::default());
            });
            let mut parts = [Vec::new()];
            programs.updates(&mut parts);
            let is_swap = matches!(&parts[0][..], [Update::SwapPrograms(_)]);
            assert!(is_swap || parts[0].len() == count as usize + released.len());
            (is_swap, programs.room)
        };
        assert_eq!(swaps(1, &[]), (true, 64), "the first");
        assert_eq!(swaps(16, &[]), (false, 64));
        assert_eq!(swaps(17, &[]), (true, 64));
        assert_eq!((swaps(16, &[]), swaps(14, &[])), ((false, 64), (false, 64)), "64 programs");
        assert_eq!(swaps(1, &[]), (true, 128), "one more");
        assert_eq!(swaps(0, &[3, 4]), (false, 128));
        assert_eq!(swaps(0, &[]), (false, 128), "nothing has changed");
    }
}
