// SPDX-License-Identifier: Apache-2.0
//! Snapshots that workers publish periodically for the control thread: counters, links and resource usage.

use crate::egress::EgressUsage;
use crate::outbox::OutboxUsage;
use crate::shaper::QueueReports;
use dataplane::Usage;
use flow::PortNo;
use pipeline::PipelineUsage;
use port::{Link, Statistics};
use std::sync::{Arc, Mutex, PoisonError};

/// The last report of one port queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct PortReport {
    /// Counters of the queue.
    pub statistics: Statistics,
    /// Link state of the port as seen by the queue.
    pub link: Link,
    /// Number of the worker that serves the queue.
    pub worker: u16,
    /// Usage of the outbox for this queue.
    pub outbox: OutboxUsage,
    /// Reports of the port's egress queues, by queue number. All values are zero if another worker serves the
    /// queues.
    pub queues: QueueReports,
}

/// Usage of a worker's bounded resources.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerUsage {
    pub pipeline: PipelineUsage,
    pub egress: EgressUsage,
    /// Packets that the recorder is recording.
    pub recorder: Usage,
}

/// A mailbox for the latest report of a queue or worker. It contains `None` before the first report. A worker
/// locks it during housekeeping, never while it handles packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published<T = PortReport> {
    report: Arc<Mutex<Option<T>>>,
}

impl<T: Copy> Published<T> {
    pub fn put(&self, report: T) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }

    pub fn get(&self) -> Option<T> {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The mailboxes of all queues, by port.
pub(crate) type PortReports = Vec<(PortNo, Published)>;
