// SPDX-License-Identifier: Apache-2.0
//! The judge: is there a serial order of packets and operations, the one the workers logged, in which the reference
//! gives the same?

use super::Coverage;
use super::log::{Arrival, Entry, Record, Reported, tag};
use flow::{DropReason, EgressQueue, Operation, Outcome, PacketInReason, PortNo};
use pipeline::Learn;
use reference::{Processed, Reference};
use std::collections::{BTreeMap, BTreeSet};

/// What the reference gave for each arrival, in the serial order.
struct Replay {
    reference: Reference,
    order: Vec<usize>,
    processed: Vec<Option<Processed>>,
    outcomes: [u64; 2],
    copies: u64,
}

/// The port that copies leave by, and the flow they belong to.
type Place = (PortNo, Option<(usize, u64, PortNo)>);

/// Copies by where they leave.
type ByFlow<'a> = BTreeMap<Place, Vec<&'a [u8]>>;

/// Copies of a flow by a port that may stand in one of several orders: by queue.
type ByQueue<'a> = BTreeMap<u32, Vec<&'a [u8]>>;

/// Judges a case.
pub(super) fn judge(record: Record) -> Result<Coverage, String> {
    let positions = check_logs(&record)?;
    check_arrivals(&record, &positions)?;
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
        fast: record.totals.fast,
        stateless: record.totals.stateless,
        held_back: record.totals.held_back,
        group_uses: record.groups.iter().map(|(_, counters)| counters.total.0).sum(),
        ..Coverage::default()
    };
    let replay = replay(&record, &mut coverage)?;
    check_sent(&record, &replay)?;
    check_reported(&record, &replay)?;
    check_learned(&record, &replay)?;
    coverage.counters = check_counters(&record, &replay)?;
    Ok(coverage)
}

/// Where each arrival stands: its worker's log position, and the version in force there.
type Positions = BTreeMap<(PortNo, usize, u64), (usize, u64)>;

/// Each worker puts operations in force in their order, all of them once, and judges each packet once.
fn check_logs(record: &Record) -> Result<Positions, String> {
    let mut positions = Positions::new();
    for (worker, log) in record.logs.iter().enumerate() {
        let mut version = 0;
        for (at, entry) in log.iter().enumerate() {
            if let Entry::Refused { port, sequence, .. } = entry
                && positions.get(&(*port, worker, *sequence)).is_none_or(|(_, at)| *at != version)
            {
                return Err(format!("worker {worker} dropped a packet of another version: {entry:?}"));
            }
            match *entry {
                Entry::Applied(next) if next == version + 1 => {
                    // Not before it arrived.
                    let earliest = record.submitted[version as usize][worker];
                    if at < earliest {
                        return Err(format!(
                            "operation {next} was in force on worker {worker} before it was made"
                        ));
                    }
                    version = next;
                }
                Entry::Refused { .. } => {}
                Entry::Applied(next) => {
                    return Err(format!("worker {worker} put operation {next} in force after {version}"));
                }
                Entry::Packet { port, sequence } => {
                    if positions.insert((port, worker, sequence), (at, version)).is_some() {
                        return Err(format!("worker {worker} judged packet {sequence} of port {port} twice"));
                    }
                }
            }
        }
        if version != record.operations.len() as u64 {
            return Err(format!(
                "worker {worker} stopped at operation {version} of {}",
                record.operations.len()
            ));
        }
    }
    Ok(positions)
}

/// Every arrival was judged once, and by no version older than the last whose barrier was answered before.
fn check_arrivals(record: &Record, positions: &Positions) -> Result<(), String> {
    let arrived = record.arrivals.len() - record.injected.len();
    if positions.len() != arrived {
        return Err(format!("{arrived} packets arrived, {} were judged", positions.len()));
    }
    let injected: BTreeSet<usize> = record.injected.values().copied().collect();
    for (number, arrival) in
        record.arrivals.iter().enumerate().filter(|(number, _)| !injected.contains(number))
    {
        let Some((_, version)) = positions.get(&(arrival.port, arrival.worker, arrival.sequence)) else {
            return Err(format!("packet {number} was never judged"));
        };
        if *version < arrival.acknowledged {
            return Err(format!(
                "packet {number} was judged by version {version} after the barrier of version {} was answered",
                arrival.acknowledged
            ));
        }
    }
    Ok(())
}

/// Packets that found no room in a backlog: the table they waited for, and the name they were counted under.
fn refused(record: &Record) -> BTreeMap<(PortNo, usize, u64), (Option<u8>, DropReason)> {
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

/// Runs the reference through the serial order: between two versions the workers one after the other.
fn replay(record: &Record, coverage: &mut Coverage) -> Result<Replay, String> {
    let by_place: BTreeMap<(PortNo, usize, u64), usize> = record
        .arrivals
        .iter()
        .enumerate()
        .filter(|(_, a)| a.flow >> 40 == 0)
        .map(|(number, a)| ((a.port, a.worker, a.sequence), number))
        .collect();
    let refused = refused(record);
    coverage.refused = refused.len();
    let mut made = Replay {
        reference: Reference::new(),
        order: Vec::with_capacity(record.arrivals.len()),
        processed: vec![None; record.arrivals.len()],
        outcomes: [0; 2],
        copies: 0,
    };
    let mut next = vec![0; record.logs.len()];
    for version in 0..=record.operations.len() {
        if version > 0 {
            match &record.operations[version - 1] {
                Operation::PacketOut(packet) => {
                    let number = record.injected.get(&(version as u64)).ok_or("a packet-out of nobody")?;
                    let processed = made.reference.packet_out(packet);
                    made.note(*number, processed, coverage);
                }
                operation => made.reference.apply(operation)?,
            }
        }
        for (worker, log) in record.logs.iter().enumerate() {
            while let Some(Entry::Packet { port, sequence } | Entry::Refused { port, sequence, .. }) =
                log.get(next[worker])
            {
                let entry = &log[next[worker]];
                next[worker] += 1;
                let place = (*port, worker, *sequence);
                if let (Entry::Packet { .. }, Some(number)) = (entry, by_place.get(&place)) {
                    made.packet(*number, &record.arrivals[*number], refused.get(&place), coverage);
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
        refused: Option<&(Option<u8>, DropReason)>,
        coverage: &mut Coverage,
    ) {
        let first = match refused {
            Some((table, reason)) => self.reference.refuse(arrival.port, &arrival.bytes, *table, *reason),
            None => self.reference.process(arrival.port, &arrival.bytes),
        };
        let table = first.hits.first().map_or(0, |(table, _)| *table);
        coverage.overlapping += usize::from(self.reference.matches(table, arrival.port, &arrival.bytes) > 1);
        self.note(number, first, coverage);
    }

    /// Takes down what the reference made of a packet.
    fn note(&mut self, number: usize, processed: Processed, coverage: &mut Coverage) {
        self.order.push(number);
        let kind = match processed.outcome {
            Outcome::Forwarded => 0,
            Outcome::Consumed => 1,
            Outcome::Dropped(_) => 2,
        };
        coverage.outcomes[kind] += 1;
        if kind < 2 {
            self.outcomes[kind] += 1;
        }
        self.copies += processed.sent.len() as u64;
        coverage.multi_table += usize::from(processed.hits.len() > 1);
        self.processed[number] = Some(processed);
    }

    /// What the reference gave, in the serial order.
    fn in_order(&self) -> impl Iterator<Item = (usize, &Processed)> {
        self.order.iter().filter_map(|number| Some((*number, self.processed[*number].as_ref()?)))
    }
}

/// The flow of a packet that came out, by its tag: worker, flow and port it came in by. Packets whose tag was written
/// over have none and are compared without order.
fn flow_of(record: &Record, bytes: &[u8]) -> Option<(usize, u64, PortNo)> {
    let arrival = record.arrivals.get(tag(bytes)?)?;
    Some((arrival.worker, arrival.flow, arrival.port))
}

/// What the reference made of a packet, with the entries it hit.
fn describe(record: &Record, replay: &Replay, number: usize) -> String {
    let Some(processed) = &replay.processed[number] else { return "never saw it".into() };
    let mut text = format!(
        "{:?}, sent by ports {:?}, learned {:?}",
        processed.outcome,
        processed.sent.iter().map(|copy| copy.port).collect::<Vec<_>>(),
        processed.learn
    );
    for (table, id) in &processed.hits {
        text += &format!("\n    table {table} entry {id:?}");
        // An id may have been used several times: the changes of all its lives are told.
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

/// The queue of a port that a number stands for.
fn egress(record: &Record, queue: u32) -> u32 {
    let known = record.egress.iter().any(|known| known.id == queue);
    if known { queue } else { EgressQueue::DEFAULT_ID }
}

/// What the reference sends of flows of which packets go by several queues of a port at once: between these there is no order.
fn in_several_queues<'a>(record: &Record, replay: &'a Replay) -> BTreeMap<Place, ByQueue<'a>> {
    let mut flows = BTreeMap::new();
    let mut several = BTreeSet::new();
    for (_, processed) in replay.in_order() {
        let mut first: BTreeMap<PortNo, u32> = BTreeMap::new();
        for copy in &processed.sent {
            let (queue, place) = (egress(record, copy.queue), (copy.port, flow_of(record, &copy.bytes)));
            if *first.entry(copy.port).or_insert(queue) != queue {
                several.insert(place);
            }
            let by_queue: &mut ByQueue<'_> = flows.entry(place).or_default();
            by_queue.entry(queue).or_default().push(copy.bytes.as_slice());
        }
    }
    flows.retain(|place: &Place, _| place.1.is_some() && several.contains(place));
    flows
}

/// Whether these are the frames of the queues, each queue's in order.
fn is_merged(queues: &ByQueue<'_>, actual: &[&[u8]]) -> bool {
    let queues: Vec<&Vec<&[u8]>> = queues.values().collect();
    // Equal frames may be of either queue: all ways of having come so far.
    let mut ways = BTreeSet::from([vec![0; queues.len()]]);
    for bytes in actual {
        let mut next = BTreeSet::new();
        for way in &ways {
            for (queue, frames) in queues.iter().enumerate() {
                if frames.get(way[queue]) == Some(bytes) {
                    let mut way = way.clone();
                    way[queue] += 1;
                    next.insert(way);
                }
            }
        }
        ways = next;
    }
    ways.contains(&queues.iter().map(|frames| frames.len()).collect::<Vec<_>>())
}

fn check_sent(record: &Record, replay: &Replay) -> Result<(), String> {
    let several = in_several_queues(record, replay);
    let mut expected = ByFlow::new();
    for copy in replay.in_order().flat_map(|(_, processed)| &processed.sent) {
        expected.entry((copy.port, flow_of(record, &copy.bytes))).or_default().push(&copy.bytes);
    }
    let mut actual = ByFlow::new();
    for (port, _, frames) in &record.sent {
        for bytes in frames {
            actual.entry((*port, flow_of(record, bytes))).or_default().push(bytes);
        }
    }
    for copies in [&mut expected, &mut actual] {
        copies
            .iter_mut()
            .filter(|((_, flow), _)| flow.is_none())
            .for_each(|(_, copies)| copies.sort_unstable());
    }
    for (place, expected) in &expected {
        let actual = actual.get(place).map_or(&[][..], Vec::as_slice);
        if several.get(place).is_some_and(|queues| is_merged(queues, actual)) {
            continue;
        }
        if let Some(at) =
            (0..expected.len().max(actual.len())).find(|at| expected.get(*at) != actual.get(*at))
        {
            let bytes = expected.get(at).or(actual.get(at)).copied().unwrap_or_default();
            let sent_by = || replay.in_order().find(|(_, p)| p.sent.iter().any(|copy| copy.bytes == bytes));
            let number = tag(bytes).or_else(|| sent_by().map(|(number, _)| number));
            let arrival = number.map(|n| &record.arrivals[n]);
            return Err(format!(
                "port {}: copy {at} of a flow differs (packet {number:?})\n  expected {:02x?}\n  actual   {:02x?}\n  \
                 in {:02x?}\n  the reference: {}",
                place.0,
                expected.get(at),
                actual.get(at),
                arrival.map(|a| &a.bytes),
                number.map_or_else(String::new, |n| describe(record, replay, n)),
            ));
        }
    }
    match actual.keys().find(|place| !expected.contains_key(place)) {
        Some(place) => Err(format!("port {} sent copies of a flow that should not leave there", place.0)),
        None => Ok(()),
    }
}

/// Packet-ins are in order within a flow, but for those of packets that their TTL has ended, which tables behind never see:
/// these are in order among those of the same table.
fn check_reported(record: &Record, replay: &Replay) -> Result<(), String> {
    let stream = |bytes: &[u8], reason, table: u8| {
        flow_of(record, bytes).map(|flow| (flow, (reason == PacketInReason::InvalidTtl).then_some(table)))
    };
    let mut expected: BTreeMap<_, Vec<Reported>> = BTreeMap::new();
    for p in replay.in_order().flat_map(|(_, processed)| &processed.packet_ins) {
        expected.entry(stream(&p.bytes, p.reason, p.table)).or_default().push(Reported {
            table: p.table,
            entry: p.entry,
            reason: p.reason,
            max_len: p.max_len,
            in_port: p.in_port,
            metadata: p.metadata,
            tunnel_id: p.tunnel_id,
            bytes: p.bytes.clone(),
        });
    }
    let mut actual: BTreeMap<_, Vec<Reported>> = BTreeMap::new();
    for report in &record.reported {
        actual.entry(stream(&report.bytes, report.reason, report.table)).or_default().push(report.clone());
    }
    for reports in [&mut expected, &mut actual].into_iter().filter_map(|reports| reports.get_mut(&None)) {
        // Cut-off packets of several ports may be equal.
        let key =
            |r: &Reported| (r.entry, r.in_port, r.table, r.metadata, r.tunnel_id, r.max_len, r.reason as u8);
        reports.sort_unstable_by(|a, b| a.bytes.cmp(&b.bytes).then_with(|| key(a).cmp(&key(b))));
    }
    for (flow, expected) in &expected {
        let actual = actual.remove(flow).unwrap_or_default();
        if *expected != actual {
            return Err(format!("packet-ins differ\n  expected {expected:?}\n  actual   {actual:?}"));
        }
    }
    if actual.is_empty() { Ok(()) } else { Err(format!("packet-ins that should not be: {actual:?}")) }
}

fn check_learned(record: &Record, replay: &Replay) -> Result<(), String> {
    let key = |learn: &Learn| (learn.vid, learn.mac, learn.port);
    let mut expected: Vec<_> = replay
        .in_order()
        .flat_map(|(_, processed)| &processed.learn)
        .map(|learned| {
            let [_, _, mac @ ..] = learned.mac.to_be_bytes();
            (learned.vid, mac, learned.port)
        })
        .collect();
    let mut actual: Vec<_> = record.learned.iter().map(key).collect();
    expected.sort_unstable();
    actual.sort_unstable();
    if expected == actual { Ok(()) } else { Err(format!("learned {actual:?}, expected {expected:?}")) }
}

fn check_counters(record: &Record, replay: &Replay) -> Result<usize, String> {
    let reference = &replay.reference;
    for (id, counters) in &record.entries {
        let expected = reference.entry_counters(*id).unwrap_or_default();
        if (counters.packets, counters.bytes) != expected {
            return Err(format!("entry {id} counted {counters:?}, expected {expected:?} (packets, bytes)"));
        }
    }
    for (table, counters) in &record.tables {
        let expected = reference.table_counters(*table);
        if (counters.lookups, counters.matches) != expected {
            return Err(format!(
                "table {table} counted {counters:?}, expected {expected:?} (lookups, matches)"
            ));
        }
    }
    for (id, counters) in &record.groups {
        let expected = reference.group_counters(*id).cloned().unwrap_or_default();
        if (counters.total, &counters.buckets) != (expected.total, &expected.buckets) {
            return Err(format!("group {id} counted {counters:?}, expected {expected:?}"));
        }
    }
    let totals = &record.totals;
    let sums = (totals.received, totals.forwarded, totals.consumed, totals.copies);
    let expected = (record.arrivals.len() as u64, replay.outcomes[0], replay.outcomes[1], replay.copies);
    if sums != expected {
        return Err(format!(
            "totals {sums:?}, expected {expected:?} (received, forwarded, consumed, copies)"
        ));
    }
    for (at, reason) in DropReason::ALL.iter().enumerate() {
        let expected = reference.drops().get(reason).copied().unwrap_or_default();
        let copies = reference.copy_drops().get(reason).copied().unwrap_or_default();
        let lack = matches!(
            reason,
            DropReason::NoBuffer
                | DropReason::PacketInFull
                | DropReason::TransmitFull
                | DropReason::QueueFull
        );
        if lack && totals.dropped[at] + totals.copies_dropped[at] != 0 {
            return Err(format!("{} in a run that has room for all", reason.name()));
        }
        if totals.dropped[at] != expected || totals.copies_dropped[at] != copies {
            return Err(format!(
                "{}: {} packets and {} copies dropped, expected {expected} and {copies}",
                reason.name(),
                totals.dropped[at],
                totals.copies_dropped[at]
            ));
        }
    }
    Ok(record.entries.len() + record.tables.len() + record.groups.len() + 2 * DropReason::ALL.len() + 4)
}
