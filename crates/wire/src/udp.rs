// SPDX-License-Identifier: Apache-2.0
//! UDP header (RFC 768).

use crate::view::view;

/// IP protocol number.
pub const PROTO: u8 = 17;

view! {
    /// UDP datagram. The length field is not checked.
    Datagram, "UDP header", 8, |_| true;
    /// Source port.
    0: src_port, set_src_port, u16;
    /// Destination port.
    2: dst_port, set_dst_port, u16;
    /// Length of header and payload in bytes.
    4: length, set_length, u16;
    /// Checksum, or 0 if there is none.
    6: checksum, set_checksum, u16;
}
