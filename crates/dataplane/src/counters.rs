// SPDX-License-Identifier: Apache-2.0
//! Counters that a data plane reports. Unless a field says otherwise, they count since the start of the data
//! plane, or since the addition of their object.

use crate::drop_counts::DropCounts;
use flow::{DropReason, EgressQueue, Nanos};

/// Numbers of packets and of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCount {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes of these packets.
    pub bytes: u64,
}

/// Counters of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryCounters {
    /// Number of packets that hit the entry.
    pub packets: u64,
    /// Number of bytes of these packets, with their lengths at the time of the hit. All ones if the data
    /// plane does not count them.
    pub bytes: u64,
    /// Time of the last hit, or 0 if there was none.
    pub used_ns: Nanos,
}

/// Counters of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCounters {
    /// Packets looked up in the table.
    pub lookups: u64,
    /// Packets that hit an entry of the table.
    pub matches: u64,
}

/// Counters of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupCounters {
    /// Packets and bytes that reached the group.
    pub total: TrafficCount,
    /// Packets and bytes that each bucket processed, in order of the buckets.
    pub buckets: Vec<TrafficCount>,
}

/// Counters of a meter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeterCounters {
    /// Packets and bytes that reached the meter.
    pub total: TrafficCount,
    /// Packets and bytes to which each band applied, in order of the bands.
    pub bands: Vec<TrafficCount>,
}

/// Counters of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets sent by the device.
    pub tx_packets: u64,
    /// Bytes sent by the device.
    pub tx_bytes: u64,
    /// Packets that the device, the kernel or the driver lost on receive.
    pub rx_dropped: u64,
    /// Packets that were given to the port and not sent.
    pub tx_dropped: u64,
    /// Losses by the driver's counter names, without counters of zero.
    pub by_name: Vec<(&'static str, u64)>,
}

/// An egress queue of a port, with its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortQueue {
    /// Configuration of the queue.
    pub settings: EgressQueue,
    /// Packets that left the queue.
    pub tx_packets: u64,
    /// Bytes that left the queue.
    pub tx_bytes: u64,
    /// Packets dropped because the queue was full.
    pub dropped: u64,
    /// Packets that wait in the queue.
    pub waiting: usize,
}

/// Counters of all packets. `received` equals `forwarded` + `consumed` + the sum of `dropped` + `held`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets received from ports.
    pub received: u64,
    /// Packets of which at least one copy was given to a port.
    pub forwarded: u64,
    /// Packets that were sent to the controller only.
    pub consumed: u64,
    /// Received packets that completed on the fast-forwarding path.
    pub fast: u64,
    /// Received packets that a record of the express path forwarded.
    pub express: u64,
    /// Received packets that the stateless forwarder sent or dropped.
    pub stateless: u64,
    /// Number of times that a low-latency packet waited for earlier packets of its flow.
    pub held_back: u64,
    /// Packets waiting in the switch.
    pub held: u64,
    /// Packets of which no copy was sent.
    pub dropped: DropCounts,
    /// Copies given to ports.
    pub copies: u64,
    /// Dropped copies of packets that count as forwarded or consumed, and copies dropped after their packet
    /// was counted.
    pub copies_dropped: DropCounts,
}

impl Totals {
    /// Returns the number of packets and copies that were dropped for a reason.
    #[must_use]
    pub fn dropped_in_all(&self, reason: DropReason) -> u64 {
        self.dropped.of(reason) + self.copies_dropped.of(reason)
    }
}
