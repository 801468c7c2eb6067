// SPDX-License-Identifier: Apache-2.0
//! Trie from values of up to 32 bits to numbers, with 64-way nodes like Poptrie (Asai, Ohara, SIGCOMM 2015).
//! A node is a bitmap of the places where a new item begins. The number of bits set up to a place gives the
//! place's item.
//!
//! The upper part of a trie is its front. Most values are found there, in three steps:
//!
//! 1. A bitmap over the first 18 bits of the values (fewer in small tables) marks where nodes begin; the rank
//!    gives the node.
//! 2. In the node's bitmap the next six bits give the item.
//! 3. The item is read from an array in which each item takes only as many bits as it needs.
//!
//! A place within which no interval begins has the last item of the previous node. Intervals that differ in
//! later bits are found below the front, in nodes that store their items directly after their bitmaps.

use crate::NONE;

/// Number of bits that a node resolves.
pub(super) const STEP: u32 = 6;

/// Possible numbers of leading bits that the upper part of a trie (its front) resolves.
const FRONT_BITS: [u32; 3] = [18, 12, 6];

/// Maximum size of the [`Word`]s of a trie's upper part (its front), in bytes for each interval in the trie.
const FRONT_BYTES: usize = 64;

/// Maximum width of an item in bits. One 4-byte load reads an item and the bits before it in its first byte.
const WIDTH_MAX: u32 = 25;

/// Flag of an item that leads to a node below.
const CHILD: u32 = 1 << 31;

/// Alignment in bytes of the nodes below the front.
pub(super) const UNIT: u32 = 2;

/// Alignment in bits of the items of the front's nodes.
pub(super) const ITEM_UNIT: u32 = 2;

/// Every lookup takes the same number of steps. The number is chosen so that at most one of this many items
/// lies deeper.
const RARE: usize = 32;

/// Front of a trie (its upper part): a range of words, indexed by the leading bits of a value.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Root {
    pub at: u32,
    /// Number of leading bits of a value that are the index of its place in the front.
    pub bits: u32,
}

/// The part of a front that covers 64 places.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Word {
    /// Bitmap of the places at which a node starts. Bit 0 is always set.
    pub starts: u64,
    /// Index of the word's first node.
    pub node: u32,
    /// Position of the first item of the word's nodes, in units of [`ITEM_UNIT`] bits.
    pub base: u32,
}

/// Tries over the first 32 bits of values.
#[derive(Debug)]
pub(super) struct Trie {
    pub roots: Vec<Root>,
    pub words: Vec<Word>,
    /// Bitmap of the places where an item begins, for each node of the front. An item always begins at the
    /// first place, so the bit of this place is a flag for wide items.
    ///
    /// `offsets` has the position of each node's items, relative to the base of the node's word, in units of
    /// [`ITEM_UNIT`] bits. One unused element follows.
    pub maps: Vec<u64>,
    pub offsets: Vec<u16>,
    /// Items of the front. An item is a number or `none`. A wide item may also be the position of a node
    /// below the front, counted from `none` + 1. Padding follows for 4-byte loads.
    pub items: Vec<u8>,
    /// Nodes below the front: a bitmap of eight bytes, then its items. Padding follows for 4-byte loads.
    pub below: Vec<u8>,
    /// Width of an item in bits. `wide` is the width of wide items.
    pub width: u32,
    pub wide: u32,
    /// Item of values without a number.
    pub none: u32,
    /// Number of steps below the front in every lookup.
    steps: u32,
}

/// A node to be built: its first value, number of bits, and the intervals that overlap it.
struct Pending {
    start: u64,
    bits: u32,
    first: usize,
    last: usize,
}

impl Trie {
    /// Builds one trie for each group of intervals. Returns `None` if an item would take more than
    /// [`WIDTH_MAX`] bits.
    ///
    /// `starts` are the first values, left-aligned, ascending from 0, with no bit after the 32nd. `numbers`
    /// are the results of the intervals.
    pub fn new<'i>(groups: impl Iterator<Item = (&'i [u64], &'i [u32])> + Clone) -> Option<Self> {
        let numbers = groups.clone().flat_map(|(_, numbers)| numbers.iter());
        let none = numbers.filter(|number| **number != NONE).max().map_or(0, |most| most + 1);
        let mut draft = Draft { none, ..Draft::default() };
        groups.for_each(|(starts, numbers)| draft.add(starts, numbers));
        draft.trie()
    }

    /// Returns the number of the first 32 bits of a value, or [`NONE`].
    #[inline(always)]
    pub fn find(&self, group: u32, value: u64) -> u32 {
        let root = self.roots[group as usize];
        let place = value >> (u64::BITS - root.bits);
        let word = self.words[root.at as usize + (place / 64) as usize];
        let mut rest = value << root.bits;
        // Shifts the bit of the value's place to the upper end.
        let starts = word.starts << (63 - place % 64);
        let node = (word.node + starts.count_ones() - 1) as usize;
        let inner = if starts >> 63 != 0 { rest >> (u64::BITS - STEP) } else { 63 };
        let map = self.maps[node];
        let first = (word.base + u32::from(self.offsets[node])) * ITEM_UNIT;
        let mut item = self.item(&self.items, first as usize, map, inner);
        for _ in 0..self.steps {
            rest <<= STEP;
            let below = self.below(item.saturating_sub(self.none + 1), rest);
            item = if item > self.none { below } else { item };
        }
        while item > self.none {
            rest <<= STEP;
            item = self.below(item - self.none - 1, rest);
        }
        if item == self.none { NONE } else { item }
    }

    /// Returns the item that the value's next bits select in a node below the front.
    #[inline(always)]
    fn below(&self, node: u32, rest: u64) -> u32 {
        let node = (node * UNIT) as usize;
        let map = self.below[node..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        self.item(&self.below, (node + size_of::<u64>()) * 8, map, rest >> (u64::BITS - STEP))
    }

    /// Returns the item of a place in a node. The node's items begin at bit `first`.
    #[inline(always)]
    fn item(&self, items: &[u8], first: usize, map: u64, place: u64) -> u32 {
        let rank = ((map | 1) << (63 - place)).count_ones() - 1;
        let width = if map & 1 == 0 { self.width } else { self.wide };
        let bit = first + (rank * width) as usize;
        let word = items[bit / 8..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        word >> (bit % 8) & !(u32::MAX << width)
    }

    /// Returns the memory size in bytes.
    pub fn bytes(&self) -> usize {
        let front = size_of_val(&*self.words) + size_of_val(&*self.maps) + size_of_val(&*self.offsets);
        size_of_val(&*self.roots) + front + self.items.len() + self.below.len()
    }
}

/// Nodes that have no positions in memory yet. A child item is the child's node number.
#[derive(Default)]
struct Nodes {
    maps: Vec<u64>,
    /// Index of the first item of each node.
    firsts: Vec<usize>,
    items: Vec<u32>,
}

impl Nodes {
    fn items_of(&self, node: usize) -> &[u32] {
        let end = self.firsts.get(node + 1).copied().unwrap_or(self.items.len());
        &self.items[self.firsts[node]..end]
    }

    /// Returns each node's map with the flag for wide items, its items, and their width in bits.
    fn each(&self, width: u32, wide: u32) -> impl Iterator<Item = (u64, &[u32], u32)> {
        (0..self.maps.len()).map(move |node| {
            let items = self.items_of(node);
            let is_wide = items.iter().any(|item| *item >= CHILD);
            (self.maps[node] & !1 | u64::from(is_wide), items, if is_wide { wide } else { width })
        })
    }
}

/// A trie under construction, whose nodes have no positions in memory yet.
#[derive(Default)]
struct Draft {
    none: u32,
    roots: Vec<Root>,
    /// Words of the fronts, without their bases.
    words: Vec<Word>,
    front: Nodes,
    below: Nodes,
    /// Number of node numbers assigned below the front, including nodes that are not built yet.
    numbered: u32,
    /// At index `at`, the number of items that are found exactly `at` steps below the front.
    found: [usize; 8],
}

impl Draft {
    fn add(&mut self, starts: &[u64], numbers: &[u32]) {
        let room = starts.len() * FRONT_BYTES;
        let suits = |bits: &&u32| size_of::<Word>() << (**bits - STEP) <= room;
        let bits = FRONT_BITS.iter().find(suits).copied().unwrap_or(STEP);
        self.roots.push(Root { at: self.words.len() as u32, bits });
        let mut level = Vec::new();
        let mut last = 0;
        let mut front = std::mem::take(&mut self.front);
        for word in 0..1u64 << (bits - STEP) {
            let node = front.maps.len() as u32;
            let mut begun = 0;
            for place in 0..64 {
                let pending = meeting(starts, (word * 64 + place) << (u64::BITS - bits), bits, last);
                last = pending.last;
                if pending.first != pending.last {
                    begun |= 1 << place;
                    self.node(&mut front, starts, numbers, &pending, &mut level);
                    continue;
                }
                let item = numbers[pending.first].min(self.none);
                if place == 0 || front.items.last() != Some(&item) {
                    begun |= 1 << place;
                    front.maps.push(1);
                    front.firsts.push(front.items.len());
                    front.items.push(item);
                }
            }
            self.words.push(Word { starts: begun, node, base: 0 });
        }
        self.front = front;
        let mut below = std::mem::take(&mut self.below);
        for depth in 0.. {
            if level.is_empty() {
                break;
            }
            let mut next = Vec::new();
            let before = below.items.len();
            for node in &level {
                self.node(&mut below, starts, numbers, node, &mut next);
            }
            self.found[depth] += below.items.len() - before;
            level = next;
        }
        self.below = below;
    }

    fn node(
        &mut self,
        nodes: &mut Nodes,
        starts: &[u64],
        numbers: &[u32],
        node: &Pending,
        below: &mut Vec<Pending>,
    ) {
        let bits = node.bits + STEP;
        let first = nodes.items.len();
        let (mut map, mut last) = (0, node.first);
        for place in 0..1 << STEP {
            let start = node.start + (place << (u64::BITS - bits));
            let pending = meeting(&starts[..=node.last], start, bits, last);
            last = pending.last;
            let item = if pending.first == pending.last {
                numbers[pending.first].min(self.none)
            } else {
                below.push(pending);
                self.numbered += 1;
                CHILD | (self.numbered - 1)
            };
            if place == 0 || nodes.items.last() != Some(&item) {
                map |= 1 << place;
                nodes.items.push(item);
            }
        }
        nodes.maps.push(map);
        nodes.firsts.push(first);
    }

    /// Assigns positions to all nodes and packs them. Returns `None` if items would take more than
    /// [`WIDTH_MAX`] bits.
    fn trie(mut self) -> Option<Trie> {
        let bits_of = |number: usize| usize::BITS - number.leading_zeros();
        let width = bits_of(self.none as usize);
        // Wide items have the positions of nodes, which depend on the width. This searches for the smallest
        // sufficient width.
        let (wide, places) = (width..=WIDTH_MAX).find_map(|wide| {
            let places = self.places(width, wide);
            let end = places.last().copied().unwrap_or(0) / UNIT as usize;
            (bits_of(self.none as usize + end) <= wide).then_some((wide, places))
        })?;
        let coded = |item: u32| match item {
            ..CHILD => item,
            _ => self.none + 1 + (places[(item ^ CHILD) as usize] / UNIT as usize) as u32,
        };
        let mut below = vec![0; places.last().copied().unwrap_or(0) + size_of::<u64>()];
        for ((map, items, width), &at) in self.below.each(width, wide).zip(&places) {
            below[at..at + size_of::<u64>()].copy_from_slice(&map.to_le_bytes());
            let first = (at + size_of::<u64>()) * 8;
            items.iter().enumerate().for_each(|(which, item)| {
                put(&mut below, first + which * width as usize, coded(*item));
            });
        }
        let mut packed = vec![0; self.front.items.len() * wide as usize / 8 + self.front.maps.len() + 8];
        let (mut maps, mut offsets, mut bit) = (Vec::with_capacity(self.front.maps.len()), Vec::new(), 0);
        let mut words = self.words.iter_mut().peekable();
        let mut base = 0;
        for (node, (map, items, width)) in self.front.each(width, wide).enumerate() {
            if let Some(word) = words.next_if(|word| word.node as usize == node) {
                base = bit / ITEM_UNIT as usize;
                word.base = u32::try_from(bit).ok()? / ITEM_UNIT;
            }
            maps.push(map);
            offsets.push((bit / ITEM_UNIT as usize - base) as u16);
            for item in items {
                put(&mut packed, bit, coded(*item));
                bit += width as usize;
            }
            bit = bit.next_multiple_of(ITEM_UNIT as usize);
        }
        u32::try_from(bit).ok()?;
        packed.truncate(bit / 8 + 8);
        packed.shrink_to_fit();
        offsets.push(0);
        let steps = self.steps();
        let Self { none, roots, words, .. } = self;
        Some(Trie { roots, words, maps, offsets, items: packed, below, width, wide, none, steps })
    }

    /// Returns the position of each node below the front, and the end of the last node.
    fn places(&self, width: u32, wide: u32) -> Vec<usize> {
        let mut at = 0;
        let mut places = vec![0];
        for (_, items, width) in self.below.each(width, wide) {
            at += size_of::<u64>() + (items.len() * width as usize).div_ceil(8);
            at = at.next_multiple_of(UNIT as usize);
            places.push(at);
        }
        places
    }

    /// Returns the number of steps below the front within which all but a few items are found.
    fn steps(&self) -> u32 {
        let all = self.front.items.len() + self.below.items.len();
        let deeper = |steps: &u32| self.found[*steps as usize..].iter().sum::<usize>() <= all / RARE;
        (0..8).find(deeper).unwrap_or(0)
    }
}

fn put(bytes: &mut [u8], bit: usize, item: u32) {
    let item = (u64::from(item) << (bit % 8)).to_le_bytes();
    bytes[bit / 8..].iter_mut().zip(item).take(4).for_each(|(to, byte)| *to |= byte);
}

/// Returns the intervals that contain a value with the first `bits` bits of `start`. The interval `from` must
/// not begin after `start`.
fn meeting(starts: &[u64], start: u64, bits: u32, from: usize) -> Pending {
    let end = start | u64::MAX.checked_shr(bits).unwrap_or(0);
    let next = |mut at: usize, to: u64| {
        while starts.get(at + 1).is_some_and(|next| *next <= to) {
            at += 1;
        }
        at
    };
    let first = next(from, start);
    Pending { start, bits, first, last: next(first, end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a trie of `count` intervals of equal length, which the first `bits` bits of values
    /// distinguish.
    fn even(count: u64, bits: u32) -> Trie {
        let starts: Vec<u64> = (0..count).map(|at| at << (u64::BITS - bits)).collect();
        let numbers: Vec<u32> = (0..count as u32).collect();
        Trie::new([(&starts[..], &numbers[..])].into_iter()).unwrap()
    }

    #[test]
    fn a_front_takes_at_most_64_bytes_per_interval() {
        for (count, bits) in [(1, 6), (15, 6), (16, 12), (1_023, 12), (1_024, 18), (4_000, 18)] {
            let trie = even(count, 32);
            assert_eq!(trie.roots[0].bits, bits, "{count} intervals");
            assert_eq!(trie.words.len(), 1 << (bits - 6));
        }
    }

    #[test]
    fn every_lookup_takes_as_many_steps_as_most_intervals_need() {
        // The front resolves 18 bits, its nodes 6, and each step 6 more.
        for (bits, steps) in [(18, 0), (24, 0), (25, 1), (30, 1), (31, 2), (32, 2)] {
            assert_eq!(even(2_000, bits).steps, steps, "{bits} bits");
        }
        // A small fraction of the items may lie deeper.
        let few = |deep: u64| {
            let shallow = (0..3_200).map(|at| (at + 1) << 40);
            let starts: Vec<u64> = (0..=deep).map(|at| at << 34).chain(shallow).collect();
            let numbers: Vec<u32> = (0..starts.len() as u32).collect();
            Trie::new([(&starts[..], &numbers[..])].into_iter()).unwrap().steps
        };
        assert_eq!((few(20), few(63)), (0, 0));
        let many: Vec<u64> = (0..3_200).flat_map(|at| [at << 40, at << 40 | 1 << 34]).collect();
        let numbers: Vec<u32> = (0..many.len() as u32).collect();
        assert_eq!(Trie::new([(&many[..], &numbers[..])].into_iter()).unwrap().steps, 1);
    }

    #[test]
    fn numbers_take_at_most_25_bits_including_the_one_for_no_prefix() {
        let most = (1 << 25) - 2;
        let trie = |numbers: &[u32]| Trie::new([(&[0, 1 << 63][..], numbers)].into_iter());
        let widest = trie(&[NONE, most]).unwrap();
        assert_eq!((widest.width, widest.none), (25, most + 1));
        assert_eq!((widest.find(0, 0), widest.find(0, u64::MAX)), (NONE, most));
        assert!(trie(&[NONE, most + 1]).is_none());
        // The width of wide items depends on the greatest number and on node positions.
        let one = trie(&[NONE, NONE]).unwrap();
        assert_eq!((one.width, one.wide, one.none, one.below.len()), (0, 0, 0, 8));
    }

    #[test]
    fn every_interval_is_found_at_its_ends() {
        for (count, bits) in
            [(1, 32), (2, 1), (16, 4), (40, 6), (64, 6), (65, 7), (1_000, 10), (3_000, 32), (4_000, 26)]
        {
            let trie = even(count, bits);
            for at in 0..count {
                let start = at << (u64::BITS - bits);
                let end = if at + 1 == count { u64::MAX } else { start | u64::MAX >> bits };
                let right = at as u32;
                assert_eq!(
                    (trie.find(0, start), trie.find(0, end)),
                    (right, right),
                    "interval {at} of {count}"
                );
            }
        }
    }

    #[test]
    fn tries_report_their_memory_size() {
        let trie = even(2_000, 32);
        assert_eq!(
            (trie.roots.len(), trie.words.len(), trie.offsets.len()),
            (1, 1 << 12, trie.maps.len() + 1)
        );
        // A root takes 8 bytes, 64 places of the front take 16, a node of the front takes 10, and the unused
        // offset takes 2.
        let front = 8 + (16 << 12) + trie.maps.len() * 10 + 2;
        assert_eq!(trie.bytes(), front + trie.items.len() + trie.below.len());
        assert!(!trie.below.is_empty() && !trie.items.is_empty());
    }
}
