// SPDX-License-Identifier: Apache-2.0
//! Arithmetic of the stateless forwarder, without division instructions.
//!
//! Residues of integer keys use folded limbs and a reciprocal, or vectors for 8 keys at once. Residues of
//! polynomial keys use carry-less multiplication or tables.

use crate::limbs::{limbs, powers};
use crate::simd::{Carryless, Doubles};
use actions::stateless::KEY_BYTES;
use flow::stateless::{Arithmetic, NodeId};

pub use crate::limbs::Keys;

/// A divisor of at least 1, with its reciprocal.
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    by: u32,
    /// 2^64 divided by the divisor, rounded down; `u64::MAX` for a divisor of 1.
    reciprocal: u64,
}

impl Divisor {
    /// Creates a divisor. Returns `None` for 0.
    #[must_use]
    pub fn new(by: u32) -> Option<Self> {
        let reciprocal = (1_u128 << 64).checked_div(u128::from(by))?;
        Some(Self { by, reciprocal: u64::try_from(reciprocal).unwrap_or(u64::MAX) })
    }

    /// Returns the remainder of dividing a number by the divisor.
    #[must_use]
    #[inline]
    pub fn rest(self, number: u64) -> u32 {
        // The quotient is at most one too low, because the reciprocal is too low by less than 1 and the
        // number is below 2^64.
        let times = (u128::from(number) * u128::from(self.reciprocal)) >> 64;
        let rest = number.wrapping_sub((times as u64).wrapping_mul(self.by.into()));
        let by = u64::from(self.by);
        (if rest >= by { rest - by } else { rest }) as u32
    }

    /// Returns the lowest multiple of the divisor that is not below a number.
    #[must_use]
    #[inline]
    pub fn multiple_from(self, number: u32) -> u64 {
        let number = u64::from(number);
        match self.rest(number) {
            0 => number,
            rest => number + u64::from(self.by - rest),
        }
    }
}

/// Computes residues of keys modulo one node ID.
#[derive(Clone, Debug)]
pub struct Residue(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Integer(Integer),
    Polynomial(Box<Polynomial>),
    Carryless(Carryless),
}

impl Residue {
    /// Creates the computation for a node ID.
    #[must_use]
    pub fn by(id: NodeId) -> Self {
        Self(match (id.arithmetic(), Divisor::new(id.modulus())) {
            (Arithmetic::Integer, Some(divisor)) => Kind::Integer(Integer::new(divisor)),
            _ => match Carryless::new(id.modulus()) {
                Some(carryless) => Kind::Carryless(carryless),
                None => Kind::Polynomial(Box::new(Polynomial::new(id.modulus()))),
            },
        })
    }

    /// Returns the residue of a big-endian key modulo the node ID. The key's length must be a multiple of 8
    /// bytes, at most `KEY_BYTES`.
    #[must_use]
    #[inline]
    pub fn of(&self, key: &[u8]) -> u32 {
        match &self.0 {
            Kind::Integer(integer) => integer.residue(key),
            Kind::Polynomial(polynomial) => polynomial.residue(key),
            Kind::Carryless(carryless) => carryless.residue(key),
        }
    }

    /// Returns the residues of 8 keys. This takes less time than computing them one by one.
    #[must_use]
    #[inline]
    pub fn of_all(&self, keys: &Keys) -> [u32; 8] {
        match &self.0 {
            Kind::Integer(Integer { doubles: Some(doubles), .. }) => doubles.residues(keys),
            Kind::Integer(integer) => keys.each_ref().map(|key| integer.residue(key)),
            Kind::Polynomial(polynomial) => keys.each_ref().map(|key| polynomial.residue(key)),
            Kind::Carryless(carryless) => carryless.residues(keys),
        }
    }
}

/// Residues of integers.
///
/// Limbs are processed from the highest to the lowest. The intermediate result is multiplied by 2^64, the
/// next limb is added, and the sum is folded to 64 bits with the residue of 2^64. Only the last sum is
/// reduced by the reciprocal.
#[derive(Clone, Debug)]
struct Integer {
    divisor: Divisor,
    /// Residue of 2^64.
    weight: u64,
    /// Vector version for 8 keys in parallel, if the core supports it.
    doubles: Option<Doubles>,
}

impl Integer {
    fn new(divisor: Divisor) -> Self {
        let [_, _, weight, _] = powers(divisor.by);
        Self { divisor, weight: weight.into(), doubles: Doubles::new(divisor.by) }
    }

    #[inline]
    fn residue(&self, key: &[u8]) -> u32 {
        match <&[u8; 16]>::try_from(key) {
            // Most keys have two limbs. The fixed length lets the compiler unroll the loop.
            Ok(key) => self.fold(limbs(key)),
            Err(_) => self.fold(limbs(key)),
        }
    }

    #[inline(always)]
    fn fold(&self, mut limbs: impl Iterator<Item = u64>) -> u32 {
        let first = limbs.next().unwrap_or_default();
        let last = limbs.fold(first, |above, limb| {
            // The weight is below 2^32, so the product is below 2^96 and its upper part below 2^32.
            let product = u128::from(above) * u128::from(self.weight) + u128::from(limb);
            let upper = (product >> 64) as u64 * self.weight;
            let (sum, carries) = upper.overflowing_add(product as u64);
            // After a carry the sum is so small that adding a 32-bit number cannot overflow.
            if carries { sum + self.weight } else { sum }
        });
        self.divisor.rest(last)
    }
}

/// Residues of polynomials over GF(2) without vector instructions. A table of 4 KiB holds the residue of each
/// value of a nibble (4 bits) at each position.
#[derive(Clone, Debug)]
struct Polynomial {
    /// Residues. The first index is the position from the key's end, the second is the value of the nibble.
    rests: [[u32; 16]; 2 * KEY_BYTES],
}

impl Polynomial {
    fn new(modulus: u32) -> Self {
        let degree = modulus.checked_ilog2().unwrap_or_default();
        // Residue of x^n, for n = 0, 1, and so on.
        let mut power = if degree == 0 { 0 } else { 1_u64 };
        let mut rests = [[0; 16]; 2 * KEY_BYTES];
        for rests in &mut rests {
            for bit in 0..4 {
                for (value, rest) in rests.iter_mut().enumerate() {
                    if value >> bit & 1 == 1 {
                        *rest ^= power as u32;
                    }
                }
                power <<= 1;
                if power >> degree & 1 == 1 {
                    power ^= u64::from(modulus);
                }
            }
        }
        Self { rests }
    }

    #[inline]
    fn residue(&self, key: &[u8]) -> u32 {
        let places = self.rests.chunks_exact(2);
        key.iter().rev().zip(places).fold(0, |rest, (byte, places)| {
            rest ^ places[0][usize::from(byte & 15)] ^ places[1][usize::from(byte >> 4)]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    fn id(arithmetic: Arithmetic, modulus: u32) -> NodeId {
        NodeId::new(arithmetic, modulus).unwrap()
    }

    /// Returns moduli at the edges of ranges, and random moduli.
    fn moduli(rng: &mut Rng) -> Vec<u32> {
        let edges = [2, 3, 4, 5, 255, 256, 65_535, 65_536, (1 << 16) + 1, (1 << 29) - 1, 1 << 30];
        let high = [(1 << 31) - 1, 1 << 31, (1 << 31) + 1, u32::MAX - 1, u32::MAX];
        let mut all = [&edges[..], &high].concat();
        all.extend((0..200).map(|_| (rng.u32(..) >> rng.u32(0..31)).max(2)));
        all
    }

    #[test]
    fn keys_taken_together_leave_what_each_does() {
        let mut rng = Rng::with_seed(3);
        for modulus in moduli(&mut rng) {
            for arithmetic in [Arithmetic::Integer, Arithmetic::Polynomial] {
                let id = id(arithmetic, modulus);
                let residue = Residue::by(id);
                let scalar = Residue(match &residue.0 {
                    Kind::Integer(integer) => Kind::Integer(Integer { doubles: None, ..integer.clone() }),
                    _ => Kind::Polynomial(Box::new(Polynomial::new(modulus))),
                });
                for _ in 0..60 {
                    let by = u128::from(modulus);
                    let keys: Keys = [(); 8].map(|()| {
                        // Cases 0 to 2 are numbers near the maximum and near multiples of the modulus. In
                        // case 3 most bits are ones, and in the last case numbers have any length.
                        let number = match rng.u8(..5) {
                            0 => u128::MAX - rng.u128(..3 * by),
                            1 => (rng.u128(..) / by * by).saturating_add(rng.u128(..3)),
                            2 => (rng.u128(..) / by * by).saturating_sub(rng.u128(..3)),
                            3 => rng.u128(..) | rng.u128(..) | rng.u128(..),
                            _ => rng.u128(..) >> rng.u32(..128),
                        };
                        number.to_be_bytes()
                    });
                    let expected = keys.map(|key| reference::residue(&key, id));
                    assert_eq!(residue.of_all(&keys), expected, "{keys:02x?} by {id:?}");
                    assert_eq!(scalar.of_all(&keys), expected, "{keys:02x?} by {id:?}, without vectors");
                }
            }
        }
    }

    #[test]
    fn residues_are_those_of_long_division() {
        let mut rng = Rng::with_seed(1);
        for modulus in moduli(&mut rng) {
            for arithmetic in [Arithmetic::Integer, Arithmetic::Polynomial] {
                let id = id(arithmetic, modulus);
                let tables = Residue(Kind::Polynomial(Box::new(Polynomial::new(modulus))));
                let residue = Residue::by(id);
                for units in 1..=4 {
                    for round in 0..40 {
                        let mut key: Vec<u8> = (0..8 * units).map(|_| rng.u8(..)).collect();
                        match round {
                            0 => key.fill(0xff),
                            1 => key.fill(0),
                            // Most bits of the key are ones.
                            2..8 => key.iter_mut().for_each(|byte| *byte |= rng.u8(..) | rng.u8(..)),
                            _ => {}
                        }
                        let expected = reference::residue(&key, id);
                        assert_eq!(residue.of(&key), expected, "{key:02x?} by {id:?}");
                        if arithmetic == Arithmetic::Polynomial {
                            assert_eq!(tables.of(&key), expected, "{key:02x?} by {id:?}, with tables");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn gates_are_rounded_up() {
        let mut rng = Rng::with_seed(2);
        for d in moduli(&mut rng).into_iter().chain([1]) {
            let divisor = Divisor::new(d).unwrap();
            for gate in [0, 1, d - 1, d, d.wrapping_add(1), u32::MAX - 1, u32::MAX, rng.u32(..), rng.u32(..)]
            {
                assert_eq!(divisor.multiple_from(gate), reference::output_gate(gate, d), "{gate} by {d}");
            }
            for number in [0, u64::MAX, u64::MAX - 1, 1 << 63, rng.u64(..), rng.u64(..)] {
                assert_eq!(divisor.rest(number), (number % u64::from(d)) as u32, "{number} by {d}");
            }
        }
        assert!(Divisor::new(0).is_none());
    }
}
