// SPDX-License-Identifier: Apache-2.0
//! A trie for prefixes of up to 128 bits: the binary trie of the textbooks with 16 bits taken in its first step and eight in
//! each other, prefixes pushed down to the leaves, so that a lookup takes as many steps as a multi-bit trie of DPDK does.

use super::NONE;
use super::automaton::{Automaton, Builder, Edge, LANES};

/// Bits of the first step.
const ROOT_BITS: u8 = 16;

/// A prefix and what it is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Bits of the prefix, from the most significant on; the others are 0.
    pub value: u128,
    /// How many, 0 to 64 times the table's words.
    pub length: u8,
    /// Below [`NONE`].
    pub id: u32,
}

/// The trie of one table.
#[derive(Debug)]
pub struct LpmTrie {
    words: usize,
    automaton: Automaton,
    root: Box<[Edge]>,
}

impl LpmTrie {
    /// Builds a trie for keys of `words` words (1 or 2), which begin with their most significant bit. Of equal prefixes
    /// the last counts. `None` for other words, prefixes that are longer than a key or have bits behind their length, or
    /// ids that are [`NONE`].
    #[must_use]
    pub fn new(words: usize, routes: &[Route]) -> Option<Self> {
        let fits = |route: &Route| {
            usize::from(route.length) <= words * 64
                && route.value & !mask(route.length) == 0
                && route.id != NONE
        };
        if !(1..=2).contains(&words) || !routes.iter().all(fits) {
            return None;
        }
        let mut routes = routes.to_vec();
        routes.sort_by_key(|route| (route.value, route.length));
        let mut builder = Builder::new();
        let none = builder.leaf(NONE);
        let mut root = vec![none; 1 << ROOT_BITS];
        // Those that end in the first step, the shortest first.
        let mut short: Vec<&Route> = routes.iter().filter(|route| route.length <= ROOT_BITS).collect();
        short.sort_by_key(|route| route.length);
        for route in short {
            let leaf = builder.leaf(route.id);
            let from = (route.value >> (128 - u32::from(ROOT_BITS))) as usize;
            root[from..from + (1 << (ROOT_BITS - route.length))].fill(leaf);
        }
        let routes: Vec<Route> = routes.into_iter().filter(|route| route.length > ROOT_BITS).collect();
        let first = |route: &Route| (route.value >> (128 - u32::from(ROOT_BITS))) as usize;
        for routes in routes.chunk_by(|a, b| first(a) == first(b)) {
            let at = first(&routes[0]);
            root[at] = below(&mut builder, usize::from(ROOT_BITS / 8), routes, root[at])?;
        }
        Some(Self { words, automaton: builder.finish(), root: root.into_boxed_slice() })
    }

    /// Looks up the rows of `keys`: the id of the longest prefix of each, or [`NONE`].
    pub fn lookup(&self, keys: &[u64], out: &mut [u32]) {
        let mut keys = keys.chunks_exact(self.words * LANES);
        let (out, rest) = out.as_chunks_mut::<LANES>();
        for (keys, out) in keys.by_ref().zip(out) {
            *out = self.longest(keys);
        }
        for (key, out) in keys.remainder().chunks_exact(self.words).zip(rest) {
            [*out] = self.longest(key);
        }
    }

    #[inline(always)]
    fn longest<const KEYS: usize>(&self, keys: &[u64]) -> [u32; KEYS] {
        let first = |at: usize| self.root[(keys[at * self.words] >> (64 - ROOT_BITS)) as usize];
        self.automaton.walk(std::array::from_fn(first), keys, self.words)
    }

    /// Bytes that it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.automaton.bytes() + self.root.len() * size_of::<Edge>()
    }
}

/// The node that takes byte `byte`, of prefixes that are equal before it and longer; `inherited` is where a key goes that
/// has none of them.
fn below(builder: &mut Builder, byte: usize, routes: &[Route], inherited: Edge) -> Option<Edge> {
    let end = (byte + 1) * 8;
    let at = |route: &Route| (route.value >> (128 - end)) as u8;
    let mut targets = [inherited; 256];
    let mut ending: Vec<&Route> = routes.iter().filter(|route| usize::from(route.length) <= end).collect();
    ending.sort_by_key(|route| route.length);
    for route in ending {
        let leaf = builder.leaf(route.id);
        let from = usize::from(at(route));
        targets[from..from + (1 << (end - usize::from(route.length)))].fill(leaf);
    }
    for routes in routes.chunk_by(|a, b| at(a) == at(b)) {
        let target = &mut targets[usize::from(at(&routes[0]))];
        let longer: Vec<Route> =
            routes.iter().filter(|route| usize::from(route.length) > end).copied().collect();
        if !longer.is_empty() {
            *target = below(builder, byte + 1, &longer, *target)?;
        }
    }
    builder.node(byte, &targets)
}

fn mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}
