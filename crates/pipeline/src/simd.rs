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
pub(crate) struct Row {
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

    /// Makes a row of up to eight words and writes as many of them as there is room for.
    #[inline(always)]
    pub fn row(&self, frame: &[u8; 64], ext: &[u8; 32], row: Row, to: &mut [u64]) {
        // SAFETY: `new` has found these instructions, and nothing else makes a `Permute`.
        unsafe {
            permute(
                &self.choice,
                frame,
                ext,
                (u16::from(row.l3) | u16::from(row.l4) << 8, row.first.is_some()),
                (row.keep, row.first.unwrap_or(0)),
                to,
            );
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn permute(
    choice: &Choice,
    frame: &[u8; 64],
    ext: &[u8; 32],
    (headers, has_first): (u16, bool),
    (keep, first): (u64, u64),
    to: &mut [u64],
) {
    use std::arch::x86_64::{
        _mm512_and_si512, _mm512_loadu_si512, _mm512_mask_add_epi8, _mm512_mask_set1_epi64,
        _mm512_mask_storeu_epi64, _mm512_maskz_loadu_epi8, _mm512_maskz_permutex2var_epi8, _mm512_set1_epi8,
        _mm512_storeu_si512,
    };
    // SAFETY: arrays of 64 bytes; of the extended header only the 32 that it has are loaded.
    let (from, mask, frame, ext) = unsafe {
        (
            _mm512_loadu_si512(choice.from.as_ptr().cast()),
            _mm512_loadu_si512(choice.mask.as_ptr().cast()),
            _mm512_loadu_si512(frame.as_ptr().cast()),
            _mm512_maskz_loadu_epi8(0xffff_ffff, ext.as_ptr().cast()),
        )
    };
    let [l3, l4] = headers.to_le_bytes();
    let from = _mm512_mask_add_epi8(from, choice.l3, from, _mm512_set1_epi8(l3.cast_signed()));
    let from = _mm512_mask_add_epi8(from, choice.l4, from, _mm512_set1_epi8(l4.cast_signed()));
    let made = _mm512_and_si512(_mm512_maskz_permutex2var_epi8(keep, frame, from, ext), mask);
    let made = _mm512_mask_set1_epi64(made, u8::from(has_first), first.cast_signed());
    if to.len() >= 8 {
        // A whole store, where it fits: words of a part of one are read again much later.
        // SAFETY: there is room for eight words.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), made) };
    } else {
        // SAFETY: no more words are stored than there is room for.
        unsafe { _mm512_mask_storeu_epi64(to.as_mut_ptr().cast(), (1u8 << to.len()) - 1, made) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Permute {
    /// None: only one kind of core has such an instruction.
    pub fn new(_: Choice) -> Option<Self> {
        None
    }

    /// Makes nothing, as there is no `Permute`.
    pub fn row(&self, _: &[u8; 64], _: &[u8; 32], _: Row, _: &mut [u64]) {}
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
