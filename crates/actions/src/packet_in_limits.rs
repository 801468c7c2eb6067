// SPDX-License-Identifier: Apache-2.0
//! Rate limits of packet-ins, one for each reason. A limit applies to the whole switch: all workers share its
//! token bucket, which is stored as its theoretical arrival time, as for meters.

use flow::{Nanos, PacketInReason};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const SECOND_NS: u64 = 1_000_000_000;

/// Rate limit of the packet-ins with one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketInRate {
    /// Packet-ins per second, up to [`Self::RATE_MAX`]. 0 stands for no limit.
    pub rate: u32,
    /// Maximum number of packet-ins at once, 1 to [`Self::BURST_MAX`].
    pub burst: u32,
}

impl PacketInRate {
    /// No limit.
    pub const NONE: Self = Self { rate: 0, burst: 0 };

    /// Greatest rate in packet-ins per second.
    pub const RATE_MAX: u32 = 10_000_000;

    /// Greatest burst in packet-ins.
    pub const BURST_MAX: u32 = 1_000_000;
}

/// Rate limits of packet-ins by their reasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketInRates {
    /// Packet-ins of table-miss entries.
    pub no_match: PacketInRate,
    /// Packet-ins of other entries, groups and packet-outs.
    pub action: PacketInRate,
    /// Packets whose TTL has expired.
    pub invalid_ttl: PacketInRate,
}

impl PacketInRates {
    /// No limits.
    pub const NONE: Self =
        Self { no_match: PacketInRate::NONE, action: PacketInRate::NONE, invalid_ttl: PacketInRate::NONE };
}

/// The limit of one reason.
#[derive(Debug)]
struct RateLimit {
    cost_ns: u64,
    burst_ns: u64,
    /// Theoretical arrival time in nanoseconds. Each packet-in advances this time by its cost.
    paid_ns: AtomicU64,
}

impl RateLimit {
    fn new(rate: PacketInRate) -> Option<Self> {
        let cost_ns = SECOND_NS.checked_div(rate.rate.into())?.max(1);
        let burst_ns = cost_ns.saturating_mul(rate.burst.max(1).into());
        Some(Self { cost_ns, burst_ns, paid_ns: AtomicU64::new(0) })
    }

    fn take(&self, now: Nanos) -> bool {
        let charge = |paid: u64| {
            let after = paid.max(now.0).saturating_add(self.cost_ns);
            (after <= now.0.saturating_add(self.burst_ns)).then_some(after)
        };
        self.paid_ns.fetch_update(Relaxed, Relaxed, charge).is_ok()
    }
}

/// The limits of a switch, shared by all workers.
#[derive(Debug, Default)]
pub struct PacketInLimits {
    no_match: Option<RateLimit>,
    action: Option<RateLimit>,
    invalid_ttl: Option<RateLimit>,
}

impl PacketInLimits {
    /// Creates limits that all admit a full burst.
    #[must_use]
    pub fn new(rates: PacketInRates) -> Self {
        Self {
            no_match: RateLimit::new(rates.no_match),
            action: RateLimit::new(rates.action),
            invalid_ttl: RateLimit::new(rates.invalid_ttl),
        }
    }

    fn of(&self, reason: PacketInReason) -> Option<&RateLimit> {
        match reason {
            PacketInReason::NoMatch => self.no_match.as_ref(),
            PacketInReason::Action => self.action.as_ref(),
            PacketInReason::InvalidTtl => self.invalid_ttl.as_ref(),
        }
    }

    /// Charges a packet-in. Returns false if it exceeds the limit of its reason and must not be sent.
    #[must_use]
    pub fn take(&self, reason: PacketInReason, now: Nanos) -> bool {
        self.of(reason).is_none_or(|limit| limit.take(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PacketInReason::{Action, InvalidTtl, NoMatch};

    #[test]
    fn each_reason_has_its_own_rate_and_burst() {
        let no_match = PacketInRate { rate: 10, burst: 3 };
        let invalid_ttl = PacketInRate { rate: 1_000_000_000, burst: 0 };
        let limits = PacketInLimits::new(PacketInRates { no_match, invalid_ttl, ..PacketInRates::default() });
        let taken = |reason, at| (0..100).filter(|_| limits.take(reason, Nanos(at))).count();
        // A full burst, then one packet-in for each 100 ms, and never more than a burst.
        assert_eq!(taken(NoMatch, 5), 3);
        assert_eq!((taken(NoMatch, 100_000_004), taken(NoMatch, 100_000_005)), (0, 1));
        assert_eq!(taken(NoMatch, 350_000_005), 2);
        assert_eq!(taken(NoMatch, 100_000_000_000), 3);
        assert_eq!((taken(Action, 0), taken(InvalidTtl, 0)), (100, 1));
    }

    #[test]
    fn the_rate_holds_over_a_long_time() {
        let no_match = PacketInRate { rate: 300, burst: 10 };
        let limits = PacketInLimits::new(PacketInRates { no_match, ..PacketInRates::default() });
        let taken = (0..1_000_000).filter(|at| limits.take(NoMatch, Nanos(at * 10_000))).count();
        assert!((3_009..=3_011).contains(&taken), "{taken} in 10 s");
    }
}
