// SPDX-License-Identifier: Apache-2.0
//! The recorder: an instrument that notes the ways of packets which a filter picks, for `shunt trace --live`. It has all
//! its room from the start; without one, bursts are forwarded by code that knows nothing of it.

use crate::counters::Tally;
use crate::filter::Filter;
use crate::level::Level;
use crate::probe::{By, Leaving, Probe};
use arrayvec::ArrayVec;
use flow::{EntryId, Nanos, Outcome, PortNo};
use frame::Frame;
use rtrb::Producer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tables::NONE;

/// Bytes of a packet that are recorded: all of a frame of common length.
pub const RECORD_BYTES: usize = 2_048;

/// Lookups of a packet that are recorded.
pub const RECORD_HITS: usize = 32;

/// Copies of a packet that are recorded.
pub const RECORD_COPIES: usize = 32;

/// A packet's lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The table.
    pub table: u8,
    /// How it came to the entry.
    pub by: By,
    /// The entry; none for a miss.
    pub entry: Option<EntryId>,
    /// Since the packet's burst began.
    pub after_ns: Nanos,
}

/// A copy that was given to a port, or to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The port; none: the controller.
    pub port: Option<PortNo>,
    /// Its bytes.
    pub len: u32,
    /// [`digest`] of them.
    pub digest: u64,
}

/// What a worker did with one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The worker.
    pub worker: u16,
    /// The version of the rules that judged it.
    pub version: u64,
    /// The port it came in by.
    pub in_port: PortNo,
    /// Number of this arrival on its receive queue.
    pub sequence: u64,
    /// Bytes of the frame.
    pub len: u32,
    /// Its first bytes, as received.
    pub bytes: ArrayVec<u8, RECORD_BYTES>,
    /// Its sender left a checksum or the segmentation to the hardware: the bytes are not those of the wire.
    pub offloaded: bool,
    /// Its lookups, in order, the first [`RECORD_HITS`].
    pub hits: ArrayVec<Hit, RECORD_HITS>,
    /// All its lookups.
    pub lookups: u32,
    /// The table at which a LUT did not know its value, so that it left the fast-forwarding path.
    pub missed: Option<u8>,
    /// Copies made, in order, the first [`RECORD_COPIES`]. One of them may still have found no room.
    pub copies: ArrayVec<Copied, RECORD_COPIES>,
    /// All copies made.
    pub made: u32,
    /// What became of it.
    pub outcome: Outcome,
    /// It went all the way over the fast-forwarding path.
    pub fast: bool,
    /// Packets or copies of its burst were dropped before it for lack of room, perhaps its own.
    pub scarce: bool,
    /// Since its burst began, when it left. 0 where there is no clock, as all times.
    pub left_ns: Nanos,
}

impl Record {
    fn empty(worker: u16) -> Self {
        Self {
            worker,
            version: 0,
            in_port: 0,
            sequence: 0,
            len: 0,
            bytes: ArrayVec::new(),
            offloaded: false,
            hits: ArrayVec::new(),
            lookups: 0,
            missed: None,
            copies: ArrayVec::new(),
            made: 0,
            outcome: Outcome::Consumed,
            fast: false,
            scarce: false,
            left_ns: 0,
        }
    }
}

/// Packets that are recorded at once: a burst, and such that wait.
const RECORDS: usize = 64;

/// Name of their level.
pub const RECORDER: &str = "recorder";

/// No record.
const NOBODY: u8 = u8::MAX;

/// A record in the making.
#[derive(Debug)]
struct Open {
    record: Record,
    /// When its packet's burst began.
    began: Nanos,
}

/// What a worker needs to record.
#[derive(Debug)]
pub struct Recorder {
    filter: Filter,
    ring: Producer<Record>,
    /// Packets still to be recorded.
    left: u64,
    /// Packets that were to be recorded and found no room, when they came or when they left.
    lost: Arc<AtomicU64>,
    clock: Option<fn() -> Nanos>,
    began: Nanos,
    version: u64,
    /// For each slot the record of the packet in it.
    slots: Box<[u8]>,
    records: Box<[Open]>,
    /// Records that no packet has.
    free: ArrayVec<u8, RECORDS>,
}

impl Recorder {
    /// One for `worker` that records `count` packets at most, into `ring`; those for which there is no room, there or
    /// among those that are made at once, count in `lost`.
    #[must_use]
    pub fn new(
        worker: u16,
        filter: Filter,
        count: u64,
        ring: Producer<Record>,
        lost: Arc<AtomicU64>,
        clock: Option<fn() -> Nanos>,
    ) -> Self {
        let records = (0..RECORDS).map(|_| Open { record: Record::empty(worker), began: 0 }).collect();
        let slots = vec![NOBODY; 1 << u16::BITS].into_boxed_slice();
        let free = (0..RECORDS as u8).collect();
        Self { filter, ring, left: count, lost, clock, began: 0, version: 0, slots, records, free }
    }

    /// Whether the next burst is listened to, which is judged by this version of the rules.
    pub fn listens(&mut self, version: u64) -> bool {
        self.version = version;
        self.began = self.now();
        self.left > 0 || !self.free.is_full()
    }

    /// Packets of which a record is made now, and how many there may be.
    #[must_use]
    pub fn level(&self) -> Level {
        Level::of(RECORDER, RECORDS - self.free.len(), RECORDS)
    }

    /// A packet that was to be recorded is not.
    fn lose(&self) {
        self.lost.store(self.lost.load(Relaxed) + 1, Relaxed);
    }

    fn now(&self) -> Nanos {
        self.clock.map_or(0, |clock| clock())
    }

    /// The record of the packet in a slot.
    fn open(&mut self, slot: usize) -> Option<&mut Open> {
        self.records.get_mut(usize::from(*self.slots.get(slot)?))
    }

    fn record(&mut self, slot: usize) -> Option<&mut Record> {
        self.open(slot).map(|open| &mut open.record)
    }
}

impl Probe for Recorder {
    fn arrives(&mut self, slot: usize, frame: &Frame) {
        if self.left == 0 || !self.filter.accepts(frame.meta.in_port, frame.bytes()) {
            return;
        }
        let (Some(number), Some(place)) = (self.free.pop(), self.slots.get_mut(slot)) else {
            return self.lose();
        };
        *place = number;
        self.left -= 1;
        let (version, began) = (self.version, self.began);
        let Some(open) = self.open(slot) else { return };
        open.began = began;
        let record = &mut open.record;
        let bytes = frame.bytes();
        record.version = version;
        record.in_port = frame.meta.in_port;
        record.sequence = frame.meta.sequence;
        record.len = bytes.len() as u32;
        record.bytes.clear();
        record.bytes.extend(bytes.iter().copied().take(RECORD_BYTES));
        record.offloaded = frame.meta.checksum.is_some() || frame.meta.gso.is_some();
        record.hits.clear();
        record.copies.clear();
        (record.lookups, record.made, record.missed, record.fast) = (0, 0, None, false);
    }

    fn looked_up(&mut self, slot: usize, table: u8, by: By, entry: EntryId, _: usize) {
        if self.open(slot).is_none() {
            return;
        }
        let now = self.now();
        if let Some(Open { record, began }) = self.open(slot) {
            let entry = (entry != NONE).then_some(entry);
            record.lookups += 1;
            let after_ns = now.saturating_sub(*began);
            // What does not fit is told of by the count.
            let _ = record.hits.try_push(Hit { table, by, entry, after_ns });
        }
    }

    fn lut_missed(&mut self, slot: usize, table: u8) {
        if let Some(record) = self.record(slot) {
            record.missed = Some(table);
        }
    }

    fn leaving(&mut self, slot: usize, leaving: &Leaving<'_>) {
        if let Some(record) = self.record(slot) {
            leaving.copies(|port, frame| {
                record.made += 1;
                let bytes = frame.bytes();
                // As above.
                let _ =
                    record.copies.try_push(Copied { port, len: bytes.len() as u32, digest: digest(bytes) });
            });
        }
    }

    fn left(&mut self, slot: usize, outcome: Outcome, fast: bool, tally: &Tally) {
        if self.open(slot).is_none() {
            return;
        }
        let now = self.now();
        let Some(Open { record, began }) = self.open(slot) else { return };
        (record.outcome, record.fast, record.left_ns) = (outcome, fast, now.saturating_sub(*began));
        record.scarce = tally.is_scarce();
        let record = record.clone();
        let number = std::mem::replace(&mut self.slots[slot], NOBODY);
        // There is room: it was taken from there.
        let _ = self.free.try_push(number);
        if self.ring.push(record).is_err() {
            self.lose();
            // A later one takes its place.
            self.left += 1;
        }
    }
}

/// A number that tells frames apart: FNV-1a over their bytes.
#[must_use]
pub fn digest(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
