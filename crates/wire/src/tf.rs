// SPDX-License-Identifier: Apache-2.0
//! Tag-and-Forward tag in the paper's form and in the wide form, without its EtherType
//! (docs/wire-formats.md).

use crate::view::view;

/// EtherType of the paper's form.
pub const ETHERTYPE: u16 = 0xff1f;
/// Default EtherType of the wide form: IEEE 802 local experimental 2.
pub const ETHERTYPE_WIDE: u16 = 0x88b6;

/// Division of the tag's 48 bits into fields. The first field is QID with 3 bits, followed by UP and DOWN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// UP has 32 bits and DOWN has 13.
    Paper,
    /// UP has 29 bits and DOWN has 16.
    Wide,
}

impl Form {
    /// Returns the width of DOWN in bits.
    #[must_use]
    pub fn down_bits(self) -> u32 {
        match self {
            Self::Paper => 13,
            Self::Wide => 16,
        }
    }

    /// Returns the width of UP in bits.
    #[must_use]
    pub fn up_bits(self) -> u32 {
        45 - self.down_bits()
    }

    /// Packs a tag of 48 bits. Each value is truncated to the low bits of its field.
    #[must_use]
    pub fn pack(self, qid: u8, up: u32, down: u16) -> [u8; 6] {
        let low = |value: u64, bits: u32| value & ((1 << bits) - 1);
        let word = low(qid.into(), 3) << 45
            | low(up.into(), self.up_bits()) << self.down_bits()
            | low(down.into(), self.down_bits());
        let [_, _, bits @ ..] = word.to_be_bytes();
        bits
    }
}

view! {
    /// The tag and the EtherType after it.
    Tag, "Tag-and-Forward tag", 8, |_| true;
    /// QID, UP and DOWN in 48 bits, as [`Form::pack`] writes them.
    0: bits, set_bits, [u8; 6];
    /// EtherType of the data after the tag.
    6: ethertype, set_ethertype, u16;
}

impl<T: AsRef<[u8]>> Tag<T> {
    fn word(&self) -> u64 {
        self.bits().iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }

    /// Returns the queue ID, 3 bits in either form.
    pub fn qid(&self) -> u8 {
        (self.word() >> 45) as u8
    }

    /// Returns the upward gate.
    pub fn up(&self, form: Form) -> u32 {
        (self.word() >> form.down_bits() & ((1 << form.up_bits()) - 1)) as u32
    }

    /// Returns the downward gate.
    pub fn down(&self, form: Form) -> u16 {
        (self.word() & ((1 << form.down_bits()) - 1)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacketBuilder;
    use proptest::prelude::*;

    #[test]
    fn every_field_is_at_its_position() {
        let frame = PacketBuilder::ethernet([0xa; 6], [0xb; 6])
            .tf(Form::Paper, 5, 0xdead_beef, 30)
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2])
            .build();
        // QID 101, UP 11011110101011011011111011101111, DOWN 0000000011110.
        assert_eq!(frame[12..23], [0xff, 0x1f, 0xbb, 0xd5, 0xb7, 0xdd, 0xe0, 0x1e, 0x08, 0x00, 0x45]);
        let wide = PacketBuilder::ethernet([0xa; 6], [0xb; 6]).tf(Form::Wide, 7, 48, 0xabcd).build();
        // QID 111, UP 00000000000000000000000110000, DOWN 1010101111001101.
        assert_eq!(wide[12..], [0x88, 0xb6, 0xe0, 0, 0, 0x30, 0xab, 0xcd, 0, 0]);
    }

    #[test]
    fn truncated_tags_are_refused() {
        for len in 0..8 {
            assert!(Tag::new_checked(&[0xff; 8][..len]).is_err());
        }
        let full = Tag::new_checked([0xff; 8]).unwrap();
        assert_eq!((full.qid(), full.up(Form::Paper), full.down(Form::Paper)), (7, u32::MAX, 0x1fff));
        assert_eq!((full.up(Form::Wide), full.down(Form::Wide)), (0x1fff_ffff, 0xffff));
    }

    proptest! {
        #[test]
        fn packed_fields_are_read_back(qid in 0u8..8, up: u32, down: u16, wide: bool) {
            let form = if wide { Form::Wide } else { Form::Paper };
            let bits = form.pack(qid, up, down);
            let tag = Tag::new_checked([&bits[..], &[8, 0]].concat()).unwrap();
            let (up, down) = (u64::from(up) % (1 << form.up_bits()), u32::from(down) % (1 << form.down_bits()));
            prop_assert_eq!((tag.qid(), u64::from(tag.up(form)), u32::from(tag.down(form))), (qid, up, down));
        }
    }
}
