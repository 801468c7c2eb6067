// SPDX-License-Identifier: Apache-2.0
//! Waiting for descriptors, and the event descriptor that wakes a waiting thread.

use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Maximum number of descriptors that a thread can wait for.
pub(crate) const MAX_DESCRIPTORS: usize = 4_096;

/// Number of descriptors up to which a call allocates no memory.
const FEW_DESCRIPTORS: usize = 64;

/// Waits until one of up to [`MAX_DESCRIPTORS`] descriptors is readable or has an error. Returns the number
/// of ready descriptors.
pub(crate) fn poll(descriptors: &[RawFd], timeout: Option<Duration>) -> io::Result<usize> {
    if descriptors.len() > MAX_DESCRIPTORS {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} descriptors to wait for; at most {MAX_DESCRIPTORS}", descriptors.len()),
        ));
    }
    let entry = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut few = [entry(-1); FEW_DESCRIPTORS];
    let mut many = Vec::new();
    let set = if let Some(set) = few.get_mut(..descriptors.len()) {
        set.iter_mut().zip(descriptors).for_each(|(place, fd)| *place = entry(*fd));
        set
    } else {
        many.extend(descriptors.iter().copied().map(entry));
        &mut many[..]
    };
    let limit = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().min(i32::MAX as u64) as libc::time_t,
        tv_nsec: timeout.subsec_nanos() as _,
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), |limit| &raw const *limit);
    // SAFETY: `set` and `limit`, which may be null, live until the call returns.
    let ready =
        check(unsafe { libc::ppoll(set.as_mut_ptr(), set.len() as libc::nfds_t, limit, std::ptr::null()) });
    match ready {
        Ok(ready) => Ok(ready as usize),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
    }
}

/// Creates a non-blocking event counter.
pub(crate) fn event() -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointers. On success it returns a new descriptor that nothing else owns.
    unsafe {
        check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)).map(|fd| OwnedFd::from_raw_fd(fd))
    }
}

/// Makes an event counter readable.
pub(crate) fn raise_event(event: BorrowedFd<'_>) {
    let one = 1_u64;
    // SAFETY: the kernel reads eight bytes, which live until the call returns. The call fails only if the
    // counter is full, and then it is readable.
    unsafe { libc::write(event.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
}

/// Makes an event counter unreadable. Returns whether it was readable.
pub(crate) fn clear_event(event: BorrowedFd<'_>) -> bool {
    let mut count = 0_u64;
    // SAFETY: the kernel writes at most eight bytes, the size of `count`, which lives until the call returns.
    unsafe { libc::read(event.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) > 0 }
}
