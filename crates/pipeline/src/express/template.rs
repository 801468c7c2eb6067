// SPDX-License-Identifier: Apache-2.0
//! Templates: the keys of common packets, built by a few loads at fixed offsets. A template gives the same
//! key as the general way, for packets with certain headers at certain offsets.

use super::key::{ExpressKey, KeyReader, LONGEST_BYTES, Load, ROOM_WORDS, starts};
use arrayvec::ArrayVec;
use flow::{Ext, FieldBase, PortNo, ext};
use wire::Layers;
use wire::layers::header;

/// Maximum number of templates. Common packets have fewer combinations of headers.
const TEMPLATES: usize = 16;

/// Maximum number of loads of a template, beyond those of each word.
const MORE_LOADS: usize = 16;

/// Number of bytes that one load reads.
const LOAD_BYTES: usize = 8;

/// A load from the packet begins before this offset. It exceeds the headers of common packets.
const FROM_MAX: usize = 64;

/// Number of bytes at the start of a packet from which a template loads.
pub(super) const WINDOW_BYTES: usize = FROM_MAX + LOAD_BYTES;

/// Adds masked bytes of a packet to one word of the key.
#[derive(Clone, Copy, Debug, Default)]
struct FixedLoad {
    /// Examined bits. The first byte is the lowest.
    mask: u64,
    /// Offset of the first byte in the packet, or in the extended header.
    from: u16,
    /// Word of the key.
    word: u8,
    /// Number of bits by which the loaded bytes move up in the word.
    shift: u8,
}

impl FixedLoad {
    /// Splits a load at the words of the key. `start` is the offset of its base.
    fn split(load: &Load, start: u16) -> impl Iterator<Item = Self> {
        let (at, from) = (usize::from(load.at), start + load.byte);
        let (word, skipped) = (at / LOAD_BYTES, at % LOAD_BYTES);
        let fits = LOAD_BYTES - skipped;
        let first = Self {
            mask: load.mask << (8 * skipped) >> (8 * skipped),
            from,
            word: word as u8,
            shift: 8 * skipped as u8,
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

    /// Returns the bits that the load adds to its word.
    #[inline(always)]
    fn bits(self, bytes: &[u8; WINDOW_BYTES]) -> u64 {
        let from = usize::from(self.from) % FROM_MAX;
        let loaded = bytes[from..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        (loaded & self.mask) << (self.shift % 64)
    }
}

/// Number of loads of a word that are made without a loop.
const WORD_LOADS: usize = 2;

/// Loads of a word, and the presence bits in this word. An absent load has the mask 0.
#[derive(Clone, Copy, Debug, Default)]
struct WordPlan {
    presence: u64,
    loads: [FixedLoad; WORD_LOADS],
}

/// The key of packets with the same headers at the same offsets.
#[derive(Debug)]
pub(super) struct Template {
    /// Headers of the packets, as bits of `wire::layers::header`.
    present: u32,
    l3: u16,
    l4: u16,
    /// Minimum length of the packets, bytes. They have all slices that the key examines.
    len_min: usize,
    words: [WordPlan; ROOM_WORDS],
    /// Whether a word has a second load.
    has_second_loads: bool,
    /// Other loads from the packet.
    more: ArrayVec<FixedLoad, MORE_LOADS>,
    /// Loads from the extended header.
    ext_loads: ArrayVec<FixedLoad, MORE_LOADS>,
}

impl Template {
    #[inline(always)]
    fn is_for(&self, layers: &Layers) -> bool {
        (self.present, self.l3, self.l4) == (layers.present, layers.l3, layers.l4)
    }

    /// Makes the template of packets with these headers. Returns `None` if it has too many loads, or loads
    /// beyond the common headers.
    fn new(reader: &KeyReader, layers: &Layers) -> Option<Self> {
        let Layers { present, l3, l4, .. } = *layers;
        let facts = reader.facts(LONGEST_BYTES, layers);
        let len_min = reader.slices_end(layers);
        let mut key = ExpressKey::default();
        reader.add_presence(facts, &mut key);
        let mut words = key.words().map(|presence| WordPlan { presence, ..WordPlan::default() });
        let (mut more, mut ext_loads) = (ArrayVec::new(), ArrayVec::new());
        let starts = starts(layers);
        for load in reader.loads().iter().filter(|load| load.when.holds(facts)) {
            for fixed in FixedLoad::split(load, starts[load.base as usize % starts.len()]) {
                let loads = &mut words[usize::from(fixed.word)].loads;
                if load.base == FieldBase::Ext {
                    // Packets without a tag have zeros there.
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
        let has_second_loads = words.iter().any(|plan| plan.loads[1].mask != 0);
        Some(Self { present, l3, l4, len_min, words, has_second_loads, more, ext_loads })
    }

    /// Returns whether the template is also for packets of this length.
    #[inline(always)]
    pub fn suits(&self, len: usize) -> bool {
        len >= self.len_min
    }

    /// Writes the first `WORDS` words of the key of a packet for which this template is. `bytes` begins with
    /// the packet.
    #[inline(always)]
    pub fn write<const WORDS: usize>(
        &self,
        bytes: &[u8; WINDOW_BYTES],
        layers: &Layers,
        in_port: PortNo,
        key: &mut ExpressKey,
    ) {
        let mut words: [u64; WORDS] = if self.has_second_loads {
            self.fixed_words::<WORDS, WORD_LOADS>(bytes)
        } else {
            self.fixed_words::<WORDS, 1>(bytes)
        };
        words[0] |= u64::from(in_port.0);
        let key = key.words_mut();
        key[..WORDS].copy_from_slice(&words);
        for load in &self.more {
            key[usize::from(load.word) % ROOM_WORDS] |= load.bits(bytes);
        }
        if !self.ext_loads.is_empty() {
            self.add_ext(layers, key);
        }
    }

    /// Returns the words of a key by the first `LOADS` loads of each.
    #[inline(always)]
    fn fixed_words<const WORDS: usize, const LOADS: usize>(
        &self,
        bytes: &[u8; WINDOW_BYTES],
    ) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        for (word, plan) in words.iter_mut().zip(&self.words) {
            let loads = plan.loads.iter().take(LOADS);
            *word = loads.fold(plan.presence, |word, load| word | load.bits(bytes));
        }
        words
    }

    /// Adds the loads from the extended header.
    #[inline(never)]
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

/// Templates of the common packets seen so far.
#[derive(Debug, Default)]
pub(super) struct Templates {
    templates: ArrayVec<Template, TEMPLATES>,
    /// Index of the template used last.
    last: usize,
}

impl Templates {
    /// Returns the template of packets with these headers, and makes it if there is none. Returns `None` if
    /// such packets need the general way. The headers must be those of a common packet, and the template may
    /// not suit the packet's length.
    #[inline(always)]
    pub fn choose(&mut self, reader: &KeyReader, layers: &Layers) -> Option<&Template> {
        if !self.templates.get(self.last).is_some_and(|template| template.is_for(layers)) {
            self.last = self.find_or_make(reader, layers)?;
        }
        self.templates.get(self.last)
    }

    /// Returns the index of the template of packets with these headers.
    #[inline(never)]
    fn find_or_make(&mut self, reader: &KeyReader, layers: &Layers) -> Option<usize> {
        if let Some(at) = self.templates.iter().position(|template| template.is_for(layers)) {
            return Some(at);
        }
        if self.templates.is_full() {
            return None;
        }
        self.templates.push(Template::new(reader, layers)?);
        Some(self.templates.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::express::look_up::locate;
    use crate::express::{ExpressPlan, PlanVersion};
    use flow::Field;
    use frame::Frame;
    use wire::{PacketBuilder, locate_common};

    /// Packets with all common combinations of headers. Each has other bytes.
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
                // What the words held before must not matter.
                let mut keys = [ExpressKey::default(); 2];
                keys[0].words_mut()[..words].fill(!0);
                let (port, bytes) = (PortNo(number.into()), frame.window().first_chunk().unwrap());
                let template = templates.choose(reader, &found).unwrap();
                match words {
                    1 => template.write::<1>(bytes, &found, port, &mut keys[0]),
                    2 => template.write::<2>(bytes, &found, port, &mut keys[0]),
                    3 => template.write::<3>(bytes, &found, port, &mut keys[0]),
                    4 => template.write::<4>(bytes, &found, port, &mut keys[0]),
                    _ => template.write::<14>(bytes, &found, port, &mut keys[0]),
                }
                reader.general_key(frame.bytes(), &found, port, &mut keys[1]);
                assert_eq!(keys[0].words(), keys[1].words(), "{count} fields, {bytes:02x?}");
                made += 1;
            }
        }
        assert!(made > 500, "{made}");
    }

    #[test]
    fn templates_serve_every_ethernet_frame_if_no_other_header_is_needed() {
        let fields = [Field::EthDst, Field::EthSrc, Field::VlanVid, Field::EthType];
        let examined = fields.map(|field| (field, field.full_mask())).to_vec();
        let plan = ExpressPlan::new(PlanVersion(1), examined, PortNo(70));
        let reader = plan.reader().unwrap();
        let ethernet = || PacketBuilder::ethernet([2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 1, 9]);
        let arp = |outer: PacketBuilder| outer.arp(1, [3; 6], [4; 4], [5; 6], [6; 4]).pad_to(60).build();
        let packets = [
            arp(ethernet()),
            arp(ethernet().vlan(0x8100, 7)),
            arp(ethernet().vlan(0x88a8, 8).vlan(0x8100, 9)),
            ethernet().mpls(5, 0, 64).payload(&[1; 60]).build(),
            ethernet().ethertype(0x1234).payload(&[2; 60]).build(),
        ];
        let mut templates = Templates::default();
        for bytes in packets {
            let (frame, mut found) = (Frame::from_bytes(&bytes), Layers::default());
            assert!(locate(&frame, reader.depth(), &mut found));
            let template = templates.choose(reader, &found).unwrap();
            let mut keys = [ExpressKey::default(); 2];
            let window = frame.window().first_chunk().unwrap();
            match reader.hashed_words() {
                2 => template.write::<2>(window, &found, PortNo(3), &mut keys[0]),
                _ => template.write::<3>(window, &found, PortNo(3), &mut keys[0]),
            }
            reader.general_key(frame.bytes(), &found, PortNo(3), &mut keys[1]);
            assert_eq!(keys[0].words(), keys[1].words(), "{bytes:02x?}");
        }
    }
}
