// SPDX-License-Identifier: Apache-2.0
//! Configuration of forwarding by the reserved port NORMAL: the VLANs and storm limits of each port. Other
//! outputs ignore it.

use crate::{DropReason, Nanos, PortNo};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Highest VLAN ID. ID 0 stands for frames without a VLAN: untagged frames, and frames with a priority tag.
pub const VID_MAX: u16 = 0x0fff;

/// Settings of all ports for which NORMAL has settings. A port without an entry has the default settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BridgeConfig {
    /// Settings by port.
    pub ports: BTreeMap<PortNo, BridgePort>,
}

/// Settings of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BridgePort {
    /// VLANs that the port carries, and their tags.
    pub vlans: PortVlans,
    /// Limits of the packets that NORMAL floods from the port.
    pub storm: StormLimits,
    /// Maximum number of addresses that are learned at the port.
    pub mac_limit: Option<u32>,
}

/// Limits of the packets that NORMAL floods from a port, by kind of destination. Packets above a limit are
/// dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StormLimits {
    /// Limit of broadcasts.
    pub broadcast: Option<StormLimit>,
    /// Limit of packets to other group addresses.
    pub multicast: Option<StormLimit>,
    /// Limit of packets to addresses that are not learned.
    pub unknown_unicast: Option<StormLimit>,
    /// Time for which a port is closed when a packet exceeds a limit, in nanoseconds. `None` leaves it open.
    pub shut: Option<Nanos>,
}

/// Limit of one kind of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StormLimit {
    /// Packets per second, at least 1.
    pub rate: u32,
    /// Maximum number of packets at once, at least 1.
    pub burst: u32,
}

/// Kind of a packet that NORMAL floods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloodKind {
    /// A broadcast.
    Broadcast,
    /// A packet to another group address.
    Multicast,
    /// A packet to an address that is not learned.
    UnknownUnicast,
}

impl FloodKind {
    /// Returns the reason for which packets above the limit are dropped.
    #[must_use]
    pub fn reason(self) -> DropReason {
        match self {
            Self::Broadcast => DropReason::StormBroadcast,
            Self::Multicast => DropReason::StormMulticast,
            Self::UnknownUnicast => DropReason::StormUnknownUnicast,
        }
    }
}

impl StormLimits {
    /// Returns the limit of a kind of packets.
    #[must_use]
    pub fn of(&self, kind: FloodKind) -> Option<StormLimit> {
        match kind {
            FloodKind::Broadcast => self.broadcast,
            FloodKind::Multicast => self.multicast,
            FloodKind::UnknownUnicast => self.unknown_unicast,
        }
    }
}

/// VLANs that a port carries, and the tags of their frames on the port. VLAN IDs are 0 to [`VID_MAX`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortVlans {
    /// Frames without a VLAN belong to this VLAN. They are sent without a tag. Other frames are dropped.
    Access(u16),
    /// Frames belong to the VLAN of their tag, or to VLAN 0. Their tags stay.
    Trunk(TrunkVlans),
    /// As a trunk, but frames without a VLAN belong to the native VLAN. They are sent with its tag.
    NativeTagged {
        /// The native VLAN, which the port always carries.
        native: u16,
        /// The other VLANs that the port carries.
        trunks: TrunkVlans,
    },
    /// As [`PortVlans::NativeTagged`], but frames of the native VLAN are sent without a tag.
    NativeUntagged {
        /// The native VLAN, which the port always carries.
        native: u16,
        /// The other VLANs that the port carries.
        trunks: TrunkVlans,
    },
}

/// VLANs of a trunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TrunkVlans {
    /// All VLANs.
    #[default]
    All,
    /// These VLANs. The set may contain 0.
    Only(BTreeSet<u16>),
}

impl Default for PortVlans {
    fn default() -> Self {
        Self::Trunk(TrunkVlans::All)
    }
}

impl BridgeConfig {
    /// Returns the settings of a port.
    #[must_use]
    pub fn port(&self, port: PortNo) -> BridgePort {
        self.ports.get(&port).cloned().unwrap_or_default()
    }

    /// Returns whether a port carries the frames of a VLAN.
    #[must_use]
    pub fn carries(&self, port: PortNo, vid: u16) -> bool {
        self.ports.get(&port).is_none_or(|port| port.vlans.carries(vid))
    }
}

impl PortVlans {
    /// Returns whether a port with these settings carries the frames of a VLAN.
    #[must_use]
    pub fn carries(&self, vid: u16) -> bool {
        match self {
            Self::Access(only) => *only == vid,
            Self::Trunk(trunks) => trunks.contain(vid),
            Self::NativeTagged { native, trunks } | Self::NativeUntagged { native, trunks } => {
                *native == vid || trunks.contain(vid)
            }
        }
    }
}

impl TrunkVlans {
    /// Returns whether the VLAN is one of these.
    #[must_use]
    pub fn contain(&self, vid: u16) -> bool {
        match self {
            Self::All => true,
            Self::Only(only) => only.contains(&vid),
        }
    }
}

impl fmt::Display for BridgePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vlans, storm, mac_limit } = self;
        write!(f, "VLAN mode {vlans}")?;
        for (kind, limit) in [
            ("broadcasts", storm.broadcast),
            ("multicasts", storm.multicast),
            ("packets to unknown addresses", storm.unknown_unicast),
        ] {
            if let Some(StormLimit { rate, burst }) = limit {
                write!(f, "; {kind} limited to {rate}/s, burst {burst}")?;
            }
        }
        match storm.shut {
            _ if *storm == StormLimits::default() => f.write_str("; no storm limits")?,
            Some(time) => write!(f, "; closes for {} ms above a limit", time.0 / 1_000_000)?,
            None => {}
        }
        mac_limit.iter().try_for_each(|limit| write!(f, "; at most {limit} learned addresses"))
    }
}

impl fmt::Display for PortVlans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mode, native, trunks) = match self {
            Self::Access(vid) => return write!(f, "access {vid}"),
            Self::Trunk(trunks) => ("trunk", None, trunks),
            Self::NativeTagged { native, trunks } => ("native-tagged", Some(native), trunks),
            Self::NativeUntagged { native, trunks } => ("native-untagged", Some(native), trunks),
        };
        f.write_str(mode)?;
        if let Some(native) = native {
            write!(f, " {native}")?;
        }
        match trunks {
            TrunkVlans::All => f.write_str(", all VLANs"),
            TrunkVlans::Only(vids) => {
                let list: Vec<String> = vids.iter().map(u16::to_string).collect();
                write!(f, ", VLANs {}", list.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vlans_are_described() {
        let text = |vlans: PortVlans| vlans.to_string();
        assert_eq!(text(PortVlans::Access(10)), "access 10");
        assert_eq!(text(PortVlans::default()), "trunk, all VLANs");
        let trunks = TrunkVlans::Only([5, 6].into());
        assert_eq!(text(PortVlans::NativeUntagged { native: 1, trunks }), "native-untagged 1, VLANs 5,6");
    }

    #[test]
    fn a_native_port_carries_its_native_vlan_too() {
        let trunks = || TrunkVlans::Only([5].into());
        let carried = |vlans: PortVlans| [0, 5, 7].map(|vid| vlans.carries(vid));
        assert_eq!(carried(PortVlans::Access(7)), [false, false, true]);
        assert_eq!(carried(PortVlans::Trunk(trunks())), [false, true, false]);
        assert_eq!(carried(PortVlans::NativeTagged { native: 7, trunks: trunks() }), [false, true, true]);
        assert_eq!(carried(PortVlans::NativeUntagged { native: 7, trunks: trunks() }), [false, true, true]);
        assert_eq!(carried(PortVlans::default()), [true; 3]);
    }
}
