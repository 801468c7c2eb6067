// SPDX-License-Identifier: Apache-2.0
//! Keys as 64-bit limbs, for scalar and vector code.

/// Eight keys of two limbs, processed together.
pub type Keys = [[u8; 16]; 8];

/// Returns a key's 64-bit limbs, the highest first.
#[inline(always)]
pub(crate) fn limbs(key: &[u8]) -> impl Iterator<Item = u64> {
    key.as_chunks::<8>().0.iter().map(|limb| u64::from_be_bytes(*limb))
}

/// Returns the residues of 2^(32 n) for n from 0 to 3.
pub(crate) fn powers(by: u32) -> [u32; 4] {
    let mut power = 1 % by;
    [(); 4].map(|()| {
        let next = (u64::from(power) << 32) % u64::from(by);
        std::mem::replace(&mut power, next as u32)
    })
}
