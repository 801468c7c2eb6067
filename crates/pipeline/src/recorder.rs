// SPDX-License-Identifier: Apache-2.0
//! The recorder: an instrument that records the processing of packets selected by a filter, for `shunt trace
//! --live`.
//!
//! It allocates all its memory when it is created. While no recorder is installed, bursts run code that is
//! compiled without recording.

use crate::probe::{Leaving, Probe, Via};
use crate::slab::PacketSlot;
use arrayvec::ArrayVec;
use dataplane::trace_record::RECORD_BYTES;
use dataplane::{BurstCounters, CacheWait, FoundBy, TraceCopy, TraceHit, TraceRecord, Usage};
use flow::{EntryId, Nanos, Outcome, PacketFilter, PortNo, RuleVersion, TableId};
use frame::Frame;
use rtrb::Producer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wire::digest::fnv1a;

/// Maximum number of packets being recorded at the same time: a burst and 32 packets that wait.
const RECORDS: usize = 64;

/// Name of the recorder's usage counter.
pub const RECORDER: &str = "recorder";

/// Marks a slot whose packet is not being recorded.
const NOBODY: u8 = u8::MAX;

/// A record of a packet that has not left yet.
#[derive(Debug)]
struct Open {
    record: TraceRecord,
    /// Time at which the packet's burst began, in ns.
    began: Nanos,
}

/// Recorder of one worker, used on the worker's thread only.
#[derive(Debug)]
pub struct Recorder {
    filter: PacketFilter,
    ring: Producer<TraceRecord>,
    /// Number of packets that remain to be recorded.
    left: u64,
    /// Number of selected packets that were not recorded for lack of space, on arrival or when they left.
    lost: Arc<AtomicU64>,
    clock: Option<fn() -> Nanos>,
    began: Nanos,
    version: RuleVersion,
    /// Role of the packets of the current burst in the port cache.
    waited: Option<CacheWait>,
    /// For each slot: index of its packet's record, or [`NOBODY`].
    slots: Box<[u8]>,
    records: Box<[Open]>,
    /// Indices of unused records.
    free: ArrayVec<u8, RECORDS>,
}

impl Recorder {
    /// Creates a recorder for `worker` that records at most `count` packets into `ring`.
    ///
    /// If the ring is full or too many packets are being recorded, `lost` counts the selected packets that
    /// are not recorded.
    #[must_use]
    pub fn new(
        worker: u16,
        filter: PacketFilter,
        count: u64,
        ring: Producer<TraceRecord>,
        lost: Arc<AtomicU64>,
        clock: Option<fn() -> Nanos>,
    ) -> Self {
        let records = (0..RECORDS).map(|_| Open { record: empty(worker), began: Nanos(0) }).collect();
        let slots = vec![NOBODY; 1 << u16::BITS].into_boxed_slice();
        let free = (0..RECORDS as u8).collect();
        Self {
            filter,
            ring,
            left: count,
            lost,
            clock,
            began: Nanos(0),
            version: RuleVersion(0),
            waited: None,
            slots,
            records,
            free,
        }
    }

    /// Returns whether the next burst must run with the recorder. `version` is the version of the rules that
    /// forward the burst.
    pub fn listens(&mut self, version: RuleVersion) -> bool {
        self.version = version;
        self.began = self.now();
        self.left > 0 || !self.free.is_full()
    }

    /// Returns the number of packets being recorded, and its limit.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage::of(RECORDER, RECORDS - self.free.len(), RECORDS)
    }

    /// Counts a selected packet that is not recorded.
    fn lose(&self) {
        self.lost.store(self.lost.load(Relaxed) + 1, Relaxed);
    }

    fn now(&self) -> Nanos {
        self.clock.map_or(Nanos(0), |clock| clock())
    }

    /// Returns the open record of the packet in a slot.
    fn open(&mut self, slot: PacketSlot) -> Option<&mut Open> {
        self.records.get_mut(usize::from(*self.slots.get(slot.index())?))
    }

    fn record(&mut self, slot: PacketSlot) -> Option<&mut TraceRecord> {
        self.open(slot).map(|open| &mut open.record)
    }
}

impl Probe for Recorder {
    fn arrives(&mut self, slot: PacketSlot, frame: &Frame) {
        if self.left == 0 || !self.filter.accepts(PortNo(frame.meta.in_port), frame.bytes()) {
            return;
        }
        let (Some(number), Some(place)) = (self.free.pop(), self.slots.get_mut(slot.index())) else {
            return self.lose();
        };
        *place = number;
        self.left -= 1;
        let (version, began, waited) = (self.version, self.began, self.waited);
        let Some(open) = self.open(slot) else { return };
        open.began = began;
        let record = &mut open.record;
        let bytes = frame.bytes();
        record.version = version;
        record.waited = waited;
        record.in_port = PortNo(frame.meta.in_port);
        record.sequence = frame.meta.sequence;
        record.len = bytes.len() as u32;
        record.bytes.clear();
        record.bytes.extend(bytes.iter().copied().take(RECORD_BYTES));
        record.offloaded = frame.meta.checksum.is_some() || frame.meta.gso.is_some();
        record.hits.clear();
        record.copies.clear();
        (record.lookups, record.made, record.missed) = (0, 0, None);
        (record.fast, record.express) = (false, false);
    }

    fn released(&mut self, waited: Option<CacheWait>) {
        self.waited = waited;
    }

    fn looked_up(&mut self, slot: PacketSlot, table: TableId, by: FoundBy, entry: EntryId, _: usize) {
        if self.open(slot).is_none() {
            return;
        }
        let now = self.now();
        if let Some(Open { record, began }) = self.open(slot) {
            let entry = (entry != EntryId::NONE).then_some(entry);
            record.lookups += 1;
            let after_ns = now.saturating_sub(*began);
            // Lookups beyond the array's capacity are counted but not stored.
            let _ = record.hits.try_push(TraceHit { table, by, entry, after_ns });
        }
    }

    fn lut_missed(&mut self, slot: PacketSlot, table: TableId) {
        if let Some(record) = self.record(slot) {
            record.missed = Some(table);
        }
    }

    fn leaving(&mut self, slot: PacketSlot, leaving: &Leaving<'_>) {
        if let Some(record) = self.record(slot) {
            record.scarce = leaving.scarce;
            leaving.copies(|port, frame| {
                record.made += 1;
                let bytes = frame.bytes();
                // Copies beyond the array's capacity are counted but not stored.
                let _ =
                    record.copies.try_push(TraceCopy { port, len: bytes.len() as u32, digest: fnv1a(bytes) });
            });
        }
    }

    fn returned(&mut self, slot: PacketSlot) {
        let number = self.slots.get_mut(slot.index()).map(|number| std::mem::replace(number, NOBODY));
        if let Some(number) = number.filter(|number| *number != NOBODY) {
            let _ = self.free.try_push(number);
            self.left += 1;
        }
    }

    fn left(&mut self, slot: PacketSlot, outcome: Outcome, via: Via, burst_counters: &BurstCounters) {
        if self.open(slot).is_none() {
            return;
        }
        let now = self.now();
        let Some(Open { record, began }) = self.open(slot) else { return };
        (record.fast, record.express) = (via == Via::FastPath, via == Via::Express);
        (record.outcome, record.left_ns) = (outcome, now.saturating_sub(*began));
        record.scarce |= burst_counters.scarce;
        let record = record.clone();
        let number = std::mem::replace(&mut self.slots[slot.index()], NOBODY);
        // The index was taken from this list, so the list has space for it.
        let _ = self.free.try_push(number);
        if self.ring.push(record).is_err() {
            self.lose();
            // This packet was not recorded, so another one may be recorded instead.
            self.left += 1;
        }
    }
}

/// Returns an empty record. Every field is written before the record is sent.
fn empty(worker: u16) -> TraceRecord {
    TraceRecord {
        worker,
        version: RuleVersion(0),
        in_port: PortNo(0),
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
        express: false,
        waited: None,
        scarce: false,
        left_ns: Nanos(0),
    }
}
