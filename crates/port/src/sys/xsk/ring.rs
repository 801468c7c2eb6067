// SPDX-License-Identifier: Apache-2.0
//! The rings of an AF_XDP socket: arrays of a power-of-two size, each with one producer and one consumer. One
//! side is the kernel. Layout: linux/if_xdp.h and Documentation/networking/af_xdp.rst.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A memory mapping, unmapped on drop.
pub(super) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone and is not bound to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `len` bytes: of `file` from this offset on, or of zeroed anonymous memory.
    pub(super) fn new(len: usize, file: Option<(BorrowedFd<'_>, libc::off_t)>) -> io::Result<Self> {
        let (flags, fd, offset) = match file {
            Some((file, offset)) => (libc::MAP_SHARED, file.as_raw_fd(), offset),
            None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0),
        };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses. For a socket, the kernel checks
        // length and offset. Other files have `len` bytes and cannot shrink.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags | libc::MAP_POPULATE, fd, offset) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(address.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { base, len })
    }

    /// Returns the first byte of the mapping; `len` bytes are mapped.
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns a pointer to `count` values of `T` at this offset. Returns `EPROTO` if they are not inside the
    /// mapping or not aligned.
    pub(super) fn at<T>(&self, offset: u64, count: usize) -> io::Result<NonNull<T>> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = size_of::<T>().checked_mul(count).and_then(|bytes| bytes.checked_add(offset));
        if end.is_none_or(|end| end > self.len) || offset % align_of::<T>() != 0 {
            return Err(io::Error::from_raw_os_error(libc::EPROTO));
        }
        // SAFETY: `offset` is at most `self.len`, as checked above.
        Ok(unsafe { self.base.add(offset) }.cast())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly the mapping made by `new`. Pointers into it are dropped with it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Types of ring entries: plain integers that the kernel may write at any time before it passes the entry to
/// the program.
///
/// # Safety
/// Every bit pattern must be a valid value.
pub(super) unsafe trait Entry: Copy {}
// SAFETY: an integer.
unsafe impl Entry for u64 {}
// SAFETY: a structure of integers.
unsafe impl Entry for libc::xdp_desc {}

/// One mapped ring, of which the program is the producer or the consumer.
pub(super) struct Ring<T> {
    _mapping: Mapping,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    /// Number of entries minus one.
    mask: u32,
    /// The program's index, which is ahead of the shared index until `publish` or `release`.
    own: u32,
    /// The kernel's index, as last read.
    other: u32,
}

// SAFETY: the pointers point into the mapping, which belongs to this value and is not bound to a thread.
unsafe impl<T: Entry> Send for Ring<T> {}

impl<T: Entry> Ring<T> {
    /// Maps the ring at this page offset of a socket. Its size must have been set to `entries`, a power of
    /// two.
    pub(super) fn new(
        socket: BorrowedFd<'_>,
        page_offset: u64,
        offsets: &libc::xdp_ring_offset,
        entries: u32,
    ) -> io::Result<Self> {
        debug_assert!(entries.is_power_of_two());
        let len = offsets.desc as usize + entries as usize * size_of::<T>();
        let mapping = Mapping::new(len, Some((socket, page_offset as libc::off_t)))?;
        Ok(Self {
            producer: mapping.at(offsets.producer, 1)?,
            consumer: mapping.at(offsets.consumer, 1)?,
            flags: mapping.at(offsets.flags, 1)?,
            entries: mapping.at(offsets.desc, entries as usize)?,
            _mapping: mapping,
            mask: entries - 1,
            own: 0,
            other: 0,
        })
    }

    /// Reads the positions of a ring of which another process was the producer.
    pub(super) fn adopt_as_producer(&mut self) {
        self.own = Self::shared(self.producer).load(Ordering::Acquire);
        self.other = Self::shared(self.consumer).load(Ordering::Acquire);
    }

    /// Reads the positions of a ring of which another process was the consumer.
    pub(super) fn adopt_as_consumer(&mut self) {
        self.own = Self::shared(self.consumer).load(Ordering::Acquire);
        self.other = Self::shared(self.producer).load(Ordering::Acquire);
    }

    /// Returns whether the kernel requests a system call for new entries.
    pub(super) fn wants_wakeup(&self) -> bool {
        Self::shared(self.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// Returns whether the ring has space for one more entry. Called by the producer.
    pub(super) fn has_room(&mut self) -> bool {
        if self.own.wrapping_sub(self.other) > self.mask {
            self.other = Self::shared(self.consumer).load(Ordering::Acquire);
        }
        self.own.wrapping_sub(self.other) <= self.mask
    }

    /// Writes the next entry. There must be space for it; the kernel sees it after `publish`. Called
    /// by the producer.
    pub(super) fn put(&mut self, entry: T) {
        // SAFETY: the mask keeps the index below the number of entries, all of which are inside the mapping
        // (checked by `Mapping::at`). The kernel validates every entry that it reads.
        unsafe { self.entries.add((self.own & self.mask) as usize).write_volatile(entry) };
        self.own = self.own.wrapping_add(1);
    }

    /// Removes all entries from this position on. The kernel must not have seen them. Called by the producer.
    pub(super) fn rewind(&mut self, position: u32) {
        self.own = position;
        self.publish();
    }

    /// Publishes the written entries to the kernel. Called by the producer.
    pub(super) fn publish(&mut self) {
        Self::shared(self.producer).store(self.own, Ordering::Release);
    }

    /// Returns the position up to which the kernel has consumed entries. Called by the producer.
    pub(super) fn consumed(&self) -> u32 {
        Self::shared(self.consumer).load(Ordering::Acquire)
    }

    /// Returns the position of the next entry to write. Called by the producer.
    pub(super) fn next(&self) -> u32 {
        self.own
    }

    /// Returns the next entry, if there is one. Called by the consumer.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<T> {
        if self.own == self.other {
            self.other = Self::shared(self.producer).load(Ordering::Acquire);
        }
        (self.own != self.other).then(|| self.entry(self.own))
    }

    /// Advances past the entry of the last `peek`. The kernel may overwrite it after `release`. Called
    /// by the consumer.
    #[inline]
    pub(super) fn step(&mut self) {
        self.own = self.own.wrapping_add(1);
    }

    /// Returns the consumed entries to the kernel. Called by the consumer.
    #[inline]
    pub(super) fn release(&mut self) {
        Self::shared(self.consumer).store(self.own, Ordering::Release);
    }

    /// Returns all entries in the ring without consuming them. Called by the consumer.
    pub(super) fn waiting(&self) -> impl Iterator<Item = T> + '_ {
        let count = Self::shared(self.producer).load(Ordering::Acquire).wrapping_sub(self.own);
        (0..count.min(self.mask + 1)).map(|n| self.entry(self.own.wrapping_add(n)))
    }

    /// Returns the entry at a position.
    #[inline]
    pub(super) fn entry(&self, position: u32) -> T {
        // SAFETY: the mask keeps the index below the number of entries, all of which are inside the mapping
        // (checked by `Mapping::at`). Every bit pattern is a valid `Entry`.
        unsafe { self.entries.add((position & self.mask) as usize).read_volatile() }
    }

    #[inline]
    fn shared<'a>(word: NonNull<AtomicU32>) -> &'a AtomicU32 {
        // SAFETY: an aligned word inside the mapping (checked by `Mapping::at`), which lives as long as the
        // ring. Callers use the reference within one method. Kernel and program access the word only
        // atomically.
        unsafe { word.as_ref() }
    }
}
