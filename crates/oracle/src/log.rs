// SPDX-License-Identifier: Apache-2.0
//! Records of a running case: the order of each worker's steps, operations, and sent frames.

use super::coverage::ChangeCounts;
use super::room::Room;
use dataplane::{
    BurstCounters, DataPlane, EntryCounters, Event, FoundBy, GroupCounters, MacSeen, MeterCounters,
    PortCounters, PortQueue, StormEvent, TableCounters, Totals,
};
use flow::{
    DropReason, EgressQueue, EntryId, GroupId, MeterId, MirrorSelection, Nanos, Operation, Outcome,
    PacketInReason, PortNo, RuleVersion, TableId,
};
use frame::Frame;
use model::FlowRemoved;
use pipeline::{PacketSlot, Probe, Via};
use reference::{ExaminedBits, Unfinished};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use worker::WorkerSet;

/// Log entry of a worker: a processed packet or an applied operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The worker processed packet `sequence` of its queue at `port`.
    Packet { port: PortNo, sequence: u64 },
    /// The operation of this version was applied.
    Applied(RuleVersion),
    /// A full backlog refused the packet. `table` is the table for which it waited, or `None` if its lookups
    /// were finished.
    Refused { port: PortNo, sequence: u64, table: Option<TableId>, reason: DropReason },
    /// The worker began to process a packet, which returned to the port cache and is processed later.
    Returned,
}

/// Virtual time of an event, and its position among all events of the case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    pub at: Nanos,
    pub place: u64,
}

impl Moment {
    /// Returns the next moment of the case that runs on the current thread.
    pub fn next(at: Nanos) -> Self {
        thread_local!(static PLACES: Cell<u64> = const { Cell::new(0) });
        Self { at, place: PLACES.replace(PLACES.get() + 1) }
    }
}

/// A packet as a worker identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Walker {
    /// Packet `sequence` of the worker's queue at `port`.
    Arrived { port: PortNo, sequence: u64 },
    /// Packet-out in the operation of this version.
    Injected(RuleVersion),
}

/// A lookup, and the moment at which its entry was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lookup {
    pub walker: Walker,
    pub table: TableId,
    /// Method by which the entry was found.
    pub by: FoundBy,
    /// Entry that was found; `EntryId::NONE` if none.
    pub entry: EntryId,
    /// Length of the packet in bytes.
    pub bytes: usize,
    /// Version of the rules in the worker.
    pub version: RuleVersion,
    pub moment: Moment,
}

/// A packet that has left its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub walker: Walker,
    pub outcome: Outcome,
    /// Whether the packet stayed on the fast-forwarding path.
    pub fast: bool,
    /// Table whose LUT had no record of the packet's value, if the packet left the path there.
    pub missed: Option<TableId>,
    pub moment: Moment,
}

/// Probe that logs the order of a worker's steps.
#[derive(Debug, Default)]
pub(super) struct OrderLog {
    pub entries: Vec<Entry>,
    /// Moment of each log entry.
    pub moments: Vec<Moment>,
    pub lookups: Vec<Lookup>,
    /// Packets whose action sets were executed, in order.
    pub action_sets: Vec<(Walker, Moment)>,
    /// Packets that have left the worker, in order.
    pub outcomes: Vec<Left>,
    /// Version applied last.
    version: RuleVersion,
    /// Virtual time of the poll iteration.
    now: Nanos,
    /// Packet in each slot of the worker.
    slots: BTreeMap<PacketSlot, Walker>,
    /// For each slot, the table whose LUT had no record of the packet's value.
    missed: BTreeMap<PacketSlot, TableId>,
    /// Lookups in this poll iteration.
    looked_up: usize,
}

/// Maximum number of lookups in one poll iteration. A packet that never leaves the tables would otherwise
/// fill the memory with log entries.
const LOOKUPS_PER_TURN: usize = 1_000_000;

impl OrderLog {
    /// Starts a poll iteration.
    pub fn begin(&mut self, now: Nanos) {
        self.now = now;
        self.looked_up = 0;
    }

    /// Returns the packet in a slot. Packet-outs have no slot.
    fn walker(&self, slot: PacketSlot) -> Walker {
        self.slots.get(&slot).copied().unwrap_or(Walker::Injected(self.version))
    }

    fn log(&mut self, entry: Entry) {
        self.entries.push(entry);
        self.moments.push(Moment::next(self.now));
    }
}

impl Probe for OrderLog {
    fn packet(&mut self, port: PortNo, sequence: u64) {
        self.log(Entry::Packet { port, sequence });
    }

    fn arrives(&mut self, slot: PacketSlot, frame: &Frame) {
        let (port, sequence) = (PortNo(frame.meta.in_port), frame.meta.sequence);
        self.slots.insert(slot, Walker::Arrived { port, sequence });
    }

    fn looked_up(&mut self, slot: PacketSlot, table: TableId, by: FoundBy, entry: EntryId, bytes: usize) {
        self.looked_up += 1;
        assert!(
            self.looked_up <= LOOKUPS_PER_TURN,
            "a packet does not leave the tables; it is now in table {table}"
        );
        let walker = self.walker(slot);
        let (version, moment) = (self.version, Moment::next(self.now));
        self.lookups.push(Lookup { walker, table, by, entry, bytes, version, moment });
    }

    fn finishing(&mut self, slot: PacketSlot) {
        let walker = self.walker(slot);
        self.action_sets.push((walker, Moment::next(self.now)));
    }

    fn lut_missed(&mut self, slot: PacketSlot, table: TableId) {
        self.missed.insert(slot, table);
    }

    fn left(&mut self, slot: PacketSlot, outcome: Outcome, via: Via, _: &BurstCounters) {
        let walker = self.slots.remove(&slot).unwrap_or(Walker::Injected(self.version));
        let (missed, moment) = (self.missed.remove(&slot), Moment::next(self.now));
        let fast = matches!(via, Via::FastPath | Via::Express);
        self.outcomes.push(Left { walker, outcome, fast, missed, moment });
    }

    fn returned(&mut self, slot: PacketSlot) {
        self.missed.remove(&slot);
        let Some(walker) = self.slots.remove(&slot) else { return };
        self.lookups.retain(|lookup| lookup.walker != walker);
        let Walker::Arrived { port, sequence } = walker else { return };
        let packet = Entry::Packet { port, sequence };
        if let Some(entry) = self.entries.iter_mut().rfind(|entry| **entry == packet) {
            *entry = Entry::Returned;
        }
    }

    fn refused(&mut self, frame: &Frame, table: Option<TableId>, reason: DropReason) {
        let (port, sequence) = (PortNo(frame.meta.in_port), frame.meta.sequence);
        self.log(Entry::Refused { port, sequence, table, reason });
    }

    fn applied(&mut self, version: RuleVersion) {
        if version != self.version {
            self.version = version;
            self.log(Entry::Applied(version));
        }
    }
}

/// A packet-in as reported by the workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reported {
    pub table: TableId,
    pub entry: EntryId,
    pub reason: PacketInReason,
    pub max_len: u16,
    pub in_port: PortNo,
    pub metadata: u64,
    pub tunnel_id: u64,
    pub bytes: Vec<u8>,
}

/// Data plane that records all operations and events of the workers.
pub(super) struct Recorder {
    pub plane: WorkerSet,
    pub operations: Vec<Operation>,
    pub reported: Vec<Reported>,
    pub learned: Vec<MacSeen>,
    /// Packets that exceeded a storm limit which closes their port.
    pub storms: Vec<StormEvent>,
    /// Bits that LUTs and express keys examine from each operation to the next one. Element 0 holds the bits
    /// before the first operation.
    pub lut_bits: Vec<ExaminedBits>,
}

impl Recorder {
    pub fn new(plane: WorkerSet) -> Self {
        let lut_bits = vec![ExaminedBits::default()];
        Self {
            plane,
            operations: Vec::new(),
            reported: Vec::new(),
            learned: Vec::new(),
            storms: Vec::new(),
            lut_bits,
        }
    }

    /// Records the bits that LUTs and express keys have examined since the last operation.
    fn note_lut_bits(&mut self) {
        if let Some(bits) = self.lut_bits.last_mut() {
            self.plane.lut_examined().for_each(|(field, mask)| bits.add(field, mask));
            self.plane.express_examined().for_each(|(field, mask)| bits.add(field, mask));
        }
    }

    /// Returns the engine that serves a table.
    pub fn engine(&self, table: TableId) -> &'static str {
        self.plane.engine(table).0
    }
}

impl DataPlane for Recorder {
    fn submit(&mut self, operation: Operation) -> RuleVersion {
        self.operations.push(operation.clone());
        let version = self.plane.submit(operation);
        assert_eq!(
            version,
            RuleVersion(self.operations.len() as u64),
            "the version is the number of operations"
        );
        self.lut_bits.push(ExaminedBits::default());
        self.note_lut_bits();
        version
    }

    fn tick(&mut self, now: Nanos) {
        self.plane.tick(now);
        self.note_lut_bits();
    }

    fn applied(&mut self) -> RuleVersion {
        self.plane.applied()
    }

    fn counted_until(&mut self) -> Nanos {
        self.plane.counted_until()
    }

    fn parked(&self) -> usize {
        self.plane.parked()
    }

    fn entry_counters(&mut self, id: EntryId) -> EntryCounters {
        self.plane.entry_counters(id)
    }

    fn release(&mut self, id: EntryId) {
        self.plane.release(id);
    }

    fn table_counters(&mut self, table: TableId) -> TableCounters {
        self.plane.table_counters(table)
    }

    fn group_counters(&mut self, id: GroupId) -> Option<GroupCounters> {
        self.plane.group_counters(id)
    }

    fn meter_counters(&mut self, id: MeterId) -> Option<MeterCounters> {
        self.plane.meter_counters(id)
    }

    fn port_counters(&mut self, port: PortNo) -> Option<PortCounters> {
        self.plane.port_counters(port)
    }

    fn queues(&mut self, port: PortNo) -> Vec<PortQueue> {
        self.plane.queues(port)
    }

    fn totals(&mut self) -> Totals {
        self.plane.totals()
    }

    fn next_event(&mut self) -> Option<Event> {
        let event = self.plane.next_event()?;
        match &event {
            Event::PacketIn(report) => self.reported.push(Reported {
                table: report.table,
                entry: report.entry,
                reason: report.reason,
                max_len: report.max_len,
                in_port: PortNo(report.frame.meta.in_port),
                metadata: report.metadata,
                tunnel_id: report.tunnel_id,
                bytes: report.frame.bytes().to_vec(),
            }),
            Event::Learn(learn) => self.learned.push(*learn),
            Event::Storm(storm) => self.storms.push(*storm),
            Event::MacRefused(_) | Event::Searcher(_) => {}
        }
        Some(event)
    }

    fn recycle(&mut self, frame: Frame) {
        self.plane.recycle(frame);
    }
}

/// A packet that the driver sent to a port.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub port: PortNo,
    /// Work that the sender left to the device.
    pub unfinished: Unfinished,
    pub worker: usize,
    pub sequence: u64,
    /// Number of the flow within the packet's queue.
    pub flow: u64,
    pub bytes: Vec<u8>,
    /// Highest version whose barrier had been answered when the packet was sent to the port.
    pub acknowledged: RuleVersion,
}

/// Bit that marks the flow number of a packet-out. Each packet-out is a separate flow.
const INJECTED: u64 = 1 << 40;

impl Arrival {
    /// Returns the flow number of the packet-out with arrival number `number`.
    pub fn injected_flow(number: usize) -> u64 {
        INJECTED | number as u64
    }

    /// Returns whether the packet is a packet-out, which does not arrive at a receive queue.
    pub fn is_injected(&self) -> bool {
        self.flow >= INJECTED
    }
}

/// Length in bytes of the tag at the end of a packet, which identifies the packet.
pub(super) const TAG_BYTES: usize = 8;

/// Returns the first half of a tag, derived from the second half to detect a partly overwritten tag.
fn mark(number: u32) -> u32 {
    (number ^ 0x5ac3_96e1).wrapping_mul(0x9e37_79b1).rotate_left(15)
}

pub(super) fn tag_of(number: usize) -> [u8; TAG_BYTES] {
    let number = number as u32;
    (u64::from(mark(number)) << 32 | u64::from(number)).to_be_bytes()
}

/// Returns the arrival that a packet's tag identifies, or `None` if the tag was overwritten. Padding may
/// follow the tag.
pub(super) fn tag(bytes: &[u8]) -> Option<usize> {
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    (0..=zeros).find_map(|padding| tag_at_end(&bytes[..bytes.len() - padding]))
}

fn tag_at_end(bytes: &[u8]) -> Option<usize> {
    let tail: [u8; TAG_BYTES] = bytes.get(bytes.len().checked_sub(TAG_BYTES)?..)?.try_into().ok()?;
    let tag = u64::from_be_bytes(tail);
    let number = tag as u32;
    ((tag >> 32) as u32 == mark(number)).then_some(number as usize)
}

/// Origin of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Request of the driver.
    Request,
    /// The model itself, because of timeouts, learned addresses or learned marks.
    Poll,
}

/// Submission of an operation.
#[derive(Clone, Debug)]
pub(super) struct Submission {
    /// Length of each worker's log when the operation was submitted.
    pub lengths: Vec<usize>,
    pub moment: Moment,
    pub origin: Origin,
}

/// Poll of the control thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    /// Moment at which the poll began.
    pub moment: Moment,
    /// Number of operations submitted before the end of the poll.
    pub operations: usize,
    /// Time before which all hits were counted.
    pub counted_until: Nanos,
}

/// Closing of a port by a storm limit.
#[derive(Clone, Debug)]
pub(super) struct Closing {
    pub port: PortNo,
    /// Versions of the operations that the control thread submitted in its turn.
    pub versions: RangeInclusive<usize>,
}

/// Record of a completed case.
#[derive(Default)]
pub(super) struct Record {
    pub arrivals: Vec<Arrival>,
    pub operations: Vec<Operation>,
    /// Arrival numbers of packet-outs, by the version that sends them.
    pub injected: BTreeMap<RuleVersion, usize>,
    /// Submission of each operation.
    pub submitted: Vec<Submission>,
    pub controls: Vec<Control>,
    pub logs: Vec<Vec<Entry>>,
    /// Moment of each log entry.
    pub moments: Vec<Vec<Moment>>,
    /// Lookups of each worker.
    pub hits: Vec<Vec<Lookup>>,
    /// Packets whose action sets each worker executed, in order.
    pub action_sets: Vec<Vec<(Walker, Moment)>>,
    /// Packets that have left each worker, in order.
    pub outcomes: Vec<Vec<Left>>,
    /// Ageing time of learned addresses.
    pub mac_ageing: Nanos,
    pub room: Room,
    /// Egress queues of each port. A port without queues sends frames in order.
    pub egress: Vec<EgressQueue>,
    /// Frames sent by each port's queues, in order.
    pub sent: Vec<(PortNo, usize, Vec<Vec<u8>>)>,
    /// Frames that a mirror copies, if there is one.
    pub mirror: Option<MirrorSelection>,
    /// Copies of the mirror, in order.
    pub mirrored: Vec<Vec<u8>>,
    pub reported: Vec<Reported>,
    pub learned: Vec<MacSeen>,
    /// Packets that exceeded a storm limit which closes their port.
    pub storms: Vec<StormEvent>,
    /// Ports that storm limits closed.
    pub closings: Vec<Closing>,
    /// Number of closed ports that opened again.
    pub reopened: usize,
    /// Bits that LUTs and express keys examine from each operation to the next one.
    pub lut_bits: Vec<ExaminedBits>,
    /// Flow-removed messages in order.
    pub removed: Vec<FlowRemoved>,
    /// Number of frames too short to be received, by port.
    pub runts: BTreeMap<PortNo, u64>,
    /// Final counters of ports, egress queues, entries, tables, and totals.
    pub ports: Vec<(PortNo, PortCounters)>,
    pub queues: Vec<(PortNo, Vec<PortQueue>)>,
    pub entries: Vec<(EntryId, EntryCounters)>,
    pub tables: Vec<(TableId, TableCounters)>,
    pub groups: Vec<(GroupId, GroupCounters)>,
    pub meters: Vec<(MeterId, MeterCounters)>,
    pub totals: Totals,
    pub updates: usize,
    pub live_updates: usize,
    pub expired: usize,
    /// Work that each frame of `sent` left to its port's device.
    pub unfinished: Vec<Vec<Unfinished>>,
    /// Number of frames that waited in an egress queue because of its maximum rate.
    pub rate_held: usize,
    /// Number of changes made by the driver, by kind.
    pub changes: ChangeCounts,
    /// Number of packets whose simulated trace was compared.
    pub traced: usize,
    /// Number of packets whose recorded processing was compared with the rules.
    pub judged: usize,
    /// Lookups per engine.
    pub lookups: BTreeMap<&'static str, u64>,
    pub luts: dataplane::LutFigures,
    /// Counters of the express path.
    pub express: dataplane::ExpressFigures,
    /// Hits of path records, if the keys need no header at the end of the case, but distant slices. Else 0.
    pub distant_hits: u64,
    /// Counters of the port caches.
    pub misses: port_cache::MissFigures,
    /// Packet-outs with the buffer ID of a packet-in for whose answer packets wait.
    pub answered: usize,
}

/// Maximum virtual time between two steps of the driver.
pub(super) const STEP_NS_MAX: Nanos = Nanos(40_000_000);
