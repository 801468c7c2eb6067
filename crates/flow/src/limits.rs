// SPDX-License-Identifier: Apache-2.0
//! Fixed limits of the switch, in one place.

/// Fixed sizes for which the switch is built. They are checked when a request or configuration is accepted.
#[derive(Debug)]
pub struct Limits;

impl Limits {
    /// Number of tables that a controller can use. They have the numbers 0 to 254.
    pub const TABLES: usize = 255;
    /// Maximum length of a slice in bits.
    pub const SLICE_BITS: u16 = 128;
    /// First bit of a packet that no slice can include.
    pub const SLICE_END_BITS: u32 = 8 * 1_536;
    /// Maximum number of distinct slices that the entries of one table examine.
    pub const SLICES_PER_TABLE: usize = 32;
    /// Length of a table's lookup key in 64-bit words. All named fields and [`Self::SLICES_PER_TABLE`] slices
    /// fit.
    pub const KEY_WORDS: usize = 96;
    /// Maximum number of actions in a list.
    pub const ACTIONS_PER_LIST: usize = 64;
    /// Maximum number of distinct fields in a packet's action set. With more, the packet is dropped as
    /// `action_set_full`.
    pub const ACTION_SET_FIELDS: usize = 16;
    /// Maximum number of VLAN tags that the parser skips in one packet.
    pub const VLAN_TAGS: usize = 8;
    /// Maximum length of a chain of groups.
    pub const GROUP_CHAIN: usize = 8;
    /// Maximum number of bands of a meter.
    pub const METER_BANDS: usize = 16;
    /// Maximum number of buckets of a group.
    pub const GROUP_BUCKETS: usize = 1_024;
    /// Maximum number of groups of one type.
    pub const GROUPS_PER_TYPE: usize = 4_096;
    /// Maximum number of buckets of all groups together.
    pub const BUCKETS: usize = 65_536;
    /// Maximum number of buckets that a packet may visit in a group and the groups to which it refers.
    pub const GROUP_PASSES: usize = 4_096;
    /// Maximum number of meters.
    pub const METERS: usize = 4_096;
    /// Highest label of a stateless switch.
    pub const LABEL_MAX: u32 = 65_535;
    /// Maximum number of packets in a burst.
    pub const BURST_PACKETS: usize = 32;
    /// Maximum number of ports of a datapath.
    pub const PORTS: usize = 1_024;
    /// Maximum number of entries of a datapath.
    pub const ENTRIES: usize = 16 * 1_024 * 1_024;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Controllers depend on these numbers, so a change must be deliberate.
    #[test]
    fn limits_have_the_values_on_which_controllers_rely() {
        assert_eq!((Limits::TABLES, Limits::ENTRIES, Limits::PORTS), (255, 16_777_216, 1_024));
        assert_eq!((Limits::SLICE_BITS, Limits::SLICE_END_BITS, Limits::SLICES_PER_TABLE), (128, 12_288, 32));
        assert_eq!((Limits::ACTIONS_PER_LIST, Limits::ACTION_SET_FIELDS, Limits::VLAN_TAGS), (64, 16, 8));
        assert_eq!((Limits::GROUP_CHAIN, Limits::GROUP_BUCKETS, Limits::GROUP_PASSES), (8, 1_024, 4_096));
        assert_eq!((Limits::GROUPS_PER_TYPE, Limits::BUCKETS), (4_096, 65_536));
        assert_eq!((Limits::METERS, Limits::METER_BANDS, Limits::LABEL_MAX), (4_096, 16, 65_535));
    }
}
