// SPDX-License-Identifier: Apache-2.0
//! Looks up the frames of a burst, in passes: all keys, then all tags, then all records. The memory accesses
//! of one pass are independent of each other, so they overlap.

use super::cache::{Express, Store};
use super::key::{ExpressKey, KeyReader, LONG_WORDS, SHORT_WORDS};
use super::records::Records;
use super::template::Templates;
use crate::slab::BURST;
use engines::NONE;
use flow::{Nanos, PortNo};
use frame::Frame;
use wire::{Depth, Layers};

/// Keys of a burst. The elements of all arrays belong to the frames in order.
#[derive(Debug)]
pub(super) struct BurstKeys {
    pub keys: [ExpressKey; BURST],
    pub hashes: [u64; BURST],
    pub layers: [Layers; BURST],
    /// Place of each frame's record, or `NONE`.
    pub places: [u32; BURST],
}

impl BurstKeys {
    pub fn new() -> Self {
        Self {
            keys: [ExpressKey::default(); BURST],
            hashes: [0; BURST],
            layers: [Layers::default(); BURST],
            places: [NONE; BURST],
        }
    }

    /// Builds the keys of frames, whose length is `WORDS` words.
    #[inline(never)]
    fn read<const WORDS: usize>(&mut self, reader: &KeyReader, templates: &mut Templates, frames: &[Frame]) {
        let depth = reader.depth();
        let all = self.keys.iter_mut().zip(&mut self.hashes).zip(&mut self.layers);
        for (((key, hash), layers), frame) in all.zip(frames) {
            *layers = Layers::default();
            let in_port = PortNo(frame.meta.in_port);
            let is_common = locate(frame, depth, layers);
            let template = if is_common { templates.choose(reader, layers) } else { None };
            let template = template.filter(|template| template.suits(frame.len()));
            match (template, frame.window().first_chunk()) {
                (Some(template), Some(bytes)) => template.write::<WORDS>(bytes, layers, in_port, key),
                _ => reader.general_key(frame.bytes(), layers, in_port, key),
            }
            debug_assert!(
                reader.is_key_of(key, frame, layers),
                "a template gives the key of the general way"
            );
            *hash = reader.hash_words::<WORDS>(key);
        }
    }

    /// Builds keys whose length is `WORDS` words, for a plan that needs no header. Then all frames have the
    /// same template.
    #[inline(never)]
    fn read_flat<const WORDS: usize>(
        &mut self,
        reader: &KeyReader,
        templates: &mut Templates,
        frames: &[Frame],
    ) {
        let none = Layers::default();
        let Some(template) = templates.choose(reader, &none) else {
            return self.read::<WORDS>(reader, templates, frames);
        };
        self.layers[..frames.len()].fill(none);
        for ((key, hash), frame) in self.keys.iter_mut().zip(&mut self.hashes).zip(frames) {
            let in_port = PortNo(frame.meta.in_port);
            match frame.window().first_chunk().filter(|_| template.suits(frame.len())) {
                Some(bytes) => template.write::<WORDS>(bytes, &none, in_port, key),
                None => reader.general_key(frame.bytes(), &none, in_port, key),
            }
            debug_assert!(reader.is_key_of(key, frame, &none), "a template gives the key of the general way");
            *hash = reader.hash_words::<WORDS>(key);
        }
    }

    /// Stores the place of each key's record, or [`NONE`]. Returns whether a record is outdated.
    #[inline(never)]
    fn find<const WORDS: usize, const KEY: usize>(
        &mut self,
        records: &mut Records<WORDS>,
        count: usize,
        version: u64,
        now: Nanos,
    ) -> bool {
        records.begin(now);
        let (hashes, places) = (&self.hashes[..count], &mut self.places[..count]);
        hashes.iter().for_each(|hash| records.prefetch(*hash));
        for (place, hash) in places.iter_mut().zip(hashes) {
            *place = records.candidate(*hash);
        }
        for ((place, hash), key) in places.iter_mut().zip(hashes).zip(&self.keys) {
            *place = records.find::<KEY>(*place, *hash, key, version);
        }
        records.take_outdated()
    }
}

impl Express {
    /// Looks up the first frames, at most a burst. Returns whether a record is outdated.
    pub(super) fn look_up(&mut self, frames: &[Frame], now: Nanos) -> bool {
        let frames = &frames[..frames.len().min(BURST)];
        let Self { reader, templates, store, changes, burst, .. } = self;
        match reader.hashed_words() {
            1 if reader.depth() == Depth::None => burst.read_flat::<1>(reader, templates, frames),
            2 if reader.depth() == Depth::None => burst.read_flat::<2>(reader, templates, frames),
            1 => burst.read::<1>(reader, templates, frames),
            2 => burst.read::<2>(reader, templates, frames),
            3 => burst.read::<3>(reader, templates, frames),
            4 => burst.read::<4>(reader, templates, frames),
            5 => burst.read::<5>(reader, templates, frames),
            6 => burst.read::<6>(reader, templates, frames),
            _ => burst.read::<LONG_WORDS>(reader, templates, frames),
        }
        let (count, version) = (frames.len(), changes.version());
        match (store, reader.hashed_words()) {
            (Store::OneLine(records), 1) => burst.find::<_, 1>(records, count, version, now),
            (Store::OneLine(records), 2) => burst.find::<_, 2>(records, count, version, now),
            (Store::OneLine(records), 3) => burst.find::<_, 3>(records, count, version, now),
            (Store::OneLine(records), 4) => burst.find::<_, 4>(records, count, version, now),
            (Store::OneLine(records), _) => burst.find::<_, SHORT_WORDS>(records, count, version, now),
            (Store::TwoLines(records), _) => burst.find::<_, LONG_WORDS>(records, count, version, now),
        }
    }
}

/// Locates headers at least to this depth. Common packets are parsed to the greatest depth at once. Returns
/// whether templates exist for packets like this one: a common packet, or any packet with a complete Ethernet
/// header if no header behind it is needed.
#[inline(always)]
pub(super) fn locate(frame: &Frame, depth: Depth, layers: &mut Layers) -> bool {
    if depth == Depth::None {
        return true;
    }
    if depth >= Depth::L3 && wire::locate_common(frame.bytes(), layers) {
        return true;
    }
    wire::deepen(frame.bytes(), depth, layers);
    depth < Depth::L3 && layers.type_at != 0
}
