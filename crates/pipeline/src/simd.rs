// SPDX-License-Identifier: Apache-2.0
//! Wide instructions, chosen when the program runs. What needs them can only be made where the core has them.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use tables::simd::is_portable;

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

/// What a row is made of.
#[derive(Clone, Copy)]
pub(crate) struct Source<'p> {
    /// The frame's first bytes, and what may follow them.
    pub frame: &'p [u8; 64],
    /// The extended header.
    pub ext: &'p [u8; 32],
    /// What the row's shape follows from. Most packets of a burst are of one kind.
    pub kind: u64,
}

/// What is the same in the rows of a kind.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
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
        let able = !is_portable()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi");
        able.then_some(Self { choice })
    }

    /// Makes a row of `words` words (up to eight) of each source, one after the other, and clears the bits that are not in
    /// `mask` (a row, or nothing). `shape` tells what the rows of a kind have in common; where it tells nothing, the
    /// row stays undefined, and the answer is false. Nothing is written behind the last row.
    #[inline]
    pub fn rows(
        &self,
        sources: &[Source<'_>],
        words: usize,
        keys: &mut [u64],
        mask: &[u64],
        shape: impl FnMut(u64) -> Option<Shape>,
    ) -> bool {
        let room = keys.len().min(sources.len() * words);
        let keys = &mut keys[..room];
        // SAFETY: `new` has found these instructions, and nothing else makes a `Permute`.
        unsafe { permute(&self.choice, sources, words, keys, mask, shape) }
    }
}

/// All rows in one call: what is the same in each stays in registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn permute(
    choice: &Choice,
    sources: &[Source<'_>],
    words: usize,
    keys: &mut [u64],
    mask: &[u64],
    mut shape: impl FnMut(u64) -> Option<Shape>,
) -> bool {
    use std::arch::x86_64::{
        _mm512_and_si512, _mm512_loadu_si512, _mm512_mask_add_epi8, _mm512_mask_mov_epi64,
        _mm512_mask_storeu_epi64, _mm512_maskz_loadu_epi8, _mm512_maskz_loadu_epi64,
        _mm512_maskz_permutex2var_epi8, _mm512_set1_epi8, _mm512_set1_epi64, _mm512_setzero_si512,
        _mm512_storeu_si512,
    };
    // SAFETY: arrays of 64 bytes.
    let (from, bits) = unsafe {
        (_mm512_loadu_si512(choice.from.as_ptr().cast()), _mm512_loadu_si512(choice.mask.as_ptr().cast()))
    };
    let all = (1u16 << words.min(8)) as u8;
    let all = all.wrapping_sub(1);
    let examined = match mask.len() {
        0 => _mm512_set1_epi64(-1),
        // SAFETY: no more words are loaded than there are.
        len if len >= words => unsafe { _mm512_maskz_loadu_epi64(all, mask.as_ptr().cast()) },
        _ => _mm512_setzero_si512(),
    };
    let bits = _mm512_and_si512(bits, examined);
    let mut kind = None;
    let (mut places, mut keep, mut firsts, mut is_first, mut known) = (from, 0, from, 0, false);
    let mut all_known = true;
    let mut rest = &mut keys[..];
    for source in sources {
        if kind != Some(source.kind) {
            kind = Some(source.kind);
            let shape = shape(source.kind);
            known = shape.is_some();
            all_known &= known;
            if let Some(shape) = shape {
                keep = shape.keep;
                places =
                    _mm512_mask_add_epi8(from, choice.l3, from, _mm512_set1_epi8(shape.l3.cast_signed()));
                let l4 = _mm512_set1_epi8(shape.l4.cast_signed());
                places = _mm512_mask_add_epi8(places, choice.l4, places, l4);
                is_first = u8::from(shape.first.is_some());
                firsts =
                    _mm512_and_si512(_mm512_set1_epi64(shape.first.unwrap_or(0).cast_signed()), examined);
            }
        }
        if known {
            // SAFETY: arrays of 64 bytes; of the extended header only the 32 that it has are loaded.
            let (frame, ext) = unsafe {
                (
                    _mm512_loadu_si512(source.frame.as_ptr().cast()),
                    _mm512_maskz_loadu_epi8(0xffff_ffff, source.ext.as_ptr().cast()),
                )
            };
            let made = _mm512_and_si512(_mm512_maskz_permutex2var_epi8(keep, frame, places, ext), bits);
            let made = _mm512_mask_mov_epi64(made, is_first, firsts);
            if rest.len() >= 8 {
                // A whole store, where it fits: words of a part of one are read again much later. What it writes beyond
                // the row is written again: by the next one.
                // SAFETY: there is room for eight words.
                unsafe { _mm512_storeu_si512(rest.as_mut_ptr().cast(), made) };
            } else {
                let room = ((1u16 << rest.len()) - 1) as u8;
                // SAFETY: no more words are stored than there is room for.
                unsafe { _mm512_mask_storeu_epi64(rest.as_mut_ptr().cast(), room & all, made) };
            }
        }
        rest = rest.get_mut(words..).unwrap_or_default();
    }
    all_known
}

#[cfg(not(target_arch = "x86_64"))]
impl Permute {
    /// None: only one kind of core has such an instruction.
    pub fn new(_: Choice) -> Option<Self> {
        None
    }

    /// Makes nothing, as there is no `Permute`.
    pub fn rows(
        &self,
        _: &[Source<'_>],
        _: usize,
        _: &mut [u64],
        _: &[u64],
        _: impl FnMut(u64) -> Option<Shape>,
    ) -> bool {
        false
    }
}

/// Compares rows of up to eight words, each at once (AVX-512).
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowCompare {
    _found: (),
}

#[cfg(target_arch = "x86_64")]
impl RowCompare {
    /// None where the core has no such instruction.
    pub fn new() -> Option<Self> {
        (!is_portable() && is_x86_feature_detected!("avx512f")).then_some(Self { _found: () })
    }

    /// For each of up to 32 rows of `words` words one bit: whether the row at its place in `rows` is another, or there is
    /// none.
    #[inline]
    pub fn differing(self, keys: &[u64], words: usize, rows: &[u64], places: &[u32]) -> u32 {
        // SAFETY: `new` has found these instructions, and nothing else makes a `RowCompare`.
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
    // One iterator: several side by side cost more than what they lead to.
    let count = places.len().min(keys.len() / words).min(32);
    for (at, place) in places[..count].iter().enumerate() {
        let from = *place as usize * words;
        if from + words <= rows.len() {
            // SAFETY: there are `words` words in both places, and no more are loaded.
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
    /// None: only one kind of core has such an instruction.
    pub fn new() -> Option<Self> {
        None
    }

    /// Not to be had.
    pub fn differing(self, _: &[u64], _: usize, _: &[u64], _: &[u32]) -> u32 {
        u32::MAX
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
