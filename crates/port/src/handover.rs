// SPDX-License-Identifier: Apache-2.0
//! How a port takes part in an upgrade of the process.

/// A fan-out group of the kernel that has the sockets of a port as its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanoutGroup {
    /// ID of the group in its network namespace.
    pub id: u16,
    /// Number of members: the queues of the port, and the members before them.
    pub members: u16,
}

/// Whether a port of the driver `af_packet` takes over the packets of an older process, or can hand over its
/// own to a newer one. Other drivers ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handover {
    /// The port is not handed over. If it has one queue, the kernel then processes each packet a little
    /// faster.
    #[default]
    Never,
    /// The port can be handed over later.
    Possible,
    /// The port takes over later ([`Fanout::take_over`](crate::Fanout::take_over)) from the port with this
    /// group, on the same interface. It receives nothing before, and can be handed over afterwards.
    From(FanoutGroup),
}

impl Handover {
    /// Returns the group of the port from which this one takes over.
    #[must_use]
    pub fn group(self) -> Option<FanoutGroup> {
        match self {
            Self::From(group) => Some(group),
            Self::Never | Self::Possible => None,
        }
    }
}
