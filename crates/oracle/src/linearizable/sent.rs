// SPDX-License-Identifier: Apache-2.0
//! Checks sent copies by port and flow: the same frames must be sent in the same order.

use super::flows::FlowView;
use super::{Flow, Replay, describe, flow_of};
use crate::log::{Record, tag};
use flow::{EgressQueue, PortNo, QueueId};
use std::collections::{BTreeMap, BTreeSet};

/// Output port and flow of copies.
type Place = (PortNo, Option<Flow>);

/// Copies by output port and flow.
type ByFlow<'a> = BTreeMap<Place, Vec<&'a [u8]>>;

/// Copies of one flow at one port, by egress queue. Copies in different queues are not ordered relative to
/// each other.
type ByQueue<'a> = BTreeMap<QueueId, Vec<&'a [u8]>>;

/// Returns the egress queue that a queue number selects, or the default queue if no queue has the number.
pub(super) fn egress(record: &Record, queue: QueueId) -> QueueId {
    let known = record.egress.iter().any(|known| known.id == queue);
    if known { queue } else { EgressQueue::DEFAULT_ID }
}

/// Returns the copies of flows that use several queues of a port and have no order between these queues.
/// There is no order if a packet is sent to several of the queues, or if a queue has a maximum rate (ADR
/// 0022).
fn in_several_queues<'a>(record: &Record, replay: &'a Replay) -> BTreeMap<Place, ByQueue<'a>> {
    let mut flows = BTreeMap::new();
    let mut several = BTreeSet::new();
    for (_, processed) in replay.in_order() {
        let mut first: BTreeMap<PortNo, QueueId> = BTreeMap::new();
        for copy in &processed.sent {
            let (queue, place) =
                (egress(record, copy.queue), (copy.port, flow_of(record, replay, &copy.bytes)));
            if *first.entry(copy.port).or_insert(queue) != queue {
                several.insert(place);
            }
            let by_queue: &mut ByQueue<'_> = flows.entry(place).or_default();
            by_queue.entry(queue).or_default().push(copy.bytes.as_slice());
        }
    }
    let has_rate = |queue: &QueueId| {
        record.egress.iter().any(|known| known.id == *queue && known.max_rate_kbps.is_some())
    };
    flows.retain(|place: &Place, queues| {
        let by_rate = queues.len() > 1 && queues.keys().any(has_rate);
        place.1.is_some() && (several.contains(place) || by_rate)
    });
    flows
}

/// Returns whether `actual` merges the queues' frames and keeps the order within each queue. If `all` is
/// false, frames may be missing.
fn is_merged(queues: &ByQueue<'_>, actual: &[&[u8]], all: bool) -> bool {
    let queues: Vec<&Vec<&[u8]>> = queues.values().collect();
    // Equal frames may belong to any of the queues, so all possible assignments are tracked.
    let mut ways = BTreeSet::from([vec![0; queues.len()]]);
    for bytes in actual {
        let mut next = BTreeSet::new();
        for way in &ways {
            for (queue, frames) in queues.iter().enumerate() {
                let rest = frames.get(way[queue]..).unwrap_or_default();
                let found = rest.iter().position(|frame| frame == bytes);
                if let Some(skipped) = found.filter(|skipped| *skipped == 0 || !all) {
                    let mut way = way.clone();
                    way[queue] += skipped + 1;
                    next.insert(way);
                }
            }
        }
        ways = next;
    }
    !all && !ways.is_empty() || ways.contains(&queues.iter().map(|frames| frames.len()).collect::<Vec<_>>())
}

/// Copies that the reference sends, split into sent and missing ones.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Number of sent copies of each packet.
    pub out: Vec<u64>,
    /// Number of missing copies of each packet.
    pub missing: Vec<u64>,
    /// Packets whose number of sent copies is unknown, because other packets have equal copies without a tag
    /// and some of these copies are missing.
    pub unclear: BTreeSet<usize>,
    /// Number of missing copies by port.
    pub missing_by_port: BTreeMap<PortNo, u64>,
}

impl Copies {
    pub fn new(packets: usize) -> Self {
        Self { out: vec![0; packets], missing: vec![0; packets], ..Self::default() }
    }

    /// Returns the total number of missing copies.
    pub fn all_missing(&self) -> u64 {
        self.missing_by_port.values().sum()
    }

    /// Matches the frames that a port sent with the expected copies, by their bytes.
    fn account(&mut self, port: PortNo, expected: &[(usize, &[u8])], actual: &[&[u8]]) -> Result<(), String> {
        let mut copies: BTreeMap<&[u8], (Vec<usize>, usize)> = BTreeMap::new();
        expected.iter().for_each(|(packet, bytes)| copies.entry(bytes).or_default().0.push(*packet));
        actual.iter().for_each(|bytes| copies.entry(bytes).or_default().1 += 1);
        for (bytes, (packets, came)) in copies {
            let Some(lost) = packets.len().checked_sub(came) else {
                return Err(format!(
                    "port {port} sent a frame {came} times, expected {}: {bytes:02x?}",
                    packets.len()
                ));
            };
            *self.missing_by_port.entry(port).or_default() += lost as u64;
            if lost > 0 && came > 0 && packets.iter().any(|packet| *packet != packets[0]) {
                self.unclear.extend(packets);
                continue;
            }
            for (at, packet) in packets.into_iter().enumerate() {
                let copies = if at < came { &mut self.out } else { &mut self.missing };
                copies[packet] += 1;
            }
        }
        Ok(())
    }
}

pub(super) fn check_sent(record: &Record, replay: &Replay) -> Result<Copies, String> {
    let several = in_several_queues(record, replay);
    let mut expected: BTreeMap<Place, Vec<(usize, &[u8])>> = BTreeMap::new();
    for (number, processed) in replay.in_order() {
        for copy in &processed.sent {
            let place = (copy.port, flow_of(record, replay, &copy.bytes));
            expected.entry(place).or_default().push((number, copy.bytes.as_slice()));
        }
    }
    let mut actual = ByFlow::new();
    for (port, _, frames) in &record.sent {
        for bytes in frames {
            actual.entry((*port, flow_of(record, replay, bytes))).or_default().push(bytes);
        }
    }
    let mut copies = Copies::new(record.arrivals.len());
    for (place, expected) in &expected {
        let actual = actual.get(place).map_or(&[][..], Vec::as_slice);
        let in_order = match several.get(place) {
            Some(queues) => is_merged(queues, actual, record.room.is_ample()),
            None => false,
        };
        if !in_order {
            check_order(record, replay, *place, expected, actual)?;
        }
        copies.account(place.0, expected, actual)?;
    }
    match actual.keys().find(|place| !expected.contains_key(place)) {
        Some(place) => {
            Err(format!("port {} sent copies of a flow that the reference does not send there", place.0))
        }
        None => Ok(copies),
    }
}

/// Checks the order within the flows of a view. Copies in several egress queues of a port have an order only
/// within each queue.
pub(super) fn check_view(record: &Record, replay: &Replay, view: &FlowView) -> Result<(), String> {
    let mut expected: BTreeMap<Place, Vec<(usize, &[u8])>> = BTreeMap::new();
    let mut queues: BTreeMap<Place, ByQueue<'_>> = BTreeMap::new();
    for (number, processed) in replay.in_order() {
        for copy in &processed.sent {
            let Some(flow) = tag(&copy.bytes).and_then(|number| view.flow_of(number)) else { continue };
            let place = (copy.port, Some(flow));
            expected.entry(place).or_default().push((number, copy.bytes.as_slice()));
            let by_queue = queues.entry(place).or_default();
            by_queue.entry(egress(record, copy.queue)).or_default().push(copy.bytes.as_slice());
        }
    }
    let mut actual = ByFlow::new();
    for (port, _, frames) in &record.sent {
        for bytes in frames {
            let Some(flow) = tag(bytes).and_then(|number| view.flow_of(number)) else { continue };
            actual.entry((*port, Some(flow))).or_default().push(bytes);
        }
    }
    for (place, expected) in &expected {
        let actual = actual.get(place).map_or(&[][..], Vec::as_slice);
        let queues = queues.get(place).filter(|queues| queues.len() > 1);
        if !queues.is_some_and(|queues| is_merged(queues, actual, record.room.is_ample())) {
            check_order(record, replay, *place, expected, actual).map_err(|what| {
                format!("{what}\n  the packets of the flow are equal in {:x?}", view.bits())
            })?;
        }
    }
    Ok(())
}

/// Checks that the copies of a flow are in order. If space is scarce, copies may be missing. Copies without a
/// flow have no order.
fn check_order(
    record: &Record,
    replay: &Replay,
    place: Place,
    expected: &[(usize, &[u8])],
    actual: &[&[u8]],
) -> Result<(), String> {
    let mut expected = expected.to_vec();
    let mut actual = actual.to_vec();
    if place.1.is_none() {
        expected.sort_unstable_by_key(|(_, bytes)| *bytes);
        actual.sort_unstable();
    }
    let mut next = 0;
    for (number, bytes) in &expected {
        if actual.get(next) == Some(bytes) {
            next += 1;
        } else if record.room.is_ample() {
            return Err(differs(record, replay, place.0, *number, bytes, actual.get(next).copied()));
        }
    }
    match actual.get(next) {
        Some(bytes) => {
            let number = tag(bytes).unwrap_or_default();
            Err(differs(record, replay, place.0, number, &[], Some(bytes)))
        }
        None => Ok(()),
    }
}

/// Describes a copy that differs from the expected one of packet `number`.
fn differs(
    record: &Record,
    replay: &Replay,
    port: PortNo,
    number: usize,
    expected: &[u8],
    actual: Option<&[u8]>,
) -> String {
    format!(
        "port {port}: a copy of a flow differs (packet {number})\n  expected {expected:02x?}\n  actual   {actual:02x?}\n  \
         in {:02x?}\n  the reference: {}\n  of the actual packet: {}",
        record.arrivals.get(number).map(|a| &a.bytes),
        describe(record, replay, number),
        actual.and_then(tag).map_or_else(String::new, |number| describe(record, replay, number)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_unclear_which_of_equal_copies_is_missing_unless_all_are() {
        let account = |actual: &[&[u8]]| {
            let mut copies = Copies::new(2);
            let expected: [(usize, &[u8]); 2] = [(0, b"equal"), (1, b"equal")];
            copies.account(PortNo(1), &expected, actual).map(|()| copies)
        };
        let counts = |copies: Copies| (copies.out, copies.missing, copies.unclear.len());
        assert_eq!(account(&[]).map(counts), Ok((vec![0, 0], vec![1, 1], 0)));
        assert_eq!(account(&[b"equal"]).map(counts), Ok((vec![0, 0], vec![0, 0], 2)));
        assert_eq!(account(&[b"equal", b"equal"]).map(counts), Ok((vec![1, 1], vec![0, 0], 0)));
        assert!(account(&[b"other"]).is_err());
    }
}
