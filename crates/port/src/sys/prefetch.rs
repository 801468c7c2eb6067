// SPDX-License-Identifier: Apache-2.0
//! Asks for memory before it is needed. Changes nothing else.

/// Asks for the cache lines of a short packet: those of its first byte and its 64th, if it has them.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8]) {
    for at in [0, 63] {
        if let Some(byte) = bytes.get(at.min(bytes.len().saturating_sub(1))) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a hint; it reads nothing that the program sees, and SSE belongs to every x86-64 core.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast());
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = byte;
        }
    }
}
