// SPDX-License-Identifier: Apache-2.0
//! Kernels that compare keys with blocks of rules: eight rules per instruction with AVX-512, and portable
//! code that the compiler vectorizes for AVX2.
#![allow(unsafe_code)]

use super::{BLOCK, BLOCKS};
use crate::simd::Level;

/// Instructions to use. Only [`Kernel::new`] creates a kernel above the portable level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel {
    level: Level,
}

impl Default for Kernel {
    fn default() -> Self {
        Self { level: Level::Portable }
    }
}

impl Kernel {
    /// Returns the kernel for a level, or for a lower level if the core lacks instructions.
    pub fn new(level: Level) -> Self {
        Self { level: level.min(Level::found()) }
    }

    /// Returns a bitmap for each of `N` keys of `words` words: one bit for each rule in up to [`BLOCKS`]
    /// blocks, set if the key matches the rule.
    #[inline]
    pub fn hits<const N: usize>(self, blocks: &[u64], keys: &[u64], words: usize) -> [u64; N] {
        match self.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: only `new` creates a `Kernel` of this level, and it has limited the level to the core's
            // instructions.
            Level::Avx512 => unsafe { wide::hits(blocks, keys, words) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: only `new` creates a `Kernel` of this level, and it has limited the level to the core's
            // instructions.
            Level::Avx2 => unsafe { half::hits(blocks, keys, words) },
            _ => plain(blocks, keys, words),
        }
    }
}

#[inline(always)]
fn plain<const N: usize>(blocks: &[u64], keys: &[u64], words: usize) -> [u64; N] {
    let mut hits = [0; N];
    for (number, block) in blocks.chunks_exact(words * 2 * BLOCK).take(BLOCKS).enumerate() {
        for (key, hits) in keys.chunks_exact(words).zip(&mut hits) {
            let mut differing = [0u64; BLOCK];
            for (row, word) in block.chunks_exact(2 * BLOCK).zip(key) {
                for lane in 0..BLOCK {
                    differing[lane] |= (word & row[BLOCK + lane]) ^ row[lane];
                }
            }
            for (lane, bits) in differing.iter().enumerate() {
                *hits |= u64::from(*bits == 0) << (number * BLOCK + lane);
            }
        }
    }
    hits
}

#[cfg(target_arch = "x86_64")]
mod half {
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub fn hits<const N: usize>(blocks: &[u64], keys: &[u64], words: usize) -> [u64; N] {
        super::plain(blocks, keys, words)
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{BLOCK, BLOCKS};
    use std::arch::x86_64::*;

    /// Truth table of `key & mask ^ value` for the ternary logic instruction.
    const DIFFERS: i32 = 0x6a;

    #[target_feature(enable = "avx512f")]
    pub fn hits<const N: usize>(blocks: &[u64], keys: &[u64], words: usize) -> [u64; N] {
        let mut hits = [0; N];
        for (number, block) in blocks.chunks_exact(words * 2 * BLOCK).take(BLOCKS).enumerate() {
            let mut differing = [_mm512_setzero_si512(); N];
            for (word, row) in block.as_chunks::<{ 2 * BLOCK }>().0.iter().enumerate() {
                // SAFETY: `row` is an array of eight values and eight masks, the length of both loads.
                let (values, masks) = unsafe {
                    (
                        _mm512_loadu_si512(row.as_ptr().cast()),
                        _mm512_loadu_si512(row.as_ptr().add(BLOCK).cast()),
                    )
                };
                for (at, differing) in differing.iter_mut().enumerate() {
                    let key = _mm512_set1_epi64(keys[at * words + word].cast_signed());
                    let differs = _mm512_ternarylogic_epi64::<DIFFERS>(key, masks, values);
                    *differing = _mm512_or_si512(*differing, differs);
                }
            }
            for (hits, differing) in hits.iter_mut().zip(differing) {
                *hits |= u64::from(_mm512_testn_epi64_mask(differing, differing)) << (number * BLOCK);
            }
        }
        hits
    }
}
