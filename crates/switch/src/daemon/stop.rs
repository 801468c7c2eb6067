// SPDX-License-Identifier: Apache-2.0
//! How the daemon is told to stop.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Becomes readable when the daemon is to stop.
#[derive(Debug)]
pub struct Stop(UnixStream);

impl Stop {
    /// Stops on SIGTERM and SIGINT, or when the returned end is written to.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn on_signals() -> io::Result<(Self, UnixStream)> {
        let (tell, told) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(SIGTERM, tell.try_clone()?)?;
        signal_hook::low_level::pipe::register(SIGINT, tell.try_clone()?)?;
        Ok((Self(told), tell))
    }

    /// Stops when the returned end is written to or dropped.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn by_hand() -> io::Result<(Self, UnixStream)> {
        let (tell, told) = UnixStream::pair()?;
        Ok((Self(told), tell))
    }

    /// Whether it was told to stop.
    pub(super) fn is_told(&self) -> bool {
        let mut set = [PollFd::from_borrowed_fd(self.descriptor(), PollFlags::IN)];
        matches!(poll(&mut set, Some(&Timespec::default())), Ok(ready) if ready > 0)
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
