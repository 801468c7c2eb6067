// SPDX-License-Identifier: Apache-2.0
//! An allocator that counts for each thread what it allocates and frees.

// An allocator cannot be had without it; every block only hands its caller's promises on.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::Sub;

/// Calls of the allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Allocations, growing and shrinking included.
    pub allocated: u64,
    /// Frees, growing and shrinking included.
    pub freed: u64,
}

impl Sub for Counted {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { allocated: self.allocated - earlier.allocated, freed: self.freed - earlier.freed }
    }
}

thread_local! {
    // Neither allocates nor needs to be dropped, so that the allocator may use it at any time.
    static COUNTED: Cell<Counted> = const { Cell::new(Counted { allocated: 0, freed: 0 }) };
}

/// What this thread has allocated and freed so far.
pub fn on_this_thread() -> Counted {
    COUNTED.get()
}

fn count(allocated: u64, freed: u64) {
    let so_far = COUNTED.get();
    COUNTED.set(Counted { allocated: so_far.allocated + allocated, freed: so_far.freed + freed });
}

/// The system's allocator, counted.
pub struct Allocator;

// SAFETY: every method passes its arguments to the system's allocator, which keeps the promises of the trait; counting
// touches no allocated memory and does not unwind.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, 0);
        // SAFETY: the caller promises what `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(1, 0);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, 1);
        // SAFETY: as above; `place` came from `System`, as all of this allocator's memory does.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(0, 1);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}
