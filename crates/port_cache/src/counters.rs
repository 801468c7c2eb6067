// SPDX-License-Identifier: Apache-2.0
//! Counters of the miss queues. The worker is the only writer.

use flow::PortNo;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Use of a port's budgets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissUsage {
    /// Flows whose search is in progress, or whose packets are being released.
    pub pending: u64,
    /// Flows whose packets are not queued, because they cannot have a path record.
    pub negative: u64,
    /// Waiting packets, except the first packet of each flow.
    pub followers: u64,
    /// Bytes of all waiting packets.
    pub bytes: u64,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        /// Counters of one port, and the use of its budgets.
        #[derive(Debug, Default)]
        struct PortCounters {
            $($name: AtomicU64,)*
            usage: [AtomicU64; 4],
        }

        /// Values of the counters.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct MissFigures {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl MissCounters {
            $(
                pub(crate) fn $name(&self, port: u16, packets: u64) {
                    let counter = &self.of(port).$name;
                    counter.store(counter.load(Relaxed) + packets, Relaxed);
                }
            )*
        }

        impl PortCounters {
            fn read(&self) -> MissFigures {
                MissFigures { $($name: self.$name.load(Relaxed),)* }
            }
        }

        impl MissFigures {
            /// Adds the counters of another port or worker.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }

            /// Returns the differences from earlier values of the same counters. A counter that has become
            /// less, because packets that waited were dropped, gives 0.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                MissFigures { $($name: self.$name.saturating_sub(earlier.$name),)* }
            }
        }
    };
}

counters! {
    /// Packets that had a path record.
    hits;
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
    /// Answers that were ignored because their search was over. They count for the port of that search, or
    /// for the first port if it is not known.
    stale;
    /// Searches that got no answer because the searcher had too many, and packets that were looked up without
    /// a search while it had too many.
    unserved;
    /// Searches that were sent to the search worker, including repeated ones.
    sent;
    /// Answers of the search worker that ended a search.
    answered;
    /// Answers among them that were found under another version of the rules. The first packet of the flow
    /// was looked up in the worker's own tables.
    outdated;
    /// Searches that ended without an answer because the search worker did not answer any search, or because
    /// the packet was too long for it. The packets were looked up in the worker's own tables.
    fallen_back;
    /// Packets that were released from the queues.
    released;
    /// Path records that were removed because their port had too many records and pending flows.
    evicted;
    /// Questions to the controller about a flow, including those whose packet-in was not sent.
    asked;
    /// Packets that returned to the queue of their flow because the controller had been asked already.
    returned;
    /// Packets that were sent to the controller without a question, because their port had no space for
    /// another flow, or because the controller had not answered an earlier question about the flow in time.
    unquenched;
    /// Questions that got no answer of the controller in time.
    unanswered;
}

/// Counters of one worker, which the control thread reads.
#[derive(Debug)]
pub struct MissCounters {
    /// Port numbers, in ascending order.
    ports: Box<[PortNo]>,
    /// Counters of the ports. There is at least one element.
    all: Box<[PortCounters]>,
}

impl Default for MissCounters {
    /// Creates counters that do not distinguish ports.
    fn default() -> Self {
        Self::new([])
    }
}

impl MissCounters {
    /// Creates counters for the ports of a worker. Without ports, all ports share their counters.
    #[must_use]
    pub fn new(ports: impl IntoIterator<Item = PortNo>) -> Self {
        let mut ports: Vec<PortNo> = ports.into_iter().collect();
        ports.sort_unstable();
        ports.dedup();
        let all = (0..ports.len().max(1)).map(|_| PortCounters::default()).collect();
        Self { ports: ports.into_boxed_slice(), all }
    }

    /// Returns the counters of a port, which is numbered in the order of the port numbers.
    fn of(&self, port: u16) -> &PortCounters {
        &self.all[usize::from(port).min(self.all.len() - 1)]
    }

    /// Publishes the use of a port's budgets.
    pub(crate) fn publish(&self, port: u16, usage: MissUsage) {
        let MissUsage { pending, negative, followers, bytes } = usage;
        let values = [pending, negative, followers, bytes];
        self.of(port).usage.iter().zip(values).for_each(|(published, value)| published.store(value, Relaxed));
    }

    /// Notes that a packet that had joined a queue is dropped.
    pub(crate) fn dropped_later(&self, port: u16) {
        let merged = &self.of(port).merged;
        merged.store(merged.load(Relaxed).saturating_sub(1), Relaxed);
        self.dropped(port, 1);
    }

    /// Returns the values of all counters, summed over the ports.
    #[must_use]
    pub fn read(&self) -> MissFigures {
        let mut sum = MissFigures::default();
        self.all.iter().for_each(|port| sum.add(&port.read()));
        sum
    }

    /// Returns the counters of each port, and the use of its budgets.
    pub fn read_ports(&self) -> impl Iterator<Item = (PortNo, MissFigures, MissUsage)> {
        self.ports.iter().zip(&self.all).map(|(number, port)| {
            let [pending, negative, followers, bytes] = [0, 1, 2, 3].map(|at| port.usage[at].load(Relaxed));
            (*number, port.read(), MissUsage { pending, negative, followers, bytes })
        })
    }
}

impl MissFigures {
    /// Returns the number of packets without a path record that were offered to the queues.
    #[must_use]
    pub fn offered(&self) -> u64 {
        self.searched + self.merged + self.passed + self.uncached + self.dropped
    }

    /// Returns the number of packets that reached the port cache.
    #[must_use]
    pub fn arrived(&self) -> u64 {
        self.hits + self.offered()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_counted_apart_and_in_the_sum() {
        let counters = MissCounters::new([PortNo(7), PortNo(3), PortNo(7)]);
        counters.hits(0, 5);
        counters.merged(1, 2);
        counters.merged(1, 1);
        let usage = MissUsage { pending: 1, negative: 2, followers: 3, bytes: 4 };
        counters.publish(1, usage);
        let three = MissFigures { hits: 5, ..MissFigures::default() };
        let seven = MissFigures { merged: 3, ..MissFigures::default() };
        let ports: Vec<_> = counters.read_ports().collect();
        assert_eq!(ports, [(PortNo(3), three, MissUsage::default()), (PortNo(7), seven, usage)]);
        assert_eq!((counters.read().hits, counters.read().merged, counters.read().arrived()), (5, 3, 8));
    }

    #[test]
    fn counters_without_ports_count_all_of_them() {
        let counters = MissCounters::default();
        (0..3).for_each(|port| counters.searched(port, 1));
        assert_eq!((counters.read().searched, counters.read_ports().count()), (3, 0));
    }
}
