// SPDX-License-Identifier: Apache-2.0
//! Recognises messages of POF. POF has the same version number as OpenFlow 1.3, so only types and lengths
//! differ.

use super::DecodeError;
use crate::header::Header;

/// Messages of POF with a length that is unusual in OpenFlow: type, length in bytes, and name.
const MESSAGES: &[(u8, u16, &str)] = &[
    (9, 16, "SET_CONFIG"),
    (15, 1200, "FLOW_MOD"),
    (15, 2192, "FLOW_MOD"),
    (16, 216, "GROUP_MOD"),
    (16, 1848, "GROUP_MOD"),
    (17, 136, "PORT_MOD"),
    (18, 152, "TABLE_MOD"),
    (30, 16, "METER_MOD"),
    (30, 24, "METER_MOD"),
    (31, 24, "COUNTER_MOD"),
    (31, 32, "COUNTER_MOD"),
    (32, 24, "COUNTER_REQUEST"),
    (32, 32, "COUNTER_REQUEST"),
    (34, 16, "QUERYALL_REQUEST"),
    (101, 16, "SLOT_CONFIG"),
];

/// Advice for a POF controller on an address of OpenFlow.
pub const MOVE_TO_POF: &str = "if the controller speaks POF, move its address in the configuration from \
                               [datapath.openflow] to [datapath.pof]";

/// Adds to the error of a refused message that the message may be one of POF.
pub(super) fn with_hint(header: Header, error: DecodeError) -> DecodeError {
    let found = MESSAGES.iter().find(|(kind, length, _)| (*kind, *length) == (header.kind, header.length));
    let Some((_, length, name)) = found else { return error };
    let problem =
        format!("{}; POF's {name} has this type and length ({length} bytes): {MOVE_TO_POF}", error.problem);
    DecodeError { problem: problem.into(), ..error }
}
