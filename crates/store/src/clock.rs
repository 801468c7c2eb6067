// SPDX-License-Identifier: Apache-2.0
//! Times in files. Times of the monotonic clock can be compared within one boot of the machine, and are not
//! changed when the time of day is set.

use flow::Nanos;
use std::time::{SystemTime, UNIX_EPOCH};

/// File with the ID of the machine's current boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Relation of the datapath's clock to the machine's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreClock {
    /// A time of the datapath's clock.
    datapath: Nanos,
    /// The same time of the machine's monotonic clock, in ns.
    monotonic: i64,
}

impl StoreClock {
    /// Returns the relation, if the datapath's clock is `now` at present.
    #[must_use]
    pub fn at(now: Nanos) -> Self {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Self { datapath: now, monotonic: time.tv_sec * 1_000_000_000 + time.tv_nsec }
    }

    /// Converts a time of the datapath into one of the monotonic clock, in ns.
    pub(crate) fn monotonic(self, at: Nanos) -> i64 {
        let difference = i128::from(at.0) - i128::from(self.datapath.0) + i128::from(self.monotonic);
        i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
    }

    /// Returns the datapath's time that was `age_ns` ago when this relation was set up.
    pub(crate) fn before(self, age_ns: i64) -> Nanos {
        let at = i128::from(self.datapath.0) - i128::from(age_ns);
        Nanos(u64::try_from(at).unwrap_or(if at < 0 { 0 } else { u64::MAX }))
    }

    /// Returns the monotonic time at which this relation was set up, in ns.
    pub(crate) fn set_up(self) -> i64 {
        self.monotonic
    }

    /// Returns the time of day in ms since 1970.
    pub(crate) fn wall_ms(self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Returns the ID of the machine's current boot, or zeros if it is unknown.
pub fn boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string(BOOT_ID).unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).unwrap_or(0).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_one_process_has_the_same_age_in_the_next() {
        let first = StoreClock { datapath: Nanos(1_000), monotonic: 50 };
        let at = first.monotonic(Nanos(1_010));
        assert_eq!(at, 60);
        // The next process starts 140 ns later, with another reading of its own clock.
        let next = StoreClock { datapath: Nanos(500), monotonic: 200 };
        assert_eq!(next.before(next.set_up() - at), Nanos(360));
        assert_eq!(next.monotonic(Nanos(360)), at);
        // Times before the clock's origin, and times after the setup.
        assert_eq!(next.before(501), Nanos(0));
        assert_eq!(next.before(-7), Nanos(507));
    }

    #[test]
    fn the_boot_has_an_id() {
        assert_ne!(boot_id(), [0; 16]);
        assert_eq!(boot_id(), boot_id());
    }
}
