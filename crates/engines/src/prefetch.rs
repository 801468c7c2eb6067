// SPDX-License-Identifier: Apache-2.0
//! Prefetching of cache lines.
#![allow(unsafe_code)]

/// Prefetches the cache line of element `at` of a slice. An index out of range is harmless.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint that reads nothing visible to the program, so any address is allowed. SSE
    // is part of every x86-64 core.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().wrapping_add(at).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, at);
}
