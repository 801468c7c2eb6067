// SPDX-License-Identifier: Apache-2.0
//! Timeouts of entries: their deadlines, and the timers of flow entries and learned MACs.

use crate::async_messages::RemovedReason;
use crate::config::{ModelConfig, SECOND_NS};
use crate::rules::slot::Life;
use crate::rules::store::Store;
use crate::timers::{Timer, Timers};
use dataplane::DataPlane;
use flow::operation::MAC_TABLE;
use flow::{EntryId, FlowEntry, Nanos, TableId};

/// Time and reason of an entry's timeout if it is not hit again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub at: Nanos,
    pub reason: RemovedReason,
}

/// Kind of timers. Each kind has a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// Entries of controllers' tables whose idle timeout comes first.
    Idle,
    /// Entries of controllers' tables whose hard timeout comes first. A later hit cannot change this.
    Hard,
    /// Learned MACs.
    Mac,
}

impl TimerKind {
    fn of(table: TableId, reason: RemovedReason) -> Self {
        match reason {
            _ if table == MAC_TABLE => Self::Mac,
            RemovedReason::HardTimeout => Self::Hard,
            _ => Self::Idle,
        }
    }

    /// Returns whether hits that are not counted yet may postpone the timeout.
    pub fn waits_for_counts(self) -> bool {
        self != Self::Hard
    }
}

/// Timers of all entries.
#[derive(Debug, Default)]
pub(crate) struct Expiry {
    idle: Timers,
    hard: Timers,
    macs: Timers,
    /// Time before which timers that wait for counts are not checked.
    not_before: Nanos,
    /// Time from which idle timeouts of restored entries count. Other entries were added later.
    idle_since: Nanos,
}

/// Result of taking a timer that is due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NextTimer {
    /// No timer is due.
    NotDue,
    /// The timer's entry is no longer in its table.
    Stale,
    Due(Due),
}

/// An entry whose timer was due and that is still in its table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub id: EntryId,
    /// Time at which the timer was due.
    pub at: Nanos,
    /// Time of the last hit.
    pub used_ns: Nanos,
    /// Time at which the entry actually times out, or `None` if it never does.
    pub deadline: Option<Deadline>,
}

impl Expiry {
    /// Returns the time at which the next timer is due.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let next = self.idle.next().into_iter().chain(self.macs.next()).min();
        next.map(|at| at.max(self.not_before)).into_iter().chain(self.hard.next()).min()
    }

    /// Sets the time before which timers that wait for counts are not checked.
    pub fn wait_until(&mut self, at: Nanos) {
        self.not_before = at;
    }

    /// Lets the idle timeouts of entries that are being restored begin now.
    pub fn restart_idle(&mut self, now: Nanos) {
        self.idle_since = now;
    }

    /// Returns whether a timer is due.
    pub fn is_due(&self, kind: TimerKind, now: Nanos) -> bool {
        let timers = match kind {
            TimerKind::Idle => &self.idle,
            TimerKind::Hard => &self.hard,
            TimerKind::Mac => &self.macs,
        };
        timers.next().is_some_and(|at| at <= now)
    }

    /// Arms the timer of an entry that was last hit at `used`.
    pub fn arm(&mut self, config: &ModelConfig, store: &Store, id: EntryId, used: Nanos) {
        let Some(slot) = store.slot(id) else { return };
        let Some(entry) = &slot.entry else { return };
        if let Some(Deadline { at, reason }) =
            deadline(config, entry, slot.created_ns, used.max(self.idle_since))
        {
            let timer = Timer { at, serial: slot.serial, id };
            let timers = self.timers(TimerKind::of(entry.table, reason));
            timers.arm(timer);
            timers.compact(|t| store.is_listed(t.id, t.serial));
        }
    }

    /// Records that an entry was removed while its timer was armed. If the entry has both timeouts, the
    /// timer may be in either queue. It is then counted in both.
    pub fn entry_gone(&mut self, entry: &FlowEntry) {
        if entry.table == MAC_TABLE {
            return self.macs.entry_gone();
        }
        if entry.idle_timeout_s != 0 {
            self.idle.entry_gone();
        }
        if entry.hard_timeout_s != 0 {
            self.hard.entry_gone();
        }
    }

    /// Takes the next timer that is due by `now`.
    pub fn pop_due<D: DataPlane>(
        &mut self,
        kind: TimerKind,
        now: Nanos,
        config: &ModelConfig,
        store: &Store,
        plane: &mut D,
    ) -> NextTimer {
        let Some(timer) = self.timers(kind).pop_due(now) else { return NextTimer::NotDue };
        if !store.is_listed(timer.id, timer.serial) {
            self.timers(kind).was_stale();
            return NextTimer::Stale;
        }
        let used_ns = used_ns(store, plane, timer.id);
        let Some(slot) = store.slot(timer.id) else { return NextTimer::Stale };
        let Some(entry) = &slot.entry else { return NextTimer::Stale };
        let deadline = deadline(config, entry, slot.created_ns, used_ns.max(self.idle_since));
        NextTimer::Due(Due { id: timer.id, at: timer.at, used_ns, deadline })
    }

    fn timers(&mut self, kind: TimerKind) -> &mut Timers {
        match kind {
            TimerKind::Idle => &mut self.idle,
            TimerKind::Hard => &mut self.hard,
            TimerKind::Mac => &mut self.macs,
        }
    }
}

/// Returns the time of an entry's last hit as reported by the data plane, or 0 if the entry has not been
/// submitted yet.
fn used_ns<D: DataPlane>(store: &Store, plane: &mut D, id: EntryId) -> Nanos {
    match store.slot(id) {
        Some(slot) if slot.life != Life::Fresh => plane.entry_counters(id).used_ns,
        _ => Nanos(0),
    }
}

/// Returns the time and reason of an entry's timeout if it is not hit again.
fn deadline(config: &ModelConfig, entry: &FlowEntry, created: Nanos, used: Nanos) -> Option<Deadline> {
    let last = used.max(created);
    if entry.table == MAC_TABLE {
        let ageing = if config.mac_ageing == Nanos(0) { Nanos::MAX / 2 } else { config.mac_ageing };
        return Some(Deadline { at: last.saturating_add(ageing), reason: RemovedReason::IdleTimeout });
    }
    let after = |from: Nanos, s: u16| (s != 0).then(|| from.saturating_add(u64::from(s) * SECOND_NS));
    let idle =
        after(last, entry.idle_timeout_s).map(|at| Deadline { at, reason: RemovedReason::IdleTimeout });
    let hard =
        after(created, entry.hard_timeout_s).map(|at| Deadline { at, reason: RemovedReason::HardTimeout });
    match (idle, hard) {
        (Some(idle), Some(hard)) => Some(if hard.at <= idle.at { hard } else { idle }),
        (one, other) => one.or(other),
    }
}
