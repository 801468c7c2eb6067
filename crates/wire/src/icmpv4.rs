// SPDX-License-Identifier: Apache-2.0
//! ICMP for IPv4 (RFC 792).

use crate::view::view;

/// IP protocol number.
pub const PROTO: u8 = 1;
/// Type of an echo request.
pub const ECHO_REQUEST: u8 = 8;
/// Type of an echo reply.
pub const ECHO_REPLY: u8 = 0;

view! {
    /// ICMP message with at least type, code and checksum.
    Message, "ICMP header", 4, |_| true;
    /// Message type.
    0: kind, set_kind, u8;
    /// Message code.
    1: code, set_code, u8;
    /// Checksum. It does not cover a pseudo-header.
    2: checksum, set_checksum, u16;
}
