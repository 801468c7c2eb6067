// SPDX-License-Identifier: Apache-2.0
//! The mapped TPACKET_V2 receive ring: slots that kernel and program hand to each other by a status word.
//! (Layout: linux/if_packet.h and Documentation/networking/packet_mmap.rst.)

use super::{VNET_BYTES, VnetBytes, set_option};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// The ring of one socket, mapped.
pub(crate) struct Ring {
    base: NonNull<u8>,
    slot_bytes: usize,
    slots: usize,
    next: usize,
}

// SAFETY: the mapping belongs to this value alone and may be used from any one thread.
unsafe impl Send for Ring {}

/// A slot that the kernel has handed over. It goes back only by [`Ring::release`].
pub(crate) struct Slot<'a> {
    /// `TP_STATUS_*` bits.
    pub(crate) status: u32,
    /// Length of the packet on the wire.
    pub(crate) len: usize,
    /// Tag control information of a VLAN tag that the kernel took off.
    pub(crate) vlan_tci: u16,
    /// Its EtherType.
    pub(crate) vlan_tpid: u16,
    /// The offload header.
    pub(crate) vnet: VnetBytes,
    /// As much of the packet as the slot holds.
    pub(crate) bytes: &'a [u8],
}

impl Ring {
    /// Makes the kernel set up a ring of `slots` slots of `slot_bytes` (a power of two) for `socket` and maps it.
    pub(crate) fn new(socket: BorrowedFd<'_>, slots: usize, slot_bytes: usize) -> io::Result<Self> {
        // Blocks are contiguous in memory: small enough that the kernel finds them, large enough for a slot.
        let block_bytes = slot_bytes.max(64 * 1024);
        let request = libc::tpacket_req {
            tp_block_size: block_bytes as u32,
            tp_block_nr: (slots * slot_bytes / block_bytes) as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: slots as u32,
        };
        set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        // SAFETY: a new mapping of our own socket's ring; the kernel checks that the length is the ring's.
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

    /// The oldest slot not yet released, if the kernel has filled it.
    #[inline]
    pub(crate) fn peek(&self) -> Option<Slot<'_>> {
        // SAFETY: `next` is below `slots`, so the header lies inside the mapping; slots are aligned to pages' divisors.
        let start = unsafe { self.base.add(self.next * self.slot_bytes) };
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel has handed the slot over (acquire above) and does not write it until it is released, which
        // needs `&mut self`. The header is plain integers.
        let header = unsafe { start.cast::<libc::tpacket2_hdr>().read() };
        let at = usize::from(header.tp_mac);
        // A well-behaved kernel keeps both inside the slot; what it claims is still checked.
        let (at, captured) = if at < VNET_BYTES || at > self.slot_bytes {
            (VNET_BYTES, 0)
        } else {
            (at, (header.tp_snaplen as usize).min(self.slot_bytes - at))
        };
        // SAFETY: `VNET_BYTES <= at` and `at + captured <= slot_bytes`; ownership as above.
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

    /// Gives the slot that `peek` showed back to the kernel. Nothing happens if there was none.
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
        // SAFETY: `next` is below `slots`; the status is the header's first word, aligned as slots are; kernel and
        // program access it atomically only.
        unsafe { &*self.base.add(self.next * self.slot_bytes).cast::<AtomicU32>().as_ptr() }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `new` made; no slot outlives the ring.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.slots * self.slot_bytes) };
    }
}
