// SPDX-License-Identifier: Apache-2.0
//! Matches: the conditions under which a packet hits an entry.

use crate::Field;
use crate::packed::{self, Fields};
use std::fmt;
use std::hash::Hasher;
use std::ops::Range;

/// Condition on one field: the bits of the packet's field under `mask` must equal `value`. A packet without
/// the field does not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldMatch {
    /// Field to compare.
    pub field: Field,
    /// Value, right-aligned. Bits outside `mask` are 0.
    pub value: u128,
    /// Mask, right-aligned. It is never 0.
    pub mask: u128,
}

impl FieldMatch {
    /// Returns the condition that the whole field equals `value`.
    #[must_use]
    pub fn exact(field: Field, value: u128) -> Self {
        Self { field, value, mask: field.full_mask() }
    }

    /// Returns whether the mask covers every bit of the field.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.mask == self.field.full_mask()
    }

    /// Returns the prefix length if the mask is a prefix. A full mask counts as a prefix.
    #[must_use]
    pub fn prefix_len(&self) -> Option<u32> {
        let length = u32::from(self.field.location().length_bits);
        let ones = self.mask.count_ones();
        let aligned = self.mask << (128 - length);
        (aligned.leading_ones() == ones).then_some(ones)
    }
}

/// Conditions in field order, at most one per field, or an index into a linear table. Two matches are
/// identical in OpenFlow's sense if and only if they are equal.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    /// Conditions or index, encoded by [`crate::packed`]. This saves memory, because a switch has millions of
    /// matches.
    packed: Box<[u8]>,
}

impl fmt::Debug for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<_> = self.fields().collect();
        f.debug_struct("Match").field("index", &self.index()).field("fields", &fields).finish()
    }
}

/// Reason why a match was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    /// The same field occurs twice (OFPBMC_DUP_FIELD).
    #[error("{0} is given twice; give each match field once")]
    Duplicate(String),
    /// Bits of the value are outside the field (OFPBMC_BAD_VALUE).
    #[error("{0}: value {1:#x} does not fit its {2} bits")]
    ValueTooLarge(String, u128, u16),
    /// Bits of the value are outside the mask (OFPBMC_BAD_WILDCARDS).
    #[error("{0}: value {1:#x} has bits outside its mask {2:#x}")]
    ValueOutsideMask(String, u128, u128),
    /// The field cannot be masked (OFPBMC_BAD_MASK).
    #[error("{0} cannot be masked (mask {1:#x}); match it whole, or a part of its bits by a slice")]
    MaskNotAllowed(String, u128),
    /// A prerequisite is missing (OFPBMC_BAD_PREREQ).
    #[error("{0} needs {1} in the same match")]
    Prerequisite(String, &'static str),
    /// An index is combined with match fields.
    #[error("index={0} selects an entry of a linear table; leave out all other match fields")]
    IndexWithFields(u32),
}

/// Position of a value in a match that may be replaced by any other value; see [`Match::free_values`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeValue(Range<usize>);

impl FreeValue {
    /// Returns the length of the value in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

/// Returns whether a match may have any value of this field, and no prerequisite depends on the value.
fn has_free_values(field: Field) -> bool {
    use Field as F;
    let is_prerequisite = matches!(field, F::VlanVid | F::EthType | F::IpProto | F::Icmpv6Type);
    field.location().length_bits.is_multiple_of(8) && !is_prerequisite
}

impl Match {
    /// Returns the match that every packet satisfies.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Returns the match for the entry at `index` of a linear table.
    #[must_use]
    pub fn at_index(index: u32) -> Self {
        Self { packed: packed::pack_index(index) }
    }

    /// Returns a match in normal form: fields are sorted, conditions with an empty mask are dropped, and
    /// prerequisites are present.
    ///
    /// # Errors
    /// Returns an error for any condition that OpenFlow 1.3 refuses; see [`MatchError`].
    pub fn new(conditions: impl IntoIterator<Item = FieldMatch>) -> Result<Self, MatchError> {
        let made = Self::unchecked_prerequisites(conditions)?;
        made.check_prerequisites()?;
        Ok(made)
    }

    /// Returns a match like [`Match::new`], without checking prerequisites.
    ///
    /// # Errors
    /// Returns every [`MatchError`] except `Prerequisite`.
    pub fn unchecked_prerequisites(
        conditions: impl IntoIterator<Item = FieldMatch>,
    ) -> Result<Self, MatchError> {
        // If the conditions come from a vector, its memory is usually used again.
        let mut fields: Vec<FieldMatch> = conditions.into_iter().collect();
        for c in &fields {
            let full = c.field.full_mask();
            if c.value & !full != 0 || c.mask & !full != 0 {
                return Err(MatchError::ValueTooLarge(
                    c.field.to_string(),
                    c.value | c.mask,
                    c.field.location().length_bits,
                ));
            }
            if c.value & !c.mask != 0 {
                return Err(MatchError::ValueOutsideMask(c.field.to_string(), c.value, c.mask));
            }
            if c.mask != full && c.mask != 0 && !c.field.maskable() {
                return Err(MatchError::MaskNotAllowed(c.field.to_string(), c.mask));
            }
        }
        fields.retain(|c| c.mask != 0);
        fields.sort_unstable_by_key(|c| c.field);
        if let Some(pair) = fields.windows(2).find(|p| p[0].field == p[1].field) {
            return Err(MatchError::Duplicate(pair[0].field.to_string()));
        }
        Ok(Self { packed: packed::pack(&fields) })
    }

    /// Returns the index into a linear table, if the match has one.
    #[must_use]
    pub fn index(&self) -> Option<u32> {
        packed::index(&self.packed)
    }

    /// Returns the conditions in field order.
    #[must_use]
    pub fn fields(&self) -> Fields<'_> {
        Fields::of(&self.packed)
    }

    /// Returns the condition on `field`, if there is one.
    #[must_use]
    pub fn get(&self, field: Field) -> Option<FieldMatch> {
        self.fields().find(|c| c.field == field)
    }

    /// Returns the exact conditions whose values may be replaced by any other values, in field order. See
    /// [`Match::with_values`].
    pub fn free_values(&self) -> impl Iterator<Item = (Field, FreeValue)> {
        packed::exact_values(&self.packed)
            .filter(|(field, _)| has_free_values(*field))
            .map(|(field, position)| (field, FreeValue(position)))
    }

    /// Returns a match with other values, each given as big-endian bytes, in some conditions of this match.
    /// This is faster than [`Match::new`]. Returns `None` if a value has a wrong length.
    pub fn with_values<'v>(
        &self,
        values: impl IntoIterator<Item = (&'v FreeValue, &'v [u8])>,
    ) -> Option<Self> {
        let mut made = self.clone();
        for (FreeValue(position), value) in values {
            let old = made.packed.get_mut(position.clone())?;
            if old.len() != value.len() {
                return None;
            }
            old.copy_from_slice(value);
        }
        Some(made)
    }

    /// Returns whether both matches examine the same bits of the same fields, with any values. All matches of
    /// linear tables have the same shape.
    #[must_use]
    pub fn has_shape_of(&self, other: &Self) -> bool {
        packed::have_same_shape(&self.packed, &other.packed)
    }

    /// Adds the shape of the match to a hash: its fields and masks, without the values.
    pub fn hash_shape(&self, state: &mut impl Hasher) {
        packed::hash_shape(&self.packed, state);
    }

    /// Returns whether a condition examines a slice.
    #[must_use]
    pub fn has_slices(&self) -> bool {
        packed::has_slice(&self.packed)
    }

    /// Returns whether every packet matches, because there are no conditions.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.packed.is_empty()
    }

    /// Returns whether the conditions of `other` imply those of `self`. Non-strict modify and delete commands
    /// select entries by this rule.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        if self.index().is_some() {
            return self == other;
        }
        self.fields().all(|mine| {
            other
                .get(mine.field)
                .is_some_and(|theirs| mine.mask & !theirs.mask == 0 && theirs.value & mine.mask == mine.value)
        })
    }

    /// Returns whether any packet can match both `self` and `other`.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        if self.index().is_some() || other.index().is_some() {
            return self == other;
        }
        self.fields().all(|mine| {
            other
                .get(mine.field)
                .is_none_or(|theirs| (mine.value ^ theirs.value) & mine.mask & theirs.mask == 0)
        })
    }

    fn is_one_of(&self, field: Field, values: &[u128]) -> bool {
        self.get(field).is_some_and(|c| c.is_exact() && values.contains(&c.value))
    }

    /// Checks that each field's prerequisites (OpenFlow 1.3, table of match fields) are in the match.
    ///
    /// # Errors
    /// Returns [`MatchError::Prerequisite`] for the first field without its prerequisite.
    pub fn check_prerequisites(&self) -> Result<(), MatchError> {
        use Field as F;
        for c in self.fields() {
            let (satisfied, needed) = match c.field {
                F::InPhyPort => (self.get(F::InPort).is_some(), "in_port"),
                F::VlanPcp => (
                    self.get(F::VlanVid).is_some_and(|v| v.value & u128::from(crate::ext::VID_PRESENT) != 0),
                    "a VLAN tag (vlan_vid with its present bit, or dl_vlan)",
                ),
                F::IpDscp | F::IpEcn | F::IpProto => {
                    (self.is_one_of(F::EthType, &[0x0800, 0x86dd]), "dl_type=0x0800 (ip) or 0x86dd (ipv6)")
                }
                F::Ipv4Src | F::Ipv4Dst => (self.is_one_of(F::EthType, &[0x0800]), "dl_type=0x0800 (ip)"),
                F::Ipv6Src | F::Ipv6Dst | F::Ipv6Flabel | F::Ipv6Exthdr => {
                    (self.is_one_of(F::EthType, &[0x86dd]), "dl_type=0x86dd (ipv6)")
                }
                F::TcpSrc | F::TcpDst => (self.is_one_of(F::IpProto, &[6]), "nw_proto=6 (tcp or tcp6)"),
                F::UdpSrc | F::UdpDst => (self.is_one_of(F::IpProto, &[17]), "nw_proto=17 (udp or udp6)"),
                F::SctpSrc | F::SctpDst => {
                    (self.is_one_of(F::IpProto, &[132]), "nw_proto=132 (sctp or sctp6)")
                }
                F::Icmpv4Type | F::Icmpv4Code => (
                    self.is_one_of(F::EthType, &[0x0800]) && self.is_one_of(F::IpProto, &[1]),
                    "dl_type=0x0800,nw_proto=1 (icmp)",
                ),
                F::Icmpv6Type | F::Icmpv6Code => (
                    self.is_one_of(F::EthType, &[0x86dd]) && self.is_one_of(F::IpProto, &[58]),
                    "dl_type=0x86dd,nw_proto=58 (icmp6)",
                ),
                F::NdTarget => {
                    (self.is_one_of(F::Icmpv6Type, &[135, 136]), "icmp_type=135 or 136 with icmp6")
                }
                F::NdSll => (self.is_one_of(F::Icmpv6Type, &[135]), "icmp_type=135 with icmp6"),
                F::NdTll => (self.is_one_of(F::Icmpv6Type, &[136]), "icmp_type=136 with icmp6"),
                F::ArpOp | F::ArpSpa | F::ArpTpa | F::ArpSha | F::ArpTha => {
                    (self.is_one_of(F::EthType, &[0x0806]), "dl_type=0x0806 (arp)")
                }
                F::MplsLabel | F::MplsTc | F::MplsBos => {
                    (self.is_one_of(F::EthType, &[0x8847, 0x8848]), "dl_type=0x8847 (mpls) or 0x8848 (mplsm)")
                }
                F::PbbIsid => (self.is_one_of(F::EthType, &[0x88e7]), "dl_type=0x88e7 (PBB)"),
                _ => (true, ""),
            };
            if !satisfied {
                return Err(MatchError::Prerequisite(c.field.to_string(), needed));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Field as F;
    use std::collections::BTreeSet;

    fn of(conditions: &[(Field, u128, u128)]) -> Match {
        Match::new(conditions.iter().map(|&(field, value, mask)| FieldMatch { field, value, mask })).unwrap()
    }

    #[test]
    fn normal_form_sorts_and_drops_empty_masks() {
        let a = of(&[(Field::EthSrc, 5, 0xff), (Field::InPort, 1, 0xffff_ffff), (Field::EthDst, 0, 0)]);
        assert_eq!(a.fields().map(|c| c.field).collect::<Vec<_>>(), [Field::InPort, Field::EthSrc]);
    }

    #[test]
    fn errors_name_the_field_and_the_correction() {
        let bad = |c: &[(Field, u128, u128)]| {
            Match::new(c.iter().map(|&(field, value, mask)| FieldMatch { field, value, mask })).unwrap_err()
        };
        assert!(matches!(bad(&[(Field::Ipv4Src, 1, 0xff)]), MatchError::Prerequisite(..)));
        assert!(matches!(bad(&[(Field::EthType, 8, 0xff)]), MatchError::MaskNotAllowed(..)));
        assert!(matches!(bad(&[(Field::EthSrc, 0x100, 0xff)]), MatchError::ValueOutsideMask(..)));
        assert!(matches!(bad(&[(Field::MplsBos, 2, 2)]), MatchError::ValueTooLarge(..)));
        let twice = bad(&[(Field::InPort, 1, 0xffff_ffff), (Field::InPort, 1, 0xffff_ffff)]);
        assert_eq!(twice.to_string(), "in_port is given twice; give each match field once");
        assert!(matches!(bad(&[(Field::VlanPcp, 1, 7)]), MatchError::Prerequisite(..)));
        assert!(matches!(
            bad(&[(Field::VlanPcp, 1, 7), (Field::VlanVid, 0, 0x1fff)]),
            MatchError::Prerequisite(..)
        ));
    }

    #[test]
    fn free_values_are_those_that_no_check_depends_on() {
        // All fields that may occur together with `eth_type` and `ip_proto`.
        let mut free = BTreeSet::new();
        for (eth_type, ip_proto) in [
            (0x800, 6),
            (0x800, 17),
            (0x800, 132),
            (0x800, 1),
            (0x86dd, 58),
            (0x806, 0),
            (0x8847, 0),
            (0x88e7, 0),
        ] {
            for icmp in [135, 136] {
                let fixed =
                    [(F::InPort, 7), (F::EthType, eth_type), (F::IpProto, ip_proto), (F::Icmpv6Type, icmp)];
                let others = F::NAMED.iter().filter(|field| fixed.iter().all(|(other, _)| other != *field));
                let mut conditions = Vec::new();
                for (field, value) in fixed.into_iter().chain(others.map(|field| (*field, 1))) {
                    conditions.push(FieldMatch::exact(field, value));
                    if Match::new(conditions.iter().copied()).is_err() {
                        conditions.pop();
                    }
                }
                let made = Match::new(conditions.iter().copied()).unwrap();
                for (field, position) in made.free_values() {
                    for value in [0, u128::MAX, 0x1234_5678_9abc_def0_1122_3344_5566_7788] {
                        let value = value & field.full_mask();
                        let bytes = &value.to_be_bytes()[16 - position.bytes()..];
                        let replaced =
                            |c: &FieldMatch| if c.field == field { FieldMatch { value, ..*c } } else { *c };
                        let right = Match::new(conditions.iter().map(replaced));
                        assert_eq!(
                            made.with_values([(&position, bytes)]).ok_or(()),
                            right.map_err(|_| ()),
                            "{field}"
                        );
                    }
                    assert_eq!(made.with_values([(&position, &[][..])]), None);
                    free.insert(field);
                }
            }
        }
        let is_free = |field: &&F| has_free_values(**field);
        assert_eq!(free, F::NAMED.iter().filter(is_free).copied().collect(), "each was tried");
        // Masked conditions, slices and indices have no free values.
        let slice = F::Slice(crate::Slice { base: crate::SliceBase::L3, offset_bits: 0, length_bits: 8 });
        assert_eq!(of(&[(F::EthDst, 0, 0xff), (slice, 3, 0xff)]).free_values().count(), 0);
        assert_eq!(Match::at_index(5).free_values().count(), 0);
    }

    #[test]
    fn covers_and_overlaps() {
        let wide = of(&[(Field::EthDst, 0x0100_0000_0000, 0x0100_0000_0000)]);
        let narrow =
            of(&[(Field::EthDst, 0x01ff_0000_0000, 0xffff_0000_0000), (Field::InPort, 3, 0xffff_ffff)]);
        let other = of(&[(Field::EthDst, 0x0200_0000_0000, 0xff00_0000_0000)]);
        assert!(wide.covers(&narrow) && !narrow.covers(&wide));
        assert!(Match::any().covers(&wide) && Match::any().overlaps(&other));
        assert!(wide.overlaps(&narrow) && narrow.overlaps(&wide));
        assert!(!narrow.overlaps(&other));
        assert!(
            Match::at_index(3).covers(&Match::at_index(3))
                && !Match::at_index(3).overlaps(&Match::at_index(4))
        );
    }

    #[test]
    fn prefix_lengths() {
        let at = |mask| FieldMatch { field: Field::Ipv4Dst, value: 0, mask }.prefix_len();
        assert_eq!((at(0xffff_ff00), at(0xffff_ffff), at(0xff00_ff00)), (Some(24), Some(32), None));
        assert_eq!(FieldMatch::exact(Field::Ipv6Dst, 9).prefix_len(), Some(128));
    }
}
