// SPDX-License-Identifier: Apache-2.0
//! Second phase of removals: an entry that left its table is released once no packet can hit it and no unread
//! event refers to it.

use crate::async_messages::{AsyncQueue, FlowRemoved, RemovedReason};
use crate::kept_counts::{EntryRef, KeptCounts};
use crate::rules::Rules;
use crate::rules::carried::reported;
use dataplane::{DataPlane, TrafficCount};
use flow::{EntryId, Nanos, RuleVersion};
use std::collections::VecDeque;

/// Number of events after which all events that were pending at the start have been taken. It exceeds the
/// capacity of the workers' rings.
const EVENTS_UNDER_WAY: usize = 65_536;

/// An entry that left its table and waits until the data plane has released it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dying {
    /// Version of the operation that removes the entry.
    pub version: RuleVersion,
    pub removed_ns: Nanos,
    pub id: EntryId,
    /// Reason to report in a flow-removed message. If `None`, no message is sent.
    pub reason: Option<RemovedReason>,
    /// The entry that replaced this one and continues its counts, if there is one.
    pub heir: Option<EntryId>,
}

/// Removed entries that are not released yet, oldest removal first.
#[derive(Debug, Default)]
pub(crate) struct Removals {
    dying: VecDeque<Dying>,
    /// Version that was active when the first of `backlog_events` was taken. Later events do not refer to
    /// entries that this version or an earlier one removed.
    settle_next: RuleVersion,
    /// Version up to which removed entries may be released: no unread event refers to them.
    settled: RuleVersion,
    /// Number of events taken since the event queue was last empty.
    backlog_events: usize,
    /// Final counts that agents have requested.
    pub kept: KeptCounts,
}

impl Removals {
    /// Adds an entry that was removed from its table.
    pub fn push(&mut self, gone: Dying) {
        self.dying.push_back(gone);
    }

    /// Returns the number of entries that are not released yet.
    pub fn len(&self) -> usize {
        self.dying.len()
    }

    /// Records that events are going to be taken. `applied` is the version that the data plane has applied.
    pub fn events_begin(&mut self, applied: RuleVersion) {
        if self.backlog_events == 0 {
            self.settle_next = applied;
        }
    }

    /// Records that an event was taken.
    pub fn event_taken(&mut self) {
        self.backlog_events += 1;
    }

    /// Records that all events up to version `applied` have been taken.
    pub fn events_drained(&mut self, applied: RuleVersion) {
        self.settled = applied;
        self.backlog_events = 0;
    }

    /// Records that this poll takes no more events, although more may wait.
    pub fn events_end(&mut self) {
        if self.backlog_events > EVENTS_UNDER_WAY {
            self.settled = self.settle_next;
            self.backlog_events = 0;
        }
    }

    /// Returns whether an entry is not released yet, although no packet can hit it any more.
    pub fn can_settle(&self, applied: RuleVersion) -> bool {
        self.dying.front().is_some_and(|d| d.version <= applied)
    }

    /// Releases at most `limit` entries whose counters are final. Stops while the queue of messages has no
    /// space for a flow-removed message.
    pub fn settle<D: DataPlane>(
        &mut self,
        limit: usize,
        rules: &mut Rules,
        plane: &mut D,
        async_messages: &mut AsyncQueue,
    ) {
        for _ in 0..limit {
            let Some(gone) = self.dying.front().filter(|d| d.version <= self.settled).copied() else {
                return;
            };
            let Some(slot) = rules.store.slot(gone.id) else {
                self.dying.pop_front();
                continue;
            };
            let (created_ns, serial) = (slot.created_ns, slot.serial);
            let report = slot.entry.clone().filter(|e| e.flags.send_flow_removed).zip(gone.reason);
            if report.is_some() && async_messages.is_full() {
                return;
            }
            self.dying.pop_front();
            let is_kept = self.kept.is_requested(gone.id);
            if report.is_some() || gone.heir.is_some() || is_kept {
                let last = rules.carried.counters_of(plane, gone.id);
                if let Some((entry, reason)) = report {
                    let TrafficCount { packets, bytes } = reported(last, entry.flags);
                    async_messages.flow_removed(FlowRemoved {
                        entry,
                        reason,
                        duration_ns: gone.removed_ns.saturating_sub(created_ns),
                        packets,
                        bytes,
                    });
                }
                let count = TrafficCount { packets: last.packets, bytes: last.bytes };
                if let Some(heir) = gone.heir {
                    rules.carried.hand_on(gone.id, heir, count);
                }
                if is_kept {
                    self.kept.release(EntryRef { id: gone.id, serial }, count);
                }
            }
            rules.carried.forget(gone.id);
            plane.release(gone.id);
            rules.store.release(gone.id);
        }
    }
}
