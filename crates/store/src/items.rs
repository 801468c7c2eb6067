// SPDX-License-Identifier: Apache-2.0
//! Kinds of items. The numbers are part of the format, and must not change.

use model::PortConfig;

/// Kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ItemKind {
    /// Serial number, time of addition, whether it is marked by learning, FLOW_MOD.
    Entry = 1,
    /// Serial number.
    EntryGone = 2,
    /// VLAN ID, MAC address, port.
    Mac = 3,
    /// VLAN ID, MAC address.
    MacGone = 4,
    /// Number, GROUP_MOD.
    Group = 5,
    /// Number.
    GroupGone = 6,
    /// Number, METER_MOD.
    Meter = 7,
    /// Number.
    MeterGone = 8,
    /// Number, configuration bits.
    Port = 9,
    /// Replies with the stateless configuration.
    Stateless = 10,
    /// A bit for each table.
    Tables = 11,
    /// 1 or 0.
    DropFragments = 12,
    /// 1 or 0.
    Standalone = 13,
}

impl ItemKind {
    const ALL: [Self; 13] = [
        Self::Entry,
        Self::EntryGone,
        Self::Mac,
        Self::MacGone,
        Self::Group,
        Self::GroupGone,
        Self::Meter,
        Self::MeterGone,
        Self::Port,
        Self::Stateless,
        Self::Tables,
        Self::DropFragments,
        Self::Standalone,
    ];

    /// Returns the kind with this number.
    pub fn numbered(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// Returns the configuration of a port as bits.
pub fn port_bits(config: PortConfig) -> u8 {
    let PortConfig { down, no_recv, no_fwd, no_flood, no_packet_in } = config;
    let bits = [down, no_recv, no_fwd, no_flood, no_packet_in];
    bits.into_iter().zip(0..).map(|(set, at)| u8::from(set) << at).sum()
}

/// Returns the configuration of a port with these bits.
pub fn port_config(bits: u8) -> PortConfig {
    let bit = |at: u8| bits >> at & 1 == 1;
    PortConfig { down: bit(0), no_recv: bit(1), no_fwd: bit(2), no_flood: bit(3), no_packet_in: bit(4) }
}
