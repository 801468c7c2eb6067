// SPDX-License-Identifier: Apache-2.0
//! Rules in the layout of keys. A few word operations compare a key with a rule, without the packet.
//!
//! The comparison never misses a match, but may report a match although the packet does not match. There are
//! two reasons: the key omits values that other bits imply (for example, a TCP header implies the protocol),
//! and entries may rewrite bits before the packet reaches the rule's table.

use crate::arrival::on_arrival;
use crate::conditions::{Condition, FIRST_SLICE, Facts, SliceEnd, implied};
use crate::layout::{KeyEnds, Layout, Run, UNPARSED_BYTES, implied_by};
use flow::{Field, FieldBase, FieldMatch, Match, ext};
use wire::ethernet::ETHERNET_BYTES;
use wire::layers::header;

/// Number of bytes in a word.
const WORD_BYTES: usize = 8;

/// Length of both MAC addresses in bytes.
const MACS_BYTES: u16 = 12;

/// Bytes of an IP header that a TTL decrement may change: the hop limit of IPv6, and the TTL and checksum of
/// IPv4.
pub(crate) const TTL_BYTES: std::ops::Range<u16> = 7..12;

/// First byte of the extended header after the ports. In an arriving packet, the bytes from here to the
/// EtherType are 0.
const ZEROS_FROM: u16 = ext::METADATA_BIT / 8;

/// Layout of rules for comparison with keys.
#[derive(Clone, Debug)]
pub(crate) struct RowLayout {
    keys: Layout,
    /// For each presence bit, the position of its fact in [`Facts`].
    presence: Vec<u8>,
    slices: Vec<SliceEnd>,
    /// Headers that the rules of the plan need.
    headers: u32,
}

/// Number of parts of a row. Each part is as long as a key.
const PARTS: usize = 3;

/// A rule in the layout of a key: flags, value, mask, and the mask that applies after entries have rewritten
/// MAC addresses or the TTL.
#[derive(Clone, Copy, Debug)]
pub struct RuleRow<'a> {
    flags: u64,
    words: &'a [u64],
}

/// The parts of a packet that entries rewrote before it reached a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rewritten {
    /// Nothing.
    Nothing,
    /// MAC addresses or the TTL.
    MacsOrTtl,
    /// Any bits.
    Anything,
}

/// Flag of a rule that no packet matches, unless entries have rewritten arbitrary bits.
const NEVER: u64 = 1;

impl<'a> RuleRow<'a> {
    /// Returns the length in words of a row for keys of `key_words` words.
    #[must_use]
    pub fn length(key_words: usize) -> usize {
        1 + PARTS * key_words
    }

    /// Returns the row in these words.
    #[must_use]
    pub fn of(words: &'a [u64]) -> Self {
        words
            .split_first()
            .map_or(Self { flags: NEVER, words }, |(flags, words)| Self { flags: *flags, words })
    }

    /// Returns whether no packet matches the rule, unless entries have rewritten arbitrary bits.
    #[must_use]
    pub fn is_never(&self) -> bool {
        self.flags & NEVER != 0
    }

    /// Returns the value.
    #[must_use]
    pub fn value(&self) -> &'a [u64] {
        &self.words[..self.words.len() / PARTS]
    }

    /// Returns the mask of the rule, followed by the mask that applies after entries have rewritten MAC
    /// addresses or the TTL.
    #[must_use]
    pub fn masks(&self) -> &'a [u64] {
        &self.words[self.words.len() / PARTS..]
    }

    /// Returns whether packets with this key may match the rule.
    #[must_use]
    #[inline]
    pub fn may_match(&self, key: &[u64], rewritten: Rewritten) -> bool {
        let (value, masks) = self.words.split_at(self.words.len() / PARTS);
        let (mask, after_rewrites) = masks.split_at(masks.len() / 2);
        let mask = match rewritten {
            Rewritten::Nothing => mask,
            Rewritten::MacsOrTtl => after_rewrites,
            Rewritten::Anything => return true,
        };
        let rule = value.iter().zip(mask);
        let differing = |differing, (key, (value, mask))| differing | (key ^ value) & mask;
        self.flags & NEVER == 0 && key.iter().zip(rule).fold(0, differing) == 0
    }
}

impl RowLayout {
    /// Creates the layout of a plan's rows.
    pub fn new(keys: Layout, presence: Vec<u8>, slices: Vec<SliceEnd>, headers: u32) -> Self {
        Self { keys, presence, slices, headers }
    }

    /// Returns the length of a key in words.
    fn key_words(&self) -> usize {
        self.keys.length_bytes.div_ceil(WORD_BYTES)
    }

    /// Returns the length of a row in words.
    pub fn row_words(&self) -> usize {
        RuleRow::length(self.key_words())
    }

    /// Appends the row of a rule, without bits that the keys omit.
    pub fn append(&self, matching: &Match, to: &mut Vec<u64>) {
        let mut maker = RowMaker {
            layout: self,
            parts: std::array::from_fn(|_| vec![0; self.key_words() * WORD_BYTES]),
            present: 0,
            absent: 0,
            is_never: false,
        };
        let mut by_headers = Vec::new();
        matching.fields().for_each(|condition| maker.add(&condition, &mut by_headers));
        maker.imply(&by_headers);
        maker.add_presence();
        to.push(if maker.is_never { NEVER } else { 0 });
        for word in maker.parts.iter().flat_map(|part| part.chunks_exact(WORD_BYTES)) {
            to.push(word.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte)));
        }
    }
}

/// A byte of a packet that a rule examines.
#[derive(Clone, Copy, Debug)]
struct Examined {
    base: FieldBase,
    byte: u16,
    when: Condition,
    value: u8,
    mask: u8,
    /// Whether earlier entries may rewrite the byte.
    is_rewritable: bool,
}

/// A row under construction.
struct RowMaker<'a> {
    layout: &'a RowLayout,
    /// Value, mask, and mask after rewrites, as bytes of the key.
    parts: [Vec<u8>; PARTS],
    /// Facts that are true for all matching packets.
    present: Facts,
    /// Facts that are false for all matching packets.
    absent: Facts,
    is_never: bool,
}

impl RowMaker<'_> {
    /// Adds a condition. Appends bytes whose value a header can imply to `by_headers` instead.
    fn add(&mut self, condition: &FieldMatch, by_headers: &mut Vec<Examined>) {
        let condition = &FieldMatch { field: on_arrival(condition.field), ..*condition };
        let location = condition.field.location();
        let mut when = Condition { needs: location.needs.into(), unless: 0 };
        self.present |= Facts::from(location.needs);
        if let Some(end) = SliceEnd::of(condition) {
            // Without the slice in the plan, keys do not show its presence.
            let Ok(at) = self.layout.slices.binary_search(&end) else { return };
            when.needs = 1 << (FIRST_SLICE as usize + at);
            self.present |= when.needs;
        }
        let is_slice = matches!(condition.field, Field::Slice(_));
        let (first, end) = (location.offset_bits, location.offset_bits + location.length_bits);
        for byte in first / 8..end.div_ceil(8) {
            let [value, mask] = [condition.value, condition.mask].map(|bits| byte_of(bits, first, end, byte));
            if mask == 0 {
                continue;
            }
            let is_rewritable = match location.base {
                FieldBase::Frame => byte < MACS_BYTES || byte >= ETHERNET_BYTES as u16,
                FieldBase::L3 => is_slice && TTL_BYTES.contains(&byte),
                _ => false,
            };
            let examined = Examined { base: location.base, byte, when, value, mask, is_rewritable };
            if location.base != FieldBase::Ext {
                self.compare(&examined);
            } else if byte < UNPARSED_BYTES {
                self.unparsed(&examined);
            } else {
                let when = Condition { needs: 0, unless: implied_by(byte, self.layout.headers) };
                let examined = Examined { when, ..examined };
                if when.unless == 0 { self.compare(&examined) } else { by_headers.push(examined) }
            }
        }
    }

    /// Adds a byte of the ports, the metadata register or the tunnel ID.
    fn unparsed(&mut self, examined: &Examined) {
        const PORT_BYTES: u16 = 4;
        if examined.byte < PORT_BYTES {
            // The least significant byte comes first in the key.
            let at = usize::from(PORT_BYTES - 1 - examined.byte);
            let KeyEnds { port_at, port_bytes, .. } = self.layout.keys.ends;
            if at < port_bytes {
                self.set(port_at + at, examined.value, examined.mask, false);
            } else {
                self.is_never |= examined.value & examined.mask != 0;
            }
        } else if examined.byte >= ZEROS_FROM {
            self.is_never |= examined.value & examined.mask != 0;
        }
    }

    /// Adds conditions on the EtherType and on the protocol, whose values headers can imply.
    fn imply(&mut self, bytes: &[Examined]) {
        let is_type = |examined: &&Examined| examined.byte < ext::IP_PROTO_BIT / 8;
        let is_proto = |examined: &&Examined| !is_type(examined);
        self.imply_one(&bytes.iter().filter(is_type).collect::<Vec<_>>());
        self.imply_one(&bytes.iter().filter(is_proto).collect::<Vec<_>>());
    }

    /// Adds conditions on bytes whose values the same headers can imply.
    fn imply_one(&mut self, bytes: &[&Examined]) {
        let Some(givers) = bytes.first().map(|examined| examined.when.unless) else { return };
        let suits = |giver: Facts| {
            bytes.iter().all(|examined| {
                let [high, low] = given_by(giver as u32).to_be_bytes();
                let given = if examined.byte == ext::ETH_TYPE_BIT / 8 { high } else { low };
                (given ^ examined.value) & examined.mask == 0
            })
        };
        let each = (0..FIRST_SLICE).map(|bit| 1 << bit).filter(|giver| givers & giver != 0);
        let fitting: Facts = each.filter(|giver| suits(*giver)).sum();
        let known = Facts::from(implied(self.present));
        if known & givers != 0 {
            // The rule requires a header that implies another value.
            self.is_never |= known & fitting == 0;
            return;
        }
        self.absent |= givers & !fitting;
        if fitting == 0 {
            bytes.iter().for_each(|examined| self.compare(examined));
        } else if known & Facts::from(header::IP) != 0
            && [header::IPV4, header::IPV6].contains(&(fitting as u32))
        {
            self.present |= fitting;
        }
    }

    /// Adds a condition on a byte that has its own position in the key, or several if a packet has some of
    /// its bits under a weaker condition.
    fn compare(&mut self, examined: &Examined) {
        let held = |(run, at): &(Run, usize)| {
            let number = usize::from(examined.byte.checked_sub(run.byte)?);
            let mask = *run.masks.get(number)?;
            let holds = run.base == examined.base && run.when.is_implied_by(examined.when, run.base);
            holds.then_some((at + number, mask))
        };
        let layout = self.layout;
        for (at, mask) in layout.keys.placed.iter().filter_map(held) {
            self.set(at, examined.value, examined.mask & mask, examined.is_rewritable);
        }
    }

    /// Adds conditions on the presence bits.
    fn add_presence(&mut self) {
        self.is_never |= self.present & self.absent != 0;
        for (number, fact) in self.layout.presence.iter().enumerate() {
            let (at, bit) = (self.layout.keys.ends.presence_at + number / 8, 1 << (number % 8));
            let is_set = |facts: Facts| facts >> fact & 1 != 0;
            if is_set(self.present | self.absent) {
                self.set(at, if is_set(self.present) { bit } else { 0 }, bit, false);
            }
        }
    }

    /// Adds a condition on some bits of a byte of the key.
    fn set(&mut self, at: usize, value: u8, mask: u8, is_rewritable: bool) {
        let [values, masks, after_rewrites] = &mut self.parts;
        // Conditions on the same bits may contradict each other.
        self.is_never |= (values[at] ^ value) & masks[at] & mask != 0 && !is_rewritable;
        values[at] |= value & mask;
        masks[at] |= mask;
        after_rewrites[at] |= if is_rewritable { 0 } else { mask };
    }
}

/// Returns a byte's part of a field's value. The field begins at bit `first` of its base and ends before bit
/// `end`.
fn byte_of(bits: u128, first: u16, end: u16, byte: u16) -> u8 {
    let bit_of = |at: u16| {
        let is_set = (first..end).contains(&at) && bits >> (end - 1 - at) & 1 != 0;
        u8::from(is_set)
    };
    (8 * byte..8 * byte + 8).fold(0, |value, at| value << 1 | bit_of(at))
}

/// Returns the EtherType or protocol that a header implies.
fn given_by(giver: u32) -> u16 {
    match giver {
        header::IPV4 => 0x0800,
        header::IPV6 => 0x86dd,
        header::ARP => 0x0806,
        header::PBB => 0x88e7,
        header::TCP => 6,
        header::UDP => 17,
        header::SCTP => 132,
        header::ICMPV4 => 1,
        _ => 58,
    }
}
