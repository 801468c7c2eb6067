// SPDX-License-Identifier: Apache-2.0
//! What a worker's queues tell the control thread now and then: counters and links.

use flow::PortNo;
use port::{Link, Statistics};
use std::sync::{Arc, Mutex, PoisonError};

/// What one queue last told.
#[derive(Clone, Copy, Debug, Default)]
pub struct PortReport {
    /// Its counters.
    pub statistics: Statistics,
    /// Its link.
    pub link: Link,
}

/// Where one queue's reports are put; none until it has told. Locked by housekeeping and by the control thread, never for
/// a packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board {
    report: Arc<Mutex<Option<PortReport>>>,
}

impl Board {
    pub fn put(&self, report: PortReport) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }

    pub fn get(&self) -> Option<PortReport> {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The boards of all queues, by port.
pub(crate) type Boards = Vec<(PortNo, Board)>;
