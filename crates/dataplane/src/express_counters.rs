// SPDX-License-Identifier: Apache-2.0
//! Counters of the express path. The worker writes them, and the control thread reads them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of one worker's express path. The worker is the only writer.
        #[derive(Debug, Default)]
        pub struct ExpressCounters {
            $($name: AtomicU64,)*
            is_bypassed: AtomicBool,
        }

        /// Values of the counters of one worker's express path, or their sums over several workers.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct ExpressFigures {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl ExpressCounters {
            $(
                /// Increases a counter. Called by the worker.
                #[inline]
                pub fn $name(&self, by: u64) {
                    self.$name.store(self.$name.load(Relaxed) + by, Relaxed);
                }
            )*

            /// Returns the current values.
            #[must_use]
            pub fn read(&self) -> ExpressFigures {
                ExpressFigures { $($name: self.$name.load(Relaxed),)* }
            }
        }

        impl ExpressFigures {
            /// Adds the values of another worker.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Packets that were processed by a path record.
    hits,
    /// Packets without a record that is right for the current rules. Packets that do not use their record,
    /// because their TTL expires, are not counted.
    misses,
    /// Packets that were not looked up because hardly any packet had a record.
    bypassed,
    /// Records made for new keys.
    learned,
    /// Records of older rule versions whose path was replaced by the path of a packet that had just left.
    renewed,
    /// Hits of records of older rule versions. Each of these records was compared with the changes since its
    /// version.
    verified,
    /// Records that were verified and were still right.
    upheld,
    /// Records that took their paths from the records of an earlier plan.
    inherited,
    /// Records displaced by another key.
    displaced,
    /// Keys that got no record because no place was free.
    refused,
    /// Current number of records, including those of older rule versions.
    records,
}

impl ExpressCounters {
    /// Returns whether the worker looks up only a sample of its packets now, because hardly any has a record.
    #[must_use]
    pub fn is_bypassed(&self) -> bool {
        self.is_bypassed.load(Relaxed)
    }

    /// Notes whether the worker looks up only a sample of its packets.
    #[inline]
    pub fn set_bypassed(&self, is_bypassed: bool) {
        self.is_bypassed.store(is_bypassed, Relaxed);
    }

    /// Notes that records were removed without being displaced.
    pub fn removed(&self, by: u64) {
        self.records.store(self.records.load(Relaxed).saturating_sub(by), Relaxed);
    }

    /// Resets the values that describe the present records, because the records are replaced.
    pub fn reset_records(&self) {
        self.records.store(0, Relaxed);
        self.set_bypassed(false);
    }
}
