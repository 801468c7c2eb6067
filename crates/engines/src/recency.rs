// SPDX-License-Identifier: Apache-2.0
//! Recency in caches of fixed size: when a record was hit, and which values requested a record.
//!
//! Time is counted in periods, whose length the cache defines. The more periods a record was hit in, the
//! longer it may be idle before it is evicted. A Bloom filter has the values that requested a record, or a
//! sample of them if there are many requests.

/// Number of periods for which a record may be idle, by the number of periods in which it was hit: none, one,
/// two, or at least three.
const REST_PERIODS: [u8; 4] = [0, 2, 8, 24];

/// Number of bits of each filter half per record of the cache, up to [`SEEN_BITS_MAX`] bits in all.
const SEEN_BITS: usize = 64;
const SEEN_BITS_MAX: usize = 1 << 17;

/// Number of filter bits that a value sets.
const SEEN_PROBES: u32 = 3;

/// Number of bits of a filter half per value recorded in a period. One in 600 new values is then mistaken for
/// a recorded one.
const BITS_PER_VALUE: usize = 32;

/// Period of a record's last hit (low 6 bits) and number of periods with hits, up to 3 (high 2 bits).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use(u8);

impl Use {
    /// Mask for the stored low bits of the period.
    const PERIOD: u8 = 0x3f;

    /// Returns the use of a record without hits.
    #[must_use]
    pub fn never(period: u64) -> Self {
        // The previous period is stored, so that a hit in the current period counts.
        Self((period as u8).wrapping_sub(1) & Self::PERIOD)
    }

    /// Returns the use that [`to_bits`](Self::to_bits) described.
    #[must_use]
    #[inline]
    pub fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Returns the use as a byte.
    #[must_use]
    #[inline]
    pub fn to_bits(self) -> u8 {
        self.0
    }

    /// Notes a hit in this period.
    #[inline(always)]
    pub fn hit(&mut self, period: u64) {
        let now = period as u8 & Self::PERIOD;
        // The period is mostly set already. Skipping the write keeps the cache line clean.
        if self.0 & Self::PERIOD != now {
            self.0 = now | (self.0 >> 6).saturating_add(1).min(3) << 6;
        }
    }

    /// Returns the number of periods since the last hit.
    #[must_use]
    pub fn rests(self, period: u64) -> u8 {
        (period as u8).wrapping_sub(self.0) & Self::PERIOD
    }

    /// Returns by how many periods a record exceeds its idle limit, or `None` if it does not.
    #[must_use]
    pub fn idles(self, period: u64) -> Option<u8> {
        self.rests(period).checked_sub(REST_PERIODS[usize::from(self.0 >> 6)])
    }
}

/// Bloom filter of values that found no free place in the current or the previous period.
#[derive(Debug)]
pub struct Seen {
    halves: [Box<[u64]>; 2],
    period: u64,
    /// Number of requests in this period.
    asked: usize,
    /// Sampling interval: one in this many values is recorded.
    every: usize,
}

impl Seen {
    /// Creates an empty filter for a cache of `records` records.
    #[must_use]
    pub fn new(records: usize) -> Self {
        let half = || vec![0; Self::bits(records) / 64].into_boxed_slice();
        Self { halves: [half(), half()], period: 0, asked: 0, every: 1 }
    }

    fn bits(records: usize) -> usize {
        (records * SEEN_BITS).clamp(64, SEEN_BITS_MAX).next_power_of_two()
    }

    /// Returns the size in bytes of the filter for a cache of `records` records.
    #[must_use]
    pub fn bytes(records: usize) -> usize {
        Self::bits(records) / 8 * 2
    }

    /// Returns whether a value with this hash requested a place before, in this period or the previous one.
    /// May record this request.
    pub fn ask(&mut self, hash: u64, period: u64) -> bool {
        let bits = self.halves[0].len() * 64;
        let quota = (bits / BITS_PER_VALUE).max(1);
        let now = period as usize & 1;
        if self.period != period {
            let follows = self.period + 1 == period;
            // The first requests alone would not be a sample of all requests.
            self.every = if follows { (self.asked / quota).max(1) } else { 1 };
            self.asked = 0;
            self.halves[now].fill(0);
            if !follows {
                self.halves[1 - now].fill(0);
            }
            self.period = period;
        }
        let places = || {
            (0..SEEN_PROBES).map(|probe| {
                let bit = hash.rotate_right(13 * probe + 7) as usize & (bits - 1);
                (bit / 64, 1 << (bit % 64))
            })
        };
        let before = self.halves.iter().any(|half| places().all(|(word, bit)| half[word] & bit != 0));
        let taken = self.asked / self.every;
        if self.asked.is_multiple_of(self.every) && taken < quota {
            for (word, bit) in places() {
                self.halves[now][word] |= bit;
            }
        }
        self.asked += 1;
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_earn_their_rest() {
        let mut record = Use::never(5);
        assert!(record.idles(5).is_some(), "never hit");
        let mut rest = |period: u64| {
            record.hit(period);
            record.hit(period);
            (0..64).take_while(|after| record.idles(period + after).is_none()).count()
        };
        assert_eq!([5, 6, 7, 8, 300].map(&mut rest), [2, 8, 24, 24, 24]);
    }

    #[test]
    fn a_value_is_known_again_in_this_period_and_the_next() {
        let mut seen = Seen::new(256);
        let [a, b] = [0x1234_5678_9abc_def1, 0xfedc_ba98_7654_3210];
        assert!(!seen.ask(a, 10) && seen.ask(a, 10) && seen.ask(a, 11));
        assert!(!seen.ask(b, 11), "another");
        assert!(seen.ask(b, 12) && !seen.ask(b, 20), "too long ago");
    }

    #[test]
    fn a_storm_of_values_that_come_once_does_not_fill_the_filter() {
        let mut hash = 0_u64;
        let mut fresh = || {
            hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed ^ mixed >> 27
        };
        let mut seen = Seen::new(256);
        for period in 0..8 {
            let taken_for_known = (0..200_000).filter(|_| seen.ask(fresh(), period)).count();
            assert!(taken_for_known < 200_000 / 100, "{taken_for_known} in period {period}");
        }
        // A value that occurs often is recognized during the storm.
        let mut known = 0;
        for _ in 0..1_000 {
            known += usize::from(seen.ask(99, 8));
            for _ in 0..200 {
                seen.ask(fresh(), 8);
            }
        }
        assert!(known > 100, "{known}");
    }
}
