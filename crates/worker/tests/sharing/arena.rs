// SPDX-License-Identifier: Apache-2.0
//! An allocator that places allocations one after another and never frees them. The test can therefore
//! inspect all allocations, and neighbouring objects share cache lines wherever their alignment permits it.

// `GlobalAlloc` is an unsafe trait.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// Size of the arena in bytes, for all allocations of the test.
const BYTES: usize = 1 << 30;
/// Minimum size in bytes of an allocation that is recorded.
const LARGE_BYTES: usize = 256;
const LARGE: usize = 1 << 16;

/// An allocator that places allocations one after another.
pub struct Arena;

static START: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static USED: AtomicUsize = AtomicUsize::new(0);
static REMEMBERED: AtomicUsize = AtomicUsize::new(0);
/// Offset and size of each recorded allocation.
static ALLOCATIONS: [[AtomicUsize; 2]; LARGE] = [const { [const { AtomicUsize::new(0) }; 2] }; LARGE];

fn start() -> *mut u8 {
    let known = START.load(Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the alignment is a power of two and the size is not 0.
    let fresh = unsafe { System.alloc_zeroed(Layout::from_size_align_unchecked(BYTES, 4_096)) };
    match START.compare_exchange(null_mut(), fresh, Relaxed, Relaxed) {
        Ok(_) => fresh,
        Err(other) => other,
    }
}

// SAFETY: each call returns null, or a part of the arena that no other call gets. The part has the requested
// size and alignment.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = start();
        if start.is_null() {
            return null_mut();
        }
        let place = |used: usize| used.next_multiple_of(layout.align());
        let end = |used: usize| Some(place(used) + layout.size()).filter(|end| *end <= BYTES);
        let Ok(used) = USED.fetch_update(Relaxed, Relaxed, end) else { return null_mut() };
        let at = place(used);
        if layout.size() >= LARGE_BYTES {
            let number = REMEMBERED.fetch_add(1, Relaxed);
            if let Some([offset, size]) = ALLOCATIONS.get(number) {
                offset.store(at, Relaxed);
                size.store(layout.size(), Relaxed);
            }
        }
        // SAFETY: `at` is inside the arena.
        unsafe { start.add(at) }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

/// A copy of all allocated bytes, stored outside the arena.
pub struct Snapshot {
    bytes: *mut u8,
    len: usize,
}

impl Snapshot {
    /// Copies the allocated bytes. No other thread may write to them during the call.
    pub fn new() -> Self {
        let len = USED.load(Relaxed);
        // SAFETY: the size is at least 1, and the first `len` bytes of the arena are allocated.
        let bytes = unsafe {
            let bytes = System.alloc(Layout::from_size_align_unchecked(len.max(1), 1));
            assert!(!bytes.is_null());
            std::ptr::copy_nonoverlapping(start(), bytes, len);
            bytes
        };
        Self { bytes, len }
    }

    /// Returns the offsets of the blocks of `block_bytes` bytes that have changed since the copy.
    pub fn changed(&self, block_bytes: usize) -> Vec<usize> {
        // SAFETY: the arena and its copy have at least `len` bytes, and no other thread writes to them.
        let (now, before) = unsafe {
            (std::slice::from_raw_parts(start(), self.len), std::slice::from_raw_parts(self.bytes, self.len))
        };
        // The arena begins at a page boundary, so chunks are aligned blocks.
        let blocks = now.chunks(block_bytes).zip(before.chunks(block_bytes)).enumerate();
        let mut changed = Vec::with_capacity(self.len / block_bytes + 1);
        changed.extend(blocks.filter(|(_, (now, before))| now != before).map(|(at, _)| at * block_bytes));
        changed
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // SAFETY: the pointer and the layout are those of the allocation in `new`.
        unsafe { System.dealloc(self.bytes, Layout::from_size_align_unchecked(self.len.max(1), 1)) };
    }
}

/// Returns offset and size of the allocations recorded after the first `since` ones.
pub fn large(since: usize) -> Vec<(usize, usize)> {
    let count = REMEMBERED.load(Relaxed);
    assert!(count <= LARGE, "more allocations than can be recorded");
    ALLOCATIONS[since..count]
        .iter()
        .map(|[offset, size]| (offset.load(Relaxed), size.load(Relaxed)))
        .collect()
}

/// Returns the number of recorded allocations so far.
pub fn large_so_far() -> usize {
    REMEMBERED.load(Relaxed)
}

/// Returns the offset of a value in the arena.
pub fn offset<T>(of: &T) -> usize {
    (std::ptr::from_ref(of) as usize).wrapping_sub(start() as usize)
}
