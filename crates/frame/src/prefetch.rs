// SPDX-License-Identifier: Apache-2.0
//! Asks for memory before it is needed, so that the misses of a burst's packets overlap. Changes nothing else.
#![allow(unsafe_code)]

/// Asks for the cache line at the element `at` of a slice; for any other line, or none, if there is no such element.
#[inline(always)]
pub fn element<T>(slice: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, harmless at any address; nothing is read that the program sees. SSE belongs to every x86-64 core.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().wrapping_add(at).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, at);
}

/// Asks for the cache line at which a value begins.
#[inline(always)]
pub fn of<T>(value: &T) {
    element(std::slice::from_ref(value), 0);
}
