// SPDX-License-Identifier: Apache-2.0
//! What is in use of something that is limited.

/// What is in use of something that is limited. It may be told a moment later than it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Its name in counters.
    pub name: &'static str,
    /// How much is in use.
    pub used: u64,
    /// How much there is; none: no limit.
    pub limit: Option<u64>,
}

impl Level {
    /// So much of so much.
    #[must_use]
    pub fn of(name: &'static str, used: usize, limit: usize) -> Self {
        Self { name, used: used as u64, limit: (limit != usize::MAX).then_some(limit as u64) }
    }
}
