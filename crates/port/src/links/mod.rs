// SPDX-License-Identifier: Apache-2.0
//! Monitor of the links of some interfaces, on a dedicated thread.
//!
//! Drivers check their links only periodically, and may miss a short interruption. This module reads every
//! report of the kernel. Its queries may wait for a system-wide lock, so no thread that forwards packets may
//! make them.

mod message;

use crate::sys::{Interface, Monitor};
use message::{Message, State};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Interval of queries while an interface has no carrier. The kernel may delay a report by a second, but a
/// query makes it check the link immediately.
const ASK_WHILE_DOWN: Duration = Duration::from_millis(100);

/// Interval of queries of the speed, which the kernel does not report.
const ASK_SPEED: Duration = Duration::from_secs(5);

/// Size of the buffer for a message in bytes; the kernel's messages are shorter.
const MESSAGE_BYTES: usize = 64 * 1024;

/// Maximum number of messages read in one step.
const MESSAGES_PER_STEP: usize = 256;

/// State of a monitored link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedLink {
    /// Name of the interface.
    pub name: String,
    /// Index of the interface; `None` while there is no interface of this name.
    pub index: Option<i32>,
    /// The interface is up and has a carrier.
    pub up: bool,
    /// Number of times that the link was seen to go down. Several changes in one report count once.
    pub downs: u64,
    /// MAC address of the interface.
    pub mac: Option<[u8; 6]>,
    /// Speed in Mbit/s.
    pub speed_mbps: Option<u32>,
    /// The kernel's counter of lost carriers, if it has one.
    pub kernel_downs: Option<u32>,
}

impl WatchedLink {
    /// Stores a report. Returns whether something changed.
    fn note(&mut self, state: &State) -> bool {
        let before = self.clone();
        let is_same = self.index == Some(state.index);
        let lost_carrier =
            is_same && self.kernel_downs.zip(state.downs).is_some_and(|(known, reported)| known != reported);
        if self.up && (!state.up || !is_same || lost_carrier) {
            self.downs += 1;
        }
        self.index = Some(state.index);
        (self.up, self.mac, self.kernel_downs) = (state.up, state.mac, state.downs);
        *self != before
    }

    /// Records that there is no interface of this name. Returns whether there was one.
    fn note_gone(&mut self) -> bool {
        if self.index.is_none() {
            return false;
        }
        self.downs += u64::from(self.up);
        let (name, downs) = (std::mem::take(&mut self.name), self.downs);
        *self = Self { name, downs, ..Self::default() };
        true
    }
}

/// Monitor of the links of some interfaces in one network namespace.
pub struct LinkWatch {
    monitor: Monitor,
    buffer: Box<[u8]>,
    links: Vec<WatchedLink>,
    ask_down_at: Instant,
    ask_speed_at: Instant,
}

impl LinkWatch {
    /// Starts monitoring interfaces by name in the calling thread's network namespace. The interfaces need
    /// not exist.
    ///
    /// # Errors
    /// Returns an error if the netlink socket cannot be opened.
    pub fn new(names: impl IntoIterator<Item = String>) -> io::Result<Self> {
        let links = names.into_iter().map(|name| WatchedLink { name, ..WatchedLink::default() }).collect();
        let now = Instant::now();
        let mut watch = Self {
            monitor: Monitor::new()?,
            buffer: vec![0; MESSAGE_BYTES].into_boxed_slice(),
            links,
            ask_down_at: now + ASK_WHILE_DOWN,
            ask_speed_at: now + ASK_SPEED,
        };
        watch.monitor.make_room();
        watch.ask(|_| true);
        watch.read();
        watch.ask_speeds();
        Ok(watch)
    }

    /// Monitors the interfaces with these names from now on. The state of links that were monitored before is
    /// kept, and new links are read before the function returns.
    pub fn set_names(&mut self, names: Vec<String>) {
        let mut before = std::mem::take(&mut self.links);
        for name in names {
            let known = before.iter().position(|link| link.name == name).map(|at| before.swap_remove(at));
            self.links.push(known.unwrap_or_else(|| WatchedLink { name, ..WatchedLink::default() }));
        }
        self.ask(|link| link.index.is_none());
        self.read();
        self.ask_speeds();
    }

    /// Returns the links as last reported.
    #[must_use]
    pub fn links(&self) -> &[WatchedLink] {
        &self.links
    }

    /// Waits for a report, for the next query that is due, or until `wake` is readable. Updates the links and
    /// returns whether any of them has changed.
    ///
    /// # Errors
    /// Returns an error if the wait fails.
    pub fn wait(&mut self, wake: BorrowedFd<'_>) -> io::Result<bool> {
        let is_down = self.links.iter().any(|link| !link.up && link.index.is_some());
        let now = Instant::now();
        let due = if is_down { self.ask_down_at.min(self.ask_speed_at) } else { self.ask_speed_at };
        let descriptors = [self.monitor.as_fd().as_raw_fd(), wake.as_raw_fd()];
        crate::wait::wait(&descriptors, Some(due.saturating_duration_since(now)))?;
        let now = Instant::now();
        if now >= self.ask_down_at {
            self.ask_down_at = now + ASK_WHILE_DOWN;
            self.ask(|link| !link.up && link.index.is_some());
        }
        let mut changed = self.read();
        if changed || now >= self.ask_speed_at {
            self.ask_speed_at = now + ASK_SPEED;
            changed |= self.ask_speeds();
        }
        Ok(changed)
    }

    /// Queries the kernel for the state of some of the links. The answers are read like reports.
    fn ask(&self, which: impl Fn(&WatchedLink) -> bool) {
        for (number, link) in self.links.iter().enumerate().filter(|(_, link)| which(link)) {
            // If the query cannot be sent, the next query or report gives the answer.
            let _ = self.monitor.send(&message::question(&link.name, number as u32));
        }
    }

    /// Reads the kernel's reports. Returns whether a link has changed.
    fn read(&mut self) -> bool {
        let mut changed = false;
        for _ in 0..MESSAGES_PER_STEP {
            match self.monitor.receive(&mut self.buffer) {
                Ok(len) => {
                    let datagram = self.buffer.get(..len).unwrap_or_default();
                    for message in message::messages(datagram) {
                        changed |= note(&mut self.links, &message);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return changed,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The buffer was full and reports were lost, so all links are queried.
                Err(_) => self.ask(|_| true),
            }
        }
        changed
    }

    fn ask_speeds(&mut self) -> bool {
        let mut changed = false;
        for link in &mut self.links {
            let asked = Interface::new(self.monitor.as_fd(), &link.name);
            let speed_mbps = link.index.and_then(|_| asked.speed_mbps());
            changed |= std::mem::replace(&mut link.speed_mbps, speed_mbps) != speed_mbps;
        }
        changed
    }
}

fn note(links: &mut [WatchedLink], message: &Message) -> bool {
    match message {
        Message::Is(state) => {
            let mut changed = false;
            for link in links {
                if link.name == state.name {
                    changed |= link.note(state);
                } else if link.index == Some(state.index) {
                    // The interface was renamed.
                    changed |= link.note_gone();
                }
            }
            changed
        }
        Message::Gone(index) => {
            links.iter_mut().find(|link| link.index == Some(*index)).is_some_and(WatchedLink::note_gone)
        }
        Message::Refused(number) => links.get_mut(*number as usize).is_some_and(WatchedLink::note_gone),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(index: i32, name: &str, up: bool, downs: u32) -> Message {
        Message::Is(State { index, name: name.into(), up, downs: Some(downs), mac: None })
    }

    /// Returns index, state and number of downs of the link `a` after each message.
    fn seen(messages: &[Message]) -> Vec<(Option<i32>, bool, u64)> {
        let mut links = ["a", "b"].map(|name| WatchedLink { name: name.into(), ..WatchedLink::default() });
        let after = |message| {
            let before = links[0].clone();
            assert_eq!(note(&mut links, message), links[0] != before);
            (links[0].index, links[0].up, links[0].downs)
        };
        messages.iter().map(after).collect()
    }

    #[test]
    fn a_link_that_was_lost_between_two_reports_counts() {
        let (up, down) = (|downs| is(3, "a", true, downs), |downs| is(3, "a", false, downs));
        let reports = [up(4), up(4), up(5), up(9), down(10), down(12), up(12), is(9, "x", false, 0)];
        let expected = [
            (Some(3), true, 0),
            (Some(3), true, 0),
            (Some(3), true, 1),
            (Some(3), true, 2),
            (Some(3), false, 3),
            (Some(3), false, 3),
            (Some(3), true, 3),
            (Some(3), true, 3),
        ];
        assert_eq!(seen(&reports), expected);
    }

    #[test]
    fn an_interface_may_return_with_another_index() {
        let reports = [
            Message::Refused(0),
            is(3, "a", true, 0),
            Message::Gone(4),
            Message::Gone(3),
            is(5, "a", true, 0),
            // The interface is renamed.
            is(5, "c", true, 0),
            is(6, "a", false, 2),
            is(7, "a", true, 0),
            is(8, "a", true, 0),
            Message::Refused(0),
        ];
        let expected = [
            (None, false, 0),
            (Some(3), true, 0),
            (Some(3), true, 0),
            (None, false, 1),
            (Some(5), true, 1),
            (None, false, 2),
            (Some(6), false, 2),
            (Some(7), true, 2),
            (Some(8), true, 3),
            (None, false, 4),
        ];
        assert_eq!(seen(&reports), expected);
    }
}
