// SPDX-License-Identifier: Apache-2.0
//! An AF_XDP socket: memory shared with the kernel (UMEM), cut into chunks of [`CHUNK_BYTES`], and four rings that hand
//! chunks to and fro. A chunk for receiving is in the fill ring, in the receive ring or looked at; one for sending is
//! free, in the transmit ring, with the device, or in the completion ring.

mod ring;

use super::{check, set_option};
use ring::{Mapping, Ring};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Bytes of a chunk: a page, the largest that every driver takes.
const CHUNK_BYTES: usize = 4096;
/// Chunks to receive into, and entries of the fill and the receive ring.
const RECEIVE_CHUNKS: u32 = 2048;
/// Chunks to send from, and entries of the transmit and the completion ring.
const SEND_CHUNKS: u32 = 1024;
/// Most frames that the kernel sends by one call (TX_BATCH_SIZE of net/xdp/xsk.c).
const XSK_BATCH: usize = 32;
/// Most bytes of a frame to be sent.
pub(crate) const XSK_FRAME_BYTES: usize = CHUNK_BYTES;
/// Why the kernel did not take all that was put up for sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It took all.
    Nothing,
    /// No room now: it will be asked again by the next `send`.
    Full,
    /// The device is down or gone.
    Link,
}

/// What `send` came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Why the kernel did not take all.
    pub(crate) refused: Refused,
    /// What had been put up is as if it had not been.
    pub(crate) withdrawn: bool,
    /// A bit for each frame put up that the device had no room for.
    lost: u32,
}

impl Sent {
    /// Whether the device had no room for the frame at this place of those that had been put up.
    pub(crate) fn is_lost(&self, at: usize) -> bool {
        at < XSK_BATCH && self.lost & 1 << at != 0
    }
}

/// A bound socket with its memory.
pub(crate) struct Xsk {
    // Dropped in this order: rings and memory before the socket they belong to.
    fill: Ring<u64>,
    receive: Ring<libc::xdp_desc>,
    transmit: Ring<libc::xdp_desc>,
    completion: Ring<u64>,
    umem: Mapping,
    pub(crate) fd: OwnedFd,
    /// Chunks to send from that are free.
    free: Vec<u32>,
    /// Bytes that each chunk to send from waits to be sent with; 0: free.
    lens: Vec<u32>,
    /// Their sum.
    outstanding_bytes: usize,
    /// Frames put up since the last `send`.
    put_up: u32,
    /// The position in the transmit ring up to which the kernel has come.
    taken: u32,
    is_zero_copy: bool,
}

impl Xsk {
    /// A socket with memory and rings, bound to nothing yet.
    pub(crate) fn new() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; a descriptor that is returned is ours alone.
        let fd = unsafe { check(libc::socket(libc::AF_XDP, kind, 0)).map(|fd| OwnedFd::from_raw_fd(fd))? };
        let socket = fd.as_fd();
        let len = (RECEIVE_CHUNKS + SEND_CHUNKS) as usize * CHUNK_BYTES;
        let umem = Mapping::new(len, None)?;
        let registration = libc::xdp_umem_reg {
            addr: umem.base().as_ptr() as u64,
            len: len as u64,
            chunk_size: CHUNK_BYTES as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set_option(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &registration)?;
        for (ring, entries) in [
            (libc::XDP_UMEM_FILL_RING, RECEIVE_CHUNKS),
            (libc::XDP_UMEM_COMPLETION_RING, SEND_CHUNKS),
            (libc::XDP_RX_RING, RECEIVE_CHUNKS),
            (libc::XDP_TX_RING, SEND_CHUNKS),
        ] {
            set_option(socket, libc::SOL_XDP, ring, &(entries as libc::c_int))?;
        }
        let at: libc::xdp_mmap_offsets = super::option(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        let mut fill = Ring::new(socket, libc::XDP_UMEM_PGOFF_FILL_RING, &at.fr, RECEIVE_CHUNKS)?;
        for chunk in 0..RECEIVE_CHUNKS {
            fill.put(u64::from(chunk) * CHUNK_BYTES as u64);
        }
        fill.publish();
        Ok(Self {
            fill,
            receive: Ring::new(socket, libc::XDP_PGOFF_RX_RING as u64, &at.rx, RECEIVE_CHUNKS)?,
            transmit: Ring::new(socket, libc::XDP_PGOFF_TX_RING as u64, &at.tx, SEND_CHUNKS)?,
            completion: Ring::new(socket, libc::XDP_UMEM_PGOFF_COMPLETION_RING, &at.cr, SEND_CHUNKS)?,
            umem,
            free: (0..SEND_CHUNKS).collect(),
            lens: vec![0; SEND_CHUNKS as usize],
            outstanding_bytes: 0,
            put_up: 0,
            taken: 0,
            is_zero_copy: false,
            fd,
        })
    }

    /// Binds it to a hardware queue of an interface: without copies in the kernel where its driver can do that.
    pub(crate) fn bind(&mut self, ifindex: i32, queue: u32) -> io::Result<()> {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_USE_NEED_WAKEUP,
            sxdp_ifindex: ifindex as u32,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        // SAFETY: the address outlives the call and its true size is given.
        unsafe {
            check(libc::bind(
                self.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
            ))?;
        }
        let options: libc::xdp_options = super::option(self.fd.as_fd(), libc::SOL_XDP, libc::XDP_OPTIONS)?;
        self.is_zero_copy = options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0;
        Ok(())
    }

    /// Whether it is still bound; an interface that vanishes unbinds it for good.
    pub(crate) fn is_bound(&self) -> bool {
        // SAFETY: no bytes are asked for.
        let result = unsafe { libc::recv(self.fd.as_raw_fd(), std::ptr::null_mut(), 0, libc::MSG_DONTWAIT) };
        result >= 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ENXIO)
    }

    /// The oldest packet not yet given back.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<&[u8]> {
        let packet = self.receive.peek()?;
        let (start, len) = (packet.addr as usize, packet.len as usize);
        // A well-behaved kernel keeps to the chunks it was given; what it claims is still checked.
        let len = if start < RECEIVE_CHUNKS as usize * CHUNK_BYTES {
            len.min(CHUNK_BYTES - start % CHUNK_BYTES)
        } else {
            0
        };
        let start = if len == 0 { 0 } else { start };
        // SAFETY: inside one receive chunk (checked above), which the kernel has handed over by the ring (acquire) and
        // gets back only by `give_back`, which needs `&mut self`.
        Some(unsafe { std::slice::from_raw_parts(self.umem.base().add(start).as_ptr(), len) })
    }

    /// Gives the packet that `peek` showed back, to be received into anew. Nothing happens if there was none.
    #[inline]
    pub(crate) fn give_back(&mut self) {
        let Some(packet) = self.receive.peek() else { return };
        self.receive.step();
        let chunk = packet.addr as usize / CHUNK_BYTES;
        if chunk < RECEIVE_CHUNKS as usize && self.fill.has_room() {
            self.fill.put((chunk * CHUNK_BYTES) as u64);
        }
    }

    /// Lets the kernel see what was given back: once a burst. One system call if the driver asks for it.
    #[inline]
    pub(crate) fn end_receive(&mut self) {
        self.receive.release();
        self.fill.publish();
        if self.fill.wants_wakeup() {
            // SAFETY: no bytes are asked for. That the device is gone is told by others.
            unsafe { libc::recv(self.fd.as_raw_fd(), std::ptr::null_mut(), 0, libc::MSG_DONTWAIT) };
        }
    }

    /// Whether a frame can be put up for sending: at most 32 between two calls of `send`.
    pub(crate) fn has_room(&mut self) -> bool {
        self.put_up < XSK_BATCH as u32 && !self.free.is_empty() && self.transmit.has_room()
    }

    /// Puts a frame up that `write` writes into a chunk of [`XSK_FRAME_BYTES`], returning its length; false if there was
    /// no room or nothing was written.
    pub(crate) fn put(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        if !self.has_room() {
            return false;
        }
        let Some(chunk) = self.free.pop() else { return false };
        let start = (RECEIVE_CHUNKS + chunk) as usize * CHUNK_BYTES;
        // SAFETY: a whole chunk of the UMEM; it is free, so that neither the kernel nor another reference has it.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(self.umem.base().add(start).as_ptr(), CHUNK_BYTES) };
        match write(bytes) {
            Some(len) if (1..=CHUNK_BYTES).contains(&len) => {
                self.lens[chunk as usize] = len as u32;
                self.outstanding_bytes += len;
                self.transmit.put(libc::xdp_desc { addr: start as u64, len: len as u32, options: 0 });
                self.put_up += 1;
                true
            }
            _ => {
                self.free.push(chunk);
                false
            }
        }
    }

    /// Whether the kernel has yet to take what was put up before the last `send`.
    pub(crate) fn has_unsent(&self) -> bool {
        self.taken != self.transmit.next().wrapping_sub(self.put_up)
    }

    /// Sends what was put up and what the kernel has not taken before; with neither, finds out whether the device is up.
    /// One system call for a batch, more only after a frame that the device had no room for.
    pub(crate) fn send(&mut self) -> Sent {
        let end = self.transmit.next();
        let begin = end.wrapping_sub(std::mem::take(&mut self.put_up));
        self.transmit.publish();
        let mut sent = Sent { refused: Refused::Nothing, withdrawn: false, lost: 0 };
        if self.is_zero_copy {
            // The driver takes them in its own time; from here on they are its.
            self.taken = end;
            if (begin == end || self.transmit.wants_wakeup()) && self.kick().1 == Refused::Link {
                sent.refused = Refused::Link;
            }
            return sent;
        }
        let is_clean = self.taken == begin;
        loop {
            let before = self.taken;
            let (is_lost, refused) = self.kick();
            let ahead = self.transmit.consumed().wrapping_sub(before) as i32;
            // Of a frame that is lost without one being sent the kernel does not tell at once.
            let ahead = ahead.max(i32::from(is_lost && before != end));
            self.taken = before.wrapping_add(ahead as u32);
            if is_lost && ahead > 0 {
                // The last one that it looked at.
                sent.lost |= 1_u32.checked_shl(self.taken.wrapping_sub(begin).wrapping_sub(1)).unwrap_or(0);
            }
            if refused == Refused::Link {
                sent.refused = Refused::Link;
                // It has not looked at the ring: what it has not seen can be taken back.
                sent.withdrawn = is_clean && before == begin && begin != end;
                if sent.withdrawn {
                    self.withdraw(begin, end);
                }
                return sent;
            }
            if self.taken == end {
                return sent;
            }
            if ahead == 0 {
                sent.refused = Refused::Full;
                return sent;
            }
        }
    }

    /// Takes back what the kernel has not seen.
    fn withdraw(&mut self, begin: u32, end: u32) {
        for n in 0..end.wrapping_sub(begin) {
            let chunk = self.transmit.entry(begin.wrapping_add(n)).addr as usize / CHUNK_BYTES;
            self.free_chunk(chunk);
        }
        self.transmit.rewind(begin);
    }

    /// Makes the kernel look at the transmit ring; whether the device lost a frame, and what is refused.
    fn kick(&self) -> (bool, Refused) {
        // SAFETY: no bytes are given.
        let result = unsafe { libc::send(self.fd.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT) };
        if result >= 0 {
            return (false, Refused::Nothing);
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => (false, Refused::Link),
            Some(libc::EBUSY) => (true, Refused::Nothing),
            _ => (false, Refused::Full),
        }
    }

    /// Takes chunks back whose frames have been sent.
    pub(crate) fn reap(&mut self) {
        let mut any = false;
        while let Some(address) = self.completion.peek() {
            self.completion.step();
            self.free_chunk(address as usize / CHUNK_BYTES);
            any = true;
        }
        if any {
            self.completion.release();
        }
    }

    /// Frees a chunk of this number, if it is one that was to be sent.
    fn free_chunk(&mut self, chunk: usize) {
        let Some(chunk) = chunk.checked_sub(RECEIVE_CHUNKS as usize) else { return };
        if let Some(len) = self.lens.get_mut(chunk).filter(|len| **len > 0) {
            self.outstanding_bytes -= std::mem::take(len) as usize;
            self.free.push(chunk as u32);
        }
    }

    /// Bytes of frames that the device has and has not sent.
    pub(crate) fn outstanding_bytes(&self) -> usize {
        let sent = self.completion.waiting().map(|address| {
            let chunk = (address as usize / CHUNK_BYTES).wrapping_sub(RECEIVE_CHUNKS as usize);
            self.lens.get(chunk).map_or(0, |len| *len as usize)
        });
        self.outstanding_bytes.saturating_sub(sent.sum())
    }

    /// Packets that the kernel has dropped so far because it had no room for them.
    pub(crate) fn kernel_drops(&self) -> u64 {
        super::option::<libc::xdp_statistics>(self.fd.as_fd(), libc::SOL_XDP, libc::XDP_STATISTICS)
            .map_or(0, |statistics| statistics.rx_dropped + statistics.rx_ring_full)
    }

    /// Packets that wait in the receive ring.
    pub(crate) fn waiting(&self) -> u64 {
        self.receive.waiting().count() as u64
    }

    /// Becomes `fresh`, under the old descriptor's number.
    pub(crate) fn replace(&mut self, mut fresh: Self) -> io::Result<()> {
        let twin = fresh.fd.try_clone()?;
        super::replace(&self.fd, twin)?;
        // Both numbers stand for the fresh socket now; the old one, which others sleep on, stays.
        std::mem::swap(&mut self.fd, &mut fresh.fd);
        *self = fresh;
        Ok(())
    }
}
