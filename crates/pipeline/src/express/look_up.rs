// SPDX-License-Identifier: Apache-2.0
//! Looks up the frames of a burst, in passes: all keys, then all tags, then all records. The memory accesses
//! of one pass are independent of each other, so they overlap. Most records are compared when their packets
//! leave ([`super::leave`]).

use super::cache::{Express, Store};
use super::records::{OUTDATED, Records};
use crate::slab::BURST;
use actions::TtlSpot;
use engines::NONE;
use flow::{Nanos, PortNo};
use frame::Frame;
use keys::{
    ExpressKey, FAR_WINDOW_BYTES, FlatTemplate, KeyReader, KeyTemplate, LONG_WORDS, Templates, VECTOR_WORDS,
    Vbmi, VbmiCode, WINDOW_BYTES,
};
use wire::ethernet::ETHERNET_BYTES;
use wire::{Depth, Layers};

/// Keys with at least this number of words, and at most [`VECTOR_WORDS`], are built by byte shuffles, if the
/// core has the instructions. For shorter keys, single loads are equally fast.
const PERMUTED_FROM: usize = 3;

/// Result of the search for the records of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Number of packets with a record.
    pub hits: usize,
    /// Whether at least one of these records is outdated.
    pub outdated: bool,
}

/// Keys of a burst. In each array, element n belongs to frame n of the burst.
#[derive(Debug)]
pub(super) struct BurstKeys {
    pub keys: [ExpressKey; BURST],
    pub hashes: [u64; BURST],
    /// Place of each frame's record, or `NONE`.
    pub places: [u32; BURST],
    /// Place of the TTL in each frame. It is unknown in all frames if keys do not depend on an IP header.
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

    /// Returns the place of a frame's TTL, or [`TtlSpot::UNKNOWN`] if the frame is not IP, or if keys do not
    /// depend on an IP header.
    #[inline(always)]
    pub fn ttl(&self, at: usize) -> TtlSpot {
        self.ttls[at % BURST]
    }

    /// Returns the place of a frame's TTL, or [`TtlSpot::UNKNOWN`] if the frame is not IP. Locates its
    /// headers if necessary.
    pub fn located_ttl(&self, at: usize, frame: &Frame) -> TtlSpot {
        match self.ttl(at) {
            TtlSpot::UNKNOWN => TtlSpot::of(&self.layers(at, frame, Depth::L3)),
            known => known,
        }
    }

    /// Returns the headers of a frame, located to `depth` or to the depth that the frame's key requires,
    /// whichever is greater.
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
        match reader.hashed_words() {
            1 => self.read_words::<1>(reader, templates, frames, each),
            2 => self.read_words::<2>(reader, templates, frames, each),
            3 => self.read_words::<3>(reader, templates, frames, each),
            4 => self.read_words::<4>(reader, templates, frames, each),
            5 => self.read_words::<5>(reader, templates, frames, each),
            6 => self.read_words::<6>(reader, templates, frames, each),
            7..=VECTOR_WORDS => self.read_words::<VECTOR_WORDS>(reader, templates, frames, each),
            _ => self.read_words::<LONG_WORDS>(reader, templates, frames, each),
        }
    }

    /// Builds keys of `WORDS` words for the frames. Calls `each` with every hash.
    #[inline(always)]
    fn read_words<const WORDS: usize>(
        &mut self,
        reader: &KeyReader,
        templates: &mut Templates,
        frames: &[Frame],
        each: impl Fn(u64),
    ) {
        match templates.flat(reader) {
            Some(FlatTemplate::Near(template)) => self.read_near::<WORDS>(reader, template, frames, each),
            Some(FlatTemplate::Far(template)) => self.read_far::<WORDS>(reader, template, frames, each),
            None => self.read::<WORDS>(reader, templates, frames, each),
        }
    }

    /// Builds keys of `WORDS` words for frames whose headers determine the template. Calls `each` with every
    /// hash.
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
        match templates.vbmi() {
            Some(vbmi) if (PERMUTED_FROM..=VECTOR_WORDS).contains(&WORDS) => {
                let without_hash = |_: &ExpressKey, _: &mut u64| {};
                vbmi.run(KeyPass::<_, WORDS> { burst: self, reader, templates, frames, each: without_hash });
                // The keys are hashed here, because compilers move words to vector registers and back in code
                // for AVX-512.
                for (key, hash) in self.keys.iter().zip(&mut self.hashes).take(frames.len()) {
                    *hash = reader.hash_words::<WORDS>(key);
                    each(*hash);
                }
            }
            _ => {
                let each = |key: &ExpressKey, hash: &mut u64| {
                    *hash = reader.hash_words::<WORDS>(key);
                    each(*hash);
                };
                KeyPass::<_, WORDS> { burst: self, reader, templates, frames, each }.run(None);
            }
        }
    }

    /// Builds keys of `WORDS` words for the frames by a template that loads from their first bytes.
    #[inline(always)]
    fn read_near<const WORDS: usize>(
        &mut self,
        reader: &KeyReader,
        template: &KeyTemplate,
        frames: &[Frame],
        each: impl Fn(u64),
    ) {
        let len_min = template.len_min();
        if let Some(loads) = template.single_loads::<WORDS>() {
            let write = move |bytes: &_, key: &mut _| loads.write(bytes, key);
            self.read_flat::<WORDS, WINDOW_BYTES>(reader, len_min, frames, write, each);
        } else {
            let write = |bytes: &_, key: &mut _| template.write::<WORDS>(None, bytes, key);
            self.read_flat::<WORDS, WINDOW_BYTES>(reader, len_min, frames, write, each);
        }
    }

    /// Builds keys of `WORDS` words for the frames by a far template.
    #[inline(always)]
    fn read_far<const WORDS: usize>(
        &mut self,
        reader: &KeyReader,
        template: &KeyTemplate,
        frames: &[Frame],
        each: impl Fn(u64),
    ) {
        let write = |bytes: &_, key: &mut _| template.write_far::<WORDS>(bytes, key);
        self.read_flat::<WORDS, FAR_WINDOW_BYTES>(reader, template.len_min(), frames, write, each);
    }

    /// Builds keys of `WORDS` words for the frames, if the plan needs no header. All frames of at least
    /// `len_min` bytes then have the same template, and `write` does its loads. Shorter frames are read
    /// without a template. Calls `each` with every hash.
    #[inline(never)]
    fn read_flat<const WORDS: usize, const WINDOW: usize>(
        &mut self,
        reader: &KeyReader,
        len_min: usize,
        frames: &[Frame],
        write: impl Fn(&[u8; WINDOW], &mut ExpressKey),
        each: impl Fn(u64),
    ) {
        self.depth = Depth::None;
        (self.located, self.runts) = (0, 0);
        self.ttls = [TtlSpot::UNKNOWN; BURST];
        let Self { keys, hashes, runts, .. } = self;
        let mut short = 0u32;
        for (at, ((key, hash), frame)) in keys.iter_mut().zip(&mut *hashes).zip(frames).enumerate() {
            match frame.start_of(len_min) {
                Some(bytes) => write(bytes, key),
                None => short |= 1 << at,
            }
            *hash = reader.hash_words::<WORDS>(key);
            each(*hash);
        }
        while short != 0 {
            let at = short.trailing_zeros() as usize % BURST;
            let (frame, key) = (&frames[at], &mut keys[at]);
            reader.general_key(frame.bytes(), &Layers::NONE, PortNo(frame.meta.in_port), key);
            *runts |= u32::from(frame.len() < ETHERNET_BYTES) << at;
            hashes[at] = reader.hash_words::<WORDS>(key);
            short &= short - 1;
        }
        debug_assert!(keys.iter().zip(frames).all(|(key, frame)| reader.is_key_of(key, frame)));
    }

    /// Stores the place of the first record whose tag matches each key, or [`NONE`].
    #[inline(never)]
    fn find_candidates<const WORDS: usize>(
        &mut self,
        records: &mut Records<WORDS>,
        count: usize,
        now: Nanos,
    ) {
        records.begin(now);
        let (hashes, places) = (&self.hashes[..count], &mut self.places[..count]);
        records.candidates(hashes, places);
        // A packet without an Ethernet header is dropped, whatever its key is.
        let mut runts = self.runts;
        while runts != 0 {
            places[runts.trailing_zeros() as usize % BURST] = NONE;
            runts &= runts - 1;
        }
    }

    /// For some packets of the burst, replaces the place that [`Self::find_candidates`] has stored by the
    /// place of the packet's record, or [`NONE`]. `which` has one bit for each of these packets.
    fn find<const WORDS: usize>(
        &mut self,
        records: &mut Records<WORDS>,
        mut which: u32,
        version: u64,
    ) -> Found {
        let mut found = Found::default();
        while which != 0 {
            let at = which.trailing_zeros() as usize % BURST;
            let place = records.find(self.places[at], self.hashes[at], &self.keys[at], version);
            self.places[at] = place;
            found.hits += usize::from(place != NONE);
            found.outdated |= place != NONE && place & OUTDATED != 0;
            which &= which - 1;
        }
        found
    }
}

/// Builds the keys of frames, and calls `each` with every key and the place of its hash.
struct KeyPass<'a, F, const WORDS: usize> {
    burst: &'a mut BurstKeys,
    reader: &'a KeyReader,
    templates: &'a mut Templates,
    frames: &'a [Frame],
    each: F,
}

impl<F: Fn(&ExpressKey, &mut u64), const WORDS: usize> VbmiCode for KeyPass<'_, F, WORDS> {
    #[inline(always)]
    fn run(self, vbmi: Option<Vbmi>) {
        let Self { burst, reader, templates, frames, each } = self;
        let BurstKeys { keys, hashes, ttls, layers, located, runts, .. } = burst;
        // A function call in the loop would make the compiler save registers. Packets that need a call are
        // marked here, one bit each.
        let mut unknown = 0u32;
        let [mut last, mut other] = templates.recent();
        let all = keys.iter_mut().zip(&mut *hashes).zip(&mut *ttls).zip(frames);
        for (at, (((key, hash), ttl), frame)) in all.enumerate() {
            let is_known = frame.start().is_some_and(|bytes| {
                let mut is_known = last.recognises(frame.len(), bytes);
                if !is_known {
                    (last, other) = (other, last);
                    is_known = last.recognises(frame.len(), bytes);
                }
                if is_known {
                    last.write::<WORDS>(vbmi, bytes, key);
                    *ttl = last.ttl();
                    each(key, hash);
                }
                is_known
            });
            unknown |= u32::from(!is_known) << at;
        }
        while unknown != 0 {
            let at = unknown.trailing_zeros() as usize % BURST;
            let frame = &frames[at];
            let found = read_other::<WORDS>(reader, templates, frame, &mut layers[at], &mut keys[at]);
            *located |= u32::from(found.is_none()) << at;
            *runts |= u32::from(frame.len() < ETHERNET_BYTES) << at;
            // The place of the TTL must be known in all packets of a flow, or in none of them. Otherwise,
            // some of these packets would leave later than others.
            ttls[at] = found.unwrap_or_else(|| TtlSpot::of(&layers[at]));
            each(&keys[at], &mut hashes[at]);
            unknown &= unknown - 1;
        }
        debug_assert!(keys.iter().zip(frames).all(|(key, frame)| reader.is_key_of(key, frame)));
    }
}

/// Builds the key of a frame that neither of the two templates used last recognises. Returns the place of the
/// frame's TTL. If no template recognises the frame, locates its headers and returns `None`.
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
    /// Builds the keys of the first frames, at most a burst, and stores the places where their records
    /// probably are. All frames are from one port.
    pub(super) fn read_keys(&mut self, frames: &[Frame], now: Nanos) {
        let frames = &frames[..frames.len().min(BURST)];
        let Self { reader, templates, store, burst, .. } = self;
        let in_port = frames.first().map_or(0, |frame| frame.meta.in_port);
        debug_assert!(frames.iter().all(|frame| frame.meta.in_port == in_port), "a burst is from one port");
        templates.begin(reader, PortNo(in_port));
        match store {
            Store::OneLine(records) => {
                burst.read_keys(reader, templates, frames, |hash| records.prefetch(hash));
                burst.find_candidates(records, frames.len(), now);
            }
            Store::TwoLines(records) => {
                burst.read_keys(reader, templates, frames, |hash| records.prefetch(hash));
                burst.find_candidates(records, frames.len(), now);
            }
        }
    }

    /// Finds the records of some packets of the burst, after [`Self::read_keys`]. Stores the place of each
    /// record, or [`NONE`]. `which` has one bit for each of these packets. The place of an outdated record
    /// has the bit [`OUTDATED`].
    pub(super) fn find(&mut self, which: u32) -> Found {
        let Self { store, changes, burst, .. } = self;
        match store {
            Store::OneLine(records) => burst.find(records, which, changes.version()),
            Store::TwoLines(records) => burst.find(records, which, changes.version()),
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
