// SPDX-License-Identifier: Apache-2.0
//! Storm limits. Like a band of a meter, a limit has a debt in nanoseconds: packets add their cost to the
//! debt, and passing time reduces it.

use flow::Nanos;
use flow::bridge::StormLimit;

const SECOND_NS: u128 = 1_000_000_000;

/// A storm limit, with its debt.
#[derive(Clone, Debug)]
pub struct StormDebt {
    limit: StormLimit,
    debt_ns: u128,
    /// Time of the last packet.
    charged_ns: Nanos,
}

impl StormDebt {
    /// Creates a limit without a debt.
    #[must_use]
    pub fn new(limit: StormLimit) -> Self {
        Self { limit, debt_ns: 0, charged_ns: Nanos(0) }
    }

    /// Charges a packet. Returns whether it exceeds the limit, in which case the debt stays the same.
    pub fn exceeds(&mut self, now: Nanos) -> bool {
        let passed = u128::from(now.saturating_sub(self.charged_ns).0);
        self.charged_ns = self.charged_ns.max(now);
        self.debt_ns = self.debt_ns.saturating_sub(passed);
        let cost_ns = SECOND_NS / u128::from(self.limit.rate);
        let exceeds = self.debt_ns + cost_ns > cost_ns * u128::from(self.limit.burst);
        if !exceeds {
            self.debt_ns += cost_ns;
        }
        exceeds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_admits_its_burst_and_then_its_rate() {
        let mut debt = StormDebt::new(StormLimit { rate: 1_000, burst: 2 });
        let mut passed = |now| (0..5).filter(|_| !debt.exceeds(Nanos(now))).count();
        let passed = [5, 1_000_004, 1_000_005, 4_000_000, 4_500_000].map(&mut passed);
        assert_eq!(passed, [2, 0, 1, 2, 0]);
    }
}
