// SPDX-License-Identifier: Apache-2.0
//! Search trees from values of up to 128 bits to numbers, similar to PlanB (NSDI 2026).
//!
//! A tree covers the first 64 bits of the intervals. A node is a cache line of eight keys, which are compared
//! together. The number of keys below the value selects one of nine children. Nodes are stored level by
//! level, without pointers. A second tree distinguishes intervals that differ only after the first 64 bits.

use crate::NONE;

/// Number of keys in a node.
pub(super) const NODE: usize = 8;

/// Number of children of a node.
pub(super) const WAYS: u32 = NODE as u32 + 1;

/// Flag of a number that refers to a second tree, for intervals with equal first 64 bits.
const SECOND: u32 = 1 << 31;

/// A cache line of keys in ascending order. A key is the last value before an interval. Unused keys are
/// `u64::MAX`.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Node(pub [u64; NODE]);

/// A tree, stored from the root's level down.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tree {
    level: u32,
    depth: u32,
    /// Index in `Forest::numbers` of the tree's first interval.
    number: u32,
}

/// Search trees: one for each group of rules, followed by second trees.
#[derive(Debug)]
pub(super) struct Forest {
    pub nodes: Vec<Node>,
    /// Index of the first node of each level.
    levels: Vec<u32>,
    trees: Vec<Tree>,
    numbers: Vec<u32>,
}

impl Forest {
    /// Builds one tree for each group of intervals. `starts` are their first values, left-aligned and
    /// ascending from 0. `numbers` are their results, each below 2^31 or [`NONE`].
    pub fn new<'i>(groups: impl Iterator<Item = (&'i [u128], &'i [u32])> + Clone) -> Self {
        let mut made = Self { nodes: Vec::new(), levels: Vec::new(), trees: Vec::new(), numbers: Vec::new() };
        made.trees.resize(groups.clone().count(), Tree::default());
        for (group, (starts, numbers)) in groups.enumerate() {
            let (starts, numbers) = made.first_bits(starts, numbers);
            made.trees[group] = made.tree(&starts, &numbers);
        }
        made
    }

    /// Returns the intervals of the first 64 bits. Builds second trees for intervals that differ after them.
    fn first_bits(&mut self, starts: &[u128], numbers: &[u32]) -> (Vec<u64>, Vec<u32>) {
        let high = |start: &u128| (*start >> 64) as u64;
        let (mut firsts, mut made) = (Vec::with_capacity(starts.len()), Vec::with_capacity(starts.len()));
        let mut begin = |start: u64, number: u32| {
            // Drops the previous interval, which is empty.
            if firsts.last() == Some(&start) {
                firsts.pop();
                made.pop();
            }
            firsts.push(start);
            made.push(number);
        };
        let mut before = NONE;
        let mut at = 0;
        for same in starts.chunk_by(|a, b| high(a) == high(b)) {
            let own = &numbers[at..at + same.len()];
            at += same.len();
            let first = high(&same[0]);
            if let ([0], [number]) = (&same.iter().map(|start| *start as u64).collect::<Vec<_>>()[..], own) {
                begin(first, *number);
            } else {
                let whole = same[0] as u64 == 0;
                let lows = (!whole).then_some(0).into_iter().chain(same.iter().map(|start| *start as u64));
                let inner = (!whole).then_some(before).into_iter().chain(own.iter().copied());
                let (lows, inner): (Vec<u64>, Vec<u32>) = lows.zip(inner).unzip();
                let tree = self.tree(&lows, &inner);
                self.trees.push(tree);
                begin(first, SECOND | (self.trees.len() as u32 - 1));
                if let (Some(next), Some(last)) = (first.checked_add(1), own.last()) {
                    begin(next, *last);
                }
            }
            before = own.last().copied().unwrap_or(before);
        }
        (firsts, made)
    }

    fn tree(&mut self, starts: &[u64], numbers: &[u32]) -> Tree {
        let number = self.numbers.len() as u32;
        self.numbers.extend_from_slice(numbers);
        // The first interval needs no key: no key is below its values.
        let keys = starts.get(1..).unwrap_or_default();
        let mut sizes = Vec::new();
        let mut size = keys.len().div_ceil(NODE);
        while size > 0 {
            sizes.push(size);
            size = if size == 1 { 0 } else { size.div_ceil(WAYS as usize) };
        }
        let level = self.levels.len() as u32;
        for (height, size) in sizes.iter().enumerate().rev() {
            let first = self.nodes.len() as u32;
            self.levels.push(first);
            for node in 0..*size {
                let key = |at: usize| {
                    // The leaves have all keys in order. In other nodes, key `at` is the first key below
                    // child `at` + 1.
                    let leaves = (WAYS as usize).pow((height as u32).saturating_sub(1));
                    let place = match height {
                        0 => node * NODE + at,
                        _ => (node * WAYS as usize + at + 1) * leaves * NODE,
                    };
                    keys.get(place).map_or(u64::MAX, |key| key - 1)
                };
                self.nodes.push(Node(std::array::from_fn(key)));
            }
        }
        Tree { level, depth: sizes.len() as u32, number }
    }

    /// Returns the index of the first node of each level of a tree, beginning with the root's level.
    #[inline(always)]
    pub fn levels_of(&self, tree: Tree) -> &[u32] {
        &self.levels[tree.level as usize..][..tree.depth as usize]
    }

    /// Returns the tree of a group.
    #[inline(always)]
    pub fn tree_of(&self, group: u32) -> Tree {
        self.trees[group as usize]
    }

    /// Returns the numbers of a tree's intervals.
    #[inline(always)]
    pub fn numbers_of(&self, tree: Tree) -> &[u32] {
        &self.numbers[tree.number as usize..]
    }

    /// Returns whether a number refers to a second tree.
    #[inline(always)]
    pub fn is_second(number: u32) -> bool {
        (SECOND..NONE).contains(&number)
    }

    /// Returns the second tree to which a number refers, if any.
    #[inline(always)]
    pub fn second(&self, number: u32) -> Option<Tree> {
        Self::is_second(number).then(|| self.trees[(number ^ SECOND) as usize])
    }

    /// Returns the number to which a tree maps `value`, up to 64 left-aligned bits of the field.
    #[inline(always)]
    pub fn find(&self, tree: Tree, value: u64, count: impl Fn(&Node, u64) -> u32) -> u32 {
        let Some((leaves, inner)) = self.levels_of(tree).split_last() else {
            return self.numbers_of(tree)[0];
        };
        let node = |first: &u32, place: u32| &self.nodes[(first + place) as usize];
        let place = inner.iter().fold(0, |place, first| place * WAYS + count(node(first, place), value));
        let place = place * NODE as u32 + count(node(leaves, place), value);
        self.numbers_of(tree)[place as usize]
    }

    /// Returns the memory size in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.nodes)
            + size_of_val(&*self.levels)
            + size_of_val(&*self.trees)
            + size_of_val(&*self.numbers)
    }
}

/// Returns the number of keys below a value.
#[inline(always)]
pub(super) fn count(node: &Node, value: u64) -> u32 {
    node.0.iter().map(|key| u32::from(*key < value)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_have_no_unneeded_node_and_lead_to_every_interval() {
        // The first interval needs no key. A leaf has eight keys, and an inner node has nine children.
        for (count, nodes) in [(1, 0), (2, 1), (9, 1), (10, 3), (73, 10), (74, 13), (649, 91), (650, 95)] {
            let starts: Vec<u128> = (0..count).map(|at| at << 100).collect();
            let numbers: Vec<u32> = (0..count as u32).map(|at| at + 7).collect();
            let forest = Forest::new([(&starts[..], &numbers[..])].into_iter());
            assert_eq!((forest.trees.len(), forest.numbers.len()), (1, count as usize));
            let levels = forest.levels_of(forest.tree_of(0)).len();
            let held = forest.nodes.len() * 64 + levels * 4 + 12 + count as usize * 4;
            assert_eq!(forest.bytes(), held, "{count} intervals");
            for (start, number) in starts.iter().zip(&numbers) {
                let first = (start >> 64) as u64;
                let last = first | u64::MAX >> 28;
                let find = |value: u64| forest.find(forest.tree_of(0), value, super::count);
                assert_eq!((find(first), find(last)), (*number, *number), "{count} intervals");
            }
            assert_eq!(forest.nodes.len(), nodes, "{count} intervals");
        }
    }
}
