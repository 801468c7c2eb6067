// SPDX-License-Identifier: Apache-2.0
//! Builds keys: the general way, by the walk over a packet's headers, which serves every packet.

use super::conditions::{Condition, FIRST_SLICE, Facts, SliceEnd};
use super::layout::{Run, TWO_LINES_BYTES};
use crate::bits::eight_bytes;
use actions::SliceBounds;
use engines::hash::Seed;
use flow::{Ext, FieldBase, PortNo};
use wire::{Depth, Layers};

/// Bytes that one load reads and writes.
const LOAD_BYTES: usize = 8;

/// Room for a key. A load may write [`LOAD_BYTES`] bytes from the last byte of the longest key on.
const ROOM_BYTES: usize = 128;

const _: () = assert!(ROOM_BYTES >= TWO_LINES_BYTES + LOAD_BYTES);

/// Key of a packet. Bytes beyond the plan's length are 0 up to the next multiple of 8 bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct ExpressKey {
    bytes: [u8; ROOM_BYTES],
}

impl Default for ExpressKey {
    fn default() -> Self {
        Self { bytes: [0; ROOM_BYTES] }
    }
}

/// Loads up to 8 consecutive bytes of a packet into the key.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// Packets for which the load is made.
    when: Condition,
    /// Examined bits, in the byte order of memory.
    mask: u64,
    base: FieldBase,
    /// Offset of the first byte from the base.
    byte: u16,
    /// Offset of the first byte in the key.
    at: u8,
}

/// Builds the keys of one plan.
#[derive(Clone, Debug)]
pub struct KeyReader {
    length_bytes: usize,
    port_bytes: usize,
    depth: Depth,
    /// Facts of the presence bits, in order.
    presence: Vec<u8>,
    slices: Vec<SliceEnd>,
    loads: Vec<Load>,
    seed: Seed,
}

impl KeyReader {
    /// Compiles a layout. `placed` has each run with its position in the key.
    pub(super) fn new(
        length_bytes: usize,
        port_bytes: usize,
        depth: Depth,
        presence: Vec<u8>,
        slices: Vec<SliceEnd>,
        placed: &[(Run, usize)],
    ) -> Self {
        debug_assert!(length_bytes <= TWO_LINES_BYTES);
        let mut loads = Vec::new();
        for (run, at) in placed {
            for (number, masks) in run.masks.chunks(LOAD_BYTES).enumerate() {
                let skipped = number * LOAD_BYTES;
                let mut mask = [0; LOAD_BYTES];
                mask[..masks.len()].copy_from_slice(masks);
                loads.push(Load {
                    when: run.when,
                    mask: u64::from_ne_bytes(mask),
                    base: run.base,
                    byte: run.byte + skipped as u16,
                    at: (at + skipped) as u8,
                });
            }
        }
        let seed = Seed::of_process();
        Self { length_bytes, port_bytes, depth, presence, slices, loads, seed }
    }

    /// Writes the key of an arriving frame. The frame has at least an Ethernet header.
    pub fn key_of(&self, frame: &[u8], in_port: PortNo, key: &mut ExpressKey) {
        let mut layers = Layers::default();
        if self.depth < Depth::L3 || !wire::locate_common(frame, &mut layers) {
            wire::deepen(frame, self.depth, &mut layers);
        }
        key.bytes[..self.length_bytes.next_multiple_of(LOAD_BYTES)].fill(0);
        let port = in_port.0.to_le_bytes();
        key.bytes[..4].copy_from_slice(&port);
        debug_assert!(port[self.port_bytes..].iter().all(|byte| *byte == 0), "the plan has room for it");
        let facts = self.facts(frame, &layers);
        for (number, presence) in self.presence.iter().enumerate() {
            key.bytes[(self.port_bytes + number / 8) % ROOM_BYTES] |=
                ((facts >> presence & 1) as u8) << (number % 8);
        }
        let mut ext = Ext::default();
        ext.set_layers(&layers);
        // Offsets of the bases, in the order of `FieldBase`.
        let Layers { l3, l4, nd_sll, nd_tll, .. } = layers;
        let starts = [0, 0, l3, l4, nd_sll, nd_tll, 0, 0];
        for load in &self.loads {
            if !load.when.holds(facts) {
                continue;
            }
            let bytes = if load.base == FieldBase::Ext { ext.bytes() } else { frame };
            let start = usize::from(starts[load.base as usize % 8]);
            let loaded = eight_bytes(bytes, start + usize::from(load.byte)).to_be() & load.mask;
            add(&mut key.bytes, usize::from(load.at), loaded);
        }
    }

    /// Returns what is true of a frame: its headers and slices.
    #[inline]
    fn facts(&self, frame: &[u8], layers: &Layers) -> Facts {
        let Layers { present, l3, l4, .. } = *layers;
        let bounds = SliceBounds { present, l3, l4, len: frame.len() };
        let mut facts = Facts::from(present);
        for (number, slice) in self.slices.iter().enumerate() {
            let is_there = bounds.slice_start(slice.base, slice.end_bits).is_some();
            facts |= Facts::from(is_there) << (FIRST_SLICE as usize + number);
        }
        facts
    }

    /// Returns the bytes of a key that this reader wrote.
    #[must_use]
    pub fn bytes<'a>(&self, key: &'a ExpressKey) -> &'a [u8] {
        &key.bytes[..self.length_bytes]
    }

    /// Returns the hash of a key that this reader wrote.
    #[must_use]
    pub fn hash(&self, key: &ExpressKey) -> u64 {
        let (words, _) = key.bytes.as_chunks::<8>();
        let mut key = [0; ROOM_BYTES / 8];
        key.iter_mut().zip(words).for_each(|(word, bytes)| *word = u64::from_ne_bytes(*bytes));
        self.seed.hash_masked(&key[..self.length_bytes.div_ceil(8)])
    }
}

/// Adds the bits of eight bytes, in the byte order of memory, to a key.
#[inline]
fn add(key: &mut [u8; ROOM_BYTES], at: usize, bits: u64) {
    if let Some(bytes) = key.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *bytes = (u64::from_ne_bytes(*bytes) | bits).to_ne_bytes();
    }
}
