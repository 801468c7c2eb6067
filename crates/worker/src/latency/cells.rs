// SPDX-License-Identifier: Apache-2.0
//! Latencies counted in buckets by one worker, and read by the control thread meanwhile.

use frame::Lane;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Each power of two is divided into so many buckets, as a power of two: a bucket is at most 1/32 as wide as its values.
const PARTS_BITS: u32 = 5;

/// Buckets for all ages of 32 bits.
pub(super) const BUCKETS: usize = bucket(u32::MAX) + 1;

/// Lanes, by [`Lane`].
pub(crate) const LANES: usize = 2;

/// The bucket of an age: one each below 64, then 32 to each power of two.
#[inline]
pub(super) const fn bucket(age: u32) -> usize {
    let exponent = match age.checked_ilog2() {
        Some(exponent) if exponent > PARTS_BITS => exponent - PARTS_BITS,
        _ => return age as usize,
    };
    ((exponent as usize) << PARTS_BITS) + (age >> exponent) as usize
}

/// The highest age of a bucket.
pub(super) const fn highest(bucket: usize) -> u32 {
    let parts = 1 << PARTS_BITS;
    if bucket < 2 * parts {
        return bucket as u32;
    }
    let (exponent, part) = ((bucket / parts - 1) as u32, (bucket % parts + parts) as u32);
    (part << exponent) | ((1 << exponent) - 1)
}

/// Ages in units of the worker's clock.
#[derive(Debug)]
pub(super) struct Ages {
    max: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

impl Default for Ages {
    fn default() -> Self {
        Self { max: AtomicU64::new(0), buckets: [const { AtomicU64::new(0) }; BUCKETS] }
    }
}

fn add(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Relaxed) + by, Relaxed);
}

impl Ages {
    /// Counts `frames` frames of one age.
    #[inline]
    pub fn record(&self, age: u32, frames: u64) {
        if let Some(cell) = self.buckets.get(bucket(age)) {
            add(cell, frames);
        }
        if u64::from(age) > self.max.load(Relaxed) {
            self.max.store(u64::from(age), Relaxed);
        }
    }

    /// Adds each bucket's count to `sums`, and returns the highest age.
    pub fn add_to(&self, sums: &mut [u64; BUCKETS]) -> u64 {
        for (sum, cell) in sums.iter_mut().zip(&self.buckets) {
            *sum += cell.load(Relaxed);
        }
        self.max.load(Relaxed)
    }
}

/// What a worker counts. One writer.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct LatencyCells {
    /// By lane; for each first the frames that no gap fell on, then those that one did.
    ages: [[Ages; 2]; LANES],
    gaps: AtomicU64,
    stolen: AtomicU64,
}

impl LatencyCells {
    /// A lane's frames, those that a gap fell on or the others.
    #[inline]
    pub(super) fn ages(&self, lane: Lane, in_gap: bool) -> &Ages {
        &self.ages[lane as usize][usize::from(in_gap)]
    }

    /// Counts a gap that took so many units.
    pub(super) fn add_gap(&self, units: u64) {
        add(&self.gaps, 1);
        add(&self.stolen, units);
    }

    /// Gaps, and the units they took together.
    pub fn gaps(&self) -> (u64, u64) {
        (self.gaps.load(Relaxed), self.stolen.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_one_another_and_are_narrow() {
        assert_eq!(BUCKETS, 896);
        let mut next = 0_u64;
        for at in 0..BUCKETS {
            let (first, last) = (next as u32, highest(at));
            assert_eq!((bucket(first), bucket(last)), (at, at));
            assert!((last - first) as f64 <= f64::from(first) / 32.0, "{first} to {last}");
            next = u64::from(last) + 1;
        }
        assert_eq!(next, 1 << 32);
    }
}
