// SPDX-License-Identifier: Apache-2.0
//! An allocator that counts the allocations and frees of each thread.

// `GlobalAlloc` is an unsafe trait. Every unsafe block relies only on guarantees of the caller.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::Sub;

/// Numbers of calls to the allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Number of allocations, including reallocations.
    pub allocated: u64,
    /// Number of frees, including reallocations.
    pub freed: u64,
}

impl Sub for Counted {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { allocated: self.allocated - earlier.allocated, freed: self.freed - earlier.freed }
    }
}

thread_local! {
    // This value neither allocates nor needs to be dropped, so the allocator may use it at any time.
    static COUNTED: Cell<Counted> = const { Cell::new(Counted { allocated: 0, freed: 0 }) };
}

/// Returns the number of allocations and deallocations that this thread has made so far.
pub fn on_this_thread() -> Counted {
    COUNTED.get()
}

fn count(allocated: u64, freed: u64) {
    let so_far = COUNTED.get();
    COUNTED.set(Counted { allocated: so_far.allocated + allocated, freed: so_far.freed + freed });
}

/// The system's allocator, with counters.
pub struct Allocator;

// SAFETY: every method passes its arguments to the system's allocator, which fulfils the contract of the
// trait. Counting neither accesses allocated memory nor unwinds.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, 0);
        // SAFETY: the contract of `GlobalAlloc::alloc` is the same for `System`, and the caller guarantees
        // it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(1, 0);
        // SAFETY: the contract of `GlobalAlloc::alloc_zeroed` is the same for `System`, and the caller
        // guarantees it.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, 1);
        // SAFETY: the contract is the same for `System`, and the caller guarantees it. `place` was allocated
        // by `System`, like all memory of this allocator.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(0, 1);
        // SAFETY: the contract is the same for `System`, and the caller guarantees it; `place` came from
        // `System`, as all memory of this allocator does.
        unsafe { System.dealloc(place, layout) }
    }
}
