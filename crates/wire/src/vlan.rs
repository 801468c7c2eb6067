// SPDX-License-Identifier: Apache-2.0
//! VLAN tag (IEEE 802.1Q), without its tag protocol identifier.

use crate::view::view;

/// Tag protocol identifier of a customer tag.
pub const C_TAG: u16 = 0x8100;
/// Tag protocol identifier of a service tag.
pub const S_TAG: u16 = 0x88a8;

view! {
    /// Tag control information and the EtherType after it.
    Tag, "VLAN tag", 4, |_| true;
    /// Tag control information: PCP (3 bits), DEI (1), VID (12).
    0: tci, set_tci, u16;
    /// EtherType of the data after the tag.
    2: ethertype, set_ethertype, u16;
}

impl<T: AsRef<[u8]>> Tag<T> {
    /// Returns the VLAN identifier, 12 bits.
    pub fn vid(&self) -> u16 {
        self.tci() & 0x0fff
    }

    /// Returns the priority code point, 3 bits.
    pub fn pcp(&self) -> u8 {
        (self.tci() >> 13) as u8
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Tag<T> {
    /// Sets the VLAN identifier to the low 12 bits of `vid`.
    pub fn set_vid(&mut self, vid: u16) {
        self.set_tci(self.tci() & 0xf000 | vid & 0x0fff);
    }

    /// Sets the priority code point to the low 3 bits of `pcp`.
    pub fn set_pcp(&mut self, pcp: u8) {
        self.set_tci(self.tci() & 0x1fff | u16::from(pcp) << 13);
    }
}
