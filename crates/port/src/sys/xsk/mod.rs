// SPDX-License-Identifier: Apache-2.0
//! An AF_XDP socket: memory shared with the kernel (UMEM), divided into chunks of [`CHUNK_BYTES`], and four
//! rings that pass chunks between kernel and program.
//!
//! A receive chunk is in the fill ring, in the receive ring, or being read. A send chunk is free, in the
//! transmit ring, owned by the device, or in the completion ring.
//!
//! A socket can move to another process with the packets in it, because all state that the other process
//! needs is in shared memory: the rings, the UMEM, and the state after the UMEM (`shared.rs`). The other
//! process maps this memory ([`Xsk::inherit`]), which requires Linux 6.4. When the first process has stopped
//! using the rings, the other one reads the positions of the rings and continues there ([`Xsk::take_over`]).

mod ring;
mod shared;

use super::{check, set_option};
use ring::{Mapping, Ring};
use shared::SharedState;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// Size of a chunk in bytes: a page, the maximum that every driver supports.
const CHUNK_BYTES: usize = 4096;
/// Number of receive chunks, and of entries in the fill and receive rings.
const RECEIVE_CHUNKS: u32 = 2048;
/// Number of send chunks, and of entries in the transmit and completion rings.
const SEND_CHUNKS: u32 = 1024;
/// Maximum number of frames that the kernel sends per call (TX_BATCH_SIZE of net/xdp/xsk.c).
const XSK_BATCH: usize = 32;
/// Size of the UMEM in bytes.
const UMEM_BYTES: usize = (RECEIVE_CHUNKS + SEND_CHUNKS) as usize * CHUNK_BYTES;
/// Maximum length of a frame to send, in bytes.
pub(crate) const XSK_FRAME_BYTES: usize = CHUNK_BYTES;
/// Reason why the kernel did not take all queued frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The kernel took all queued frames.
    Nothing,
    /// The device has no space now. The next `send` tries again.
    Full,
    /// The device is down or gone.
    Link,
}

/// Result of `send`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Reason why the kernel did not take all frames.
    pub(crate) refused: Refused,
    /// The frames queued since the last `send` were withdrawn: they have not been sent and must be queued
    /// again.
    pub(crate) withdrawn: bool,
    /// One bit for each queued frame, set if the device had no space for the frame.
    lost: u32,
}

impl Sent {
    /// Returns whether the device had no space for the frame at index `at` among the frames queued since the
    /// last `send`.
    pub(crate) fn is_lost(&self, at: usize) -> bool {
        at < XSK_BATCH && self.lost & 1 << at != 0
    }
}

/// A bound socket with its memory.
pub(crate) struct Xsk {
    // Fields are dropped in this order, because rings and memory must be unmapped before their socket is
    // closed.
    fill: Ring<u64>,
    receive: Ring<libc::xdp_desc>,
    transmit: Ring<libc::xdp_desc>,
    completion: Ring<u64>,
    shared: SharedState,
    umem: Mapping,
    pub(crate) fd: Arc<OwnedFd>,
    /// The file of the UMEM and the lengths, if another process can map it.
    file: Option<Arc<OwnedFd>>,
    /// Free send chunks.
    free: Vec<u32>,
    /// Sum of the lengths of all unsent frames.
    outstanding_bytes: usize,
    /// Number of frames queued since the last `send`.
    put_up: u32,
    /// Position in the transmit ring up to which the kernel has taken frames.
    taken: u32,
    is_zero_copy: bool,
    /// Number of packets that the kernel had dropped when this process took over the socket.
    drops_before: u64,
    /// Number of takeovers of the socket, including the one by this process.
    takeovers: u64,
}

/// Whether a socket's memory can be mapped by another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UmemKind {
    /// Only this process can use the memory.
    Private,
    /// The memory is a file, whose descriptor can be passed to another process.
    File,
}

impl Xsk {
    /// Creates an unbound socket with memory and rings.
    pub(crate) fn new(kind: UmemKind) -> io::Result<Self> {
        let of_socket = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: the call takes no pointers. On success it returns a new descriptor that nothing else owns.
        let fd =
            unsafe { check(libc::socket(libc::AF_XDP, of_socket, 0)).map(|fd| OwnedFd::from_raw_fd(fd))? };
        let file = match kind {
            UmemKind::Private => None,
            UmemKind::File => Some(Arc::new(super::memory_file(SharedState::END)?)),
        };
        let umem = Mapping::new(SharedState::END, file.as_ref().map(|file| (file.as_fd(), 0)))?;
        let registration = libc::xdp_umem_reg {
            addr: umem.base().as_ptr() as u64,
            len: UMEM_BYTES as u64,
            chunk_size: CHUNK_BYTES as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        let socket = fd.as_fd();
        set_option(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &registration)?;
        for (ring, entries) in [
            (libc::XDP_UMEM_FILL_RING, RECEIVE_CHUNKS),
            (libc::XDP_UMEM_COMPLETION_RING, SEND_CHUNKS),
            (libc::XDP_RX_RING, RECEIVE_CHUNKS),
            (libc::XDP_TX_RING, SEND_CHUNKS),
        ] {
            set_option(socket, libc::SOL_XDP, ring, &(entries as libc::c_int))?;
        }
        let mut xsk = Self::map(Arc::new(fd), umem, file)?;
        for chunk in 0..RECEIVE_CHUNKS {
            xsk.fill.put(u64::from(chunk) * CHUNK_BYTES as u64);
        }
        xsk.fill.publish();
        xsk.free.extend(0..SEND_CHUNKS);
        Ok(xsk)
    }

    /// Maps the memory of a socket that another process has bound. Call [`Xsk::take_over`] before any use of
    /// the rings.
    pub(crate) fn inherit(fd: Arc<OwnedFd>, file: Arc<OwnedFd>) -> io::Result<Self> {
        let other_layout = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "its memory has another layout than this program expects",
            )
        };
        // A mapping may be longer than the file, but an access behind the file's end would raise SIGBUS.
        if super::file_bytes(file.as_fd())? != SharedState::END as u64 {
            return Err(other_layout());
        }
        let umem = Mapping::new(SharedState::END, Some((file.as_fd(), 0)))?;
        if !SharedState::new(&umem)?.has_layout() {
            return Err(other_layout());
        }
        let mut xsk = Self::map(fd, umem, Some(file)).map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => io::Error::other(
                "the kernel does not map its rings: the interface was removed, or Linux is older than 6.4",
            ),
            _ => error,
        })?;
        xsk.read_mode()?;
        xsk.drops_before = xsk.all_kernel_drops();
        Ok(xsk)
    }

    /// Maps the rings of a socket.
    fn map(fd: Arc<OwnedFd>, umem: Mapping, file: Option<Arc<OwnedFd>>) -> io::Result<Self> {
        let socket = fd.as_fd();
        let at: libc::xdp_mmap_offsets = super::option(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        Ok(Self {
            fill: Ring::new(socket, libc::XDP_UMEM_PGOFF_FILL_RING, &at.fr, RECEIVE_CHUNKS)?,
            receive: Ring::new(socket, libc::XDP_PGOFF_RX_RING as u64, &at.rx, RECEIVE_CHUNKS)?,
            transmit: Ring::new(socket, libc::XDP_PGOFF_TX_RING as u64, &at.tx, SEND_CHUNKS)?,
            completion: Ring::new(socket, libc::XDP_UMEM_PGOFF_COMPLETION_RING, &at.cr, SEND_CHUNKS)?,
            shared: SharedState::new(&umem)?,
            umem,
            file,
            free: Vec::with_capacity(SEND_CHUNKS as usize),
            outstanding_bytes: 0,
            put_up: 0,
            taken: 0,
            is_zero_copy: false,
            drops_before: 0,
            takeovers: 0,
            fd,
        })
    }

    /// Returns the file of the UMEM, if another process can map it.
    pub(crate) fn file(&self) -> Option<&Arc<OwnedFd>> {
        self.file.as_ref()
    }

    /// Returns the interface and the hardware queue to which the socket was bound.
    pub(crate) fn binding(&self) -> (i32, u32) {
        self.shared.binding()
    }

    /// Continues at the current positions of the rings. The other process must have stopped using them.
    pub(crate) fn take_over(&mut self) {
        self.read_positions();
        self.drops_before = self.all_kernel_drops();
        self.takeovers = self.shared.take_over(self.drops_before);
    }

    /// Continues at the current positions of the rings after another process has used them and ended. If that
    /// process was killed while it used the rings, the packets and chunks of one burst are lost.
    pub(crate) fn resume(&mut self) {
        self.read_positions();
        self.takeovers = self.shared.takeovers().0;
    }

    fn read_positions(&mut self) {
        self.fill.adopt_as_producer();
        self.receive.adopt_as_consumer();
        self.transmit.adopt_as_producer();
        self.completion.adopt_as_consumer();
        (self.put_up, self.taken) = (0, self.transmit.consumed());
        let shared = &self.shared;
        self.free.clear();
        self.free.extend((0..SEND_CHUNKS).filter(|chunk| shared.len(*chunk) == 0));
        self.outstanding_bytes = (0..SEND_CHUNKS).map(|chunk| shared.len(chunk) as usize).sum();
    }

    /// Binds the socket to a hardware queue of an interface, in zero-copy mode if the driver supports it.
    pub(crate) fn bind(&mut self, ifindex: i32, queue: u32) -> io::Result<()> {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_USE_NEED_WAKEUP,
            sxdp_ifindex: ifindex as u32,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        // SAFETY: the address lives until the call returns, and its true size is given.
        unsafe {
            check(libc::bind(
                self.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
            ))?;
        }
        self.shared.set_binding(ifindex, queue);
        self.read_mode()
    }

    /// Reads whether the socket works in zero-copy mode.
    fn read_mode(&mut self) -> io::Result<()> {
        let options: libc::xdp_options = super::option(self.fd.as_fd(), libc::SOL_XDP, libc::XDP_OPTIONS)?;
        self.is_zero_copy = options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0;
        Ok(())
    }

    /// Returns whether the socket is still bound. Removing the interface unbinds the socket permanently.
    pub(crate) fn is_bound(&self) -> bool {
        // SAFETY: the length is 0, so the null pointer is not accessed.
        let result = unsafe { libc::recv(self.fd.as_raw_fd(), std::ptr::null_mut(), 0, libc::MSG_DONTWAIT) };
        result >= 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ENXIO)
    }

    /// Returns the oldest received packet whose chunk was not given back.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<&[u8]> {
        let packet = self.receive.peek()?;
        let (start, len) = (packet.addr as usize, packet.len as usize);
        // The address is checked, although a correct kernel uses only the chunks that it was given.
        let len = if start < RECEIVE_CHUNKS as usize * CHUNK_BYTES {
            len.min(CHUNK_BYTES - start % CHUNK_BYTES)
        } else {
            0
        };
        let start = if len == 0 { 0 } else { start };
        // SAFETY: `start + len` lies inside one receive chunk (checked above). The kernel has passed the
        // chunk through the ring, with acquire ordering, and gets it back only by `give_back`, which needs
        // `&mut self`.
        Some(unsafe { std::slice::from_raw_parts(self.umem.base().add(start).as_ptr(), len) })
    }

    /// Gives the chunk of the last `peek` back for new packets. Has no effect if there was none.
    #[inline]
    pub(crate) fn give_back(&mut self) {
        let Some(packet) = self.receive.peek() else { return };
        self.receive.step();
        let chunk = packet.addr as usize / CHUNK_BYTES;
        if chunk < RECEIVE_CHUNKS as usize && self.fill.has_room() {
            self.fill.put((chunk * CHUNK_BYTES) as u64);
        }
    }

    /// Makes the chunks that were given back visible to the kernel, once per burst. Makes a system call if
    /// the driver requests it.
    #[inline]
    pub(crate) fn end_receive(&mut self) {
        self.receive.release();
        self.fill.publish();
        if self.fill.wants_wakeup() {
            // SAFETY: the length is 0, so the null pointer is not accessed. An error is ignored, because link
            // queries detect a device that is gone.
            unsafe { libc::recv(self.fd.as_raw_fd(), std::ptr::null_mut(), 0, libc::MSG_DONTWAIT) };
        }
    }

    /// Returns whether a frame can be queued: at most 32 between two calls of `send`.
    pub(crate) fn has_room(&mut self) -> bool {
        self.put_up < XSK_BATCH as u32 && !self.free.is_empty() && self.transmit.has_room()
    }

    /// Queues a frame that `write` writes into a chunk of [`XSK_FRAME_BYTES`], returning its length. Returns
    /// false if there was no space or nothing was written.
    pub(crate) fn put(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        if !self.has_room() {
            return false;
        }
        let Some(chunk) = self.free.pop() else { return false };
        let start = (RECEIVE_CHUNKS + chunk) as usize * CHUNK_BYTES;
        // SAFETY: `chunk` is below `SEND_CHUNKS`, so the bytes are one whole chunk inside the UMEM. It was
        // free, so neither the kernel nor another reference accesses it.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(self.umem.base().add(start).as_ptr(), CHUNK_BYTES) };
        match write(bytes) {
            Some(len) if (1..=CHUNK_BYTES).contains(&len) => {
                self.shared.set_len(chunk, len as u32);
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

    /// Returns whether the kernel has yet to take a frame that was queued before the last `send`.
    pub(crate) fn has_unsent(&self) -> bool {
        self.taken != self.transmit.next().wrapping_sub(self.put_up)
    }

    /// Sends the queued frames, and earlier frames that the kernel has not taken. If there are none, only
    /// checks whether the device is up. Makes one system call per batch, and more only if the device had no
    /// space for a frame.
    pub(crate) fn send(&mut self) -> Sent {
        let end = self.transmit.next();
        let begin = end.wrapping_sub(std::mem::take(&mut self.put_up));
        self.transmit.publish();
        let mut sent = Sent { refused: Refused::Nothing, withdrawn: false, lost: 0 };
        if self.is_zero_copy {
            // From here on the driver owns the frames and sends them asynchronously.
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
            // If a frame is lost before any was sent, the kernel does not advance its position immediately.
            let ahead = ahead.max(i32::from(is_lost && before != end));
            self.taken = before.wrapping_add(ahead as u32);
            if is_lost && ahead > 0 {
                // The lost frame is the last frame that the kernel took.
                sent.lost |= 1_u32.checked_shl(self.taken.wrapping_sub(begin).wrapping_sub(1)).unwrap_or(0);
            }
            if refused == Refused::Link {
                sent.refused = Refused::Link;
                // The kernel has not read the ring, so frames that it has not seen can be withdrawn.
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

    /// Withdraws the frames between two positions, which the kernel has not seen.
    fn withdraw(&mut self, begin: u32, end: u32) {
        for n in 0..end.wrapping_sub(begin) {
            let chunk = self.transmit.entry(begin.wrapping_add(n)).addr as usize / CHUNK_BYTES;
            self.free_chunk(chunk);
        }
        self.transmit.rewind(begin);
    }

    /// Makes the kernel process the transmit ring. Returns whether the device lost a frame, and why the
    /// kernel refused the rest.
    fn kick(&self) -> (bool, Refused) {
        // SAFETY: the length is 0, so the null pointer is not accessed.
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

    /// Frees the chunks whose frames have been sent.
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

    /// Frees a chunk if it is a send chunk in use.
    fn free_chunk(&mut self, chunk: usize) {
        let Some(chunk) = send_chunk(chunk) else { return };
        let len = self.shared.len(chunk) as usize;
        if len > 0 {
            self.shared.set_len(chunk, 0);
            self.outstanding_bytes = self.outstanding_bytes.saturating_sub(len);
            self.free.push(chunk);
        }
    }

    /// Returns the number of bytes that the device has accepted and not sent yet.
    pub(crate) fn outstanding_bytes(&self) -> usize {
        let sent = self.completion.waiting().map(|address| {
            send_chunk(address as usize / CHUNK_BYTES).map_or(0, |chunk| self.shared.len(chunk) as usize)
        });
        self.outstanding_bytes.saturating_sub(sent.sum())
    }

    /// Returns the number of packets that the kernel has dropped since this process got the socket, because a
    /// ring was full.
    pub(crate) fn kernel_drops(&self) -> u64 {
        self.all_kernel_drops().saturating_sub(self.drops_before)
    }

    /// Returns the number of packets that the kernel dropped while this process had the socket. The process
    /// that has taken over the socket counts later drops.
    pub(crate) fn kernel_drops_before_handover(&self) -> u64 {
        let (takeovers, drops) = self.shared.takeovers();
        if takeovers == self.takeovers {
            // No other process has taken over the socket yet.
            self.kernel_drops()
        } else {
            drops.saturating_sub(self.drops_before)
        }
    }

    fn all_kernel_drops(&self) -> u64 {
        super::option::<libc::xdp_statistics>(self.fd.as_fd(), libc::SOL_XDP, libc::XDP_STATISTICS)
            .map_or(0, |statistics| statistics.rx_dropped + statistics.rx_ring_full)
    }

    /// Returns the number of packets that wait in the receive ring.
    pub(crate) fn waiting(&self) -> u64 {
        self.receive.waiting().count() as u64
    }

    /// Replaces this socket with `fresh`, but keeps the number of the old descriptor.
    pub(crate) fn replace(&mut self, mut fresh: Self) -> io::Result<()> {
        super::replace(&self.fd, fresh.fd.as_fd())?;
        // Both numbers refer to the fresh socket now. The old number stays in use, because other threads poll
        // it.
        std::mem::swap(&mut self.fd, &mut fresh.fd);
        *self = fresh;
        Ok(())
    }
}

/// Returns the place of a chunk among the send chunks. Returns `None` for a receive chunk.
fn send_chunk(chunk: usize) -> Option<u32> {
    let number = chunk.checked_sub(RECEIVE_CHUNKS as usize)? as u32;
    (number < SEND_CHUNKS).then_some(number)
}
