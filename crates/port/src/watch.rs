// SPDX-License-Identifier: Apache-2.0
//! When to ask for the link's state. Asking takes several system calls; the kernel reports changes, so that it is asked
//! only then. Only when a device is opened, questions are asked that wait for a lock that the whole system shares:
//! forwarding must not wait for it. [`crate::links`] knows of each change, at once.

use crate::Link;
use crate::sys::{Change, Monitor};
use std::io;
use std::time::{Duration, Instant};

/// Without a change it is asked all the same after this time: of a speed, for instance, the kernel does not tell.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// What a device tells when it is asked.
pub(crate) struct Told {
    /// The state of the interface that has the port's device's name.
    pub(crate) link: Link,
    /// Index of the interface that the socket is bound to.
    pub(crate) bound_index: i32,
    /// The interface of that name is not the one that the socket is bound to.
    pub(crate) is_stale: bool,
}

/// A link's state as last asked for.
pub(crate) struct Watch {
    monitor: Monitor,
    pub(crate) link: Link,
    /// Index of the interface that the socket is bound to; -1 when none has the port's device's name.
    index: i32,
    /// When to ask without having been told of a change; none: at once.
    ask_at: Option<Instant>,
}

impl Watch {
    /// Listens from now on.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { monitor: Monitor::new()?, link: Link::default(), index: -1, ask_at: None })
    }

    /// Whether to ask: one system call, if no interface has changed.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let change = self.monitor.look(self.index);
        // Without an interface, any that changed may be the new one.
        change == Change::This
            || change == Change::Others && self.index < 0
            || self.ask_at.is_none_or(|ask_at| now >= ask_at)
    }

    /// Takes down what was told.
    pub(crate) fn note(&mut self, told: Told, now: Instant) {
        let Told { link, bound_index, is_stale } = told;
        self.index = if link.mtu.is_some() { bound_index } else { -1 };
        // While an interface of that name exists that could not be opened, nothing passes, and the next call tries again.
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
