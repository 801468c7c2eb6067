// SPDX-License-Identifier: Apache-2.0
//! Corrupts messages.

use openflow::MESSAGE_BYTES_MAX;

/// Sets the length in the header to the message's length.
pub fn set_length(bytes: &mut [u8]) {
    let length = (bytes.len() as u16).to_be_bytes();
    if let Some(place) = bytes.get_mut(2..4) {
        place.copy_from_slice(&length);
    }
}

/// Corrupts a message. It sets aligned numbers to edge values, removes or duplicates parts, and exchanges
/// parts with another message.
pub fn mutate(rng: &mut fastrand::Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    const EDGES: &[u16] = &[0, 1, 3, 4, 7, 8, 15, 16, 17, 24, 0x7fff, 0x8000, 0xfff8, 0xfffe, 0xffff];
    for _ in 0..rng.usize(1..4) {
        if bytes.len() <= 8 {
            bytes.extend_from_slice(&other[8.min(other.len())..]);
        }
        if bytes.len() <= 10 {
            return;
        }
        let at = rng.usize(8..bytes.len() - 1);
        match rng.u8(..8) {
            0 => bytes[at] ^= 1 << rng.u8(..8),
            1 => bytes[at] = rng.u8(..),
            2 | 3 => {
                let even = at & !1;
                bytes[even..even + 2].copy_from_slice(&EDGES[rng.usize(..EDGES.len())].to_be_bytes());
            }
            4 => {
                let even = at & !1;
                let near = i32::from(u16::from_be_bytes([bytes[even], bytes[even + 1]])) + rng.i32(-9..9);
                bytes[even..even + 2].copy_from_slice(&(near as u16).to_be_bytes());
            }
            5 => bytes.truncate(at),
            6 => {
                let part = bytes[at & !7..].to_vec();
                bytes.extend_from_slice(&part[..part.len().min(64)]);
            }
            _ => {
                let start = (at & !7).min(other.len());
                bytes.truncate(at & !7);
                bytes.extend_from_slice(&other[start..]);
            }
        }
    }
    bytes.truncate(MESSAGE_BYTES_MAX);
    if rng.u8(..16) != 0 {
        set_length(bytes);
    }
    if rng.u8(..32) == 0 {
        bytes[1] = rng.u8(..32);
    }
}
