// SPDX-License-Identifier: Apache-2.0
//! What a worker's queues tell the control thread now and then: counters and links.

use crate::shaper::QueueReports;
use flow::PortNo;
use pipeline::Level;
use port::{Link, Statistics};
use std::sync::{Arc, Mutex, PoisonError};

/// What one queue last told.
#[derive(Clone, Copy, Debug, Default)]
pub struct PortReport {
    /// Its counters.
    pub statistics: Statistics,
    /// Its link.
    pub link: Link,
    /// The worker that serves it.
    pub worker: u16,
    /// What is in use of its room.
    pub levels: [Level; 3],
    /// What its egress queues have done, by number; those of other workers' are 0.
    pub queues: QueueReports,
}

/// What is in use of a worker's room.
pub(crate) type WorkerLevels = [Level; 11];

/// Where reports are put, of a queue or a worker; none until it has told. Locked by housekeeping and by the control thread,
/// never for a packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board<T = PortReport> {
    report: Arc<Mutex<Option<T>>>,
}

impl<T: Copy> Board<T> {
    pub fn put(&self, report: T) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }

    pub fn get(&self) -> Option<T> {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The boards of all queues, by port.
pub(crate) type Boards = Vec<(PortNo, Board)>;
