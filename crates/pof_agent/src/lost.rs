// SPDX-License-Identifier: Apache-2.0
//! Numbers of lost messages.

use std::fmt;

/// Numbers of messages dropped because controllers did not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PofLostMessages {
    /// PACKET_IN messages.
    pub packet_in: u64,
    /// PORT_STATUS messages.
    pub port_status: u64,
    /// Replies that the dialect cannot express.
    pub reply: u64,
}

impl PofLostMessages {
    /// Returns the sums.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            packet_in: self.packet_in + other.packet_in,
            port_status: self.port_status + other.port_status,
            reply: self.reply + other.reply,
        }
    }
}

impl fmt::Display for PofLostMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { packet_in, port_status, reply } = self;
        write!(f, "{packet_in} packet-ins, {port_status} port-status messages, {reply} replies in all")
    }
}
