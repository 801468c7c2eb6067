// SPDX-License-Identifier: Apache-2.0
//! Key layout of a table: the position of each match field in the row of words that a lookup compares.
//!
//! Fields are packed first-fit by decreasing length, from a word's most significant bit down. Neighbours in a
//! packet (addresses, ports) are neighbours in the key and are read with one load. The layout depends on the
//! lengths of the fields only.
//!
//! If a field can be absent, word 0 has presence bits: headers (`wire::layers::header`) in the low half, and
//! one bit per slice in the high half. A rule that examines a field also examines its presence bit, so an
//! absent field (all zeros in the key) never matches.

use flow::{Field, FieldMatch, Limits, Match};

/// Bits of a field in a word of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// Field that the bits belong to.
    pub field: Field,
    /// Index of the part's first bit in the field, from the most significant.
    pub from_bit: u16,
    /// Number of bits, 1 to 64.
    pub bits: u8,
    /// Index of the word in the key.
    pub word: u8,
    /// Position of the part's last bit in the word, from the least significant.
    pub shift: u8,
}

/// Layout of a table's keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyPlan {
    fields: Vec<Field>,
    parts: Vec<KeyPart>,
    words: usize,
    needs: u32,
    slices: Vec<Field>,
}

/// Reason why fields do not fit into one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPlanError {
    /// More slices than [`Limits::SLICES_PER_TABLE`].
    TooManySlices,
}

impl std::fmt::Display for KeyPlanError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooManySlices => write!(
                f,
                "the entries of this table examine more than {} different slices; spread them over several tables",
                Limits::SLICES_PER_TABLE
            ),
        }
    }
}

impl std::error::Error for KeyPlanError {}

impl KeyPlan {
    /// Lays out the given fields, in any order and without repeats.
    ///
    /// # Errors
    /// Returns an error if there are more slices than [`Limits::SLICES_PER_TABLE`].
    pub fn new(fields: &[Field]) -> Result<Self, KeyPlanError> {
        let mut fields = fields.to_vec();
        fields.sort_unstable();
        let needs = fields.iter().fold(0, |needs, f| needs | f.location().needs);
        let slices: Vec<Field> = fields.iter().copied().filter(|f| matches!(f, Field::Slice(_))).collect();
        if slices.len() > Limits::SLICES_PER_TABLE {
            return Err(KeyPlanError::TooManySlices);
        }
        let mut pieces: Vec<(Field, u16, u8)> = Vec::new();
        for &field in &fields {
            let length = field.location().length_bits;
            let mut from = 0;
            while from < length {
                let bits = (length - from).min(64);
                pieces.push((field, from, bits as u8));
                from += bits;
            }
        }
        // The sort is stable: pieces of equal length keep the order of their fields.
        pieces.sort_by_key(|&(_, _, bits)| std::cmp::Reverse(bits));
        let presence = usize::from(needs != 0 || !slices.is_empty());
        let mut used: Vec<u8> = vec![64; presence];
        let mut parts = Vec::with_capacity(pieces.len());
        for (field, from_bit, bits) in pieces {
            let word = match used.iter().position(|&u| u + bits <= 64) {
                Some(word) => word,
                None => {
                    used.push(0);
                    used.len() - 1
                }
            };
            used[word] += bits;
            parts.push(KeyPart { field, from_bit, bits, word: word as u8, shift: 64 - used[word] });
        }
        debug_assert!(used.len() <= Limits::KEY_WORDS, "32 slices and all named fields fit");
        Ok(Self { fields, parts, words: used.len(), needs, slices })
    }

    /// Returns the length of a key in words.
    #[must_use]
    #[inline]
    pub fn words(&self) -> usize {
        self.words
    }

    /// Returns the parts of all fields.
    #[must_use]
    pub fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// Returns the fields, sorted.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the headers whose presence bits are in the low half of word 0.
    #[must_use]
    pub fn needs(&self) -> u32 {
        self.needs
    }

    /// Returns the slices, whose presence bits are bits 32, 33 and so on of word 0.
    #[must_use]
    pub fn slices(&self) -> &[Field] {
        &self.slices
    }

    /// Returns whether keys begin with a word of presence bits.
    #[must_use]
    pub fn has_presence(&self) -> bool {
        self.needs != 0 || !self.slices.is_empty()
    }

    /// Returns whether every field of `matching` is part of the layout.
    #[must_use]
    pub fn covers(&self, matching: &Match) -> bool {
        matching.fields().all(|c| self.fields.binary_search(&c.field).is_ok())
    }

    /// Appends the row of `matching` to `values` and `masks`. The layout must cover its fields.
    pub fn encode(&self, matching: &Match, values: &mut Vec<u64>, masks: &mut Vec<u64>) {
        self.encode_fields(matching.fields(), values, masks);
    }

    /// Appends the row of the given fields, each at most once, to `values` and `masks`. The layout must cover
    /// the fields.
    pub fn encode_fields(
        &self,
        fields: impl IntoIterator<Item = FieldMatch>,
        values: &mut Vec<u64>,
        masks: &mut Vec<u64>,
    ) {
        let (values_from, masks_from) = (values.len(), masks.len());
        values.resize(values_from + self.words, 0);
        masks.resize(masks_from + self.words, 0);
        let (values, masks) = (&mut values[values_from..], &mut masks[masks_from..]);
        for c in fields {
            if self.has_presence() {
                let bits = self.presence_bits(&c);
                values[0] |= bits;
                masks[0] |= bits;
            }
            let length = c.field.location().length_bits;
            for part in self.parts.iter().filter(|p| p.field == c.field) {
                let down = length - part.from_bit - u16::from(part.bits);
                let keep = u64::MAX >> (64 - part.bits);
                let word = usize::from(part.word);
                values[word] |= ((c.value >> down) as u64 & keep) << part.shift;
                masks[word] |= ((c.mask >> down) as u64 & keep) << part.shift;
            }
        }
    }

    fn presence_bits(&self, c: &FieldMatch) -> u64 {
        let headers = u64::from(c.field.location().needs);
        match self.slices.iter().position(|s| *s == c.field) {
            Some(at) => headers | 1 << (32 + at),
            None => headers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{Slice, SliceBase};

    #[test]
    fn same_lengths_give_the_same_layout() {
        let dst = KeyPlan::new(&[Field::VlanVid, Field::EthDst]).unwrap();
        let src = KeyPlan::new(&[Field::EthSrc, Field::VlanVid]).unwrap();
        assert_eq!(dst.words(), 1);
        for (a, b) in dst.parts().iter().zip(src.parts()) {
            assert_eq!((a.word, a.shift, a.bits), (b.word, b.shift, b.bits));
        }
    }

    #[test]
    fn a_rule_examines_the_presence_of_its_fields() {
        let slice = Field::Slice(Slice::new(SliceBase::Packet, 4, 12).unwrap());
        let plan = KeyPlan::new(&[Field::Ipv6Dst, slice, Field::EthType, Field::IpProto]).unwrap();
        assert_eq!(plan.words(), 4);
        let m = Match::new([
            FieldMatch::exact(Field::EthType, 0x86dd),
            FieldMatch { field: Field::Ipv6Dst, value: 0x2001 << 112, mask: 0xffff << 112 },
            FieldMatch::exact(slice, 0xabc),
        ])
        .unwrap();
        let (mut values, mut masks) = (Vec::new(), Vec::new());
        plan.encode(&m, &mut values, &mut masks);
        let presence = u64::from(wire_ipv6()) | 1 << 32;
        assert_eq!((values[0], masks[0]), (presence, presence));
        assert_eq!((values[1], masks[1]), (0x2001 << 48, 0xffff << 48));
        assert_eq!((values[2], masks[2]), (0, 0));
        assert_eq!(masks[3].count_ones(), 28);
    }

    fn wire_ipv6() -> u32 {
        Field::Ipv6Dst.location().needs
    }

    #[test]
    fn limits_hold() {
        let many: Vec<Field> =
            (0..33).map(|i| Field::Slice(Slice::new(SliceBase::Packet, i * 8, 8).unwrap())).collect();
        assert_eq!(KeyPlan::new(&many), Err(KeyPlanError::TooManySlices));
        // The maximum number of slices of the greatest length fits into a key with all named fields.
        let wide: Vec<Field> =
            (0..32).map(|i| Field::Slice(Slice::new(SliceBase::Packet, i * 128, 128).unwrap())).collect();
        let all: Vec<Field> = wide.iter().chain(Field::NAMED).copied().collect();
        assert!(KeyPlan::new(&all).is_ok());
        assert!(KeyPlan::new(Field::NAMED).unwrap().words() <= 23);
    }
}
