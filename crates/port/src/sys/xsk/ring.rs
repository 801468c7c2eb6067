// SPDX-License-Identifier: Apache-2.0
//! The four rings of an AF_XDP socket: power-of-two arrays of entries between one producer and one consumer, of which
//! the kernel is one. (Layout: linux/if_xdp.h and Documentation/networking/af_xdp.rst.)

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A mapping, unmapped when dropped.
pub(super) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone and may be used from any one thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `len` bytes: of `file` from this offset on, or of fresh zeroed memory.
    pub(super) fn new(len: usize, file: Option<(BorrowedFd<'_>, libc::off_t)>) -> io::Result<Self> {
        let (flags, fd, offset) = match file {
            Some((file, offset)) => (libc::MAP_SHARED, file.as_raw_fd(), offset),
            None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0),
        };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses; it checks length and offset against the file.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags | libc::MAP_POPULATE, fd, offset) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(address.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { base, len })
    }

    /// The first byte; as many as it was made with follow.
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Where `T` lies at this offset, if it does, aligned.
    fn at<T>(&self, offset: u64, count: usize) -> io::Result<NonNull<T>> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = size_of::<T>().checked_mul(count).and_then(|bytes| bytes.checked_add(offset));
        if end.is_none_or(|end| end > self.len) || offset % align_of::<T>() != 0 {
            return Err(io::Error::from_raw_os_error(libc::EPROTO));
        }
        // SAFETY: the offset lies inside the mapping (checked above).
        Ok(unsafe { self.base.add(offset) }.cast())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `new` made; what points into it is dropped with it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// What can stand in a ring: plain integers that the kernel may write at any time before it hands them over.
///
/// # Safety
/// Every bit pattern is a value.
pub(super) unsafe trait Entry: Copy {}
// SAFETY: an integer.
unsafe impl Entry for u64 {}
// SAFETY: integers only.
unsafe impl Entry for libc::xdp_desc {}

/// One ring, mapped, seen from our side: we produce in it or we consume from it, never both.
pub(super) struct Ring<T> {
    _mapping: Mapping,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    /// Entries less one.
    mask: u32,
    /// Our own index, ahead of the shared one until `publish`.
    own: u32,
    /// The kernel's, as last seen.
    other: u32,
}

// SAFETY: the pointers lead into the mapping, which belongs to this value and may be used from any one thread.
unsafe impl<T: Entry> Send for Ring<T> {}

impl<T: Entry> Ring<T> {
    /// Maps the ring at this page offset of a socket for which `entries` (a power of two) have been set.
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

    /// Whether the kernel asks to be told of new entries.
    pub(super) fn wants_wakeup(&self) -> bool {
        Self::shared(self.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// As producer: whether there is room for one more entry.
    pub(super) fn has_room(&mut self) -> bool {
        if self.own.wrapping_sub(self.other) > self.mask {
            self.other = Self::shared(self.consumer).load(Ordering::Acquire);
        }
        self.own.wrapping_sub(self.other) <= self.mask
    }

    /// As producer: writes the next entry, for which there must be room; the kernel sees it after `publish`.
    pub(super) fn put(&mut self, entry: T) {
        // SAFETY: masked, the position lies in the ring. What the kernel reads at the same time by a mistake of ours is
        // checked by it, as everything that comes from a program.
        unsafe { self.entries.add((self.own & self.mask) as usize).write_volatile(entry) };
        self.own = self.own.wrapping_add(1);
    }

    /// As producer: takes back all entries from this position on, which the kernel must not have seen.
    pub(super) fn rewind(&mut self, position: u32) {
        self.own = position;
        self.publish();
    }

    /// As producer: hands what was put over.
    pub(super) fn publish(&mut self) {
        Self::shared(self.producer).store(self.own, Ordering::Release);
    }

    /// As producer: how far the kernel has come, as a position.
    pub(super) fn consumed(&self) -> u32 {
        Self::shared(self.consumer).load(Ordering::Acquire)
    }

    /// As producer: the position of the next entry.
    pub(super) fn next(&self) -> u32 {
        self.own
    }

    /// As consumer: the next entry, if there is one.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<T> {
        if self.own == self.other {
            self.other = Self::shared(self.producer).load(Ordering::Acquire);
        }
        (self.own != self.other).then(|| self.entry(self.own))
    }

    /// As consumer: steps over the entry that `peek` showed; the kernel may write it after `release`.
    #[inline]
    pub(super) fn step(&mut self) {
        self.own = self.own.wrapping_add(1);
    }

    /// As consumer: gives back what was stepped over.
    #[inline]
    pub(super) fn release(&mut self) {
        Self::shared(self.consumer).store(self.own, Ordering::Release);
    }

    /// As consumer: all entries there are, without taking any.
    pub(super) fn waiting(&self) -> impl Iterator<Item = T> + '_ {
        let count = Self::shared(self.producer).load(Ordering::Acquire).wrapping_sub(self.own);
        (0..count.min(self.mask + 1)).map(|n| self.entry(self.own.wrapping_add(n)))
    }

    /// The entry at a position.
    #[inline]
    pub(super) fn entry(&self, position: u32) -> T {
        // SAFETY: masked, the position lies in the ring; every bit pattern is a value.
        unsafe { self.entries.add((position & self.mask) as usize).read_volatile() }
    }

    #[inline]
    fn shared<'a>(word: NonNull<AtomicU32>) -> &'a AtomicU32 {
        // SAFETY: a word of the mapping, which lives as long as the ring; callers use it within a method. Kernel and
        // program access it atomically only.
        unsafe { word.as_ref() }
    }
}
