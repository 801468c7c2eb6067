// SPDX-License-Identifier: Apache-2.0
//! ICMPv6 (RFC 4443) and neighbour discovery (RFC 4861).

use crate::view::view;

/// Next-header number.
pub const PROTO: u8 = 58;
/// Type of an echo request.
pub const ECHO_REQUEST: u8 = 128;
/// Type of an echo reply.
pub const ECHO_REPLY: u8 = 129;
/// Type of a neighbour solicitation.
pub const NEIGHBOUR_SOLICITATION: u8 = 135;
/// Type of a neighbour advertisement.
pub const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
/// Option type: the sender's link-layer address.
pub const SOURCE_LINK_LAYER: u8 = 1;
/// Option type: the target's link-layer address.
pub const TARGET_LINK_LAYER: u8 = 2;

view! {
    /// ICMPv6 message with at least type, code and checksum.
    Message, "ICMPv6 header", 4, |_| true;
    /// Message type.
    0: kind, set_kind, u8;
    /// Message code.
    1: code, set_code, u8;
    /// Checksum, including the IPv6 pseudo-header.
    2: checksum, set_checksum, u16;
}

view! {
    /// Neighbour solicitation or advertisement with its target.
    Neighbour, "neighbour solicitation or advertisement", 24, |bytes| {
        matches!(bytes[0], NEIGHBOUR_SOLICITATION | NEIGHBOUR_ADVERTISEMENT) && bytes[1] == 0
    };
    /// Flags of an advertisement: the first three bits are router, solicited and override. In a solicitation,
    /// the field is reserved.
    4: flags, set_flags, u32;
    /// Target address.
    8: target, set_target, [u8; 16];
}

impl<T: AsRef<[u8]>> Neighbour<T> {
    /// Returns the options after the target address.
    pub fn options(&self) -> NdOptions<'_> {
        NdOptions { rest: &self.buffer.as_ref()[24..] }
    }
}

/// Option of neighbour discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NdOption<'a> {
    /// Type of the option.
    pub kind: u8,
    /// Body after type and length. For a link-layer address option, this is the address.
    pub body: &'a [u8],
}

/// Iterator over options. It ends before an option that is cut short or has length zero.
#[derive(Clone, Debug)]
pub struct NdOptions<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for NdOptions<'a> {
    type Item = NdOption<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let &[kind, units] = self.rest.first_chunk()?;
        let (option, rest) = self.rest.split_at_checked(usize::from(units) * 8)?;
        self.rest = rest;
        Some(NdOption { kind, body: option.get(2..)? })
    }
}
