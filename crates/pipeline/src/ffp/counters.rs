// SPDX-License-Identifier: Apache-2.0
//! What a worker counts of a LUT; read by the control thread.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// One writer: the worker.
        #[derive(Debug, Default)]
        pub struct LutCounters {
            $($name: AtomicU64,)*
            records: AtomicU64,
        }

        /// A LUT's figures, of one worker or summed.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct LutFigures {
            $($(#[$doc])* pub $name: u64,)*
            /// Records there are.
            pub records: u64,
        }

        impl LutCounters {
            $(
                #[inline]
                pub(crate) fn $name(&self, by: u64) {
                    self.$name.store(self.$name.load(Relaxed) + by, Relaxed);
                }
            )*

            /// The figures now.
            #[must_use]
            pub fn read(&self) -> LutFigures {
                LutFigures { $($name: self.$name.load(Relaxed),)* records: self.records.load(Relaxed) }
            }
        }

        impl LutFigures {
            /// Adds another worker's.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
                self.records += other.records;
            }
        }
    };
}

counters! {
    /// Packets that a low-latency record carried on.
    hits,
    /// Packets that left the path here because a record told that they are normal.
    normal_hits,
    /// Packets whose value had no record.
    misses,
    /// Records held against what changed, or against the table, before they were used.
    verified,
    /// Of these, such that their extra rules were enough for.
    walked,
    /// Records made.
    learned,
    /// Low-latency records that lost their place to another value.
    evicted,
    /// Normal records that did.
    displaced,
    /// Values for which there was no room.
    refused,
    /// Records taken away because rules changed.
    cleaned,
}

impl LutCounters {
    pub(crate) fn records(&self, by: i64) {
        self.records.store(self.records.load(Relaxed).wrapping_add_signed(by), Relaxed);
    }

    /// Forgets the records: their LUT is no longer used.
    pub fn reset_records(&self) {
        self.records.store(0, Relaxed);
    }
}
