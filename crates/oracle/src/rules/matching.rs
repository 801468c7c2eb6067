// SPDX-License-Identifier: Apache-2.0
//! Random matches that match a given packet.

use super::{DISTANT_BITS, Kind, Reach, Template};
use fastrand::Rng;
use flow::{Field, FieldMatch, Match, PortNo, Slice, SliceBase};
use wire::layers::header;

/// Number of leading bits of a packet that slices may contain if they are not distant.
const NEAR_BITS: u32 = 304;

/// Returns a slice of bytes before the tag.
pub(super) fn slice(rng: &mut Rng, reach: Reach) -> Field {
    // The base, and the range of bits from there.
    let (base, first, end) = match (rng.u8(0..6), reach) {
        (0, Reach::Distant) => (SliceBase::Packet, 0, NEAR_BITS),
        (_, Reach::Distant) => (SliceBase::Packet, NEAR_BITS, DISTANT_BITS),
        (0, _) => (SliceBase::Metadata, 0, 256),
        (1, _) => (SliceBase::L3, 0, reach.l3_bits()),
        (2, _) => (SliceBase::L4, 0, 64),
        _ => (SliceBase::Packet, 0, NEAR_BITS),
    };
    let bits = end - first;
    let length = [1, 3, 8, 8, 12, 16, 16, 32, 48, 64, 100, 128][rng.usize(0..12)].min(bits);
    let offset = if rng.bool() { rng.u32(0..=(bits - length) / 8) * 8 } else { rng.u32(0..=bits - length) };
    let offset = first + offset;
    // The slice is always within the limits, so the alternative is never used.
    Slice::new(base, offset, length).map_or(Field::EthType, Field::Slice)
}

/// Returns a match on these fields and their prerequisites that matches the packet. Fields that the packet
/// lacks are omitted.
pub(super) fn matching(
    rng: &mut Rng,
    fields: &[Field],
    template: &Template,
    in_port: PortNo,
    kind: &Kind,
) -> Match {
    let mut conditions: Vec<FieldMatch> = Vec::new();
    let mut put = |field: Field, mask: u128| {
        if let Some(value) = template.value(field, in_port)
            && conditions.iter().all(|c| c.field != field)
        {
            conditions.push(FieldMatch { field, value: value & mask, mask });
        }
    };
    for &field in fields {
        for needed in prerequisites(field) {
            put(*needed, needed.full_mask());
        }
        let full = field.full_mask();
        let length = u32::from(field.location().length_bits);
        let prefix = |length: u32| full & !full.checked_shr(length).unwrap_or(0);
        let mask = match rng.u8(0..6) {
            _ if !field.maskable() => full,
            _ if matches!(kind, Kind::Exact(_)) => full,
            0 if matches!(kind, Kind::AccessList) => rng.u128(..) & full,
            _ if matches!(kind, Kind::Routes(_) | Kind::AccessList) => prefix(prefix_length(rng, length)),
            0 | 1 => prefix(rng.u32(1..=length)),
            2 => rng.u128(..) & full,
            _ => full,
        };
        put(field, mask);
    }
    // If the conditions are invalid, the result matches every packet, which is also correct.
    Match::new(conditions).unwrap_or_default()
}

/// Returns a prefix length: the full length, at most 3 bits less, or any length.
fn prefix_length(rng: &mut Rng, bits: u32) -> u32 {
    match rng.u8(0..3) {
        0 => bits,
        1 => bits.saturating_sub(rng.u32(0..4)),
        _ => rng.u32(0..=bits),
    }
}

fn prerequisites(field: Field) -> &'static [Field] {
    let needs = field.location().needs;
    let l4 = header::TCP | header::UDP | header::SCTP | header::ICMPV4 | header::ICMPV6;
    match field {
        Field::VlanPcp => &[Field::VlanVid],
        Field::NdTarget | Field::NdSll | Field::NdTll => {
            &[Field::EthType, Field::IpProto, Field::Icmpv6Type, Field::Icmpv6Code]
        }
        _ if needs & l4 != 0 => &[Field::EthType, Field::IpProto],
        _ if needs != 0 => &[Field::EthType],
        _ => &[],
    }
}
