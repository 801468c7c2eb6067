// SPDX-License-Identifier: Apache-2.0
//! Budgets and times of the miss queues.

use crate::active::Victim;
use flow::Nanos;

/// What happens to a packet of a pending flow if the budget of its port is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The packet is dropped.
    #[default]
    Drop,
    /// All packets of the flow are released without an answer, so that each of them is looked up in the
    /// tables.
    Forward,
}

/// Budgets and times of the miss queues of one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissLimits {
    /// Maximum number of pending flows per port, 1 to [`Self::ENTRIES_MAX`].
    pub entries: u16,
    /// Maximum number of packets per port that wait behind the first packet of their flow, 0 to
    /// [`Self::QUEUE_MAX`].
    pub queue: u16,
    /// Maximum number of path records and pending flows per port, or 0 for no limit. It is at least `entries`
    /// and at most [`Self::records_max`].
    pub records: u16,
    /// Which record is removed if a port has too many records and pending flows. Pending flows are never
    /// removed.
    pub victim: Victim,
    /// Maximum number of bytes of all waiting packets per port.
    pub bytes: u32,
    /// Time after which a search without an answer is repeated or given up, in nanoseconds.
    pub timeout_ns: Nanos,
    /// Number of times that a search is repeated.
    pub retries: u8,
    /// Time in nanoseconds for which packets of a flow without a possible record are not queued.
    pub negative_ns: Nanos,
    /// What happens if a budget is used up.
    pub when_full: WhenFull,
}

/// A limit that is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("port cache: {name} is {value}, but must be {min} to {max}")]
pub struct LimitError {
    /// Name of the limit.
    pub name: &'static str,
    /// Value of the limit.
    pub value: u64,
    /// Least permitted value.
    pub min: u64,
    /// Greatest permitted value.
    pub max: u64,
}

impl LimitError {
    /// Returns an error if a value is out of its range.
    pub(crate) fn check(name: &'static str, value: u64, min: u64, max: u64) -> Result<(), Self> {
        let is_right = (min..=max).contains(&value);
        is_right.then_some(()).ok_or(Self { name, value, min, max })
    }
}

impl MissLimits {
    /// Default limits.
    pub const USUAL: Self = Self {
        entries: 128,
        queue: 256,
        records: 0,
        victim: Victim::Clock,
        bytes: 512 * 1_024,
        timeout_ns: Nanos(200_000_000),
        retries: 2,
        negative_ns: Nanos(100_000_000),
        when_full: WhenFull::Drop,
    };

    /// Greatest value of `entries`.
    pub const ENTRIES_MAX: u16 = 4_096;

    /// Greatest value of `queue`.
    pub const QUEUE_MAX: u16 = 4_096;

    /// Greatest value of `records`.
    pub const RECORDS_MAX: u16 = u16::MAX;

    /// Greatest value of `records` with [`Victim::LeastRecentlyUsed`], which compares all records of a port.
    pub const LRU_RECORDS_MAX: u16 = 1_024;

    /// Least value of `bytes`: one packet of the usual maximum length.
    pub const BYTES_MIN: u32 = 2_048;

    /// Greatest value of `bytes`.
    pub const BYTES_MAX: u32 = 16 * 1_024 * 1_024;

    /// Greatest value of `timeout_ns` and `negative_ns`: one minute.
    pub const TIME_MAX: Nanos = Nanos(60_000_000_000);

    /// Greatest value of `retries`.
    pub const RETRIES_MAX: u8 = 16;

    /// Checks the ranges of all limits.
    ///
    /// # Errors
    /// Returns the first limit that is out of its range.
    pub fn check(&self) -> Result<(), LimitError> {
        let check = LimitError::check;
        check("entries", self.entries.into(), 1, Self::ENTRIES_MAX.into())?;
        check("queue", self.queue.into(), 0, Self::QUEUE_MAX.into())?;
        if self.records > 0 {
            check("records", self.records.into(), self.entries.into(), self.records_max().into())?;
        }
        check("bytes", self.bytes.into(), Self::BYTES_MIN.into(), Self::BYTES_MAX.into())?;
        check("timeout_ns", self.timeout_ns.0, 1, Self::TIME_MAX.0)?;
        check("retries", self.retries.into(), 0, Self::RETRIES_MAX.into())?;
        check("negative_ns", self.negative_ns.0, 0, Self::TIME_MAX.0)
    }

    /// Returns the greatest value of `records` with this choice of victims.
    #[must_use]
    pub fn records_max(&self) -> u16 {
        match self.victim {
            Victim::Clock => Self::RECORDS_MAX,
            Victim::LeastRecentlyUsed => Self::LRU_RECORDS_MAX,
        }
    }

    /// Returns the maximum number of waiting packets per port.
    #[must_use]
    pub fn packets(&self) -> usize {
        usize::from(self.entries) + usize::from(self.queue)
    }
}

impl Default for MissLimits {
    fn default() -> Self {
        Self::USUAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PortCacheConfig, SearcherFaults};

    #[test]
    fn limits_out_of_range_are_refused_with_the_range() {
        assert_eq!(MissLimits::USUAL.check(), Ok(()));
        assert_eq!(
            MissLimits { queue: 0, retries: 0, negative_ns: Nanos(0), ..MissLimits::USUAL }.check(),
            Ok(())
        );
        let wrong = [
            (MissLimits { entries: 0, ..MissLimits::USUAL }, "entries is 0, but must be 1 to 4096"),
            (MissLimits { entries: 4_097, ..MissLimits::USUAL }, "entries is 4097, but must be 1 to 4096"),
            (MissLimits { queue: u16::MAX, ..MissLimits::USUAL }, "queue is 65535, but must be 0 to 4096"),
            (MissLimits { records: 127, ..MissLimits::USUAL }, "records is 127, but must be 128 to 65535"),
            (
                MissLimits { records: 1_025, victim: Victim::LeastRecentlyUsed, ..MissLimits::USUAL },
                "records is 1025, but must be 128 to 1024",
            ),
            (MissLimits { bytes: 0, ..MissLimits::USUAL }, "bytes is 0, but must be 2048 to 16777216"),
            (
                MissLimits { timeout_ns: Nanos(0), ..MissLimits::USUAL },
                "timeout_ns is 0, but must be 1 to 60000000000",
            ),
            (MissLimits { retries: 17, ..MissLimits::USUAL }, "retries is 17, but must be 0 to 16"),
        ];
        for (limits, says) in wrong {
            assert_eq!(limits.check().map_err(|error| error.to_string()), Err(format!("port cache: {says}")));
        }
        let config = PortCacheConfig::default();
        let minute = PortCacheConfig { service_ns: MissLimits::TIME_MAX, ..config };
        let longer = PortCacheConfig { service_ns: MissLimits::TIME_MAX + Nanos(1), ..config };
        assert_eq!((config.check(), minute.check().is_ok(), longer.check().is_ok()), (Ok(()), true, false));
        let limits = MissLimits { entries: 0, ..MissLimits::USUAL };
        assert!(PortCacheConfig { limits, ..config }.check().is_err());
        let faults = SearcherFaults { seed: 0, lost: 0, doubled: 0, delay_ns: Nanos(u64::MAX) };
        assert!(PortCacheConfig { faults: Some(faults), ..config }.check().is_err());
    }
}
