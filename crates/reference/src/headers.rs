// SPDX-License-Identifier: Apache-2.0
//! Actions that push and pop headers, and actions on TTLs.

mod tags;

pub(crate) use tags::{Tag, pop_key, pop_tf, push_key, push_polka, push_tf, tag};

use crate::packet::ReferencePacket;
use crate::walk::{LLC, Network, is_ipv4, is_ipv6};
use flow::DropReason;

type Done = Result<(), DropReason>;

/// Pushes a VLAN tag after the MAC addresses. Its control information is copied from the previously outermost
/// tag.
pub(crate) fn push_vlan(packet: &mut ReferencePacket, tpid: u16) -> Done {
    let [t0, t1] = tpid.to_be_bytes();
    let [c0, c1] = packet.headers.vlan_tci.unwrap_or(0).to_be_bytes();
    packet.insert(12, &[t0, t1, c0, c1], None)
}

pub(crate) fn pop_vlan(packet: &mut ReferencePacket) -> Done {
    packet.headers.vlan_tci.ok_or(DropReason::MissingVlan)?;
    packet.remove(12..16, None);
    Ok(())
}

pub(crate) fn push_mpls(packet: &mut ReferencePacket, eth_type: u16) -> Done {
    let found = packet.headers;
    if found.eth_type == LLC {
        return Err(DropReason::MissingHeader);
    }
    let l3 = found.l3;
    let shim = match found.network {
        // Label, TC and TTL are those of the existing shim. The new shim is not the bottom of the stack.
        Network::Mpls => {
            let old = &packet.bytes[l3..l3 + 4];
            [old[0], old[1], old[2] & 0xfe, old[3]]
        }
        Network::Ipv4 => [0, 0, 1, packet.bytes[l3 + 8]],
        Network::Ipv6 => [0, 0, 1, packet.bytes[l3 + 7]],
        _ => [0, 0, 1, 0],
    };
    packet.insert(l3, &shim, Some((found.type_at, eth_type)))
}

pub(crate) fn pop_mpls(packet: &mut ReferencePacket, eth_type: u16) -> Done {
    let l3 = shim_at(packet)?;
    packet.remove(l3..l3 + 4, Some((packet.headers.type_at, eth_type)));
    Ok(())
}

/// Pushes EtherType, I-tag (priority 3 bits, 5 zero bits, service instance 24) and a copy of the MAC
/// addresses. The addresses before the I-tag become backbone addresses.
pub(crate) fn push_pbb(packet: &mut ReferencePacket, eth_type: u16) -> Done {
    let found = &packet.headers;
    let priority = (found.vlan_tci.unwrap_or(0) >> 13) as u8;
    let mut inserted = eth_type.to_be_bytes().to_vec();
    inserted.push(priority << 5);
    match found.network {
        Network::Pbb => inserted.extend(&packet.bytes[found.l3 + 1..found.l3 + 4]),
        _ => inserted.extend([0; 3]),
    }
    inserted.extend(&packet.bytes[..12]);
    packet.insert(12, &inserted, None)
}

/// Pops the I-tag. The customer's frame after it must have at least a complete Ethernet header.
pub(crate) fn pop_pbb(packet: &mut ReferencePacket) -> Done {
    let found = &packet.headers;
    if found.network != Network::Pbb || found.type_at != 12 || packet.bytes.len() < 18 + 14 {
        return Err(DropReason::MissingHeader);
    }
    packet.remove(0..18, None);
    Ok(())
}

/// Returns the offset of the outermost MPLS shim.
fn shim_at(packet: &ReferencePacket) -> Result<usize, DropReason> {
    let found = &packet.headers;
    if found.network == Network::Mpls { Ok(found.l3) } else { Err(DropReason::MissingMpls) }
}

/// Returns the offset of the IPv4 TTL or the IPv6 hop limit.
fn nw_ttl_at(packet: &ReferencePacket) -> Result<usize, DropReason> {
    let found = &packet.headers;
    match found.network {
        Network::Ipv4 => Ok(found.l3 + 8),
        Network::Ipv6 => Ok(found.l3 + 7),
        _ => Err(DropReason::MissingHeader),
    }
}

fn decrement(packet: &mut ReferencePacket, at: usize) -> Done {
    match packet.bytes[at] {
        0 | 1 => Err(DropReason::TtlExpired),
        ttl => {
            packet.write_byte(at, ttl - 1);
            Ok(())
        }
    }
}

pub(crate) fn set_mpls_ttl(packet: &mut ReferencePacket, ttl: u8) -> Done {
    let at = shim_at(packet)? + 3;
    packet.write_byte(at, ttl);
    Ok(())
}

pub(crate) fn dec_mpls_ttl(packet: &mut ReferencePacket) -> Done {
    let at = shim_at(packet)? + 3;
    decrement(packet, at)
}

pub(crate) fn set_nw_ttl(packet: &mut ReferencePacket, ttl: u8) -> Done {
    let at = nw_ttl_at(packet)?;
    packet.write_byte(at, ttl);
    Ok(())
}

pub(crate) fn dec_nw_ttl(packet: &mut ReferencePacket) -> Done {
    let at = nw_ttl_at(packet)?;
    decrement(packet, at)
}

/// The header after the outermost shim.
enum Inner {
    Shim,
    Ipv4,
    Ipv6,
}

/// Returns the offset of the outermost shim, and the kind of the header after it. Returns `None` if one of
/// them is missing.
fn two_ttls(packet: &ReferencePacket) -> Option<(usize, Inner)> {
    let outer = shim_at(packet).ok()?;
    let bytes = &packet.bytes;
    let bottom = bytes[outer + 2] & 1 == 1;
    let inner = match bottom {
        false if bytes.len() >= outer + 8 => Inner::Shim,
        true if is_ipv4(bytes, outer + 4) => Inner::Ipv4,
        true if is_ipv6(bytes, outer + 4) => Inner::Ipv6,
        _ => return None,
    };
    Some((outer, inner))
}

pub(crate) fn copy_ttl_out(packet: &mut ReferencePacket) {
    let Some((outer, inner)) = two_ttls(packet) else { return };
    let ttl = match inner {
        Inner::Shim => packet.bytes[outer + 7],
        Inner::Ipv4 => packet.bytes[outer + 12],
        Inner::Ipv6 => packet.bytes[outer + 11],
    };
    packet.write_byte(outer + 3, ttl);
}

pub(crate) fn copy_ttl_in(packet: &mut ReferencePacket) {
    let Some((outer, inner)) = two_ttls(packet) else { return };
    let ttl = packet.bytes[outer + 3];
    match inner {
        Inner::Shim => packet.write_byte(outer + 7, ttl),
        Inner::Ipv4 => packet.write_inner_ipv4_ttl(outer + 4, ttl),
        Inner::Ipv6 => packet.write_byte(outer + 11, ttl),
    }
}
