// SPDX-License-Identifier: Apache-2.0
//! Conditions under which a packet has a certain byte of the key.

use flow::{FieldBase, FieldMatch};
use wire::ethernet::ETHERNET_BYTES;
use wire::layers::header;

/// Facts about a packet to which conditions refer. The low bits are its headers ([`header`]). Bits from
/// [`FIRST_SLICE`] on are its slices.
pub(crate) type Facts = u64;

/// Bit of the first slice in [`Facts`].
pub(crate) const FIRST_SLICE: u32 = 16;

/// Maximum number of slice ends that a plan can distinguish.
pub(crate) const SLICES_MAX: usize = (Facts::BITS - FIRST_SLICE) as usize;

/// End of a slice. Slices of one base that end at the same bit are present in the same packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SliceEnd {
    pub base: FieldBase,
    pub end_bits: u32,
}

impl SliceEnd {
    /// Returns the end of a slice, or `None` for a named field or a slice that every packet has.
    pub fn of(condition: &FieldMatch) -> Option<Self> {
        let flow::Field::Slice(slice) = condition.field else { return None };
        let base = condition.field.location().base;
        let end_bits = u32::from(slice.offset_bits) + u32::from(slice.length_bits);
        let is_always_there = match base {
            FieldBase::Ext => true,
            FieldBase::Frame => end_bits <= 8 * ETHERNET_BYTES as u32,
            _ => false,
        };
        (!is_always_there).then_some(Self { base, end_bits })
    }
}

/// Condition under which a packet has a certain byte of the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Condition {
    /// Facts that must all be true.
    pub needs: Facts,
    /// Facts that must all be false: headers whose presence implies the byte's value.
    pub unless: Facts,
}

/// Sets of headers of which a packet has at most one.
const ALTERNATIVES: [u32; 4] = [
    header::MPLS | header::PBB | header::ARP | header::IP,
    header::IPV4 | header::IPV6,
    header::TCP | header::UDP | header::SCTP | header::ICMPV4 | header::ICMPV6,
    header::ND_SLL | header::ND_TLL,
];

/// Headers that imply the EtherType. MPLS has two EtherTypes.
pub(crate) const TYPE_GIVERS: u32 = header::IPV4 | header::IPV6 | header::ARP | header::PBB;

/// Headers that imply the upper-layer protocol.
pub(crate) const PROTO_GIVERS: u32 =
    header::TCP | header::UDP | header::SCTP | header::ICMPV4 | header::ICMPV6;

impl Condition {
    /// Returns whether a packet for which these facts are true meets the condition.
    #[inline]
    pub fn holds(self, facts: Facts) -> bool {
        facts & (self.needs | self.unless) == self.needs
    }

    /// Returns whether each packet that meets the other condition meets this one. Both must be conditions of
    /// bytes with this base. The slices of a base have their facts in the order of their ends.
    pub fn is_implied_by(self, other: Self, base: FieldBase) -> bool {
        let end = |condition: Self| {
            let is_slice = condition.unless == 0 && condition.needs >> FIRST_SLICE != 0;
            is_slice.then_some(condition.needs)
        };
        match (end(self), end(other)) {
            (Some(end), Some(later)) => end <= later,
            // The bytes of the frame without a condition are those that every packet has.
            (None, Some(_)) => base == FieldBase::Frame && self == Self::default(),
            _ => self == other,
        }
    }

    /// Returns whether no packet meets both conditions.
    pub fn excludes(self, other: Self) -> bool {
        let (own, others) = (implied(self.needs), implied(other.needs));
        let differ = |set: u32| own & set != 0 && others & set != 0 && own & others & set == 0;
        ALTERNATIVES.into_iter().any(differ)
            || self.unless & Facts::from(others) != 0
            || other.unless & Facts::from(own) != 0
            || is_any_ip_excluded(self, others)
            || is_any_ip_excluded(other, own)
    }
}

/// Returns whether the condition excludes all IP packets, and `others` occur only in IP packets.
fn is_any_ip_excluded(condition: Condition, others: u32) -> bool {
    let both = Facts::from(header::IPV4 | header::IPV6);
    condition.unless & both == both && others & header::IP != 0
}

/// Returns the headers in `needs`, and those that they imply. For example, ICMPv6 implies IPv6.
pub(crate) fn implied(needs: Facts) -> u32 {
    let mut headers = needs as u32 & u32::from(u16::MAX >> 1);
    // Inner headers come first, because they may imply headers that imply others.
    let steps = [
        (header::ND_SLL | header::ND_TLL, header::ND),
        (header::ND, header::ICMPV6),
        (header::ICMPV6, header::IPV6),
        (header::ICMPV4, header::IPV4),
        (header::IPV4 | header::IPV6 | header::TCP | header::UDP | header::SCTP, header::IP),
    ];
    for (inner, outer) in steps {
        if headers & inner != 0 {
            headers |= outer;
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(headers: u32) -> Condition {
        Condition { needs: headers.into(), unless: 0 }
    }

    #[test]
    fn alternatives_exclude_each_other() {
        assert!(on(header::IPV4).excludes(on(header::IPV6)));
        assert!(on(header::ARP).excludes(on(header::TCP)), "TCP implies IP");
        assert!(
            on(header::ICMPV4).excludes(on(header::IPV6)) && on(header::ND_SLL).excludes(on(header::UDP))
        );
        assert!(!on(header::IPV4).excludes(on(header::TCP)) && !on(header::VLAN).excludes(on(header::IPV4)));
        assert!(!on(header::ND).excludes(on(header::ICMPV6)) && !on(0).excludes(on(header::IPV4)));
    }

    #[test]
    fn a_longer_slice_implies_the_shorter_ones_of_its_base() {
        let slice = |number: u32| Condition { needs: 1 << (FIRST_SLICE + number), unless: 0 };
        let (frame, always) = (FieldBase::Frame, Condition::default());
        assert!(slice(0).is_implied_by(slice(1), frame) && slice(1).is_implied_by(slice(1), frame));
        assert!(!slice(1).is_implied_by(slice(0), frame));
        assert!(always.is_implied_by(slice(0), frame) && !slice(0).is_implied_by(always, frame));
        // A header is a fact of its own.
        assert!(!always.is_implied_by(slice(0), FieldBase::L3));
        assert!(!on(header::IPV4).is_implied_by(slice(0), FieldBase::L3));
        assert!(!slice(0).is_implied_by(on(header::IPV4), FieldBase::L3));
        assert!(on(header::IPV4).is_implied_by(on(header::IPV4), FieldBase::L3));
    }

    #[test]
    fn a_byte_that_a_header_implies_excludes_it() {
        let eth_type = Condition { needs: 0, unless: (header::IPV4 | header::IPV6).into() };
        assert!(eth_type.excludes(on(header::IPV4)) && on(header::ND).excludes(eth_type));
        assert!(eth_type.excludes(on(header::UDP)), "UDP is in one of both");
        assert!(!eth_type.excludes(on(header::ARP)));
        let only_one = Condition { needs: 0, unless: header::IPV4.into() };
        assert!(!only_one.excludes(on(header::UDP)), "UDP may be in IPv6");
        assert!(eth_type.holds(header::ARP.into()) && !eth_type.holds(header::IPV6.into()));
    }
}
