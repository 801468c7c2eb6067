// SPDX-License-Identifier: Apache-2.0
//! The virtual clock: time that passes only because someone says so.

use flow::Nanos;

/// A clock that stands still until it is moved, and never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtualClock {
    now_ns: Nanos,
}

impl VirtualClock {
    /// A clock that shows this time.
    #[must_use]
    pub fn starting_at(now_ns: Nanos) -> Self {
        Self { now_ns }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now_ns
    }

    /// Moves to a time, or stays where it is if that has passed; tells the time then.
    pub fn advance_to(&mut self, time_ns: Nanos) -> Nanos {
        self.now_ns = self.now_ns.max(time_ns);
        self.now_ns
    }

    /// Moves on; tells the time then.
    pub fn advance_by(&mut self, span_ns: Nanos) -> Nanos {
        self.now_ns = self.now_ns.saturating_add(span_ns);
        self.now_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_back() {
        let mut clock = VirtualClock::starting_at(100);
        assert_eq!((clock.advance_to(50), clock.advance_to(150), clock.advance_by(5)), (100, 150, 155));
        assert_eq!(clock.advance_by(Nanos::MAX), Nanos::MAX);
        assert_eq!(clock.now(), Nanos::MAX);
    }
}
