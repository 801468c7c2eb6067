// SPDX-License-Identifier: Apache-2.0
//! The arithmetic of stateless forwarding, as one learns it at school.

use flow::stateless::{Arithmetic, NodeId};

/// What a big-endian key leaves when it is divided by a switch's ID.
#[must_use]
pub fn residue(key: &[u8], id: NodeId) -> u32 {
    match id.arithmetic() {
        Arithmetic::Integer => integer(key, id.modulus()),
        Arithmetic::Polynomial => polynomial(key, id.modulus()),
    }
}

/// Long division, digit by digit, a byte a digit.
fn integer(key: &[u8], modulus: u32) -> u32 {
    let mut rest = 0_u64;
    for digit in key {
        rest = (rest * 256 + u64::from(*digit)) % u64::from(modulus);
    }
    rest as u32
}

/// Long division without carries, bit by bit: whenever the rest reaches the modulus's degree, the modulus is taken off.
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

/// f(g, d) of Tag-and-Forward: the lowest multiple of `d` that is not below `gate`; 0, which is no gate, without a `d`.
#[must_use]
pub fn output_gate(gate: u32, d: u32) -> u64 {
    let (gate, d) = (u64::from(gate), u64::from(d));
    match d {
        0 => 0,
        _ if gate % d == 0 => gate,
        _ => (gate / d + 1) * d,
    }
}
