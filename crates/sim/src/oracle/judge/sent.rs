// SPDX-License-Identifier: Apache-2.0
//! Copies by port and flow: the same frames in the same order.

use super::{Replay, describe, flow_of};
use crate::oracle::log::{Record, tag};
use flow::{EgressQueue, PortNo};
use std::collections::{BTreeMap, BTreeSet};

/// The port that copies leave by, and the flow they belong to.
type Place = (PortNo, Option<(usize, u64, PortNo)>);

/// Copies by where they leave.
type ByFlow<'a> = BTreeMap<Place, Vec<&'a [u8]>>;

/// Copies of a flow by a port that may stand in one of several orders: by queue.
type ByQueue<'a> = BTreeMap<u32, Vec<&'a [u8]>>;

/// The queue of a port that a number stands for.
pub(super) fn egress(record: &Record, queue: u32) -> u32 {
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

pub(super) fn check_sent(record: &Record, replay: &Replay) -> Result<(), String> {
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
