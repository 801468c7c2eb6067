// SPDX-License-Identifier: Apache-2.0
//! Classification of packets by the failures that they encountered.

/// Relation of a packet to the failures of the run. A loss for lack of space is not attributed to a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exposure {
    /// No failure existed.
    None,
    /// A failure existed, but it was not on the packet's path, or the packet did not reach it.
    OffPath,
    /// There was a failure on the packet's path. The plan protects against this failure, and the neighbouring
    /// switches had detected it.
    Guarded,
    /// There was a failure on the packet's path without protection, or the path is unknown.
    Unguarded,
    /// The switch of the sender or of the receiver had failed.
    End,
    /// The packet was delivered or lost before the failure was detected.
    Undetected,
    /// The repair was detected before the packet was delivered or lost.
    Repaired,
    /// Several failures affected the packet.
    Several,
}

impl Exposure {
    /// All values.
    pub const ALL: [Self; 8] = [
        Self::None,
        Self::OffPath,
        Self::Guarded,
        Self::Unguarded,
        Self::End,
        Self::Undetected,
        Self::Repaired,
        Self::Several,
    ];

    /// Returns the name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "no failure",
            Self::OffPath => "failure off the path",
            Self::Guarded => "protected hop, detected",
            Self::Unguarded => "unprotected hop, detected",
            Self::End => "end of the path failed",
            Self::Undetected => "not yet detected",
            Self::Repaired => "repaired under way",
            Self::Several => "several failures",
        }
    }

    /// Returns whether no packet of this class may be lost.
    #[must_use]
    pub fn is_safe(self) -> bool {
        matches!(self, Self::None | Self::OffPath | Self::Guarded)
    }
}
