// SPDX-License-Identifier: Apache-2.0
//! Paths of records, indexed by the record's place, and the hits that are not yet added to the counters of
//! the path's entries.
//!
//! A hit is first counted next to the path's effect, in the cache line after the record ([`super::records`]).
//! The hits are added to the counters of the path's entries and tables later: when the worker is idle, in
//! every round of [`ROUND_NS`] while it is busy, before an operation is applied, and before another path is
//! stored at the place. Each call adds the hits of a limited number of paths, so that no packet waits for
//! long.

use super::path::{Effect, Path, RecordedPath};
use crate::context::HitCounters;
use flow::{EntryId, Nanos};
use frame::prefetch;
use keys::{FirstHops, HopList, MoreHops, NO_MORE, Stations};

/// Minimum interval between the starts of two rounds in nanoseconds. A round counts all hits noted before it
/// began.
const ROUND_NS: Nanos = Nanos(10_000_000);

/// Interval between the starts of two rounds in nanoseconds if few packets hit each path.
const LONG_ROUND_NS: Nanos = Nanos(100_000_000);

/// A round begins before [`LONG_ROUND_NS`] only if at least this number of packets per path has hit the
/// listed paths.
const PACKETS_PER_PATH: u64 = 32;

/// Distance in the list from the current place to the place whose path is prefetched.
const PREFETCH_PLACES: u32 = 8;

/// Distance in the list from the current place to the place whose first counter cell is prefetched.
const PREFETCH_CELLS: u32 = 4;

/// Which hits are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitsToCount {
    /// All hits.
    All,
    /// Hits of a round that has begun or is due.
    Due,
}

/// The effect of a path, and its hits that are not counted yet. It takes one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct HotPath {
    pub effect: Effect,
    /// Whether the path is in the list of paths with hits that are not counted yet.
    listed: bool,
    hits: UncountedHits,
    /// Further packets and bytes, for which `hits` has no space.
    packets: u64,
    bytes: u64,
    /// Time of the last hit.
    used: Nanos,
}

/// The numbers of packets and bytes in one word, so that one addition counts a packet. The lower 40 bits are
/// the number of bytes, enough for 2^24 frames. The sign bit is set if more must be done: the path is not yet
/// in the list of paths with hits, or the number of packets has reached 2^23.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UncountedHits(i64);

impl UncountedHits {
    /// Position of the number of packets.
    const PACKETS_BIT: u32 = 40;
    /// Value of a path that is not in the list and has no hits.
    const UNLISTED: Self = Self(i64::MIN);
    /// Value of a path that is in the list and has no hits.
    const NONE: Self = Self(0);

    /// Returns the hits with another packet of `bytes` bytes.
    #[inline(always)]
    fn with_packet(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add(1 << Self::PACKETS_BIT | bytes as i64))
    }

    /// Returns the numbers of packets and bytes. The path must be in the list.
    fn figures(self) -> (u64, u64) {
        let bits = self.0 as u64;
        (bits >> Self::PACKETS_BIT, bits & ((1 << Self::PACKETS_BIT) - 1))
    }
}

const _: () = assert!(size_of::<HotPath>() == 64);

impl HotPath {
    pub const EMPTY: Self = Self {
        effect: Effect::NONE,
        listed: false,
        hits: UncountedHits::UNLISTED,
        packets: 0,
        bytes: 0,
        used: Nanos(0),
    };

    /// Moves the packets and bytes of `hits` to `self.packets` and `self.bytes`. The path must be in the
    /// list.
    fn spill(&mut self) {
        let (packets, bytes) = self.hits.figures();
        self.packets += packets;
        self.bytes += bytes;
        self.hits = UncountedHits::NONE;
    }

    /// Notes a hit by a packet of `bytes` bytes. Returns whether the place must be [listed](Uncounted::list)
    /// after the burst.
    #[inline(always)]
    pub fn note_hit(&mut self, bytes: usize, now: Nanos) -> bool {
        self.hits = self.hits.with_packet(bytes);
        self.used = now;
        self.hits.0 < 0
    }

    /// Returns the time of the last noted hit.
    pub fn used(&self) -> Nanos {
        self.used
    }

    /// Notes a hit that is counted elsewhere.
    pub fn touch(&mut self, now: Nanos) {
        self.used = now;
    }

    /// Adds the noted hits to the counters of the path's entries and tables.
    fn count(&mut self, hops: HopList<'_>, stations: Stations, to: HitCounters<'_>) {
        if !self.listed {
            return;
        }
        self.spill();
        let (packets, bytes) = (std::mem::take(&mut self.packets), std::mem::take(&mut self.bytes));
        if packets == 0 {
            return;
        }
        for hop in hops.iter() {
            if let Some(cell) = to.cells.get(hop.entry) {
                cell.add_hits(packets, bytes, self.used);
            }
            to.counters.add_table(hop.table, packets, packets);
        }
        // A bridged packet refreshes its source address.
        if stations.source != EntryId::NONE
            && let Some(cell) = to.cells.get(stations.source)
        {
            cell.touch(self.used.max(cell.read().2));
        }
    }
}

/// The effects and hits of paths, by the places of their records.
pub(super) trait HotPaths {
    /// Returns the path at index `place`, which must exist.
    fn hot_path(&mut self, place: u32) -> &mut HotPath;

    /// Prefetches the path at this index.
    fn prefetch(&self, place: usize);
}

/// The entries on which a path depends, except the later entries of a long path.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathEntries {
    pub first: FirstHops,
    pub stations: Stations,
}

impl PathEntries {
    const NONE: Self = Self { first: FirstHops::NONE, stations: Stations::NONE };
}

/// Places of paths with hits that are not counted yet, oldest first. A place is listed at most once.
#[derive(Debug)]
pub(super) struct Uncounted {
    /// A ring. Its length is a power of two, and it has room for every place.
    places: Box<[u32]>,
    /// Position of the oldest place, and the position after the newest place. Both wrap around.
    first: u32,
    end: u32,
    /// Position at which the present round ends.
    round_end: u32,
    /// Time at which the present or the last round began.
    round_begun: Nanos,
    /// Number of packets that have hit paths since `round_begun`.
    packets: u64,
    /// All hits before this time are counted.
    since: Nanos,
}

impl Uncounted {
    fn new(places: usize) -> Self {
        let places = vec![0; places.next_power_of_two()].into_boxed_slice();
        Self { places, first: 0, end: 0, round_end: 0, round_begun: Nanos(0), packets: 0, since: Nanos(0) }
    }

    fn is_empty(&self) -> bool {
        self.first == self.end
    }

    /// Adds the place of a path with hits to the list. If the place is already in the list, makes space for
    /// further hits.
    #[inline(never)]
    pub fn list(&mut self, path: &mut HotPath, place: u32, now: Nanos) {
        if path.listed {
            path.spill();
            return;
        }
        path.listed = true;
        path.hits = UncountedHits(path.hits.0 & i64::MAX);
        if self.is_empty() {
            (self.since, self.round_begun, self.round_end) = (now, now, self.end);
            self.packets = 0;
        }
        let mask = self.places.len() - 1;
        self.places[self.end as usize & mask] = place;
        self.end = self.end.wrapping_add(1);
    }

    /// Notes that packets hit paths in the list.
    pub fn add_packets(&mut self, packets: u64) {
        self.packets += packets;
    }

    /// Returns whether a round is in progress or the next round is due.
    fn is_due(&self, now: Nanos) -> bool {
        if self.first != self.round_end {
            return true;
        }
        let places = u64::from(self.end.wrapping_sub(self.first));
        let is_worth_it = self.packets >= PACKETS_PER_PATH * places;
        let wait = if is_worth_it { ROUND_NS } else { LONG_ROUND_NS };
        places > 0 && now >= self.round_begun.saturating_add(wait)
    }

    /// Returns the place that is `distance` positions after the oldest place in the list.
    #[inline]
    fn ahead(&self, distance: u32) -> Option<usize> {
        let is_listed = distance < self.end.wrapping_sub(self.first);
        let at = self.first.wrapping_add(distance) as usize & (self.places.len() - 1);
        is_listed.then(|| self.places[at] as usize)
    }

    /// Removes and returns the oldest place. The caller must count its hits. Begins a round if none is in
    /// progress.
    fn take(&mut self, now: Nanos) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        if self.first == self.round_end {
            (self.round_begun, self.round_end, self.packets) = (now, self.end, 0);
        }
        let place = self.places[self.first as usize & (self.places.len() - 1)];
        self.first = self.first.wrapping_add(1);
        if self.first == self.round_end {
            self.since = self.round_begun;
        }
        Some(place)
    }
}

/// Entries of the paths, by the places of their records.
#[derive(Debug)]
pub(super) struct Paths {
    pub entries: Box<[PathEntries]>,
    /// Later tables and entries of long paths.
    pub more: Box<[MoreHops]>,
    pub uncounted: Uncounted,
}

impl Paths {
    /// Creates empty paths for `places` records.
    pub fn new(places: usize) -> Self {
        Self {
            entries: vec![PathEntries::NONE; places].into_boxed_slice(),
            more: vec![NO_MORE; places].into_boxed_slice(),
            uncounted: Uncounted::new(places),
        }
    }

    /// Returns the memory of the paths in bytes, without the later entries of long paths.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.entries) + size_of_val(&*self.uncounted.places)
    }

    /// Prefetches the entries on which the path at index `place` depends.
    #[inline(always)]
    pub fn prefetch_entries(&self, place: u32) {
        prefetch::element(&self.entries, place as usize);
    }

    /// Returns the path at index `place`. `hot` contains the effect of this path.
    #[inline(always)]
    pub fn path<'a>(&'a self, place: u32, hot: Option<&'a HotPath>) -> Option<RecordedPath<'a>> {
        let at = place as usize;
        let (entries, more) = (self.entries.get(at)?, self.more.get(at)?);
        let hops = HopList { first: &entries.first, more };
        Some(RecordedPath { hops, stations: entries.stations, effect: &hot?.effect })
    }

    /// Replaces the path at index `place`, after the hits of the previous path have been counted.
    pub fn set(&mut self, hot: &mut impl HotPaths, place: u32, path: &Path, to: HitCounters<'_>) {
        self.count_at(hot, place, to);
        let at = place as usize;
        hot.hot_path(place).effect = path.effect;
        self.entries[at] = PathEntries { first: path.hops.first, stations: path.stations };
        if path.hops.first.has_more() {
            self.more[at] = path.hops.more;
        }
    }

    /// Counts the hits of the path at index `place`.
    fn count_at(&self, hot: &mut impl HotPaths, place: u32, to: HitCounters<'_>) {
        let at = place as usize;
        let PathEntries { first, stations } = &self.entries[at];
        hot.hot_path(place).count(HopList { first, more: &self.more[at] }, *stations, to);
    }

    /// Returns the earliest possible time of a hit that is not counted yet, or [`Nanos::MAX`] if all are
    /// counted.
    pub fn counted_until(&self) -> Nanos {
        if self.uncounted.is_empty() { Nanos::MAX } else { self.uncounted.since }
    }

    /// Returns whether there are hits of this kind that are not counted yet.
    #[inline]
    pub fn has(&self, which: HitsToCount, now: Nanos) -> bool {
        match which {
            HitsToCount::All => !self.uncounted.is_empty(),
            HitsToCount::Due => self.uncounted.is_due(now),
        }
    }

    /// Counts the hits of at most `most` paths. Returns the number of paths.
    #[inline(never)]
    pub fn count(
        &mut self,
        hot: &mut impl HotPaths,
        which: HitsToCount,
        most: usize,
        now: Nanos,
        to: HitCounters<'_>,
    ) -> usize {
        (0..PREFETCH_PLACES).for_each(|distance| self.prefetch_ahead(hot, distance));
        for counted in 0..most {
            if !self.has(which, now) {
                return counted;
            }
            self.prefetch_ahead(hot, PREFETCH_PLACES);
            if let Some(at) = self.uncounted.ahead(PREFETCH_CELLS)
                && let Some(entry) = self.entries[at].first.first_entry()
            {
                to.cells.prefetched(entry);
            }
            let Some(place) = self.uncounted.take(now) else { return counted };
            self.count_at(hot, place, to);
            let path = hot.hot_path(place);
            (path.listed, path.hits) = (false, UncountedHits::UNLISTED);
        }
        most
    }

    #[inline]
    fn prefetch_ahead(&self, hot: &impl HotPaths, distance: u32) {
        if let Some(at) = self.uncounted.ahead(distance) {
            hot.prefetch(at);
            prefetch::element(&self.entries, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actions::{CellPage, Cells};
    use dataplane::Counters;
    use flow::TableId;
    use keys::{Hops, PathHop};
    use std::sync::Arc;

    /// Paths with the cells and counters in which their hits are counted.
    struct Lab {
        hot: Vec<HotPath>,
        paths: Paths,
        cells: Cells,
        counters: Counters,
    }

    impl Lab {
        fn new(places: usize) -> Self {
            let cells = Cells::new(vec![Arc::<CellPage>::default()]);
            let mut paths = Paths::new(places);
            // The positions wrap around during the tests.
            let list = &mut paths.uncounted;
            (list.first, list.end, list.round_end) = (u32::MAX - 2, u32::MAX - 2, u32::MAX - 2);
            Self { hot: vec![HotPath::EMPTY; places], paths, cells, counters: Counters::default() }
        }

        /// Stores a path through table 0 at a place.
        fn set(&mut self, place: u32, entry: u32, source: EntryId) {
            let mut hops = Hops::NONE;
            hops.push(PathHop { table: TableId(0), entry: EntryId(entry) });
            let stations = Stations { source, ..Stations::NONE };
            let to = HitCounters { cells: &self.cells, counters: &self.counters };
            self.paths.set(&mut self.hot, place, &Path { hops, stations, effect: Effect::NONE }, to);
        }

        fn hit(&mut self, place: u32, at: u64) {
            let path = &mut self.hot[place as usize];
            if path.note_hit(100, Nanos(at)) {
                self.paths.uncounted.list(path, place, Nanos(at));
            }
        }

        fn count(&mut self, which: HitsToCount, most: usize, at: u64) {
            let to = HitCounters { cells: &self.cells, counters: &self.counters };
            self.paths.count(&mut self.hot, which, most, Nanos(at), to);
        }

        fn entry(&self, entry: u32) -> (u64, u64, Nanos) {
            self.cells.get(EntryId(entry)).unwrap().read()
        }
    }

    impl HotPaths for Vec<HotPath> {
        fn hot_path(&mut self, place: u32) -> &mut HotPath {
            &mut self[place as usize]
        }

        fn prefetch(&self, _: usize) {}
    }

    #[test]
    fn hits_are_counted_in_entries_tables_and_sources() {
        let mut lab = Lab::new(4);
        lab.set(2, 7, EntryId(9));
        [5, 6, 8].into_iter().for_each(|at| lab.hit(2, at));
        assert_eq!((lab.entry(7), lab.paths.counted_until()), ((0, 0, Nanos(0)), Nanos(5)));
        lab.count(HitsToCount::All, 9, 10);
        assert_eq!((lab.entry(7), lab.paths.counted_until()), ((3, 300, Nanos(8)), Nanos::MAX));
        assert_eq!((lab.entry(9), lab.counters.table(TableId(0))), ((0, 0, Nanos(8)), (3, 3)));
        lab.count(HitsToCount::All, 9, 11);
        assert_eq!(lab.entry(7), (3, 300, Nanos(8)));
    }

    #[test]
    fn an_entry_used_later_keeps_its_time() {
        let mut lab = Lab::new(1);
        lab.set(0, 7, EntryId(9));
        lab.hit(0, 5);
        lab.cells.get(EntryId(7)).unwrap().count(1, 50, Nanos(6));
        lab.cells.get(EntryId(9)).unwrap().touch(Nanos(6));
        lab.count(HitsToCount::All, 9, 10);
        assert_eq!((lab.entry(7), lab.entry(9)), ((2, 150, Nanos(6)), (0, 0, Nanos(6))));
    }

    #[test]
    fn hits_that_exceed_their_word_are_counted() {
        let mut lab = Lab::new(2);
        lab.set(1, 7, EntryId::NONE);
        lab.hit(1, 1);
        let most = (1 << 23) - 2;
        lab.hot[1].hits.0 += (most << UncountedHits::PACKETS_BIT) | (most * 60_000);
        (0..3).for_each(|at| lab.hit(1, 2 + at));
        assert_eq!(lab.hot[1].packets, 1 << 23);
        lab.count(HitsToCount::All, 9, 9);
        let most = most as u64;
        assert_eq!(lab.entry(7), (4 + most, 400 + most * 60_000, Nanos(4)));
        assert!(!lab.paths.has(HitsToCount::All, Nanos(9)), "the place was listed once");
    }

    #[test]
    fn hits_belong_to_the_path_that_was_taken() {
        let mut lab = Lab::new(2);
        lab.set(0, 7, EntryId::NONE);
        lab.hit(0, 1);
        // The list of places never overflows, however often a place is reused.
        for entry in 8..40 {
            lab.set(0, entry, EntryId::NONE);
            lab.hit(0, 2);
        }
        lab.count(HitsToCount::All, 1, 3);
        assert!((7..40).all(|entry| lab.entry(entry).0 == 1) && !lab.paths.has(HitsToCount::All, Nanos(3)));
    }

    #[test]
    fn a_round_counts_what_was_hit_before_it() {
        let (begin, round) = (1_000, ROUND_NS.0);
        let mut lab = Lab::new(8);
        (0..8).for_each(|place| lab.set(place, 10 + place, EntryId::NONE));
        (0..4).for_each(|place| lab.hit(place, begin));
        lab.paths.uncounted.add_packets(4 * PACKETS_PER_PATH);
        lab.count(HitsToCount::Due, 9, begin + round - 1);
        assert_eq!((lab.entry(10).0, lab.paths.counted_until()), (0, Nanos(begin)));
        lab.count(HitsToCount::Due, 3, begin + round);
        assert_eq!((lab.entry(12).0, lab.entry(13).0, lab.paths.counted_until()), (1, 0, Nanos(begin)));
        // Later hits wait for the next round, even if they hit the same records.
        (0..8).for_each(|place| lab.hit(place, begin + round + 1));
        lab.paths.uncounted.add_packets(8 * PACKETS_PER_PATH);
        lab.count(HitsToCount::Due, 9, begin + round + 2);
        assert_eq!((lab.entry(13).0, lab.entry(10).0, lab.entry(14).0), (2, 1, 0));
        assert_eq!(lab.paths.counted_until(), Nanos(begin + round));
        assert!(!lab.paths.has(HitsToCount::Due, Nanos(begin + 2 * round - 1)));
        lab.count(HitsToCount::Due, 9, begin + 2 * round);
        assert!((10..18).all(|entry| lab.entry(entry).0 == 1 + u64::from(entry < 14)));
        assert_eq!(lab.paths.counted_until(), Nanos::MAX);
    }

    #[test]
    fn a_round_waits_longer_if_few_packets_hit_each_path() {
        let mut lab = Lab::new(8);
        (0..8).for_each(|place| lab.set(place, 10 + place, EntryId::NONE));
        for begin in [1_000, 3 * LONG_ROUND_NS.0] {
            (0..8).for_each(|place| lab.hit(place, begin));
            lab.paths.uncounted.add_packets(8 * PACKETS_PER_PATH - 1);
            let due = |lab: &Lab, after: Nanos| lab.paths.has(HitsToCount::Due, Nanos(begin + after.0));
            assert!(!due(&lab, ROUND_NS) && !due(&lab, Nanos(LONG_ROUND_NS.0 - 1)));
            assert!(due(&lab, LONG_ROUND_NS));
            lab.paths.uncounted.add_packets(1);
            assert!(due(&lab, ROUND_NS));
            lab.count(HitsToCount::All, 8, begin + 1);
            assert!(!due(&lab, LONG_ROUND_NS), "the packets count for one round");
        }
    }
}
