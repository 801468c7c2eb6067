// SPDX-License-Identifier: Apache-2.0
//! Waiting for descriptors, and the descriptor that wakes a waiting thread.

use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Most descriptors one thread can wait for.
pub(crate) const MAX_DESCRIPTORS: usize = 64;

/// Waits until one of up to [`MAX_DESCRIPTORS`] is readable or broken; returns how many are.
pub(crate) fn poll(descriptors: &[RawFd], timeout: Option<Duration>) -> io::Result<usize> {
    let mut set = [libc::pollfd { fd: -1, events: 0, revents: 0 }; MAX_DESCRIPTORS];
    if descriptors.len() > MAX_DESCRIPTORS {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} descriptors to wait for; at most {MAX_DESCRIPTORS}", descriptors.len()),
        ));
    }
    for (entry, fd) in set.iter_mut().zip(descriptors) {
        *entry = libc::pollfd { fd: *fd, events: libc::POLLIN, revents: 0 };
    }
    let limit = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().min(i32::MAX as u64) as libc::time_t,
        tv_nsec: timeout.subsec_nanos() as _,
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), |limit| &raw const *limit);
    // SAFETY: as many entries as given, and a time limit or null, all of which outlive the call.
    let ready = check(unsafe {
        libc::ppoll(set.as_mut_ptr(), descriptors.len() as libc::nfds_t, limit, std::ptr::null())
    });
    match ready {
        Ok(ready) => Ok(ready as usize),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
    }
}

/// A new event counter that does not block.
pub(crate) fn event() -> io::Result<OwnedFd> {
    // SAFETY: no pointers; a descriptor that is returned is ours alone.
    unsafe {
        check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)).map(|fd| OwnedFd::from_raw_fd(fd))
    }
}

/// Makes an event counter readable.
pub(crate) fn raise_event(event: BorrowedFd<'_>) {
    let one = 1_u64;
    // SAFETY: eight bytes that outlive the call. It can fail only when the counter is full, and then it is readable.
    unsafe { libc::write(event.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
}

/// Makes an event counter unreadable; false if it was.
pub(crate) fn clear_event(event: BorrowedFd<'_>) -> bool {
    let mut count = 0_u64;
    // SAFETY: eight bytes that outlive the call.
    unsafe { libc::read(event.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) > 0 }
}
