// SPDX-License-Identifier: Apache-2.0
//! Periodic work: events of the workers, timeouts, and the release of removed entries.

use crate::async_messages::{AsyncQueue, PacketIn};
use crate::changes::transaction::Transaction;
use crate::expiry::{Expiry, NextTimer, TimerKind};
use crate::kept_counts::EntryRef;
use crate::macs::Macs;
use crate::model::Model;
use crate::rules::Rules;
use dataplane::{DataPlane, Event, PacketInEvent};
use flow::Nanos;

impl<D: DataPlane> Model<D> {
    /// Handles the workers' events, removes timed-out entries, marks entries as low-latency by their hit
    /// rate, and releases removed entries that no packet can hit any more.
    ///
    /// Each call does a bounded amount of this work (see [`crate::ModelLimits`]) and returns whether more
    /// work is ready. The caller must take asynchronous messages between calls.
    pub fn poll(&mut self, now: Nanos) -> bool {
        let plane = self.plane.get_mut();
        plane.tick(now);
        let applied = plane.applied();
        let mut transaction = Transaction::new(&mut self.rules, &self.config, now);
        self.removals.events_begin(applied);
        let mut more_events = true;
        for _ in 0..self.config.limits.events_per_poll {
            let Some(event) = plane.next_event() else {
                self.removals.events_drained(applied);
                more_events = false;
                break;
            };
            match event {
                Event::PacketIn(event) => {
                    packet_in(event, transaction.rules(), &mut self.async_messages, plane);
                }
                Event::Learn(seen) => self.macs.learn(seen, &mut transaction, &mut self.expiry, plane),
                Event::MacRefused(port) => self.macs.refuse(port, transaction.rules()),
                Event::Storm(storm) => self.storms.close(storm, &mut transaction),
                // The data plane itself has noted it.
                Event::Searcher(_) => {}
            }
            self.removals.event_taken();
        }
        if more_events {
            self.removals.events_end();
        }
        let (macs, expiry) = (&mut self.macs, &mut self.expiry);
        // An idle timer that is due may be armed again for the hard timeout.
        let more_idle = expire(TimerKind::Idle, &mut transaction, expiry, macs, plane);
        let more_hard = expire(TimerKind::Hard, &mut transaction, expiry, macs, plane);
        let more_macs = expire(TimerKind::Mac, &mut transaction, expiry, macs, plane);
        self.learner.learn(&mut transaction, plane);
        self.storms.open_due(&mut transaction);
        let completed = transaction.complete();
        self.commit(now, completed);
        self.end_waits();
        let more_state = self.report_state(now);
        let plane = self.plane.get_mut();
        let limit = self.config.limits.removals_per_poll;
        self.removals.settle(limit, &mut self.rules, plane, &mut self.async_messages);
        self.removals.can_settle(plane.applied())
            || more_state
            || more_events
            || more_idle
            || more_hard
            || more_macs
    }
}

/// Queues a packet-in for controllers.
fn packet_in<D: DataPlane>(
    event: PacketInEvent,
    rules: &Rules,
    async_messages: &mut AsyncQueue,
    plane: &mut D,
) {
    let slot = rules.store.slot(event.entry);
    let packet_in = PacketIn {
        frame: event.frame,
        table: event.table,
        entry: slot.map(|slot| EntryRef { id: event.entry, serial: slot.serial }),
        cookie: rules.store.entry(event.entry).map_or(u64::MAX, |e| e.cookie),
        reason: event.reason,
        max_len: event.max_len,
        metadata: event.metadata,
        tunnel_id: event.tunnel_id,
        question: event.question,
    };
    if let Some(frame) = async_messages.packet_in(packet_in) {
        plane.recycle(frame);
    }
}

/// Handles due timers. Returns whether more timers are due.
fn expire<D: DataPlane>(
    kind: TimerKind,
    transaction: &mut Transaction<'_>,
    expiry: &mut Expiry,
    macs: &mut Macs,
    plane: &mut D,
) -> bool {
    // Hits after `counted_until` may not be counted yet, so idle timeouts after this time are not certain.
    let counted_until = if kind.waits_for_counts() { plane.counted_until() } else { Nanos::MAX };
    if counted_until < transaction.now {
        expiry.wait_until(plane.next_count(transaction.now));
    }
    let (config, now) = (transaction.config, transaction.now.min(counted_until));
    for _ in 0..config.limits.timers_per_poll {
        let store = &transaction.rules().store;
        let due = match expiry.pop_due(kind, now, config, store, plane) {
            NextTimer::NotDue => return false,
            NextTimer::Stale => continue,
            NextTimer::Due(due) => due,
        };
        match due.deadline {
            Some(deadline) if deadline.at > now => expiry.arm(config, store, due.id, due.used_ns),
            Some(deadline) => {
                if kind == TimerKind::Mac
                    && let Some(entry) = store.entry(due.id)
                {
                    macs.forget(entry);
                }
                transaction.remove_entry(due.id, Some(deadline.reason));
            }
            None => {}
        }
    }
    expiry.is_due(kind, now)
}
