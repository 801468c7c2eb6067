// SPDX-License-Identifier: Apache-2.0
//! Detects preemption of a worker from the time between two readings of the clock.
//!
//! A span between readings is a gap if it exceeds five times the usual duration of its work by more than 2
//! us. Work is counted in packets received and frames sent, plus four for the fixed cost of a span. The usual
//! duration per packet is a running mean over about 64 spans. A gap counts in the mean only up to the limit.
//! A span without work is a gap if it is longer than 2 us.
//!
//! For 10 ms after an operation, 50 us are allowed instead of 2 us, because records are cleaned and caches
//! are cold. In a gap, the time beyond the usual duration counts as stolen.
//!
//! Gaps that are not detected count as latency of the switch: gaps shorter than 2 us, and all gaps in the
//! first 64 spans.

use crate::clock::Clock;
use flow::Nanos;

/// A span between two clock readings is a gap (preemption) if it exceeds `FACTOR` times its usual duration by
/// more than this, in nanoseconds.
const SLACK_NS: Nanos = Nanos(2_000);

/// Value that replaces `SLACK_NS` shortly after rule changes, in nanoseconds.
const CHANGING_NS: Nanos = Nanos(50_000);

/// Time after an operation for which `CHANGING_NS` applies, in nanoseconds.
const CHANGE_NS: Nanos = Nanos(10_000_000);

/// A span between two clock readings is no gap (preemption) if it takes at most this multiple of its usual
/// duration.
const FACTOR: u64 = 5;

/// Fixed cost of a span between two clock readings, in packets.
const SPAN_WORK: u64 = 4;

/// Base-2 logarithm of the approximate number of spans in the running mean. No gap is detected before that
/// many spans have passed.
const MEMORY_BITS: u32 = 6;

/// Usual duration of work.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usual {
    /// Time and work of recent spans; both decay at the same rate.
    units: u64,
    work: u64,
    spans: u32,
}

impl Usual {
    /// Records a span with its work. Returns the stolen time in units; 0 if the span is not a gap.
    #[inline]
    fn stolen(&mut self, span: u64, work: u64, slack: u64) -> u64 {
        if span > slack && self.spans >> MEMORY_BITS != 0 {
            return self.stolen_long(span, work, slack);
        }
        self.learn(span, work);
        0
    }

    #[inline(never)]
    fn stolen_long(&mut self, span: u64, work: u64, slack: u64) -> u64 {
        let usual = self.units * work / self.work.max(1);
        let limit = slack + FACTOR * usual;
        self.learn(span.min(limit), work);
        if span > limit { span - usual } else { 0 }
    }

    #[inline]
    fn learn(&mut self, span: u64, work: u64) {
        self.units = self.units - (self.units >> MEMORY_BITS) + span;
        self.work = self.work - (self.work >> MEMORY_BITS) + work;
        self.spans = self.spans.saturating_add(1);
    }
}

/// The gap detector of one worker.
#[derive(Debug)]
pub(super) struct Gaps {
    usual: Usual,
    slack: u64,
    changing: u64,
    change: u64,
    /// Time until which `CHANGING_NS` applies, because of the last rule change.
    changes_until: u64,
}

impl Gaps {
    pub fn new(clock: &Clock) -> Self {
        Self {
            usual: Usual::default(),
            slack: clock.units(SLACK_NS),
            changing: clock.units(CHANGING_NS),
            change: clock.units(CHANGE_NS),
            changes_until: 0,
        }
    }

    /// Records a rule change at this time.
    pub fn changed(&mut self, now: u64) {
        self.changes_until = now + self.change;
    }

    /// Returns the time stolen from the span that ends now, in units; 0 if none is detected. `packets` were
    /// received or sent in the span.
    #[inline]
    pub fn stolen(&mut self, now: u64, span: u64, packets: u64) -> u64 {
        let slack = if now < self.changes_until { self.changing } else { self.slack };
        if packets > 0 {
            return self.usual.stolen(span, packets + SPAN_WORK, slack);
        }
        // In a span without packets, the worker only polls queues, which is little work.
        if span > slack { span } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps() -> Gaps {
        Gaps::new(&Clock::stopped())
    }

    /// Returns a detector that has seen bursts of 32 packets that take 2 us.
    fn settled() -> Gaps {
        let mut gaps = gaps();
        for _ in 0..1_000 {
            assert_eq!(gaps.stolen(1, 2_000, 32), 0);
        }
        gaps
    }

    #[test]
    fn a_span_far_beyond_its_work_is_a_gap() {
        let mut gaps = settled();
        for (span, packets) in [(11_000, 32), (3_000, 1), (40_000, 200)] {
            assert_eq!(gaps.stolen(1, span, packets), 0, "{span} ns for {packets} packets");
        }
        let stolen = gaps.stolen(1, 20_000, 32);
        assert!((17_000..=18_500).contains(&stolen), "{stolen}");
        assert!(gaps.stolen(1, 6_000, 1) > 5_000);
        assert_eq!((gaps.stolen(1, 2_000, 0), gaps.stolen(1, 2_001, 0)), (0, 2_001));
        assert_eq!(self::gaps().stolen(1, 1 << 40, 1), 0, "the usual duration is not known yet");
    }

    /// A burst of 32 packets usually takes 2 us here. The bound is five times that, plus 2 us.
    #[test]
    fn a_gap_exceeds_five_times_the_usual_duration_by_2_us() {
        assert_eq!(settled().stolen(1, 11_950, 32), 0);
        let stolen = settled().stolen(1, 12_050, 32);
        assert!((10_000..10_100).contains(&stolen), "{stolen}");
        // A span with 14 packets usually takes half as long as one with 32, because each span counts as four
        // packets.
        assert_eq!(settled().stolen(1, 6_950, 14), 0);
        let stolen = settled().stolen(1, 7_050, 14);
        assert!((6_000..6_100).contains(&stolen), "{stolen}");
    }

    #[test]
    fn nothing_is_a_gap_in_the_first_64_spans() {
        for (spans, is_gap) in [(63, false), (64, true)] {
            let mut gaps = gaps();
            (0..spans).for_each(|_| assert_eq!(gaps.stolen(1, 2_000, 32), 0));
            assert_eq!(gaps.stolen(1, 1_000_000, 32) > 0, is_gap, "after {spans} spans");
        }
    }

    #[test]
    fn after_an_operation_longer_spans_are_not_gaps() {
        let mut gaps = settled();
        gaps.changed(1_000);
        assert_eq!(gaps.stolen(10_000_999, 59_950, 32), 0);
        let mut gaps = settled();
        gaps.changed(1_000);
        assert!(gaps.stolen(10_000_999, 60_050, 32) > 0);
        assert_eq!(gaps.stolen(10_000_999, 50_000, 0), 0);
        assert_eq!(gaps.stolen(10_000_999, 50_001, 0), 50_001);
        let mut gaps = settled();
        gaps.changed(1_000);
        assert!(gaps.stolen(10_001_000, 50_000, 32) > 0);
    }

    #[test]
    fn slower_work_becomes_usual() {
        let mut gaps = settled();
        let called = (0..1_000).filter(|_| gaps.stolen(1, 200_000, 32) > 0).count();
        assert!((1..100).contains(&called), "{called} spans were detected as gaps");
        assert_eq!(gaps.stolen(1, 200_000, 32), 0);
    }
}
