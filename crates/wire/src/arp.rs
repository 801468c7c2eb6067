// SPDX-License-Identifier: Apache-2.0
//! ARP for Ethernet and IPv4 (RFC 826).

use crate::view::view;

/// Hardware type Ethernet, protocol type IPv4, address lengths 6 and 4.
pub const ETHERNET_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
/// Operation of a request for an address.
pub const REQUEST: u16 = 1;
/// Operation of a reply.
pub const REPLY: u16 = 2;

view! {
    /// ARP body of 28 bytes.
    Packet, "ARP body for Ethernet and IPv4", 28, |bytes| bytes[..6] == ETHERNET_IPV4;
    /// Operation: [`REQUEST`] or [`REPLY`].
    6: operation, set_operation, u16;
    /// Sender hardware address.
    8: sha, set_sha, [u8; 6];
    /// Sender protocol address.
    14: spa, set_spa, [u8; 4];
    /// Target hardware address.
    18: tha, set_tha, [u8; 6];
    /// Target protocol address.
    24: tpa, set_tpa, [u8; 4];
}
