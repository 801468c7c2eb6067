// SPDX-License-Identifier: Apache-2.0
//! Bypass of the express path: while hardly any packet has a record, keys cost more than they save. Then only
//! a sample of the bursts is looked up, until records are hit again. The sample is large at first, because
//! many flows may have begun at once, and becomes smaller as long as records are not hit.
//!
//! Packets that bypass the path may join the backlog although their flow has a record. The record must not be
//! used again before these packets have left. Packets that are held because of a record must leave before
//! packets of their flow bypass the path.

use crate::lanes::Queued;

/// Limits that decide when the express path is bypassed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BypassLimits {
    /// Number of packets after which the share of hits is compared with the limit.
    pub window_packets: u32,
    /// Number of sampled packets after which the share of hits is compared with the limit, while the path is
    /// bypassed.
    pub sample_packets: u32,
    /// The path is bypassed if fewer than one in this many packets hits a record. 0 counts as 1.
    pub packets_per_hit: u32,
    /// One in this many bursts is looked up while the path is bypassed, and up to [`FIRST_SAMPLE`] times as
    /// many at first. 0 counts as 1.
    pub sampled_bursts: u32,
}

/// Size of the first sample after a bypass began, relative to the size of later samples.
const FIRST_SAMPLE: u32 = 16;

impl BypassLimits {
    /// Default limits. The path saves time only if at least one in three packets hits a record.
    pub const USUAL: Self =
        Self { window_packets: 16_384, sample_packets: 1_024, packets_per_hit: 3, sampled_bursts: 128 };

    /// Limits with which the path is never bypassed.
    pub const NEVER: Self = Self { packets_per_hit: u32::MAX, ..Self::USUAL };
}

impl Default for BypassLimits {
    fn default() -> Self {
        Self::USUAL
    }
}

/// Share of hits, and whether the path is bypassed.
#[derive(Debug, Default)]
pub(super) struct Bypass {
    limits: BypassLimits,
    is_on: bool,
    packets: u32,
    hits: u32,
    bursts: u32,
    /// While the path is bypassed, one in this many bursts is looked up. Otherwise 0.
    interval: u32,
}

impl Bypass {
    /// Creates the state of a path that is not bypassed.
    pub fn new(limits: BypassLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Returns whether the next burst is looked up.
    #[inline]
    pub fn asks(&mut self) -> bool {
        if !self.is_on {
            return true;
        }
        self.bursts = (self.bursts + 1) % self.interval.max(1);
        self.bursts == 0
    }

    /// Notes that `hits` of the packets of a burst have records. Returns whether packets that have not left
    /// may use their records.
    #[inline]
    pub fn acts(&mut self, packets: usize, hits: usize, queued: Queued) -> bool {
        let was_on = self.is_on;
        self.packets += packets as u32;
        self.hits += hits as u32;
        let window = if was_on { self.limits.sample_packets } else { self.limits.window_packets };
        if self.packets >= window {
            self.judge(queued);
        }
        // In the burst that begins the bypass, only packets that leave at once use their records. Packets
        // that were held because of a record could be overtaken by the next burst.
        !(was_on || self.is_on) || queued == Queued::Nothing
    }

    /// Decides whether the path is bypassed from this burst on.
    #[inline(never)]
    fn judge(&mut self, queued: Queued) {
        let is_needless = self.hits < self.packets / self.limits.packets_per_hit.max(1);
        let may_switch = if is_needless { queued != Queued::Held } else { queued == Queued::Nothing };
        if may_switch {
            self.is_on = is_needless;
        }
        self.interval = match self.interval {
            _ if !self.is_on => 0,
            before if before > 0 && is_needless => (2 * before).min(self.limits.sampled_bursts),
            _ => (self.limits.sampled_bursts / FIRST_SAMPLE).max(1),
        };
        (self.packets, self.hits) = (0, 0);
    }

    /// Returns whether the path is bypassed.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offers 10,000 bursts of 32 packets with `hits` hits each. Returns the number of bursts that were
    /// looked up.
    fn asked(bypass: &mut Bypass, hits: usize) -> usize {
        (0..10_000)
            .filter(|_| {
                let asks = bypass.asks();
                if asks {
                    bypass.acts(32, hits, Queued::Nothing);
                }
                asks
            })
            .count()
    }

    #[test]
    fn a_path_without_hits_is_sampled_until_it_has_hits() {
        let mut bypass = Bypass::default();
        assert_eq!((asked(&mut bypass, 11), bypass.is_on()), (10_000, false));
        let few = asked(&mut bypass, 10);
        // 240 bursts until the bypass began, four samples of 32 bursts, each half as dense as the one before,
        // and one in 128 of the other bursts.
        assert!(bypass.is_on() && (413..=415).contains(&few), "{few}");
        assert!((77..=79).contains(&asked(&mut bypass, 0)));
        let many = asked(&mut bypass, 32);
        assert!(!bypass.is_on() && many > 5_000, "{many}");
    }

    #[test]
    fn a_path_that_is_bypassed_while_many_flows_begin_is_soon_used_again() {
        let mut bypass = Bypass::default();
        asked_until(&mut bypass, true, 0);
        let bursts = asked_until(&mut bypass, false, 32);
        assert!((249..=264).contains(&bursts), "{bursts} bursts for a sample of 32");
        asked_until(&mut bypass, true, 0);
        asked(&mut bypass, 0);
        let bursts = asked_until(&mut bypass, false, 32);
        assert!(bursts > 1_300, "{bursts} bursts after many samples without hits");
    }

    /// Offers bursts of 32 packets with `hits` hits each until the path is bypassed, or no longer bypassed.
    /// Returns their number.
    fn asked_until(bypass: &mut Bypass, is_on: bool, hits: usize) -> usize {
        let mut offered = 0;
        while bypass.is_on() != is_on && offered < 10_000 {
            offered += 1;
            if bypass.asks() {
                bypass.acts(32, hits, Queued::Nothing);
            }
        }
        offered
    }

    #[test]
    fn no_packet_is_held_by_the_burst_that_begins_the_bypass() {
        let mut bypass = Bypass::default();
        let acted = (0..2_000).filter(|_| bypass.acts(32, 0, Queued::Backlog)).count();
        assert!(bypass.is_on());
        assert_eq!(acted, 511, "the 512th burst completes the window");
    }

    #[test]
    fn the_path_is_switched_only_while_no_packet_could_be_overtaken() {
        let mut bypass = Bypass::default();
        let mut saw = |hits, queued| (0..2_000).fold(true, |all, _| bypass.acts(32, hits, queued) && all);
        assert!(saw(0, Queued::Held) && saw(0, Queued::Held), "held packets wait for a record's fence");
        assert!(!saw(0, Queued::Backlog), "the path is bypassed");
        assert!(!saw(32, Queued::Backlog) && !saw(32, Queued::Held), "packets that bypassed it may wait");
        assert!(saw(32, Queued::Nothing) && saw(32, Queued::Held));
    }
}
