// SPDX-License-Identifier: Apache-2.0
//! The key compiler: turns a table's key plan into loads, so that building a key is a few shifts a field.

use crate::packet::Packet;
use flow::{Base, Field, SliceBase, ext};
use tables::KeyPlan;
use wire::Depth;
use wire::layers::header;

/// One load: up to 64 bits from a base into a word of the key.
#[derive(Clone, Copy, Debug)]
struct Load {
    base: Base,
    /// First byte from the base.
    byte: u16,
    /// Bits before the field's first in that byte.
    skip: u8,
    bits: u8,
    word: u8,
    shift: u8,
    /// Headers that must be there, else the bits stay 0.
    needs: u32,
    /// Where the slice this belongs to ends, in bits from its base; 0 for named fields.
    slice_end_bits: u32,
}

/// One slice's presence bit.
#[derive(Clone, Copy, Debug)]
struct Presence {
    base: Base,
    end_bits: u32,
}

/// Builds the keys of one table.
#[derive(Debug, Default)]
pub struct Extractor {
    loads: Vec<Load>,
    slices: Vec<Presence>,
    words: usize,
    needs: u32,
    depth: Depth,
    has_presence: bool,
}

/// How deep the parser must go for a field.
fn depth_of(field: Field) -> Depth {
    let location = field.location();
    match (field, location.base) {
        (Field::Slice(s), Base::Ext) => {
            let end = s.offset_bits + s.length_bits;
            if end <= ext::ETH_TYPE_BIT {
                Depth::None
            } else if end <= ext::IP_TOS_BIT {
                Depth::L2
            } else {
                Depth::L3
            }
        }
        (Field::Slice(s), _) => match s.base {
            SliceBase::Packet | SliceBase::Metadata => Depth::None,
            SliceBase::L3 => Depth::L2,
            SliceBase::L4 => Depth::L4,
        },
        (Field::EthType | Field::VlanVid | Field::VlanPcp, _) => Depth::L2,
        (_, Base::Frame) => Depth::None,
        (_, Base::Ext) if location.needs == 0 => Depth::None,
        (_, Base::Ext | Base::L3) => Depth::L3,
        (_, Base::L4 | Base::NdSll | Base::NdTll) => Depth::L4,
    }
}

/// Any header whose presence makes `Layers::l4` meaningful.
pub(crate) const L4_HEADERS: u32 = header::TCP | header::UDP | header::SCTP | header::ICMPV4 | header::ICMPV6;

impl Extractor {
    /// Compiles a plan.
    #[must_use]
    pub fn new(plan: &KeyPlan) -> Self {
        let end_of = |field: Field| match field {
            Field::Slice(s) => u32::from(s.offset_bits) + u32::from(s.length_bits),
            _ => 0,
        };
        let loads = plan
            .parts()
            .iter()
            .map(|part| {
                let location = part.field.location();
                let bit = location.offset_bits + part.from_bit;
                Load {
                    base: location.base,
                    byte: bit / 8,
                    skip: (bit % 8) as u8,
                    bits: part.bits,
                    word: part.word,
                    shift: part.shift,
                    needs: location.needs,
                    slice_end_bits: end_of(part.field),
                }
            })
            .collect();
        let slices = plan
            .slices()
            .iter()
            .map(|&field| Presence { base: field.location().base, end_bits: end_of(field) })
            .collect();
        Self {
            loads,
            slices,
            words: plan.words(),
            needs: plan.needs(),
            depth: plan.fields().iter().map(|&field| depth_of(field)).max().unwrap_or_default(),
            has_presence: plan.has_presence(),
        }
    }

    /// Words of a key.
    #[must_use]
    #[inline]
    pub fn words(&self) -> usize {
        self.words
    }

    /// Writes the packet's key. `key` has [`Extractor::words`] words.
    #[inline]
    pub(crate) fn extract(&self, packet: &mut Packet, key: &mut [u64]) {
        packet.locate(self.depth);
        key.fill(0);
        let present = packet.layers.present;
        if self.has_presence {
            key[0] = u64::from(present & self.needs);
            for (number, slice) in self.slices.iter().enumerate() {
                key[0] |=
                    u64::from(slice_start(packet, slice.base, slice.end_bits).is_some()) << (32 + number);
            }
        }
        for load in &self.loads {
            if present & load.needs != load.needs {
                continue;
            }
            let start = if load.slice_end_bits == 0 {
                base_start(packet, load.base)
            } else {
                let Some(start) = slice_start(packet, load.base, load.slice_end_bits) else { continue };
                start
            };
            let bytes = if load.base == Base::Ext { packet.ext.bytes() } else { packet.frame.window() };
            key[usize::from(load.word)] |=
                read_bits(bytes, start + usize::from(load.byte), load.skip, load.bits) << load.shift;
        }
    }
}

/// Where a base starts. Meaningful only while the header that the base belongs to is present.
#[inline]
pub(crate) fn base_start(packet: &Packet, base: Base) -> usize {
    match base {
        Base::Frame | Base::Ext => 0,
        Base::L3 => usize::from(packet.layers.l3),
        Base::L4 => usize::from(packet.layers.l4),
        Base::NdSll => usize::from(packet.layers.nd_sll),
        Base::NdTll => usize::from(packet.layers.nd_tll),
    }
}

/// Where a slice's base starts, if the packet reaches the slice's end.
#[inline]
pub(crate) fn slice_start(packet: &Packet, base: Base, end_bits: u32) -> Option<usize> {
    let there = match base {
        Base::L3 => packet.layers.l3 != 0,
        Base::L4 => packet.layers.present & L4_HEADERS != 0,
        _ => true,
    };
    let start = base_start(packet, base);
    let len = if base == Base::Ext { ext::EXT_BYTES } else { packet.frame.len() };
    (there && (start * 8) as u64 + u64::from(end_bits) <= (len * 8) as u64).then_some(start)
}

/// Reads `bits` (1 to 64) bits that begin `skip` bits into byte `at`, right-aligned. Bytes behind the buffer read as 0.
#[inline]
pub(crate) fn read_bits(bytes: &[u8], at: usize, skip: u8, bits: u8) -> u64 {
    let word = match bytes.get(at..at + 8) {
        Some(eight) => u64::from_be_bytes([
            eight[0], eight[1], eight[2], eight[3], eight[4], eight[5], eight[6], eight[7],
        ]),
        None => {
            let mut eight = [0; 8];
            let tail = bytes.get(at..).unwrap_or_default();
            eight[..tail.len()].copy_from_slice(tail);
            u64::from_be_bytes(eight)
        }
    };
    let reach = skip + bits;
    let value = if reach <= 64 {
        word >> (64 - reach)
    } else {
        // The field ends in a ninth byte.
        let ninth = bytes.get(at + 8).copied().unwrap_or(0);
        word << (reach - 64) | u64::from(ninth) >> (72 - reach)
    };
    value & (u64::MAX >> (64 - bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_at_any_place() {
        let bytes: Vec<u8> = (1..=20).map(|i| i * 11).collect();
        let all = |from: usize, bits: usize| {
            (from..from + bits)
                .fold(0u64, |value, bit| value << 1 | u64::from(bytes[bit / 8] >> (7 - bit % 8) & 1))
        };
        for from in 0..80 {
            for bits in 1..=64 {
                let got = read_bits(&bytes, from / 8, (from % 8) as u8, bits as u8);
                assert_eq!(got, all(from, bits), "{bits} bits from {from}");
            }
        }
        assert_eq!(read_bits(&[0xab], 0, 4, 8), 0xb0);
        assert_eq!(read_bits(&[0xab], 5, 0, 64), 0);
    }
}
