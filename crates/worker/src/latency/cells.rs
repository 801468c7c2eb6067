// SPDX-License-Identifier: Apache-2.0
//! Histograms of latencies, written by one worker and read by the control thread.

use frame::{Lane, PerLane};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Base-2 logarithm of the number of buckets per power of two. The width of a bucket is at most 1/32 of its
/// values.
const PARTS_BITS: u32 = 5;

/// Number of buckets for all 32-bit ages.
pub(super) const BUCKETS: usize = bucket(u32::MAX) + 1;

/// Returns the bucket of an age: one bucket per age below 64, then 32 buckets per power of two.
#[inline]
pub(super) const fn bucket(age: u32) -> usize {
    let exponent = match age.checked_ilog2() {
        Some(exponent) if exponent > PARTS_BITS => exponent - PARTS_BITS,
        _ => return age as usize,
    };
    ((exponent as usize) << PARTS_BITS) + (age >> exponent) as usize
}

/// Returns the highest age in a bucket.
pub(super) const fn highest(bucket: usize) -> u32 {
    let parts = 1 << PARTS_BITS;
    if bucket < 2 * parts {
        return bucket as u32;
    }
    let (exponent, part) = ((bucket / parts - 1) as u32, (bucket % parts + parts) as u32);
    (part << exponent) | ((1 << exponent) - 1)
}

/// A histogram of ages, in units of the worker's clock.
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

    /// Adds each bucket's count to `sums`. Returns the highest age.
    pub fn add_to(&self, sums: &mut [u64; BUCKETS]) -> u64 {
        for (sum, cell) in sums.iter_mut().zip(&self.buckets) {
            *sum += cell.load(Relaxed);
        }
        self.max.load(Relaxed)
    }
}

/// The latency counters of a worker, which is the only writer.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct LatencyCells {
    /// Two histograms for each lane: first for frames whose worker was not preempted while they were in the
    /// switch, then for all other frames.
    ages: PerLane<[Ages; 2]>,
    gaps: AtomicU64,
    stolen: AtomicU64,
}

impl LatencyCells {
    /// Returns the histogram of a lane's frames whose worker was preempted (`in_gap`) or was not.
    #[inline]
    pub(super) fn ages(&self, lane: Lane, in_gap: bool) -> &Ages {
        &self.ages[lane][usize::from(in_gap)]
    }

    /// Counts a preemption (gap) of this duration, in units of the clock.
    pub(super) fn add_gap(&self, units: u64) {
        add(&self.gaps, 1);
        add(&self.stolen, units);
    }

    /// Returns the number of preemptions (gaps), and their total duration in units of the clock.
    pub fn gaps(&self) -> (u64, u64) {
        (self.gaps.load(Relaxed), self.stolen.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous_and_narrow() {
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
