// SPDX-License-Identifier: Apache-2.0
//! Actions on a packet. A packet without the header that an action needs is dropped under a named reason.
//! Copies sent before are not affected.

use crate::{Edit, Field, GroupId, PortNo, QueueId, port_no};

/// Value of `max_len` that requests the whole packet in a packet-in (OFPCML_NO_BUFFER).
pub const WHOLE_PACKET: u16 = 0xffff;

/// Writes some bits of a field: `(field & !mask) | value`. Updates the checksums of these bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetField {
    /// Field to write.
    pub field: Field,
    /// New bits, right-aligned. Bits outside `mask` are 0.
    pub value: u128,
    /// Mask of the bits to write, right-aligned; never 0.
    pub mask: u128,
}

/// Action on a packet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Send to a real or reserved port.
    Output {
        /// Output port, real or reserved.
        port: PortNo,
        /// Maximum length in bytes of a packet-in. For ports other than the controller it has no effect, but
        /// statistics return it.
        max_len: u16,
    },
    /// Send the packet to the group with this number.
    Group(GroupId),
    /// Choose the egress queue with this number.
    SetQueue(QueueId),
    /// Write the TTL of the outermost MPLS shim.
    SetMplsTtl(u8),
    /// Decrement the TTL of the outermost MPLS shim. A packet with a TTL of 0 or 1 is dropped.
    DecMplsTtl,
    /// Write the IPv4 TTL or IPv6 hop limit.
    SetNwTtl(u8),
    /// Decrement the IPv4 TTL or IPv6 hop limit. A packet with a TTL of 0 or 1 is dropped.
    DecNwTtl,
    /// Copy the TTL from the next-to-outermost to the outermost header with a TTL.
    CopyTtlOut,
    /// Copy the TTL from the outermost to the next-to-outermost header with a TTL.
    CopyTtlIn,
    /// Push a VLAN tag with this TPID (0x8100 or 0x88a8) after the MAC addresses. VID and PCP are copied from
    /// the outermost tag, or are 0.
    PushVlan(u16),
    /// Pop the outermost VLAN tag.
    PopVlan,
    /// Push an MPLS shim with this EtherType (0x8847 or 0x8848) after the VLAN tags. Label, TC and TTL are
    /// copied from the outermost shim. Without a shim, label and TC are 0, and the TTL is that of the IP
    /// header, or 0.
    PushMpls(u16),
    /// Pop the outermost MPLS shim and set the EtherType to this value.
    PopMpls(u16),
    /// Push a PBB I-tag of 18 bytes with this EtherType (0x88e7) after the MAC addresses. The frame's
    /// addresses become the customer's, and are copied to the backbone's. The service instance is copied from
    /// an I-tag, and the priority from a VLAN tag. Without such a tag, they are 0.
    PushPbb(u16),
    /// Pop the outermost PBB I-tag and restore the customer's MAC addresses. A B-tag must be popped first.
    PopPbb,
    /// Write bits of a field.
    SetField(SetField),
    /// Push a KeyFlow header of 16 to 40 bytes directly after the MAC addresses.
    PushKey(KeyHeader),
    /// Push freeRtr's PolKA header of 20 bytes directly after the MAC addresses.
    PushPolka(PolkaHeader),
    /// Pop the KeyFlow or PolKA header that directly follows the MAC addresses.
    PopKey,
    /// Push a Tag-and-Forward header of 8 bytes directly after the MAC addresses.
    PushTf(TfHeader),
    /// Push a wide Tag-and-Forward header of 8 bytes directly after the MAC addresses.
    PushTfWide(TfHeader),
    /// Pop the Tag-and-Forward header, of either form, that directly follows the MAC addresses.
    PopTf,
    /// Edit bytes, or move the base of slices. Not allowed in action sets and buckets.
    Edit(Edit),
}

/// Contents of the header that `push_key` writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyHeader {
    /// Key, big-endian: 8, 16, 24 or 32 bytes.
    pub key: Box<[u8]>,
    /// Hop limit.
    pub hops: u8,
    /// Key epoch, 0 or 1.
    pub epoch: u8,
}

/// Contents of the header that `push_polka` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PolkaHeader {
    /// Key: a polynomial over GF(2), highest coefficient first.
    pub key: u128,
    /// Time to live. Switches forward a packet whose TTL is at least 2.
    pub ttl: u8,
}

/// Contents of the header that `push_tf` and `push_tf_wide` write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TfHeader {
    /// Queue ID, 3 bits.
    pub qid: u8,
    /// Upward gate: 32 bits, or 29 in the wide form.
    pub up: u32,
    /// Downward gate: 13 bits, or 16 in the wide form.
    pub down: u16,
}

impl Action {
    /// Returns the action that outputs the whole packet to `port`.
    #[must_use]
    pub fn output(port: PortNo) -> Self {
        Self::Output { port, max_len: if port == port_no::CONTROLLER { WHOLE_PACKET } else { 0 } }
    }

    /// Returns the set-field action that writes the whole field.
    #[must_use]
    pub fn set(field: Field, value: u128) -> Self {
        Self::SetField(SetField { field, value, mask: field.full_mask() })
    }
}
