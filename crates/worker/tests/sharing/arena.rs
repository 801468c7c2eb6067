// SPDX-License-Identifier: Apache-2.0
//! An allocator that puts one thing right behind the other and never frees, so that all there is can be looked at, and
//! neighbours share lines wherever their alignment lets them.

// An allocator cannot be had without it.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// All that is ever allocated.
const BYTES: usize = 1 << 30;
/// Of so many bytes and more, allocations are remembered.
const LARGE_BYTES: usize = 256;
const LARGE: usize = 1 << 16;

/// Puts one thing behind the other.
pub struct Arena;

static START: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static USED: AtomicUsize = AtomicUsize::new(0);
static REMEMBERED: AtomicUsize = AtomicUsize::new(0);
/// Offsets and sizes.
static ALLOCATIONS: [[AtomicUsize; 2]; LARGE] = [const { [const { AtomicUsize::new(0) }; 2] }; LARGE];

fn start() -> *mut u8 {
    let known = START.load(Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the layout is right and has a size.
    let fresh = unsafe { System.alloc_zeroed(Layout::from_size_align_unchecked(BYTES, 4_096)) };
    match START.compare_exchange(null_mut(), fresh, Relaxed, Relaxed) {
        Ok(_) => fresh,
        Err(other) => other,
    }
}

// SAFETY: each call gives out a part of the arena that no other gets, as large and aligned as asked for, or null.
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
        // SAFETY: inside the arena.
        unsafe { start.add(at) }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

/// A copy of all that is allocated, outside of it.
pub struct Snapshot {
    bytes: *mut u8,
    len: usize,
}

impl Snapshot {
    /// While no other thread writes.
    pub fn new() -> Self {
        let len = USED.load(Relaxed);
        // SAFETY: the layout has a size, and so much of the arena is there.
        let bytes = unsafe {
            let bytes = System.alloc(Layout::from_size_align_unchecked(len.max(1), 1));
            assert!(!bytes.is_null());
            std::ptr::copy_nonoverlapping(start(), bytes, len);
            bytes
        };
        Self { bytes, len }
    }

    /// The blocks of so many bytes of the arena that have changed since.
    pub fn changed(&self, block_bytes: usize) -> Vec<usize> {
        // SAFETY: so many bytes are there, of the arena and of its copy, and nobody writes to them.
        let (now, before) = unsafe {
            (std::slice::from_raw_parts(start(), self.len), std::slice::from_raw_parts(self.bytes, self.len))
        };
        // The arena begins with a page.
        let blocks = now.chunks(block_bytes).zip(before.chunks(block_bytes)).enumerate();
        let mut changed = Vec::with_capacity(self.len / block_bytes + 1);
        changed.extend(blocks.filter(|(_, (now, before))| now != before).map(|(at, _)| at * block_bytes));
        changed
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // SAFETY: as it was allocated.
        unsafe { System.dealloc(self.bytes, Layout::from_size_align_unchecked(self.len.max(1), 1)) };
    }
}

/// Allocations of [`LARGE_BYTES`] and more since a number of them, by offset and size.
pub fn large(since: usize) -> Vec<(usize, usize)> {
    let count = REMEMBERED.load(Relaxed);
    assert!(count <= LARGE, "more allocations than are remembered");
    ALLOCATIONS[since..count]
        .iter()
        .map(|[offset, size]| (offset.load(Relaxed), size.load(Relaxed)))
        .collect()
}

/// How many there are so far.
pub fn large_so_far() -> usize {
    REMEMBERED.load(Relaxed)
}

/// Where something is in the arena.
pub fn offset<T>(of: &T) -> usize {
    (std::ptr::from_ref(of) as usize).wrapping_sub(start() as usize)
}
