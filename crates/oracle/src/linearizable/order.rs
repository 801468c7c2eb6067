// SPDX-License-Identifier: Apache-2.0
//! Checks of the workers' logs: each packet and operation must appear once, neither too early nor too late.
//! The packets of a flow must appear in order of arrival.

use super::flows::FlowView;
use super::{Flow, Replay};
use crate::log::{Entry, Record};
use flow::{PortNo, RuleVersion};
use std::collections::{BTreeMap, BTreeSet};

/// For each arrival, its position in its worker's log, and the version applied there.
type Positions = BTreeMap<(PortNo, usize, u64), (usize, RuleVersion)>;

/// Checks that each worker applies all operations once and in order, and processes each packet once.
pub(super) fn check_logs(record: &Record) -> Result<Positions, String> {
    let mut positions = Positions::new();
    for (worker, log) in record.logs.iter().enumerate() {
        let mut version = RuleVersion(0);
        for (at, entry) in log.iter().enumerate() {
            if let Entry::Refused { port, sequence, .. } = entry
                && positions.get(&(*port, worker, *sequence)).is_none_or(|(_, at)| *at != version)
            {
                return Err(format!("worker {worker} dropped a packet of another version: {entry:?}"));
            }
            match *entry {
                Entry::Applied(next) if next.0 == version.0 + 1 => {
                    // An operation must not be applied before it was submitted.
                    let earliest = record.submitted[version.0 as usize].lengths[worker];
                    if at < earliest {
                        return Err(format!(
                            "operation {next} was active on worker {worker} before it was submitted"
                        ));
                    }
                    version = next;
                }
                Entry::Refused { .. } | Entry::Returned => {}
                Entry::Applied(next) => {
                    return Err(format!("worker {worker} applied operation {next} directly after {version}"));
                }
                Entry::Packet { port, sequence } => {
                    if positions.insert((port, worker, sequence), (at, version)).is_some() {
                        return Err(format!(
                            "worker {worker} processed packet {sequence} of port {port} twice"
                        ));
                    }
                }
            }
        }
        if version.0 != record.operations.len() as u64 {
            return Err(format!(
                "worker {worker} stopped at operation {version} of {}",
                record.operations.len()
            ));
        }
    }
    Ok(positions)
}

/// Checks that the packets of each flow were processed in order of arrival. Packets that send nothing, and
/// packets that were dropped for lack of room, may be processed earlier or later. Packets that no table
/// handled belong to no flow.
pub(super) fn check_flow_order(record: &Record, replay: &Replay, view: &FlowView) -> Result<(), String> {
    let mut last: BTreeMap<Flow, usize> = BTreeMap::new();
    for (number, processed) in replay.in_order() {
        let arrival = &record.arrivals[number];
        let is_refused = replay.refused.contains(&number);
        let is_free = is_refused || processed.sent.is_empty() || processed.hits.is_empty();
        if is_free || arrival.is_injected() {
            continue;
        }
        let Some(flow) = view.flow_of(number) else { continue };
        if let Some(before) = last.insert(flow, number).filter(|before| *before > number) {
            return Err(format!(
                "packet {number} of port {} was processed after packet {before} of its flow, which arrived later",
                arrival.port
            ));
        }
    }
    Ok(())
}

/// Checks that every arrival was processed once, and not by a version older than the last barrier that was
/// answered before the arrival.
pub(super) fn check_arrivals(record: &Record, positions: &Positions) -> Result<(), String> {
    let arrived = record.arrivals.len() - record.injected.len();
    if positions.len() != arrived {
        return Err(format!("{arrived} packets arrived, {} were judged", positions.len()));
    }
    let injected: BTreeSet<usize> = record.injected.values().copied().collect();
    for (number, arrival) in
        record.arrivals.iter().enumerate().filter(|(number, _)| !injected.contains(number))
    {
        let Some((_, version)) = positions.get(&(arrival.port, arrival.worker, arrival.sequence)) else {
            return Err(format!("packet {number} was never processed"));
        };
        if *version < arrival.acknowledged {
            return Err(format!(
                "packet {number} was processed by version {version} after the barrier of version {} was answered",
                arrival.acknowledged
            ));
        }
    }
    Ok(())
}
