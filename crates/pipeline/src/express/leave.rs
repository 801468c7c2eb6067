// SPDX-License-Identifier: Apache-2.0
//! Sends packets with a direct path: notes a packet's hit next to the path, rewrites the packet, and moves it
//! to the batch of its output port.
//!
//! Most packets have a plain record: it has the present version, no fence, and a hit noted in this period, so
//! it needs no further work. These packets leave in the loop of [`Express::leave_plain`], which also compares
//! their keys with the records. For the other packets, a slower search considers all cases, and they leave by
//! [`Express::leave_found`]. All packets of a flow in a burst find the same record and leave in the same
//! loop, so they keep their order.

use super::cache::{Express, Store};
use super::look_up::BurstKeys;
use super::paths::{HotPath, HotPaths, Paths};
use super::records::Records;
use crate::context::BurstContext;
use crate::port_batches::PortBatches;
use crate::probe::{Leaving, Probe};
use crate::slab::{BURST, PacketSlot};
use actions::TtlSpot;
use arrayvec::ArrayVec;
use backlog::Window;
use dataplane::FoundBy;
use engines::NONE;
use flow::{Nanos, PortNo};
use frame::{Frame, prefetch, take_each};
use keys::{HopList, LONG_WORDS, PathHop, SHORT_WORDS, VECTOR_WORDS};
use wire::Depth;

impl Express {
    /// Sends frames whose record is plain and whose path is direct. All other frames stay, and their indices
    /// are added to `kept`. Frames without a plain record are unsettled.
    pub(super) fn leave_plain<E, P: Probe>(
        &mut self,
        context: &BurstContext<'_, E>,
        frames: &mut Vec<Frame>,
        slots: &[PacketSlot],
        lanes_on: bool,
        probe: &mut P,
    ) {
        let (version, words) = (self.changes.version(), self.reader.hashed_words());
        let locates = self.rewrites && (self.edits || self.reader.depth() < Depth::L3);
        let kinds = Kinds { lanes_on, rewrites: self.rewrites, locates };
        let Self { store, paths, burst, batches, kept, rest, unsettled, .. } = self;
        let run = Departure { burst, paths, batches, kept, rest, slots, now: context.now, probe };
        *unsettled = match (store, words) {
            (Store::OneLine(records), 1) => run.plain::<_, 1>(records, version, frames, kinds),
            (Store::OneLine(records), 2) => run.plain::<_, 2>(records, version, frames, kinds),
            (Store::OneLine(records), 3 | 4) => run.plain::<_, 4>(records, version, frames, kinds),
            (Store::OneLine(records), _) => run.plain::<_, SHORT_WORDS>(records, version, frames, kinds),
            (Store::TwoLines(records), ..=VECTOR_WORDS) => {
                run.plain::<_, VECTOR_WORDS>(records, version, frames, kinds)
            }
            (Store::TwoLines(records), _) => run.plain::<_, LONG_WORDS>(records, version, frames, kinds),
        };
        put_back(frames, rest);
    }

    /// Sends unsettled frames whose record was found and whose path is direct. All other frames stay.
    #[inline(never)]
    pub(super) fn leave_found<E, P: Probe>(
        &mut self,
        context: &BurstContext<'_, E>,
        frames: &mut Vec<Frame>,
        slots: &[PacketSlot],
        lanes_on: bool,
        probe: &mut P,
    ) {
        let indices = std::mem::take(&mut self.kept);
        let Self { store, paths, burst, batches, kept, rest, unsettled, .. } = self;
        let run = Departure { burst, paths, batches, kept, rest, slots, now: context.now, probe };
        let records =
            FoundRecords { store, indices: &indices, unsettled: *unsettled, window: context.window };
        if lanes_on {
            run.send::<true, true, _>(frames, indices.len(), records);
        } else {
            run.send::<false, true, _>(frames, indices.len(), records);
        }
        put_back(frames, rest);
    }
}

/// What the packets of a burst need to leave directly.
struct Departure<'a, P> {
    burst: &'a BurstKeys,
    paths: &'a mut Paths,
    batches: &'a mut PortBatches,
    /// Indices of the frames that stay.
    kept: &'a mut ArrayVec<usize, BURST>,
    /// The frames that stay.
    rest: &'a mut ArrayVec<Frame, BURST>,
    slots: &'a [PacketSlot],
    now: Nanos,
    probe: &'a mut P,
}

/// Properties of a burst. Each combination of properties has a separate loop.
#[derive(Clone, Copy)]
struct Kinds {
    /// Whether normal frames wait.
    lanes_on: bool,
    /// Whether paths may rewrite packets.
    rewrites: bool,
    /// Whether headers must be located to decrement a TTL, because keys do not depend on them or the TTL is
    /// edited.
    locates: bool,
}

/// Records of the frames that may leave.
trait DepartureRecords {
    /// Whether packets leave directly if their path edits the TTL.
    const EDITS: bool;

    /// Returns the index in the burst of a frame.
    fn index(&self, number: usize) -> usize;

    /// Returns the path of a packet's record, if the packet need not wait. `at` is the packet's index in the
    /// burst.
    fn path(&mut self, burst: &BurstKeys, at: usize) -> Option<&mut HotPath>;

    /// Returns the place of a frame's TTL, or [`TtlSpot::UNKNOWN`] if the frame is not IP.
    fn ttl(burst: &BurstKeys, at: usize, frame: &Frame) -> TtlSpot;

    /// Returns the paths of all records.
    fn all(&mut self) -> &mut impl HotPaths;
}

/// Records that are compared with the packets' keys. Only plain records are used. If `LOCATES`, headers are
/// located to decrement or edit a TTL.
struct PlainRecords<'a, const WORDS: usize, const KEY: usize, const LOCATES: bool> {
    records: &'a mut Records<WORDS>,
    stamp: u64,
}

impl<const WORDS: usize, const KEY: usize, const LOCATES: bool> DepartureRecords
    for PlainRecords<'_, WORDS, KEY, LOCATES>
{
    const EDITS: bool = LOCATES;

    #[inline(always)]
    fn index(&self, number: usize) -> usize {
        number
    }

    #[inline(always)]
    fn path(&mut self, burst: &BurstKeys, at: usize) -> Option<&mut HotPath> {
        let at = at % BURST;
        self.records.plain_path::<KEY>(burst.places[at], &burst.keys[at], self.stamp)
    }

    #[inline(always)]
    fn ttl(burst: &BurstKeys, at: usize, frame: &Frame) -> TtlSpot {
        if LOCATES { burst.located_ttl(at, frame) } else { burst.ttl(at) }
    }

    fn all(&mut self) -> &mut impl HotPaths {
        self.records
    }
}

/// Records that a previous search has found.
struct FoundRecords<'a> {
    store: &'a mut Store,
    /// Index in the burst of each frame.
    indices: &'a [usize],
    /// Frames that may leave, one bit for each index.
    unsettled: u32,
    window: Window,
}

impl DepartureRecords for FoundRecords<'_> {
    const EDITS: bool = true;

    fn index(&self, number: usize) -> usize {
        self.indices[number]
    }

    fn path(&mut self, burst: &BurstKeys, at: usize) -> Option<&mut HotPath> {
        let place = burst.places[at];
        let is_found = place != NONE && self.unsettled >> at & 1 != 0;
        let may_leave = is_found && self.store.waits_for(place, self.window).is_none();
        may_leave.then(|| self.store.hot_path(place))
    }

    fn ttl(burst: &BurstKeys, at: usize, frame: &Frame) -> TtlSpot {
        burst.located_ttl(at, frame)
    }

    fn all(&mut self) -> &mut impl HotPaths {
        self.store
    }
}

impl<P: Probe> Departure<'_, P> {
    /// Sends the frames of a burst that have a plain record of this version and a direct path. `kinds`
    /// selects the loop. Returns the frames without a plain record, one bit for each index.
    #[inline]
    fn plain<const WORDS: usize, const KEY: usize>(
        self,
        records: &mut Records<WORDS>,
        version: u64,
        frames: &mut Vec<Frame>,
        kinds: Kinds,
    ) -> u32 {
        let stamp = records.current_stamp(version);
        if kinds.locates {
            let records = PlainRecords::<WORDS, KEY, true> { records, stamp };
            return if kinds.lanes_on {
                self.send_burst::<true, true>(frames, records)
            } else {
                self.send_burst::<false, true>(frames, records)
            };
        }
        let records = PlainRecords::<WORDS, KEY, false> { records, stamp };
        match (kinds.lanes_on, kinds.rewrites) {
            (false, false) => self.send_burst::<false, false>(frames, records),
            (false, true) => self.send_burst::<false, true>(frames, records),
            (true, false) => self.send_burst::<true, false>(frames, records),
            (true, true) => self.send_burst::<true, true>(frames, records),
        }
    }

    #[inline(never)]
    fn send_burst<const LANES: bool, const REWRITES: bool>(
        self,
        frames: &mut Vec<Frame>,
        records: impl DepartureRecords,
    ) -> u32 {
        self.send::<LANES, REWRITES, _>(frames, BURST, records)
    }

    /// Sends those of the first `count` frames that have a direct path. If `LANES`, normal frames stay.
    /// Without `REWRITES`, frames that would have to be rewritten stay, too. Returns the frames without a
    /// path, one bit for each index.
    #[inline(always)]
    fn send<const LANES: bool, const REWRITES: bool, R: DepartureRecords>(
        self,
        frames: &mut Vec<Frame>,
        count: usize,
        mut records: R,
    ) -> u32 {
        let Self { burst, paths, batches, kept, rest, slots, now, probe } = self;
        let Paths { entries, more, uncounted } = paths;
        // A function call in the loop would make the compiler save registers. Packets that need a call are
        // marked here, one bit each.
        let (mut unlisted, mut unsettled) = (0u32, 0u32);
        // After a frame that stays although its path edits the TTL, later frames with such paths stay, too.
        // They could be of the same flow.
        let mut edits_stay = false;
        take_each(frames, count, |number, mut frame| {
            let at = records.index(number);
            let slot = if P::LISTENS { slots.get(at).copied().unwrap_or_default() } else { PacketSlot(0) };
            let mut arrives = |frame: &Frame| {
                if P::LISTENS {
                    probe.arrives(slot, frame);
                    probe.packet(PortNo(frame.meta.in_port), frame.meta.sequence);
                    let place = burst.places[at] as usize;
                    let hops = HopList { first: &entries[place].first, more: &more[place] };
                    for PathHop { table, entry } in hops.iter() {
                        probe.looked_up(slot, table, FoundBy::Express, entry, frame.len());
                    }
                }
            };
            let mut keep = |frame| {
                kept.push(at);
                rest.push(frame);
            };
            let Some(path) = records.path(burst, at) else {
                unsettled |= 1 << (at % BURST);
                return keep(frame);
            };
            let effect = &path.effect;
            if effect.leaves_unchanged::<LANES>() {
                arrives(&frame);
            } else {
                let stays = R::EDITS && edits_stay && effect.edits_ttl();
                if !REWRITES || stays || !effect.leaves(LANES, R::EDITS) {
                    return keep(frame);
                }
                let spot = effect.ttl_spot(&frame, R::EDITS, || R::ttl(burst, at, &frame));
                if P::LISTENS && effect.may_rewrite(&frame, spot) {
                    arrives(&frame);
                }
                if !effect.rewrite(&mut frame, spot, R::EDITS) {
                    edits_stay |= R::EDITS && effect.edits_ttl();
                    return keep(frame);
                }
            }
            if P::LISTENS {
                frame.meta.lane = effect.lane;
                probe.leaving(slot, &Leaving::only(Some((effect.output, &frame))));
            }
            let way = effect.way;
            let is_unlisted = path.note_hit(frame.len(), now);
            unlisted |= u32::from(is_unlisted) << (at % BURST);
            batches.add::<P>(frame, slot, way);
        });
        while unlisted != 0 {
            let place = burst.places[unlisted.trailing_zeros() as usize % BURST];
            let path = records.all().hot_path(place);
            uncounted.list(path, place, now);
            unlisted &= unlisted - 1;
        }
        kept.iter().for_each(|at| prefetch::element(entries, burst.places[*at] as usize));
        unsettled
    }
}

/// Inserts the frames in `rest` at the front of `frames`. Frames beyond one burst, if there are any, follow
/// them and wait for the next call.
pub(super) fn put_back(frames: &mut Vec<Frame>, rest: &mut ArrayVec<Frame, BURST>) {
    if !rest.is_empty() {
        frames.splice(..0, rest.drain(..));
    }
}
