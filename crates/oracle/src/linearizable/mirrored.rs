// SPDX-License-Identifier: Apache-2.0
//! Checks the copies of a mirror: the frames of its ports that arrived, and those that were sent, each once
//! and in the order of their queue.

use crate::log::Record;
use flow::Passage;
use reference::is_mirrored;
use std::collections::BTreeMap;

/// Compares the copies with the frames that the mirror selects. Returns the number of copies.
pub(super) fn check_mirrored(record: &Record) -> Result<usize, String> {
    let Some(selection) = &record.mirror else { return Ok(0) };
    // Frames by queue and direction, in their order.
    let mut sources: BTreeMap<_, Vec<&[u8]>> = BTreeMap::new();
    for arrival in record.arrivals.iter().filter(|arrival| !arrival.is_injected()) {
        if is_mirrored(selection, arrival.port, Passage::Ingress, &arrival.bytes) {
            let source = (arrival.port, arrival.worker, Passage::Ingress);
            sources.entry(source).or_default().push(&arrival.bytes);
        }
    }
    for (port, queue, frames) in &record.sent {
        let selected = frames.iter().filter(|bytes| is_mirrored(selection, *port, Passage::Egress, bytes));
        sources.entry((*port, *queue, Passage::Egress)).or_default().extend(selected.map(Vec::as_slice));
    }
    let mut counts: BTreeMap<&[u8], i64> = BTreeMap::new();
    for frame in sources.values().flatten() {
        *counts.entry(frame).or_default() += 1;
    }
    for copy in &record.mirrored {
        *counts.entry(copy).or_default() -= 1;
    }
    if let Some((bytes, count)) = counts.iter().find(|(_, count)| **count != 0) {
        let what = if *count > 0 { "lacks copies" } else { "has too many copies" };
        return Err(format!("the mirror {what} ({count}) of the frame {bytes:02x?}"));
    }
    for ((port, queue, passage), frames) in &sources {
        let mut copies = record.mirrored.iter();
        if let Some(frame) = frames.iter().find(|frame| !copies.any(|copy| copy == *frame)) {
            return Err(format!(
                "the mirror changed the order of {passage:?} frames of queue {queue} of port {port}: {frame:02x?}"
            ));
        }
    }
    Ok(record.mirrored.len())
}
