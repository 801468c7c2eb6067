// SPDX-License-Identifier: Apache-2.0
//! The byte shuffles that build keys, in vector instructions. They need a value that exists only on a core
//! with these instructions.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use engines::simd::is_portable;

/// Byte shuffle that builds a row from 128 source bytes in one instruction (AVX-512 VBMI).
#[derive(Clone, Debug)]
pub struct Permute {
    choice: PermuteChoice,
}

/// Source of each byte of a row. Sources 0 to 63 are bytes of the frame, 64 to 95 bytes of the extended
/// header.
#[derive(Clone, Debug)]
pub struct PermuteChoice {
    /// Index of the source byte, relative to its base.
    pub from: [u8; 64],
    /// Mask of the bits to copy.
    pub mask: [u8; 64],
    /// Bytes whose base is the L3 header, one bit each.
    pub l3: u64,
    /// Bytes whose base is the L4 header, one bit each.
    pub l4: u64,
}

/// Data from which one row is built.
#[derive(Clone, Copy)]
pub struct RowSource<'p> {
    /// First 64 bytes of the frame's buffer. A shorter frame ends within them.
    pub frame: &'p [u8; 64],
    /// Extended header.
    pub ext: &'p [u8; 32],
    /// Kind of the packet, which determines the row's shape.
    pub kind: u64,
}

/// Properties shared by all rows of a kind.
#[derive(Clone, Copy)]
pub struct RowShape {
    /// Offset of the L3 header in the frame.
    pub l3: u8,
    /// Offset of the L4 header in the frame.
    pub l4: u8,
    /// Bytes of the row that are kept, one bit each. Others are 0.
    pub keep: u64,
    /// Value of word 0, if it is not built from bytes.
    pub first: Option<u64>,
}

/// A core with AVX-512 VBMI that the process may use.
#[derive(Clone, Copy, Debug)]
pub struct Vbmi(());

/// Code that is compiled twice, once for AVX-512 VBMI.
pub trait VbmiCode {
    /// Runs the code. Implementations must always be inlined, so that they are compiled for the instructions.
    fn run(self, vbmi: Option<Vbmi>);
}

#[cfg(target_arch = "x86_64")]
impl Vbmi {
    /// Returns `None` if the core lacks the instructions.
    #[must_use]
    pub fn detect() -> Option<Self> {
        let able = !is_portable()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi");
        able.then_some(Self(()))
    }

    /// Runs code that is compiled for these instructions.
    #[inline]
    pub fn run(self, code: impl VbmiCode) {
        #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512vbmi")]
        fn compiled(vbmi: Vbmi, code: impl VbmiCode) {
            code.run(Some(vbmi));
        }
        // SAFETY: only `detect` creates a `Vbmi`, and it has checked that the core has these instructions.
        unsafe { compiled(self, code) }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Vbmi {
    /// Returns `None`: only x86-64 has the instructions.
    #[must_use]
    pub fn detect() -> Option<Self> {
        None
    }

    /// Runs the code.
    pub fn run(self, code: impl VbmiCode) {
        code.run(None);
    }
}

/// Bytes that [`KeyPermute`] reads and writes.
pub(crate) const PERMUTED_BYTES: usize = 64;

/// Byte shuffle that builds a key of up to 64 bytes from the first 64 bytes of a packet.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct KeyPermute {
    /// Offset of each byte in the packet.
    from: [u8; PERMUTED_BYTES],
    /// Mask of the bits to copy.
    mask: [u8; PERMUTED_BYTES],
}

impl KeyPermute {
    /// The shuffle that copies no bits.
    pub const NOTHING: Self = Self { from: [0; PERMUTED_BYTES], mask: [0; PERMUTED_BYTES] };

    /// Makes the shuffle copy the bits of `mask` from byte `from` of the packet to byte `to` of the key.
    /// Returns `None` if a byte is not among the first 64, or if `to` already gets another byte.
    pub fn add(&mut self, to: usize, from: usize, mask: u8) -> Option<()> {
        if from >= PERMUTED_BYTES || *self.mask.get(to)? != 0 {
            return None;
        }
        (self.from[to], self.mask[to]) = (from as u8, mask);
        Some(())
    }

    /// Writes the first `WORDS` words of a key, and possibly further words. Adds constant bits to those of
    /// the packet. The first byte of a word is the lowest.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn write<const WORDS: usize>(
        &self,
        _: Vbmi,
        packet: &[u8; PERMUTED_BYTES],
        constants: &[u64; 8],
        key: &mut [u64; 8],
    ) {
        // SAFETY: a `Vbmi` exists, so the core has these instructions.
        unsafe { permute_key::<WORDS>(self, packet, constants, key) }
    }

    /// Does nothing, because no `Vbmi` exists on this architecture.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn write<const WORDS: usize>(
        &self,
        _: Vbmi,
        _: &[u8; PERMUTED_BYTES],
        _: &[u64; 8],
        _: &mut [u64; 8],
    ) {
    }
}

/// Writes the first `WORDS` words of a key, and possibly further words.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512vbmi")]
#[inline]
fn permute_key<const WORDS: usize>(
    choice: &KeyPermute,
    packet: &[u8; PERMUTED_BYTES],
    constants: &[u64; 8],
    key: &mut [u64; 8],
) {
    use std::arch::x86_64::{
        _mm256_loadu_si256, _mm256_storeu_si256, _mm256_ternarylogic_epi64, _mm512_castsi512_si256,
        _mm512_loadu_si512, _mm512_permutexvar_epi8, _mm512_storeu_si512, _mm512_ternarylogic_epi64,
    };
    // The truth table of "first and second, or third".
    const AND_OR: i32 = 0xea;
    let mask = choice.mask.as_ptr();
    // SAFETY: all five pointers are to arrays of 64 bytes, which is the length of the longer loads and
    // stores.
    unsafe {
        let from = _mm512_loadu_si512(choice.from.as_ptr().cast());
        let moved = _mm512_permutexvar_epi8(from, _mm512_loadu_si512(packet.as_ptr().cast()));
        if WORDS <= 4 {
            // The hash soon reads these words, which takes longer after a store of 64 bytes.
            let mask = _mm256_loadu_si256(mask.cast());
            let constants = _mm256_loadu_si256(constants.as_ptr().cast());
            let moved = _mm512_castsi512_si256(moved);
            let made = _mm256_ternarylogic_epi64::<AND_OR>(moved, mask, constants);
            _mm256_storeu_si256(key.as_mut_ptr().cast(), made);
        } else {
            let mask = _mm512_loadu_si512(mask.cast());
            let constants = _mm512_loadu_si512(constants.as_ptr().cast());
            let made = _mm512_ternarylogic_epi64::<AND_OR>(moved, mask, constants);
            _mm512_storeu_si512(key.as_mut_ptr().cast(), made);
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Permute {
    /// Returns `None` if the core lacks the instructions.
    #[must_use]
    pub fn new(choice: PermuteChoice) -> Option<Self> {
        Vbmi::detect().map(|_| Self { choice })
    }

    /// Builds a row of `words` words (at most 8) from each source, and clears the bits that are not in `mask`
    /// (a row, or empty for no mask).
    ///
    /// `shape` returns the common properties of a kind's rows. If it returns `None`, the rows of this kind
    /// stay undefined and the result is false. No word after the last row is written.
    #[inline]
    pub fn rows(
        &self,
        sources: &[RowSource<'_>],
        words: usize,
        keys: &mut [u64],
        mask: &[u64],
        shape: impl FnMut(u64) -> Option<RowShape>,
    ) -> bool {
        let room = keys.len().min(sources.len() * words);
        let keys = &mut keys[..room];
        // SAFETY: only `new` creates a `Permute`, and it has checked that the core has these instructions.
        unsafe { permute(&self.choice, sources, words, keys, mask, shape) }
    }
}

/// Builds all rows in one call, so that constants stay in registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn permute(
    choice: &PermuteChoice,
    sources: &[RowSource<'_>],
    words: usize,
    keys: &mut [u64],
    mask: &[u64],
    mut shape: impl FnMut(u64) -> Option<RowShape>,
) -> bool {
    use std::arch::x86_64::{
        _mm512_and_si512, _mm512_loadu_si512, _mm512_mask_add_epi8, _mm512_mask_mov_epi64,
        _mm512_mask_storeu_epi64, _mm512_maskz_loadu_epi8, _mm512_maskz_loadu_epi64,
        _mm512_maskz_permutex2var_epi8, _mm512_set1_epi8, _mm512_set1_epi64, _mm512_setzero_si512,
        _mm512_storeu_si512,
    };
    // SAFETY: `from` and `mask` are arrays of 64 bytes, the length of each load.
    let (from, bits) = unsafe {
        (_mm512_loadu_si512(choice.from.as_ptr().cast()), _mm512_loadu_si512(choice.mask.as_ptr().cast()))
    };
    let all = (1u16 << words.min(8)) as u8;
    let all = all.wrapping_sub(1);
    let examined = match mask.len() {
        0 => _mm512_set1_epi64(-1),
        // SAFETY: the load is masked to at most `words` words, and the match arm checks that `mask` has as
        // many.
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
            // SAFETY: `frame` is an array of 64 bytes. The load of `ext` is masked to 32 bytes, the length of
            // its array.
            let (frame, ext) = unsafe {
                (
                    _mm512_loadu_si512(source.frame.as_ptr().cast()),
                    _mm512_maskz_loadu_epi8(0xffff_ffff, source.ext.as_ptr().cast()),
                )
            };
            let made = _mm512_and_si512(_mm512_maskz_permutex2var_epi8(keep, frame, places, ext), bits);
            let made = _mm512_mask_mov_epi64(made, is_first, firsts);
            if rest.len() >= 8 {
                // A full store is used where it fits, because reading a word soon after a masked store stalls
                // the core. The words that it writes beyond the row are overwritten by the next row. SAFETY:
                // the branch checks that `rest` has at least 8 words.
                unsafe { _mm512_storeu_si512(rest.as_mut_ptr().cast(), made) };
            } else {
                let room = ((1u16 << rest.len()) - 1) as u8;
                // SAFETY: the store is masked to `rest.len()` words, which is below 8 in this branch.
                unsafe { _mm512_mask_storeu_epi64(rest.as_mut_ptr().cast(), room & all, made) };
            }
        }
        rest = rest.get_mut(words..).unwrap_or_default();
    }
    all_known
}

#[cfg(not(target_arch = "x86_64"))]
impl Permute {
    /// Returns `None`: only x86-64 has the instruction.
    #[must_use]
    pub fn new(_: PermuteChoice) -> Option<Self> {
        None
    }

    /// Does nothing, because no `Permute` exists on this architecture.
    pub fn rows(
        &self,
        _: &[RowSource<'_>],
        _: usize,
        _: &mut [u64],
        _: &[u64],
        _: impl FnMut(u64) -> Option<RowShape>,
    ) -> bool {
        false
    }
}
