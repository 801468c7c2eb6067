// SPDX-License-Identifier: Apache-2.0
//! A token bucket that all workers share, by the generic cell rate algorithm.

use flow::Nanos;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A token bucket, stored as its theoretical arrival time. A new bucket admits a whole burst.
#[derive(Debug)]
pub struct TokenBucket {
    cost_ns: u64,
    burst_ns: u64,
    /// Theoretical arrival time in nanoseconds. Each packet advances this time by its cost.
    paid_ns: AtomicU64,
}

impl TokenBucket {
    /// Creates a bucket for a packet every `cost_ns` nanoseconds, and for up to `burst` packets at once.
    #[must_use]
    pub fn new(cost_ns: u64, burst: u32) -> Self {
        Self { cost_ns, burst_ns: cost_ns.saturating_mul(burst.into()), paid_ns: AtomicU64::new(0) }
    }

    fn after(&self, paid_ns: u64, now: Nanos) -> u64 {
        paid_ns.max(now.0).saturating_add(self.cost_ns)
    }

    /// Charges a packet, unless it exceeds the bucket. Returns whether it was charged.
    #[must_use]
    pub fn take(&self, now: Nanos) -> bool {
        let most_ns = now.0.saturating_add(self.burst_ns);
        let charge = |paid_ns| Some(self.after(paid_ns, now)).filter(|after| *after <= most_ns);
        self.paid_ns.fetch_update(Relaxed, Relaxed, charge).is_ok()
    }

    /// Charges a packet, even if it exceeds the bucket.
    pub(crate) fn charge(&self, now: Nanos) {
        // The closure never refuses.
        let _ = self.paid_ns.fetch_update(Relaxed, Relaxed, |paid_ns| Some(self.after(paid_ns, now)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_admits_a_burst_and_then_its_rate() {
        let bucket = TokenBucket::new(1_000, 3);
        let taken = |now, count: usize| (0..count).filter(|_| bucket.take(Nanos(now))).count();
        assert_eq!(taken(10, 5), 3);
        assert_eq!(taken(1_009, 5), 0);
        assert_eq!(taken(1_010, 5), 1);
        assert_eq!(taken(3_010, 5), 2);
        assert_eq!(taken(1_000_000, 5), 3, "at most a burst is saved");
    }
}
