// SPDX-License-Identifier: Apache-2.0
//! State of a socket in shared memory after the UMEM, for the next process that uses the socket.

use super::ring::Mapping;
use super::{SEND_CHUNKS, UMEM_BYTES};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Offset of the lengths in the mapping.
const LENS_AT: u64 = UMEM_BYTES as u64;
/// Offset of the number of drops in the mapping.
const DROPS_AT: u64 = LENS_AT + SEND_CHUNKS as u64 * size_of::<AtomicU32>() as u64;

/// The words after the UMEM, all of which are 0 at first.
pub(super) struct SharedState {
    lens: NonNull<AtomicU32>,
    drops: NonNull<AtomicU64>,
}

// SAFETY: the pointers point into the mapping of the UMEM, which is not bound to a thread.
unsafe impl Send for SharedState {}

impl SharedState {
    /// Size in bytes of a mapping with the UMEM and the words.
    pub(super) const END: usize = DROPS_AT as usize + size_of::<AtomicU64>();

    /// Uses the words in this mapping, which must outlive the result.
    pub(super) fn new(umem: &Mapping) -> io::Result<Self> {
        Ok(Self { lens: umem.at(LENS_AT, SEND_CHUNKS as usize)?, drops: umem.at(DROPS_AT, 1)? })
    }

    /// Returns the length of the unsent frame in a send chunk, or 0 if the chunk is free. `chunk` is below
    /// [`SEND_CHUNKS`].
    pub(super) fn len(&self, chunk: u32) -> u32 {
        self.word(chunk).load(Ordering::Relaxed)
    }

    /// Sets the length of the unsent frame in a send chunk.
    pub(super) fn set_len(&mut self, chunk: u32, len: u32) {
        self.word(chunk).store(len, Ordering::Relaxed);
    }

    /// Returns the number of packets that the kernel had dropped when a process last took over the socket.
    pub(super) fn drops(&self) -> u64 {
        // SAFETY: an aligned word inside the mapping (checked by `Mapping::at`), which outlives this value.
        // Processes access it only atomically.
        unsafe { self.drops.as_ref() }.load(Ordering::Relaxed)
    }

    /// Records the number of packets that the kernel has dropped, when this process takes over the socket.
    pub(super) fn set_drops(&mut self, drops: u64) {
        // SAFETY: as in `drops`.
        unsafe { self.drops.as_ref() }.store(drops, Ordering::Relaxed);
    }

    fn word(&self, chunk: u32) -> &AtomicU32 {
        assert!(chunk < SEND_CHUNKS, "chunk {chunk} is not a send chunk");
        // SAFETY: the word is inside the mapping (checked by `Mapping::at` and above), which outlives this
        // value. Processes access it only atomically.
        unsafe { self.lens.add(chunk as usize).as_ref() }
    }
}
