// SPDX-License-Identifier: Apache-2.0
//! Path records: an exact-match cache from keys of arriving packets to paths. It has a fixed size and is
//! allocated by the control thread.
//!
//! Sixteen records form a set. The tags of a set (two bytes per record) are compared at once. A record
//! occupies one cache line, or two if the keys are long. It has a rule version, the periods of its hits, a
//! fence and its key. The next cache line has the effect of its path. The entries of the path are stored in a
//! separate array ([`super::paths`]).
//!
//! A full set takes a new record only in place of a record that has been idle for too long, and only if the
//! key has requested a place before ([`engines::recency`]).

use super::paths::{HotPath, HotPaths};
use super::tags::{Tags, WAYS};
use backlog::Window;
use engines::NONE;
use engines::pages::repeated;
use engines::recency::{Seen, Use};
use flow::Nanos;
use frame::prefetch;
use keys::{ExpressKey, LONG_WORDS};

/// Number of words of a record before its key: the stamp, then a word with the use ([`Use`]) in its lowest
/// byte and the fence in its upper half.
const HEAD_WORDS: usize = 2;

/// Number of low bits of a stamp that hold the period of the last noted hit. The other bits hold the rule
/// version. One comparison shows that a record is of the present version, that a hit in this period is
/// already noted, and that the record has no fence.
const PERIOD_BITS: u32 = 6;

/// Number of periods that stamps distinguish.
const PERIODS: u64 = (1 << PERIOD_BITS) - 1;

/// Period in the stamp of a record with a fence, and of a record without hits. No actual period has this
/// value.
const NO_PERIOD: u64 = PERIODS;

/// Bits of a record's second word that hold its use ([`Use`]).
const USE_BITS: u64 = 0xff;

/// Position of the fence in the second word of a record.
const FENCE_BIT: u32 = 32;

/// Number of words in a cache line.
pub(super) const LINE_WORDS: usize = 8;

/// Length of a period in nanoseconds. The use of records is counted in periods.
const PERIOD_NS: Nanos = Nanos(1_000_000_000);

/// Bit that is set in a place if the version of the record there is not the present version of the rules.
pub(super) const OUTDATED: u32 = 1 << 31;

/// Result of learning a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learned {
    /// The key has a record of this rule version.
    Known,
    /// A record of an older rule version was replaced.
    Renewed,
    /// The record took a free place.
    New,
    /// The record took the place of another one.
    Displaced,
    /// No place was free.
    Refused,
}

/// Size of one worker's path records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpressSize {
    /// Maximum number of records.
    pub records: usize,
    /// Memory of the records in bytes.
    pub bytes: usize,
}

/// A record that is to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewRecord<'a> {
    pub key: &'a ExpressKey,
    pub hash: u64,
    /// Position in the backlog for which packets wait, or 0 if they do not wait; see [`crate::lanes`].
    pub fence: u32,
    /// Rule version for which the path holds.
    pub version: u64,
}

/// A record, followed by the effect and the hits of its path.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct RecordAndPath<const WORDS: usize> {
    words: [u64; WORDS],
    path: HotPath,
}

impl<const WORDS: usize> RecordAndPath<WORDS> {
    const EMPTY: Self = Self { words: [0; WORDS], path: HotPath::EMPTY };
}

/// Records of `WORDS` words each: one or two cache lines.
#[derive(Debug)]
pub(super) struct Records<const WORDS: usize> {
    tags: Box<[Tags]>,
    all: Box<[RecordAndPath<WORDS>]>,
    seen: Seen,
    period: u64,
}

impl<const WORDS: usize> Records<WORDS> {
    /// Returns the number of records for which [`Self::new`] creates space.
    pub fn places(count: usize) -> usize {
        count.div_ceil(WAYS).next_power_of_two() * WAYS
    }

    /// Creates space for `count` records. The number is rounded up to a power of two, and to at least one
    /// set.
    pub fn new(count: usize) -> Self {
        let sets = Self::places(count) / WAYS;
        Self {
            tags: vec![Tags::default(); sets].into_boxed_slice(),
            all: repeated(RecordAndPath::EMPTY, sets * WAYS),
            seen: Seen::new(sets * WAYS),
            period: 0,
        }
    }

    /// Returns the maximum number of records, and the memory that they use without the entries of their
    /// paths.
    pub fn size(&self) -> ExpressSize {
        let Self { tags, all, .. } = self;
        let records = tags.len() * WAYS;
        let arrays = size_of_val(&**tags) + size_of_val(&**all);
        ExpressSize { records, bytes: arrays + Seen::bytes(records) }
    }

    /// Sets the current time, which determines the period in which hits are noted.
    #[inline]
    pub fn begin(&mut self, now: Nanos) {
        self.period = now / PERIOD_NS;
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.tags.iter().all(|tags| tags.equal(0).count_ones() == WAYS as u32)
    }

    /// Prefetches the tags of the set to which a hash belongs.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        prefetch::element(&self.tags, self.set(hash));
    }

    /// Stores the first place whose tag matches each hash, or [`NONE`], and prefetches its record and its
    /// path. If the key has a record, this is nearly always its place.
    #[inline(always)]
    pub fn candidates(&self, hashes: &[u64], places: &mut [u32]) {
        let Self { tags, all, .. } = self;
        let sets = tags.len() - 1;
        for (hash, candidate) in hashes.iter().zip(places) {
            let set = *hash as usize & sets;
            let fits = tags[set].equal(tag(*hash));
            if fits == 0 {
                *candidate = NONE;
                continue;
            }
            let place = set * WAYS + fits.trailing_zeros() as usize;
            prefetch::whole_element(all, place);
            *candidate = place as u32;
        }
    }

    /// Returns the stamp of a record that has this version, no fence, and a hit noted in the present period.
    #[inline]
    pub fn current_stamp(&self, version: u64) -> u64 {
        stamp(version, self.period)
    }

    /// Returns the path of the record at a place, if the record needs no further work for a packet: it has
    /// this key and this stamp. After the first `KEY` words, all words of keys are 0.
    #[inline(always)]
    pub fn plain_path<const KEY: usize>(
        &mut self,
        place: u32,
        key: &ExpressKey,
        stamp: u64,
    ) -> Option<&mut HotPath> {
        let RecordAndPath { words, path } = self.all.get_mut(place as usize)?;
        (words[0] == stamp && has_key::<WORDS, KEY>(words, key)).then_some(path)
    }

    /// Returns the place of a key's record, or [`NONE`], and notes the hit. `candidate` is what
    /// [`Self::candidates`] has stored for the key. If the record is of another version, the place has the
    /// bit [`OUTDATED`], and the hit is not noted.
    #[inline(never)]
    pub fn find(&mut self, candidate: u32, hash: u64, key: &ExpressKey, version: u64) -> u32 {
        if candidate == NONE {
            return NONE;
        }
        let is_right = has_key::<WORDS, LONG_WORDS>(self.record(candidate as usize), key);
        let place = if is_right { candidate } else { self.find_again(hash, key) };
        if place == NONE {
            return NONE;
        }
        if self.version_at(place) != version {
            return place | OUTDATED;
        }
        let period = self.period;
        note_hit(self.record_mut(place as usize), version, period);
        place
    }

    /// Returns the version of the record at a place.
    pub fn version_at(&self, place: u32) -> u64 {
        self.record(place as usize)[0] >> PERIOD_BITS
    }

    /// Marks the record at a place as right for this version, and notes a hit.
    pub fn uphold(&mut self, place: u32, version: u64) {
        let period = self.period;
        note_hit(self.record_mut(place as usize), version, period);
    }

    /// Searches all records of a key's set whose tags match. Returns the place of the key's record, or
    /// [`NONE`].
    #[inline(never)]
    fn find_again(&self, hash: u64, key: &ExpressKey) -> u32 {
        let set = self.set(hash);
        let mut fits = self.tags[set].equal(tag(hash));
        while fits != 0 {
            let place = set * WAYS + fits.trailing_zeros() as usize;
            if has_key::<WORDS, LONG_WORDS>(self.record(place), key) {
                return place as u32;
            }
            fits &= fits - 1;
        }
        NONE
    }

    /// If packets that hit the record at a place must wait for a fence, returns this fence. Removes a fence
    /// that has passed.
    #[inline(always)]
    pub fn waits_for(&mut self, place: u32, window: Window) -> Option<u32> {
        if place == NONE {
            return None;
        }
        let record = self.record_mut(place as usize);
        let fence = (record[1] >> FENCE_BIT) as u32;
        if fence == 0 {
            return None;
        }
        if !window.waits(fence) {
            record[1] &= u64::from(u32::MAX);
            return None;
        }
        Some(fence)
    }

    /// Returns whether a key has a record, of any version.
    pub fn has(&self, hash: u64, key: &ExpressKey) -> bool {
        self.find_again(hash, key) != NONE
    }

    /// Removes the record at a place, but leaves its path.
    pub fn remove(&mut self, place: u32) {
        if let Some(tags) = self.tags.get_mut(place as usize / WAYS) {
            tags.set(place as usize % WAYS, 0);
        }
    }

    /// Returns the time of the last hit of the record at a place, or `None` if packets wait for its fence.
    pub fn idle_since(&self, place: u32, window: Window) -> Option<Nanos> {
        let RecordAndPath { words, path } = self.all.get(place as usize)?;
        let fence = (words[1] >> FENCE_BIT) as u32;
        (fence == 0 || !window.waits(fence)).then_some(path.used())
    }

    /// Makes a record for a key, or renews its record. Returns the place of the record, or [`NONE`] if the
    /// record is refused. If the key already has a record of this version, this record keeps its path and its
    /// fence, because no packet with this key has joined the backlog since the record was made.
    #[inline(never)]
    pub fn learn(&mut self, new: &NewRecord<'_>, window: Window) -> (u32, Learned) {
        let NewRecord { key, hash, fence, version } = *new;
        let known = self.find_again(hash, key);
        let (place, learned) = if known != NONE {
            (known as usize, Learned::Renewed)
        } else if let Some((place, learned)) = self.room(hash, window) {
            (place, learned)
        } else {
            return (NONE, Learned::Refused);
        };
        if learned != Learned::Renewed {
            self.tags[place / WAYS].set(place % WAYS, tag(hash));
            let used = Use::never(self.period).to_bits();
            let record = self.record_mut(place);
            record[1] = u64::from(used);
            record[HEAD_WORDS..].iter_mut().zip(key.words()).for_each(|(to, word)| *to = *word);
        } else if self.version_at(place as u32) == version {
            return (place as u32, Learned::Known);
        }
        let record = self.record_mut(place);
        record[0] = version << PERIOD_BITS | NO_PERIOD;
        record[1] = record[1] & USE_BITS | u64::from(fence) << FENCE_BIT;
        (place as u32, learned)
    }

    /// Returns whether the key has a record, or its set has a free place.
    pub fn has_room(&self, hash: u64, key: &ExpressKey) -> bool {
        self.tags[self.set(hash)].equal(0) != 0 || self.find_again(hash, key) != NONE
    }

    /// Returns the place for a new record with this hash, or `None` if the record is refused. The place may
    /// hold a record, unless packets still wait for its fence: later packets of their flow would overtake
    /// them.
    fn room(&mut self, hash: u64, window: Window) -> Option<(usize, Learned)> {
        let set = self.set(hash);
        let free = self.tags[set].equal(0);
        if free != 0 {
            return Some((set * WAYS + free.trailing_zeros() as usize, Learned::New));
        }
        let period = self.period;
        if !self.seen.ask(hash, period) {
            return None;
        }
        // The hash chooses among equally idle records. Otherwise each new record could displace the previous
        // new record, which had no time to be hit.
        let first = (hash >> 40) as usize;
        let ways = (0..WAYS).map(|way| set * WAYS + (first + way) % WAYS);
        let idle = ways.filter_map(|place| {
            let word = self.record(place)[1];
            let fence = (word >> FENCE_BIT) as u32;
            let periods = Use::from_bits(word as u8).idles(period)?;
            (fence == 0 || !window.waits(fence)).then_some((periods, place))
        });
        idle.max_by_key(|(periods, _)| *periods).map(|(_, place)| (place, Learned::Displaced))
    }

    #[inline(always)]
    fn record(&self, place: usize) -> &[u64; WORDS] {
        &self.all[place].words
    }

    #[inline(always)]
    fn record_mut(&mut self, place: usize) -> &mut [u64; WORDS] {
        &mut self.all[place].words
    }

    /// Returns the path of the record at a place.
    #[inline(always)]
    pub fn path(&self, place: u32) -> Option<&HotPath> {
        Some(&self.all.get(place as usize)?.path)
    }

    #[inline(always)]
    fn set(&self, hash: u64) -> usize {
        hash as usize & (self.tags.len() - 1)
    }
}

impl<const WORDS: usize> HotPaths for Records<WORDS> {
    #[inline(always)]
    fn hot_path(&mut self, place: u32) -> &mut HotPath {
        &mut self.all[place as usize].path
    }

    #[inline(always)]
    fn prefetch(&self, place: usize) {
        self.all.get(place).into_iter().for_each(|record| prefetch::of(&record.path));
    }
}

/// Returns whether a record has this key. The first `KEY` words are compared; further words of keys must be
/// 0. The place of the record must not be free.
#[inline(always)]
fn has_key<const WORDS: usize, const KEY: usize>(record: &[u64; WORDS], key: &ExpressKey) -> bool {
    let both = record[HEAD_WORDS..].iter().zip(key.words()).take(KEY);
    both.fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
}

/// Returns the stamp of a record of `version` whose last hit was noted in `period`.
#[inline(always)]
fn stamp(version: u64, period: u64) -> u64 {
    (version << PERIOD_BITS) | (period % PERIODS)
}

/// Sets the version of a record, and notes a hit in this period. A record with a fence gets no period in its
/// stamp.
fn note_hit<const WORDS: usize>(record: &mut [u64; WORDS], version: u64, period: u64) {
    let has_fence = record[1] >> FENCE_BIT != 0;
    record[0] = if has_fence { version << PERIOD_BITS | NO_PERIOD } else { stamp(version, period) };
    let mut hits = Use::from_bits(record[1] as u8);
    hits.hit(period);
    record[1] = record[1] & !USE_BITS | u64::from(hits.to_bits());
}

/// Returns the tag of a hash. It is never 0, which marks a free place.
#[inline(always)]
fn tag(hash: u64) -> u16 {
    (hash >> 48) as u16 | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn seconds(number: u64) -> Nanos {
        Nanos(number * PERIOD_NS.0)
    }

    fn key(number: u64) -> ExpressKey {
        ExpressKey::of_words(&[number, !number])
    }

    /// Returns a hash with the given set and tag.
    fn hash(set: u64, tag: u64) -> u64 {
        set | tag << 48
    }

    /// Records, each with a number in place of a path.
    struct Numbered<const WORDS: usize> {
        records: Records<WORDS>,
        numbers: BTreeMap<u32, u32>,
    }

    impl<const WORDS: usize> Numbered<WORDS> {
        fn new(count: usize) -> Self {
            Self { records: Records::new(count), numbers: BTreeMap::new() }
        }

        fn learn(&mut self, hash: u64, key: &ExpressKey, number: u32, version: u64) -> Learned {
            let new = NewRecord { key, hash, fence: 0, version };
            let (place, learned) = self.records.learn(&new, Window::default());
            if !matches!(learned, Learned::Known | Learned::Refused) {
                self.numbers.insert(place, number);
            }
            learned
        }
    }

    /// Returns the place of a key's record, and whether it is outdated.
    fn place<const WORDS: usize, const KEY: usize>(
        records: &mut Records<WORDS>,
        hash: u64,
        key: &ExpressKey,
        version: u64,
    ) -> (u32, bool) {
        let mut places = [0];
        records.candidates(&[hash], &mut places);
        let stamp = records.current_stamp(version);
        let was_plain = records.plain_path::<KEY>(places[0], key, stamp).is_some();
        let place = records.find(places[0], hash, key, version);
        let is_outdated = place != NONE && place & OUTDATED != 0;
        assert!(!was_plain || place == places[0], "a plain record is found at once");
        assert_eq!(records.plain_path::<KEY>(place, key, stamp).is_some(), place != NONE && !is_outdated);
        (place, is_outdated)
    }

    fn hit(cache: &mut Numbered<8>, hash: u64, number: u64, version: u64) -> Option<u32> {
        let place = place::<8, 6>(&mut cache.records, hash, &key(number), version).0;
        cache.numbers.get(&place).copied()
    }

    #[test]
    fn a_record_is_found_by_its_whole_key_and_its_version() {
        let mut records = Numbered::<8>::new(64);
        let at = hash(3, 9);
        assert_eq!(hit(&mut records, at, 1, 7), None);
        assert_eq!(records.learn(at, &key(1), 11, 7), Learned::New);
        assert_eq!(records.learn(at, &key(2), 22, 7), Learned::New, "the tags are equal");
        assert_eq!((hit(&mut records, at, 1, 7), hit(&mut records, at, 2, 7)), (Some(11), Some(22)));
        assert_eq!(hit(&mut records, at, 3, 7), None);
        assert_eq!(hit(&mut records, hash(2, 9), 1, 7), None, "another set");
        assert_eq!(hit(&mut records, at, 2, 8), None, "the rules have changed");
        let outdated = place::<8, 6>(&mut records.records, at, &key(2), 8);
        assert!(outdated.1 && outdated.0 & OUTDATED != 0);
        assert_eq!(records.learn(at, &key(2), 23, 8), Learned::Renewed);
        assert_eq!((hit(&mut records, at, 2, 8), hit(&mut records, at, 1, 8)), (Some(23), None));
    }

    #[test]
    fn new_keys_displace_only_idle_records_and_only_if_they_come_again() {
        let mut records = Numbered::<8>::new(1);
        let learn = |records: &mut Numbered<8>, number: u64| {
            records.learn(hash(0, number), &key(number), number as u32, 1)
        };
        records.records.begin(seconds(10));
        assert!((1..=16).all(|number| learn(&mut records, 2 * number) == Learned::New));
        assert!((1..=16).all(|number| hit(&mut records, hash(0, 2 * number), 2 * number, 1).is_some()));
        assert_eq!(learn(&mut records, 99), Learned::Refused, "it comes for the first time");
        assert_eq!(learn(&mut records, 99), Learned::Refused, "all records are in use");
        records.records.begin(seconds(11));
        assert!((2..=16).all(|number| hit(&mut records, hash(0, 2 * number), 2 * number, 1).is_some()));
        for second in 12..20 {
            records.records.begin(seconds(second));
            assert!((2..=16).all(|number| hit(&mut records, hash(0, 2 * number), 2 * number, 1).is_some()));
            learn(&mut records, 99);
        }
        assert_eq!(hit(&mut records, hash(0, 99), 99, 1), Some(99));
        assert_eq!(hit(&mut records, hash(0, 2), 2, 1), None, "it was the only idle one");
    }

    #[test]
    fn long_keys_are_compared_whole() {
        let mut records = Numbered::<16>::new(16);
        let keys = [0, 1].map(|last| ExpressKey::of_words(&[5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, last]));
        assert_eq!(records.learn(hash(0, 1), &keys[0], 1, 1), Learned::New);
        let mut place = |key| place::<16, 14>(&mut records.records, hash(0, 1), key, 1).0;
        assert_eq!((place(&keys[0]), place(&keys[1])), (0, NONE));
    }

    #[test]
    fn a_record_with_a_fence_is_not_plain_in_any_period() {
        let mut records = Records::<8>::new(1);
        let new = NewRecord { key: &key(2), hash: hash(0, 2), fence: 6, version: 1 };
        let (waiting, passed) = (Window::new(4, 3), Window::new(6, 3));
        records.learn(&new, waiting);
        let is_plain = |records: &mut Records<8>, second| {
            records.begin(seconds(second));
            let stamp = records.current_stamp(1);
            let was_plain = records.plain_path::<6>(0, &key(2), stamp).is_some();
            assert_eq!(records.find(0, hash(0, 2), &key(2), 1), 0);
            records.uphold(0, 1);
            was_plain || records.plain_path::<6>(0, &key(2), stamp).is_some()
        };
        // Stamps distinguish 63 periods.
        assert!((1..130).all(|second| !is_plain(&mut records, second)));
        assert_eq!((records.waits_for(0, waiting), records.waits_for(0, passed)), (Some(6), None));
        assert!((1..130).all(|second| is_plain(&mut records, second)));
    }

    #[test]
    fn a_fence_holds_until_it_is_passed_and_nobody_displaces_its_record() {
        let mut records = Records::<8>::new(1);
        let mut learn = |number: u64, fence, window, second| {
            records.begin(seconds(second));
            let new = NewRecord { key: &key(number), hash: hash(0, number), fence, version: 1 };
            (records.learn(&new, window).1, records.waits_for(0, window), records.waits_for(0, window))
        };
        let (waiting, passed) = (Window::new(4, 3), Window::new(6, 3));
        assert_eq!(learn(2, 6, waiting, 1), (Learned::New, Some(6), Some(6)));
        assert_eq!(learn(2, 7, waiting, 1), (Learned::Known, Some(6), Some(6)), "the fence stays");
        (2..=16).for_each(|number| assert_eq!(learn(2 * number, 6, waiting, 1).0, Learned::New));
        // All records have been idle for a long time, but packets may still wait for the fences of these
        // records.
        (0..4).for_each(|_| assert_eq!(learn(99, 0, waiting, 50).0, Learned::Refused));
        assert_eq!(learn(99, 0, passed, 50).0, Learned::Displaced);
        assert_eq!(learn(2, 0, passed, 50).1, None);
    }
}
