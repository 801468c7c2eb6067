// SPDX-License-Identifier: Apache-2.0
//! TTL actions for IPv4, IPv6 (hop limit) and MPLS.

use crate::checksums::{self, ByteChange};
use crate::packet_data::PacketData;
use flow::DropReason;
use wire::Depth;
use wire::layers::header;

/// Decrements the IP TTL. A packet with a TTL of 0 or 1 is dropped as `TtlExpired`.
pub(crate) fn dec_nw(packet: &mut PacketData) -> Result<(), DropReason> {
    let at = nw_place(packet)?;
    let ttl = packet.frame.bytes()[at];
    if ttl <= 1 {
        return Err(DropReason::TtlExpired);
    }
    write(packet, at, ttl - 1);
    Ok(())
}

/// Writes the IP TTL.
pub(crate) fn set_nw(packet: &mut PacketData, ttl: u8) -> Result<(), DropReason> {
    let at = nw_place(packet)?;
    write(packet, at, ttl);
    Ok(())
}

/// Decrements the TTL of the outermost MPLS shim. A packet with a TTL of 0 or 1 is dropped as `TtlExpired`.
pub(crate) fn dec_mpls(packet: &mut PacketData) -> Result<(), DropReason> {
    let at = mpls_place(packet)?;
    let ttl = packet.frame.bytes()[at];
    if ttl <= 1 {
        return Err(DropReason::TtlExpired);
    }
    packet.frame.bytes_mut()[at] = ttl - 1;
    Ok(())
}

/// Writes the TTL of the outermost MPLS shim.
pub(crate) fn set_mpls(packet: &mut PacketData, ttl: u8) -> Result<(), DropReason> {
    let at = mpls_place(packet)?;
    packet.frame.bytes_mut()[at] = ttl;
    Ok(())
}

/// Copies the TTL of the next-to-outermost header to the outermost. Does nothing without two headers.
pub(crate) fn copy_out(packet: &mut PacketData) {
    if let Some((outer, inner, _)) = two_places(packet) {
        let bytes = packet.frame.bytes_mut();
        bytes[outer] = bytes[inner];
    }
}

/// Copies the TTL of the outermost header to the next. Does nothing without two headers.
pub(crate) fn copy_in(packet: &mut PacketData) {
    if let Some((outer, inner, ipv4)) = two_places(packet) {
        let ttl = packet.frame.bytes()[outer];
        let old = [packet.frame.bytes()[inner]];
        packet.frame.bytes_mut()[inner] = ttl;
        if let Some(l3) = ipv4 {
            // The parser stops at MPLS. These layers describe the inner IPv4 header, so that the write
            // updates its checksum.
            let layers = wire::Layers { present: header::IPV4, l3: l3 as u16, ..wire::Layers::default() };
            checksums::keep_right(
                &mut packet.frame,
                &layers,
                ByteChange { at: inner, old: &old, written: &[0xff] },
            );
        }
    }
}

fn nw_place(packet: &mut PacketData) -> Result<usize, DropReason> {
    packet.locate(Depth::L3);
    let l3 = usize::from(packet.layers.l3);
    match packet.layers.present {
        p if p & header::IPV4 != 0 => Ok(l3 + 8),
        p if p & header::IPV6 != 0 => Ok(l3 + 7),
        _ => Err(DropReason::MissingHeader),
    }
}

fn mpls_place(packet: &mut PacketData) -> Result<usize, DropReason> {
    if packet.has(header::MPLS) {
        Ok(usize::from(packet.layers.l3) + 3)
    } else {
        Err(DropReason::MissingMpls)
    }
}

/// Returns the offsets of the two outermost TTLs. If the second one is in an IPv4 header, also returns the
/// offset of this header.
fn two_places(packet: &mut PacketData) -> Option<(usize, usize, Option<usize>)> {
    if !packet.has(header::MPLS) {
        return None;
    }
    let l3 = usize::from(packet.layers.l3);
    let bytes = packet.frame.bytes();
    let inner = l3 + 4;
    if bytes[l3 + 2] & 1 == 0 {
        return (bytes.len() >= inner + 4).then_some((l3 + 3, inner + 3, None));
    }
    match bytes.get(inner)? >> 4 {
        4 if is_ipv4(&bytes[inner..]) => Some((l3 + 3, inner + 8, Some(inner))),
        6 if bytes.len() >= inner + 40 => Some((l3 + 3, inner + 7, None)),
        _ => None,
    }
}

/// Returns whether a complete, consistent IPv4 header begins at `bytes[0]` (see
/// `wire::layers::header::IPV4`).
fn is_ipv4(bytes: &[u8]) -> bool {
    let header_bytes = usize::from(bytes[0] & 0x0f) * 4;
    bytes.len() >= header_bytes
        && header_bytes >= 20
        && usize::from(u16::from_be_bytes([bytes[2], bytes[3]])) >= header_bytes
}

fn write(packet: &mut PacketData, at: usize, ttl: u8) {
    let old = [packet.frame.bytes()[at]];
    packet.frame.bytes_mut()[at] = ttl;
    let layers = packet.layers;
    checksums::keep_right(&mut packet.frame, &layers, ByteChange { at, old: &old, written: &[0xff] });
}
