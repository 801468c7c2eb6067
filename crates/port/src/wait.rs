// SPDX-License-Identifier: Apache-2.0
//! Sleep of a worker until packets wait on one of its ports, or another thread wakes it.

use crate::sys;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

/// Maximum number of descriptors per call of [`wait`].
pub const MAX_DESCRIPTORS: usize = sys::MAX_DESCRIPTORS;

/// Sleeps until one of `descriptors` is readable or `timeout` has elapsed. `None` means no timeout. Returns
/// the number of ready descriptors; 0 if a signal ended the sleep. A socket with a pending error counts as
/// ready until the queue's descriptor is requested again. Closing a descriptor during the sleep is harmless.
///
/// # Errors
/// Returns an error for more than [`MAX_DESCRIPTORS`] descriptors, or if the system call fails.
pub fn wait(descriptors: &[RawFd], timeout: Option<Duration>) -> io::Result<usize> {
    sys::poll(descriptors, timeout)
}

/// An event that wakes a sleeping worker: its descriptor is readable from `wake` until `clear`.
#[derive(Debug)]
pub struct Wake(OwnedFd);

impl Wake {
    /// Creates an event that is not raised.
    ///
    /// # Errors
    /// Returns an error if the process has no descriptor left.
    pub fn new() -> io::Result<Self> {
        sys::event().map(Self)
    }

    /// Wakes the thread that waits for the descriptor, now or later. May be called from any thread.
    pub fn wake(&self) {
        sys::raise_event(self.0.as_fd());
    }

    /// Clears the event. Returns whether it was raised. The sleeper must call this before it looks for work.
    pub fn clear(&self) -> bool {
        sys::clear_event(self.0.as_fd())
    }

    /// Returns the descriptor to wait for.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Instant;

    #[test]
    fn a_wake_ends_the_sleep_and_stays_until_cleared() {
        let wake = Arc::new(Wake::new().unwrap());
        let fds = [wake.descriptor()];
        let start = Instant::now();
        assert_eq!(wait(&fds, Some(Duration::from_millis(20))).unwrap(), 0);
        assert!(start.elapsed() >= Duration::from_millis(20));
        let other = Arc::clone(&wake);
        let waker = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            other.wake();
            other.wake();
        });
        assert_eq!(wait(&fds, Some(Duration::from_secs(20))).unwrap(), 1);
        waker.join().unwrap();
        assert_eq!(wait(&fds, None).unwrap(), 1);
        assert!(wake.clear() && !wake.clear());
        assert_eq!(wait(&fds, Some(Duration::ZERO)).unwrap(), 0);
        assert!(wait(&[0; MAX_DESCRIPTORS + 1], None).is_err());
    }
}
