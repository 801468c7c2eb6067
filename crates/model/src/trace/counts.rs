// SPDX-License-Identifier: Apache-2.0
//! Counters of live traces.

/// Counts of recorded packets and of their comparisons with the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceCounts {
    /// Packets recorded.
    pub recorded: u64,
    /// Recorded packets for which the comparison had a definite result.
    pub compared: u64,
    /// Compared packets for which the worker deviated from the rules.
    pub faults: u64,
}
