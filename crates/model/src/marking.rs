// SPDX-License-Identifier: Apache-2.0
//! Marking of entries as low-latency. The explicit mark of a flow-mod has precedence over the cookie, and the
//! cookie over learning from the hit rate.
//!
//! Learning examines all entries in turn, [`ENTRIES_PER_LOOK`] at a time and each entry once per window. The
//! rate is computed over the time since the entry's last examination.

use crate::changes::transaction::Transaction;
use crate::config::{Learning, SECOND_NS};
use crate::rules::slot::{Life, Slot};
use dataplane::DataPlane;
use flow::operation::MAC_TABLE;
use flow::{Action, EntryId, FlowEntry, Instructions, Nanos, port_no};

/// Number of entries examined per step.
const ENTRIES_PER_LOOK: usize = 1_024;
/// Maximum number of entries marked or unmarked per step. Workers apply up to this number of changes one by
/// one.
const MARKS_PER_LOOK: usize = 64;
/// Minimum time between two steps in nanoseconds.
const LOOK_NS: Nanos = Nanos(1_000_000);
/// Number of consecutive windows below half the threshold rate that end a low-latency mark.
const SLOW_WINDOWS: u8 = 2;

/// Returns whether an entry may be learned as low-latency.
fn is_eligible(learning: Learning, entry: &FlowEntry) -> bool {
    let lasts = |timeout_s: u16| timeout_s == 0 || u64::from(timeout_s) * SECOND_NS >= learning.min_timeout;
    entry.table != MAC_TABLE
        && lasts(entry.idle_timeout_s)
        && lasts(entry.hard_timeout_s)
        && forwards(&entry.instructions)
}

/// Returns whether the entry forwards packets, other than to the controller. Floods of packets that are
/// dropped or sent to the controller must not use the fast-forwarding path.
fn forwards(instructions: &Instructions) -> bool {
    let mut actions = instructions.apply.iter().chain(&instructions.write);
    let to_controller = |a: &Action| matches!(a, Action::Output { port: port_no::CONTROLLER, .. });
    let sends = |a: &Action| matches!(a, Action::Output { .. } | Action::Group(_));
    !actions.clone().any(to_controller) && (instructions.next.is_some() || actions.any(sends))
}

/// State of an entry at its last examination.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Serial number of the entry. It shows whether the ID was reused.
    serial: u64,
    at: Nanos,
    packets: u64,
    slow_windows: u8,
}

/// Learns low-latency marks from hit rates, some entries per step.
#[derive(Debug, Default)]
pub(crate) struct MarkLearner {
    due: Nanos,
    next: usize,
    /// State of entries, by entry ID.
    seen: Vec<Seen>,
}

impl MarkLearner {
    /// Schedules the first step one window after the start.
    pub fn from(learning: Option<Learning>, now: Nanos) -> Self {
        Self { due: now.saturating_add(learning.map_or(Nanos::ZERO, |l| l.window)), ..Self::default() }
    }

    /// Returns the time at which the next step is due.
    pub fn due(&self) -> Nanos {
        self.due
    }

    /// Examines the next entries. Entries marked by a flow-mod or by their cookie are skipped.
    pub fn learn<D: DataPlane>(&mut self, transaction: &mut Transaction<'_>, plane: &mut D) {
        let (config, now) = (transaction.config, transaction.now);
        let Some(learning) = config.learning.filter(|_| now >= self.due) else { return };
        let slots = transaction.rules().store.slots().len();
        let looks = slots.div_ceil(ENTRIES_PER_LOOK).max(1) as u64;
        self.due = now.saturating_add((learning.window / looks).max(LOOK_NS));
        let first = self.next;
        let end = slots.min(first.saturating_add(ENTRIES_PER_LOOK));
        self.next = if end < slots { end } else { 0 };
        let mut marks = 0;
        for id in (first as u32..end as u32).map(EntryId) {
            let slot = transaction.rules().store.slot(id).filter(|s| s.life == Life::Live);
            let Some(slot) = slot else { continue };
            let (mark, Some(entry)) = (slot.mark, &slot.entry) else { continue };
            if mark.explicit.is_some() || config.is_marked_by_cookie(entry.cookie) {
                continue;
            }
            let changed = if is_eligible(learning, entry) {
                let packets = plane.entry_counters(id).packets;
                self.of(id, slot).look(learning, now, packets, mark.learned)
            } else {
                // A modify command may have made an entry ineligible for learning.
                mark.learned.then_some(false)
            };
            if let Some(learned) = changed {
                marks += 1;
                transaction.set_learned(id, learned);
                if marks == MARKS_PER_LOOK {
                    // The next step examines the remaining entries.
                    (self.next, self.due) = (id.0 as usize + 1, now.saturating_add(LOOK_NS));
                    break;
                }
            }
        }
    }

    /// Returns the record of an entry's last examination. For a new entry, the record has the time of its
    /// creation and no hits.
    fn of(&mut self, id: EntryId, slot: &Slot) -> &mut Seen {
        let fresh = Seen { serial: slot.serial, at: slot.created_ns, packets: 0, slow_windows: 0 };
        let at = id.0 as usize;
        if at >= self.seen.len() {
            // Records that are created for other entries get a serial number that no entry has.
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
    /// Updates the record with the entry's packet count. Returns the new mark if the mark changes.
    fn look(&mut self, learning: Learning, now: Nanos, packets: u64, learned: bool) -> Option<bool> {
        let span = now.saturating_sub(self.at);
        // An entry that was created shortly before an examination waits for the next examination.
        if span < learning.window / 2 || span == Nanos::ZERO {
            return None;
        }
        let Some(hits) = packets.checked_sub(self.packets).map(u128::from) else {
            // A modify command has reset the counters, or packets that were counted wait for the controller,
            // so the rate is unknown.
            (self.at, self.packets) = (now, packets);
            return None;
        };
        let (rate, wanted) =
            (hits * u128::from(SECOND_NS.0), u128::from(learning.min_pps) * u128::from(span.0));
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

#[cfg(test)]
mod tests {
    use super::*;

    const LEARNING: Learning = Learning { min_pps: 100, window: Nanos(1_000_000_000), min_timeout: Nanos(0) };

    #[test]
    fn a_rate_is_computed_over_the_elapsed_time() {
        let mut seen = Seen { serial: 1, at: Nanos(0), packets: 0, slow_windows: 0 };
        // The span is too short for a rate.
        assert_eq!(seen.look(LEARNING, Nanos(499_999_999), 1_000, false), None);
        assert_eq!(seen.look(LEARNING, Nanos(1_000_000_000), 99, false), None);
        // A late examination: 149 packets in 1.5 s are less than 100 per second.
        assert_eq!(seen.look(LEARNING, Nanos(2_500_000_000), 99 + 149, false), None);
        assert_eq!(seen.look(LEARNING, Nanos(4_000_000_000), 248 + 150, false), Some(true));
    }

    #[test]
    fn an_entry_is_unmarked_after_two_slow_windows() {
        let mut seen = Seen { serial: 1, at: Nanos(0), packets: 0, slow_windows: 0 };
        let mut now = Nanos::ZERO;
        let mut packets = 0;
        let mut window = |hits: u64| {
            now += LEARNING.window;
            packets += hits;
            seen.look(LEARNING, now, packets, true)
        };
        assert_eq!([99, 50, 49, 50, 49, 49].map(&mut window), [None, None, None, None, None, Some(false)]);
        // The count of slow windows restarts.
        assert_eq!([49, 49].map(window), [None, Some(false)]);
    }

    #[test]
    fn without_a_rate_an_entry_keeps_its_mark() {
        let mut seen = Seen { serial: 1, at: Nanos(0), packets: 1_000, slow_windows: 1 };
        // The counters were reset, or packets are no longer counted.
        assert_eq!(seen.look(LEARNING, Nanos(1_000_000_000), 999, false), None);
        assert_eq!(seen.look(LEARNING, Nanos(2_000_000_000), 500, true), None);
        assert_eq!((seen.packets, seen.slow_windows), (500, 1));
        assert_eq!(seen.look(LEARNING, Nanos(3_000_000_000), 600, false), Some(true));
    }
}
