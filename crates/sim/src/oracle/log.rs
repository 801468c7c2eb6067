// SPDX-License-Identifier: Apache-2.0
//! What is written down while a case runs: the order each worker took, operations, and what came out.

use super::coverage::ChangeCounts;
use super::room::Room;
use flow::{DropReason, EgressQueue, EntryId, Nanos, Operation, Outcome, PacketInReason, PortNo};
use frame::Frame;
use model::{
    DataPlane, EntryCounters, FlowRemoved, GroupCounters, MeterCounters, PortCounters, PortQueue,
    TableCounters, Totals,
};
use pipeline::{By, Event, Learn, Probe, Tally};
use reference::Unfinished;
use std::cell::Cell;
use std::collections::BTreeMap;
use worker::WorkerSet;

/// A worker's order: which packet it judged, which operation it put in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Arrival number `sequence` of this worker's queue at `port`.
    Packet { port: PortNo, sequence: u64 },
    /// The operation of this version.
    Applied(u64),
    /// There was no room for a packet that waited for this table, or was through.
    Refused { port: PortNo, sequence: u64, table: Option<u8>, reason: DropReason },
}

/// When something happened: the virtual time, and its place among everything that happened in the case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    pub at: Nanos,
    pub place: u64,
}

impl Moment {
    /// The next moment of the case that this thread runs.
    pub fn next(at: Nanos) -> Self {
        thread_local!(static PLACES: Cell<u64> = const { Cell::new(0) });
        Self { at, place: PLACES.replace(PLACES.get() + 1) }
    }
}

/// A packet as a worker knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Walker {
    /// Arrival number `sequence` of the worker's queue at `port`.
    Arrived { port: PortNo, sequence: u64 },
    /// The controller's packet of the operation of this version.
    Injected(u64),
}

/// A lookup: the instructions of the entry found ran at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lookup {
    pub walker: Walker,
    pub table: u8,
    /// How it was found.
    pub by: By,
    /// What was found; `tables::NONE` for nothing.
    pub entry: EntryId,
    /// The packet's length.
    pub bytes: usize,
    /// The rules of this version were in force.
    pub version: u64,
    pub moment: Moment,
}

/// A packet that has left its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub walker: Walker,
    pub outcome: Outcome,
    /// Whether it went all the way over the fast-forwarding path.
    pub fast: bool,
    /// The table whose LUT did not know the packet's value.
    pub missed: Option<u8>,
    pub moment: Moment,
}

/// The instrument that logs the order.
#[derive(Debug, Default)]
pub(super) struct OrderLog {
    pub entries: Vec<Entry>,
    /// When each entry was logged.
    pub moments: Vec<Moment>,
    pub lookups: Vec<Lookup>,
    /// The packets that have left, in order.
    pub outcomes: Vec<Left>,
    /// The last that came into force.
    version: u64,
    /// The virtual time of the turn.
    now: Nanos,
    /// The packets under way, by slot.
    slots: BTreeMap<usize, Walker>,
    /// For each slot, the table whose LUT did not know its packet's value.
    missed: BTreeMap<usize, u8>,
    /// Lookups in this turn.
    looked_up: usize,
}

/// More lookups than all packets of one turn can need. A packet that never leaves the tables would make the log grow
/// until the machine's memory is used up.
const LOOKUPS_PER_TURN: usize = 1_000_000;

impl OrderLog {
    /// A turn begins.
    pub fn begin(&mut self, now: Nanos) {
        self.now = now;
        self.looked_up = 0;
    }

    fn log(&mut self, entry: Entry) {
        self.entries.push(entry);
        self.moments.push(Moment::next(self.now));
    }
}

impl Probe for OrderLog {
    fn packet(&mut self, port: u32, sequence: u64) {
        self.log(Entry::Packet { port, sequence });
    }

    fn arrives(&mut self, slot: usize, frame: &Frame) {
        let (port, sequence) = (frame.meta.in_port, frame.meta.sequence);
        self.slots.insert(slot, Walker::Arrived { port, sequence });
    }

    fn looked_up(&mut self, slot: usize, table: u8, by: By, entry: EntryId, bytes: usize) {
        self.looked_up += 1;
        assert!(
            self.looked_up <= LOOKUPS_PER_TURN,
            "a packet goes from table to table for ever, now {table}"
        );
        let walker = self.slots.get(&slot).copied().unwrap_or(Walker::Injected(self.version));
        let (version, moment) = (self.version, Moment::next(self.now));
        self.lookups.push(Lookup { walker, table, by, entry, bytes, version, moment });
    }

    fn lut_missed(&mut self, slot: usize, table: u8) {
        self.missed.insert(slot, table);
    }

    fn left(&mut self, slot: usize, outcome: Outcome, fast: bool, _: &Tally) {
        let walker = self.slots.remove(&slot).unwrap_or(Walker::Injected(self.version));
        let (missed, moment) = (self.missed.remove(&slot), Moment::next(self.now));
        self.outcomes.push(Left { walker, outcome, fast, missed, moment });
    }

    fn refused(&mut self, frame: &Frame, table: Option<u8>, reason: DropReason) {
        let (port, sequence) = (frame.meta.in_port, frame.meta.sequence);
        self.log(Entry::Refused { port, sequence, table, reason });
    }

    fn applied(&mut self, version: u64) {
        if version != self.version {
            self.version = version;
            self.log(Entry::Applied(version));
        }
    }
}

/// A packet-in as the workers reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reported {
    pub table: u8,
    pub entry: EntryId,
    pub reason: PacketInReason,
    pub max_len: u16,
    pub in_port: PortNo,
    pub metadata: u64,
    pub tunnel_id: u64,
    pub bytes: Vec<u8>,
}

/// The workers as data plane, with everything that passes written down.
pub(super) struct Recorder {
    pub plane: WorkerSet,
    pub operations: Vec<Operation>,
    pub reported: Vec<Reported>,
    pub learned: Vec<Learn>,
}

impl Recorder {
    pub fn new(plane: WorkerSet) -> Self {
        Self { plane, operations: Vec::new(), reported: Vec::new(), learned: Vec::new() }
    }

    /// The engine that serves a table.
    pub fn engine(&self, table: u8) -> &'static str {
        self.plane.engine(table).0
    }
}

impl DataPlane for Recorder {
    fn submit(&mut self, operation: Operation) -> u64 {
        self.operations.push(operation.clone());
        let version = self.plane.submit(operation);
        assert_eq!(version, self.operations.len() as u64, "versions count operations");
        version
    }

    fn tick(&mut self, now: Nanos) {
        self.plane.tick(now);
    }

    fn applied(&mut self) -> u64 {
        self.plane.applied()
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

    fn table_counters(&mut self, table: u8) -> TableCounters {
        self.plane.table_counters(table)
    }

    fn group_counters(&mut self, id: u32) -> Option<GroupCounters> {
        self.plane.group_counters(id)
    }

    fn meter_counters(&mut self, id: u32) -> Option<MeterCounters> {
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
                in_port: report.frame.meta.in_port,
                metadata: report.metadata,
                tunnel_id: report.tunnel_id,
                bytes: report.frame.bytes().to_vec(),
            }),
            Event::Learn(learn) => self.learned.push(*learn),
        }
        Some(event)
    }

    fn recycle(&mut self, frame: Frame) {
        self.plane.recycle(frame);
    }
}

/// A packet that the driver pushed.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub port: PortNo,
    /// What its sender left to the device.
    pub unfinished: Unfinished,
    pub worker: usize,
    pub sequence: u64,
    /// Packets of one queue with the same number are of one flow.
    pub flow: u64,
    pub bytes: Vec<u8>,
    /// The highest version whose barrier was answered when it was pushed.
    pub acknowledged: u64,
}

/// Set in the flow of a packet that the controller sends: it is a flow of its own.
const INJECTED: u64 = 1 << 40;

impl Arrival {
    /// The flow of packet `number`, which the controller sends.
    pub fn injected_flow(number: usize) -> u64 {
        INJECTED | number as u64
    }

    /// Whether the controller sends the packet: it comes in by no queue of a port.
    pub fn is_injected(&self) -> bool {
        self.flow >= INJECTED
    }
}

/// Bytes at a packet's end that name it: no rule looks at them and no action writes them, but for packets cut short.
pub(super) const TAG_BYTES: usize = 8;

/// The first half of a tag, made from the second so that bytes written over a part of it are not taken for a tag.
fn mark(number: u32) -> u32 {
    (number ^ 0x5ac3_96e1).wrapping_mul(0x9e37_79b1).rotate_left(15)
}

/// The tag of arrival `number`.
pub(super) fn tag_of(number: usize) -> [u8; TAG_BYTES] {
    let number = number as u32;
    (u64::from(mark(number)) << 32 | u64::from(number)).to_be_bytes()
}

/// The arrival that a packet's tag names; none if it was written over. Padding may follow it.
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

/// Who asked for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A request of the driver's.
    Request,
    /// The model itself: timeouts, learned addresses, learned marks.
    Poll,
}

/// How an operation was submitted.
#[derive(Clone, Debug)]
pub(super) struct Submission {
    /// How many entries each worker had logged by then.
    pub lengths: Vec<usize>,
    pub moment: Moment,
    pub origin: Origin,
}

/// A turn of the control thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    /// When it began.
    pub moment: Moment,
    /// Operations submitted by its end.
    pub operations: usize,
}

/// A case that has run.
pub(super) struct Record {
    pub arrivals: Vec<Arrival>,
    pub operations: Vec<Operation>,
    /// Packets of the controller's among the arrivals, by the version that sends them.
    pub injected: BTreeMap<u64, usize>,
    /// For each operation, how it was submitted.
    pub submitted: Vec<Submission>,
    pub controls: Vec<Control>,
    pub logs: Vec<Vec<Entry>>,
    /// When each entry of them was logged.
    pub moments: Vec<Vec<Moment>>,
    /// The lookups of each worker.
    pub hits: Vec<Vec<Lookup>>,
    /// The packets that have left each worker, in order.
    pub outcomes: Vec<Vec<Left>>,
    /// Time after which a learned address is forgotten.
    pub mac_ageing: Nanos,
    pub room: Room,
    /// The egress queues of each port; none: frames leave as they come.
    pub egress: Vec<EgressQueue>,
    /// What came out of each port's queues, in order.
    pub sent: Vec<(PortNo, usize, Vec<Vec<u8>>)>,
    pub reported: Vec<Reported>,
    pub learned: Vec<Learn>,
    /// Flow-removed notices, in order.
    pub removed: Vec<FlowRemoved>,
    /// Frames too short to be received, by port.
    pub runts: BTreeMap<PortNo, u64>,
    /// Counters at the end: ports, their egress queues, entries, tables, totals.
    pub ports: Vec<(PortNo, PortCounters)>,
    pub queues: Vec<(PortNo, Vec<PortQueue>)>,
    pub entries: Vec<(EntryId, EntryCounters)>,
    pub tables: Vec<(u8, TableCounters)>,
    pub groups: Vec<(u32, GroupCounters)>,
    pub meters: Vec<(u32, MeterCounters)>,
    pub totals: Totals,
    pub updates: usize,
    pub live_updates: usize,
    pub expired: usize,
    /// What each frame of `sent` left to its port's device.
    pub unfinished: Vec<Vec<Unfinished>>,
    /// Frames that left an egress queue only after its greatest rate allowed it.
    pub rate_held: usize,
    /// Changes made on purpose, by kind.
    pub changes: ChangeCounts,
    /// Imagined packets compared.
    pub traced: usize,
    /// Packets whose recorded ways were held against the rules.
    pub judged: usize,
    /// Lookups by the engine that served them.
    pub lookups: BTreeMap<&'static str, u64>,
    pub luts: pipeline::LutFigures,
}

/// Virtual time between two steps of the driver at most.
pub(super) const STEP_NS_MAX: Nanos = 40_000_000;
