// SPDX-License-Identifier: Apache-2.0
//! The interface between the model and a data plane: workers, hardware, or the reference interpreter.

use flow::{EgressQueue, EntryFlags, EntryId, Nanos, Operation, PortNo};
use frame::Frame;
use pipeline::Event;

/// A data plane: applies operations in order and reports counters and events. The control thread calls it; no
/// method blocks.
pub trait DataPlane {
    /// Queues an operation after all earlier ones. Returns its version: 1 for the first operation, then
    /// counting up.
    fn submit(&mut self, operation: Operation) -> u64;

    /// Returns the highest version that is in force on all workers: no packet is processed by an older one.
    fn applied(&mut self) -> u64;

    /// Runs background work that controllers do not see. `Model::poll` calls it on each poll.
    fn tick(&mut self, _now: Nanos) {}

    /// Returns the number of submitted operations that wait for space in the queues to the workers. The
    /// caller stops reading requests while the number is above its limit.
    fn parked(&self) -> usize;

    /// Returns an entry's counters, summed over the workers. Valid from the entry's addition until its
    /// release.
    fn entry_counters(&mut self, id: EntryId) -> EntryCounters;

    /// Releases an entry whose removal is in force. Its counters are lost and its ID may be reused.
    fn release(&mut self, id: EntryId);

    /// Returns a table's counters.
    fn table_counters(&mut self, table: u8) -> TableCounters;

    /// Returns a group's counters since it was added or replaced, or `None` if the group does not exist.
    fn group_counters(&mut self, id: u32) -> Option<GroupCounters>;

    /// Returns a meter's counters since it was added or replaced, or `None` if the meter does not exist.
    fn meter_counters(&mut self, id: u32) -> Option<MeterCounters>;

    /// Returns a port's counters, or `None` if the data plane does not have the port.
    fn port_counters(&mut self, port: PortNo) -> Option<PortCounters>;

    /// Returns a port's egress queues in order of their numbers; empty if the port has none.
    fn queues(&mut self, _port: PortNo) -> Vec<PortQueue> {
        Vec::new()
    }

    /// Returns the counters of all packets.
    fn totals(&mut self) -> Totals;

    /// Takes the next event that a worker reported.
    fn next_event(&mut self) -> Option<Event>;

    /// Takes back the frame of a packet-in for reuse.
    fn recycle(&mut self, frame: Frame);
}

/// Counters of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryCounters {
    /// Packets that hit the entry.
    pub packets: u64,
    /// Bytes of these packets, each with its length at the time of the hit.
    pub bytes: u64,
    /// Time of the last hit; 0: never.
    pub used_ns: Nanos,
}

impl EntryCounters {
    /// Returns packets and bytes as reported to controllers. A count that the entry's flags switch off is all
    /// ones (OpenFlow 1.3, 5.8).
    #[must_use]
    pub fn reported(&self, flags: EntryFlags) -> (u64, u64) {
        let unless = |off: bool, count| if off { u64::MAX } else { count };
        (unless(flags.no_packet_counts, self.packets), unless(flags.no_byte_counts, self.bytes))
    }
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
    pub total: (u64, u64),
    /// Packets and bytes that each bucket processed.
    pub buckets: Vec<(u64, u64)>,
}

/// Counters of a meter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeterCounters {
    /// Packets and bytes that reached the meter.
    pub total: (u64, u64),
    /// Packets and bytes that each band applied to.
    pub bands: Vec<(u64, u64)>,
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
    /// Losses by the driver's counter names, without counters that are zero.
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

/// Counters of all packets: received = forwarded + consumed + the sum of dropped + held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets received from ports.
    pub received: u64,
    /// Packets of which at least one copy was given to a port.
    pub forwarded: u64,
    /// Packets that went to the controller only.
    pub consumed: u64,
    /// Received packets that completed on the fast-forwarding path.
    pub fast: u64,
    /// Received packets that the stateless forwarder sent or dropped.
    pub stateless: u64,
    /// Number of times that a low-latency packet was held until earlier packets of its flow had left.
    pub held_back: u64,
    /// Packets waiting in the switch.
    pub held: u64,
    /// Packets of which no copy was sent, by `flow::DropReason` (index: its position in `DropReason::ALL`).
    pub dropped: Vec<u64>,
    /// Copies given to ports: at least `forwarded`.
    pub copies: u64,
    /// Copies that were dropped although the packet counts as forwarded or consumed, or after it was counted,
    /// by reason.
    pub copies_dropped: Vec<u64>,
}
