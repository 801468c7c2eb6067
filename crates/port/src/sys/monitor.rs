// SPDX-License-Identifier: Apache-2.0
//! Listener for changes of network interfaces: rtnetlink's link group, one message per change. Layout:
//! linux/netlink.h `struct nlmsghdr` and linux/rtnetlink.h `struct ifinfomsg`, integers in native byte order.

use super::{check, set_option};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Length in bytes of the message header and the fixed part of a link message, without attributes.
const MESSAGE_BYTES: usize = 32;
/// Offset of the interface index in a message.
const INDEX_AT: usize = 20;
/// Maximum number of messages read per call, to bound its time.
const MESSAGES_MAX: usize = 64;

/// Size in bytes of the receive buffer of a socket that expects many messages.
const ROOM_BYTES: libc::c_int = 1024 * 1024;

/// A netlink socket that reports changes in the network namespace in which it was created.
pub(crate) struct Monitor(OwnedFd);

/// Changes since the last call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// No interface has changed.
    Nothing,
    /// Only other interfaces have changed.
    Others,
    /// The interface in question may have changed, or messages were lost.
    This,
}

impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Monitor {
    /// Opens the socket and subscribes to changes of interfaces.
    pub(crate) fn new() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: the call takes no pointers. On success it returns a new descriptor that nothing else owns.
        let fd = unsafe {
            check(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE))
                .map(|fd| OwnedFd::from_raw_fd(fd))?
        };
        // SAFETY: `sockaddr_nl` consists of integers, for which all zeros are valid.
        let mut address: libc::sockaddr_nl = unsafe { MaybeUninit::zeroed().assume_init() };
        address.nl_family = libc::AF_NETLINK as u16;
        address.nl_groups = libc::RTMGRP_LINK as u32;
        // SAFETY: the address lives until the call returns, and its true size is given.
        unsafe {
            check(libc::bind(
                fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_nl>() as libc::socklen_t,
            ))?;
        }
        Ok(Self(fd))
    }

    /// Enlarges the receive buffer. Best effort: more than the system's limit requires CAP_NET_ADMIN.
    pub(crate) fn make_room(&self) {
        for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
            if set_option(self.0.as_fd(), libc::SOL_SOCKET, option, &ROOM_BYTES).is_ok() {
                return;
            }
        }
    }

    /// Sends a message to the kernel, whose answer arrives among the reports of changes.
    pub(crate) fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: the message lives until the call returns, and its true length is given.
        let sent = unsafe {
            libc::send(self.0.as_raw_fd(), message.as_ptr().cast(), message.len(), libc::MSG_DONTWAIT)
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Receives the next datagram of messages, cut to the buffer's length. Returns `WouldBlock` if no
    /// datagram waits.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the kernel writes at most `buffer.len()` bytes into the buffer, which lives until the call
        // returns.
        let len = unsafe {
            libc::recv(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT)
        };
        if len < 0 { Err(io::Error::last_os_error()) } else { Ok(len as usize) }
    }

    /// Returns which interfaces have changed since the last call: `index`, only others, or none. Makes one
    /// system call if nothing has changed.
    pub(crate) fn look(&self, index: i32) -> Change {
        let mut change = Change::Nothing;
        for _ in 0..MESSAGES_MAX {
            let mut message = [0_u8; MESSAGE_BYTES];
            // SAFETY: the kernel writes at most `message.len()` bytes into the buffer, which lives until the
            // call returns. A longer message is cut off.
            let len = unsafe {
                libc::recv(self.0.as_raw_fd(), message.as_mut_ptr().cast(), message.len(), libc::MSG_DONTWAIT)
            };
            if len < 0 {
                // Any error except "no message" may hide a change. A full buffer, for example, loses
                // messages.
                let none = io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock;
                return if none { change } else { Change::This };
            }
            let [.., a, b, c, d] = message[..INDEX_AT + 4] else { return Change::This };
            if change == Change::Nothing {
                change = Change::Others;
            }
            if len as usize != MESSAGE_BYTES || i32::from_ne_bytes([a, b, c, d]) == index {
                change = Change::This;
            }
        }
        Change::This
    }
}
