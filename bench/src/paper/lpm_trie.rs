// SPDX-License-Identifier: Apache-2.0
//! Trie for prefixes of up to 128 bits, of the same kind as `rte_lpm6`. Its first step consumes 24 bits, each
//! further step eight bits, with one load per step. Prefixes are expanded to the step in which they end.

use super::NONE;

/// Number of bits in the first step.
const ROOT_BITS: usize = 24;

/// Number of entries in a group. Groups are the nodes of all steps after the first.
const GROUP: usize = 256;

/// Bit of an entry that leads to a group; the other bits are the group's number. An entry without this bit is
/// the id of its prefix plus 1, or 0 if there is no prefix.
const IS_GROUP: u32 = 1 << 31;

/// Prefix with its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Bits of the prefix, left-aligned. All bits after the prefix are 0.
    pub value: u128,
    /// Prefix length, 0 to 64 times the number of words.
    pub length: u8,
    /// Id, below 2^31 - 1.
    pub id: u32,
}

/// Trie of one table.
#[derive(Debug)]
pub struct LpmTrie {
    words: usize,
    root: Box<[u32]>,
    groups: Vec<u32>,
}

impl LpmTrie {
    /// Builds a trie for keys of `words` words (1 or 2), most significant bit first. Among equal prefixes,
    /// the last one is kept. Returns `None` if `words` is out of range, if a prefix is longer than a key or
    /// has nonzero bits after its length, or if an id is too large. The trie takes 64 MiB of address space
    /// and 1 KiB per group.
    #[must_use]
    pub fn new(words: usize, routes: &[Route]) -> Option<Self> {
        let fits = |route: &Route| {
            usize::from(route.length) <= words * 64
                && route.value & !mask(route.length) == 0
                && route.id < IS_GROUP - 1
        };
        if !(1..=2).contains(&words) || !routes.iter().all(fits) {
            return None;
        }
        let mut routes = routes.to_vec();
        // Routes are added shortest first, so a longer prefix overwrites a part of a shorter prefix. None of
        // the overwritten entries leads to a group yet.
        routes.sort_by_key(|route| route.length);
        let mut trie = Self { words, root: vec![0; 1 << ROOT_BITS].into_boxed_slice(), groups: Vec::new() };
        routes.iter().for_each(|route| trie.add(route));
        trie.groups.shrink_to_fit();
        Some(trie)
    }

    fn add(&mut self, route: &Route) {
        let length = usize::from(route.length);
        let first = (route.value >> (128 - ROOT_BITS)) as usize;
        if length <= ROOT_BITS {
            self.root[first..first + (1 << (ROOT_BITS - length))].fill(route.id + 1);
            return;
        }
        let mut base = Self::group(&mut self.root[first], &mut self.groups);
        let mut end = ROOT_BITS + 8;
        while end < length {
            let at = base + byte(route.value, end);
            let mut entry = self.groups[at];
            base = Self::group(&mut entry, &mut self.groups);
            self.groups[at] = entry;
            end += 8;
        }
        let at = base + byte(route.value, end);
        self.groups[at..at + (1 << (end - length))].fill(route.id + 1);
    }

    /// Returns the start of the group that an entry leads to. A new group is filled with the entry's previous
    /// prefix.
    fn group(entry: &mut u32, groups: &mut Vec<u32>) -> usize {
        if *entry & IS_GROUP == 0 {
            let number = groups.len() / GROUP;
            groups.extend([*entry; GROUP]);
            // Memory suffices for fewer than 2^31 groups.
            *entry = number as u32 | IS_GROUP;
        }
        (*entry & !IS_GROUP) as usize * GROUP
    }

    /// Looks up the rows of `keys`. Writes the id of the longest prefix of each key, or [`NONE`].
    pub fn lookup(&self, keys: &[u64], out: &mut [u32]) {
        match self.words {
            1 => self.lookup_rows::<1>(keys, out),
            _ => self.lookup_rows::<2>(keys, out),
        }
    }

    /// The loads of different keys are independent, so the core overlaps them.
    #[inline(always)]
    fn lookup_rows<const WORDS: usize>(&self, keys: &[u64], out: &mut [u32]) {
        for (key, out) in keys.as_chunks::<WORDS>().0.iter().zip(out) {
            let mut entry = self.root[(key[0] >> (64 - ROOT_BITS)) as usize];
            let mut end = ROOT_BITS + 8;
            while entry & IS_GROUP != 0 {
                let byte = (key[(end - 1) / 64] >> (64 - 1 - (end - 1) % 64)) as usize % GROUP;
                entry = self.groups[(entry & !IS_GROUP) as usize * GROUP + byte];
                end += 8;
            }
            *out = entry.wrapping_sub(1);
        }
    }

    /// Returns the size of the trie in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.root.len() + self.groups.len()) * 4
    }
}

/// Returns the byte that ends with bit `end`.
fn byte(value: u128, end: usize) -> usize {
    (value >> (128 - end)) as usize % GROUP
}

fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

const _: () =
    assert!(NONE == 0_u32.wrapping_sub(1), "an entry without a prefix is 0, and its id is 0 minus 1");
