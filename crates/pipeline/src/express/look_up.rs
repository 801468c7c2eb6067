// SPDX-License-Identifier: Apache-2.0
//! Looks up the frames of a burst, in passes: all keys, then all tags, then all records. The memory accesses
//! of one pass are independent of each other, so they overlap.

use super::cache::{Express, Store};
use super::paths::Paths;
use super::records::{Found, Records};
use crate::slab::BURST;
use actions::TtlSpot;
use engines::NONE;
use flow::{Nanos, PortNo};
use frame::Frame;
use keys::{ExpressKey, KeyReader, KeyTemplate, LONG_WORDS, SHORT_WORDS, Templates, Vbmi, VbmiCode};
use wire::ethernet::ETHERNET_BYTES;
use wire::{Depth, Layers};

/// Keys from this number of words on are built by byte shuffles, if the core has them and the key fits into a
/// record of one line. Shorter keys are built as fast by single loads.
const PERMUTED_FROM: usize = 3;

/// Keys of a burst. The elements of all arrays belong to the frames in order.
#[derive(Debug)]
pub(super) struct BurstKeys {
    pub keys: [ExpressKey; BURST],
    pub hashes: [u64; BURST],
    /// Place of each frame's record, or `NONE`.
    pub places: [u32; BURST],
    /// Place of the TTL in each frame that a template recognised. The headers of such a frame are not
    /// located.
    ttls: [TtlSpot; BURST],
    /// Headers of the frames in `located`, located to `depth`.
    layers: [Layers; BURST],
    /// Frames that no template recognised by their first bytes, one bit each. Their headers were located.
    located: u32,
    /// Depth to which keys depend on headers. At [`Depth::None`], no headers are located.
    depth: Depth,
    /// Frames that are too short for an Ethernet header, one bit each.
    runts: u32,
}

impl BurstKeys {
    pub fn new() -> Self {
        Self {
            keys: [ExpressKey::default(); BURST],
            hashes: [0; BURST],
            places: [NONE; BURST],
            ttls: [TtlSpot::UNKNOWN; BURST],
            layers: [Layers::default(); BURST],
            located: 0,
            depth: Depth::None,
            runts: 0,
        }
    }

    /// Returns the place of a frame's TTL, or [`TtlSpot::UNKNOWN`] if no template gives the place.
    #[inline(always)]
    pub fn ttl(&self, at: usize) -> TtlSpot {
        self.ttls[at % BURST]
    }

    /// Returns the headers of a frame. They are located at least to this depth, and at least to the depth
    /// that the frame's key requires.
    pub fn layers(&self, at: usize, frame: &Frame, depth: Depth) -> Layers {
        let mut layers = if self.located >> at & 1 != 0 { self.layers[at] } else { Layers::NONE };
        let depth = depth.max(self.depth);
        if layers.depth < depth {
            locate(frame, depth, &mut layers);
        }
        layers
    }

    /// Builds the keys of frames. Calls `each` with every hash.
    #[inline(always)]
    fn read_keys(
        &mut self,
        reader: &KeyReader,
        templates: &mut Templates,
        frames: &[Frame],
        each: impl Fn(u64),
    ) {
        let is_flat = reader.depth() == Depth::None;
        let flat = if is_flat { templates.choose(reader, &Layers::NONE) } else { None };
        match (reader.hashed_words(), flat) {
            (1, Some(template)) => self.read_flat::<1>(reader, template, frames, each),
            (2, Some(template)) => self.read_flat::<2>(reader, template, frames, each),
            (1, _) => self.read::<1>(reader, templates, frames, each),
            (2, _) => self.read::<2>(reader, templates, frames, each),
            (3, _) => self.read::<3>(reader, templates, frames, each),
            (4, _) => self.read::<4>(reader, templates, frames, each),
            (5, _) => self.read::<5>(reader, templates, frames, each),
            (6, _) => self.read::<6>(reader, templates, frames, each),
            _ => self.read::<LONG_WORDS>(reader, templates, frames, each),
        }
    }

    /// Builds keys of `WORDS` words for the frames. Calls `each` with every hash.
    #[inline(never)]
    fn read<const WORDS: usize>(
        &mut self,
        reader: &KeyReader,
        templates: &mut Templates,
        frames: &[Frame],
        each: impl Fn(u64),
    ) {
        self.depth = reader.depth();
        (self.located, self.runts) = (0, 0);
        let pass = KeyPass::<_, WORDS> { burst: self, reader, templates, frames, each };
        match pass.templates.vbmi() {
            Some(vbmi) if (PERMUTED_FROM..=SHORT_WORDS).contains(&WORDS) => vbmi.run(pass),
            _ => pass.run(None),
        }
    }

    /// Builds keys of `WORDS` words for the frames, if the plan needs no header. All frames then have the
    /// same template. Calls `each` with every hash.
    #[inline(never)]
    fn read_flat<const WORDS: usize>(
        &mut self,
        reader: &KeyReader,
        template: &KeyTemplate,
        frames: &[Frame],
        each: impl Fn(u64),
    ) {
        self.depth = Depth::None;
        (self.located, self.runts) = (0, 0);
        self.ttls = [TtlSpot::UNKNOWN; BURST];
        let Self { keys, hashes, runts, .. } = self;
        for (at, ((key, hash), frame)) in keys.iter_mut().zip(hashes).zip(frames).enumerate() {
            match frame.start().filter(|_| template.suits(frame.len())) {
                Some(bytes) => template.write::<WORDS>(None, bytes, key),
                None => {
                    reader.general_key(frame.bytes(), &Layers::NONE, PortNo(frame.meta.in_port), key);
                    *runts |= u32::from(frame.len() < ETHERNET_BYTES) << at;
                }
            }
            debug_assert!(reader.is_key_of(key, frame), "a template gives the same key as `general_key`");
            *hash = reader.hash_words::<WORDS>(key);
            each(*hash);
        }
    }

    /// Stores the place of each key's record, or [`NONE`].
    #[inline(never)]
    fn find<const WORDS: usize, const KEY: usize>(
        &mut self,
        records: &mut Records<WORDS>,
        paths: &Paths,
        count: usize,
        version: u64,
        now: Nanos,
    ) -> Found {
        records.begin(now);
        let (hashes, places) = (&self.hashes[..count], &mut self.places[..count]);
        records.candidates(hashes, places, |place| paths.prefetch(place));
        let mut found = records.find_all::<KEY>(hashes, &self.keys, places, version);
        // A packet without an Ethernet header is dropped, whatever its key is.
        let mut runts = self.runts;
        while runts != 0 {
            let place = &mut places[runts.trailing_zeros() as usize % BURST];
            found.hits -= usize::from(*place != NONE);
            *place = NONE;
            runts &= runts - 1;
        }
        found
    }
}

/// Builds the keys of frames, and calls `each` with every hash.
struct KeyPass<'a, F, const WORDS: usize> {
    burst: &'a mut BurstKeys,
    reader: &'a KeyReader,
    templates: &'a mut Templates,
    frames: &'a [Frame],
    each: F,
}

impl<F: Fn(u64), const WORDS: usize> VbmiCode for KeyPass<'_, F, WORDS> {
    #[inline(always)]
    fn run(self, vbmi: Option<Vbmi>) {
        let Self { burst, reader, templates, frames, each } = self;
        let BurstKeys { keys, hashes, ttls, layers, located, runts, .. } = burst;
        let all = keys.iter_mut().zip(hashes).zip(ttls).zip(layers).zip(frames);
        let [mut last, mut other] = templates.recent();
        for (at, ((((key, hash), ttl), layers), frame)) in all.enumerate() {
            let is_known = frame.start().is_some_and(|bytes| {
                let mut is_known = last.recognises(frame.len(), bytes);
                if !is_known {
                    (last, other) = (other, last);
                    is_known = last.recognises(frame.len(), bytes);
                }
                if is_known {
                    last.write::<WORDS>(vbmi, bytes, key);
                    *ttl = last.ttl();
                }
                is_known
            });
            if !is_known {
                let found = read_other::<WORDS>(reader, templates, frame, layers, key);
                *located |= u32::from(found.is_none()) << at;
                *ttl = found.unwrap_or(TtlSpot::UNKNOWN);
                *runts |= u32::from(frame.len() < ETHERNET_BYTES) << at;
                [last, other] = templates.recent();
            }
            debug_assert!(reader.is_key_of(key, frame), "a template gives the same key as `general_key`");
            *hash = reader.hash_words::<WORDS>(key);
            each(*hash);
        }
    }
}

/// Builds the key of a frame that neither of the two templates used last recognises. Returns `None` if no
/// template recognises it, so that its headers have been located, else the place of its TTL.
#[inline(never)]
fn read_other<const WORDS: usize>(
    reader: &KeyReader,
    templates: &mut Templates,
    frame: &Frame,
    layers: &mut Layers,
    key: &mut ExpressKey,
) -> Option<TtlSpot> {
    let bytes = frame.start();
    if let Some(bytes) = bytes
        && templates.find(frame.len(), bytes)
        && let Some(template) = templates.last()
    {
        template.write::<WORDS>(None, bytes, key);
        return Some(template.ttl());
    }
    *layers = Layers::NONE;
    locate(frame, reader.depth(), layers);
    match (templates.choose(reader, layers).filter(|template| template.suits(frame.len())), bytes) {
        (Some(template), Some(bytes)) => template.write::<WORDS>(None, bytes, key),
        _ => reader.general_key(frame.bytes(), layers, PortNo(frame.meta.in_port), key),
    }
    None
}

impl Express {
    /// Looks up the first frames, at most a burst. All of them are from one port.
    pub(super) fn look_up(&mut self, frames: &[Frame], now: Nanos) -> Found {
        let frames = &frames[..frames.len().min(BURST)];
        let Self { reader, templates, store, paths, changes, burst, .. } = self;
        let in_port = frames.first().map_or(0, |frame| frame.meta.in_port);
        debug_assert!(frames.iter().all(|frame| frame.meta.in_port == in_port), "a burst is from one port");
        templates.begin(reader, PortNo(in_port));
        match store {
            Store::OneLine(records) => {
                burst.read_keys(reader, templates, frames, |hash| records.prefetch(hash))
            }
            Store::TwoLines(records) => {
                burst.read_keys(reader, templates, frames, |hash| records.prefetch(hash))
            }
        }
        let (count, version) = (frames.len(), changes.version());
        match (store, reader.hashed_words()) {
            (Store::OneLine(records), 1) => burst.find::<_, 1>(records, paths, count, version, now),
            (Store::OneLine(records), 2) => burst.find::<_, 2>(records, paths, count, version, now),
            (Store::OneLine(records), 3) => burst.find::<_, 3>(records, paths, count, version, now),
            (Store::OneLine(records), 4) => burst.find::<_, 4>(records, paths, count, version, now),
            (Store::OneLine(records), _) => burst.find::<_, SHORT_WORDS>(records, paths, count, version, now),
            (Store::TwoLines(records), _) => burst.find::<_, LONG_WORDS>(records, paths, count, version, now),
        }
    }
}

/// Locates headers at least to this depth. Common packets are parsed to the greatest depth at once.
#[inline(always)]
pub(super) fn locate(frame: &Frame, depth: Depth, layers: &mut Layers) {
    if depth < Depth::L3 || !wire::locate_common(frame.bytes(), layers) {
        wire::deepen(frame.bytes(), depth, layers);
    }
}
