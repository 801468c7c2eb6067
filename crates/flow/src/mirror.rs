// SPDX-License-Identifier: Apache-2.0
//! Which frames a mirror copies (docs/adr/0064).

use crate::PortNo;

/// Maximum number of mirrors of a datapath.
pub const MIRRORS_MAX: usize = 32;

/// Highest VLAN ID that a mirror can select. VLAN 0 stands for frames without a VLAN tag.
pub const VLAN_MAX: u16 = 4_095;

/// Direction in which a frame passes a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Passage {
    /// The device has delivered the frame.
    Ingress,
    /// The device has accepted the frame.
    Egress,
}

/// The frames that a mirror copies: those that pass one of its ports in one of its VLANs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorSelection {
    /// Ports whose received frames are copied.
    pub ingress: Vec<PortNo>,
    /// Ports whose sent frames are copied.
    pub egress: Vec<PortNo>,
    /// VLAN IDs of the outermost tag, 0 for frames without a tag. An empty list selects all frames.
    pub vlans: Vec<u16>,
}

impl MirrorSelection {
    /// Returns the ports whose frames are copied in this direction.
    #[must_use]
    pub fn ports(&self, passage: Passage) -> &[PortNo] {
        match passage {
            Passage::Ingress => &self.ingress,
            Passage::Egress => &self.egress,
        }
    }
}
