// SPDX-License-Identifier: Apache-2.0
//! Lookup structure of both tries: nodes that each consume one byte of the key.
//!
//! ```text
//! edge ──► node: map of 256 classes (shared by all nodes that distinguish the same bytes)
//!                edges, one per class ──► node, or leaf
//! ```
//!
//! An edge contains the start of its node's edges, the index of the map, and the byte that the node consumes,
//! so a step has two dependent loads. Equal nodes are merged.

use std::collections::HashMap;

/// Number of keys that are looked up in parallel.
pub(super) const LANES: usize = 8;

const MAP_AT: u32 = 32;
const MAP_BITS: u32 = 18;
const SHIFT_AT: u32 = MAP_AT + MAP_BITS;
const WORD_AT: u32 = SHIFT_AT + 6;
const LEAF: u64 = 1 << 63;

/// Edge to a node or a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Edge(u64);

impl Edge {
    #[inline(always)]
    pub(super) fn is_leaf(self) -> bool {
        self.0 & LEAF != 0
    }

    #[inline(always)]
    fn base(self) -> usize {
        self.0 as u32 as usize
    }
}

/// Nodes of one table.
#[derive(Debug)]
pub(super) struct Automaton {
    edges: Vec<Edge>,
    maps: Vec<[u8; 256]>,
}

impl Automaton {
    /// Executes one step. A leaf leads to itself.
    #[inline(always)]
    fn step(&self, edge: Edge, key: &[u64]) -> Edge {
        let byte = (key[(edge.0 >> WORD_AT & 0x3f) as usize] >> (edge.0 >> SHIFT_AT & 0x3f)) as u8;
        let map = &self.maps[(edge.0 >> MAP_AT) as usize & ((1 << MAP_BITS) - 1)];
        self.edges[edge.base() + usize::from(map[usize::from(byte)])]
    }

    /// Returns the number in a leaf.
    #[inline(always)]
    fn held(&self, leaf: Edge) -> u32 {
        self.edges[leaf.base() + 1].0 as u32
    }

    /// Walks from `edges` (one per key of `words` words) to the leaves, and returns their numbers.
    #[inline(always)]
    pub(super) fn walk<const KEYS: usize>(
        &self,
        mut edges: [Edge; KEYS],
        keys: &[u64],
        words: usize,
    ) -> [u32; KEYS] {
        while !edges.iter().all(|edge| edge.is_leaf()) {
            for (edge, key) in edges.iter_mut().zip(keys.chunks_exact(words)) {
                *edge = self.step(*edge, key);
            }
        }
        edges.map(|edge| self.held(edge))
    }

    /// Returns the size of the nodes in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.edges.len() * size_of::<Edge>() + self.maps.len() * size_of::<[u8; 256]>()
    }
}

/// Builder of an automaton, from the leaves up.
pub(super) struct Builder {
    automaton: Automaton,
    maps: HashMap<[u8; 256], usize>,
    nodes: HashMap<(u8, usize, Box<[Edge]>), Edge>,
    leaves: HashMap<u32, Edge>,
}

impl Builder {
    pub fn new() -> Self {
        let automaton = Automaton { edges: Vec::new(), maps: vec![[0; 256]] };
        Self {
            automaton,
            maps: HashMap::from([([0; 256], 0)]),
            nodes: HashMap::new(),
            leaves: HashMap::new(),
        }
    }

    /// Returns the number of edges so far.
    pub fn len(&self) -> usize {
        self.automaton.edges.len()
    }

    /// Returns the leaf with a number.
    pub fn leaf(&mut self, held: u32) -> Edge {
        let edges = &mut self.automaton.edges;
        *self.leaves.entry(held).or_insert_with(|| {
            let leaf = Edge(edges.len() as u64 | LEAF);
            edges.extend([leaf, Edge(held.into())]);
            leaf
        })
    }

    /// Returns the node that consumes byte `byte` of the key (0: the most significant of the first word) and
    /// continues to `targets`. Returns `None` if there are too many maps for an edge.
    pub fn node(&mut self, byte: usize, targets: &[Edge; 256]) -> Option<Edge> {
        if targets.iter().all(|target| *target == targets[0]) {
            return Some(targets[0]);
        }
        let (mut map, mut edges) = ([0; 256], Vec::new());
        for (class, target) in map.iter_mut().zip(targets) {
            let at = edges.iter().position(|edge| edge == target).unwrap_or_else(|| {
                edges.push(*target);
                edges.len() - 1
            });
            *class = u8::try_from(at).ok()?;
        }
        let maps = &mut self.automaton.maps;
        let map = *self.maps.entry(map).or_insert_with(|| {
            maps.push(map);
            maps.len() - 1
        });
        if map >> MAP_BITS != 0 || self.automaton.edges.len() > u32::MAX as usize - 256 {
            return None;
        }
        let (word, shift) = (byte / 8, 56 - byte % 8 * 8);
        let base = self.automaton.edges.len();
        let all = &mut self.automaton.edges;
        let edge =
            *self.nodes.entry((u8::try_from(byte).ok()?, map, edges.into())).or_insert_with_key(|key| {
                all.extend_from_slice(&key.2);
                Edge(
                    base as u64
                        | (map as u64) << MAP_AT
                        | (shift as u64) << SHIFT_AT
                        | (word as u64) << WORD_AT,
                )
            });
        Some(edge)
    }

    pub fn finish(mut self) -> Automaton {
        self.automaton.edges.shrink_to_fit();
        self.automaton.maps.shrink_to_fit();
        self.automaton
    }
}
