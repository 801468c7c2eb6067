// SPDX-License-Identifier: Apache-2.0
//! Levels of vector instructions that engines may use.
//!
//! The level is chosen when an engine is compiled. The kernels of each engine are in its `simd` module. A
//! kernel that needs an instruction can only be created if [`Level::found`] reports it.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

static PORTABLE: AtomicBool = AtomicBool::new(false);

/// Sets whether engines that this process compiles from now on avoid the core's vector instructions.
pub fn set_portable(portable: bool) {
    PORTABLE.store(portable, Ordering::Relaxed);
}

/// Returns the setting of [`set_portable`].
#[must_use]
pub fn is_portable() -> bool {
    PORTABLE.load(Ordering::Relaxed)
}

/// Level of vector instructions. Each level includes those below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Instructions that every core has.
    Portable,
    /// AVX2, BMI1, BMI2, POPCNT: vectors of 256 bits with gathers.
    Avx2,
    /// [`Level::Avx2`] and AVX-512 F, BW, VL, DQ: vectors of 512 bits with masks.
    Avx512,
}

impl Level {
    /// All levels, in ascending order.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// Returns the highest level that the core supports and [`set_portable`] allows.
    #[must_use]
    pub fn found() -> Self {
        if is_portable() { Self::Portable } else { Self::of_core() }
    }

    #[cfg(target_arch = "x86_64")]
    fn of_core() -> Self {
        let half = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        let whole = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq");
        match (half, whole) {
            (true, true) => Self::Avx512,
            (true, false) => Self::Avx2,
            (false, _) => Self::Portable,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn of_core() -> Self {
        Self::Portable
    }
}

/// Compares rows of up to 8 words with one instruction each (AVX-512).
#[derive(Clone, Copy, Debug)]
pub struct RowCompare {
    _found: (),
}

#[cfg(target_arch = "x86_64")]
impl RowCompare {
    /// Returns `None` if the core lacks AVX-512 or if portable code was requested.
    pub fn new() -> Option<Self> {
        (!is_portable() && is_x86_feature_detected!("avx512f")).then_some(Self { _found: () })
    }

    /// Compares up to 32 rows of `words` words with the rows at given places in `rows`. Returns one bit for
    /// each row, set if the rows differ or if the place is out of range.
    #[inline]
    pub fn differing(self, keys: &[u64], words: usize, rows: &[u64], places: &[u32]) -> u32 {
        // SAFETY: only `new` creates a `RowCompare`, and it has checked that the core has these instructions.
        unsafe { differing(keys, words, rows, places) }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn differing(keys: &[u64], words: usize, rows: &[u64], places: &[u32]) -> u32 {
    use std::arch::x86_64::{_mm512_mask_cmpneq_epi64_mask, _mm512_maskz_loadu_epi64};
    if words == 0 || words > 8 {
        return u32::MAX;
    }
    let all = ((1u16 << words) - 1) as u8;
    let mut found = 0;
    // Zipping several iterators was slower.
    let count = places.len().min(keys.len() / words).min(32);
    for (at, place) in places[..count].iter().enumerate() {
        let from = *place as usize * words;
        if from + words <= rows.len() {
            // SAFETY: both loads are masked to `words` words. The condition above bounds the row, and `count`
            // bounds the key.
            let differ = unsafe {
                let row = _mm512_maskz_loadu_epi64(all, rows.as_ptr().add(from).cast());
                let key = _mm512_maskz_loadu_epi64(all, keys.as_ptr().add(at * words).cast());
                _mm512_mask_cmpneq_epi64_mask(all, row, key)
            };
            found |= u32::from(differ == 0) << at;
        }
    }
    !found
}

#[cfg(not(target_arch = "x86_64"))]
impl RowCompare {
    /// Returns `None`: only x86-64 has the instruction.
    pub fn new() -> Option<Self> {
        None
    }

    /// Never called: no `RowCompare` exists on this architecture.
    pub fn differing(self, _: &[u64], _: usize, _: &[u64], _: &[u32]) -> u32 {
        u32::MAX
    }
}

/// Returns which bytes of `first` (bits 0 to 7) and `second` (bits 8 to 15) equal `byte`, lowest byte first.
#[inline(always)]
pub fn equal_bytes(first: u64, second: u64, byte: u8) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of every x86-64 core, and no memory is accessed.
    #[allow(unused_unsafe)]
    unsafe {
        use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
        let bytes = _mm_set_epi64x(second.cast_signed(), first.cast_signed());
        _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed()))).cast_unsigned()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let bytes = first.to_le_bytes().into_iter().chain(second.to_le_bytes());
        bytes.enumerate().fold(0, |equal, (at, other)| equal | u32::from(other == byte) << at)
    }
}

/// Returns which of 16 byte pairs equal `pair`. Bit 0 is for the first pair.
#[inline(always)]
pub fn equal_pairs(pairs: &[u16; 16], pair: u16) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of every x86-64 core. Each load reads half of the 32 bytes of `pairs`, at any
    // alignment.
    #[allow(unused_unsafe)]
    unsafe {
        use std::arch::x86_64::{
            __m128i, _mm_cmpeq_epi16, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi16, _mm_set1_epi16,
        };
        let at = pairs.as_ptr().cast::<__m128i>();
        let wanted = _mm_set1_epi16(pair.cast_signed());
        let low = _mm_cmpeq_epi16(_mm_loadu_si128(at), wanted);
        let high = _mm_cmpeq_epi16(_mm_loadu_si128(at.add(1)), wanted);
        _mm_movemask_epi8(_mm_packs_epi16(low, high)).cast_unsigned()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        pairs.iter().enumerate().fold(0, |equal, (at, other)| equal | u32::from(*other == pair) << at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_compared_whole() {
        let Some(compare) = RowCompare::new() else { return };
        for words in 1..=8 {
            let rows: Vec<u64> = (0..4 * words as u64).collect();
            let places = [2, 0, 3, 4, u32::MAX, 1];
            let mut keys: Vec<u64> = places
                .iter()
                .flat_map(|place| {
                    let at = *place as usize % 4 * words;
                    rows[at..at + words].to_vec()
                })
                .collect();
            keys[2 * words + words - 1] ^= 1 << 63;
            assert_eq!(compare.differing(&keys, words, &rows, &places) & 0x3f, 0b01_1100, "{words}");
        }
    }

    #[test]
    fn bytes_are_compared_exactly() {
        assert_eq!(equal_bytes(0x0100_0200_0001_0002, 0x01, 1), 1 << 7 | 1 << 2 | 1 << 8);
        assert_eq!(equal_bytes(0, 0, 1), 0);
        assert_eq!(equal_bytes(u64::MAX, 1 << 63, 0xff), 0xff);
        assert_eq!(equal_bytes(0, 0x80 << 56, 0x80), 1 << 15);
    }
}
