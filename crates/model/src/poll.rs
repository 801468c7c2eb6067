// SPDX-License-Identifier: Apache-2.0
//! Periodic work: events of the workers, timeouts, and the second phase of removals.

use crate::async_messages::{FlowRemoved, PacketIn};
use crate::model::Model;
use crate::stage::Staged;
use crate::stats::reported;
use dataplane::{DataPlane, Event, PacketInEvent, TrafficCount};
use flow::Nanos;
use flow::operation::MAC_TABLE;

/// Number of events after which all events that were pending at the start have been taken, even if more keep
/// arriving. Larger than the capacity of the workers' rings.
const EVENTS_UNDER_WAY: usize = 65_536;

impl<D: DataPlane> Model<D> {
    /// Takes events of the workers, removes timed-out entries, learns low-latency entries, and releases
    /// entries whose removal is active.
    ///
    /// Each call does a bounded part of this (see [`crate::ModelLimits`]) and returns whether more work is
    /// ready now. The caller must take notices between calls: while the notice queue is full of flow-removed
    /// notices, the result stays true.
    pub fn poll(&mut self, now: Nanos) -> bool {
        self.plane.tick(now);
        let applied = self.plane.applied();
        let mut staged = Staged::default();
        let more_events = self.take_events(now, applied, &mut staged);
        let more_flows = self.expire(0, now, &mut staged);
        let more_macs = self.expire(1, now, &mut staged);
        self.learn_marks(now, &mut staged);
        self.commit(now, staged);
        self.settle();
        self.can_settle() || more_events || more_flows || more_macs
    }

    fn take_events(&mut self, now: Nanos, applied: u64, staged: &mut Staged) -> bool {
        if self.backlog_events == 0 {
            self.settle_next = applied;
        }
        for _ in 0..self.config.limits.events_per_poll {
            match self.plane.next_event() {
                None => {
                    self.settled = applied;
                    self.backlog_events = 0;
                    return false;
                }
                Some(Event::PacketIn(packet_in)) => self.packet_in(packet_in),
                Some(Event::Learn(learn)) => self.learn(now, learn, staged),
            }
            self.backlog_events += 1;
        }
        if self.backlog_events > EVENTS_UNDER_WAY {
            self.settled = self.settle_next;
            self.backlog_events = 0;
        }
        true
    }

    fn packet_in(&mut self, p: PacketInEvent) {
        let cookie = self.store.entry(p.entry).map_or(u64::MAX, |e| e.cookie);
        let async_message = PacketIn {
            frame: p.frame,
            table: p.table,
            cookie,
            reason: p.reason,
            max_len: p.max_len,
            metadata: p.metadata,
            tunnel_id: p.tunnel_id,
        };
        if let Some(frame) = self.async_messages.packet_in(async_message) {
            self.plane.recycle(frame);
        }
    }

    /// Handles due timers of flow entries (`which` 0) or learned MACs (`which` 1).
    fn expire(&mut self, which: usize, now: Nanos, staged: &mut Staged) -> bool {
        for _ in 0..self.config.limits.timers_per_poll {
            let Some(timer) = self.timers[which].pop_due(now) else { return false };
            if !self.store.is_listed(timer.id, timer.serial) {
                self.timers[which].was_stale();
                continue;
            }
            let used = self.used_ns(timer.id);
            let Some(slot) = self.store.slot(timer.id) else { continue };
            let Some(entry) = &slot.entry else { continue };
            match self.deadline(entry, slot.created_ns, used) {
                Some((at, _)) if at > now => self.arm(timer.id, used),
                Some((_, reason)) => {
                    if entry.table == MAC_TABLE {
                        self.macs.forget(entry);
                    }
                    self.stage_remove(timer.id, Some(reason), staged);
                }
                None => {}
            }
        }
        self.timers[which].next().is_some_and(|at| at <= now)
    }

    /// Second phase of removals: no packet hits these entries any longer, so their counters are final.
    fn settle(&mut self) {
        for _ in 0..self.config.limits.removals_per_poll {
            let Some(gone) = self.dying.front().filter(|d| d.version <= self.settled).copied() else {
                return;
            };
            let Some(slot) = self.store.slot(gone.id) else {
                self.dying.pop_front();
                continue;
            };
            let created_ns = slot.created_ns;
            let report = slot.entry.clone().filter(|e| e.flags.send_flow_removed).zip(gone.reason);
            if report.is_some() && self.async_messages.is_full() {
                return;
            }
            self.dying.pop_front();
            if report.is_some() || gone.heir.is_some() {
                let last = self.counters_of(gone.id);
                if let Some((entry, reason)) = report {
                    let TrafficCount { packets, bytes } = reported(last, entry.flags);
                    self.async_messages.flow_removed(FlowRemoved {
                        entry,
                        reason,
                        duration_ns: gone.removed_ns.saturating_sub(created_ns),
                        packets,
                        bytes,
                    });
                }
                self.hand_on(gone.id, gone.heir, last.packets, last.bytes);
            }
            self.carried.remove(&gone.id);
            self.plane.release(gone.id);
            self.store.release(gone.id);
        }
    }

    /// Returns whether a removal is active but its entry is not released yet.
    fn can_settle(&mut self) -> bool {
        let applied = self.plane.applied();
        self.dying.front().is_some_and(|d| d.version <= applied)
    }

    fn hand_on(&mut self, from: u32, heir: Option<u32>, packets: u64, bytes: u64) {
        let Some(heir) = heir else { return };
        let Some(carried) = self.carried.get_mut(&heir).filter(|c| c.from == Some(from)) else { return };
        carried.packets = carried.packets.wrapping_add(packets);
        carried.bytes = carried.bytes.wrapping_add(bytes);
        carried.from = None;
        if carried.packets == 0 && carried.bytes == 0 {
            self.carried.remove(&heir);
        }
    }
}
