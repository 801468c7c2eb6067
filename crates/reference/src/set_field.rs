// SPDX-License-Identifier: Apache-2.0
//! The set-field action.

use crate::fields::in_frame;
use crate::packet::ReferencePacket;
use crate::walk::{LLC, Network};
use flow::action::SetField;
use flow::{DropReason, Field, Slice, SliceBase};

/// Writes a field: `(field & !mask) | value`.
pub(crate) fn set_field(packet: &mut ReferencePacket, set: &SetField) -> Result<(), DropReason> {
    let (first, length) = match set.field {
        Field::TunnelId => {
            packet.tunnel_id = merged(packet.tunnel_id, set.value, set.mask);
            return Ok(());
        }
        Field::Slice(slice) if slice.base == SliceBase::Metadata => return set_register(packet, slice, set),
        // The model refuses actions that write these fields.
        Field::InPort | Field::InPhyPort | Field::Metadata | Field::Ipv6Exthdr => {
            return Err(DropReason::UnsupportedAction);
        }
        Field::EthType => eth_type(packet)?,
        Field::IpProto => ip_proto(packet)?,
        // The frame contains the 12 bits of the VID, but not the present bit, which is the first bit of value
        // and mask.
        Field::VlanVid if packet.headers.vlan_tci.is_some() => (14 * 8 + 4, 12),
        field => in_frame(packet, field).ok_or(missing(field))?,
    };
    packet.write(first, length, set.value, set.mask);
    Ok(())
}

fn missing(field: Field) -> DropReason {
    match field {
        Field::VlanVid | Field::VlanPcp => DropReason::MissingVlan,
        Field::MplsLabel | Field::MplsTc | Field::MplsBos => DropReason::MissingMpls,
        _ => DropReason::MissingHeader,
    }
}

fn merged(old: u64, value: u128, mask: u128) -> u64 {
    (old & !(mask as u64)) | (value & mask) as u64
}

/// Returns the location of the EtherType. An LLC frame has no EtherType.
fn eth_type(packet: &ReferencePacket) -> Result<(usize, usize), DropReason> {
    let found = &packet.headers;
    if found.eth_type == LLC {
        return Err(DropReason::MissingHeader);
    }
    Ok((found.type_at * 8, 16))
}

/// Returns the location of the protocol number in the IP header. In IPv6, there must be no extension header
/// before the upper layer.
fn ip_proto(packet: &ReferencePacket) -> Result<(usize, usize), DropReason> {
    let found = &packet.headers;
    match (found.network, found.ip) {
        (Network::Ipv4, _) => Ok(((found.l3 + 9) * 8, 8)),
        (Network::Ipv6, Some(ip)) if ip.l4 == found.l3 + 40 => Ok(((found.l3 + 6) * 8, 8)),
        _ => Err(DropReason::MissingHeader),
    }
}

/// Writes bits of the metadata register and the tunnel ID, which are adjacent in the extended header.
fn set_register(packet: &mut ReferencePacket, slice: Slice, set: &SetField) -> Result<(), DropReason> {
    let first = usize::from(slice.offset_bits);
    let length = usize::from(slice.length_bits);
    if first < 64 || first + length > 192 {
        return Err(DropReason::UnsupportedAction);
    }
    let mut registers = [0; 16];
    registers[..8].copy_from_slice(&packet.metadata.to_be_bytes());
    registers[8..].copy_from_slice(&packet.tunnel_id.to_be_bytes());
    crate::bits::write(&mut registers, first - 64, length, set.value, set.mask);
    let both = u128::from_be_bytes(registers);
    packet.metadata = (both >> 64) as u64;
    packet.tunnel_id = both as u64;
    Ok(())
}
