// SPDX-License-Identifier: Apache-2.0
//! Templates: the keys of common packets, built by a few loads at fixed offsets or by one byte shuffle. A
//! template gives the same key as [`KeyReader::general_key`], for packets with certain headers at certain
//! offsets.

#[cfg(test)]
mod tests;

use crate::key::{ExpressKey, KeyReader, LONGEST_BYTES, Load, ROOM_WORDS, starts};
use crate::simd::{KeyPermute, Vbmi};
use actions::TtlSpot;
use arrayvec::ArrayVec;
use flow::{FieldBase, PortNo, ext};
use wire::ethernet::ETHERNET_BYTES;
use wire::layers::header;
use wire::{CommonGuard, Depth, Layers};

/// Maximum number of templates. Common packets have fewer combinations of headers.
const TEMPLATES: usize = 16;

/// Maximum number of loads of a template that are not stored with their words.
const MORE_LOADS: usize = 16;

/// Number of bytes that one load reads.
const LOAD_BYTES: usize = 8;

/// Loads from the packet begin before this offset.
const FROM_MAX: usize = 64;

/// Number of bytes at the start of a packet from which a template loads.
pub const WINDOW_BYTES: usize = FROM_MAX + LOAD_BYTES;

/// Loads of a far template begin before this offset.
const FAR_FROM_MAX: usize = 128;

/// Number of bytes at the start of a packet from which a far template loads.
pub const FAR_WINDOW_BYTES: usize = FAR_FROM_MAX + LOAD_BYTES;

/// Offset of the control information of the outermost VLAN tag in a packet.
const TCI_AT: u16 = 14;

/// Offset of the ToS byte in the IPv4 header.
const IPV4_TOS: u16 = 1;

/// Adds masked bytes of a packet to one word of the key.
#[derive(Clone, Copy, Debug)]
struct FixedLoad {
    /// Mask of the examined bits. The first byte is the least significant.
    mask: u64,
    /// Offset of the first byte in the packet.
    from: u16,
    /// Index of the word in the key.
    word: u8,
    /// Number of bits by which the masked bytes are rotated to the left, mostly 0.
    rotation: u8,
}

impl FixedLoad {
    /// The load that adds nothing.
    const NOTHING: Self = Self { mask: 0, from: 0, word: 0, rotation: 0 };

    /// Splits a load from the packet at the key's word boundaries. `start` is the offset of the load's base.
    fn split(load: Load, start: u16) -> impl Iterator<Item = Self> {
        let (at, from) = (usize::from(load.at), start + load.byte);
        let (word, skipped) = (at / LOAD_BYTES, at % LOAD_BYTES);
        let fits = LOAD_BYTES - skipped;
        let up = 8 * skipped as u8;
        // With an earlier first byte, the examined bytes are at their position in the word without a shift.
        let first = match from.checked_sub(skipped as u16) {
            Some(from) => Self { mask: load.mask << up, from, word: word as u8, rotation: 0 },
            None => Self { mask: load.mask << up >> up, from, word: word as u8, rotation: up },
        };
        let rest = if skipped == 0 { 0 } else { load.mask >> (8 * fits) };
        let second = Self { mask: rest, from: from + fits as u16, word: word as u8 + 1, rotation: 0 };
        [first, second].into_iter().filter(|load| load.mask != 0)
    }

    /// Splits a load from the extended header into loads from a packet with these headers. Bits that these
    /// headers make constant are not loaded.
    fn split_ext(load: &Load, layers: &Layers) -> impl Iterator<Item = Self> {
        /// Offsets of the VLAN word and the ToS byte in the extended header.
        const VLAN: u16 = ext::VLAN_BIT / 8;
        const TOS: u16 = ext::IP_TOS_BIT / 8;
        let is = |headers: u32| layers.present & headers != 0;
        // Bits of the load from these bytes of the extended header.
        let part = |byte: u16, bytes: &[u8]| {
            let at = |byte: u16| byte.checked_sub(load.byte).filter(|at| *at < LOAD_BYTES as u16);
            let masks =
                (byte..).zip(bytes).filter_map(|(byte, mask)| Some(u64::from(*mask) << (8 * at(byte)?)));
            load.mask & masks.fold(0, |all, mask| all | mask)
        };
        // The extended header shows the presence of a tag in place of the tag's DEI bit. A loaded DEI bit
        // changes nothing, because the constant bits of a tagged packet have this bit set.
        let tci = if is(header::VLAN) { part(VLAN, &[0xff, 0xff]) } else { 0 };
        let tos = if is(header::IPV4) { part(TOS, &[0xff]) } else { 0 };
        // The traffic class begins in the lower half of the first byte of the IPv6 header.
        let halves = if is(header::IPV6) { [part(TOS, &[0xf0]), part(TOS, &[0x0f])] } else { [0; 2] };
        let moved = |mask, byte: u16, from: u16, rotation| {
            // The parsed bytes are less than `from` bytes apart, so the offset is positive.
            let from = Load { mask, base: FieldBase::Frame, byte: from + load.byte - byte, ..*load };
            Self::split(from, 0).map(move |fixed| Self { rotation, ..fixed })
        };
        moved(tci, VLAN, TCI_AT, 0)
            .chain(moved(tos, TOS, layers.l3 + IPV4_TOS, 0))
            .chain(moved(halves[0] >> 4, TOS, layers.l3, 4))
            .chain(moved(halves[1] << 4, TOS, layers.l3 + 1, 60))
    }

    /// Adds a load to the shuffle. Returns `None` if a byte shuffle cannot do the load.
    fn permuted(mut permute: KeyPermute, load: &Self) -> Option<KeyPermute> {
        let moved = usize::from(load.rotation / 8);
        for (number, mask) in load.mask.to_le_bytes().into_iter().enumerate().filter(|(_, mask)| *mask != 0) {
            let to = usize::from(load.word) * LOAD_BYTES + (number + moved) % LOAD_BYTES;
            permute.add(to, usize::from(load.from) + number, mask)?;
        }
        load.rotation.is_multiple_of(8).then_some(permute)
    }

    /// Returns the masked bytes of a load without rotation.
    #[inline(always)]
    fn unmoved_bits<const WINDOW: usize>(self, bytes: &[u8; WINDOW]) -> u64 {
        let from = usize::from(self.from) % (WINDOW - LOAD_BYTES);
        let loaded = bytes[from..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        loaded & self.mask
    }

    /// Returns the bits that the load adds to its word.
    #[inline(always)]
    fn bits<const WINDOW: usize>(self, bytes: &[u8; WINDOW]) -> u64 {
        self.unmoved_bits(bytes).rotate_left(self.rotation.into())
    }
}

/// Maximum number of loads that are stored with their word. `KeyTemplate::more` has the others.
const WORD_LOADS: usize = 2;

/// Loads of a word, all without rotation. An absent load has the mask 0.
type WordPlan = [FixedLoad; WORD_LOADS];

/// Loads that are necessary to build a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loads {
    /// At most one per word.
    One,
    /// At most [`WORD_LOADS`] per word.
    Two,
    /// More than [`WORD_LOADS`] for a word, or loads with a rotation.
    More,
}

/// Builds the keys of packets with the same headers at the same offsets.
#[derive(Clone, Debug)]
pub struct KeyTemplate {
    /// Index of the template in [`Templates`].
    index: u8,
    /// Headers of the packets, which have `present`, `l3`, `l4` and `eth_type` in common.
    layers: Layers,
    /// Place of the TTL of packets that the guard recognises.
    ttl: TtlSpot,
    /// Recognises packets without locating their headers.
    guard: CommonGuard,
    /// Minimum length in bytes of packets with an Ethernet header and all examined slices.
    len_min: usize,
    /// Constant bits: presence bits, ingress port, and bits that the headers imply.
    constants: ExpressKey,
    /// Whether `permute` builds the key.
    is_permuted: bool,
    permute: KeyPermute,
    words: [WordPlan; ROOM_WORDS],
    loads: Loads,
    /// Loads from the packet for which `words` has no space.
    more: ArrayVec<FixedLoad, MORE_LOADS>,
    /// Constant bits of all words without the ingress port.
    without_port: ExpressKey,
}

/// The template that recognises no packet.
static NOTHING: KeyTemplate = KeyTemplate {
    index: u8::MAX,
    layers: Layers::NONE,
    ttl: TtlSpot::UNKNOWN,
    guard: CommonGuard::NOTHING,
    len_min: usize::MAX,
    constants: ExpressKey::ZERO,
    is_permuted: false,
    permute: KeyPermute::NOTHING,
    words: [[FixedLoad::NOTHING; WORD_LOADS]; ROOM_WORDS],
    loads: Loads::One,
    more: ArrayVec::new_const(),
    without_port: ExpressKey::ZERO,
};

/// What packets of one template have in common: the headers, the offsets of L3 and L4, and the EtherType.
type CommonFacts = (u32, u16, u16, u16);

#[inline(always)]
fn facts_of(layers: &Layers) -> CommonFacts {
    (layers.present, layers.l3, layers.l4, layers.eth_type)
}

impl KeyTemplate {
    #[inline(always)]
    fn is_for(&self, layers: &Layers) -> bool {
        facts_of(&self.layers) == facts_of(layers)
    }

    /// Makes the template of packets with these headers, which must be located at least to the depth that the
    /// reader needs. Returns `None` if the headers do not determine where all examined bits are, if the
    /// template would need too many loads, or if a load would begin at or after `from_max`.
    fn new(index: u8, reader: &KeyReader, layers: &Layers, in_port: PortNo, from_max: usize) -> Option<Self> {
        debug_assert!(layers.depth >= reader.depth());
        let guard = CommonGuard::new(layers);
        let is_determined = match reader.depth() {
            Depth::None => true,
            // A type offset of 0 means an incomplete Ethernet header.
            Depth::L2 => layers.type_at != 0,
            Depth::L3 | Depth::L4 => guard.is_some(),
        };
        if !is_determined {
            return None;
        }
        let len_min = reader.slices_end(layers).max(ETHERNET_BYTES);
        let mut template = Self {
            index,
            layers: *layers,
            ttl: TtlSpot::of(layers),
            guard: guard.unwrap_or(CommonGuard::NOTHING).at_least(len_min),
            len_min,
            without_port: reader.constants(layers),
            ..NOTHING.clone()
        };
        template.constants = template.without_port;
        let (facts, starts) = (reader.facts(LONGEST_BYTES, layers), starts(layers));
        for load in reader.loads().iter().filter(|load| load.when.holds(facts)) {
            match load.base {
                FieldBase::Ext => {
                    FixedLoad::split_ext(load, layers).try_for_each(|fixed| template.add(fixed, from_max))?;
                }
                base => FixedLoad::split(*load, starts[base as usize % starts.len()])
                    .try_for_each(|fixed| template.add(fixed, from_max))?,
            }
        }
        let all_loads = template.words.iter().flatten().filter(|load| load.mask != 0);
        template.loads = if !template.more.is_empty() {
            Loads::More
        } else if template.words.iter().any(|[_, second]| second.mask != 0) {
            Loads::Two
        } else {
            Loads::One
        };
        let permute = all_loads.chain(&template.more).try_fold(KeyPermute::NOTHING, FixedLoad::permuted);
        template.is_permuted = permute.is_some();
        template.permute = permute.unwrap_or(KeyPermute::NOTHING);
        template.set_port(reader, in_port);
        Some(template)
    }

    /// Adds a load. Returns `None` if there are too many loads, or if it begins at or after `from_max`.
    fn add(&mut self, fixed: FixedLoad, from_max: usize) -> Option<()> {
        if usize::from(fixed.from) >= from_max {
            return None;
        }
        let mut loads = self.words[usize::from(fixed.word)].iter_mut();
        // Loads of a word from the same offset are joined.
        match loads.find(|load| load.mask == 0 || load.from == fixed.from) {
            Some(load) if fixed.rotation == 0 => *load = FixedLoad { mask: load.mask | fixed.mask, ..fixed },
            _ => self.more.try_push(fixed).ok()?,
        }
        Some(())
    }

    /// Sets the ingress port in the constant bits of the keys.
    fn set_port(&mut self, reader: &KeyReader, in_port: PortNo) {
        let words = reader.port_words();
        self.constants.words_mut()[words.clone()].copy_from_slice(&self.without_port.words()[words]);
        reader.add_port(in_port, &mut self.constants);
    }

    /// Returns the place of the TTL of packets that the template [recognises](Self::recognises).
    #[must_use]
    #[inline(always)]
    pub fn ttl(&self) -> TtlSpot {
        self.ttl
    }

    /// Returns whether a packet of this length is long enough for the template.
    #[must_use]
    #[inline(always)]
    pub fn suits(&self, len: usize) -> bool {
        len >= self.len_min
    }

    /// Returns true only if the template is for the frame of `len` bytes with which `bytes` begins. May
    /// return false even then, because headers are not located.
    #[must_use]
    #[inline(always)]
    pub fn recognises(&self, len: usize, bytes: &[u8; WINDOW_BYTES]) -> bool {
        self.guard.recognises(len, bytes)
    }

    /// Writes the first `WORDS` words of a packet's key, and possibly further words, which are 0. The packet
    /// must have the headers of this template. `bytes` begins with the packet.
    #[inline(always)]
    pub fn write<const WORDS: usize>(
        &self,
        vbmi: Option<Vbmi>,
        bytes: &[u8; WINDOW_BYTES],
        key: &mut ExpressKey,
    ) {
        if let Some(vbmi) = vbmi {
            match (
                bytes.first_chunk(),
                self.constants.words().first_chunk(),
                key.words_mut().first_chunk_mut(),
            ) {
                (Some(bytes), Some(constants), Some(key)) if WORDS <= key.len() && self.is_permuted => {
                    self.permute.write::<WORDS>(vbmi, bytes, constants, key);
                }
                _ => self.write_all::<WORDS, WINDOW_BYTES>(bytes, key),
            }
            return;
        }
        self.write_loads::<WORDS, WINDOW_BYTES>(bytes, key);
    }

    /// Like [`Self::write`], for a [far](FlatTemplate::Far) template.
    #[inline(always)]
    pub fn write_far<const WORDS: usize>(&self, bytes: &[u8; FAR_WINDOW_BYTES], key: &mut ExpressKey) {
        self.write_loads::<WORDS, FAR_WINDOW_BYTES>(bytes, key);
    }

    /// Writes the words of a key by loads.
    #[inline(always)]
    fn write_loads<const WORDS: usize, const WINDOW: usize>(
        &self,
        bytes: &[u8; WINDOW],
        key: &mut ExpressKey,
    ) {
        match self.loads {
            Loads::One => self.write_words::<WORDS, 1, WINDOW>(bytes, key),
            Loads::Two => self.write_words::<WORDS, WORD_LOADS, WINDOW>(bytes, key),
            Loads::More => self.write_all::<WORDS, WINDOW>(bytes, key),
        }
    }

    /// Returns the loads of a key of `WORDS` words if each word needs at most one load. Packets must be long
    /// enough for the template.
    #[must_use]
    pub fn single_loads<const WORDS: usize>(&self) -> Option<SingleLoads<WORDS>> {
        let load = |at: usize| SingleLoad { constant: self.constants.words()[at], load: self.words[at][0] };
        (self.loads == Loads::One).then(|| SingleLoads(std::array::from_fn(load)))
    }

    /// Returns the minimum length in bytes of packets that are long enough for the template.
    #[must_use]
    pub fn len_min(&self) -> usize {
        self.len_min
    }

    /// Writes the words of a key by at most `LOADS` loads for each.
    #[inline(always)]
    fn write_words<const WORDS: usize, const LOADS: usize, const WINDOW: usize>(
        &self,
        bytes: &[u8; WINDOW],
        key: &mut ExpressKey,
    ) {
        let plans = self.constants.words().iter().zip(&self.words);
        for (word, (constant, loads)) in key.words_mut().iter_mut().zip(plans).take(WORDS) {
            let loads = loads.iter().take(LOADS);
            *word = loads.fold(*constant, |word, load| word | load.unmoved_bits(bytes));
        }
    }

    /// Writes the words of a key with all loads of the template.
    #[inline(never)]
    fn write_all<const WORDS: usize, const WINDOW: usize>(&self, bytes: &[u8; WINDOW], key: &mut ExpressKey) {
        self.write_words::<WORDS, WORD_LOADS, WINDOW>(bytes, key);
        for load in &self.more {
            key.words_mut()[usize::from(load.word) % ROOM_WORDS] |= load.bits(bytes);
        }
    }
}

/// A word of a key: constant bits, and masked bytes of the packet.
#[derive(Clone, Copy, Debug)]
struct SingleLoad {
    constant: u64,
    load: FixedLoad,
}

/// The loads of a template that needs at most one load for each word of a key. Loops over many packets use a
/// copy, which stays in registers.
#[derive(Clone, Copy, Debug)]
pub struct SingleLoads<const WORDS: usize>([SingleLoad; WORDS]);

impl<const WORDS: usize> SingleLoads<WORDS> {
    /// Writes the key of a packet, as [`KeyTemplate::write`] does.
    #[inline(always)]
    pub fn write(&self, bytes: &[u8; WINDOW_BYTES], key: &mut ExpressKey) {
        for (word, SingleLoad { constant, load }) in key.words_mut().iter_mut().zip(&self.0) {
            *word = constant | load.unmoved_bits(bytes);
        }
    }
}

/// The template of all packets, for a plan that needs no header.
#[derive(Debug)]
pub enum FlatTemplate {
    /// Loads from the first [`WINDOW_BYTES`] of a packet.
    Near(KeyTemplate),
    /// Loads from the first [`FAR_WINDOW_BYTES`] of a packet, by [`KeyTemplate::write_far`].
    Far(KeyTemplate),
}

impl FlatTemplate {
    /// Returns `None` if the reader needs headers, or if only [`KeyReader::general_key`] can build its keys.
    fn new(reader: &KeyReader, in_port: PortNo) -> Option<Self> {
        if reader.depth() != Depth::None {
            return None;
        }
        let make = |from_max| KeyTemplate::new(u8::MAX, reader, &Layers::NONE, in_port, from_max);
        make(FROM_MAX).map(Self::Near).or_else(|| make(FAR_FROM_MAX).map(Self::Far))
    }

    fn template_mut(&mut self) -> &mut KeyTemplate {
        let (Self::Near(template) | Self::Far(template)) = self;
        template
    }
}

/// Templates for the keys of one reader: of the common packets seen so far, or of all packets. All have the
/// same ingress port.
#[derive(Debug)]
pub struct Templates {
    templates: ArrayVec<KeyTemplate, TEMPLATES>,
    /// Packets for which no template can be made, those seen first.
    refused: ArrayVec<CommonFacts, TEMPLATES>,
    /// The template of all packets.
    flat: Option<FlatTemplate>,
    /// Whether `flat` is valid.
    knows_flat: bool,
    vbmi: Option<Vbmi>,
    /// Index of the template used last.
    last: u8,
    /// Index of the template used before `last`. Mixed TCP and UDP traffic alternates between two.
    other: u8,
    in_port: PortNo,
}

impl Default for Templates {
    fn default() -> Self {
        Self {
            templates: ArrayVec::new(),
            refused: ArrayVec::new(),
            flat: None,
            knows_flat: false,
            vbmi: Vbmi::detect(),
            last: 0,
            other: 0,
            in_port: PortNo::default(),
        }
    }
}

impl Templates {
    /// Returns the vector instructions with which templates may build keys, or `None` if the core lacks them.
    #[must_use]
    #[inline]
    pub fn vbmi(&self) -> Option<Vbmi> {
        self.vbmi
    }

    /// Sets the ingress port in all templates.
    #[inline]
    pub fn begin(&mut self, reader: &KeyReader, in_port: PortNo) {
        if self.in_port != in_port {
            self.in_port = in_port;
            let all = self.templates.iter_mut().chain(self.flat.as_mut().map(FlatTemplate::template_mut));
            all.for_each(|template| template.set_port(reader, in_port));
        }
    }

    /// Returns the template used last.
    #[must_use]
    #[inline(always)]
    pub fn last(&self) -> Option<&KeyTemplate> {
        self.templates.get(usize::from(self.last))
    }

    /// Returns the two templates used last, the last one first. A missing template is replaced by one that
    /// recognises nothing.
    #[must_use]
    #[inline]
    pub fn recent(&self) -> [&KeyTemplate; 2] {
        [self.last, self.other].map(|index| self.templates.get(usize::from(index)).unwrap_or(&NOTHING))
    }

    /// Searches for a template that recognises a frame of `len` bytes, and makes it the template used last.
    /// Returns whether one was found. `bytes` begins with the frame.
    #[inline(never)]
    pub fn find(&mut self, len: usize, bytes: &[u8; WINDOW_BYTES]) -> bool {
        let found = self.templates.iter().find(|template| template.recognises(len, bytes));
        let Some(index) = found.map(|template| template.index) else { return false };
        self.set_last(index);
        true
    }

    fn set_last(&mut self, index: u8) {
        if index != self.last {
            (self.last, self.other) = (index, self.last);
        }
    }

    /// Returns the template of packets with these headers, and makes it if necessary. Returns `None` if only
    /// [`KeyReader::general_key`] can build the keys of such packets. The headers must be located at least to
    /// the reader's depth. The caller must check whether the template [suits](KeyTemplate::suits) the
    /// packet's length.
    #[inline(never)]
    pub fn choose(&mut self, reader: &KeyReader, layers: &Layers) -> Option<&KeyTemplate> {
        let index = self.find_or_make(reader, layers)?;
        self.set_last(index);
        self.last()
    }

    /// Returns the template of all packets, and makes it in the first call. Returns `None` if the reader
    /// needs headers, or if only [`KeyReader::general_key`] can build the keys.
    #[inline]
    pub fn flat(&mut self, reader: &KeyReader) -> Option<&FlatTemplate> {
        if !self.knows_flat {
            (self.flat, self.knows_flat) = (FlatTemplate::new(reader, self.in_port), true);
        }
        self.flat.as_ref()
    }

    /// Returns the index of the template for packets with these headers. Creates the template if necessary.
    fn find_or_make(&mut self, reader: &KeyReader, layers: &Layers) -> Option<u8> {
        if let Some(known) = self.templates.iter().find(|template| template.is_for(layers)) {
            return Some(known.index);
        }
        if self.templates.is_full() || self.refused.contains(&facts_of(layers)) {
            return None;
        }
        let index = self.templates.len() as u8;
        match KeyTemplate::new(index, reader, layers, self.in_port, FROM_MAX) {
            Some(template) => self.templates.push(template),
            None => {
                // If the list is full, the next such packet only costs the attempt again.
                let _ = self.refused.try_push(facts_of(layers));
                return None;
            }
        }
        Some(index)
    }
}
