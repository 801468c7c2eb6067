// SPDX-License-Identifier: Apache-2.0
//! System calls for packets: sends a batch by one sendmmsg, and receives a packet that is longer than its
//! ring slot.

use super::check;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Length of `struct virtio_net_hdr` in bytes.
pub(crate) const VNET_BYTES: usize = 10;

/// A `struct virtio_net_hdr` as bytes.
pub(crate) type VnetBytes = [u8; VNET_BYTES];

/// Maximum number of packets per system call.
pub(crate) const SEND_BATCH: usize = 64;

/// Memory for the headers of one sendmmsg, allocated once.
pub(crate) struct SendBatch {
    messages: Box<[libc::mmsghdr; SEND_BATCH]>,
    parts: Box<[[libc::iovec; 2]; SEND_BATCH]>,
    headers: Box<[VnetBytes; SEND_BATCH]>,
}

// SAFETY: the pointers in `messages` and `parts` are written and used only within one call of `send`, by one
// thread.
unsafe impl Send for SendBatch {}

impl SendBatch {
    pub(crate) fn new() -> Self {
        // SAFETY: message headers and I/O vectors consist of integers and pointers; all zeros are valid (null
        // pointers, lengths of 0).
        let (messages, parts) = unsafe {
            (
                Box::new(MaybeUninit::<[libc::mmsghdr; SEND_BATCH]>::zeroed().assume_init()),
                Box::new(MaybeUninit::<[[libc::iovec; 2]; SEND_BATCH]>::zeroed().assume_init()),
            )
        };
        Self { messages, parts, headers: Box::new([[0; VNET_BYTES]; SEND_BATCH]) }
    }

    /// Sends at most [`SEND_BATCH`] packets, each with its offload header, by one system call. Returns how
    /// many packets the kernel accepted. An error concerns the first packet.
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
        // SAFETY: `count` is at most `SEND_BATCH`. The first `count` messages were just set to point to
        // `parts` and `headers` of `self` and to bytes of lifetime `'a`, which all outlive the call. The
        // kernel only reads them.
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

/// Takes the oldest packet from the socket's queue into `bytes`; bytes that do not fit are lost. Returns the
/// packet's offload header and its total length.
pub(crate) fn receive_copy(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<(VnetBytes, usize)> {
    let mut header = [0; VNET_BYTES];
    let mut parts = [
        libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: VNET_BYTES },
        libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() },
    ];
    // SAFETY: `msghdr` consists of integers and pointers, for which all zeros are valid.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len() as _;
    // SAFETY: the message points to `header` and `bytes` with their true lengths, and both outlive the call.
    let len =
        unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT | libc::MSG_TRUNC) };
    if len < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((header, (len as usize).saturating_sub(VNET_BYTES)))
}
