// SPDX-License-Identifier: Apache-2.0
//! Random edits, and bases of tables. In some cases, each table expects packets with a certain base, and most
//! entries move the base to where their next table expects it.

use super::matching::slice;
use super::{Reach, Scope, Style};
use crate::templates::mac;
use fastrand::Rng;
use flow::{Action, BitRange, CutOrigin, Edit, Field, Limits, Slice, SliceBase, TableId};
use wire::layers::header;

/// Usual bases, in bytes: the start of the frame, or behind an Ethernet header, a tag or an IPv4 header.
pub(crate) const BASES: [u16; 8] = [0, 0, 0, 4, 14, 14, 18, 34];

/// Number of bits from the base that slices may contain.
const SLICE_BITS: u32 = 96;

/// Returns a slice that is counted from the base.
pub(super) fn moving_slice(rng: &mut Rng) -> Field {
    let length = [1, 4, 8, 8, 12, 16, 16, 32, 48][rng.usize(0..9)];
    let offset = if rng.bool() {
        rng.u32(0..=(SLICE_BITS - length) / 8) * 8
    } else {
        rng.u32(0..=SLICE_BITS - length)
    };
    // The slice is always within the limits, so the alternative is never used.
    Slice::new(SliceBase::Moving, offset, length).map_or(Field::EthType, Field::Slice)
}

impl Style {
    /// Returns the action that moves the base of packets from one table to the next.
    pub(super) fn step(&self, rng: &mut Rng, from: TableId, to: TableId) -> Option<Action> {
        if !self.moving {
            return None;
        }
        let base = |table| i32::from(self.base_of(table));
        let bytes = match rng.u8(0..16) {
            0 if rng.bool() => rng.i32(-20..40),
            // Farther than many packets are long.
            1 if rng.u8(0..8) == 0 => rng.i32(-200..1_536),
            _ => base(to) - base(from),
        };
        (bytes != 0).then(|| Edit::MoveBase(bytes as i16).into())
    }

    /// Returns an edit.
    pub(super) fn edit(&self, rng: &mut Rng) -> Action {
        let bytes = |rng: &mut Rng, first: u16, count: u16| {
            let (first, count) = (rng.u16(0..first), rng.u16(1..=count));
            BitRange { offset_bits: 8 * first, length_bits: 8 * count }
        };
        let made = match rng.u8(0..12) {
            0..3 => {
                let range = bytes(rng, 20, 16);
                let value = rng.u128(..) >> (128 - u32::from(range.length_bits));
                Edit::AddField { range, value }
            }
            3..5 => {
                let count = if rng.u8(0..16) == 0 { 80 } else { 8 };
                Edit::DeleteField(bytes(rng, 20, count))
            }
            5 if rng.u8(0..4) == 0 => self.cut(rng),
            5 => {
                Edit::MoveBase([-4, 2, 4, 4, 14, if rng.u8(0..8) == 0 { 1_000 } else { 1 }][rng.usize(0..6)])
            }
            6..8 => {
                let slice = Slice { length_bits: rng.u16(1..=32), ..self.target(rng) };
                Edit::ModifyField { slice, increment: if rng.bool() { rng.i32(-2..3) } else { rng.i32(..) } }
            }
            8..10 => {
                let (mut from, mut to) = (self.source(rng), self.target(rng));
                let length_bits = from.length_bits.min(to.length_bits);
                (from.length_bits, to.length_bits) = (length_bits, length_bits);
                Edit::CopyField { from, to }
            }
            _ => {
                let length_bits = [8, 16, 16, 16, 32][rng.usize(0..5)];
                let checksum = BitRange { length_bits, ..bytes(rng, 12, 1) };
                Edit::CalculateChecksum { checksum, covered: bytes(rng, 12, 24) }
            }
        };
        // Every generated edit is valid, so the alternative is never used.
        if made.check().is_ok() { made.into() } else { Edit::MoveBase(0).into() }
    }

    /// Returns an edit that deletes the bytes before a position.
    fn cut(&self, rng: &mut Rng) -> Edit {
        let origin = if rng.u8(0..3) == 0 { CutOrigin::Packet } else { CutOrigin::Base };
        // Some positions are behind the end of many packets.
        let bytes = [0, 0, 0, 1, 4, 4, 14, if rng.u8(0..8) == 0 { 400 } else { 20 }][rng.usize(0..8)];
        Edit::CutFront { origin, bytes }
    }

    /// Returns edits that leave a part of the packet, in some cases behind bits of the metadata, as OUTPUT of
    /// POF does. They are the last before the outputs of an entry without a next table.
    pub(super) fn sent_part(&self, rng: &mut Rng) -> Vec<Action> {
        if !self.moving || rng.u8(0..10) > 0 {
            return Vec::new();
        }
        let mut made = vec![self.cut(rng).into()];
        if rng.bool() {
            let range = BitRange { offset_bits: 0, length_bits: 8 * rng.u16(1..=16) };
            let from = Slice { base: SliceBase::Metadata, offset_bits: 64, length_bits: range.length_bits };
            made.push(Edit::AddField { range, value: 0 }.into());
            made.push(Edit::CopyField { from, to: range.slice() }.into());
        }
        made
    }

    /// Returns edits that rewrite the scope's packets as a router does. Returns `None` if the case has no
    /// moving base, if the packets are not IP, or if their base is behind the start of the IP header, and
    /// otherwise at random.
    pub(super) fn edited_route(
        &self,
        rng: &mut Rng,
        table: TableId,
        scope: Scope<'_>,
    ) -> Option<Vec<Action>> {
        if !self.moving || rng.u8(0..4) == 0 {
            return None;
        }
        let (layers, base) = (scope.template.layers(), self.base_of(table));
        let header_bits = 8 * layers.l3.checked_sub(base)?;
        let range = |from: u16, length_bits| BitRange { offset_bits: header_bits + from, length_bits };
        let decrement = |from| Edit::ModifyField { slice: range(from, 8).slice(), increment: -1 };
        let mut made = match layers.present {
            present if present & header::IPV4 != 0 => {
                let sum = Edit::CalculateChecksum { checksum: range(80, 16), covered: range(0, 160) };
                vec![decrement(64).into(), sum.into()]
            }
            present if present & header::IPV6 != 0 => vec![decrement(56).into()],
            _ => return None,
        };
        made.extend((base > 0).then(|| Edit::MoveBase(-(base as i16)).into()));
        for offset_bits in [0, 48] {
            let bytes = mac(rng).into_iter().fold(0, |value, byte| value << 8 | u128::from(byte));
            made.push(Action::set(Field::Slice(BitRange { offset_bits, length_bits: 48 }.slice()), bytes));
        }
        Some(made)
    }

    /// Returns a slice that can be read.
    fn source(&self, rng: &mut Rng) -> Slice {
        let reach = if self.reach == Reach::Distant { Reach::Near } else { self.reach };
        let made = if rng.bool() { moving_slice(rng) } else { slice(rng, reach) };
        match made {
            // Many packets have no header of the upper layer.
            Field::Slice(made) if made.base != SliceBase::L4 || rng.u8(0..8) == 0 => made,
            _ => Slice { base: SliceBase::Moving, offset_bits: rng.u16(0..64), length_bits: rng.u16(1..=32) },
        }
    }

    /// Returns a slice that can be written. At least 32 more bits are within the limits of its base.
    fn target(&self, rng: &mut Rng) -> Slice {
        for _ in 0..8 {
            let made = self.source(rng);
            let longer = Slice { length_bits: made.length_bits.max(32), ..made };
            let ends = u32::from(longer.offset_bits + longer.length_bits) <= Limits::SLICE_END_BITS;
            if Field::Slice(longer).settable() && ends {
                return made;
            }
        }
        Slice { base: SliceBase::Metadata, offset_bits: 64, length_bits: 32 }
    }
}
