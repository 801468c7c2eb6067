// SPDX-License-Identifier: Apache-2.0
//! Push and pop of VLAN, MPLS and PBB tags.

use crate::packet_data::PacketData;
use flow::DropReason;
use wire::Depth;
use wire::layers::{ETH_TYPE_LLC, header};

/// Offset of the first EtherType or TPID in the frame.
const TYPE_AT: usize = 12;

/// Length of a VLAN tag and of an MPLS shim, in bytes.
const TAG_BYTES: usize = 4;

/// Length of the two MAC addresses, in bytes.
const MACS_BYTES: usize = 12;

/// Length of a PBB header, in bytes: EtherType, I-tag and the customer's MAC addresses.
const PBB_BYTES: usize = 2 + TAG_BYTES + MACS_BYTES;

/// Minimum length of an Ethernet frame without its check sequence, in bytes.
pub const FRAME_BYTES_MIN: usize = 60;

/// Pushes a VLAN tag after the MAC addresses. The TCI is copied from the previous outermost tag, or is 0.
///
/// # Errors
/// Returns `NoHeadroom` if the frame has too little headroom.
pub(crate) fn push_vlan(packet: &mut PacketData, tpid: u16) -> Result<(), DropReason> {
    packet.locate(Depth::L2);
    let tci = packet.layers.vlan_tci;
    if !packet.frame.insert(TYPE_AT, TAG_BYTES) {
        return Err(DropReason::NoHeadroom);
    }
    let bytes = packet.frame.bytes_mut();
    bytes[TYPE_AT..TYPE_AT + 2].copy_from_slice(&tpid.to_be_bytes());
    bytes[TYPE_AT + 2..TYPE_AT + 4].copy_from_slice(&tci.to_be_bytes());
    packet.forget_layers();
    Ok(())
}

/// Pops the outermost VLAN tag.
///
/// # Errors
/// Returns `MissingVlan` for a packet without a tag, and `NoHeadroom` if the shorter frame cannot be padded.
pub(crate) fn pop_vlan(packet: &mut PacketData) -> Result<(), DropReason> {
    if !packet.has(header::VLAN) || !packet.frame.remove(TYPE_AT, TAG_BYTES) {
        return Err(DropReason::MissingVlan);
    }
    pad(packet)
}

/// Pushes an MPLS shim after the VLAN tags. Copies label, traffic class and TTL from the outermost shim or,
/// without one, the TTL from the IP header.
///
/// # Errors
/// Returns `MissingHeader` for an LLC frame or a frame without an L3 header. Returns `NoHeadroom` if the
/// frame has too little headroom.
pub(crate) fn push_mpls(packet: &mut PacketData, eth_type: u16) -> Result<(), DropReason> {
    packet.locate(Depth::L3);
    let (layers, l3) = (packet.layers, usize::from(packet.layers.l3));
    if layers.eth_type == ETH_TYPE_LLC || layers.l3 == 0 {
        return Err(DropReason::MissingHeader);
    }
    let bytes = packet.frame.bytes();
    let shim = if layers.present & header::MPLS != 0 {
        // Clears the bottom-of-stack bit.
        [bytes[l3], bytes[l3 + 1], bytes[l3 + 2] & 0xfe, bytes[l3 + 3]]
    } else if layers.present & header::IPV4 != 0 {
        [0, 0, 1, bytes[l3 + 8]]
    } else if layers.present & header::IPV6 != 0 {
        [0, 0, 1, bytes[l3 + 7]]
    } else {
        [0, 0, 1, 0]
    };
    if !packet.frame.insert(l3, TAG_BYTES) {
        return Err(DropReason::NoHeadroom);
    }
    packet.frame.bytes_mut()[l3..l3 + TAG_BYTES].copy_from_slice(&shim);
    set_type(packet, usize::from(layers.type_at), eth_type);
    Ok(())
}

/// Pops the outermost MPLS shim and writes the EtherType of the payload.
///
/// # Errors
/// Returns `MissingMpls` for a packet without a shim, and `NoHeadroom` if the shorter frame cannot be padded.
pub(crate) fn pop_mpls(packet: &mut PacketData, eth_type: u16) -> Result<(), DropReason> {
    let there = packet.has(header::MPLS);
    let (l3, type_at) = (usize::from(packet.layers.l3), usize::from(packet.layers.type_at));
    if !there || !packet.frame.remove(l3, TAG_BYTES) {
        return Err(DropReason::MissingMpls);
    }
    set_type(packet, type_at, eth_type);
    pad(packet)
}

/// Pushes a PBB I-tag. The MAC addresses become the customer's addresses and are copied to the backbone's
/// addresses. The service instance is copied from the outermost I-tag, and the priority from a VLAN tag.
///
/// # Errors
/// Returns `NoHeadroom` if the frame has too little headroom.
pub(crate) fn push_pbb(packet: &mut PacketData, eth_type: u16) -> Result<(), DropReason> {
    packet.locate(Depth::L3);
    let (layers, l3) = (packet.layers, usize::from(packet.layers.l3));
    let bytes = packet.frame.bytes();
    let mut tag = [0; TAG_BYTES];
    if layers.present & header::PBB != 0 {
        tag[1..].copy_from_slice(&bytes[l3 + 1..l3 + TAG_BYTES]);
    }
    tag[0] = ((layers.vlan_tci >> 13) as u8) << 5;
    // The old frame is intact after the inserted bytes.
    if !packet.frame.insert(0, PBB_BYTES) {
        return Err(DropReason::NoHeadroom);
    }
    let bytes = packet.frame.bytes_mut();
    bytes.copy_within(PBB_BYTES..PBB_BYTES + MACS_BYTES, 0);
    bytes[TYPE_AT..TYPE_AT + 2].copy_from_slice(&eth_type.to_be_bytes());
    bytes[TYPE_AT + 2..PBB_BYTES].copy_from_slice(&tag);
    packet.forget_layers();
    Ok(())
}

/// Pops the PBB I-tag that follows the MAC addresses and leaves the customer's frame.
///
/// # Errors
/// Returns `MissingHeader` if the I-tag is missing, is not outermost, or is not followed by a complete frame.
/// Returns `NoHeadroom` if the shorter frame cannot be padded.
pub(crate) fn pop_pbb(packet: &mut PacketData) -> Result<(), DropReason> {
    let outermost = packet.has(header::PBB) && usize::from(packet.layers.type_at) == TYPE_AT;
    // The customer's frame must have at least its MAC addresses and an EtherType.
    if !outermost || packet.frame.len() < PBB_BYTES + MACS_BYTES + 2 || !packet.frame.remove(0, PBB_BYTES) {
        return Err(DropReason::MissingHeader);
    }
    pad(packet)
}

/// Pads the frame to the minimum length of Ethernet after a pop.
///
/// # Errors
/// Returns `NoHeadroom` if the frame cannot be padded.
pub(crate) fn pad(packet: &mut PacketData) -> Result<(), DropReason> {
    packet.forget_layers();
    if packet.frame.pad_into_headroom(FRAME_BYTES_MIN) { Ok(()) } else { Err(DropReason::NoHeadroom) }
}

fn set_type(packet: &mut PacketData, at: usize, eth_type: u16) {
    if let Some(place) = packet.frame.bytes_mut().get_mut(at..at + 2) {
        place.copy_from_slice(&eth_type.to_be_bytes());
    }
    packet.forget_layers();
}
