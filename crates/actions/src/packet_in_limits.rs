// SPDX-License-Identifier: Apache-2.0
//! Rate limits of packet-ins, one for each reason. A limit applies to the whole switch: all workers share its
//! token bucket, which is stored as its theoretical arrival time, as for meters.
//!
//! A port that sends many packet-ins must not use up the rate of the others. Each port therefore has a bucket
//! of its own for an equal share of the rate, with one packet-in at once. A packet-in within this share is
//! always sent, and reduces what is left for packet-ins above the shares.

use crate::token_bucket::TokenBucket;
use flow::{Nanos, PacketInReason, PortNo};

const SECOND_NS: u64 = 1_000_000_000;

/// Rate limit of the packet-ins with one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketInRate {
    /// Packet-ins per second, up to [`Self::RATE_MAX`]. 0 stands for no limit.
    pub rate: u32,
    /// Maximum number of packet-ins at once, 1 to [`Self::BURST_MAX`]. Each port may exceed it by one.
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
    all: TokenBucket,
    /// The share of each port.
    shares: Box<[TokenBucket]>,
}

impl RateLimit {
    fn new(rate: PacketInRate, ports: usize) -> Option<Self> {
        let cost_ns = SECOND_NS.checked_div(rate.rate.into())?.max(1);
        let share_ns = cost_ns.saturating_mul(ports as u64);
        let shares = (0..ports).map(|_| TokenBucket::new(share_ns, 1)).collect();
        Some(Self { all: TokenBucket::new(cost_ns, rate.burst.max(1)), shares })
    }

    /// Charges a packet-in of the port with this index. A packet of the controller has no port.
    fn take(&self, port: Option<usize>, now: Nanos) -> bool {
        let share = port.and_then(|port| self.shares.get(port));
        if share.is_some_and(|share| share.take(now)) {
            self.all.charge(now);
            return true;
        }
        self.all.take(now)
    }
}

/// The limits of a switch, shared by all workers.
#[derive(Debug, Default)]
pub struct PacketInLimits {
    /// Numbers of the ports, in ascending order.
    ports: Box<[PortNo]>,
    no_match: Option<RateLimit>,
    action: Option<RateLimit>,
    invalid_ttl: Option<RateLimit>,
}

impl PacketInLimits {
    /// Creates limits that all admit a full burst. The ports share them.
    #[must_use]
    pub fn new(rates: PacketInRates, mut ports: Vec<PortNo>) -> Self {
        ports.sort_unstable();
        ports.dedup();
        let limit = |rate| RateLimit::new(rate, ports.len());
        Self {
            no_match: limit(rates.no_match),
            action: limit(rates.action),
            invalid_ttl: limit(rates.invalid_ttl),
            ports: ports.into_boxed_slice(),
        }
    }

    fn of(&self, reason: PacketInReason) -> Option<&RateLimit> {
        match reason {
            PacketInReason::NoMatch => self.no_match.as_ref(),
            PacketInReason::Action => self.action.as_ref(),
            PacketInReason::InvalidTtl => self.invalid_ttl.as_ref(),
        }
    }

    /// Charges a packet-in of a packet that arrived at `in_port`. Returns false if it exceeds the limit of
    /// its reason and must not be sent.
    #[must_use]
    pub fn take(&self, reason: PacketInReason, in_port: PortNo, now: Nanos) -> bool {
        self.of(reason).is_none_or(|limit| limit.take(self.ports.binary_search(&in_port).ok(), now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PacketInReason::{Action, InvalidTtl, NoMatch};

    fn limits(no_match: PacketInRate, ports: u32) -> PacketInLimits {
        let invalid_ttl = PacketInRate { rate: 1_000_000_000, burst: 0 };
        let rates = PacketInRates { no_match, invalid_ttl, ..PacketInRates::default() };
        PacketInLimits::new(rates, (1..=ports).map(PortNo).collect())
    }

    #[test]
    fn each_reason_has_its_own_rate_and_burst() {
        let limits = limits(PacketInRate { rate: 10, burst: 3 }, 1);
        let port = PortNo(1);
        let taken = |reason, at| (0..100).filter(|_| limits.take(reason, port, Nanos(at))).count();
        // A full burst, then one packet-in for each 100 ms, and never more than a burst.
        assert_eq!(taken(NoMatch, 5), 3);
        assert_eq!((taken(NoMatch, 100_000_004), taken(NoMatch, 100_000_005)), (0, 1));
        assert_eq!(taken(NoMatch, 350_000_005), 2);
        assert_eq!(taken(NoMatch, 100_000_000_000), 3);
        assert_eq!((taken(Action, 0), taken(InvalidTtl, 0)), (100, 1));
    }

    #[test]
    fn the_rate_holds_over_a_long_time() {
        for ports in [0, 1, 7] {
            let limits = limits(PacketInRate { rate: 300, burst: 10 }, ports);
            // All ports send many packet-ins, and so do packet-outs, which have no port.
            let taken = (0..1_000_000u32)
                .filter(|at| limits.take(NoMatch, PortNo(at % (ports + 1)), Nanos(u64::from(*at) * 10_000)))
                .count();
            assert!((3_009..=3_011 + ports as usize).contains(&taken), "{taken} in 10 s with {ports} ports");
        }
    }

    #[test]
    fn a_port_that_floods_leaves_the_other_ports_their_shares() {
        for burst in [1, 2, 100] {
            let limits = limits(PacketInRate { rate: 100, burst }, 4);
            // Port 1 sends 10,000 packet-ins per second. Port 2 sends 20, and may send 25.
            let mut taken = [0; 2];
            for at in 0..100_000u64 {
                let now = Nanos(at * 100_000);
                taken[0] += u32::from(limits.take(NoMatch, PortNo(1), now));
                if at % 500 == 499 {
                    taken[1] += u32::from(limits.take(NoMatch, PortNo(2), now));
                }
            }
            assert_eq!(taken[1], 200, "burst {burst}");
            let sum = taken[0] + taken[1];
            assert!((1_000 + burst - 1..=1_000 + burst + 4).contains(&sum), "{sum} in 10 s, burst {burst}");
        }
    }
}
