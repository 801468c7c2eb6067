// SPDX-License-Identifier: Apache-2.0
//! Residues of polynomials by carry-less multiplication. What needs it can only be made where the core has it.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use super::residue::limbs;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m128i, _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si32, _mm_slli_si128, _mm_srl_epi64,
    _mm_xor_si128,
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
}
