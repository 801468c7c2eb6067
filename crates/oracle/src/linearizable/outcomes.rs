// SPDX-License-Identifier: Apache-2.0
//! Checks of the outcome of each packet, and of losses for lack of space. Every missing copy must be counted
//! once, under its reason.

use super::reported::Reports;
use super::sent::Copies;
use super::{Replay, describe};
use crate::log::{Left, Record, Walker, tag};
use flow::{DropReason, Outcome};
use std::collections::BTreeMap;

/// The output of the switch: sent copies, and messages to the control thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output<'a> {
    pub copies: &'a Copies,
    pub reports: &'a Reports,
}

/// Outcomes of all packets as reported by the workers, added up.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub forwarded: u64,
    pub consumed: u64,
    pub dropped: BTreeMap<DropReason, u64>,
}

/// Drop reasons of copies lost for lack of space before their port sent them.
pub(super) const COPY_LOSSES: [DropReason; 3] =
    [DropReason::NoBuffer, DropReason::TransmitFull, DropReason::QueueFull];

/// Compares the outcome of each packet with the reference and with the sent frames.
pub(super) fn check_outcomes(record: &Record, replay: &Replay, output: Output<'_>) -> Result<Sums, String> {
    let Output { copies, reports } = output;
    let mut numbers: BTreeMap<(usize, Walker), usize> = BTreeMap::new();
    for (number, arrival) in record.arrivals.iter().enumerate() {
        let walker = Walker::Arrived { port: arrival.port, sequence: arrival.sequence };
        if !arrival.is_injected() {
            numbers.insert((arrival.worker, walker), number);
        }
    }
    for (version, number) in &record.injected {
        numbers.insert((record.arrivals[*number].worker, Walker::Injected(*version)), *number);
    }
    let mut sums = Sums::default();
    for (worker, outcomes) in record.outcomes.iter().enumerate() {
        for Left { walker, outcome, .. } in outcomes {
            let Some(number) = numbers.remove(&(worker, *walker)) else {
                return Err(format!("worker {worker} reported two outcomes for {walker:?}"));
            };
            if !is_possible(record, replay, output, number, *outcome) {
                return Err(format!(
                    "packet {number} was {outcome:?}; {} of its copies and {} of its packet-ins came out\n  in {:02x?}\n  \
                     the reference: {}",
                    copies.out[number],
                    reports.came[number],
                    record.arrivals[number].bytes,
                    describe(record, replay, number)
                ));
            }
            match outcome {
                Outcome::Forwarded => sums.forwarded += 1,
                Outcome::Consumed => sums.consumed += 1,
                Outcome::Dropped(reason) => *sums.dropped.entry(*reason).or_default() += 1,
            }
        }
    }
    match numbers.first_key_value() {
        Some(((worker, walker), _)) => Err(format!("worker {worker} reported no outcome for {walker:?}")),
        None => Ok(sums),
    }
}

/// Returns whether a packet can have this outcome, given its sent and missing copies and packet-ins.
fn is_possible(
    record: &Record,
    replay: &Replay,
    output: Output<'_>,
    number: usize,
    outcome: Outcome,
) -> bool {
    let Some(processed) = &replay.processed[number] else { return false };
    let Output { copies, reports } = output;
    let (out, missing, came) = (copies.out[number], copies.missing[number], reports.came[number]);
    let is_clear = !copies.unclear.contains(&number);
    let whole = is_clear && missing == 0 && came == processed.packet_ins.len() as u64;
    let buckets_lost = record.room.lacks_frames() && !processed.groups.is_empty();
    if record.room.is_ample() || whole && !buckets_lost {
        return outcome == processed.outcome;
    }
    let unreadable = processed.packet_ins.iter().any(|report| tag(&report.bytes) != Some(number));
    if !is_clear || unreadable {
        return true;
    }
    match outcome {
        // A frame handed to another worker may be lost there.
        Outcome::Forwarded => out > 0 || missing > 0 && record.logs.len() > 1,
        Outcome::Consumed => out == 0 && came > 0,
        Outcome::Dropped(reason) => {
            let met = processed.copy_drops.contains(&reason) || processed.outcome == outcome;
            let lost = missing > 0 && COPY_LOSSES.contains(&reason);
            let unreported = !processed.packet_ins.is_empty() && reason == DropReason::PacketInFull;
            let bucket = buckets_lost && reason == DropReason::NoBuffer;
            out == 0 && came == 0 && (met || lost || unreported || bucket)
        }
    }
}

/// Tolerance of the loss counts. A bucket without a free frame counts as one loss, however many copies it
/// would have sent. A packet that a full backlog refused may have lost copies before.
#[derive(Clone, Copy, Debug, Default)]
struct Slack {
    more: u64,
    fewer: u64,
}

impl Slack {
    fn of(record: &Record, replay: &Replay, copies: &Copies, refused: u64) -> Self {
        if !record.room.lacks_frames() {
            return Self::default();
        }
        let mut slack = Self { more: 8 * refused, fewer: 0 };
        for (number, processed) in replay.in_order().filter(|(_, processed)| !processed.groups.is_empty()) {
            slack.more += processed.groups.iter().map(|(_, buckets)| buckets.len() as u64).sum::<u64>();
            let of_unclear = if copies.unclear.contains(&number) { processed.sent.len() as u64 } else { 0 };
            let missing = copies.missing[number] + of_unclear + processed.packet_ins.len() as u64;
            slack.fewer += missing.saturating_sub(1);
        }
        slack
    }
}

/// Checks that every missing copy and packet-in is counted as a loss for lack of space, and that no other
/// losses are counted.
pub(super) fn check_losses(
    record: &Record,
    replay: &Replay,
    output: Output<'_>,
    refused: u64,
) -> Result<(), String> {
    let Output { copies, reports } = output;
    let counted = |reason: DropReason| record.totals.dropped_in_all(reason);
    let lost: u64 = COPY_LOSSES.into_iter().map(counted).sum();
    let (missing, unreported) = (copies.all_missing(), counted(DropReason::PacketInFull));
    let slack = Slack::of(record, replay, copies, refused);
    let fail = |what: String| {
        Err(format!(
            "{what}; missing by port {:?}, counted {:?}, {:?}, room {:?}",
            copies.missing_by_port,
            COPY_LOSSES.map(|reason| (reason.name(), counted(reason))),
            slack,
            record.room
        ))
    };
    if lost + unreported + slack.fewer < missing + reports.missing {
        return fail(format!("{missing} copies and {} packet-ins are missing", reports.missing));
    }
    if record.room.lacks_frames() {
        if lost + unreported > missing + reports.missing + slack.more {
            return fail(format!("only {missing} copies and {} packet-ins are missing", reports.missing));
        }
        return Ok(());
    }
    if lost != missing || counted(DropReason::NoBuffer) > 0 {
        return fail(format!("{missing} copies are missing, {lost} are counted"));
    }
    // A packet that a full backlog refused may have lost packet-ins before.
    if !(reports.missing..=reports.missing + 8 * refused).contains(&unreported) {
        return fail(format!("{} packet-ins are missing, {unreported} are counted", reports.missing));
    }
    Ok(())
}
