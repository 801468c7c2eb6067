// SPDX-License-Identifier: Apache-2.0
//! Which parts of a field's values additions lie in: of a routing table with a few thousand additions most keys lie in none,
//! and are not looked for in the head. A bit for each value of the field's first bits; a base made anew begins without any.

use crate::lpm::Piece;

/// First bits of the field that tell regions apart: of IPv4 addresses each region a bit of its own, of longer fields, whose
/// values share more of their first bits, by a hash.
const DEPTH: u32 = 20;
const DEPTH_LONG: u32 = 32;

/// Bits that regions are noted in, as a power of two: 128 KiB.
const BITS: u32 = 20;

/// An addition in more regions than this lies in all: to note them one by one would take long.
const REGIONS_MAX: u64 = 4_096;

/// See above.
#[derive(Clone, Debug)]
pub(super) struct Regions {
    piece: Piece,
    /// How far the first bits are from the piece's last.
    down: u32,
    touched: Box<[u64]>,
    /// All are: nothing is left to note.
    all: bool,
}

impl Regions {
    /// None touched, of the field whose first bits are in `piece`.
    pub fn new(piece: Piece) -> Self {
        let depth = if piece.bits > 32 { DEPTH_LONG } else { piece.bits.min(DEPTH) };
        let touched = vec![0; 1usize << (BITS - 6)].into_boxed_slice();
        Self { piece, down: piece.bits - depth, touched, all: false }
    }

    /// Notes where an addition lies. Bits behind one that it does not examine are taken as open.
    pub fn touch(&mut self, value: &[u64], mask: &[u64]) {
        let most = u64::MAX >> (64 - self.piece.bits) >> self.down;
        let mask = self.piece.of(mask) >> self.down;
        let open = u64::MAX.checked_shr((!mask & most).leading_zeros()).unwrap_or(0) & most;
        self.all |= open >= REGIONS_MAX;
        if self.all {
            return;
        }
        let first = self.piece.of(value) >> self.down & !open;
        for region in first..=first | open {
            let (word, bit) = place(region);
            self.touched[word] |= bit;
        }
    }

    /// Whether some addition may lie where the row does.
    #[inline]
    pub fn is_touched(&self, row: &[u64]) -> bool {
        let (word, bit) = place(self.piece.of(row) >> self.down);
        self.all || self.touched[word] & bit != 0
    }
}

/// Word and bit of a region. Up to [`BITS`] bits of a region an odd factor leaves apart.
#[inline]
fn place(region: u64) -> (usize, u64) {
    let mixed = region.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 32 & u64::from(region >> BITS != 0).wrapping_neg()) & ((1 << BITS) - 1);
    ((mixed / 64) as usize, 1 << (mixed % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_of_prefixes() {
        let piece = Piece { word: 1, shift: 8, bits: 32 };
        let row = |value: u32| [7, u64::from(value) << 8 | 0x11];
        let mut regions = Regions::new(piece);
        assert!(!regions.is_touched(&row(0x0a01_0203)));
        let mut touch = |value, mask| regions.touch(&row(value), &row(mask));
        touch(0x0a01_0200, 0xffff_ff00);
        touch(0xc000_0000, 0xff00_0000);
        touch(0x1400_0000, 0xff00_ff00);
        for (value, touched) in [
            (0x0a01_0203, true),
            (0x0a01_0fff, true),
            (0x0a01_1000, false),
            (0xbfff_ffff, false),
            (0xc000_0000, true),
            (0xc0ff_ffff, true),
            (0xc100_0000, false),
            (0x1400_0000, true),
            (0x14ff_ffff, true),
            (0x1500_0000, false),
        ] {
            assert_eq!(regions.is_touched(&row(value)), touched, "{value:x}");
        }
        regions.touch(&row(0), &[0, 0]);
        assert!(regions.is_touched(&row(0)) && regions.is_touched(&row(u32::MAX)));
        // Fields of few bits, and such as fill a word.
        for piece in [Piece { word: 0, shift: 0, bits: 1 }, Piece { word: 0, shift: 0, bits: 64 }] {
            let mut regions = Regions::new(piece);
            regions.touch(&[u64::MAX], &[u64::MAX]);
            assert!(regions.is_touched(&[u64::MAX]) && !regions.is_touched(&[0]));
        }
    }
}
