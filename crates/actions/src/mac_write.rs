// SPDX-License-Identifier: Apache-2.0
//! Set-field on the MAC addresses.
//!
//! A router rewrites both addresses in every packet, so successive writes are merged into one load and one
//! store.

use crate::packet_data::PacketData;
use crate::ttl::FrameStart;
use flow::Field;
use flow::action::SetField;

/// Bits to write into the frame's first 12 bytes: destination address, then source address. The words are in
/// memory order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacWrite {
    /// Bits to write into bytes 0 to 7.
    first: Bits<u64>,
    /// Bits to write into bytes 8 to 11.
    last: Bits<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bits<T> {
    value: T,
    mask: T,
}

impl MacWrite {
    /// A write that changes nothing.
    pub const NONE: Self = Self { first: Bits { value: 0, mask: 0 }, last: Bits { value: 0, mask: 0 } };

    /// Compiles a set-field action. Returns `None` for fields other than the two MAC addresses.
    pub fn compile(set: &SetField) -> Option<Self> {
        let up = match set.field {
            Field::EthDst => 48,
            Field::EthSrc => 0,
            _ => return None,
        };
        let (value, mask) = ((set.value & set.mask) << up, set.mask << up);
        Some(Self {
            first: Bits { value: ((value >> 32) as u64).to_be(), mask: ((mask >> 32) as u64).to_be() },
            last: Bits { value: (value as u32).to_be(), mask: (mask as u32).to_be() },
        })
    }

    /// Returns one write that has the effect of `self`, then `next`.
    pub fn then(self, next: Self) -> Self {
        let Self { first, last } = self;
        Self {
            first: Bits {
                value: (first.value & !next.first.mask) | next.first.value,
                mask: first.mask | next.first.mask,
            },
            last: Bits {
                value: (last.value & !next.last.mask) | next.last.value,
                mask: last.mask | next.last.mask,
            },
        }
    }

    /// Returns the addresses that the write replaces, or `None` if it writes only some bits of an address.
    #[must_use]
    pub fn as_replacement(&self) -> Option<MacReplacement> {
        let bytes = |first: u64, last: u32| {
            let (first, last) = (first.to_ne_bytes(), last.to_ne_bytes());
            let mut bytes = [0; MACS_BYTES];
            bytes[..8].copy_from_slice(&first);
            bytes[8..].copy_from_slice(&last);
            bytes
        };
        let masks = bytes(self.first.mask, self.last.mask);
        let (destination, source) = masks.split_at(MACS_BYTES / 2);
        let is_all = |masks: &[u8], byte: u8| masks.iter().all(|mask| *mask == byte);
        let replaces = match [destination, source].map(|masks| (is_all(masks, 0xff), is_all(masks, 0))) {
            [(true, _), (true, _)] => Replaces::Both,
            [(true, _), (_, true)] => Replaces::Destination,
            [(_, true), (true, _)] => Replaces::Source,
            [(_, true), (_, true)] => Replaces::None,
            _ => return None,
        };
        Some(MacReplacement { bytes: bytes(self.first.value, self.last.value), replaces })
    }

    /// Writes the bits.
    #[inline]
    pub fn run(&self, packet: &mut PacketData) {
        self.write(packet.frame.bytes_mut());
    }

    /// Writes the bits to a packet's bytes.
    #[inline]
    pub(crate) fn write(&self, bytes: &mut [u8]) {
        let Some(macs) = bytes.first_chunk_mut::<12>() else { return };
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *macs;
        let first = u64::from_ne_bytes([a, b, c, d, e, f, g, h]) & !self.first.mask | self.first.value;
        let last = u32::from_ne_bytes([i, j, k, l]) & !self.last.mask | self.last.value;
        let [a, b, c, d, e, f, g, h] = first.to_ne_bytes();
        let [i, j, k, l] = last.to_ne_bytes();
        *macs = [a, b, c, d, e, f, g, h, i, j, k, l];
    }
}

/// Length of both addresses in bytes.
const MACS_BYTES: usize = 12;

/// The MAC addresses that are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replaces {
    None,
    Destination,
    Source,
    Both,
}

impl Replaces {
    /// Returns masks of the bits that are kept: of the first 8 bytes of a packet, and of the next 4.
    #[inline(always)]
    fn kept(self) -> (u64, u32) {
        const KEPT: [(u64, u32); 4] = [
            (u64::MAX, u32::MAX),
            (u64::from_ne_bytes([0, 0, 0, 0, 0, 0, 0xff, 0xff]), u32::MAX),
            (u64::from_ne_bytes([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]), 0),
            (0, 0),
        ];
        KEPT[self as usize % KEPT.len()]
    }
}

/// Whole MAC addresses that replace one or both addresses of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacReplacement {
    /// New first 12 bytes of the packet, with zeros in the bytes that are kept.
    bytes: [u8; MACS_BYTES],
    replaces: Replaces,
}

impl MacReplacement {
    /// A replacement that changes nothing.
    pub const NONE: Self = Self { bytes: [0; MACS_BYTES], replaces: Replaces::None };

    /// Replaces the addresses of a packet that begins with `start`.
    #[inline(always)]
    pub fn write(&self, start: &mut FrameStart) {
        // All 12 bytes are written, because copies of variable length would be compiled to function calls.
        let (first_kept, last_kept) = match self.replaces {
            Replaces::Both => (0, 0),
            replaces => replaces.kept(),
        };
        let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = *start;
        let first = u64::from_ne_bytes([a, b, c, d, e, f, g, h]) & first_kept;
        let last = u32::from_ne_bytes([i, j, k, l]) & last_kept;
        let [a, b, c, d, e, f, g, h, i, j, k, l] = self.bytes;
        let first = first | u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
        let last = last | u32::from_ne_bytes([i, j, k, l]);
        start[..8].copy_from_slice(&first.to_ne_bytes());
        start[8..MACS_BYTES].copy_from_slice(&last.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::PortNo;
    use frame::Frame;

    fn write(field: Field, value: u128, mask: u128) -> MacWrite {
        MacWrite::compile(&SetField { field, value, mask }).unwrap()
    }

    #[test]
    fn successive_mac_writes_are_merged() {
        let full = Field::EthDst.full_mask();
        let src = write(Field::EthSrc, 0x0200_0000_0001, full);
        let dst = write(Field::EthDst, 0x0a0b_0c0d_0e0f, full);
        let part = write(Field::EthDst, 0xffff_0000, 0x00ff_0000);
        let mut packet = PacketData::empty();
        packet.admit(Frame::from_bytes(&[0x55; 60]), PortNo(1));
        src.then(dst).then(part).run(&mut packet);
        let bytes = packet.frame.bytes();
        assert_eq!(bytes[..6], [0x0a, 0x0b, 0x0c, 0xff, 0x0e, 0x0f]);
        assert_eq!(bytes[6..12], [2, 0, 0, 0, 0, 1]);
        assert!(bytes[12..].iter().all(|byte| *byte == 0x55));
        part.run(&mut packet);
        write(Field::EthSrc, 0xf0, 0xf0).run(&mut packet);
        assert_eq!(packet.frame.bytes()[..12], [0x0a, 0x0b, 0x0c, 0xff, 0x0e, 0x0f, 2, 0, 0, 0, 0, 0xf1]);
        let mut start = [0x55; size_of::<FrameStart>()];
        let mut replaced = |write: MacWrite| {
            write.as_replacement()?.write(&mut start);
            <[u8; 13]>::try_from(&start[..13]).ok()
        };
        let (mac, other) = ([0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f], [2, 0, 0, 0, 0, 1]);
        assert_eq!(replaced(dst), Some([&mac[..], &[0x55; 7]].concat().try_into().unwrap()));
        assert_eq!(replaced(src), Some([&mac[..], &other, &[0x55]].concat().try_into().unwrap()));
        let both = write(Field::EthSrc, 0, full).then(write(Field::EthDst, 0, full));
        assert_eq!(replaced(both), Some([&[0; 12][..], &[0x55]].concat().try_into().unwrap()));
        assert_eq!(MacWrite::NONE.as_replacement(), Some(MacReplacement::NONE));
        assert_eq!((replaced(part), replaced(part.then(src))), (None, None), "some bits of an address");
        assert!(MacWrite::compile(&SetField { field: Field::EthType, value: 1, mask: 1 }).is_none());
    }
}
