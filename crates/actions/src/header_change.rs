// SPDX-License-Identifier: Apache-2.0
//! What an entry changes in a packet before the next table. From this, caches of paths know whether the
//! arriving packet determines what a later table sees.

use flow::{Action, Field, Instructions, SliceBase};

/// What an entry changes in a packet, in ascending order. Each level includes those before it.
///
/// Up to the level [`Self::Fields`], a named field that a later table examines consists of bits of the packet
/// and of constants in the entry. For a slice, this depends on its position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeaderChange {
    /// No bit of the frame. The metadata may be written.
    #[default]
    Nothing,
    /// MAC addresses.
    Macs,
    /// The TTL or hop limit of an IP header, and its checksum.
    Ttl,
    /// Other fields, and the checksums of upper-layer headers.
    Fields,
    /// Changes after which headers must be parsed again: a header is pushed or popped, or a field is written
    /// that selects the next header. Meters also have this level.
    Headers,
}

impl HeaderChange {
    /// Returns what an entry changes before the next table. The action set does not count, because it runs
    /// after the last table.
    pub(crate) fn of(instructions: &Instructions) -> Self {
        // A band of a meter may write the DSCP, depending on the rate.
        let meter = if instructions.meter.is_some() { Self::Headers } else { Self::Nothing };
        instructions.apply.iter().map(Self::by_action).fold(meter, Self::max)
    }

    pub(crate) fn by_action(action: &Action) -> Self {
        match action {
            // Outputs and groups process a copy.
            Action::Output { .. } | Action::Group(_) | Action::SetQueue(_) => Self::Nothing,
            Action::SetNwTtl(_) | Action::DecNwTtl => Self::Ttl,
            Action::SetField(set) => Self::by_write(set.field),
            _ => Self::Headers,
        }
    }

    /// Returns what a write of this field changes.
    pub(crate) fn by_write(field: Field) -> Self {
        match field {
            Field::Metadata | Field::TunnelId => Self::Nothing,
            // Only the metadata register and the tunnel ID can be written as slices of the extended header.
            Field::Slice(slice) if slice.base == SliceBase::Metadata => Self::Nothing,
            Field::EthDst | Field::EthSrc => Self::Macs,
            Field::VlanVid
            | Field::VlanPcp
            | Field::MplsLabel
            | Field::MplsTc
            | Field::IpDscp
            | Field::IpEcn
            | Field::Ipv4Src
            | Field::Ipv4Dst
            | Field::Ipv6Src
            | Field::Ipv6Dst
            | Field::Ipv6Flabel
            | Field::TcpSrc
            | Field::TcpDst
            | Field::UdpSrc
            | Field::UdpDst
            | Field::SctpSrc
            | Field::SctpDst
            | Field::ArpOp
            | Field::ArpSpa
            | Field::ArpTpa
            | Field::ArpSha
            | Field::ArpTha
            | Field::NdTarget
            | Field::NdSll
            | Field::NdTll => Self::Fields,
            _ => Self::Headers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::action::SetField;
    use flow::{GroupId, MeterId, PortNo, QueueId, Slice};

    #[test]
    fn the_greatest_change_counts() {
        let write = |field: Field| Action::SetField(SetField { field, value: 1, mask: field.full_mask() });
        let of = |apply: &[Action]| {
            HeaderChange::of(&Instructions { apply: apply.to_vec(), ..Instructions::default() })
        };
        assert_eq!(of(&[]), HeaderChange::Nothing);
        let copies = [Action::output(PortNo(2)), Action::Group(GroupId(1)), Action::SetQueue(QueueId(3))];
        assert_eq!(of(&copies), HeaderChange::Nothing);
        assert_eq!(of(&[write(Field::Metadata), write(Field::EthDst)]), HeaderChange::Macs);
        let slice = |base| Field::Slice(Slice { base, offset_bits: 64, length_bits: 8 });
        assert_eq!(of(&[write(slice(SliceBase::Metadata))]), HeaderChange::Nothing);
        assert_eq!(of(&[write(slice(SliceBase::Packet))]), HeaderChange::Headers);
        assert_eq!(of(&[Action::DecNwTtl, write(Field::EthSrc)]), HeaderChange::Ttl);
        for field in [Field::UdpDst, Field::MplsLabel, Field::NdTll] {
            assert_eq!(of(&[write(field), Action::SetNwTtl(9)]), HeaderChange::Fields);
        }
        for action in [
            Action::PopVlan,
            Action::PushVlan(0x8100),
            Action::DecMplsTtl,
            Action::CopyTtlIn,
            write(Field::EthType),
            write(Field::MplsBos),
            write(Field::Icmpv6Type),
        ] {
            assert_eq!(of(&[action.clone(), write(Field::VlanVid)]), HeaderChange::Headers, "{action:?}");
        }
        let metered = Instructions { meter: Some(MeterId(1)), ..Instructions::default() };
        assert_eq!(HeaderChange::of(&metered), HeaderChange::Headers);
        let written = Instructions { write: vec![Action::PopVlan], ..Instructions::default() };
        assert_eq!(HeaderChange::of(&written), HeaderChange::Nothing);
    }
}
