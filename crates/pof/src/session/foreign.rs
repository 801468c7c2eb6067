// SPDX-License-Identifier: Apache-2.0
//! Recognises messages of OpenFlow 1.3. POF has the same version number, so only types and lengths differ.

use openflow::Header;

/// Messages of OpenFlow 1.3 that POF does not have: type, minimum and maximum length in bytes, and name.
const MESSAGES: &[(u8, u16, u16, &str)] = &[
    (0, 9, u16::MAX, "HELLO with a list of versions"),
    (13, 24, 87, "PACKET_OUT"),
    (14, 56, 311, "FLOW_MOD"),
    (15, 16, 1199, "GROUP_MOD"),
    (18, 16, 151, "MULTIPART_REQUEST"),
    (20, 8, 8, "BARRIER_REQUEST"),
    (24, 24, 24, "ROLE_REQUEST"),
    (26, 8, 8, "GET_ASYNC_REQUEST"),
    (28, 32, 32, "SET_ASYNC"),
];

/// Returns the name of the OpenFlow message that a refused message may be.
pub(super) fn openflow_message(header: Header) -> Option<&'static str> {
    let found = MESSAGES
        .iter()
        .find(|(kind, min, max, _)| *kind == header.kind && (*min..=*max).contains(&header.length));
    found.map(|(.., name)| *name)
}
