// SPDX-License-Identifier: Apache-2.0
//! What the model asks of a data plane: workers, hardware, or the reference interpreter.

use flow::{EgressQueue, EntryFlags, EntryId, Nanos, Operation, PortNo};
use frame::Frame;
use pipeline::Event;

/// A data plane: takes operations in order, answers with counters and events. Nothing here blocks.
pub trait DataPlane {
    /// Puts an operation behind all earlier ones and returns its version: 1 for the first, then one more each time.
    fn submit(&mut self, operation: Operation) -> u64;

    /// The highest version that is in force everywhere: no packet is judged by an older one any more.
    fn applied(&mut self) -> u64;

    /// Lets the data plane see to what it does by itself, of which controllers see nothing. Called now and then.
    fn tick(&mut self, _now: Nanos) {}

    /// Operations taken by `submit` that wait for room on the way to the workers. The caller stops reading requests
    /// while this is above its limit.
    fn parked(&self) -> usize;

    /// An entry's counters, summed over the workers. Readable from its adding until its release.
    fn entry_counters(&mut self, id: EntryId) -> EntryCounters;

    /// Forgets an entry whose removal is in force: its id may be used again, its counters are gone.
    fn release(&mut self, id: EntryId);

    /// A table's counters.
    fn table_counters(&mut self, table: u8) -> TableCounters;

    /// A group's counters since it was added or replaced; none for a group that is not there.
    fn group_counters(&mut self, id: u32) -> Option<GroupCounters>;

    /// A meter's counters since it was added or replaced; none for a meter that is not there.
    fn meter_counters(&mut self, id: u32) -> Option<MeterCounters>;

    /// A port's counters; none for a port that the data plane does not have.
    fn port_counters(&mut self, port: PortNo) -> Option<PortCounters>;

    /// A port's egress queues, by number; none for a port that has none.
    fn queues(&mut self, _port: PortNo) -> Vec<PortQueue> {
        Vec::new()
    }

    /// Counters of all packets.
    fn totals(&mut self) -> Totals;

    /// The next report of the workers.
    fn next_event(&mut self) -> Option<Event>;

    /// Takes a packet-in's frame back.
    fn recycle(&mut self, frame: Frame);
}

/// Counters of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryCounters {
    /// Packets that hit it.
    pub packets: u64,
    /// Their bytes, as long as they were when they hit it.
    pub bytes: u64,
    /// When it was last hit; 0: never.
    pub used_ns: Nanos,
}

impl EntryCounters {
    /// Packets and bytes as they are told of an entry: what its flags say is not counted is all ones (OpenFlow 1.3, 5.8).
    #[must_use]
    pub fn told(&self, flags: EntryFlags) -> (u64, u64) {
        let unless = |off: bool, count| if off { u64::MAX } else { count };
        (unless(flags.no_packet_counts, self.packets), unless(flags.no_byte_counts, self.bytes))
    }
}

/// Counters of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCounters {
    /// Packets looked up.
    pub lookups: u64,
    /// Packets that hit an entry.
    pub matches: u64,
}

/// Counters of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupCounters {
    /// Packets and bytes that reached it.
    pub total: (u64, u64),
    /// Packets and bytes that each bucket was used for.
    pub buckets: Vec<(u64, u64)>,
}

/// Counters of a meter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeterCounters {
    /// Packets and bytes that reached it.
    pub total: (u64, u64),
    /// Packets and bytes that each band was applied to.
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
    /// Packets that the device, the kernel or the driver lost on the way in.
    pub rx_dropped: u64,
    /// Packets that were given to the port and not sent.
    pub tx_dropped: u64,
    /// Losses by the driver's names for them, zeros left out.
    pub by_name: Vec<(&'static str, u64)>,
}

/// An egress queue of a port, and its counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortQueue {
    /// How it is set.
    pub settings: EgressQueue,
    /// Packets that left it.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Packets for which it had no room.
    pub dropped: u64,
    /// Packets that wait in it.
    pub waiting: usize,
}

/// Counters of all packets: received = forwarded + consumed + the sum of dropped + held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets taken from ports.
    pub received: u64,
    /// Packets of which at least one copy went to a port.
    pub forwarded: u64,
    /// Packets that went to the controller only.
    pub consumed: u64,
    /// Of the received: those that went all the way over the fast-forwarding path.
    pub fast: u64,
    /// Of the received: those that the stateless lane sent or dropped.
    pub stateless: u64,
    /// Times that a low-latency packet was held back for earlier ones of its flow.
    pub held_back: u64,
    /// Packets waiting in the switch.
    pub held: u64,
    /// Packets of which no copy went anywhere, by `flow::DropReason` (index: its place in `DropReason::ALL`).
    pub dropped: Vec<u64>,
    /// Copies given to ports: at least `forwarded`.
    pub copies: u64,
    /// Copies that failed while the packet as a whole was forwarded or consumed, or after it was counted, by reason.
    pub copies_dropped: Vec<u64>,
}
