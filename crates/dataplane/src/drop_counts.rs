// SPDX-License-Identifier: Apache-2.0
//! Counts of drops by their reason.

use flow::DropReason;
use std::ops::AddAssign;

/// Number of reasons.
const REASONS: usize = DropReason::ALL.len();

/// One count for each [`DropReason`]; all are 0 by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropCounts([u64; REASONS]);

impl DropCounts {
    /// Calls `count` for each reason and returns the results.
    #[must_use]
    pub fn from_fn(count: impl Fn(DropReason) -> u64) -> Self {
        Self(std::array::from_fn(|at| count(DropReason::ALL[at])))
    }

    /// Returns the count of a reason.
    #[must_use]
    pub fn of(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Returns the counts with their reasons, in the order of [`DropReason::ALL`].
    pub fn by_reason(&self) -> impl Iterator<Item = (DropReason, u64)> {
        DropReason::ALL.iter().copied().zip(self.0)
    }

    /// Returns the sum of all counts.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Default for DropCounts {
    fn default() -> Self {
        Self([0; REASONS])
    }
}

/// Converts an array of counts in the order of [`DropReason::ALL`].
impl From<[u64; REASONS]> for DropCounts {
    fn from(counts: [u64; REASONS]) -> Self {
        Self(counts)
    }
}

impl AddAssign for DropCounts {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(count, other)| *count += other);
    }
}
