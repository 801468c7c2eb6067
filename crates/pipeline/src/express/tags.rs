// SPDX-License-Identifier: Apache-2.0
//! Tags of a set of records: two bytes of each key's hash.

use engines::simd::equal_pairs;

/// Number of records in a set.
pub(super) const WAYS: usize = 16;

/// The tags of a set. 0 marks a free place.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub(super) struct Tags([u16; WAYS]);

impl Tags {
    /// Returns which tags equal `tag`, with one bit for each tag. Bit 0 is for the first tag.
    #[inline(always)]
    pub fn equal(&self, tag: u16) -> u32 {
        equal_pairs(&self.0, tag)
    }

    /// Sets the tag of a record.
    #[inline]
    pub fn set(&mut self, way: usize, tag: u16) {
        self.0[way % WAYS] = tag;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_compared() {
        let mut tags = Tags::default();
        assert_eq!(tags.equal(0), 0xffff);
        for way in 0..WAYS {
            tags.set(way, 0x0101 << (way / 2));
            assert_eq!(tags.equal(0x0101 << (way / 2)) >> way & 1, 1, "{way}");
        }
        tags.set(15, 0xff00);
        assert_eq!((tags.equal(0xff00), tags.equal(0x00ff), tags.equal(0)), (1 << 15, 0, 0));
    }
}
