// SPDX-License-Identifier: Apache-2.0
//! Checks when entries expire. No entry may expire before one of its timeouts has passed. While the control
//! thread runs, every entry must expire at most 1 s after the first of its timeouts, with that timeout as the
//! reason. An entry with an idle timeout may expire later, while a worker has not counted its hits yet. The
//! times follow from the packets that hit the entry in the reference, not from the model's timers.

use super::lives::Life;
use crate::log::{Moment, Origin, Record};
use flow::operation::MAC_TABLE;
use flow::{Action, Nanos};
use model::RemovedReason;

const SECOND_NS: Nanos = Nanos(1_000_000_000);

/// Maximum delay of an expiry, in nanoseconds.
const LATE_NS: Nanos = SECOND_NS;

/// Times at which an entry's timeouts pass, computed from the entry's uses before some moment.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// Earliest and latest time of the idle timeout. They differ for a learned address, whose exact time of
    /// last use is unknown.
    idle: Option<(Nanos, Nanos)>,
    /// Time at which the entry had been idle for long enough, although it was used later. The entry may still
    /// expire then, because the control thread may not know the later use yet.
    idle_before: Option<Nanos>,
    hard: Option<Nanos>,
}

impl Due {
    /// Returns the times that follow from the uses of the entry before this moment.
    fn of(life: &Life, record: &Record, before: Moment) -> Self {
        let created = created(life, record).at;
        let idle_ns = match life.entry.table {
            MAC_TABLE => Some(record.mac_ageing),
            _ => seconds(life.entry.idle_timeout_s),
        };
        let mut idle_before = None;
        let idle = idle_ns.map(|idle_ns| {
            let (mut earliest, mut latest) = (created, created);
            for seen in life.uses.iter().take_while(|seen| seen.first.place < before.place) {
                // At the moment itself, the control thread may be earlier than the use.
                if seen.first.at >= latest + idle_ns {
                    idle_before = idle_before.or(Some(latest + idle_ns));
                }
                latest = latest.max(seen.last.at);
                if seen.last.place < before.place {
                    earliest = earliest.max(seen.first.at);
                }
            }
            (earliest + idle_ns, latest + idle_ns)
        });
        Self { idle, idle_before, hard: seconds(life.entry.hard_timeout_s).map(|hard_ns| created + hard_ns) }
    }

    /// Returns the time by which a timeout has certainly passed.
    fn latest(self) -> Option<Nanos> {
        let idle = self.idle.map(|(_, latest)| latest);
        idle.into_iter().chain(self.hard).min()
    }

    /// Returns the timeout that passed first, if any has passed by now.
    fn reason(self, now: Nanos) -> Option<RemovedReason> {
        let idle = self.idle.map(|(earliest, _)| earliest).filter(|due| *due <= now);
        let hard = self.hard.filter(|due| *due <= now);
        match (idle, hard) {
            (Some(idle), Some(hard)) if idle < hard => Some(RemovedReason::IdleTimeout),
            (_, Some(_)) => Some(RemovedReason::HardTimeout),
            (Some(_), None) => Some(RemovedReason::IdleTimeout),
            (None, None) => self.idle_before.filter(|due| *due <= now).map(|_| RemovedReason::IdleTimeout),
        }
    }
}

fn seconds(timeout_s: u16) -> Option<Nanos> {
    (timeout_s > 0).then(|| u64::from(timeout_s) * SECOND_NS)
}

fn created(life: &Life, record: &Record) -> Moment {
    record.submitted[life.added - 1].moment
}

/// Returns the moment at which the model removed the entry, or `None` if another entry replaced it or if its
/// port was closed.
fn timed_out(life: &Life, record: &Record) -> Option<Moment> {
    let submission = &record.submitted[life.removed? - 1];
    let is_due = submission.origin == Origin::Poll && !life.replaced && !is_at_closed_port(life, record);
    is_due.then_some(submission.moment)
}

/// Returns whether an entry is the learned address of a port that was closed when the entry was removed.
fn is_at_closed_port(life: &Life, record: &Record) -> bool {
    let (MAC_TABLE, Some(version)) = (life.entry.table, life.removed) else { return false };
    let Some(Action::Output { port, .. }) = life.entry.instructions.apply.first() else { return false };
    record.closings.iter().any(|closing| closing.port == *port && closing.versions.contains(&version))
}

/// Returns the timeout that must be reported as the reason for an entry's removal.
pub(super) fn reason(life: &Life, record: &Record) -> Option<RemovedReason> {
    let moment = timed_out(life, record)?;
    Due::of(life, record, moment).reason(moment.at)
}

/// Compares each entry's end with its timeouts. Returns the number of entries that timed out.
pub(super) fn check_expiry(record: &Record, lives: &[Life]) -> Result<usize, String> {
    let mut expired = 0;
    for life in lives {
        if let Some(moment) = timed_out(life, record) {
            let due = Due::of(life, record, moment);
            if due.reason(moment.at).is_none() {
                return Err(format!("an entry was removed too early, at {}: {due:?}\n  {life:?}", moment.at));
            }
            expired += 1;
        }
        check_late(record, life)?;
    }
    Ok(expired)
}

/// Checks that after each poll of the control thread, no entry is overdue by more than 1 s.
fn check_late(record: &Record, life: &Life) -> Result<(), String> {
    let idle_ns = if life.entry.table == MAC_TABLE {
        Some(record.mac_ageing)
    } else {
        seconds(life.entry.idle_timeout_s)
    };
    let Some(least_ns) = idle_ns.into_iter().chain(seconds(life.entry.hard_timeout_s)).min() else {
        return Ok(());
    };
    let from = created(life, record);
    let first = record.controls.partition_point(|turn| turn.moment.at <= from.at + least_ns + LATE_NS);
    for turn in &record.controls[first..] {
        if life.removed.is_some_and(|version| version <= turn.operations) {
            break;
        }
        let due = Due::of(life, record, turn.moment);
        // Hits that are not counted yet might postpone an idle timeout.
        let is_certain = |at| idle_ns.is_none() || at <= turn.counted_until;
        if due.latest().is_some_and(|at| at + LATE_NS < turn.moment.at && is_certain(at)) {
            return Err(format!("an entry still exists at {}: {due:?}\n  {life:?}", turn.moment.at));
        }
    }
    Ok(())
}
