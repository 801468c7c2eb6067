// SPDX-License-Identifier: Apache-2.0
//! Checks a case: in the serial order that the workers logged, the reference must give the same results.

mod counters;
mod expiry;
mod flow_removed;
mod flows;
mod lives;
mod mac_limits;
mod meters;
mod mirrored;
mod offloads;
mod order;
mod outcomes;
mod path;
mod ports;
mod reported;
mod sent;
mod storms;

use super::Coverage;
use super::features::Features;
use super::log::{Arrival, Entry, Lookup, Moment, Record, Walker, tag};
use flow::{DropReason, Operation, Outcome, PortNo, RuleVersion, TableId};
use flows::Eras;
use lives::{Lives, Lookups};
use meters::Bands;
use reference::{Processed, Reference};
use std::collections::{BTreeMap, BTreeSet};
use storms::{ExceededFloods, Floods};

/// Results of the reference for all arrivals, in the serial order.
struct Replay {
    reference: Reference,
    order: Vec<usize>,
    processed: Vec<Option<Processed>>,
    copies: u64,
    lives: Lives,
    lookups: Lookups,
    bands: Bands,
    /// Floods that have a storm limit, and those that exceed it.
    floods: Floods,
    exceeded: ExceededFloods,
    /// Moment at which a worker executed the action set of each packet that has one.
    action_sets: BTreeMap<(usize, Walker), Moment>,
    /// Whether a bucket may fail because no frame is free.
    lacks_frames: bool,
    features: Features,
    eras: Eras,
    /// Packets that were dropped because a backlog or a queue of the port cache was full.
    refused: BTreeSet<usize>,
}

/// Worker, number and ingress port of a flow.
type Flow = (usize, u64, PortNo);

/// A packet at its position in the serial order.
struct Logged<'a> {
    number: usize,
    arrival: &'a Arrival,
    /// Worker that logged the packet.
    worker: usize,
    walker: Walker,
    moment: Moment,
}

/// Checks a case. Returns its coverage.
pub(super) fn check_linearizable(record: Record) -> Result<Coverage, String> {
    let positions = order::check_logs(&record)?;
    order::check_arrivals(&record, &positions)?;
    let mut coverage = Coverage {
        packets: record.arrivals.len(),
        updates: record.updates,
        live_updates: record.live_updates,
        operations: record.operations.len(),
        expired: record.expired,
        traced: record.traced,
        judged: record.judged,
        lookups: record.lookups.clone(),
        packet_ins: record.reported.len(),
        luts: record.luts,
        express: record.express,
        distant_hits: record.distant_hits,
        misses: record.misses,
        answered: record.answered,
        changes: record.changes,
        fast: record.totals.fast,
        rate_held: record.rate_held,
        stateless: record.totals.stateless,
        held_back: record.totals.held_back,
        group_uses: record.groups.iter().map(|(_, counters)| counters.total.packets).sum(),
        ..Coverage::default()
    };
    if record.totals.express != record.express.hits {
        return Err(format!("{} hits of path records, but {}", record.express.hits, record.totals.express));
    }
    let mut exceeded = ExceededFloods::default();
    if storms::has_limits(&record) {
        exceeded = replay(&record, exceeded, &mut Coverage::default())?.floods.charge();
    }
    coverage.exceeded_floods = exceeded.count;
    (coverage.closed_ports, coverage.reopened_ports) = (record.closings.len(), record.reopened);
    let replay = replay(&record, exceeded, &mut coverage)?;
    let copies = sent::check_sent(&record, &replay)?;
    coverage.mirrored = mirrored::check_mirrored(&record)?;
    offloads::check_offloads(&record, &replay, &mut coverage)?;
    let reports = reported::check_reported(&record, &replay)?;
    reported::check_learned(&record, &replay)?;
    storms::check_reported(&record, &replay.exceeded)?;
    for view in replay.eras.views(&record.arrivals) {
        order::check_flow_order(&record, &replay, &view)?;
        sent::check_view(&record, &replay, &view)?;
        reported::check_view(&record, &replay, &view)?;
        coverage.merged_flows += view.merged();
    }
    coverage.unlike = replay.eras.unlike(&record.arrivals);
    coverage.counters = counters::check_counters(&record, &replay)?;
    coverage.counters += ports::check_ports(&record, &replay)?;
    let output = outcomes::Output { copies: &copies, reports: &reports };
    let sums = outcomes::check_outcomes(&record, &replay, output)?;
    outcomes::check_losses(&record, &replay, output, coverage.refused as u64)?;
    coverage.counters += counters::check_totals(&record, &replay, &sums)?;
    for reason in DropReason::SCARCITY {
        coverage.losses.insert(reason.name(), record.totals.dropped_in_all(*reason));
    }
    coverage.counters += replay.bands.check_counters(&record.meters)?;
    coverage.metered = replay.bands.exceeded;
    coverage.path = path::path_use(&record, &replay);
    let lives = replay.lives.finish(&replay.reference);
    coverage.timed_out = expiry::check_expiry(&record, &lives)?;
    coverage.removed = flow_removed::check_all(&record, &lives)?;
    Ok(coverage)
}

/// Returns the packets that a full backlog refused, with the table for which they waited and the drop reason.
fn refused(record: &Record) -> BTreeMap<(PortNo, usize, u64), (Option<TableId>, DropReason)> {
    let entries = record.logs.iter().enumerate().flat_map(|(w, log)| log.iter().map(move |entry| (w, entry)));
    entries
        .filter_map(|(worker, entry)| match *entry {
            Entry::Refused { port, sequence, table, reason } => {
                Some(((port, worker, sequence), (table, reason)))
            }
            _ => None,
        })
        .collect()
}

/// Returns the packets received on ports, by port, worker and sequence number.
fn numbers(record: &Record) -> BTreeMap<(PortNo, usize, u64), usize> {
    let arrived = record.arrivals.iter().enumerate().filter(|(_, arrival)| !arrival.is_injected());
    arrived.map(|(number, a)| ((a.port, a.worker, a.sequence), number)).collect()
}

/// Returns the moment at which each action set was executed.
fn action_sets(record: &Record) -> BTreeMap<(usize, Walker), Moment> {
    let logs = record.action_sets.iter().enumerate();
    logs.flat_map(|(worker, log)| log.iter().map(move |(walker, at)| ((worker, *walker), *at))).collect()
}

/// Runs the reference through the serial order, worker by worker between two versions.
fn replay(record: &Record, exceeded: ExceededFloods, coverage: &mut Coverage) -> Result<Replay, String> {
    let by_place = numbers(record);
    let refused = refused(record);
    coverage.refused = refused.len();
    let mut made = Replay {
        reference: Reference::new(),
        order: Vec::with_capacity(record.arrivals.len()),
        processed: vec![None; record.arrivals.len()],
        copies: 0,
        lives: Lives::default(),
        lacks_frames: record.room.lacks_frames(),
        lookups: lives::by_packet(record),
        bands: Bands::of(record),
        floods: Floods::default(),
        exceeded,
        action_sets: action_sets(record),
        features: Features::default(),
        eras: Eras::new(record.arrivals.len()),
        refused: refused.keys().filter_map(|place| by_place.get(place).copied()).collect(),
    };
    let mut next = vec![0; record.logs.len()];
    for version in 0..=record.operations.len() {
        if version > 0 {
            match &record.operations[version - 1] {
                Operation::PacketOut(packet) => {
                    let rule_version = RuleVersion(version as u64);
                    let number = record
                        .injected
                        .get(&rule_version)
                        .ok_or("a packet-out that the driver did not send")?;
                    let arrival = &record.arrivals[*number];
                    let (worker, walker) = (arrival.worker, Walker::Injected(rule_version));
                    made.reference.exceed(made.bands.exceeded_by((worker, walker)));
                    made.reference.exceed_storm_limits(made.exceeded.of((worker, walker)));
                    let processed = made.reference.packet_out(packet);
                    let moment =
                        record.logs.get(worker).zip(record.moments.get(worker)).and_then(|(log, moments)| {
                            let at = log.iter().position(|entry| *entry == Entry::Applied(rule_version))?;
                            moments.get(at).copied()
                        });
                    let moment = moment.unwrap_or_default();
                    let logged = Logged { number: *number, arrival, worker, walker, moment };
                    made.note(&logged, processed, coverage)?;
                }
                operation => {
                    made.reference.apply(operation)?;
                    coverage.full_ports += mac_limits::check_mac_limits(&made.reference)?;
                    made.lives.apply(version, operation, &made.reference);
                    made.features.apply(operation);
                    made.floods.apply(version, operation);
                }
            }
        }
        made.eras.begin(&made.reference, record.lut_bits.get(version));
        for (worker, log) in record.logs.iter().enumerate() {
            while let Some(entry) = log.get(next[worker]).filter(|entry| !matches!(entry, Entry::Applied(_)))
            {
                let moment = record.moments[worker][next[worker]];
                next[worker] += 1;
                let Entry::Packet { port, sequence } = entry else { continue };
                let place = (*port, worker, *sequence);
                if let Some(number) = by_place.get(&place) {
                    let arrival = &record.arrivals[*number];
                    made.packet(*number, arrival, refused.get(&place), moment, coverage)?;
                }
            }
            next[worker] += 1;
        }
    }
    Ok(made)
}

impl Replay {
    fn packet(
        &mut self,
        number: usize,
        arrival: &Arrival,
        refused: Option<&(Option<TableId>, DropReason)>,
        moment: Moment,
        coverage: &mut Coverage,
    ) -> Result<(), String> {
        let walker = Walker::Arrived { port: arrival.port, sequence: arrival.sequence };
        self.eras.note(number, arrival, &self.reference);
        self.reference.exceed(self.bands.exceeded_by((arrival.worker, walker)));
        self.reference.exceed_storm_limits(self.exceeded.of((arrival.worker, walker)));
        let first = match refused {
            Some((table, reason)) => {
                self.reference.refuse(arrival.port, (&arrival.bytes, arrival.unfinished), *table, *reason)
            }
            None => self.reference.process_unfinished(arrival.port, &arrival.bytes, arrival.unfinished),
        };
        let table = first.hits.first().map_or(TableId(0), |(table, _)| *table);
        coverage.overlapping += usize::from(self.reference.matches(table, arrival.port, &arrival.bytes) > 1);
        let logged = Logged { number, arrival, worker: arrival.worker, walker, moment };
        self.note(&logged, first, coverage)
    }

    /// Records the reference's result for a packet.
    fn note(
        &mut self,
        logged: &Logged<'_>,
        processed: Processed,
        coverage: &mut Coverage,
    ) -> Result<(), String> {
        let packet = (logged.worker, logged.walker);
        self.bands.check(packet, &processed)?;
        let lookups: &[Lookup] = self.lookups.get(&packet).map_or(&[], Vec::as_slice);
        self.lives.used(&processed, lookups, logged.moment, self.lacks_frames)?;
        self.floods.note(packet, &processed, |table| match table {
            Some(table) => lookups.iter().find(|lookup| lookup.table == table).map(|lookup| lookup.moment),
            // A packet-out may have actions without an action set.
            None => self
                .action_sets
                .get(&packet)
                .copied()
                .or_else(|| logged.arrival.is_injected().then_some(logged.moment)),
        })?;
        self.order.push(logged.number);
        self.features.note(logged.arrival, lookups, &processed, coverage);
        let kind = match processed.outcome {
            Outcome::Forwarded => 0,
            Outcome::Consumed => 1,
            Outcome::Dropped(_) => 2,
        };
        coverage.outcomes[kind] += 1;
        self.copies += processed.sent.len() as u64;
        coverage.multi_table += usize::from(processed.hits.len() > 1);
        self.processed[logged.number] = Some(processed);
        Ok(())
    }

    /// Returns the results of the reference in the serial order.
    fn in_order(&self) -> impl Iterator<Item = (usize, &Processed)> {
        self.order.iter().filter_map(|number| Some((*number, self.processed[*number].as_ref()?)))
    }
}

/// Returns the flow that a sent packet's tag identifies. A packet has no flow, and is compared without order,
/// if its tag was overwritten or a rule examined the tags of its flow.
fn flow_of(record: &Record, replay: &Replay, bytes: &[u8]) -> Option<Flow> {
    let arrival = record.arrivals.get(tag(bytes)?)?;
    let flow = (arrival.worker, arrival.flow, arrival.port);
    replay.eras.is_one_flow(flow).then_some(flow)
}

/// Describes the reference's result for a packet, and the entries that the packet hit.
fn describe(record: &Record, replay: &Replay, number: usize) -> String {
    let Some(processed) = &replay.processed[number] else { return "the reference did not process it".into() };
    let mut text = format!(
        "{:?}, sent by ports {:?}, other reasons {:?}, groups {:?}, learned {:?}",
        processed.outcome,
        processed.sent.iter().map(|copy| copy.port).collect::<Vec<_>>(),
        processed.copy_drops,
        processed.groups,
        processed.learn
    );
    for (table, id) in &processed.hits {
        text += &format!("\n    table {table} entry {id:?}");
        // The ID may have been reused, so the changes of all entries with this ID are listed.
        for (at, operation) in record.operations.iter().enumerate() {
            let changes = operation.parts().iter().filter_map(|part| match part {
                Operation::Entries(changes) => Some(changes),
                _ => None,
            });
            for change in changes.flatten() {
                match change {
                    flow::EntryChange::Add(e) if Some(e.id) == *id => {
                        text += &format!(
                            "\n      {} adds priority={},{} {}",
                            at + 1,
                            e.priority,
                            e.matching,
                            e.instructions
                        );
                    }
                    flow::EntryChange::Modify { id: i, instructions, .. } if Some(*i) == *id => {
                        text += &format!("\n      {} modifies to {instructions}", at + 1);
                    }
                    flow::EntryChange::Remove { id: i, .. } if Some(*i) == *id => {
                        text += &format!("\n      {} removes", at + 1)
                    }
                    _ => {}
                }
            }
        }
    }
    text
}
