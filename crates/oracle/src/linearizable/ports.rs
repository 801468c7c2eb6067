// SPDX-License-Identifier: Apache-2.0
//! Checks of the counters of ports and of their egress queues.

use super::Replay;
use super::sent::egress;
use crate::log::Record;
use flow::{DropReason, PortNo, QueueId};
use std::collections::BTreeMap;

/// Packets and bytes.
type Count = (u64, u64);

fn add(sum: &mut Count, bytes: usize) {
    *sum = (sum.0 + 1, sum.1 + bytes as u64);
}

/// Compares each port's counters with the arrivals, the sent frames and the selected queues. Returns the
/// number of counters compared.
pub(super) fn check_ports(record: &Record, replay: &Replay) -> Result<usize, String> {
    let mut arrived: BTreeMap<PortNo, Count> = BTreeMap::new();
    let injected: Vec<usize> = record.injected.values().copied().collect();
    for (number, arrival) in record.arrivals.iter().enumerate() {
        if !injected.contains(&number) {
            add(arrived.entry(arrival.port).or_default(), arrival.bytes.len());
        }
    }
    let mut left: BTreeMap<PortNo, Count> = BTreeMap::new();
    for (port, _, frames) in &record.sent {
        let sum = left.entry(*port).or_default();
        frames.iter().for_each(|bytes| add(sum, bytes.len()));
    }
    for (port, counters) in &record.ports {
        let [rx, tx] = [&arrived, &left].map(|sums| sums.get(port).copied().unwrap_or_default());
        let runts = record.runts.get(port).copied().unwrap_or_default();
        let queued = record.queues.iter().filter(|(number, _)| number == port).flat_map(|(_, queues)| queues);
        let refused: u64 = queued.map(|queue| queue.dropped).sum();
        let reported = (counters.rx_packets, counters.rx_bytes, counters.tx_packets, counters.tx_bytes);
        let lost = (counters.rx_dropped, counters.tx_dropped);
        if reported != (rx.0, rx.1, tx.0, tx.1) || lost != (runts, refused) {
            return Err(format!(
                "port {port} counted {counters:?}, expected {rx:?} in and {tx:?} out (packets, bytes), \
                 {runts} and {refused} dropped"
            ));
        }
        let expected = [("rx_runt", runts), ("queue_full", refused)];
        let expected: Vec<_> = expected.into_iter().filter(|(_, count)| *count > 0).collect();
        if counters.by_name != expected {
            return Err(format!("port {port} lost {:?}, expected {expected:?}", counters.by_name));
        }
    }
    check_queues(record, replay)?;
    Ok(record.ports.len())
}

/// Checks that each egress queue sent the frames that the reference assigned to it.
fn check_queues(record: &Record, replay: &Replay) -> Result<(), String> {
    let mut expected: BTreeMap<(PortNo, QueueId), Count> = BTreeMap::new();
    for copy in replay.in_order().flat_map(|(_, processed)| &processed.sent) {
        add(expected.entry((copy.port, egress(record, copy.queue))).or_default(), copy.bytes.len());
    }
    let lost_before =
        [DropReason::NoBuffer, DropReason::TransmitFull].iter().any(|r| record.totals.dropped_in_all(*r) > 0);
    let refused: u64 = record.queues.iter().flat_map(|(_, queues)| queues).map(|queue| queue.dropped).sum();
    if refused != record.totals.dropped_in_all(DropReason::QueueFull) {
        return Err(format!("queues had no room for {refused} copies: {:?}", record.totals));
    }
    for (port, queues) in &record.queues {
        let sent: u64 = queues.iter().map(|queue| queue.tx_packets).sum();
        let came: usize =
            record.sent.iter().filter(|(number, ..)| number == port).map(|(_, _, frames)| frames.len()).sum();
        if !queues.is_empty() && sent != came as u64 {
            return Err(format!("queues of port {port} counted {sent} packets, but {came} were sent"));
        }
        let known: Vec<QueueId> = queues.iter().map(|queue| queue.settings.id).collect();
        let wanted: Vec<QueueId> = record.egress.iter().map(|queue| queue.id).collect();
        if known != wanted {
            return Err(format!("port {port} has queues {known:?}, expected {wanted:?}"));
        }
        for queue in queues {
            let expected = expected.get(&(*port, queue.settings.id)).copied().unwrap_or_default();
            // Copies may be lost before they reach their queue.
            let all = queue.tx_packets + queue.dropped;
            let fits = if lost_before { all <= expected.0 } else { all == expected.0 };
            let bytes = if queue.tx_packets == expected.0 { expected.1 } else { queue.tx_bytes };
            if !fits || queue.tx_bytes != bytes || queue.waiting != 0 {
                return Err(format!(
                    "queue {} of port {port} counted {queue:?}, expected {expected:?} (packets, bytes)",
                    queue.settings.id
                ));
            }
        }
    }
    Ok(())
}
