// SPDX-License-Identifier: Apache-2.0
//! A token bucket that may go into debt by one frame of any length, so that the rate over a longer time is
//! exact.

use flow::Nanos;

/// Tokens per byte. A rate of 1 kbit/s yields one token per nanosecond.
const TOKENS_PER_BYTE: i64 = 8_000_000;

/// Depth of a bucket, as the time in nanoseconds in which it fills at its rate. A worker that wakes up late
/// by at most this time loses no tokens.
const DEPTH_NS: i64 = 10_000_000;

/// Minimum depth of a bucket in bytes: two long frames.
const DEPTH_BYTES: i64 = 2 * 1_518;

/// A token bucket for one rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    rate_kbps: u32,
    depth: i64,
    /// Available tokens. A negative number is a debt.
    tokens: i64,
    filled_ns: Nanos,
}

impl Bucket {
    /// Creates a full bucket.
    pub fn new(rate_kbps: u32) -> Self {
        let depth = (i64::from(rate_kbps) * DEPTH_NS).max(DEPTH_BYTES * TOKENS_PER_BYTE);
        Self { rate_kbps: rate_kbps.max(1), depth, tokens: depth, filled_ns: Nanos(0) }
    }

    /// Adds the tokens for the time until now.
    pub fn fill(&mut self, now: Nanos) {
        let passed = now.saturating_sub(self.filled_ns);
        self.filled_ns = self.filled_ns.max(now);
        let came = i64::try_from(passed.0.saturating_mul(self.rate_kbps.into())).unwrap_or(i64::MAX);
        self.tokens = self.tokens.saturating_add(came).min(self.depth);
    }

    /// Returns whether a frame may be sent.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.tokens >= 0
    }

    /// Takes the tokens for a frame that was sent.
    pub fn take(&mut self, bytes: usize) {
        self.tokens = self.tokens.saturating_sub((bytes as i64).saturating_mul(TOKENS_PER_BYTE));
    }

    /// Returns when the next frame may be sent, in nanoseconds.
    pub fn opens_ns(&self) -> Nanos {
        let debt = self.tokens.min(0).unsigned_abs();
        self.filled_ns.saturating_add(Nanos(debt.div_ceil(self.rate_kbps.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_opens_on_time_and_holds_at_most_its_depth() {
        // A rate of 8 kbit/s is 1,000 bytes per second.
        let mut bucket = Bucket::new(8);
        bucket.fill(Nanos(5));
        assert!(bucket.is_open());
        bucket.take(DEPTH_BYTES as usize + 1_000);
        assert_eq!((bucket.is_open(), bucket.opens_ns()), (false, Nanos(1_000_000_005)));
        bucket.fill(Nanos(1_000_000_004));
        assert!(!bucket.is_open());
        // A time earlier than the last one changes nothing.
        bucket.fill(Nanos(7));
        bucket.fill(Nanos(1_000_000_005));
        assert!(bucket.is_open() && bucket.opens_ns() == Nanos(1_000_000_005));
        bucket.fill(Nanos::MAX);
        assert_eq!(bucket.tokens, DEPTH_BYTES * TOKENS_PER_BYTE);
        let mut fast = Bucket::new(flow::EgressQueue::RATE_MAX_KBPS);
        fast.take(65_600);
        fast.fill(Nanos::MAX);
        assert_eq!(fast.tokens, fast.depth);
    }
}
