// SPDX-License-Identifier: Apache-2.0
//! Which entries are low-latency: what was said of them comes first, then their cookie, then what is learned from their
//! hits. Learning looks at the entries in turn, [`ENTRIES_PER_LOOK`] at a time, so that each comes once a window however
//! many there are, and no look takes long. Between two looks at an entry lies its own span, over which its rate is
//! taken; a look that comes late makes the span longer and no rate wrong.

use crate::data_plane::DataPlane;
use crate::model::Model;
use crate::stage::Staged;
use crate::store::{Life, Slot};
use flow::operation::MAC_TABLE;
use flow::{Action, EntryChange, EntryId, FlowEntry, Instructions, Nanos, port_no};
use std::sync::Arc;

/// Entries looked at in one go: some 0.1 ms.
const ENTRIES_PER_LOOK: usize = 1_024;
/// Entries marked or unmarked in one go at most: so many reach the workers singly, without a copy of pages.
const MARKS_PER_LOOK: usize = 64;
/// Time between two looks at least; with very many entries a window gets longer instead.
const LOOK_NS: Nanos = 1_000_000;
/// Windows below half the rate after which an entry is low-latency no more.
const SLOW_WINDOWS: u8 = 2;
const SECOND_NS: u128 = 1_000_000_000;

/// Why an entry is low-latency, or is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// What a flow-mod said; none: the cookie decides, and learning where the cookie says nothing.
    pub said: Option<bool>,
    /// It is low-latency because that was learned from its hits.
    pub learned: bool,
}

impl Mark {
    /// As it is when a modify has said this.
    pub(crate) fn after(self, said: Option<bool>) -> Self {
        if said.is_some() { Self { said, learned: false } } else { self }
    }
}

/// When an entry is learned to be low-latency. It becomes so when its hits reach the rate over one window, and ceases
/// to be when they stay below half of it for two windows, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learning {
    /// Packets a second.
    pub min_pps: u64,
    /// Time over which the rate is taken.
    pub window: Nanos,
    /// Entries with an idle or hard timeout below it are not for learning.
    pub min_timeout: Nanos,
}

impl Learning {
    fn is_for(&self, entry: &FlowEntry) -> bool {
        let lasts = |timeout_s: u16| {
            timeout_s == 0 || u128::from(timeout_s) * SECOND_NS >= u128::from(self.min_timeout)
        };
        entry.table != MAC_TABLE
            && lasts(entry.idle_timeout_s)
            && lasts(entry.hard_timeout_s)
            && forwards(&entry.instructions)
    }
}

/// Whether packets go on from here, and not to the controller: a flood that a table drops or asks the controller about is
/// busy as well, and is to get no path of its own.
fn forwards(instructions: &Instructions) -> bool {
    let mut actions = instructions.apply.iter().chain(&instructions.write);
    let to_controller = |a: &Action| matches!(a, Action::Output { port: port_no::CONTROLLER, .. });
    let sends = |a: &Action| matches!(a, Action::Output { .. } | Action::Group(_));
    !actions.clone().any(to_controller) && (instructions.next.is_some() || actions.any(sends))
}

/// An entry when it was looked at last.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// The entry; another one under the same number has another.
    serial: u64,
    at: Nanos,
    packets: u64,
    slow_windows: u8,
}

/// How far learning is.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    due: Nanos,
    next: usize,
    /// By number of the entry.
    seen: Vec<Seen>,
}

impl Looks {
    /// The first look comes a window after the start.
    pub fn from(learning: Option<Learning>, now: Nanos) -> Self {
        Self { due: now.saturating_add(learning.map_or(0, |l| l.window)), ..Self::default() }
    }

    pub fn due(&self) -> Nanos {
        self.due
    }

    /// What was seen of an entry before: at first, that it came without a hit.
    fn of(&mut self, id: EntryId, slot: &Slot) -> &mut Seen {
        let fresh = Seen { serial: slot.serial, at: slot.created_ns, packets: 0, slow_windows: 0 };
        let at = id as usize;
        if at >= self.seen.len() {
            // Those between have a serial number that no entry has.
            self.seen.resize(at + 1, Seen { serial: u64::MAX, ..fresh });
        }
        let seen = &mut self.seen[at];
        if seen.serial != slot.serial {
            *seen = fresh;
        }
        seen
    }
}

impl Seen {
    /// Takes in how many packets have hit the entry by now; what it is from now on, if that changes.
    fn look(&mut self, learning: Learning, now: Nanos, packets: u64, learned: bool) -> Option<bool> {
        let span = u128::from(now.saturating_sub(self.at));
        // An entry that came just before its turn waits for the next.
        if span < u128::from(learning.window / 2) || span == 0 {
            return None;
        }
        // A modify may have set the counters back.
        let hits = u128::from(packets.checked_sub(self.packets).unwrap_or(packets));
        let (rate, wanted) = (hits * SECOND_NS, u128::from(learning.min_pps) * span);
        (self.at, self.packets) = (now, packets);
        self.slow_windows = if learned && 2 * rate < wanted { self.slow_windows + 1 } else { 0 };
        match learned {
            false => (rate >= wanted).then_some(true),
            true => (self.slow_windows >= SLOW_WINDOWS).then(|| {
                self.slow_windows = 0;
                false
            }),
        }
    }
}

impl<D: DataPlane> Model<D> {
    /// Looks at the entries whose turn it is. Those of which a flow-mod or their cookie says something are passed over.
    pub(crate) fn learn_marks(&mut self, now: Nanos, staged: &mut Staged) {
        let Some(learning) = self.config.learning.filter(|_| now >= self.looks.due) else { return };
        let slots = self.store.slots().len();
        let looks = slots.div_ceil(ENTRIES_PER_LOOK).max(1) as u64;
        self.looks.due = now.saturating_add((learning.window / looks).max(LOOK_NS));
        let first = self.looks.next;
        let end = slots.min(first.saturating_add(ENTRIES_PER_LOOK));
        self.looks.next = if end < slots { end } else { 0 };
        let mut marks = 0;
        for id in first as EntryId..end as EntryId {
            let Some(slot) = self.store.slot(id).filter(|s| s.life == Life::Live) else { continue };
            let (mark, Some(entry)) = (slot.mark, &slot.entry) else { continue };
            if mark.said.is_some() || self.config.is_marked_by_cookie(entry.cookie) {
                continue;
            }
            let changed = if learning.is_for(entry) {
                let packets = self.plane.entry_counters(id).packets;
                self.looks.of(id, slot).look(learning, now, packets, mark.learned)
            } else {
                // A modify may have made it one that is not.
                mark.learned.then_some(false)
            };
            if let Some(learned) = changed {
                marks += 1;
                let mut entry = FlowEntry::clone(entry);
                entry.low_latency = learned;
                staged.changes.push(EntryChange::Modify {
                    id,
                    table: entry.table,
                    instructions: Arc::clone(&entry.instructions),
                    low_latency: learned,
                    reset_counts: false,
                });
                self.store.set_entry(id, Arc::new(entry), Mark { learned, ..mark });
                if marks == MARKS_PER_LOOK {
                    // The others come next.
                    (self.looks.next, self.looks.due) = (id as usize + 1, now.saturating_add(LOOK_NS));
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEARNING: Learning = Learning { min_pps: 100, window: 1_000_000_000, min_timeout: 0 };

    #[test]
    fn a_rate_is_taken_over_the_span_that_has_passed() {
        let mut seen = Seen { serial: 1, at: 0, packets: 0, slow_windows: 0 };
        // Too soon, however many.
        assert_eq!(seen.look(LEARNING, 499_999_999, 1_000, false), None);
        assert_eq!(seen.look(LEARNING, 1_000_000_000, 99, false), None);
        // Late: 150 in one and a half seconds.
        assert_eq!(seen.look(LEARNING, 2_500_000_000, 99 + 149, false), None);
        assert_eq!(seen.look(LEARNING, 4_000_000_000, 248 + 150, false), Some(true));
    }

    #[test]
    fn two_slow_windows_end_it_and_one_does_not() {
        let mut seen = Seen { serial: 1, at: 0, packets: 0, slow_windows: 0 };
        let mut now = 0;
        let mut packets = 0;
        let mut window = |hits: u64| {
            now += LEARNING.window;
            packets += hits;
            seen.look(LEARNING, now, packets, true)
        };
        assert_eq!([99, 50, 49, 50, 49, 49].map(&mut window), [None, None, None, None, None, Some(false)]);
        // It begins anew.
        assert_eq!([49, 49].map(window), [None, Some(false)]);
    }

    #[test]
    fn counters_that_were_set_back_are_counted_from_there() {
        let mut seen = Seen { serial: 1, at: 0, packets: 1_000, slow_windows: 0 };
        assert_eq!(seen.look(LEARNING, 1_000_000_000, 99, false), None);
        seen.packets = 1_000;
        assert_eq!(seen.look(LEARNING, 2_000_000_000, 100, false), Some(true));
    }
}
