// SPDX-License-Identifier: Apache-2.0
//! Builds the keys of packets with any combination of headers.

use crate::bits::eight_bytes;
use crate::conditions::{Condition, FIRST_SLICE, Facts, SliceEnd};
use crate::layout::{KeyEnds, Layout, TWO_LINES_BYTES, hashed_words};
use actions::SliceBounds;
use engines::hash::{KeyHash, Seed};
use flow::{Ext, FieldBase, PortNo};
use frame::Frame;
use std::ops::Range;
use wire::{Depth, Layers};

/// Number of bytes that one load reads and writes.
const LOAD_BYTES: usize = 8;

/// Capacity of a key in words. A load may write two words, the second beyond the longest key.
pub const ROOM_WORDS: usize = 16;

const _: () = assert!(ROOM_WORDS > TWO_LINES_BYTES / LOAD_BYTES + 1);

/// A length that no frame exceeds.
pub(crate) const LONGEST_BYTES: usize = u16::MAX as usize;

/// Key of a packet, in words, the least significant byte first. Bytes beyond the plan's length are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct ExpressKey {
    words: [u64; ROOM_WORDS],
}

impl ExpressKey {
    /// The key of zeros.
    pub(crate) const ZERO: Self = Self { words: [0; ROOM_WORDS] };

    /// Returns the key as words.
    #[must_use]
    #[inline(always)]
    pub fn words(&self) -> &[u64; ROOM_WORDS] {
        &self.words
    }

    /// Returns the words for writing.
    #[inline(always)]
    pub(crate) fn words_mut(&mut self) -> &mut [u64; ROOM_WORDS] {
        &mut self.words
    }

    /// Returns a key that begins with these words, followed by zeros.
    #[must_use]
    pub fn of_words(words: &[u64]) -> Self {
        let mut key = Self::default();
        key.words[..words.len()].copy_from_slice(words);
        key
    }

    /// Adds bits to the key, from byte `at` on. The least significant byte of `bits` comes first.
    #[inline(always)]
    fn add(&mut self, at: usize, bits: u64) {
        let both = u128::from(bits) << (at % LOAD_BYTES * 8);
        if let Some([low, high]) = self.words.get_mut(at / LOAD_BYTES..).and_then(<[u64]>::first_chunk_mut) {
            *low |= both as u64;
            *high |= (both >> 64) as u64;
        }
    }
}

/// A load of up to 8 consecutive bytes of a packet into the key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Condition under which a packet has the bytes.
    pub when: Condition,
    /// Mask of the examined bits. The first byte is the least significant.
    pub mask: u64,
    pub base: FieldBase,
    /// Offset of the first byte from the base.
    pub byte: u16,
    /// Offset of the first byte in the key.
    pub at: u8,
}

impl Load {
    /// Adds the loaded bits to a key. `starts` has the offset of each base.
    #[inline(always)]
    fn run(&self, frame: &[u8], ext: &Ext, starts: &[u16; BASES], key: &mut ExpressKey) {
        let bytes = if self.base == FieldBase::Ext { ext.bytes() } else { frame };
        let start = usize::from(starts[self.base as usize % BASES]);
        let loaded = eight_bytes(bytes, start + usize::from(self.byte)).swap_bytes() & self.mask;
        key.add(usize::from(self.at), loaded);
    }
}

/// Length of the array of base offsets, a power of two.
const BASES: usize = 8;

/// Returns the offsets of the bases, in the order of `FieldBase`.
#[inline]
pub(crate) fn starts(layers: &Layers) -> [u16; BASES] {
    let Layers { l3, l4, nd_sll, nd_tll, .. } = *layers;
    [0, 0, l3, l4, nd_sll, nd_tll, 0, 0]
}

/// Builds the keys of one plan.
#[derive(Clone, Debug)]
pub struct KeyReader {
    length_bytes: usize,
    ends: KeyEnds,
    depth: Depth,
    /// For each presence bit, the position of its fact in [`Facts`].
    presence: Vec<u8>,
    slices: Vec<SliceEnd>,
    loads: Vec<Load>,
    hash: KeyHash,
}

impl KeyReader {
    /// Compiles a layout.
    pub(crate) fn new(layout: &Layout, depth: Depth, presence: Vec<u8>, slices: Vec<SliceEnd>) -> Self {
        let Layout { placed, ends, length_bytes } = layout;
        debug_assert!(*length_bytes <= TWO_LINES_BYTES);
        let mut loads = Vec::new();
        for (run, at) in placed {
            for (number, masks) in run.masks.chunks(LOAD_BYTES).enumerate() {
                let skipped = number * LOAD_BYTES;
                let mut mask = [0; LOAD_BYTES];
                mask[..masks.len()].copy_from_slice(masks);
                loads.push(Load {
                    when: run.when,
                    mask: u64::from_le_bytes(mask),
                    base: run.base,
                    byte: run.byte + skipped as u16,
                    at: (at + skipped) as u8,
                });
            }
        }
        let hash = KeyHash::new(Seed::of_process());
        Self { length_bytes: *length_bytes, ends: *ends, depth, presence, slices, loads, hash }
    }

    pub(crate) fn loads(&self) -> &[Load] {
        &self.loads
    }

    /// Returns the minimum length in bytes of a packet with these headers that contains every slice.
    pub(crate) fn slices_end(&self, layers: &Layers) -> usize {
        let Layers { present, l3, l4, .. } = *layers;
        let bounds = SliceBounds { present, l3, l4, base: 0, len: LONGEST_BYTES };
        let end = |slice: &SliceEnd| {
            Some(bounds.slice_start(slice.base, slice.end_bits)? + slice.end_bits.div_ceil(8) as usize)
        };
        self.slices.iter().filter_map(end).max().unwrap_or_default()
    }

    /// Writes the key of an arriving frame, which has at least an Ethernet header.
    pub fn key_of(&self, frame: &[u8], in_port: PortNo, key: &mut ExpressKey) {
        let mut layers = Layers::default();
        if self.depth < Depth::L3 || !wire::locate_common(frame, &mut layers) {
            wire::deepen(frame, self.depth, &mut layers);
        }
        self.general_key(frame, &layers, in_port, key);
    }

    /// Returns the depth to which a frame's headers must be located for its key.
    #[must_use]
    #[inline]
    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// Writes the key of a packet of any shape. Its headers must be located at least to [`Self::depth`].
    #[inline(never)]
    pub fn general_key(&self, frame: &[u8], layers: &Layers, in_port: PortNo, key: &mut ExpressKey) {
        key.words = [0; ROOM_WORDS];
        self.add_port(in_port, key);
        self.add_packet(frame, self.facts(frame.len(), layers), layers, key);
    }

    /// Returns the part of the key that is equal for all packets with these headers and all slices, without
    /// the ingress port. The VLAN tag and the ToS byte are 0.
    pub(crate) fn constants(&self, layers: &Layers) -> ExpressKey {
        let mut key = ExpressKey::default();
        let zeros = Layers { vlan_tci: 0, ip_tos: 0, ..*layers };
        self.add_packet(&[], self.facts(LONGEST_BYTES, layers), &zeros, &mut key);
        key
    }

    /// Adds the presence bits and the bytes of a packet to a key.
    fn add_packet(&self, frame: &[u8], facts: Facts, layers: &Layers, key: &mut ExpressKey) {
        self.add_presence(facts, key);
        let mut ext = Ext::default();
        ext.set_layers(layers);
        let starts = starts(layers);
        for load in self.loads.iter().filter(|load| load.when.holds(facts)) {
            load.run(frame, &ext, &starts, key);
        }
    }

    /// Returns whether [`Self::general_key`] writes `key` for an arriving frame.
    #[must_use]
    pub fn is_key_of(&self, key: &ExpressKey, frame: &Frame) -> bool {
        let mut general = ExpressKey::default();
        self.key_of(frame.bytes(), PortNo(frame.meta.in_port), &mut general);
        general.words == key.words
    }

    /// Adds the ingress port to a key.
    #[inline]
    pub(crate) fn add_port(&self, in_port: PortNo, key: &mut ExpressKey) {
        key.add(self.ends.port_at, in_port.0.into());
    }

    /// Returns the range of the words that hold the ingress port.
    pub(crate) fn port_words(&self) -> Range<usize> {
        let first = self.ends.port_at / LOAD_BYTES;
        first..first + 2
    }

    /// Adds the presence bits to a key.
    fn add_presence(&self, facts: Facts, key: &mut ExpressKey) {
        for (presence, at) in self.presence.chunks(64).zip((self.ends.presence_at..).step_by(LOAD_BYTES)) {
            let bits = presence.iter().rev().fold(0, |bits, presence| bits << 1 | (facts >> presence & 1));
            key.add(at, bits);
        }
    }

    /// Returns the facts about a frame of `len` bytes: which headers and slices it has.
    #[inline]
    pub(crate) fn facts(&self, len: usize, layers: &Layers) -> Facts {
        let Layers { present, l3, l4, .. } = *layers;
        let bounds = SliceBounds { present, l3, l4, base: 0, len };
        let mut facts = Facts::from(present);
        for (number, slice) in self.slices.iter().enumerate() {
            let is_there = bounds.slice_start(slice.base, slice.end_bits).is_some();
            facts |= Facts::from(is_there) << (FIRST_SLICE as usize + number);
        }
        facts
    }

    /// Returns the bytes of a key that this reader wrote.
    #[must_use]
    pub fn bytes(&self, key: &ExpressKey) -> Vec<u8> {
        let mut bytes: Vec<u8> = key.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(self.length_bytes);
        bytes
    }

    /// Returns the number of words of a key that are hashed.
    #[must_use]
    #[inline(always)]
    pub fn hashed_words(&self) -> usize {
        hashed_words(self.length_bytes)
    }

    /// Returns the hash of a key that this reader wrote.
    #[must_use]
    pub fn hash(&self, key: &ExpressKey) -> u64 {
        self.hash.hash(&key.words[..self.hashed_words()])
    }

    /// Returns the hash of a key. `WORDS` must be [`Self::hashed_words`].
    #[must_use]
    #[inline(always)]
    pub fn hash_words<const WORDS: usize>(&self, key: &ExpressKey) -> u64 {
        self.hash.hash(&key.words[..WORDS])
    }
}
