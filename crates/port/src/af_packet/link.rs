// SPDX-License-Identifier: Apache-2.0
//! When to ask for the link's state. Asking takes several system calls, one of which waits for a lock that the whole
//! system shares (ethtool's); the kernel tells of changes, so that it is asked only then.

use super::socket::{Port, Socket};
use crate::sys::{Change, Monitor};
use crate::{Link, PortError};
use std::time::{Duration, Instant};

/// Without a change it is asked all the same after this time: of a speed, for instance, the kernel does not tell.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// A link's state as last asked for.
pub(super) struct Watch {
    monitor: Monitor,
    pub(super) link: Link,
    /// Index of the interface that the socket is bound to; -1 when none has the port's device's name.
    index: i32,
    /// When to ask without having been told of a change; none: at once.
    ask_at: Option<Instant>,
}

impl Watch {
    /// Asks, and listens from now on.
    pub(super) fn new(socket: &Socket, port: &Port) -> Result<Self, PortError> {
        let monitor = Monitor::new().map_err(|e| port.error("listen to changes of links", e))?;
        let mut watch = Self { monitor, link: Link::default(), index: -1, ask_at: None };
        watch.ask(socket, port, Instant::now());
        Ok(watch)
    }

    /// Whether to ask: one system call, if no interface has changed.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        let change = self.monitor.look(self.index);
        // Without an interface, any that changed may be the new one.
        change == Change::This
            || change == Change::Others && self.index < 0
            || self.ask_at.is_none_or(|ask_at| now >= ask_at)
    }

    /// Asks.
    pub(super) fn ask(&mut self, socket: &Socket, port: &Port, now: Instant) {
        let link = socket.link(port);
        let is_stale = socket.is_stale(port);
        self.index = if link.mtu.is_some() { socket.bound_index() } else { -1 };
        // While an interface of that name exists that could not be opened, nothing passes, and the next call tries again.
        self.link = Link { up: link.up && !is_stale, mtu: link.mtu.or(self.link.mtu), ..link };
        self.ask_at = if is_stale { None } else { Some(now + ASK_AGAIN) };
    }
}
