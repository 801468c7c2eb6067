// SPDX-License-Identifier: Apache-2.0
//! Packets through system calls: a batch out by one sendmmsg, and the whole of a packet that a ring slot could not hold.

use super::check;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Length of `struct virtio_net_hdr`.
pub(crate) const VNET_BYTES: usize = 10;

/// A `struct virtio_net_hdr` as bytes.
pub(crate) type VnetBytes = [u8; VNET_BYTES];

/// Most packets in one system call.
pub(crate) const SEND_BATCH: usize = 64;

/// Room for the headers of one sendmmsg, allocated once.
pub(crate) struct SendBatch {
    messages: Box<[libc::mmsghdr; SEND_BATCH]>,
    parts: Box<[[libc::iovec; 2]; SEND_BATCH]>,
    headers: Box<[VnetBytes; SEND_BATCH]>,
}

// SAFETY: the pointers inside are written and used within one call of `send` only.
unsafe impl Send for SendBatch {}

impl SendBatch {
    pub(crate) fn new() -> Self {
        // SAFETY: all zeros are valid message headers and I/O vectors (null pointers, lengths of 0).
        let (messages, parts) = unsafe {
            (
                Box::new(MaybeUninit::<[libc::mmsghdr; SEND_BATCH]>::zeroed().assume_init()),
                Box::new(MaybeUninit::<[[libc::iovec; 2]; SEND_BATCH]>::zeroed().assume_init()),
            )
        };
        Self { messages, parts, headers: Box::new([[0; VNET_BYTES]; SEND_BATCH]) }
    }

    /// Sends packets, each with its offload header, up to a batch, by one system call. Returns how many were taken; 0
    /// without a system call if there are none. An error concerns the first packet.
    pub(crate) fn send<'a>(
        &mut self,
        socket: BorrowedFd<'_>,
        packets: impl Iterator<Item = (VnetBytes, &'a [u8])>,
    ) -> io::Result<usize> {
        let mut count = 0;
        let room = self.messages.iter_mut().zip(self.parts.iter_mut()).zip(self.headers.iter_mut());
        for ((header, bytes), ((message, parts), place)) in packets.zip(room) {
            *place = header;
            *parts = [
                libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: VNET_BYTES },
                libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() },
            ];
            message.msg_hdr.msg_iov = parts.as_mut_ptr();
            message.msg_hdr.msg_iovlen = parts.len() as _;
            count += 1;
        }
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: the first `count` messages point to parts, headers (ours) and bytes ('a) that outlive the call, and
        // sending only reads them.
        let sent = unsafe {
            check(libc::sendmmsg(
                socket.as_raw_fd(),
                self.messages.as_mut_ptr(),
                count as u32,
                libc::MSG_DONTWAIT as _,
            ))?
        };
        Ok(sent as usize)
    }
}

/// Takes the oldest packet off the socket's queue into `bytes`; the rest of a longer one is lost. Returns its offload
/// header and how many bytes it had in all.
pub(crate) fn receive_copy(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<(VnetBytes, usize)> {
    let mut header = [0; VNET_BYTES];
    let mut parts = [
        libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: VNET_BYTES },
        libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() },
    ];
    // SAFETY: all zeros is a valid message header.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len() as _;
    // SAFETY: the message points to header and bytes, which outlive the call, with their true lengths.
    let len =
        unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT | libc::MSG_TRUNC) };
    if len < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((header, (len as usize).saturating_sub(VNET_BYTES)))
}
