// SPDX-License-Identifier: Apache-2.0
//! What the kernel tells of changes to network interfaces: rtnetlink's link group, one message a change.
//! (Layout: linux/netlink.h `struct nlmsghdr` and linux/rtnetlink.h `struct ifinfomsg`, integers in native byte order.)

use super::{check, set_option};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Length of the message header and of the fixed part of a link's message; attributes are not read.
const MESSAGE_BYTES: usize = 32;
/// Where the interface's index is in it.
const INDEX_AT: usize = 20;
/// Messages taken off by one look, so that it takes bounded time.
const MESSAGES_MAX: usize = 64;

/// Room for messages where many are waited for.
const ROOM_BYTES: libc::c_int = 1024 * 1024;

/// Changes to the interfaces of the network namespace that it was made in.
pub(crate) struct Monitor(OwnedFd);

/// What changed since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// No interface.
    Nothing,
    /// Others than the one asked for.
    Others,
    /// The one asked for, or too much to tell.
    This,
}

impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Monitor {
    /// Listens from now on.
    pub(crate) fn new() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers; a descriptor that is returned is ours alone.
        let fd = unsafe {
            check(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE))
                .map(|fd| OwnedFd::from_raw_fd(fd))?
        };
        // SAFETY: all zeros is a valid sockaddr_nl.
        let mut address: libc::sockaddr_nl = unsafe { MaybeUninit::zeroed().assume_init() };
        address.nl_family = libc::AF_NETLINK as u16;
        address.nl_groups = libc::RTMGRP_LINK as u32;
        // SAFETY: the address outlives the call and its true size is given.
        unsafe {
            check(libc::bind(
                fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_nl>() as libc::socklen_t,
            ))?;
        }
        Ok(Self(fd))
    }

    /// Asks for room for many messages. Best effort: more than the system's limit needs CAP_NET_ADMIN.
    pub(crate) fn make_room(&self) {
        for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
            if set_option(self.0.as_fd(), libc::SOL_SOCKET, option, &ROOM_BYTES).is_ok() {
                return;
            }
        }
    }

    /// Sends a message to the kernel. Its answer comes among the messages about changes.
    pub(crate) fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: the message outlives the call and its true length is given.
        let sent = unsafe {
            libc::send(self.0.as_raw_fd(), message.as_ptr().cast(), message.len(), libc::MSG_DONTWAIT)
        };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The next messages, as one datagram; what does not fit into the buffer is cut off. `WouldBlock` if there are none.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the kernel writes at most the given length into the buffer, which outlives the call.
        let len = unsafe {
            libc::recv(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT)
        };
        if len < 0 { Err(io::Error::last_os_error()) } else { Ok(len as usize) }
    }

    /// What changed since the last look, seen from the interface `index`. One system call if nothing did.
    pub(crate) fn look(&self, index: i32) -> Change {
        let mut change = Change::Nothing;
        for _ in 0..MESSAGES_MAX {
            let mut message = [0_u8; MESSAGE_BYTES];
            // SAFETY: the kernel writes at most the given length of the message, which outlives the call; a longer one
            // is cut.
            let len = unsafe {
                libc::recv(self.0.as_raw_fd(), message.as_mut_ptr().cast(), message.len(), libc::MSG_DONTWAIT)
            };
            if len < 0 {
                // Anything but "no message" (messages were lost for lack of room) may hide a change.
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
