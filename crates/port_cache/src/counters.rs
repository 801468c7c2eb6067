// SPDX-License-Identifier: Apache-2.0
//! Counters of the miss queues. The worker is the only writer.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        /// Counters of one worker, which the control thread reads.
        #[derive(Debug, Default)]
        pub struct MissCounters {
            $($name: AtomicU64,)*
        }

        /// Values of the counters.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct MissFigures {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl MissCounters {
            $(
                pub(crate) fn $name(&self) {
                    self.$name.store(self.$name.load(Relaxed) + 1, Relaxed);
                }
            )*

            /// Returns the values of all counters.
            #[must_use]
            pub fn read(&self) -> MissFigures {
                MissFigures { $($name: self.$name.load(Relaxed),)* }
            }
        }

        impl MissFigures {
            /// Adds the counters of another worker.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Packets that started a search.
    searched;
    /// Packets that joined the queue of their flow.
    merged;
    /// Packets of flows without a possible record, which were not queued.
    passed;
    /// Packets that were not queued because their port has too many pending flows or waiting bytes.
    uncached;
    /// Packets that were dropped because the queue of their port was full.
    dropped;
    /// Flows that were released without an answer because the queue of their port was full.
    forced;
    /// Searches that were repeated because no answer came in time.
    retried;
    /// Packets that were dropped because no answer came in time.
    timed_out;
    /// Answers that were ignored because their search was over.
    stale;
    /// Packets that were released from the queues.
    released;
    /// Path records that were removed because their port had too many records and pending flows.
    evicted;
}

impl MissFigures {
    /// Returns the number of packets without a path record that were offered to the queues.
    #[must_use]
    pub fn offered(&self) -> u64 {
        self.searched + self.merged + self.passed + self.uncached + self.dropped
    }
}
