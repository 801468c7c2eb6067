// SPDX-License-Identifier: Apache-2.0
//! A virtual clock that only its owner advances.

use flow::Nanos;

/// A monotonic clock that advances only when its owner moves it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtualClock {
    now_ns: Nanos,
}

impl VirtualClock {
    /// Creates a clock with this initial time.
    #[must_use]
    pub fn starting_at(now_ns: Nanos) -> Self {
        Self { now_ns }
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now_ns
    }

    /// Advances to `time_ns`, unless this time has passed. Returns the current time.
    pub fn advance_to(&mut self, time_ns: Nanos) -> Nanos {
        self.now_ns = self.now_ns.max(time_ns);
        self.now_ns
    }

    /// Advances by `span_ns`. Returns the current time.
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
        let mut clock = VirtualClock::starting_at(Nanos(100));
        assert_eq!(
            (clock.advance_to(Nanos(50)), clock.advance_to(Nanos(150)), clock.advance_by(Nanos(5))),
            (Nanos(100), Nanos(150), Nanos(155))
        );
        assert_eq!(clock.advance_by(Nanos::MAX), Nanos::MAX);
        assert_eq!(clock.now(), Nanos::MAX);
    }
}
