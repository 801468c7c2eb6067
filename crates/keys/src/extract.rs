// SPDX-License-Identifier: Apache-2.0
//! The key compiler: translates a table's key plan into steps that build its lookup keys.
//!
//! Where possible, one byte shuffle builds a whole key ([`Shuffle`]). Otherwise a list of loads builds the
//! key.

#[cfg(test)]
mod tests;

use crate::bits::{eight_bytes, read_bits};
use crate::depth::depth_of;
use crate::shuffle::Shuffle;
use actions::PacketData;
use engines::KeyPlan;
use flow::{Field, FieldBase};
use wire::{Depth, Layers};

/// A packet whose keys are built.
pub trait KeyedPacket {
    /// Returns the packet's bytes, headers and registers.
    fn data(&self) -> &PacketData;

    /// Returns the packet's bytes, headers and registers for changes.
    fn data_mut(&mut self) -> &mut PacketData;
}

/// One 8-byte load that covers neighbouring named fields, or up to 64 bits of one field.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// Headers that must be present. If one is absent, the bits stay 0.
    needs: u32,
    base: FieldBase,
    word: u8,
    /// Offset of the first byte from the base.
    byte: u16,
    /// Left rotation of the loaded word that moves the fields to their position in the key, in bits.
    turn: u32,
    /// Bits of the fields in the key's word.
    mask: u64,
}

/// A part of a field that a single load cannot read: bits of a slice, or bits that end in a ninth byte.
#[derive(Clone, Copy, Debug)]
struct Part {
    base: FieldBase,
    /// Offset of the first byte from the base.
    byte: u16,
    /// Number of bits before the part in its first byte.
    skip: u8,
    bits: u8,
    word: u8,
    shift: u8,
    /// Headers that must be present. If one is absent, the bits stay 0.
    needs: u32,
    /// End of the slice that the part belongs to, in bits from its base, or 0 for named fields.
    slice_end_bits: u32,
}

/// Presence bit of one slice. It is set if the packet has all bits of the slice.
#[derive(Clone, Copy, Debug)]
struct Presence {
    base: FieldBase,
    end_bits: u32,
}

/// Builds the keys of one table.
#[derive(Debug, Default)]
pub struct Extractor {
    loads: Vec<Load>,
    parts: Vec<Part>,
    slices: Vec<Presence>,
    words: usize,
    needs: u32,
    depth: Depth,
    has_presence: bool,
    shuffle: Option<Shuffle>,
    /// Whether the key consists only of header presence bits and of loads relative to the frame, L3, L4 or
    /// the extended header.
    is_direct: bool,
}

impl Extractor {
    /// Compiles a key plan.
    #[must_use]
    pub fn new(plan: &KeyPlan) -> Self {
        let end_of = |field: Field| match field {
            Field::Slice(s) => u32::from(s.offset_bits) + u32::from(s.length_bits),
            _ => 0,
        };
        let slices = plan
            .slices()
            .iter()
            .map(|&field| Presence { base: field.location().base, end_bits: end_of(field) })
            .collect();
        let mut made = Self {
            slices,
            words: plan.words(),
            needs: plan.needs(),
            depth: plan.fields().iter().map(|&field| depth_of(field)).max().unwrap_or_default(),
            has_presence: plan.has_presence(),
            shuffle: Shuffle::new(plan),
            ..Self::default()
        };
        for part in plan.parts() {
            let location = part.field.location();
            let bit = location.offset_bits + part.from_bit;
            let (byte, skip, needs) = (bit / 8, (bit % 8) as u8, location.needs);
            let (word, shift, bits, base) = (part.word, part.shift, part.bits, location.base);
            let slice_end_bits = end_of(part.field);
            if slice_end_bits != 0 || skip + bits > 64 {
                made.parts.push(Part { base, byte, skip, bits, word, shift, needs, slice_end_bits });
                continue;
            }
            // In the loaded word, the field's last bit is `64 - skip - bits` bits above the lowest bit. In
            // the key, it is `shift` bits above the lowest bit.
            let turn = (u32::from(shift) + u32::from(skip) + u32::from(bits)) % 64;
            let mask = (u64::MAX >> (64 - bits)) << shift;
            // Fields that are neighbours in both packet and key share one load.
            let joins = |load: &&mut Load| {
                let behind = 8 * u32::from(byte.wrapping_sub(load.byte));
                (load.base, load.word, load.needs) == (base, word, needs)
                    && behind + u32::from(skip) + u32::from(bits) <= 64
                    && (turn + behind) % 64 == load.turn
            };
            match made.loads.iter_mut().find(joins) {
                Some(load) => load.mask |= mask,
                None => made.loads.push(Load { needs, base, word, byte, turn, mask }),
            }
        }
        let is_common = |load: &Load| !matches!(load.base, FieldBase::NdSll | FieldBase::NdTll);
        made.is_direct = made.parts.is_empty() && made.slices.is_empty() && made.loads.iter().all(is_common);
        made
    }

    /// Returns the length of a key, in words.
    #[must_use]
    #[inline]
    pub fn words(&self) -> usize {
        self.words
    }

    /// Returns the depth to which headers must be parsed.
    #[must_use]
    #[inline]
    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// Writes the keys of some packets, one row of [`Extractor::words`] words each. `waiting` has the indices
    /// of these packets in `packets`.
    #[inline]
    pub fn extract<P: KeyedPacket, S: Copy + Into<usize>>(
        &self,
        packets: &mut [P],
        waiting: &[S],
        keys: &mut [u64],
    ) {
        self.extract_masked(packets, waiting, keys, &[], self.depth);
    }

    /// Writes the keys like [`Extractor::extract`], but clears the bits that are not in `mask` (a row, or
    /// empty for no mask). Parses headers to `depth` or to the depth that this table needs, whichever is
    /// greater.
    pub fn extract_masked<P: KeyedPacket, S: Copy + Into<usize>>(
        &self,
        packets: &mut [P],
        waiting: &[S],
        keys: &mut [u64],
        mask: &[u64],
        depth: Depth,
    ) {
        let depth = depth.max(self.depth);
        if let [load] = self.loads[..]
            && self.is_direct
            && (self.words, self.has_presence, depth) == (1, false, Depth::None)
            && load.is_free()
        {
            // A single load of this kind costs less than a shuffle.
            return load_one(load, packets, waiting, keys, mask);
        }
        if self.is_direct && self.shuffle.is_none() {
            match self.words {
                1 => return self.load_direct::<1, _, _>(packets, waiting, keys, mask, depth),
                2 => return self.load_direct::<2, _, _>(packets, waiting, keys, mask, depth),
                3 => return self.load_direct::<3, _, _>(packets, waiting, keys, mask, depth),
                _ => {}
            }
        }
        if depth > Depth::None {
            for packet in waiting {
                packets[(*packet).into()].data_mut().locate(depth);
            }
        }
        let load = |waiting: &[S], keys: &mut [u64]| {
            self.load(packets, waiting, keys);
            if !mask.is_empty() {
                for row in keys.chunks_exact_mut(self.words) {
                    row.iter_mut().zip(mask).for_each(|(word, mask)| *word &= mask);
                }
            }
        };
        match &self.shuffle {
            _ if self.words == 0 => {}
            Some(shuffle) => {
                let data = |slot: S| packets[slot.into()].data();
                shuffle.rows(waiting, data, keys, mask, |slot, row| load(&[slot], row));
            }
            None => load(waiting, keys),
        }
    }

    /// Builds keys of `W` words packet by packet, for the most common plans ([`Self::is_direct`]).
    #[inline(never)]
    fn load_direct<const W: usize, P: KeyedPacket, S: Copy + Into<usize>>(
        &self,
        packets: &mut [P],
        waiting: &[S],
        keys: &mut [u64],
        mask: &[u64],
        depth: Depth,
    ) {
        let mask = mask.first_chunk().copied().unwrap_or([u64::MAX; W]);
        let needs = if self.has_presence { self.needs } else { 0 };
        let loads = &self.loads[..];
        for (slot, row) in waiting.iter().zip(keys.as_chunks_mut::<W>().0) {
            let data = packets[(*slot).into()].data_mut();
            data.locate(depth);
            let Layers { present, l3, l4, .. } = data.layers;
            // Offsets of the bases, in the order of `FieldBase`; 0 for the frame.
            let starts = [0, 0, l3, l4];
            let window = data.frame.window();
            let mut key = [0; W];
            key[0] = u64::from(present & needs);
            for load in loads {
                if present & load.needs != load.needs {
                    continue;
                }
                let byte = usize::from(load.byte);
                let loaded = if load.base == FieldBase::Ext {
                    eight_bytes(data.ext.bytes(), byte)
                } else {
                    eight_bytes(window, usize::from(starts[load.base as usize % 4]) + byte)
                };
                if let Some(word) = key.get_mut(if W == 1 { 0 } else { usize::from(load.word) }) {
                    *word |= load.place(loaded);
                }
            }
            *row = std::array::from_fn(|at| key[at] & mask[at]);
        }
    }

    /// Builds the keys load by load. The parameters of a load stay in registers while all packets are
    /// processed.
    fn load<P: KeyedPacket, S: Copy + Into<usize>>(&self, packets: &[P], waiting: &[S], keys: &mut [u64]) {
        keys.fill(0);
        let mut rows = Rows { packets, waiting, keys, words: self.words };
        if self.has_presence {
            rows.each(0, 0, |packet| u64::from(packet.layers.present & self.needs));
            for (number, slice) in self.slices.iter().enumerate() {
                let there = |packet: &PacketData| packet.slice_start(slice.base, slice.end_bits).is_some();
                rows.each(0, 0, |packet| u64::from(there(packet)) << (32 + number));
            }
        }
        for load in &self.loads {
            match load.base {
                // Named fields are never at the moving base, and slices are parts.
                FieldBase::Frame | FieldBase::Moving => rows.load(load, |_| 0),
                FieldBase::L3 => rows.load(load, |packet| packet.layers.l3),
                FieldBase::L4 => rows.load(load, |packet| packet.layers.l4),
                FieldBase::NdSll => rows.load(load, |packet| packet.layers.nd_sll),
                FieldBase::NdTll => rows.load(load, |packet| packet.layers.nd_tll),
                FieldBase::Ext => rows.each(load.word, load.needs, |packet| {
                    load.place(eight_bytes(packet.ext.bytes(), usize::from(load.byte)))
                }),
            }
        }
        for part in &self.parts {
            rows.each(part.word, part.needs, |packet| part.read(packet));
        }
    }
}

/// Builds keys of one word from one load at a fixed position of the frame.
#[inline(never)]
fn load_one<P: KeyedPacket, S: Copy + Into<usize>>(
    load: Load,
    packets: &[P],
    waiting: &[S],
    keys: &mut [u64],
    mask: &[u64],
) {
    let load = Load { mask: load.mask & mask.first().copied().unwrap_or(u64::MAX), ..load };
    let byte = usize::from(load.byte);
    for (slot, key) in waiting.iter().zip(keys) {
        *key = load.place(eight_bytes(packets[(*slot).into()].data().frame.window(), byte));
    }
}

/// Rows of keys that are being built.
struct Rows<'a, P, S> {
    packets: &'a [P],
    waiting: &'a [S],
    keys: &'a mut [u64],
    words: usize,
}

impl<P: KeyedPacket, S: Copy + Into<usize>> Rows<'_, P, S> {
    /// Adds bits to one word of the key of each packet that has the headers.
    #[inline(always)]
    fn each(&mut self, word: u8, needs: u32, bits: impl Fn(&PacketData) -> u64) {
        for (packet, key) in self.waiting.iter().zip(self.keys.chunks_exact_mut(self.words)) {
            let packet = self.packets[(*packet).into()].data();
            if packet.layers.present & needs == needs {
                key[usize::from(word)] |= bits(packet);
            }
        }
    }

    /// Adds a load from the frame. `start` returns the offset of the load's base.
    #[inline(always)]
    fn load(&mut self, load: &Load, start: impl Fn(&PacketData) -> u16) {
        let Load { word, needs, byte, .. } = *load;
        self.each(word, needs, |packet| {
            let at = usize::from(start(packet)) + usize::from(byte);
            load.place(eight_bytes(packet.frame.window(), at))
        });
    }
}

impl Load {
    /// Returns whether the load needs no header.
    #[inline(always)]
    fn is_free(&self) -> bool {
        self.base == FieldBase::Frame && self.needs == 0
    }

    /// Moves the fields from their loaded position to their position in the key.
    #[inline(always)]
    fn place(&self, loaded: u64) -> u64 {
        loaded.rotate_left(self.turn) & self.mask
    }
}

impl Part {
    /// Returns the bits at their position in the key, for a packet that has the headers.
    fn read(&self, packet: &PacketData) -> u64 {
        let start = if self.slice_end_bits == 0 {
            packet.base_start(self.base)
        } else {
            let Some(start) = packet.slice_start(self.base, self.slice_end_bits) else { return 0 };
            start
        };
        let bytes = if self.base == FieldBase::Ext { packet.ext.bytes() } else { packet.frame.window() };
        read_bits(bytes, start + usize::from(self.byte), self.skip, self.bits) << self.shift
    }
}
