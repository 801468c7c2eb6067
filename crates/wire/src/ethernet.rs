// SPDX-License-Identifier: Apache-2.0
//! Ethernet II header.

use crate::view::view;

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
/// EtherType of MPLS unicast.
pub const MPLS: u16 = 0x8847;

/// Length of the header, without VLAN tags.
pub const ETHERNET_BYTES: usize = 14;

view! {
    /// Frame of at least 14 bytes, without frame check sequence.
    Frame, "Ethernet header", 14, |_| true;
    /// Destination address.
    0: dst, set_dst, [u8; 6];
    /// Source address.
    6: src, set_src, [u8; 6];
    /// EtherType, or the 802.3 length if the value is below 0x600. If a VLAN tag follows, this is the tag
    /// protocol identifier.
    12: ethertype, set_ethertype, u16;
}
