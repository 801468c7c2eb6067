// SPDX-License-Identifier: Apache-2.0
//! The time until which a worker has applied all requested operations, even if others always wait.

use flow::Nanos;

/// Time until which all requested operations have been applied. Operations are applied in the order of their
/// requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnsweredUntil {
    /// Number of operations taken so far.
    taken: u64,
    /// Number of operations that had been requested at time `at`.
    requested: u64,
    at: Nanos,
    until: Nanos,
}

impl AnsweredUntil {
    /// Notes that an operation was taken.
    #[inline]
    pub fn take(&mut self) {
        self.taken += 1;
    }

    /// Returns a time until which all requested operations have been applied. `requested` is the number of
    /// operations requested so far, wherever they wait. The time advances as soon as those are applied that
    /// waited when it advanced last.
    pub fn get(&mut self, now: Nanos, requested: u64) -> Nanos {
        if self.taken >= self.requested {
            self.until = if self.taken >= requested { now } else { self.at };
            (self.at, self.requested) = (now, requested);
        }
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_advances_although_operations_always_wait() {
        let mut answered = AnsweredUntil::default();
        assert_eq!(answered.get(Nanos(10), 0), Nanos(10));
        // Two operations wait. Another one comes for each of them.
        assert_eq!(answered.get(Nanos(20), 2), Nanos(10));
        answered.take();
        assert_eq!(answered.get(Nanos(30), 3), Nanos(10));
        answered.take();
        assert_eq!(answered.get(Nanos(40), 4), Nanos(20), "those that waited at 20 have been taken");
        answered.take();
        assert_eq!(answered.get(Nanos(50), 5), Nanos(20));
        (0..2).for_each(|_| answered.take());
        assert_eq!(answered.get(Nanos(60), 6), Nanos(40));
        answered.take();
        assert_eq!(answered.get(Nanos(70), 6), Nanos(70));
    }
}
