// SPDX-License-Identifier: Apache-2.0
//! Prefetching of memory into the CPU's cache. The cache misses of a burst's packets thereby overlap. A
//! prefetch has no other effect.
#![allow(unsafe_code)]

/// Prefetches the cache line of the element `at` of a slice. An index out of range is harmless.
#[inline(always)]
pub fn element<T>(slice: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint that never faults and whose data the program does not read, so any address
    // is permitted. SSE is part of every x86-64 processor.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().wrapping_add(at).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, at);
}

/// Prefetches the cache line in which a value begins.
#[inline(always)]
pub fn of<T>(value: &T) {
    element(std::slice::from_ref(value), 0);
}
