// SPDX-License-Identifier: Apache-2.0
//! Actions on a packet. An action that needs a header which the packet lacks (pop or set VLAN without a tag, TTL
//! without IP, a field that is not there) drops the packet under a named reason; what was output before stays output.

use crate::{Field, PortNo, port_no};

/// Bytes of a packet-in that carry the whole packet (OFPCML_NO_BUFFER).
pub const WHOLE_PACKET: u16 = 0xffff;

/// A bit-field write: `(field & !mask) | value`. The checksums that cover the bits are kept right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetField {
    /// Which field.
    pub field: Field,
    /// Right-aligned new bits; none outside `mask`.
    pub value: u128,
    /// Right-aligned mask of the bits to write, never 0.
    pub mask: u128,
}

/// One action.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Send by a real or reserved port.
    Output {
        /// The port.
        port: PortNo,
        /// Bytes of the packet to send, heeded for the controller only; else as it was given, to be told again.
        max_len: u16,
    },
    /// Process by a group.
    Group(u32),
    /// Choose the egress queue.
    SetQueue(u32),
    /// Write the TTL of the outermost MPLS shim.
    SetMplsTtl(u8),
    /// Decrement the TTL of the outermost MPLS shim; a TTL of 0 or 1 drops the packet.
    DecMplsTtl,
    /// Write the IPv4 TTL or IPv6 hop limit.
    SetNwTtl(u8),
    /// Decrement the IPv4 TTL or IPv6 hop limit; a TTL of 0 or 1 drops the packet.
    DecNwTtl,
    /// Copy the TTL from the next-to-outermost to the outermost header with a TTL.
    CopyTtlOut,
    /// Copy the TTL from the outermost to the next-to-outermost header with a TTL.
    CopyTtlIn,
    /// Push a VLAN tag with this TPID (0x8100 or 0x88a8) behind the MACs; VID and PCP are copied from a tag that is
    /// there, else 0.
    PushVlan(u16),
    /// Pop the outermost VLAN tag.
    PopVlan,
    /// Push an MPLS shim with this EtherType (0x8847 or 0x8848) behind the VLAN tags; label, TC and TTL are copied
    /// from a shim that is there, else label 0, TC 0, TTL of the IP header or 0.
    PushMpls(u16),
    /// Pop the outermost MPLS shim; the EtherType becomes this.
    PopMpls(u16),
    /// Push a PBB I-tag with this EtherType (0x88e7) behind the MACs, which become the customer's and stay the
    /// backbone's: 18 bytes. The service instance is copied from an I-tag that is there, the priority from a VLAN tag,
    /// else 0.
    PushPbb(u16),
    /// Pop the PBB I-tag that is outermost: the customer's MACs become the frame's. A B-tag before it is to be popped
    /// first.
    PopPbb,
    /// Write bits of a field.
    SetField(SetField),
    /// Push a KeyFlow header right behind the MACs: 16 to 40 bytes.
    PushKey(KeyHeader),
    /// Push freeRtr's PolKA header right behind the MACs: 20 bytes.
    PushPolka(PolkaHeader),
    /// Pop the KeyFlow header, or freeRtr's PolKA header, that is right behind the MACs.
    PopKey,
    /// Push a Tag-and-Forward header right behind the MACs: 8 bytes.
    PushTf(TfHeader),
    /// Push a wide Tag-and-Forward header right behind the MACs: 8 bytes.
    PushTfWide(TfHeader),
    /// Pop a Tag-and-Forward header of either width that is right behind the MACs.
    PopTf,
}

/// What `push_key` writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyHeader {
    /// The key, big-endian, 8, 16, 24 or 32 bytes.
    pub key: Box<[u8]>,
    /// Hop limit.
    pub hops: u8,
    /// Key epoch, 0 or 1.
    pub epoch: u8,
}

/// What `push_polka` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PolkaHeader {
    /// The key: a polynomial over GF(2), its highest coefficient first.
    pub key: u128,
    /// Time to live: a switch sends on what has 2 and more.
    pub ttl: u8,
}

/// What `push_tf` and `push_tf_wide` write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TfHeader {
    /// Queue ID, 3 bits.
    pub qid: u8,
    /// Gate upwards: 32 bits, wide 29.
    pub up: u32,
    /// Gate downwards: 13 bits, wide 16.
    pub down: u16,
}

impl Action {
    /// Output to a port, of the whole packet. (To the controller that is a length; to others there is none to tell.)
    #[must_use]
    pub fn output(port: PortNo) -> Self {
        Self::Output { port, max_len: if port == port_no::CONTROLLER { WHOLE_PACKET } else { 0 } }
    }

    /// Writes a whole field.
    #[must_use]
    pub fn set(field: Field, value: u128) -> Self {
        Self::SetField(SetField { field, value, mask: field.full_mask() })
    }
}
