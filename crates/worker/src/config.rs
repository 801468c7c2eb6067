// SPDX-License-Identifier: Apache-2.0
//! Sizes and limits of a set of workers, and the ports that it serves.

use crate::clock::Clock;
use crate::consistency::Consistency;
use crate::outbox::OUTBOX_FRAMES;
use crate::quantum::Quanta;
use actions::PacketInRates;
use flow::{EgressQueue, Nanos, PortNo};
use pipeline::{BypassLimits, LaneLimits};
use port::Queue;
use port_cache::{PortCacheConfig, SearcherKind};

/// Sizes and limits of a set of workers.
#[derive(Clone, Copy, Debug)]
pub struct WorkerSetConfig {
    /// Number of workers.
    pub workers: usize,
    /// Number of small frames per worker.
    pub small_frames: usize,
    /// Number of large frames per worker, for GSO super-frames and jumbo frames.
    pub large_frames: usize,
    /// Number of frames per worker for packets to the controller.
    pub controller_frames: usize,
    /// Capacity of the ring for operations to each worker.
    pub operations: usize,
    /// Capacity of the ring for events from each worker.
    pub events: usize,
    /// Capacity of each ring for frames between two workers, per lane.
    pub handovers: usize,
    /// Maximum number of normal frames in an outbox. Low-latency frames have a separate limit of the same
    /// value.
    pub outbox_frames: usize,
    /// Limits of the two lanes. By default packets do not wait: each burst is finished before the next is
    /// received.
    pub lanes: LaneLimits,
    /// Budgets for processing the backlog.
    pub quanta: Quanta,
    /// Number of records of each LUT in each worker. 0 turns the fast-forwarding path off.
    pub lut_entries: usize,
    /// Number of path records in each worker. 0 turns the express path off.
    pub express_records: usize,
    /// Limits that decide when the express path is bypassed.
    pub express_bypass: BypassLimits,
    /// Limits and searcher of the port cache; `None` turns it off. It needs path records. With it, the
    /// express path is never bypassed.
    pub port_cache: Option<PortCacheConfig>,
    /// Rate limits of packet-ins.
    pub packet_in_rates: PacketInRates,
    /// Method by which LUT records are kept consistent with rule changes.
    pub consistency: Consistency,
    /// Clock that times the steps of one burst in many. If `None`, nothing is timed.
    pub stopwatch: Option<fn() -> Nanos>,
    /// One in this many bursts is timed; 0 counts as 1.
    pub timed_bursts: u32,
    /// Clock for the latency of each frame.
    pub clock: Clock,
}

impl Default for WorkerSetConfig {
    fn default() -> Self {
        Self {
            workers: 1,
            small_frames: 8_192,
            large_frames: 256,
            controller_frames: 512,
            operations: 1_024,
            events: 1_024,
            handovers: 1_024,
            outbox_frames: OUTBOX_FRAMES,
            lanes: LaneLimits::default(),
            quanta: Quanta::default(),
            lut_entries: 4_096,
            express_records: 0,
            express_bypass: BypassLimits::USUAL,
            port_cache: None,
            packet_in_rates: PacketInRates::default(),
            stopwatch: None,
            consistency: Consistency::default(),
            timed_bursts: 1_024,
            clock: Clock::stopped(),
        }
    }
}

impl WorkerSetConfig {
    /// Returns whether a search worker answers the searches of the port caches.
    #[must_use]
    pub fn has_search_worker(&self) -> bool {
        self.express_records > 0
            && self.port_cache.is_some_and(|cache| cache.searcher == SearcherKind::Worker)
    }

    /// Returns the number of workers with tables, including a search worker.
    pub(crate) fn views(&self) -> usize {
        self.workers + usize::from(self.has_search_worker())
    }
}

/// A port's queues, each with the number of the worker that serves it.
pub struct PortQueues {
    /// Port number.
    pub number: PortNo,
    /// Device queues with worker numbers. A worker has at most one queue per port.
    pub queues: Vec<(usize, Box<dyn Queue>)>,
    /// Egress queues with distinct numbers. If there are any, the first worker of the port sends for all
    /// workers, so that the rates apply to the whole port.
    pub egress: Vec<EgressQueue>,
}
