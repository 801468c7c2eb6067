// SPDX-License-Identifier: Apache-2.0
//! Set-field: writes bits of a header field or a slice, and updates the checksums that cover them.

use crate::checksums::{self, ByteChange};
use crate::header_change::HeaderChange;
use crate::packet_data::PacketData;
use flow::action::SetField;
use flow::{DropReason, Field, FieldBase, SliceBase};
use wire::Depth;
use wire::layers::{ETH_TYPE_LLC, header};

/// A compiled set-field action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldWrite {
    pub(crate) field: Field,
    value: u128,
    mask: u128,
}

/// Length of an IPv6 header without extension headers, in bytes.
const IPV6_HEADER_BYTES: u16 = 40;

/// Maximum number of bytes that a field of 128 bits can touch, at any bit offset.
const TOUCHED: usize = 17;

impl FieldWrite {
    /// Compiles a set-field action.
    #[must_use]
    pub fn compile(set: &SetField) -> Self {
        Self { field: set.field, value: set.value & set.mask, mask: set.mask }
    }

    /// Returns the value to write, and the mask of the bits that are written.
    pub(crate) fn bits(&self) -> (u128, u128) {
        (self.value, self.mask)
    }

    /// Writes the value into the packet, in the bits of the mask.
    ///
    /// # Errors
    /// Returns the drop reason if the packet does not have the field.
    pub fn run(&self, packet: &mut PacketData) -> Result<(), DropReason> {
        let location = self.field.location();
        let length = location.length_bits;
        let (start, bit) = match self.field {
            Field::TunnelId => return self.write_ext(packet, location.offset_bits, length),
            Field::Slice(s) if s.base == SliceBase::Metadata => {
                return self.write_ext(packet, s.offset_bits, length);
            }
            Field::Slice(s) => {
                // Any header may have a checksum that covers the slice.
                packet.locate(Depth::L4);
                let end = u32::from(s.offset_bits) + u32::from(length);
                let start = packet.slice_start(location.base, end).ok_or(DropReason::MissingHeader)?;
                (start, s.offset_bits)
            }
            Field::EthType => {
                packet.locate(Depth::L2);
                if packet.layers.eth_type == ETH_TYPE_LLC {
                    return Err(DropReason::MissingHeader);
                }
                (usize::from(packet.layers.type_at), 0)
            }
            Field::VlanVid | Field::VlanPcp => {
                if !packet.has(header::VLAN) {
                    return Err(DropReason::MissingVlan);
                }
                return self.write_vlan(packet);
            }
            Field::IpDscp | Field::IpEcn | Field::IpProto => self.ip_place(packet)?,
            _ => {
                if !packet.has(location.needs) {
                    let mpls = location.needs == header::MPLS;
                    return Err(if mpls { DropReason::MissingMpls } else { DropReason::MissingHeader });
                }
                (packet.base_start(location.base), location.offset_bits)
            }
        };
        self.write_packet(packet, start, bit, length);
        Ok(())
    }

    /// Returns the offset of the IP header in bytes, and the offset of the field (DSCP, ECN or protocol) in
    /// the header in bits.
    fn ip_place(&self, packet: &mut PacketData) -> Result<(usize, u16), DropReason> {
        if !packet.has(header::IP) {
            return Err(DropReason::MissingHeader);
        }
        let v4 = packet.layers.present & header::IPV4 != 0;
        let bit = match self.field {
            Field::IpDscp => {
                if v4 {
                    8
                } else {
                    4
                }
            }
            Field::IpEcn => {
                if v4 {
                    14
                } else {
                    10
                }
            }
            // With extension headers, the first next-header byte is not the upper-layer protocol.
            _ if v4 => 72,
            _ if packet.layers.l4 == packet.layers.l3 + IPV6_HEADER_BYTES => 48,
            _ => return Err(DropReason::MissingHeader),
        };
        Ok((usize::from(packet.layers.l3), bit))
    }

    fn write_vlan(&self, packet: &mut PacketData) -> Result<(), DropReason> {
        // The TCI is PCP (3 bits), DEI (1 bit) and VLAN ID (12 bits).
        let (bit, length) = if self.field == Field::VlanVid { (4, 12) } else { (0, 3) };
        let keep = (1 << length) - 1;
        let tag = packet.frame.bytes_mut().get_mut(14..16).ok_or(DropReason::MissingVlan)?;
        write_bits(tag, bit, length, self.value & keep, self.mask & keep);
        packet.forget_layers();
        Ok(())
    }

    fn write_ext(&self, packet: &mut PacketData, bit: u16, length: u16) -> Result<(), DropReason> {
        let bytes = &mut packet.ext.bytes_mut()[usize::from(bit / 8)..];
        write_bits(bytes, bit % 8, length, self.value, self.mask);
        Ok(())
    }

    fn write_packet(&self, packet: &mut PacketData, start: usize, bit: u16, length: u16) {
        let first = start + usize::from(bit / 8);
        let end = start + usize::from((bit + length).div_ceil(8));
        let covers = self.field.location().base != FieldBase::Frame || matches!(self.field, Field::Slice(_));
        if covers && packet.layers.depth < Depth::L4 {
            packet.locate(Depth::L4);
        }
        let Some(place) = packet.frame.bytes_mut().get_mut(first..end) else { return };
        let mut old = [0; TOUCHED];
        let old = &mut old[..end - first];
        old.copy_from_slice(place);
        write_bits(place, bit % 8, length, self.value, self.mask);
        if *old == *place {
            return;
        }
        if covers {
            let mut written = [0; TOUCHED];
            let written = &mut written[..end - first];
            write_bits(written, bit % 8, length, self.mask, self.mask);
            checksums::keep_right(&mut packet.frame, &packet.layers, ByteChange { at: first, old, written });
        }
        if self.outdates_layers() {
            packet.forget_layers();
        }
    }

    /// Returns whether the write invalidates the parsed headers.
    fn outdates_layers(&self) -> bool {
        matches!(self.field, Field::IpDscp | Field::IpEcn)
            || HeaderChange::by_write(self.field) == HeaderChange::Headers
    }
}

/// Writes the bits of `mask` in a field of `length` bits that begins `skip` (0 to 7) bits into `bytes`.
fn write_bits(bytes: &mut [u8], skip: u16, length: u16, value: u128, mask: u128) {
    let end = skip + length;
    for (number, byte) in bytes.iter_mut().enumerate().take(usize::from(end.div_ceil(8))) {
        // Distance in bits from the last bit of the field to the last bit of this byte.
        let down = i32::from(end) - 8 * (number as i32 + 1);
        let part = |bits: u128| if down >= 0 { (bits >> down) as u8 } else { (bits << -down) as u8 };
        *byte = (*byte & !part(mask)) | part(value & mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_written_at_any_offset() {
        for skip in 0..8u16 {
            for length in [1, 3, 7, 8, 9, 20, 63, 64, 65, 128] {
                let mut bytes = [0b1010_0101u8; 18];
                let before = bytes;
                let full = u128::MAX >> (128 - length);
                let mask = full & 0x0f37_ffff_1234_5678_9abc_def0_fedc_ba95;
                write_bits(&mut bytes, skip, length, u128::MAX, mask);
                for bit in 0..144u16 {
                    let of = |b: &[u8]| b[usize::from(bit / 8)] >> (7 - bit % 8) & 1;
                    let inside = (skip..skip + length).contains(&bit);
                    let written = inside && mask >> (skip + length - 1 - bit) & 1 == 1;
                    assert_eq!(of(&bytes), if written { 1 } else { of(&before) }, "{skip} {length} {bit}");
                }
            }
        }
    }
}
