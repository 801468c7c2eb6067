// SPDX-License-Identifier: Apache-2.0
//! The state of a socket that the next process needs, in shared memory after the UMEM.

use super::ring::Mapping;
use super::{CHUNK_BYTES, RECEIVE_CHUNKS, SEND_CHUNKS, UMEM_BYTES};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Offset of the lengths in the mapping.
const LENS_AT: u64 = UMEM_BYTES as u64;
/// Offset of the other words in the mapping.
const WORDS_AT: u64 = LENS_AT + SEND_CHUNKS as u64 * size_of::<AtomicU32>() as u64;
/// Number of the other words.
const WORDS: usize = 4;
/// Version and sizes of this layout. The version, in the top byte, must change with the meaning of a word.
const LAYOUT: u64 = 1 << 56 | (RECEIVE_CHUNKS as u64) << 40 | (SEND_CHUNKS as u64) << 24 | CHUNK_BYTES as u64;

/// The words after the lengths, by their places.
#[derive(Clone, Copy)]
enum Word {
    Layout,
    /// Interface and hardware queue to which the socket is bound.
    Binding,
    /// Number of times that a process took over the socket from another one.
    Takeovers,
    /// The number of packets that the kernel had dropped at the last takeover.
    Drops,
}

/// The lengths and words after the UMEM. All are 0 at first.
pub(super) struct SharedState {
    lens: NonNull<AtomicU32>,
    words: NonNull<AtomicU64>,
}

// SAFETY: the pointers point into the mapping of the UMEM, which is not bound to a thread.
unsafe impl Send for SharedState {}

impl SharedState {
    /// Size in bytes of a mapping with the UMEM and the words.
    pub(super) const END: usize = WORDS_AT as usize + WORDS * size_of::<AtomicU64>();

    /// Uses the words in this mapping, which must outlive the result.
    pub(super) fn new(umem: &Mapping) -> io::Result<Self> {
        Ok(Self { lens: umem.at(LENS_AT, SEND_CHUNKS as usize)?, words: umem.at(WORDS_AT, WORDS)? })
    }

    /// Stores the version of the layout, and the interface and hardware queue to which the socket is bound.
    pub(super) fn set_binding(&mut self, ifindex: i32, queue: u32) {
        self.set(Word::Binding, u64::from(ifindex as u32) << 32 | u64::from(queue));
        self.set(Word::Layout, LAYOUT);
    }

    /// Returns the interface and the hardware queue to which the socket is bound.
    pub(super) fn binding(&self) -> (i32, u32) {
        let word = self.get(Word::Binding);
        ((word >> 32) as i32, word as u32)
    }

    /// Returns whether the memory has the layout of this program.
    pub(super) fn has_layout(&self) -> bool {
        self.get(Word::Layout) == LAYOUT
    }

    /// Returns the number of takeovers, and the number of packets that the kernel had dropped at the last
    /// one.
    pub(super) fn takeovers(&self) -> (u64, u64) {
        (self.get(Word::Takeovers), self.get(Word::Drops))
    }

    /// Counts a takeover by this process, and stores the number of packets that the kernel has dropped so
    /// far. Returns the number of takeovers.
    pub(super) fn take_over(&mut self, drops: u64) -> u64 {
        let takeovers = self.get(Word::Takeovers).wrapping_add(1);
        self.set(Word::Drops, drops);
        self.set(Word::Takeovers, takeovers);
        takeovers
    }

    /// Returns the length of the unsent frame in a send chunk, or 0 if the chunk is free. Panics if `chunk`
    /// is not the number of a send chunk.
    pub(super) fn len(&self, chunk: u32) -> u32 {
        self.word(chunk).load(Ordering::Relaxed)
    }

    /// Sets the length of the unsent frame in a send chunk. Panics if `chunk` is not the number of a send
    /// chunk.
    pub(super) fn set_len(&mut self, chunk: u32, len: u32) {
        self.word(chunk).store(len, Ordering::Relaxed);
    }

    fn get(&self, word: Word) -> u64 {
        self.shared(word).load(Ordering::Acquire)
    }

    fn set(&mut self, word: Word, value: u64) {
        self.shared(word).store(value, Ordering::Release);
    }

    fn shared(&self, word: Word) -> &AtomicU64 {
        // SAFETY: `word` is below `WORDS`, all of which are inside the mapping (checked by `Mapping::at`),
        // which outlives this value. Processes access them only atomically.
        unsafe { self.words.add(word as usize).as_ref() }
    }

    fn word(&self, chunk: u32) -> &AtomicU32 {
        assert!(chunk < SEND_CHUNKS, "chunk {chunk} is not a send chunk");
        // SAFETY: the word is inside the mapping (checked by `Mapping::at` and above), which outlives this
        // value. Processes access it only atomically.
        unsafe { self.lens.add(chunk as usize).as_ref() }
    }
}
