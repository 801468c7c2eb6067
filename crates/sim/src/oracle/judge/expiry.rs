// SPDX-License-Identifier: Apache-2.0
//! The moment of expiry: never before a timeout has passed, at most 1 s after it while the control thread has turns, and
//! for the timeout that passed first. The model's own clockwork has no part in it: what counts are the packets that the
//! reference lets hit the entry, and when the workers ran its instructions.

use super::lives::Life;
use crate::oracle::log::{Moment, Origin, Record};
use flow::Nanos;
use flow::operation::MAC_TABLE;
use model::RemovedReason;

const SECOND_NS: Nanos = 1_000_000_000;

/// How late an entry may go.
const LATE_NS: Nanos = SECOND_NS;

/// When the timeouts of an entry pass, as far as is known at some moment.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// The idle timeout, at the earliest and at the latest: of a learned address, it is not known exactly when within a
    /// packet's way it was seen.
    idle: Option<(Nanos, Nanos)>,
    hard: Option<Nanos>,
}

impl Due {
    /// By the uses before this moment.
    fn of(life: &Life, record: &Record, before: Moment) -> Self {
        let created = created(life, record).at;
        let idle_ns = match life.entry.table {
            MAC_TABLE => Some(record.mac_ageing),
            _ => seconds(life.entry.idle_timeout_s),
        };
        let idle = idle_ns.map(|idle_ns| {
            let (mut earliest, mut latest) = (created, created);
            for seen in life.uses.iter().take_while(|seen| seen.first.place < before.place) {
                latest = latest.max(seen.last.at);
                if seen.last.place < before.place {
                    earliest = earliest.max(seen.first.at);
                }
            }
            (earliest + idle_ns, latest + idle_ns)
        });
        Self { idle, hard: seconds(life.entry.hard_timeout_s).map(|hard_ns| created + hard_ns) }
    }

    /// By when one has passed for sure.
    fn latest(self) -> Option<Nanos> {
        let idle = self.idle.map(|(_, latest)| latest);
        idle.into_iter().chain(self.hard).min()
    }

    /// The timeout that has passed first by now.
    fn reason(self, now: Nanos) -> Option<RemovedReason> {
        let idle = self.idle.map(|(earliest, _)| earliest).filter(|due| *due <= now);
        let hard = self.hard.filter(|due| *due <= now);
        match (idle, hard) {
            (Some(idle), Some(hard)) if idle < hard => Some(RemovedReason::IdleTimeout),
            (_, Some(_)) => Some(RemovedReason::HardTimeout),
            (Some(_), None) => Some(RemovedReason::IdleTimeout),
            (None, None) => None,
        }
    }
}

fn seconds(timeout_s: u16) -> Option<Nanos> {
    (timeout_s > 0).then(|| Nanos::from(timeout_s) * SECOND_NS)
}

fn created(life: &Life, record: &Record) -> Moment {
    record.submitted[life.added - 1].moment
}

/// Whether the model ended this life by itself, other than by putting another entry in its place.
fn timed_out(life: &Life, record: &Record) -> Option<Moment> {
    let submission = &record.submitted[life.removed? - 1];
    (submission.origin == Origin::Poll && !life.replaced).then_some(submission.moment)
}

/// The reason for which an entry must have timed out.
pub(super) fn reason(life: &Life, record: &Record) -> Option<RemovedReason> {
    let moment = timed_out(life, record)?;
    Due::of(life, record, moment).reason(moment.at)
}

/// Holds the end of each life against its timeouts; returns how many timed out.
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

/// No turn of the control thread leaves an entry that should have gone 1 s before.
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
        if due.latest().is_some_and(|latest| latest + LATE_NS < turn.moment.at) {
            return Err(format!("an entry is still there at {}: {due:?}\n  {life:?}", turn.moment.at));
        }
    }
    Ok(())
}
