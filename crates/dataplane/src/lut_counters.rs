// SPDX-License-Identifier: Apache-2.0
//! Counters of a LUT. The worker writes them, and the control thread reads them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of one worker's LUT. The worker is the only writer.
        #[derive(Debug, Default)]
        pub struct LutCounters {
            $($name: AtomicU64,)*
            records: AtomicU64,
        }

        /// Values of the counters of one worker's LUT, or their sums over several workers.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct LutFigures {
            $($(#[$doc])* pub $name: u64,)*
            /// Current number of records.
            pub records: u64,
        }

        impl LutCounters {
            $(
                $(#[$doc])*
                #[inline]
                pub fn $name(&self, by: u64) {
                    self.$name.store(self.$name.load(Relaxed) + by, Relaxed);
                }
            )*

            /// Returns the current values.
            #[must_use]
            pub fn read(&self) -> LutFigures {
                LutFigures { $($name: self.$name.load(Relaxed),)* records: self.records.load(Relaxed) }
            }
        }

        impl LutFigures {
            /// Adds the values of another worker.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
                self.records += other.records;
            }
        }
    };
}

counters! {
    /// Packets forwarded by a low-latency record.
    hits,
    /// Packets that left the path because their record names a normal entry.
    normal_hits,
    /// Packets whose value had no record.
    misses,
    /// Records verified against changes or against the table before they were used.
    verified,
    /// Verified records whose list of extra rules sufficed, so that no table lookup was needed.
    walked,
    /// Records made.
    learned,
    /// Low-latency records displaced by another value.
    evicted,
    /// Normal records displaced by another value.
    displaced,
    /// Values that got no record because no place was free.
    refused,
    /// Records removed because rules changed.
    cleaned,
}

impl LutCounters {
    /// Adds to the number of records.
    pub fn records(&self, by: i64) {
        self.records.store(self.records.load(Relaxed).wrapping_add_signed(by), Relaxed);
    }

    /// Resets the number of records, because their LUT is no longer used.
    pub fn reset_records(&self) {
        self.records.store(0, Relaxed);
    }
}
