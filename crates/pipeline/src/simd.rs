// SPDX-License-Identifier: Apache-2.0
//! Wide instructions, chosen when the program runs. What needs them can only be made where the core has them.
#![allow(unsafe_code)]

/// Where each byte of a row comes from: a choice of 128 bytes in one instruction (AVX-512 VBMI).
#[derive(Clone, Debug)]
pub(crate) struct Permute {
    choice: Choice,
}

/// For each byte of a row its source. Bytes 0 to 63 are the frame's, 64 to 95 the extended header's.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// The source byte, counted from its base.
    pub from: [u8; 64],
    /// The bits that are taken.
    pub mask: [u8; 64],
    /// The bytes whose base is the L3 header, one bit each.
    pub l3: u64,
    /// The bytes whose base is the L4 header.
    pub l4: u64,
}

/// What is different in each row.
#[derive(Clone, Copy)]
pub(crate) struct Row<'p> {
    /// The frame's first bytes, and what may follow them.
    pub frame: &'p [u8; 64],
    /// The extended header.
    pub ext: &'p [u8; 32],
    /// Where the headers begin in the frame.
    pub l3: u8,
    pub l4: u8,
    /// Bytes of the row that are not 0, one bit each.
    pub keep: u64,
    /// Word 0, if it is not made of bytes.
    pub first: Option<u64>,
}

#[cfg(target_arch = "x86_64")]
impl Permute {
    /// None where the core has no such instruction.
    pub fn new(choice: Choice) -> Option<Self> {
        let able = is_x86_feature_detected!("avx512vbmi") && is_x86_feature_detected!("avx512bw");
        able.then_some(Self { choice })
    }

    /// Makes `count` rows of `words` words (up to eight), one after the other; what is made of each `source` tells. It is
    /// given the row's place, and may fill it by other means and answer with nothing.
    #[inline]
    pub fn rows<'p>(
        &self,
        count: usize,
        words: usize,
        keys: &mut [u64],
        source: impl FnMut(usize, &mut [u64]) -> Option<Row<'p>>,
    ) {
        // SAFETY: `new` has found these instructions, and nothing else makes a `Permute`.
        unsafe { permute(&self.choice, count, words, keys, source) }
    }
}

/// All rows in one call: what is the same in each stays in registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn permute<'p>(
    choice: &Choice,
    count: usize,
    words: usize,
    keys: &mut [u64],
    mut source: impl FnMut(usize, &mut [u64]) -> Option<Row<'p>>,
) {
    use std::arch::x86_64::{
        _mm512_and_si512, _mm512_loadu_si512, _mm512_mask_add_epi8, _mm512_mask_set1_epi64,
        _mm512_mask_storeu_epi64, _mm512_maskz_loadu_epi8, _mm512_maskz_permutex2var_epi8, _mm512_set1_epi8,
        _mm512_storeu_si512,
    };
    // SAFETY: arrays of 64 bytes.
    let (from, mask) = unsafe {
        (_mm512_loadu_si512(choice.from.as_ptr().cast()), _mm512_loadu_si512(choice.mask.as_ptr().cast()))
    };
    for number in 0..count {
        let to = &mut keys[number * words..];
        let Some(row) = source(number, to) else { continue };
        // SAFETY: arrays of 64 bytes; of the extended header only the 32 that it has are loaded.
        let (frame, ext) = unsafe {
            (
                _mm512_loadu_si512(row.frame.as_ptr().cast()),
                _mm512_maskz_loadu_epi8(0xffff_ffff, row.ext.as_ptr().cast()),
            )
        };
        let from = _mm512_mask_add_epi8(from, choice.l3, from, _mm512_set1_epi8(row.l3.cast_signed()));
        let from = _mm512_mask_add_epi8(from, choice.l4, from, _mm512_set1_epi8(row.l4.cast_signed()));
        let made = _mm512_and_si512(_mm512_maskz_permutex2var_epi8(row.keep, frame, from, ext), mask);
        let first = row.first.unwrap_or(0).cast_signed();
        let made = _mm512_mask_set1_epi64(made, u8::from(row.first.is_some()), first);
        if to.len() >= 8 {
            // A whole store, where it fits: words of a part of one are read again much later.
            // SAFETY: there is room for eight words.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), made) };
        } else {
            // SAFETY: no more words are stored than there is room for.
            unsafe { _mm512_mask_storeu_epi64(to.as_mut_ptr().cast(), (1u8 << to.len()) - 1, made) };
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Permute {
    /// None: only one kind of core has such an instruction.
    pub fn new(_: Choice) -> Option<Self> {
        None
    }

    /// Makes nothing, as there is no `Permute`.
    pub fn rows<'p>(
        &self,
        _: usize,
        _: usize,
        _: &mut [u64],
        _: impl FnMut(usize, &mut [u64]) -> Option<Row<'p>>,
    ) {
    }
}

/// The bytes of `first` and of `second` that equal `byte`: bits 0 to 7, and 8 to 15, lowest byte first.
#[inline(always)]
pub(crate) fn equal_bytes(first: u64, second: u64, byte: u8) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 belongs to every x86-64 core.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_compared_exactly() {
        assert_eq!(equal_bytes(0x0100_0200_0001_0002, 0x01, 1), 1 << 7 | 1 << 2 | 1 << 8);
        assert_eq!(equal_bytes(0, 0, 1), 0);
        assert_eq!(equal_bytes(u64::MAX, 1 << 63, 0xff), 0xff);
        assert_eq!(equal_bytes(0, 0x80 << 56, 0x80), 1 << 15);
    }
}
