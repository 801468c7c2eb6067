// SPDX-License-Identifier: Apache-2.0
//! Residues of polynomials by carry-less multiplication, and of integers eight keys at once. What needs an instruction can only
//! be made where the core has it.
#![allow(unsafe_code)]

use super::residue::Keys;
#[cfg(target_arch = "x86_64")]
use super::residue::{limbs, powers};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m128i, __m256, __m256d, __m256i, _CMP_LT_OQ, _mm_clmulepi64_si128, _mm_cvtsi64_si128,
    _mm_cvtsi128_si32, _mm_loadu_si128, _mm_set_epi8, _mm_slli_si128, _mm_srl_epi64, _mm_xor_si128,
    _mm256_add_epi64, _mm256_add_pd, _mm256_and_pd, _mm256_and_si256, _mm256_broadcastsi128_si256,
    _mm256_castpd_ps, _mm256_castpd_si256, _mm256_castps_si256, _mm256_castsi256_pd, _mm256_cmp_pd,
    _mm256_fmadd_pd, _mm256_fnmadd_pd, _mm256_mul_epu32, _mm256_mul_pd, _mm256_or_si256, _mm256_set_epi64x,
    _mm256_set_m128i, _mm256_set1_epi64x, _mm256_set1_pd, _mm256_setzero_pd, _mm256_shuffle_epi8,
    _mm256_shuffle_ps, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_sub_pd, _mm256_unpackhi_epi64,
    _mm256_unpacklo_epi64,
};
#[cfg(target_arch = "x86_64")]
use tables::simd::is_portable;

/// What a polynomial's residue is taken by.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(super) struct Carryless {
    modulus: u64,
    /// Its degree, 1 to 31.
    degree: u32,
    /// x^64 by the modulus.
    weight: u64,
    /// x^(64 + degree) divided by the modulus, without its highest term, x^64.
    reciprocal: u64,
}

#[cfg(target_arch = "x86_64")]
impl Carryless {
    /// None where the core has no such instruction.
    pub fn new(modulus: u32) -> Option<Self> {
        let able =
            !is_portable() && is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("sse4.1");
        let degree = modulus.checked_ilog2().filter(|degree| able && *degree > 0)?;
        let modulus = u64::from(modulus);
        // Long division of x^64, then of x^(64 + degree): the quotient's highest bit falls out at the top.
        let (mut rest, mut quotient, mut weight) = (1_u64, 0_u64, 0);
        for power in 1..=64 + degree {
            rest <<= 1;
            let over = rest >> degree & 1;
            quotient = quotient << 1 | over;
            rest ^= over * modulus;
            if power == 64 {
                weight = rest;
            }
        }
        Some(Self { modulus, degree, weight, reciprocal: quotient })
    }

    /// The residue of a key of whole limbs.
    #[inline]
    pub fn residue(&self, key: &[u8]) -> u32 {
        // SAFETY: `new` has found these instructions, and nothing else makes a `Carryless`.
        unsafe { self.fold(key) }
    }

    /// The residues of several keys of two limbs.
    #[inline]
    pub fn residues(&self, keys: &Keys) -> [u32; 8] {
        // SAFETY: as above.
        unsafe { self.fold_all(keys) }
    }

    #[target_feature(enable = "pclmulqdq,sse4.1")]
    #[inline]
    fn fold_all(&self, keys: &Keys) -> [u32; 8] {
        let mut rests = [0; 8];
        for (rest, key) in rests.iter_mut().zip(keys) {
            *rest = self.fold(key);
        }
        rests
    }

    #[target_feature(enable = "pclmulqdq,sse4.1")]
    #[inline]
    fn fold(&self, key: &[u8]) -> u32 {
        let low = |word: u64| _mm_cvtsi64_si128(word as i64);
        let weight = low(self.weight);
        let mut rest = low(0);
        let mut first = true;
        for limb in limbs(key) {
            if std::mem::take(&mut first) {
                rest = low(limb);
                continue;
            }
            // At most 94 bits; its upper part once more, 60.
            let product = _mm_xor_si128(low_by_low(rest, weight), low(limb));
            rest = _mm_xor_si128(high_by_low(product, weight), product);
        }
        // How often the modulus is in the low half of what is left: the upper half of what is above the degree by the
        // reciprocal, exactly, for nothing is carried.
        let above = _mm_srl_epi64(rest, low(self.degree.into()));
        let times = _mm_xor_si128(low_by_low(above, low(self.reciprocal)), _mm_slli_si128::<8>(above));
        _mm_cvtsi128_si32(_mm_xor_si128(high_by_low(times, low(self.modulus)), rest)) as u32
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "pclmulqdq")]
#[inline]
fn low_by_low(one: __m128i, other: __m128i) -> __m128i {
    _mm_clmulepi64_si128::<0x00>(one, other)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "pclmulqdq")]
#[inline]
fn high_by_low(one: __m128i, other: __m128i) -> __m128i {
    _mm_clmulepi64_si128::<0x01>(one, other)
}

/// There is none.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
pub(super) enum Carryless {}

#[cfg(not(target_arch = "x86_64"))]
impl Carryless {
    pub fn new(_modulus: u32) -> Option<Self> {
        None
    }

    pub fn residue(self, _key: &[u8]) -> u32 {
        match self {}
    }

    pub fn residues(self, _keys: &Keys) -> [u32; 8] {
        match self {}
    }
}

/// A double from which on the lowest bits of doubles are those of an integer, up to 2^52, and the same for signed ones.
#[cfg(target_arch = "x86_64")]
const UNSIGNED: f64 = (1_u64 << 52) as f64;
#[cfg(target_arch = "x86_64")]
const SIGNED: f64 = 1.5 * UNSIGNED;

/// What an integer's residues are taken by, eight keys at once. Numbers are integers below 2^53, or of 32 bits times
/// 2^32, which doubles hold exactly, but for those that quotients are estimated from; these are the nearest or, rarely, next to it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubles {
    by: f64,
    inverse: f64,
    /// 2^32n by the ID.
    weights: [u32; 4],
}

#[cfg(target_arch = "x86_64")]
impl Doubles {
    /// None where the core has no such instructions.
    pub fn new(by: u32) -> Option<Self> {
        let able = !is_portable() && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let inverse = 1.0 / f64::from(by);
        able.then(|| Self { by: by.into(), inverse, weights: powers(by) })
    }

    /// The residues of several keys.
    #[inline]
    pub fn residues(&self, keys: &Keys) -> [u32; 8] {
        // SAFETY: `new` has found these instructions, and nothing else makes a `Doubles`.
        unsafe { self.reduce(keys) }
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn reduce(&self, keys: &Keys) -> [u32; 8] {
        // As the pieces of two vectors come to lie side by side.
        let (one, other) = (self.rests(keys, [0, 4, 1, 5]), self.rests(keys, [2, 6, 3, 7]));
        let mut rests = [0; 8];
        // SAFETY: 32 bytes.
        unsafe {
            let low = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(one, other));
            _mm256_storeu_si256(rests.as_mut_ptr().cast(), low);
        }
        rests
    }

    /// What four of the keys leave, in the lower halves of 64 bits each: the first, the third, the second, the last.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn rests(&self, keys: &Keys, of: [usize; 4]) -> __m256 {
        let (lower, upper) = self.weighed(keys, of);
        let (by, inverse) = (_mm256_set1_pd(self.by), _mm256_set1_pd(self.inverse));
        let nearest = |number| {
            let signed = _mm256_set1_pd(SIGNED);
            _mm256_sub_pd(_mm256_add_pd(_mm256_mul_pd(number, inverse), signed), signed)
        };
        // Half of the ID at most, above or below 0; then 2^32 times it, exactly, and with the lower, rounded, for a quotient.
        let upper = _mm256_fnmadd_pd(nearest(upper), by, upper);
        let two_32 = _mm256_set1_pd((1_u64 << 32) as f64);
        let above = _mm256_mul_pd(upper, two_32);
        let quotient = nearest(_mm256_fmadd_pd(upper, two_32, lower));
        let rest = _mm256_add_pd(_mm256_fnmadd_pd(quotient, by, above), lower);
        let short = _mm256_and_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(rest, _mm256_setzero_pd()), by);
        _mm256_castpd_ps(_mm256_add_pd(_mm256_add_pd(rest, short), _mm256_set1_pd(UNSIGNED)))
    }

    /// What the limbs of 32 bits of four keys come to by their weights: lower and upper 32 bits apart, both below 2^34.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn weighed(&self, keys: &Keys, of: [usize; 4]) -> (__m256d, __m256d) {
        let [w0, w1, w2, w3] = self.weights.map(i64::from);
        let even_weights = _mm256_set_epi64x(w2, w0, w2, w0);
        let odd_weights = _mm256_set_epi64x(w3, w1, w3, w1);
        let low_half = _mm256_set1_epi64x(0xffff_ffff);
        let backwards =
            _mm256_broadcastsi128_si256(_mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        // Of two keys, each in its half.
        let products = |low: usize, high: usize| {
            // SAFETY: 16 bytes each.
            let (low, high) = unsafe {
                (_mm_loadu_si128(keys[low].as_ptr().cast()), _mm_loadu_si128(keys[high].as_ptr().cast()))
            };
            let limbs = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), backwards);
            let even = _mm256_mul_epu32(limbs, even_weights);
            let odd = _mm256_mul_epu32(_mm256_srli_epi64::<32>(limbs), odd_weights);
            let lower = _mm256_add_epi64(_mm256_and_si256(even, low_half), _mm256_and_si256(odd, low_half));
            let upper = _mm256_add_epi64(_mm256_srli_epi64::<32>(even), _mm256_srli_epi64::<32>(odd));
            (lower, upper)
        };
        let (one, other) = (products(of[0], of[1]), products(of[2], of[3]));
        let sums = |one: __m256i, other: __m256i| {
            let sum = _mm256_add_epi64(_mm256_unpacklo_epi64(one, other), _mm256_unpackhi_epi64(one, other));
            let unsigned = _mm256_set1_pd(UNSIGNED);
            let bits = _mm256_or_si256(sum, _mm256_castpd_si256(unsigned));
            _mm256_sub_pd(_mm256_castsi256_pd(bits), unsigned)
        };
        (sums(one.0, other.0), sums(one.1, other.1))
    }
}

/// There is none.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
pub(super) enum Doubles {}

#[cfg(not(target_arch = "x86_64"))]
impl Doubles {
    pub fn new(_by: u32) -> Option<Self> {
        None
    }

    pub fn residues(self, _keys: &Keys) -> [u32; 8] {
        match self {}
    }
}
