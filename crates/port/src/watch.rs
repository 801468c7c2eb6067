// SPDX-License-Identifier: Apache-2.0
//! Schedules queries of a link's state. A query takes several system calls, so it is made only when the
//! kernel has reported a change. Queries that wait for a system-wide lock are made only when a device is
//! opened, because forwarding must not wait for the lock.

use crate::Link;
use crate::sys::{Change, Monitor};
use std::io;
use std::time::{Duration, Instant};

/// Time after which the link is queried even without a reported change. Changes of speed are not reported.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// Result of a query.
pub(crate) struct LinkReport {
    /// State of the interface that has the name of the port's device.
    pub(crate) link: Link,
    /// Index of the interface to which the socket is bound.
    pub(crate) bound_index: i32,
    /// Whether an interface with the name of the port's device exists, but the socket is not bound to it.
    pub(crate) is_stale: bool,
}

/// The last known state of a link, and when to query it again.
pub(crate) struct Watch {
    monitor: Monitor,
    pub(crate) link: Link,
    /// Index of the interface to which the socket is bound; -1 if no interface has the name of the port's
    /// device.
    index: i32,
    /// Time of the next query if no change is reported. `None` means immediately.
    ask_at: Option<Instant>,
}

impl Watch {
    /// Starts listening for changes.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { monitor: Monitor::new()?, link: Link::default(), index: -1, ask_at: None })
    }

    /// Returns whether to query the link. Takes one system call if no interface has changed.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let change = self.monitor.look(self.index);
        // Without an interface, any changed interface may be the port's new interface.
        change == Change::This
            || change == Change::Others && self.index < 0
            || self.ask_at.is_none_or(|ask_at| now >= ask_at)
    }

    /// Stores the result of a query.
    pub(crate) fn note(&mut self, report: LinkReport, now: Instant) {
        let LinkReport { link, bound_index, is_stale } = report;
        self.index = if link.mtu.is_some() { bound_index } else { -1 };
        // An interface of this name exists but could not be opened, so the link is down. The next call
        // retries.
        self.link = Link {
            up: link.up && !is_stale,
            mtu: link.mtu.or(self.link.mtu),
            speed_mbps: link.speed_mbps.or(self.link.speed_mbps),
            index: (self.index > 0).then_some(self.index),
            ..link
        };
        self.ask_at = if is_stale { None } else { Some(now + ASK_AGAIN) };
    }
}
