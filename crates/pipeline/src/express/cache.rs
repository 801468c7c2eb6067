// SPDX-License-Identifier: Apache-2.0
//! The path records of one worker, and the reader that builds their keys.

use super::budget::{RecordBudget, RemovableRecords};
use super::bypass::{Bypass, BypassLimits};
use super::changes::{PathChanges, RecentChanges};
use super::look_up::BurstKeys;
use super::path::{Path, RecordedPath};
use super::paths::{HitsToCount, HotPath, HotPaths, Paths};
use super::previous::Predecessor;
use super::records::{ExpressSize, LINE_WORDS, Learned, NewRecord, Records};
use crate::context::{BurstContext, HitCounters};
use crate::port_batches::PortBatches;
use crate::slab::{BURST, PacketSlot};
use actions::{Cell, Cells};
use arrayvec::ArrayVec;
use backlog::Window;
use dataplane::ExpressCounters;
use flow::Nanos;
use frame::Frame;
use keys::{ExpressKey, ExpressPlan, KeyFit, KeyReader, Permitted, Templates};
use std::sync::Arc;

/// Records that occupy one or two cache lines each.
#[derive(Debug)]
pub(super) enum Store {
    OneLine(Records<LINE_WORDS>),
    TwoLines(Records<{ 2 * LINE_WORDS }>),
}

impl Store {
    fn size(&self) -> ExpressSize {
        match self {
            Self::OneLine(records) => records.size(),
            Self::TwoLines(records) => records.size(),
        }
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::OneLine(records) => records.is_empty(),
            Self::TwoLines(records) => records.is_empty(),
        }
    }

    /// Returns the effect and the hits of the path at index `place`.
    #[inline]
    fn path(&self, place: u32) -> Option<&HotPath> {
        match self {
            Self::OneLine(records) => records.path(place),
            Self::TwoLines(records) => records.path(place),
        }
    }

    /// Returns whether a record of this key displaces no other record.
    pub fn has_room(&self, hash: u64, key: &ExpressKey) -> bool {
        match self {
            Self::OneLine(records) => records.has_room(hash, key),
            Self::TwoLines(records) => records.has_room(hash, key),
        }
    }

    /// If packets that hit the record at a place must wait for a fence, returns this fence.
    pub fn waits_for(&mut self, place: u32, window: Window) -> Option<u32> {
        match self {
            Self::OneLine(records) => records.waits_for(place, window),
            Self::TwoLines(records) => records.waits_for(place, window),
        }
    }
}

impl RemovableRecords for Store {
    fn has(&self, hash: u64, key: &ExpressKey) -> bool {
        match self {
            Self::OneLine(records) => records.has(hash, key),
            Self::TwoLines(records) => records.has(hash, key),
        }
    }

    fn remove(&mut self, place: u32) {
        match self {
            Self::OneLine(records) => records.remove(place),
            Self::TwoLines(records) => records.remove(place),
        }
    }

    fn idle_since(&self, place: u32, window: Window) -> Option<Nanos> {
        match self {
            Self::OneLine(records) => records.idle_since(place, window),
            Self::TwoLines(records) => records.idle_since(place, window),
        }
    }
}

impl HotPaths for Store {
    #[inline]
    fn hot_path(&mut self, place: u32) -> &mut HotPath {
        match self {
            Self::OneLine(records) => records.hot_path(place),
            Self::TwoLines(records) => records.hot_path(place),
        }
    }

    #[inline]
    fn prefetch(&self, place: usize) {
        match self {
            Self::OneLine(records) => HotPaths::prefetch(records, place),
            Self::TwoLines(records) => HotPaths::prefetch(records, place),
        }
    }
}

/// A packet without a record, and the index of its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missed {
    pub slot: PacketSlot,
    pub at: usize,
}

/// Express path of one worker for one plan of keys. The control thread allocates it.
#[derive(Debug)]
pub struct Express {
    pub(super) reader: KeyReader,
    /// Greatest changes that entries may make: after them, keys still determine the bits that later tables
    /// examine.
    pub(super) permitted: Permitted,
    pub(super) templates: Templates,
    pub(super) store: Store,
    /// Paths of the records.
    pub(super) paths: Paths,
    /// The last changes of the rules. Records of older versions are compared with them.
    pub(super) changes: RecentChanges,
    pub(super) bypass: Bypass,
    /// Keys of the burst that was looked up last, and the places of their records.
    pub(super) burst: BurstKeys,
    /// Whether packets with equal keys may have different values in a LUT, because the LUT still examines
    /// bits that no rule examines any longer.
    pub(crate) has_coarse_keys: bool,
    /// Whether any path learned so far rewrites packets that leave directly.
    pub(super) rewrites: bool,
    /// Whether any such path edits the TTL.
    pub(super) edits: bool,
    /// Frames of the burst that leave directly.
    pub(super) batches: PortBatches,
    /// Temporary array for the frames that stay.
    pub(super) rest: ArrayVec<Frame, BURST>,
    /// Index in the burst of each frame that stays.
    pub(super) kept: ArrayVec<usize, BURST>,
    /// Kept frames whose record is not known yet, one bit for each index.
    pub(super) unsettled: u32,
    /// Whether the burst was looked up.
    pub(super) asks: bool,
    /// Whether the packets of the burst may use their records. If not, the burst is a sample of the bypassed
    /// packets.
    pub(super) acts: bool,
    /// Packets of the last burst without a record.
    pub(super) missed: ArrayVec<Missed, BURST>,
    /// Packets of the last burst that have left and cannot have a record, one bit for each index.
    pub(super) negative: u32,
    pub(super) counters: Arc<ExpressCounters>,
    /// Earlier records whose paths these records inherit.
    pub(super) predecessor: Predecessor,
    /// Records of an earlier plan that are still in use.
    pub(super) previous: Option<Box<Self>>,
    /// Whether the burst was looked up in the previous records.
    pub(super) takes_over: bool,
    /// Whether the time of each hit is noted, because a port may have only a limited number of records.
    pub(super) notes_use: bool,
}

impl Express {
    /// Creates an empty express path with space for at least `records` records. Returns `None` if the plan's
    /// keys are too long for a record, or if `records` is 0.
    #[must_use]
    pub fn new(plan: &ExpressPlan, records: usize, counters: Arc<ExpressCounters>) -> Option<Self> {
        let reader = plan.reader().filter(|_| records > 0)?.clone();
        let store = match plan.fit() {
            KeyFit::OneLine => Store::OneLine(Records::new(records)),
            KeyFit::TwoLines => Store::TwoLines(Records::new(records)),
            KeyFit::TooLong => return None,
        };
        Some(Self {
            reader,
            permitted: plan.permitted(),
            templates: Templates::default(),
            paths: Paths::new(store.size().records),
            store,
            changes: RecentChanges::new(plan.version(), plan.key_words()),
            bypass: Bypass::default(),
            burst: BurstKeys::new(),
            has_coarse_keys: false,
            rewrites: false,
            edits: false,
            batches: PortBatches::new(),
            rest: ArrayVec::new(),
            kept: ArrayVec::new(),
            unsettled: 0,
            asks: false,
            acts: false,
            missed: ArrayVec::new(),
            negative: 0,
            counters,
            predecessor: Predecessor::None,
            previous: None,
            takes_over: false,
            notes_use: false,
        })
    }

    /// Returns the number of records for which [`Self::new`] makes space.
    #[must_use]
    pub fn places(records: usize) -> usize {
        Records::<LINE_WORDS>::places(records)
    }

    /// Sets the limits that decide when the path is bypassed. Without this call, they are
    /// [`BypassLimits::USUAL`].
    #[must_use]
    pub fn with_bypass(mut self, limits: BypassLimits) -> Self {
        self.bypass = Bypass::new(limits);
        self
    }

    /// Returns the number of records and the memory that they use with their paths.
    #[must_use]
    pub fn size(&self) -> ExpressSize {
        let ExpressSize { records, bytes } = self.store.size();
        ExpressSize { records, bytes: bytes + self.paths.bytes() }
    }

    /// Returns the earliest possible time of a hit that is not yet added to the counters of its entries, or
    /// [`Nanos::MAX`] if all hits are counted.
    #[inline]
    pub(crate) fn counted_until(&self) -> Nanos {
        self.paths.counted_until()
    }

    /// Counts the hits of at most `most` records. Returns the number of records.
    #[inline]
    pub(crate) fn count_hits(
        &mut self,
        which: HitsToCount,
        most: usize,
        now: Nanos,
        to: HitCounters<'_>,
    ) -> usize {
        let Self { paths, store, .. } = self;
        if paths.has(which, now) { paths.count(store, which, most, now, to) } else { 0 }
    }

    /// Returns the path of the record at a place.
    #[inline]
    pub(super) fn path(&self, place: u32) -> Option<RecordedPath<'_>> {
        self.paths.path(place, self.store.path(place))
    }

    /// Makes every record unusable until a packet with its key has passed the tables and the record is
    /// renewed.
    pub(crate) fn invalidate(&mut self) {
        self.changes.forget_all();
        self.batches.forget();
        self.previous.iter_mut().for_each(|previous| previous.invalidate());
    }

    /// Notes changes of entries. Each record is compared with these changes before the record is used again.
    pub(crate) fn note(&mut self, changes: &PathChanges, cells: &Cells) {
        self.changes.append(changes, cells);
        self.previous.iter_mut().for_each(|previous| previous.note(changes, cells));
    }

    /// Notes that ports have reached their limits of learned addresses, or no longer are at them.
    pub(crate) fn note_full_ports(&mut self) {
        self.changes.note_full_ports();
        self.previous.iter_mut().for_each(|previous| previous.note_full_ports());
    }

    /// Ends the use of these records, before they are replaced.
    pub(crate) fn retire(&self) {
        self.counters.reset_records();
    }

    /// Makes or renews the record of a key, for packets that take this path. Packets that hit the record wait
    /// until the backlog has drained up to `fence`. If `fence` is 0, they do not wait.
    pub(super) fn learn_path<E>(
        &mut self,
        key: &ExpressKey,
        hash: u64,
        path: &Path,
        fence: u32,
        context: &BurstContext<'_, E>,
        budget: &mut RecordBudget<'_>,
    ) {
        let may_learn = budget.make_room(key, hash, context.window, &mut self.store);
        self.counters.removed(std::mem::take(&mut budget.removed));
        if !may_learn {
            return;
        }
        let new = NewRecord { key, hash, fence, version: self.changes.version() };
        let (place, learned) = match &mut self.store {
            Store::OneLine(records) => records.learn(&new, context.window),
            Store::TwoLines(records) => records.learn(&new, context.window),
        };
        if !matches!(learned, Learned::Known | Learned::Refused) {
            let effect = path.effect.with_way(&mut self.batches);
            self.rewrites |= effect.rewrites();
            self.edits |= effect.edits_ttl();
            let stations = [path.stations.source, path.stations.destination];
            let entries = path.hops.list().entries().chain(stations);
            entries.filter_map(|entry| context.cells.get(entry)).for_each(Cell::set_recorded);
            self.paths.set(&mut self.store, place, &Path { effect, ..*path }, context.hit_counters());
            if learned != Learned::Renewed && budget.add(place) {
                self.store.hot_path(place).touch(context.now);
                self.notes_use = true;
            }
        }
        match learned {
            Learned::Known => {}
            Learned::Renewed => self.counters.renewed(1),
            Learned::New => {
                self.counters.learned(1);
                self.counters.records(1);
            }
            Learned::Displaced => {
                self.counters.learned(1);
                self.counters.displaced(1);
            }
            Learned::Refused => self.counters.refused(1),
        }
    }
}
