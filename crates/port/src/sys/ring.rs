// SPDX-License-Identifier: Apache-2.0
//! The mapped TPACKET_V2 receive ring. Kernel and program pass slots to each other through a status word.
//! Layout: linux/if_packet.h and Documentation/networking/packet_mmap.rst.

use super::{VNET_BYTES, VnetBytes, set_option};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// The mapped receive ring of one socket.
pub(crate) struct Ring {
    base: NonNull<u8>,
    slot_bytes: usize,
    slots: usize,
    next: usize,
}

// SAFETY: the mapping belongs to this value alone and is not bound to a thread.
unsafe impl Send for Ring {}

/// A slot filled by the kernel, which only [`Ring::release`] returns.
pub(crate) struct Slot<'a> {
    /// Status bits of the slot (`TP_STATUS_*`).
    pub(crate) status: u32,
    /// Length of the packet on the wire in bytes.
    pub(crate) len: usize,
    /// Tag control information of a VLAN tag that the kernel has removed.
    pub(crate) vlan_tci: u16,
    /// EtherType of the removed VLAN tag.
    pub(crate) vlan_tpid: u16,
    /// Offload header of the packet.
    pub(crate) vnet: VnetBytes,
    /// The part of the packet that the slot holds.
    pub(crate) bytes: &'a [u8],
}

impl Ring {
    /// Sets up a ring of `slots` slots of `slot_bytes` (a power of two) for `socket` and maps it.
    pub(crate) fn new(socket: BorrowedFd<'_>, slots: usize, slot_bytes: usize) -> io::Result<Self> {
        // A block is contiguous in memory: small enough for the kernel to allocate, and at least as large as
        // a slot.
        let block_bytes = slot_bytes.max(64 * 1024);
        let request = libc::tpacket_req {
            tp_block_size: block_bytes as u32,
            tp_block_nr: (slots * slot_bytes / block_bytes) as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: slots as u32,
        };
        set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        // SAFETY: a new mapping, at an address that the kernel chooses, of the ring of our own socket. The
        // kernel checks that the length equals the ring's length.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                slots * slot_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(address.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { base, slot_bytes, slots, next: 0 })
    }

    /// Returns the oldest slot that is not released, if the kernel has filled it.
    #[inline]
    pub(crate) fn peek(&self) -> Option<Slot<'_>> {
        // SAFETY: `next` is below `slots`, so the slot lies inside the mapping. `slot_bytes` is a power of
        // two, so slots are aligned for the header.
        let start = unsafe { self.base.add(self.next * self.slot_bytes) };
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the status, loaded with acquire ordering, shows that the kernel has filled the slot. The
        // kernel does not write it until `release`, which needs `&mut self`. The header consists of integers.
        let header = unsafe { start.cast::<libc::tpacket2_hdr>().read() };
        let at = usize::from(header.tp_mac);
        // Offset and length are checked, although a correct kernel keeps both inside the slot.
        let (at, captured) = if at < VNET_BYTES || at > self.slot_bytes {
            (VNET_BYTES, 0)
        } else {
            (at, (header.tp_snaplen as usize).min(self.slot_bytes - at))
        };
        // SAFETY: `VNET_BYTES <= at` and `at + captured <= slot_bytes` (established above), so both reads
        // stay inside the slot. The kernel does not write the slot until `release`, which needs `&mut self`.
        let (vnet, bytes) = unsafe {
            (
                start.add(at - VNET_BYTES).cast::<VnetBytes>().read(),
                std::slice::from_raw_parts(start.add(at).as_ptr(), captured),
            )
        };
        Some(Slot {
            status,
            len: header.tp_len as usize,
            vlan_tci: header.tp_vlan_tci,
            vlan_tpid: header.tp_vlan_tpid,
            vnet,
            bytes,
        })
    }

    /// Returns the slot of the last `peek` to the kernel. Has no effect if there was none.
    #[inline]
    pub(crate) fn release(&mut self) {
        if self.status().load(Ordering::Relaxed) & libc::TP_STATUS_USER == 0 {
            return;
        }
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = if self.next + 1 == self.slots { 0 } else { self.next + 1 };
    }

    #[inline]
    fn status(&self) -> &AtomicU32 {
        // SAFETY: `next` is below `slots`, so the word lies inside the mapping. It is the first word of the
        // header, aligned like the slot. Kernel and program access it only atomically.
        unsafe { &*self.base.add(self.next * self.slot_bytes).cast::<AtomicU32>().as_ptr() }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly the mapping made by `new`. Slots borrow the ring, so none outlives it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.slots * self.slot_bytes) };
    }
}
