// SPDX-License-Identifier: Apache-2.0
//! SCTP common header (RFC 9260). [`crate::checksum::fill_sctp`] writes its CRC32c.

use crate::view::view;

/// IP protocol number.
pub const PROTO: u8 = 132;

view! {
    /// SCTP packet.
    Packet, "SCTP common header", 12, |_| true;
    /// Source port.
    0: src_port, set_src_port, u16;
    /// Destination port.
    2: dst_port, set_dst_port, u16;
    /// Verification tag.
    4: verification_tag, set_verification_tag, u32;
    /// CRC32c, least significant byte first.
    8: checksum, set_checksum, [u8; 4];
}
