// SPDX-License-Identifier: Apache-2.0
//! Arithmetic of stateless forwarding, implemented by long division.

use flow::stateless::{Arithmetic, NodeId};

/// Returns the residue of a big-endian key modulo a switch's ID.
#[must_use]
pub fn residue(key: &[u8], id: NodeId) -> u32 {
    match id.arithmetic() {
        Arithmetic::Integer => integer(key, id.modulus()),
        Arithmetic::Polynomial => polynomial(key, id.modulus()),
    }
}

/// Computes the residue of an integer by long division in base 256, in which each byte is a digit.
fn integer(key: &[u8], modulus: u32) -> u32 {
    let mut rest = 0_u64;
    for digit in key {
        rest = (rest * 256 + u64::from(*digit)) % u64::from(modulus);
    }
    rest as u32
}

/// Computes the residue of a polynomial over GF(2) by long division, bit by bit.
fn polynomial(key: &[u8], modulus: u32) -> u32 {
    let degree = modulus.ilog2();
    let mut rest = 0_u64;
    for byte in key {
        for place in (0..8).rev() {
            rest = rest << 1 | u64::from(byte >> place & 1);
            if rest >> degree & 1 == 1 {
                rest ^= u64::from(modulus);
            }
        }
    }
    rest as u32
}

/// Returns f(g, d) of Tag-and-Forward: the lowest multiple of `d` that is not below `gate`. Returns 0, which
/// is not a gate, if `d` is 0.
#[must_use]
pub fn output_gate(gate: u32, d: u32) -> u64 {
    let (gate, d) = (u64::from(gate), u64::from(d));
    match d {
        0 => 0,
        _ if gate % d == 0 => gate,
        _ => (gate / d + 1) * d,
    }
}
