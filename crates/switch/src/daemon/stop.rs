// SPDX-License-Identifier: Apache-2.0
//! The signal that stops the daemon.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Descriptor that becomes readable when the daemon must stop.
#[derive(Debug)]
pub struct Stop(UnixStream);

impl Stop {
    /// Creates a signal that is set by SIGTERM, by SIGINT, or by a write to the returned stream.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn on_signals() -> io::Result<(Self, UnixStream)> {
        let (sender, receiver) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(SIGTERM, sender.try_clone()?)?;
        signal_hook::low_level::pipe::register(SIGINT, sender.try_clone()?)?;
        Ok((Self(receiver), sender))
    }

    /// Creates a signal that is set by a write to the returned stream, or by dropping that stream.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn by_hand() -> io::Result<(Self, UnixStream)> {
        let (sender, receiver) = UnixStream::pair()?;
        Ok((Self(receiver), sender))
    }

    /// Returns whether the daemon must stop.
    pub(super) fn is_requested(&self) -> bool {
        let mut set = [PollFd::from_borrowed_fd(self.descriptor(), PollFlags::IN)];
        matches!(poll(&mut set, Some(&Timespec::default())), Ok(ready) if ready > 0)
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
