// SPDX-License-Identifier: Apache-2.0
//! Extended header: the fields that a lookup can examine in addition to the packet's own bytes. A slice can
//! match it like any other header (`slice(metadata,offset,length)`).
//!
//! | bytes | content |
//! |---|---|
//! | 0..4 | ingress port |
//! | 4..8 | physical ingress port |
//! | 8..16 | metadata register |
//! | 16..24 | tunnel ID |
//! | 24..26 | EtherType after VLAN tags (0x05ff: LLC) |
//! | 26..28 | outermost VLAN: PCP 3 bits, tag present 1 bit, VID 12 bits; 0 without a tag |
//! | 28 | IPv4 ToS or IPv6 traffic class |
//! | 29 | upper-layer protocol |
//! | 30..32 | IPv6 extension header bits (OFPIEH_*) |
//!
//! All values are big-endian. The parser writes bytes 24 to 31 only as far as the tables require.

use crate::PortNo;
use wire::Layers;
use wire::layers::header;

/// Length of the extended header in bytes.
pub const EXT_BYTES: usize = 32;

/// First bit of the ingress port.
pub const IN_PORT_BIT: u16 = 0;
/// First bit of the physical ingress port.
pub const IN_PHY_PORT_BIT: u16 = 32;
/// First bit of the metadata register.
pub const METADATA_BIT: u16 = 64;
/// First bit of the tunnel ID.
pub const TUNNEL_ID_BIT: u16 = 128;
/// First bit of the EtherType.
pub const ETH_TYPE_BIT: u16 = 192;
/// First bit of the VLAN word.
pub const VLAN_BIT: u16 = 208;
/// First bit of the ToS byte.
pub const IP_TOS_BIT: u16 = 224;
/// First bit of the upper-layer protocol.
pub const IP_PROTO_BIT: u16 = 232;
/// First bit of the 16-bit word of extension header bits (9 used, right-aligned).
pub const EXTHDR_BIT: u16 = 240;

/// OFPVID_PRESENT: the bit of the VLAN word that is set if the packet has a tag.
pub const VID_PRESENT: u16 = 0x1000;

/// Extended header of one packet, with 8 spare bytes for wide loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ext {
    bytes: [u8; EXT_BYTES + 8],
}

impl Default for Ext {
    fn default() -> Self {
        Self { bytes: [0; EXT_BYTES + 8] }
    }
}

impl Ext {
    /// Returns the extended header of a packet received on `in_port`.
    #[must_use]
    #[inline]
    pub fn arriving(in_port: PortNo) -> Self {
        let mut ext = Self::default();
        ext.bytes[0..4].copy_from_slice(&in_port.0.to_be_bytes());
        ext.bytes[4..8].copy_from_slice(&in_port.0.to_be_bytes());
        ext
    }

    /// Returns the header's bytes, followed by 8 zero bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the header's bytes without the spare bytes.
    #[must_use]
    #[inline]
    pub fn first_chunk(&self) -> &[u8; EXT_BYTES] {
        self.bytes.first_chunk().unwrap_or(&[0; EXT_BYTES])
    }

    /// Returns the header's bytes without the spare bytes.
    #[must_use]
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..EXT_BYTES]
    }

    /// Returns the ingress port.
    #[must_use]
    pub fn in_port(&self) -> PortNo {
        PortNo(u32::from_be_bytes([self.bytes[0], self.bytes[1], self.bytes[2], self.bytes[3]]))
    }

    /// Returns the metadata register.
    #[must_use]
    pub fn metadata(&self) -> u64 {
        self.word(8)
    }

    /// Writes the bits of `mask` to the metadata register.
    #[inline]
    pub fn write_metadata(&mut self, value: u64, mask: u64) {
        let new = (self.metadata() & !mask) | (value & mask);
        self.bytes[8..16].copy_from_slice(&new.to_be_bytes());
    }

    /// Returns the tunnel ID.
    #[must_use]
    pub fn tunnel_id(&self) -> u64 {
        self.word(16)
    }

    /// Copies the parser's results into bytes 24 to 31.
    #[inline]
    pub fn set_layers(&mut self, layers: &Layers) {
        let vlan =
            if layers.present & header::VLAN != 0 { (layers.vlan_tci & 0xefff) | VID_PRESENT } else { 0 };
        let [eth_type, vlan, exthdr] = [layers.eth_type, vlan, layers.exthdr].map(u64::from);
        let ip = u64::from(layers.ip_tos) << 24 | u64::from(layers.ip_proto) << 16;
        let word = eth_type << 48 | vlan << 32 | ip | exthdr;
        self.bytes[24..32].copy_from_slice(&word.to_be_bytes());
    }

    fn word(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[at..at + 8]);
        u64::from_be_bytes(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vlan_word_is_0_without_a_tag() {
        let mut ext = Ext::arriving(PortNo(7));
        assert_eq!((ext.in_port(), &ext.bytes()[4..8]), (PortNo(7), &[0, 0, 0, 7][..]));
        ext.set_layers(&Layers {
            present: header::VLAN,
            vlan_tci: 0xb00a,
            eth_type: 0x800,
            ..Layers::default()
        });
        assert_eq!(&ext.bytes()[24..28], &[8, 0, 0xb0, 0x0a]);
        ext.set_layers(&Layers { vlan_tci: 0xffff, ..Layers::default() });
        assert_eq!(&ext.bytes()[24..28], &[0, 0, 0, 0]);
        ext.write_metadata(0xff00, 0x0f0f);
        assert_eq!(ext.metadata(), 0x0f00);
    }
}
