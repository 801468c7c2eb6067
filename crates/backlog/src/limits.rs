// SPDX-License-Identifier: Apache-2.0
//! Limits of a worker's lanes.

use flow::Limits;

const BURST: usize = Limits::BURST_PACKETS;

/// Limits of a worker's lanes, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneLimits {
    /// Maximum number of known normal packets in the backlog.
    pub normal: u16,
    /// Maximum number of unknown packets (packets without a LUT record) in the backlog. If this and `normal`
    /// are 0, no packet waits.
    pub unknown: u16,
    /// Maximum number of held low-latency packets. They are never dropped: above the limit the backlog is
    /// processed before the next burst is received.
    pub hold: u16,
}

impl LaneLimits {
    /// Limits with which no packet waits.
    pub const NONE: Self = Self { normal: 0, unknown: 0, hold: 0 };

    /// Default limits of the daemon.
    pub const USUAL: Self = Self { normal: 2_048, unknown: 1_024, hold: 256 };

    /// Greatest limit of each kind, in packets.
    pub const MAX: u16 = 16_384;

    /// Returns whether packets may wait.
    #[must_use]
    #[inline]
    pub fn is_on(&self) -> bool {
        self.normal > 0 || self.unknown > 0
    }

    /// Returns the maximum number of packets in the pipeline. The backlog and the hold queue may each exceed
    /// their limits by the burst being processed.
    #[must_use]
    pub fn packets(&self) -> usize {
        if self.is_on() { self.backlog() + usize::from(self.hold) + 3 * BURST } else { BURST }
    }

    /// Returns the capacity of the backlog: both shares and a burst.
    #[must_use]
    pub fn backlog(&self) -> usize {
        usize::from(self.normal) + usize::from(self.unknown) + BURST
    }
}
