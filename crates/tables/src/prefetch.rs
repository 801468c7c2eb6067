// SPDX-License-Identifier: Apache-2.0
//! Asking for cache lines before they are needed.
#![allow(unsafe_code)]

/// Asks for the cache line at the element `at` of a slice; for any other line, or none, if there is no such element.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, harmless at any address; nothing is read that the program sees. SSE belongs to every x86-64 core.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().wrapping_add(at).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, at);
}
