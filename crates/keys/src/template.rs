// SPDX-License-Identifier: Apache-2.0
//! Templates, which build the keys of common packets by a few loads at fixed offsets. A template is for
//! packets with certain headers at certain offsets. It gives the same key as [`KeyReader::general_key`].

use crate::key::{ExpressKey, KeyReader, LONGEST_BYTES, Load, ROOM_WORDS, starts};
use actions::TtlSpot;
use arrayvec::ArrayVec;
use flow::{Ext, FieldBase, PortNo, ext};
use wire::ethernet::ETHERNET_BYTES;
use wire::layers::header;
use wire::{CommonGuard, Layers};

/// Maximum number of templates. Common packets have fewer combinations of headers. If keys do not depend on
/// an IP header, each EtherType has a separate template.
const TEMPLATES: usize = 16;

/// Maximum number of loads of a template in addition to the loads of each word.
const MORE_LOADS: usize = 16;

/// Number of bytes that one load reads.
const LOAD_BYTES: usize = 8;

/// Loads from the packet begin before this offset, which is after the addresses and ports of common packets.
const FROM_MAX: usize = 64;

/// Number of bytes at the start of a packet from which a template loads.
pub const WINDOW_BYTES: usize = FROM_MAX + LOAD_BYTES;

/// A load of masked bytes of a packet into one word of the key.
#[derive(Clone, Copy, Debug, Default)]
struct FixedLoad {
    /// Mask of the examined bits. The first byte is the least significant.
    mask: u64,
    /// Offset of the first byte in the packet, or in the extended header.
    from: u16,
    /// Index of the word in the key.
    word: u8,
    /// Number of bits by which the loaded bytes are shifted left. It is 0 for nearly all loads.
    shift: u8,
}

impl FixedLoad {
    /// Splits a load at the word boundaries of the key. `start` is the offset of the load's base.
    fn split(load: &Load, start: u16) -> impl Iterator<Item = Self> {
        let (at, from) = (usize::from(load.at), start + load.byte);
        let (word, skipped) = (at / LOAD_BYTES, at % LOAD_BYTES);
        let fits = LOAD_BYTES - skipped;
        let up = 8 * skipped as u8;
        // The load begins at an earlier byte of the packet if possible. The examined bytes are then already
        // at their position in the word and need no shift.
        let first = match from.checked_sub(skipped as u16) {
            Some(from) => Self { mask: load.mask << up, from, word: word as u8, shift: 0 },
            None => Self { mask: load.mask << up >> up, from, word: word as u8, shift: up },
        };
        let rest = if skipped == 0 { 0 } else { load.mask >> (8 * fits) };
        let second = Self { mask: rest, from: from + fits as u16, word: word as u8 + 1, shift: 0 };
        [first, second].into_iter().filter(|load| load.mask != 0)
    }

    /// Removes the bytes of the VLAN tag from a load of the extended header.
    fn without_vlan(mut self) -> Self {
        const VLAN_BYTES: [u16; 2] = [ext::VLAN_BIT / 8, ext::VLAN_BIT / 8 + 1];
        for at in VLAN_BYTES.iter().filter_map(|byte| byte.checked_sub(self.from)) {
            self.mask &= !0xff_u64.checked_shl(8 * u32::from(at)).unwrap_or_default();
        }
        self
    }

    /// Returns the masked bytes of a load without a shift.
    #[inline(always)]
    fn unmoved_bits(self, bytes: &[u8; WINDOW_BYTES]) -> u64 {
        let from = usize::from(self.from) % FROM_MAX;
        let loaded = bytes[from..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        loaded & self.mask
    }

    /// Returns the bits that the load adds to its word.
    #[inline(always)]
    fn bits(self, bytes: &[u8; WINDOW_BYTES]) -> u64 {
        self.unmoved_bits(bytes) << (self.shift % 64)
    }
}

/// Maximum number of loads that are stored with their word. All other loads from the packet are in
/// `KeyTemplate::more`.
const WORD_LOADS: usize = 2;

/// The constant bits of a word of the key, and its loads. An unused element of `loads` has the mask 0.
#[derive(Clone, Copy, Debug, Default)]
struct WordPlan {
    /// Presence bits and ingress port.
    constant: u64,
    loads: [FixedLoad; WORD_LOADS],
}

/// Loads that are necessary to build a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loads {
    /// At most one per word.
    One,
    /// At most [`WORD_LOADS`] per word.
    Two,
    /// More loads, loads from the extended header, or loads that shift bytes.
    More,
}

/// Builds the keys of packets with the same headers at the same offsets.
#[derive(Debug)]
pub struct KeyTemplate {
    /// Index of the template in [`Templates`].
    index: u8,
    /// Headers of the packets. All packets of the template have the same `present`, `l3`, `l4` and `depth`.
    /// All packets that the guard recognises also have the same `eth_type`.
    layers: Layers,
    /// Place of the TTL of packets that the guard recognises.
    ttl: TtlSpot,
    /// Recognises the packets without locating their headers. `None` if this is impossible.
    guard: Option<CommonGuard>,
    /// Minimum length of the packets in bytes. Shorter packets lack a part of the Ethernet header or of a
    /// slice that the key examines.
    len_min: usize,
    words: [WordPlan; ROOM_WORDS],
    loads: Loads,
    /// Loads from the packet for which `words` has no space.
    more: ArrayVec<FixedLoad, MORE_LOADS>,
    /// Loads from the extended header.
    ext_loads: ArrayVec<FixedLoad, MORE_LOADS>,
}

impl KeyTemplate {
    #[inline(always)]
    fn is_for(&self, layers: &Layers) -> bool {
        let own = &self.layers;
        (own.present, own.l3, own.l4) == (layers.present, layers.l3, layers.l4)
    }

    /// Makes the template for packets with these headers. Returns `None` if it has too many loads, or a load
    /// at or beyond [`FROM_MAX`].
    fn new(index: u8, reader: &KeyReader, layers: &Layers, in_port: PortNo) -> Option<Self> {
        let Layers { present, l3, l4, depth, eth_type, .. } = *layers;
        let facts = reader.facts(LONGEST_BYTES, layers);
        let len_min = reader.slices_end(layers).max(ETHERNET_BYTES);
        let mut words = [WordPlan::default(); ROOM_WORDS];
        let (mut more, mut ext_loads) = (ArrayVec::new(), ArrayVec::new());
        let starts = starts(layers);
        for load in reader.loads().iter().filter(|load| load.when.holds(facts)) {
            for fixed in FixedLoad::split(load, starts[load.base as usize % starts.len()]) {
                let loads = &mut words[usize::from(fixed.word)].loads;
                if load.base == FieldBase::Ext {
                    // In packets without a tag, the tag's bytes of the extended header are 0.
                    let is_tagged = present & header::VLAN != 0;
                    let fixed = if is_tagged { fixed } else { fixed.without_vlan() };
                    if fixed.mask != 0 {
                        ext_loads.try_push(fixed).ok()?;
                    }
                } else if usize::from(fixed.from) >= FROM_MAX {
                    return None;
                } else if let Some(free) = loads.iter_mut().find(|load| load.mask == 0) {
                    *free = fixed;
                } else {
                    more.try_push(fixed).ok()?;
                }
            }
        }
        let has_more = !more.is_empty() || !ext_loads.is_empty();
        let moves = words.iter().flat_map(|plan| plan.loads).any(|load| load.shift != 0);
        let loads = if has_more || moves {
            Loads::More
        } else if words.iter().any(|plan| plan.loads[1].mask != 0) {
            Loads::Two
        } else {
            Loads::One
        };
        // The guard can be used only if the headers are located at least as deep as keys need.
        let guard = if depth >= reader.depth() { CommonGuard::new(layers) } else { None };
        let layers = Layers { present, l3, l4, depth, eth_type, ..Layers::default() };
        let ttl = TtlSpot::of(&layers);
        let mut template = Self { index, layers, ttl, guard, len_min, words, loads, more, ext_loads };
        template.set_constants(reader, in_port);
        Some(template)
    }

    /// Sets the constant bits of the keys: the presence bits and the ingress port.
    fn set_constants(&mut self, reader: &KeyReader, in_port: PortNo) {
        let mut key = ExpressKey::default();
        reader.add_presence(reader.facts(LONGEST_BYTES, &self.layers), &mut key);
        reader.add_port(in_port, &mut key);
        self.words.iter_mut().zip(key.words()).for_each(|(plan, word)| plan.constant = *word);
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

    /// Returns whether the template is for a frame of `len` bytes. Headers are not located; if they would be
    /// needed for the decision, the result is false. `bytes` begins with the frame.
    #[must_use]
    #[inline(always)]
    pub fn recognises(&self, len: usize, bytes: &[u8; WINDOW_BYTES]) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.recognises(len, bytes)) && self.suits(len)
    }

    /// Writes the first `WORDS` words of the key of a packet that this template is for. `bytes` begins with
    /// the packet. `layers` are its headers, which are used only if [`Self::needs_layers`] is true.
    #[inline(always)]
    pub fn write<const WORDS: usize>(
        &self,
        bytes: &[u8; WINDOW_BYTES],
        layers: &Layers,
        key: &mut ExpressKey,
    ) {
        match self.loads {
            Loads::One => self.write_words::<WORDS, 1>(bytes, key),
            Loads::Two => self.write_words::<WORDS, WORD_LOADS>(bytes, key),
            Loads::More => self.write_all::<WORDS>(bytes, layers, key),
        }
    }

    /// Returns whether the key depends on parsed headers, not only on bytes at fixed offsets.
    #[must_use]
    #[inline(always)]
    pub fn needs_layers(&self) -> bool {
        self.loads == Loads::More && !self.ext_loads.is_empty()
    }

    /// Writes the words of a key with at most `LOADS` loads per word, none of which shifts bytes.
    #[inline(always)]
    fn write_words<const WORDS: usize, const LOADS: usize>(
        &self,
        bytes: &[u8; WINDOW_BYTES],
        key: &mut ExpressKey,
    ) {
        for (word, plan) in key.words_mut().iter_mut().zip(&self.words).take(WORDS) {
            let loads = plan.loads.iter().take(LOADS);
            *word = loads.fold(plan.constant, |word, load| word | load.unmoved_bits(bytes));
        }
    }

    /// Writes the words of a key with all loads of the template.
    #[inline(never)]
    fn write_all<const WORDS: usize>(
        &self,
        bytes: &[u8; WINDOW_BYTES],
        layers: &Layers,
        key: &mut ExpressKey,
    ) {
        let key = key.words_mut();
        for (word, plan) in key.iter_mut().zip(&self.words).take(WORDS) {
            *word = plan.loads.iter().fold(plan.constant, |word, load| word | load.bits(bytes));
        }
        for load in &self.more {
            key[usize::from(load.word) % ROOM_WORDS] |= load.bits(bytes);
        }
        if !self.ext_loads.is_empty() {
            self.add_ext(layers, key);
        }
    }

    /// Adds the loads from the extended header.
    fn add_ext(&self, layers: &Layers, key: &mut [u64; ROOM_WORDS]) {
        let mut ext = Ext::default();
        ext.set_layers(layers);
        let mut bytes = [0; WINDOW_BYTES];
        let count = ext.bytes().len().min(WINDOW_BYTES);
        bytes[..count].copy_from_slice(&ext.bytes()[..count]);
        for load in &self.ext_loads {
            key[usize::from(load.word) % ROOM_WORDS] |= load.bits(&bytes);
        }
    }
}

/// Templates of the common packets seen so far. All of them are for the same ingress port.
#[derive(Debug, Default)]
pub struct Templates {
    templates: ArrayVec<KeyTemplate, TEMPLATES>,
    /// Index of the template used last.
    last: u8,
    /// Index of the template that was used before `last`. Mixed TCP and UDP traffic alternates between two
    /// templates.
    other: u8,
    in_port: PortNo,
}

impl Templates {
    /// Sets the ingress port of all templates.
    #[inline]
    pub fn begin(&mut self, reader: &KeyReader, in_port: PortNo) {
        if self.in_port != in_port {
            self.in_port = in_port;
            self.templates.iter_mut().for_each(|template| template.set_constants(reader, in_port));
        }
    }

    /// Returns the template used last.
    #[must_use]
    #[inline(always)]
    pub fn last(&self) -> Option<&KeyTemplate> {
        self.templates.get(usize::from(self.last))
    }

    /// Returns the two templates used last, the most recent one first.
    #[must_use]
    #[inline(always)]
    pub fn recent(&self) -> [Option<&KeyTemplate>; 2] {
        [self.last, self.other].map(|index| self.templates.get(usize::from(index)))
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

    /// Returns the template for packets with these headers, and creates it if necessary. Returns `None` if
    /// only [`KeyReader::general_key`] can build the keys of such packets. The headers must be those of a
    /// common packet. The caller must check whether the template [suits](KeyTemplate::suits) the packet's
    /// length.
    #[inline(never)]
    pub fn choose(&mut self, reader: &KeyReader, layers: &Layers) -> Option<&KeyTemplate> {
        let index = self.find_or_make(reader, layers)?;
        self.set_last(index);
        self.last()
    }

    /// Returns the index of the template for packets with these headers. Creates the template if necessary.
    fn find_or_make(&mut self, reader: &KeyReader, layers: &Layers) -> Option<u8> {
        let mut known = self.templates.iter().filter(|template| template.is_for(layers));
        let same = known.clone().find(|template| template.layers.eth_type == layers.eth_type);
        if let Some(same) = same {
            return Some(same.index);
        }
        if self.templates.is_full() {
            return Some(known.next()?.index);
        }
        let index = self.templates.len() as u8;
        self.templates.push(KeyTemplate::new(index, reader, layers, self.in_port)?);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ExpressPlan, PlanVersion};
    use flow::Field;
    use frame::Frame;
    use wire::{Depth, PacketBuilder, locate_common};

    /// Returns packets with all common combinations of headers. `number` is part of their field values.
    fn common(number: u8) -> Vec<Vec<u8>> {
        let ethernet = || PacketBuilder::ethernet([2, 0, 0, 0, 0, number], [2, 0, 0, 0, 1, number]);
        let tagged = || ethernet().vlan(0x8100, 0x6000 | u16::from(number));
        let (source, target) = ([0x20, number, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], [9; 16]);
        let upper = |ip: PacketBuilder| {
            [ip.clone().udp(number.into(), 53), ip.tcp(7_000, number.into())]
                .map(|packet| packet.payload(&[number; 60]).build())
        };
        let both = |outer: PacketBuilder| {
            let v4 = upper(outer.clone().ipv4([10, 0, 0, number], [10, 1, number, 1]));
            let v6 = upper(outer.ipv6(source, target));
            v4.into_iter().chain(v6)
        };
        both(ethernet()).chain(both(tagged())).collect()
    }

    #[test]
    fn templates_give_the_keys_of_the_general_way() {
        let mut made = 0;
        for count in 1..Field::NAMED.len() {
            let fields = Field::NAMED.iter().cycle().skip(count * 7).take(count);
            let mut examined: Vec<_> = fields.map(|field| (*field, field.full_mask())).collect();
            examined.sort_unstable();
            let plan = ExpressPlan::new(PlanVersion(1), examined, PortNo(70));
            let Some(reader) = plan.reader() else { continue };
            let mut templates = Templates::default();
            let words = reader.hashed_words();
            for (number, bytes) in
                (1..4).flat_map(|number| common(number).into_iter().map(move |b| (number, b)))
            {
                let frame = Frame::from_bytes(&bytes);
                let mut found = Layers::default();
                assert!(locate_common(frame.bytes(), &mut found));
                // The previous content of the words must not matter.
                let mut keys = [ExpressKey::default(); 2];
                keys[0].words_mut()[..words].fill(!0);
                let (port, bytes) = (PortNo(number.into()), frame.window().first_chunk().unwrap());
                templates.begin(reader, port);
                let template = templates.choose(reader, &found).unwrap();
                assert!(reader.depth() < Depth::L3 || template.recognises(frame.len(), bytes));
                match words {
                    1 => template.write::<1>(bytes, &found, &mut keys[0]),
                    2 => template.write::<2>(bytes, &found, &mut keys[0]),
                    3 => template.write::<3>(bytes, &found, &mut keys[0]),
                    4 => template.write::<4>(bytes, &found, &mut keys[0]),
                    _ => template.write::<14>(bytes, &found, &mut keys[0]),
                }
                if !template.needs_layers() {
                    let mut again = ExpressKey::default();
                    template.write::<14>(bytes, &Layers::NONE, &mut again);
                    assert_eq!(again.words(), keys[0].words(), "the headers do not matter");
                }
                reader.general_key(frame.bytes(), &found, port, &mut keys[1]);
                assert_eq!(keys[0].words(), keys[1].words(), "{count} fields, {bytes:02x?}");
                made += 1;
            }
        }
        assert!(made > 500, "{made}");
    }

    #[test]
    fn the_two_templates_used_last_are_remembered() {
        let examined = vec![(Field::EthDst, Field::EthDst.full_mask()), (Field::IpProto, 0xff)];
        let plan = ExpressPlan::new(PlanVersion(1), examined, PortNo(70));
        let (reader, mut templates) = (plan.reader().unwrap(), Templates::default());
        let frames: Vec<Frame> = common(1)[..3].iter().map(|bytes| Frame::from_bytes(bytes)).collect();
        for frame in &frames {
            let mut found = Layers::default();
            assert!(locate_common(frame.bytes(), &mut found));
            assert!(templates.choose(reader, &found).is_some());
        }
        let recent = |templates: &Templates| {
            templates.recent().map(|template| template.map_or(u8::MAX, |template| template.index))
        };
        assert_eq!(recent(&templates), [2, 1]);
        for (number, expected) in [(2, [2, 1]), (0, [0, 2]), (0, [0, 2]), (2, [2, 0])] {
            let frame = &frames[number];
            assert!(templates.find(frame.len(), frame.start().unwrap()));
            assert_eq!(recent(&templates), expected);
        }
        let other = Frame::from_bytes(&[0x55; 80]);
        assert!(!templates.find(other.len(), other.start().unwrap()));
        assert_eq!(recent(&templates), [2, 0]);
    }
}
