// SPDX-License-Identifier: Apache-2.0
//! Admission of values to a LUT: decides whether a value gets a record, and which record it displaces in a
//! full LUT.
//!
//! An attack may send packets whose values occur only once, and the first packet of a flow looks the same. So
//! a record that was hit in more periods may stay idle for longer before it can be displaced. A new value may
//! displace a record that has been idle for too long, but only if the value has requested a place before
//! ([`engines::recency`]).

use super::lut::{Lut, Record, WAYS, tag};
use engines::recency::Use;
use flow::EntryId;

/// Maximum number of records of normal entries in a set.
const NORMAL_WAYS: usize = 4;

/// Number of periods for which a normal record may be idle.
const NORMAL_REST_PERIODS: u8 = 2;

impl Lut {
    /// Makes a record for a row that was looked up in the table. Clears the bits of the row that the table
    /// does not examine.
    pub(crate) fn learn(&mut self, key: &mut [u64], id: EntryId, priority: u16, low_latency: bool) {
        self.learn_behind(key, id, priority, low_latency, 0);
    }

    /// Makes a record while earlier packets of its value may wait in the backlog, up to position `fence`.
    pub(crate) fn learn_behind(
        &mut self,
        key: &mut [u64],
        id: EntryId,
        priority: u16,
        low_latency: bool,
        fence: u32,
    ) {
        for (word, mask) in key.iter_mut().zip(&self.mask) {
            *word &= mask;
        }
        self.learn_masked(key, id, priority, low_latency, fence);
    }

    /// Makes a record from a row whose unexamined bits are 0.
    pub(super) fn learn_masked(
        &mut self,
        key: &[u64],
        id: EntryId,
        priority: u16,
        low_latency: bool,
        fence: u32,
    ) {
        let hash = self.hash(key);
        let used = Use::never(self.period);
        let record = Record { id, priority, used, low_latency, generation: self.generation, fence };
        let known = self.find(key, hash);
        if let Some(place) = self.records.get_mut(known as usize) {
            // If the record already names this entry, its old fence suffices: later packets of this value
            // were held and did not join the backlog.
            let same = (place.id, place.low_latency) == (id, low_latency);
            let fence = if same { place.fence } else { fence };
            *place = Record { used: place.used, fence, ..record };
            return;
        }
        let Some(place) = self.room(hash, low_latency) else {
            self.counters.refused(1);
            return;
        };
        if self.is_used(place) {
            // Packets held for the displaced record's fence may still wait. Later packets must not inherit a
            // record without a fence, because they would overtake the held packets.
            self.barred |= self.records[place].fence != 0;
            self.free(place);
            if self.records[place].low_latency {
                self.counters.evicted(1);
            } else {
                self.counters.displaced(1);
            }
        }
        self.tags[place / WAYS] |= u64::from(tag(hash)) << (place % WAYS * 8);
        let words = self.mask.len();
        self.keys[place * words..][..words].copy_from_slice(key);
        self.records[place] = record;
        self.counters.records(1);
        self.counters.learned(1);
    }

    /// Returns the place for a new record with this hash, or `None` if the record is refused. The place may
    /// hold a record.
    fn room(&mut self, hash: u64, low_latency: bool) -> Option<usize> {
        let sets = self.sets(hash);
        if !low_latency {
            return self.normal_room(sets[0]);
        }
        let ways = || sets.into_iter().flat_map(|set| set * WAYS..(set + 1) * WAYS);
        // The emptier of the two sets is used, so that nearly the whole LUT can be filled.
        let used = |set: usize| (set * WAYS..(set + 1) * WAYS).filter(|place| self.is_used(*place)).count();
        let emptier = if used(sets[1]) < used(sets[0]) { sets[1] } else { sets[0] };
        let free = (emptier * WAYS..(emptier + 1) * WAYS).find(|place| !self.is_used(*place));
        let free = free.or_else(|| ways().find(|place| !self.records[*place].low_latency));
        if free.is_some() {
            return free;
        }
        let period = self.period;
        if !self.seen.ask(hash, period) {
            return None;
        }
        // The hash chooses among equally idle records. Otherwise each new record could displace the one made
        // before it, which had no time to be hit.
        let turned = ways().cycle().skip((hash >> 40) as usize % (2 * WAYS)).take(2 * WAYS);
        let idle = turned.filter_map(|place| Some((self.records[place].used.idles(period)?, place)));
        idle.max_by_key(|(periods, _)| *periods).map(|(_, place)| place)
    }

    /// Returns the place for a normal record: a free place if the set has fewer than [`NORMAL_WAYS`] normal
    /// records, else the place of an idle normal record.
    fn normal_room(&self, set: usize) -> Option<usize> {
        let ways = || set * WAYS..(set + 1) * WAYS;
        let is_normal = |place: &usize| self.is_used(*place) && !self.records[*place].low_latency;
        if ways().filter(is_normal).count() < NORMAL_WAYS
            && let Some(free) = ways().find(|place| !self.is_used(*place))
        {
            return Some(free);
        }
        let rests = |place: &usize| self.records[*place].used.rests(self.period) >= NORMAL_REST_PERIODS;
        ways().find(|place| is_normal(place) && rests(place))
    }
}
