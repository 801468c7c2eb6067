// SPDX-License-Identifier: Apache-2.0
//! Vector code for residues: polynomials by carry-less multiplication, and integers for 8 keys at once. Each
//! type can only be created on a core that has its instructions.
#![allow(unsafe_code)]

use crate::limbs::Keys;
#[cfg(target_arch = "x86_64")]
use crate::limbs::{limbs, powers};
#[cfg(target_arch = "x86_64")]
use engines::simd::is_portable;
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

/// Constants for the residue of a polynomial (Barrett reduction).
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carryless {
    modulus: u64,
    /// Degree of the modulus, 1 to 31.
    degree: u32,
    /// Residue of x^64.
    weight: u64,
    /// Quotient of x^(64 + degree) divided by the modulus, without the quotient's highest term x^64.
    reciprocal: u64,
}

#[cfg(target_arch = "x86_64")]
impl Carryless {
    /// Returns `None` if the core lacks the instructions or the modulus has degree 0.
    pub fn new(modulus: u32) -> Option<Self> {
        let able =
            !is_portable() && is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("sse4.1");
        let degree = modulus.checked_ilog2().filter(|degree| able && *degree > 0)?;
        let modulus = u64::from(modulus);
        // Divides x^64 and then x^(64 + degree) by long division. The quotient's highest bit is shifted out.
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

    /// Returns the residue of a key of whole limbs.
    #[inline]
    pub fn residue(&self, key: &[u8]) -> u32 {
        // SAFETY: only `new` creates a `Carryless`, and it has checked that the core has these instructions.
        unsafe { self.fold(key) }
    }

    /// Returns the residues of 8 keys of two limbs.
    #[inline]
    pub fn residues(&self, keys: &Keys) -> [u32; 8] {
        // SAFETY: only `new` creates a `Carryless`, and it has checked that the core has these instructions.
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
            // The product has at most 94 bits. Its upper 30 bits are folded once more, to at most 60 bits, so
            // that the low half of `rest` holds the whole sum.
            let product = _mm_xor_si128(low_by_low(rest, weight), low(limb));
            rest = _mm_xor_si128(high_by_low(product, weight), product);
        }
        // Barrett reduction. The quotient of the low half of `rest` by the modulus is the upper half of the
        // product of `above` and the reciprocal. The quotient is exact, because carry-less products have no
        // carries.
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

/// Cannot be created on this architecture.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Carryless {}

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

/// Offset between integers and doubles: the low mantissa bits of `UNSIGNED + n` are the integer n, up to
/// 2^52. `SIGNED` is the same for signed integers.
#[cfg(target_arch = "x86_64")]
const UNSIGNED: f64 = (1_u64 << 52) as f64;
#[cfg(target_arch = "x86_64")]
const SIGNED: f64 = 1.5 * UNSIGNED;

/// Constants for the residues of 8 integers in parallel.
///
/// All values are integers below 2^53, or 32-bit integers times 2^32, which doubles represent exactly. Only
/// values from which quotients are estimated are rounded. An estimated quotient is the nearest integer or,
/// rarely, an integer next to it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubles {
    by: f64,
    inverse: f64,
    /// Residues of 2^(32 n) for n from 0 to 3.
    weights: [u32; 4],
}

#[cfg(target_arch = "x86_64")]
impl Doubles {
    /// Returns `None` if the core lacks the instructions.
    pub fn new(by: u32) -> Option<Self> {
        let able = !is_portable() && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let inverse = 1.0 / f64::from(by);
        able.then(|| Self { by: by.into(), inverse, weights: powers(by) })
    }

    /// Returns the residues of 8 keys.
    #[inline]
    pub fn residues(&self, keys: &Keys) -> [u32; 8] {
        // SAFETY: only `new` creates a `Doubles`, and it has checked that the core has these instructions.
        unsafe { self.reduce(keys) }
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn reduce(&self, keys: &Keys) -> [u32; 8] {
        // The keys are processed in this order so that the shuffle below restores their original order.
        let (one, other) = (self.rests(keys, [0, 4, 1, 5]), self.rests(keys, [2, 6, 3, 7]));
        let mut rests = [0; 8];
        // SAFETY: `rests` is an array of 32 bytes, the length of the store.
        unsafe {
            let low = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(one, other));
            _mm256_storeu_si256(rests.as_mut_ptr().cast(), low);
        }
        rests
    }

    /// Returns the residues of four keys in the low halves of 64-bit elements, in the order first, third,
    /// second, fourth.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn rests(&self, keys: &Keys, of: [usize; 4]) -> __m256 {
        let (lower, upper) = self.weighed(keys, of);
        let (by, inverse) = (_mm256_set1_pd(self.by), _mm256_set1_pd(self.inverse));
        let nearest = |number| {
            let signed = _mm256_set1_pd(SIGNED);
            _mm256_sub_pd(_mm256_add_pd(_mm256_mul_pd(number, inverse), signed), signed)
        };
        // `upper` is reduced to a value between -`by`/2 and `by`/2. The value times 2^32 is therefore exact.
        // Only its sum with `lower` is rounded, to estimate the quotient.
        let upper = _mm256_fnmadd_pd(nearest(upper), by, upper);
        let two_32 = _mm256_set1_pd((1_u64 << 32) as f64);
        let above = _mm256_mul_pd(upper, two_32);
        let quotient = nearest(_mm256_fmadd_pd(upper, two_32, lower));
        let rest = _mm256_add_pd(_mm256_fnmadd_pd(quotient, by, above), lower);
        let short = _mm256_and_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(rest, _mm256_setzero_pd()), by);
        _mm256_castpd_ps(_mm256_add_pd(_mm256_add_pd(rest, short), _mm256_set1_pd(UNSIGNED)))
    }

    /// Returns the weighted sums of the 32-bit limbs of four keys. The lower and upper 32 bits of the
    /// products are summed separately, and both sums are below 2^34.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn weighed(&self, keys: &Keys, of: [usize; 4]) -> (__m256d, __m256d) {
        let [w0, w1, w2, w3] = self.weights.map(i64::from);
        let even_weights = _mm256_set_epi64x(w2, w0, w2, w0);
        let odd_weights = _mm256_set_epi64x(w3, w1, w3, w1);
        let low_half = _mm256_set1_epi64x(0xffff_ffff);
        let backwards =
            _mm256_broadcastsi128_si256(_mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
        // Products of two keys, one in each half of the vector.
        let products = |low: usize, high: usize| {
            // SAFETY: each key is an array of 16 bytes, the length of each load.
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

/// Cannot be created on this architecture.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Doubles {}

#[cfg(not(target_arch = "x86_64"))]
impl Doubles {
    pub fn new(_by: u32) -> Option<Self> {
        None
    }

    pub fn residues(self, _keys: &Keys) -> [u32; 8] {
        match self {}
    }
}
