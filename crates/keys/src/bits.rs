// SPDX-License-Identifier: Apache-2.0
//! Reads bit fields at any bit offset.

/// Returns the big-endian 64-bit word at byte `at`. Bytes past the end of the buffer read as 0.
#[must_use]
#[inline]
pub fn eight_bytes(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(eight) => u64::from_be_bytes(*eight),
        None => last_bytes(bytes, at),
    }
}

/// Returns the word at byte `at` like [`eight_bytes`], if fewer than 8 bytes are left.
#[cold]
fn last_bytes(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    let tail = bytes.get(at..).unwrap_or_default();
    eight[..tail.len()].copy_from_slice(tail);
    u64::from_be_bytes(eight)
}

/// Reads `bits` (1 to 64) bits that begin `skip` bits into byte `at`, right-aligned. Bytes past the end of
/// the buffer read as 0.
#[must_use]
#[inline]
pub fn read_bits(bytes: &[u8], at: usize, skip: u8, bits: u8) -> u64 {
    let word = eight_bytes(bytes, at);
    let reach = skip + bits;
    let value = if reach <= 64 {
        word >> (64 - reach)
    } else {
        // The field ends in a ninth byte.
        let ninth = bytes.get(at + 8).copied().unwrap_or(0);
        word << (reach - 64) | u64::from(ninth) >> (72 - reach)
    };
    value & (u64::MAX >> (64 - bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_at_any_place() {
        let bytes: Vec<u8> = (1..=20).map(|i| i * 11).collect();
        let all = |from: usize, bits: usize| {
            (from..from + bits)
                .fold(0u64, |value, bit| value << 1 | u64::from(bytes[bit / 8] >> (7 - bit % 8) & 1))
        };
        for from in 0..80 {
            for bits in 1..=64 {
                let got = read_bits(&bytes, from / 8, (from % 8) as u8, bits as u8);
                assert_eq!(got, all(from, bits), "{bits} bits from {from}");
            }
        }
        assert_eq!(read_bits(&[0xab], 0, 4, 8), 0xb0);
        assert_eq!(read_bits(&[0xab], 5, 0, 64), 0);
    }
}
