// SPDX-License-Identifier: Apache-2.0
//! SIMD code of the filter in [`super::bloom`], which processes eight keys at a time with AVX-512.
#![allow(unsafe_code)]

use super::parts::{Bits, Part};
use engines::simd::Level;

/// Instructions to use. Only [`Kernel::new`] creates a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel {
    level: Level,
}

impl Kernel {
    /// Returns the kernel of a level, limited to the core's instructions.
    pub fn new(level: Level) -> Self {
        Self { level: level.min(Level::found()) }
    }

    /// Returns a bitmap with one bit for each of the first 32 keys of `words` words, set if `bits` has the
    /// key's hash.
    #[inline]
    pub fn marks(self, part: &Part, bits: &Bits, keys: &[u64], words: usize) -> u32 {
        match self.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: only `new` creates a `Kernel`, and it has limited the level to the core's instructions.
            Level::Avx512 => unsafe { wide::marks(part, bits, keys, words) },
            _ => {
                let rows = keys.chunks_exact(words).take(32);
                rows.rev().fold(0, |marks, row| marks << 1 | u32::from(bits.has(part.hash(row))))
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{Bits, Part};
    use std::arch::x86_64::*;

    /// AVX-512 version of [`super::Kernel::marks`].
    #[target_feature(enable = "avx512f,avx512dq")]
    pub fn marks(part: &Part, bits: &Bits, keys: &[u64], words: usize) -> u32 {
        let count = (keys.len() / words).min(32);
        // Checks the bounds of the gathers below.
        assert!(part.terms.iter().all(|term| term.word < words), "a term refers to a word outside the key");
        let last = bits.words().len() as u64 - 1;
        let each = |number: u64| _mm512_set1_epi64(number.cast_signed());
        let down = _mm_cvtsi32_si128(bits.down.cast_signed());
        let rows = _mm512_mullox_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), each(words as u64));
        let mut marks = 0;
        for block in 0..count.div_ceil(8) {
            let lanes = (0xff_u32 >> 8usize.saturating_sub(count - 8 * block)) as u8;
            let mut sum = each(part.salt);
            for term in &part.terms {
                let from = keys.as_ptr().wrapping_add(8 * block * words + term.word);
                // SAFETY: `lanes` has a bit only for rows within `keys`, and the assertion above bounds the
                // term's word in a row.
                let word = unsafe {
                    _mm512_mask_i64gather_epi64::<8>(_mm512_setzero_si512(), lanes, rows, from.cast())
                };
                let word = _mm512_and_si512(word, each(term.mask));
                sum = _mm512_add_epi64(sum, _mm512_mullo_epi64(word, each(term.factor)));
            }
            let place = _mm512_srl_epi64(sum, down);
            let at = _mm512_and_si512(_mm512_srli_epi64::<6>(place), each(last));
            // SAFETY: `at` is masked by `last`, which is one less than the number of words. That number is a
            // power of two, so each index is below it.
            let word = unsafe { _mm512_i64gather_epi64::<8>(at, bits.words().as_ptr().cast()) };
            let bit = _mm512_sllv_epi64(each(1), _mm512_and_si512(place, each(63)));
            marks |= u32::from(_mm512_mask_test_epi64_mask(lanes, word, bit)) << (8 * block);
        }
        marks
    }
}
