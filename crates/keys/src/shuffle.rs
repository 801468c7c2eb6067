// SPDX-License-Identifier: Apache-2.0
//! Keys of single tables, each built by one byte shuffle.
//!
//! A plan is eligible if each field has the same bit position within a byte in the packet and in the key, no
//! two fields share a byte of the key, and the row is at most 64 bytes long. Other plans, and packets with
//! examined bytes beyond the first 64, use loads.

use crate::simd::{Permute, PermuteChoice, RowShape, RowSource};
use actions::{PacketData, SliceBounds};
use arrayvec::ArrayVec;
use engines::KeyPlan;
use flow::{Field, FieldBase, Limits};

/// Number of bytes at the start of a frame from which a row can be built.
const REACH_BYTES: u16 = 64;

/// Bit layout of a packet's kind: header presence bits, the reachable length of the frame, and the offsets of
/// L3 and L4.
const PRESENT: u32 = (1 << LEN_BIT) - 1;
const LEN_BIT: u32 = 24;
const L3_BIT: u32 = 32;
const L4_BIT: u32 = 48;

/// Kind of packets for which the shuffle builds no row, because fewer than [`REACH_BYTES`] bytes can be read.
const NO_KIND: u64 = u64::MAX;

/// Builds the rows of one table.
#[derive(Debug)]
pub struct Shuffle {
    permute: Permute,
    words: usize,
    /// Greatest header offsets at which all bytes of the row are in reach.
    l3_max: u16,
    l4_max: u16,
    /// Headers whose presence bits are part of word 0.
    needs: u32,
    has_presence: bool,
    headers: Vec<Headers>,
    slices: Vec<Slice>,
}

/// Bytes of the row that are 0 unless all headers of `needs` are present.
#[derive(Debug)]
struct Headers {
    needs: u32,
    bytes: u64,
}

/// Bytes of the row that are 0 unless the packet reaches the end of the slice.
#[derive(Debug)]
struct Slice {
    base: FieldBase,
    end_bits: u32,
    bytes: u64,
}

impl Shuffle {
    /// Compiles a plan. Returns `None` if the plan is not eligible or the core lacks the shuffle instruction.
    #[must_use]
    pub fn new(plan: &KeyPlan) -> Option<Self> {
        let mut choice = PermuteChoice { from: [0; 64], mask: [0; 64], l3: 0, l4: 0 };
        let mut headers: Vec<Headers> = Vec::new();
        let mut slices: Vec<Slice> = Vec::new();
        let mut reach = [0u16; 2];
        for field in plan.slices() {
            let Field::Slice(s) = field else { continue };
            let end_bits = u32::from(s.offset_bits) + u32::from(s.length_bits);
            slices.push(Slice { base: field.location().base, end_bits, bytes: 0 });
        }
        for part in plan.parts() {
            let location = part.field.location();
            let bit = location.offset_bits + part.from_bit;
            let end = bit + u16::from(part.bits);
            // The field must have the same bit position within a byte in the packet and in the key.
            if (end + u16::from(part.shift)) % 8 != 0 {
                return None;
            }
            let (last, lowest) = ((end - 1) / 8, u16::from(part.shift / 8));
            let highest = (u16::from(part.shift) + u16::from(part.bits) - 1) / 8;
            let mut bytes = 0u64;
            for byte in lowest..=highest {
                let at = usize::from(part.word) * 8 + usize::from(byte);
                let from = last - (byte - lowest);
                let is_ext = location.base == FieldBase::Ext;
                // Fields must not share a byte of the key, and each byte must be in reach.
                if at >= 64 || choice.mask[at] != 0 || from >= REACH_BYTES {
                    return None;
                }
                choice.from[at] = from as u8 | if is_ext { REACH_BYTES as u8 } else { 0 };
                let ones = (u64::MAX >> (64 - part.bits)) << part.shift;
                choice.mask[at] = (ones >> (8 * byte)) as u8;
                bytes |= 1 << at;
            }
            match location.base {
                FieldBase::Frame | FieldBase::Ext => {}
                FieldBase::L3 => {
                    choice.l3 |= bytes;
                    reach[0] = reach[0].max(last + 1);
                }
                FieldBase::L4 => {
                    choice.l4 |= bytes;
                    reach[1] = reach[1].max(last + 1);
                }
                FieldBase::NdSll | FieldBase::NdTll | FieldBase::Moving => return None,
            }
            if let Some(number) = plan.slices().iter().position(|slice| *slice == part.field) {
                slices[number].bytes |= bytes;
            } else if let Some(same) = headers.iter_mut().find(|same| same.needs == location.needs) {
                same.bytes |= bytes;
            } else if location.needs != 0 {
                headers.push(Headers { needs: location.needs, bytes });
            }
        }
        Some(Self {
            permute: Permute::new(choice)?,
            words: plan.words(),
            l3_max: REACH_BYTES - reach[0],
            l4_max: REACH_BYTES - reach[1],
            needs: plan.needs(),
            has_presence: plan.has_presence(),
            headers,
            slices,
        })
    }

    /// Writes the rows of the packets in `waiting`. `data` returns a packet with parsed headers. Clears the
    /// bits outside `mask` (a row, or empty for no mask). Calls `other` for packets whose headers are out of
    /// reach.
    pub fn rows<'p, P: Copy>(
        &self,
        waiting: &[P],
        data: impl Fn(P) -> &'p PacketData,
        keys: &mut [u64],
        mask: &[u64],
        mut other: impl FnMut(P, &mut [u64]),
    ) {
        const BURST: usize = Limits::BURST_PACKETS;
        let words = self.words;
        for (waiting, keys) in waiting.chunks(BURST).zip(keys.chunks_mut(BURST * words)) {
            let mut sources = ArrayVec::<RowSource<'_>, BURST>::new();
            for packet in waiting {
                let packet = data(*packet);
                let frame = packet.frame.window().first_chunk();
                let (frame, kind) = frame.map_or((&[0; 64], NO_KIND), |frame| (frame, self.kind(packet)));
                sources.push(RowSource { frame, ext: packet.ext.first_chunk(), kind });
            }
            if !self.permute.rows(&sources, words, keys, mask, |kind| self.shape(kind)) {
                for ((packet, source), row) in waiting.iter().zip(&sources).zip(keys.chunks_exact_mut(words))
                {
                    if !self.suits(source.kind) {
                        other(*packet, row);
                    }
                }
            }
        }
    }

    /// Returns the packet's kind, which determines the shape of its row: headers, their offsets, and the
    /// reachable length.
    #[inline(always)]
    fn kind(&self, packet: &PacketData) -> u64 {
        let layers = &packet.layers;
        let reached =
            if self.slices.is_empty() { 0 } else { packet.frame.len().min(REACH_BYTES.into()) as u64 };
        let present = u64::from(layers.present & PRESENT) | reached << LEN_BIT;
        present | u64::from(layers.l3) << L3_BIT | u64::from(layers.l4) << L4_BIT
    }

    /// Returns whether all bytes of the headers are in reach of the shuffle.
    #[inline(always)]
    fn suits(&self, kind: u64) -> bool {
        (kind >> L3_BIT) as u16 <= self.l3_max && (kind >> L4_BIT) as u16 <= self.l4_max
    }

    /// Returns the shape of the rows of a kind, or `None` if its headers are out of reach.
    #[inline(never)]
    fn shape(&self, kind: u64) -> Option<RowShape> {
        let present = kind as u32 & PRESENT;
        let (l3, l4) = ((kind >> L3_BIT) as u16, (kind >> L4_BIT) as u16);
        if !self.suits(kind) {
            return None;
        }
        let mut keep = u64::MAX;
        for headers in &self.headers {
            let there = present & headers.needs == headers.needs;
            keep &= if there { u64::MAX } else { !headers.bytes };
        }
        let mut presence = u64::from(present & self.needs);
        let len = (kind >> LEN_BIT & 0x7f) as usize;
        let ends = SliceBounds { present, l3, l4, base: 0, len };
        for (number, slice) in self.slices.iter().enumerate() {
            let there = ends.slice_start(slice.base, slice.end_bits).is_some();
            keep &= if there { u64::MAX } else { !slice.bytes };
            presence |= u64::from(there) << (32 + number);
        }
        Some(RowShape { l3: l3 as u8, l4: l4 as u8, keep, first: self.has_presence.then_some(presence) })
    }
}
