// SPDX-License-Identifier: Apache-2.0
//! Prefetching of memory into the CPU's cache, so that the cache misses of a burst's packets overlap.
#![allow(unsafe_code)]

/// Size of a cache line in bytes.
const LINE_BYTES: usize = 64;

/// Prefetches the cache line of the element `at` of a slice. An index out of range is harmless.
#[inline(always)]
pub fn element<T>(slice: &[T], at: usize) {
    line(slice.as_ptr().wrapping_add(at).cast());
}

/// Prefetches all cache lines of the element `at` of a slice whose elements are aligned to cache lines. An
/// index out of range is harmless.
#[inline(always)]
pub fn whole_element<T>(slice: &[T], at: usize) {
    let first: *const u8 = slice.as_ptr().wrapping_add(at).cast();
    for number in 0..size_of::<T>().div_ceil(LINE_BYTES) {
        line(first.wrapping_add(number * LINE_BYTES));
    }
}

/// Prefetches the cache line in which a value begins.
#[inline(always)]
pub fn of<T>(value: &T) {
    element(std::slice::from_ref(value), 0);
}

#[inline(always)]
fn line(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint that never faults and whose data the program does not read, so any address
    // is permitted. SSE is part of every x86-64 processor.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
