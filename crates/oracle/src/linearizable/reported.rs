// SPDX-License-Identifier: Apache-2.0
//! Checks of messages to the control thread: packet-ins, and the addresses that NORMAL learned.

use super::flows::FlowView;
use super::{Replay, flow_of};
use crate::log::{Record, Reported, tag};
use dataplane::MacSeen;
use flow::{PacketInReason, TableId};
use std::collections::BTreeMap;

/// Compares packet-ins, which must be in order within a flow. Those for an expired TTL are only in order
/// among themselves, per table.
///
/// Returns the number of packet-ins of each packet, and the number of missing ones. Packet-ins may be missing
/// only if space is scarce.
pub(super) fn check_reported(record: &Record, replay: &Replay) -> Result<Reports, String> {
    let stream = |bytes: &[u8], reason, table: TableId| {
        flow_of(record, replay, bytes)
            .map(|flow| (flow, (reason == PacketInReason::InvalidTtl).then_some(table)))
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
        // Truncated packets of different ports may be equal.
        let key =
            |r: &Reported| (r.entry, r.in_port, r.table, r.metadata, r.tunnel_id, r.max_len, r.reason as u8);
        reports.sort_unstable_by(|a, b| a.bytes.cmp(&b.bytes).then_with(|| key(a).cmp(&key(b))));
    }
    let mut reports = Reports { came: vec![0; record.arrivals.len()], missing: 0 };
    for (flow, expected) in &expected {
        let actual = actual.remove(flow).unwrap_or_default();
        let mut came = actual.iter().peekable();
        let lost = expected.iter().filter(|report| came.next_if_eq(report).is_none()).count();
        if came.peek().is_some() || lost > 0 && record.room.is_ample() {
            return Err(format!("packet-ins differ\n  expected {expected:?}\n  actual   {actual:?}"));
        }
        reports.missing += lost as u64;
    }
    for number in record.reported.iter().filter_map(|report| tag(&report.bytes)) {
        reports.came[number] += 1;
    }
    if actual.is_empty() { Ok(reports) } else { Err(format!("unexpected packet-ins: {actual:?}")) }
}

/// Checks the order of packet-ins within the flows of a view. [`check_reported`] has compared their contents.
pub(super) fn check_view(record: &Record, replay: &Replay, view: &FlowView) -> Result<(), String> {
    let stream = |bytes: &[u8], reason: PacketInReason, table: TableId| {
        let number = tag(bytes)?;
        Some(((view.flow_of(number)?, (reason == PacketInReason::InvalidTtl).then_some(table)), number))
    };
    let mut expected: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    let mut actual = expected.clone();
    let packet_ins = replay.in_order().flat_map(|(_, processed)| &processed.packet_ins);
    for (stream, number) in packet_ins.filter_map(|p| stream(&p.bytes, p.reason, p.table)) {
        expected.entry(stream).or_default().push(number);
    }
    for (stream, number) in record.reported.iter().filter_map(|r| stream(&r.bytes, r.reason, r.table)) {
        actual.entry(stream).or_default().push(number);
    }
    for (stream, expected) in &expected {
        let mut came = actual.get(stream).into_iter().flatten().peekable();
        for number in expected {
            came.next_if_eq(&number);
        }
        if let Some(number) = came.next() {
            return Err(format!(
                "packet-ins of a flow are not in order from packet {number} on: expected {expected:?}, actual {:?}\n  \
                 the packets of the flow are equal in {:x?}",
                actual.get(stream),
                view.bits()
            ));
        }
    }
    Ok(())
}

/// Numbers of received packet-ins and of missing packet-ins.
#[derive(Debug)]
pub(super) struct Reports {
    /// Number of packet-ins of each packet whose tag can be read.
    pub came: Vec<u64>,
    pub missing: u64,
}

pub(super) fn check_learned(record: &Record, replay: &Replay) -> Result<(), String> {
    let key = |learn: &MacSeen| (learn.vid, learn.mac, learn.port);
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
    if !record.room.is_ample() {
        // If there was no space for a report, the next packet with this address repeats the report.
        let mut came = actual.iter().peekable();
        expected.retain(|learned| came.next_if_eq(&learned).is_some());
    }
    if expected == actual { Ok(()) } else { Err(format!("learned {actual:?}, expected {expected:?}")) }
}
