// SPDX-License-Identifier: Apache-2.0
//! Set-field on the MAC addresses.
//!
//! A router rewrites them in every packet, so all successive writes are merged into one load and one store.
//! No checksum covers the addresses, and the offsets of parsed headers stay valid.

use crate::packet_data::PacketData;
use flow::Field;
use flow::action::SetField;

/// Bits to write into the frame's first 12 bytes: destination address, then source address. The words are in
/// memory order, so that no write swaps bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacWrite {
    /// Bits of bytes 0 to 7.
    first: Bits<u64>,
    /// Bits of bytes 8 to 11.
    last: Bits<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bits<T> {
    value: T,
    mask: T,
}

impl MacWrite {
    /// Writes nothing.
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

    /// Returns one write that has the effect of `self` followed by `next`.
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

    /// Writes the bits. Every admitted packet has both addresses.
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

#[cfg(test)]
mod tests {
    use super::*;
    use flow::PortNo;
    use frame::Frame;

    fn write(field: Field, value: u128, mask: u128) -> MacWrite {
        MacWrite::compile(&SetField { field, value, mask }).unwrap()
    }

    #[test]
    fn several_writes_are_one() {
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
        assert!(MacWrite::compile(&SetField { field: Field::EthType, value: 1, mask: 1 }).is_none());
    }
}
