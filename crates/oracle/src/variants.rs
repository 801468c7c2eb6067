// SPDX-License-Identifier: Apache-2.0
//! Variants of a packet: the same packet with other headers, other lengths, or single changed bits. Comparing
//! the keys of variants shows on which bits a key depends.

use crate::rules::edits::BASES;
use fastrand::Rng;
use flow::{Field, FieldBase, PortNo};
use reference::ExaminedBits;
use wire::layers::header;
use wire::{Depth, Layers};

/// A packet and the port on which it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub port: PortNo,
    pub bytes: Vec<u8>,
}

/// Length of the shortest frame that a switch looks up, in bytes.
const FRAME_BYTES_MIN: usize = 14;

/// EtherTypes of known headers, one unknown EtherType, and a value that is a length.
const ETH_TYPES: [u16; 9] = [0x0800, 0x86dd, 0x0806, 0x8847, 0x8848, 0x88e7, 0x8100, 0x9999, 0x0040];

/// Values of the flags and the fragment offset in IPv4.
const FRAGMENTS: [u16; 5] = [0, 0x4000, 0x2000, 0x2005, 0x0007];

/// Numbers of IPv6 extension headers: hop-by-hop, destination options, routing, fragment, mobility.
const EXTENSIONS: [u8; 5] = [0, 60, 43, 44, 135];

const PROTOCOLS: [u8; 7] = [1, 6, 17, 58, 132, 47, 59];

impl Subject {
    /// Returns a variant after one to three changes. `examined` holds the bits that rules examine.
    pub fn variant(&self, rng: &mut Rng, examined: &ExaminedBits) -> Self {
        let mut made = self.clone();
        for _ in 0..rng.usize(1..4) {
            made.change(rng, examined);
        }
        if made.bytes.len() < FRAME_BYTES_MIN {
            made.bytes.resize(FRAME_BYTES_MIN, 0);
        }
        made
    }

    fn change(&mut self, rng: &mut Rng, examined: &ExaminedBits) {
        let layers = wire::locate(&self.bytes, Depth::L4);
        let has = |headers: u32| layers.present & headers != 0;
        let (l3, l4, len) = (usize::from(layers.l3), usize::from(layers.l4), self.bytes.len());
        match rng.u8(0..16) {
            0 => self.port = PortNo(self.port.0 % 8 + 1),
            1 => {
                let tag = [0x81, 0x00, rng.u8(0..4) << 5, rng.u8(0..3)];
                self.bytes.splice(12..12, tag);
            }
            2 if len > 18 => drop(self.bytes.drain(12..16)),
            3 => self.bytes.resize(len + rng.usize(1..20), rng.u8(..)),
            4 => self.bytes.truncate(rng.usize(FRAME_BYTES_MIN..=len.max(FRAME_BYTES_MIN))),
            5 => self.flip(rng.usize(0..8 * len.min(120))),
            6 if has(header::IPV4) => self.add_options(rng, l3),
            7 if has(header::IPV4) => self.write(l3 + 6, &FRAGMENTS[rng.usize(0..5)].to_be_bytes()),
            8 if has(header::IPV6) => self.add_extension(rng, l3),
            9 if has(header::IPV6) => self.write(l3 + 6, &[PROTOCOLS[rng.usize(0..7)]]),
            9 if has(header::IPV4) => self.write(l3 + 9, &[PROTOCOLS[rng.usize(0..7)]]),
            10 => self.write(layers.type_at.into(), &ETH_TYPES[rng.usize(0..9)].to_be_bytes()),
            // TTL and header checksum in IPv4; payload length, next header and hop limit in IPv6.
            11 if has(header::IP) => self.write(l3 + [7, 8, 10][rng.usize(0..3)], &[rng.u8(..)]),
            // Total length in IPv4; payload length in IPv6.
            12 if has(header::IPV4) => self.write(l3 + 3, &[rng.u8(18..60)]),
            12 if has(header::IPV6) => self.write(l3 + 5, &[rng.u8(0..40)]),
            13 if has(header::IP) => self.write(l4 + rng.usize(0..24), &[rng.u8(..)]),
            _ => self.flip_examined(rng, &layers, examined),
        }
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        if let Some(there) = self.bytes.get_mut(at..at + bytes.len()) {
            there.copy_from_slice(bytes);
        }
    }

    fn flip(&mut self, bit: usize) {
        if let Some(byte) = self.bytes.get_mut(bit / 8) {
            *byte ^= 0x80 >> (bit % 8);
        }
    }

    /// Flips one examined bit of a field that is in the frame.
    fn flip_examined(&mut self, rng: &mut Rng, layers: &Layers, examined: &ExaminedBits) {
        let Some((field, mask)) = rng.choice(&examined.0) else { return };
        let location = field.location();
        let start = match location.base {
            FieldBase::Frame => 0,
            FieldBase::Moving => BASES[rng.usize(0..BASES.len())],
            FieldBase::L3 => layers.l3,
            FieldBase::L4 => layers.l4,
            FieldBase::NdSll => layers.nd_sll,
            FieldBase::NdTll => layers.nd_tll,
            FieldBase::Ext => return self.flip_parsed(rng, *field, layers),
        };
        let bits: Vec<u16> = (0..location.length_bits).filter(|bit| mask >> bit & 1 != 0).collect();
        let Some(bit) = rng.choice(&bits) else { return };
        let at = usize::from(location.offset_bits) + usize::from(location.length_bits - 1 - bit);
        self.flip(8 * usize::from(start) + at);
    }

    /// Flips a bit of a field that the parser derives.
    fn flip_parsed(&mut self, rng: &mut Rng, field: Field, layers: &Layers) {
        let l3 = 8 * usize::from(layers.l3);
        let tos = if layers.present & header::IPV6 != 0 { l3 + 4 } else { l3 + 8 };
        match field {
            Field::VlanVid | Field::VlanPcp => self.flip(8 * 14 + rng.usize(0..16)),
            Field::IpDscp | Field::IpEcn => self.flip(tos + rng.usize(0..8)),
            Field::EthType => self.flip(8 * usize::from(layers.type_at) + rng.usize(0..16)),
            _ => self.flip([tos, l3 + 9 * 8, l3 + 6 * 8][rng.usize(0..3)] + rng.usize(0..8)),
        }
    }

    /// Adds four bytes of options to IPv4.
    fn add_options(&mut self, rng: &mut Rng, l3: usize) {
        let words = self.bytes[l3] & 0x0f;
        if words < 15 {
            let end = l3 + 4 * usize::from(words);
            self.bytes.splice(end..end, [1, 1, rng.u8(..), 0]);
            self.bytes[l3] += 1;
            let total = u16::from_be_bytes([self.bytes[l3 + 2], self.bytes[l3 + 3]]).saturating_add(4);
            self.write(l3 + 2, &total.to_be_bytes());
        }
    }

    /// Adds an extension header of eight bytes after the fixed header of IPv6.
    fn add_extension(&mut self, rng: &mut Rng, l3: usize) {
        let kind = EXTENSIONS[rng.usize(0..5)];
        let next = std::mem::replace(&mut self.bytes[l3 + 6], kind);
        let offset = if kind == 44 { [0, 0, 1, 8][rng.usize(0..4)] } else { 0 };
        self.bytes.splice(l3 + 40..l3 + 40, [next, 0, 0, offset, 0, 0, 0, 0]);
        let length = u16::from_be_bytes([self.bytes[l3 + 4], self.bytes[l3 + 5]]).saturating_add(8);
        self.write(l3 + 4, &length.to_be_bytes());
    }
}
