// SPDX-License-Identifier: Apache-2.0
//! Control side: construction of trees. A tree takes the rules that specify nearly all bits on which it
//! branches. The next tree takes the others, and branches on other bits.

use super::bit_counts::BitCounts;
use super::layout::extract;
use super::simd::{Block, COMPARED, Entry, LANES, MORE_SHIFT};
use super::{PARTIAL, Piece, Tree};
use crate::parallel::PARALLEL_MIN;
use crate::{NONE, RunInParallel};
use std::ops::Range;

/// Maximum number of trees in a table.
const TREES_MAX: usize = 6;

/// Maximum number of steps from a tree's root to a leaf.
const DEPTH_MAX: u32 = 4;

/// Maximum number of rules in a leaf. Excess rules go to the next tree.
const LEAF_MAX: usize = 32;

/// Number of rules up to which a leaf is not divided.
const LEAF_WANTED: usize = LANES;

/// Maximum number of bits on which a node branches.
const BITS_MAX: u32 = 14;

/// Maximum number of rules examined to choose bits.
const SAMPLE: usize = 1_024;

/// Bounds of the maximum number of copies of a rule in a tree. Rules that need more copies go to the next
/// tree.
const COPIES_MIN: u32 = 4;
const COPIES_MAX: u32 = 16;

/// No rule is copied in a tree that has more than this number of blocks per rule.
const BLOCKS_PART: usize = 1;

/// Average size of a rule's group below which no more bits are chosen. The chosen bits divide the rules into
/// groups.
const GROUP_WANTED: f32 = 2.0;

/// A bit is chosen only if it separates at least one pair of rules per this number of rules.
const WORTH_MIN: f32 = 50.0;

/// Rules as dense rows. A row has `dense` words of values, then `dense` words of masks.
#[derive(Clone, Copy)]
pub(super) struct Rules<'r> {
    pub rows: &'r [u64],
    pub dense: usize,
}

impl Rules<'_> {
    fn of(&self, slot: u32, word: usize) -> (u64, u64) {
        let at = slot as usize * 2 * self.dense + word;
        (self.rows[at], self.rows[at + self.dense])
    }
}

/// Trees under construction.
pub(super) struct Grove<'r> {
    rules: Rules<'r>,
    pub branches: Branches,
    pub trees: Vec<Tree>,
    /// Number of blocks before the current tree.
    blocks_before: usize,
    /// Values and masks of each rule, reduced to the bits that the current tree examines.
    projected: Vec<(u64, u64)>,
    run_in_parallel: Option<RunInParallel>,
}

/// What nodes are built from.
#[derive(Clone, Copy)]
struct Source<'s> {
    rules: Rules<'s>,
    projected: &'s [(u64, u64)],
    /// Is used for the children of a node with many rules.
    run_in_parallel: Option<RunInParallel>,
}

/// Nodes and leaves under construction.
pub(super) struct Branches {
    pub entries: Vec<Entry>,
    pub blocks: Vec<Block>,
    pub slots: Vec<[u32; LANES]>,
    expelled: Vec<u32>,
    depth: u32,
    /// Number of blocks above which no rule is copied.
    blocks_max: usize,
}

/// Children of a node.
struct Children<'n> {
    /// Rules of all children, child by child.
    rules: &'n [u32],
    /// For each child, where its rules end.
    ends: &'n [usize],
    copies: u32,
    depth: u32,
}

/// A rule, or one of its copies, while bits are chosen.
#[derive(Clone, Copy)]
struct Share {
    value: u64,
    mask: u64,
    group: u32,
    weight: f32,
}

impl<'r> Grove<'r> {
    pub fn new(rules: Rules<'r>, len: usize, run_in_parallel: Option<RunInParallel>) -> Self {
        let (branches, projected) = (Branches::new(0), vec![(0, 0); len]);
        Self { rules, branches, trees: Vec::new(), blocks_before: 0, projected, run_in_parallel }
    }

    /// Returns whether another tree may be built.
    pub fn has_room(&self) -> bool {
        self.trees.len() < TREES_MAX
    }

    /// Builds a tree for these rules, in order of precedence. Returns the rules that it did not take.
    pub fn grow(&mut self, rules: &[u32]) -> Vec<u32> {
        let first = rules.first().copied().unwrap_or(NONE);
        // The fewer rules are left, the more copies of each rule are allowed.
        let copies = (self.projected.len() / rules.len().max(1)) as u32;
        let pieces = self.project(rules);
        let Self { rules: of, branches, projected, run_in_parallel, .. } = self;
        let source = Source { rules: *of, projected, run_in_parallel: *run_in_parallel };
        let root = branches.entries.len() as u32;
        branches.entries.push(Entry::default());
        branches.depth = 0;
        self.blocks_before = branches.blocks.len();
        branches.blocks_max = branches.blocks.len() + rules.len() * BLOCKS_PART;
        let entry = branches.node(source, root, rules, copies.clamp(COPIES_MIN, COPIES_MAX), 0);
        branches.entries[root as usize] = entry;
        let mut left = std::mem::take(&mut branches.expelled);
        self.trees.push(Tree { pieces, root, depth: branches.depth, first });
        left.sort_unstable();
        left.dedup();
        left
    }

    /// Removes the tree built last.
    pub fn fell(&mut self) {
        if let Some(tree) = self.trees.pop() {
            self.branches.entries.truncate(tree.root as usize);
            self.branches.blocks.truncate(self.blocks_before);
            self.branches.slots.truncate(self.blocks_before);
        }
    }

    /// Chooses at most 64 bits that distinguish these rules best, and reduces the rules to these bits.
    fn project(&mut self, rules: &[u32]) -> Vec<Piece> {
        // Number of rules that require 0 and 1 of each bit.
        let mut counts = Vec::with_capacity(self.rules.dense * 64);
        for word in 0..self.rules.dense {
            let (mut asked, mut ones) = (BitCounts::default(), BitCounts::default());
            for &rule in rules {
                let (value, mask) = self.rules.of(rule, word);
                asked.add(mask);
                ones.add(value & mask);
            }
            counts
                .extend(asked.finish().into_iter().zip(ones.finish()).map(|(all, ones)| (all - ones, ones)));
        }
        let mut order: Vec<usize> =
            (0..counts.len()).filter(|at| counts[*at].0 * counts[*at].1 > 0).collect();
        order.sort_by_key(|at| std::cmp::Reverse(counts[*at].0 * counts[*at].1));
        order.truncate(64);
        let mut pieces = Vec::new();
        let mut shift = 0;
        for word in 0..self.rules.dense {
            let bits = order.iter().filter(|at| *at / 64 == word);
            let mask = bits.fold(0u64, |mask, at| mask | 1 << (at % 64));
            if mask != 0 {
                pieces.push(Piece { word, shift, mask });
                shift += mask.count_ones();
            }
        }
        for &rule in rules {
            self.projected[rule as usize] = (0, 0);
        }
        for piece in &pieces {
            // Most rules examine the same bits as the rule before them.
            let mut last = (0, 0);
            for &rule in rules {
                let (value, mask) = self.rules.of(rule, piece.word);
                if mask != last.0 {
                    last = (mask, extract(mask, piece.mask));
                }
                let projected = &mut self.projected[rule as usize];
                projected.0 |= extract(value, piece.mask) << piece.shift;
                projected.1 |= last.1 << piece.shift;
            }
        }
        pieces
    }
}

impl Branches {
    /// Creates this number of entries, and the empty block.
    fn new(entries: usize) -> Self {
        Self {
            entries: vec![Entry::default(); entries],
            blocks: vec![Block::EMPTY],
            slots: vec![[NONE; LANES]],
            expelled: Vec::new(),
            depth: 0,
            blocks_max: 0,
        }
    }

    fn node(&mut self, source: Source<'_>, own: u32, rules: &[u32], copies: u32, depth: u32) -> Entry {
        self.depth = self.depth.max(depth);
        if rules.len() <= LEAF_WANTED || depth == DEPTH_MAX {
            return self.leaf(source.rules, own, rules);
        }
        let copies = if self.blocks.len() > self.blocks_max { 1 } else { copies };
        let Some(cut) = source.choose(rules, copies) else { return self.leaf(source.rules, own, rules) };
        let children = 1usize << cut.count_ones();
        // Child and rule of each copy, in order of precedence.
        let mut placed: Vec<(u32, u32)> = Vec::with_capacity(rules.len());
        let mut ends = vec![0usize; children];
        for &rule in rules {
            let (value, mask) = source.projected[rule as usize];
            let open = extract(!mask, cut);
            if 1u64 << open.count_ones() > u64::from(copies) {
                self.expelled.push(rule);
                continue;
            }
            let at = extract(value, cut);
            let mut more = 0u64;
            loop {
                placed.push(((at | more) as u32, rule));
                ends[(at | more) as usize] += 1;
                more = (more.wrapping_sub(open)) & open;
                if more == 0 {
                    break;
                }
            }
        }
        let mut begin = 0;
        for end in &mut ends {
            // This is where the child's rules begin. The loop below moves it to where they end.
            begin += std::mem::replace(end, begin);
        }
        let mut sorted = vec![0; placed.len()];
        for (child, rule) in placed {
            let end = &mut ends[child as usize];
            sorted[*end] = rule;
            *end += 1;
        }
        let base = self.entries.len();
        self.entries.resize(base + children, Entry::default());
        let children = Children { rules: &sorted, ends: &ends, copies, depth: depth + 1 };
        match source.run_in_parallel.filter(|_| sorted.len() >= PARALLEL_MIN) {
            Some(run_in_parallel) => self.children_in_parallel(source, base, &children, run_in_parallel),
            None => self.children(source, base, &children, 0..ends.len()),
        }
        Entry { mask: cut, next: base as u32, leaf: 0 }
    }

    /// Builds the children of these numbers. Their entries begin at `base`.
    fn children(&mut self, source: Source<'_>, base: usize, children: &Children<'_>, numbers: Range<usize>) {
        let Children { rules, ends, copies, depth } = *children;
        let mut begin = if numbers.start == 0 { 0 } else { ends[numbers.start - 1] };
        for (at, end) in (base..).zip(&ends[numbers]) {
            self.entries[at] = self.node(source, at as u32, &rules[begin..*end], copies, depth);
            begin = *end;
        }
    }

    /// Builds all children like [`Branches::children`] on two threads, each of which gets whole children with
    /// about half of the rules.
    fn children_in_parallel(
        &mut self,
        source: Source<'_>,
        base: usize,
        children: &Children<'_>,
        run_in_parallel: RunInParallel,
    ) {
        let (rules, ends) = (children.rules.len(), children.ends);
        let middle = ends.partition_point(|end| *end <= rules / 2);
        if middle == 0 || middle == ends.len() {
            return self.children(source, base, children, 0..ends.len());
        }
        let rules_before = ends[middle - 1];
        let source = Source { run_in_parallel: None, ..source };
        // Both halves may have the same number of blocks per rule.
        let blocks = self.blocks_max.saturating_sub(self.blocks.len());
        let blocks_of_others = blocks * (rules - rules_before) / rules;
        let mut others = Self::new(ends.len() - middle);
        others.blocks_max = others.blocks.len() + blocks_of_others;
        self.blocks_max -= blocks_of_others;
        run_in_parallel(&mut || others.children(source, 0, children, middle..ends.len()), &mut || {
            self.children(source, base, children, 0..middle);
        });
        self.blocks_max += blocks_of_others;
        self.append(others, base + middle, ends.len() - middle);
    }

    /// Appends branches that were built separately. The first `roots` of their entries replace the entries at
    /// `place`.
    fn append(&mut self, others: Self, place: usize, roots: usize) {
        let (entries, blocks) = (self.entries.len(), self.blocks.len() as u32);
        let moved = |at: u32| match at as usize {
            root if root < roots => place + root,
            other => entries + (other - roots),
        };
        // The first block is the empty one, which both have.
        let moved = |entry: Entry| Entry {
            next: moved(entry.next) as u32,
            leaf: if entry.leaf == 0 { 0 } else { entry.leaf + blocks - 1 },
            ..entry
        };
        let mut new = others.entries.into_iter().map(moved);
        self.entries[place..][..roots].iter_mut().zip(&mut new).for_each(|(entry, new)| *entry = new);
        self.entries.extend(new);
        self.blocks.extend_from_slice(&others.blocks[1..]);
        self.slots.extend_from_slice(&others.slots[1..]);
        self.expelled.extend(others.expelled);
        self.depth = self.depth.max(others.depth);
    }

    fn leaf(&mut self, of: Rules<'_>, own: u32, rules: &[u32]) -> Entry {
        if rules.is_empty() {
            return Entry { mask: 0, next: own, leaf: 0 };
        }
        let (rules, over) = rules.split_at(rules.len().min(LEAF_MAX));
        self.expelled.extend_from_slice(over);
        let first = self.blocks.len() as u32;
        for chunk in rules.chunks(LANES) {
            let (mut block, mut slots) = (Block::EMPTY, [NONE; LANES]);
            for (lane, &rule) in chunk.iter().enumerate() {
                for word in 0..COMPARED {
                    let (value, mask) = if word < of.dense { of.of(rule, word) } else { (0, 0) };
                    block.values[lane * COMPARED + word] = value;
                    block.masks[lane * COMPARED + word] = mask;
                }
                let partial = (COMPARED..of.dense).any(|word| of.of(rule, word).1 != 0);
                slots[lane] = if partial { rule | PARTIAL } else { rule };
            }
            self.blocks.push(block);
            self.slots.push(slots);
        }
        let more = self.blocks.len() as u32 - first - 1;
        Entry { mask: 0, next: own, leaf: more << MORE_SHIFT | first }
    }
}

impl Source<'_> {
    /// Returns the bits to branch on, or `None` if no bits are worth it.
    fn choose(&self, rules: &[u32], copies: u32) -> Option<u64> {
        let step = rules.len().div_ceil(SAMPLE);
        let bits_max = (rules.len() / 2).ilog2().clamp(1, BITS_MAX);
        let sample = rules.iter().step_by(step).map(|&rule| {
            let (value, mask) = self.projected[rule as usize];
            Share { value, mask, group: 0, weight: 1.0 }
        });
        let cut = choose_in(&mut sample.collect(), copies, bits_max, step as f32);
        (cut != 0).then_some(cut)
    }
}

fn choose_in(shares: &mut Vec<Share>, copies: u32, bits_max: u32, step: f32) -> u64 {
    let all = shares.len() as f32;
    let (mut zeros, mut ones) = (0, 0);
    for share in shares.iter() {
        zeros |= share.mask & !share.value;
        ones |= share.mask & share.value;
    }
    let mut useful = zeros & ones;
    let (mut chosen, mut expelled) = (0u64, 0.0f32);
    let lightest = 1.0 / copies as f32;
    let mut sums: Vec<[f32; 2]> = Vec::new();
    for count in 0..bits_max {
        let groups = 1usize << count;
        let mut best = (0.0f32, 64);
        let mut open = useful;
        while open != 0 {
            let bit = open.trailing_zeros();
            open &= open - 1;
            sums.clear();
            sums.resize(groups, [0.0; 2]);
            for share in shares.iter() {
                if share.mask >> bit & 1 != 0 {
                    sums[share.group as usize][(share.value >> bit & 1) as usize] += share.weight;
                }
            }
            let parted: f32 = sums.iter().map(|[zeros, ones]| zeros * ones).sum();
            if parted > best.0 {
                best = (parted, bit);
            }
        }
        let (parted, bit) = best;
        if bit == 64 || parted * WORTH_MIN < all {
            break;
        }
        useful &= !(1 << bit);
        chosen |= 1 << bit;
        let fresh = 1 << count;
        for at in 0..shares.len() {
            let share = &mut shares[at];
            if share.mask >> bit & 1 != 0 {
                share.group |= if share.value >> bit & 1 != 0 { fresh } else { 0 };
                continue;
            }
            share.weight /= 2.0;
            if share.weight < lightest {
                expelled += share.weight * 2.0;
                share.weight = 0.0;
                continue;
            }
            let other = Share { group: share.group | fresh, ..*share };
            shares.push(other);
        }
        shares.retain(|share| share.weight > 0.0);
        let mut sizes = vec![(0.0f32, 0.0f32); groups * 2];
        for share in shares.iter() {
            sizes[share.group as usize].0 += share.weight;
            sizes[share.group as usize].1 += 1.0;
        }
        let pairs: f32 = sizes.iter().map(|(weight, count)| weight * count).sum();
        if pairs * step < GROUP_WANTED * (all - expelled) {
            break;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    /// Returns rows of rules of one dense word, given as values and masks.
    fn rows(rules: impl IntoIterator<Item = (u64, u64)>) -> Vec<u64> {
        rules.into_iter().flat_map(|(value, mask)| [value & mask, mask]).collect()
    }

    /// Builds a tree for all rules of a table of `len` rules. Also returns the rules that the tree did not
    /// take.
    fn grown(rows: &[u64], len: usize) -> (Grove<'_>, Vec<u32>) {
        let mut grove = Grove::new(Rules { rows, dense: 1 }, len, None);
        let left = grove.grow(&(0..rows.len() as u32 / 2).collect::<Vec<_>>());
        (grove, left)
    }

    fn root_bits(grove: &Grove<'_>) -> u32 {
        grove.branches.entries[grove.trees[0].root as usize].mask.count_ones()
    }

    fn shares(rules: impl IntoIterator<Item = (u64, u64)>) -> Vec<Share> {
        let share = |(value, mask)| Share { value, mask, group: 0, weight: 1.0 };
        rules.into_iter().map(share).collect()
    }

    #[test]
    fn a_root_has_a_child_for_every_two_exact_rules_up_to_its_limit() {
        let mut rng = Rng::with_seed(1);
        let sizes =
            [(5, 1), (8, 2), (100, 5), (1_024, 9), (2_048, 10), (16_384, 13), (32_768, 14), (65_536, 14)];
        for (len, bits) in sizes {
            let rows = rows((0..len).map(|_| (rng.u64(..), u64::MAX)));
            let (grove, left) = grown(&rows, len);
            assert_eq!(root_bits(&grove), bits, "{len} rules");
            assert!(left.is_empty(), "{len} rules: {} are left", left.len());
            // The limit of bits leaves about four rules per child. A few children need another level.
            assert!((1..=3).contains(&grove.trees[0].depth), "{len} rules: {} steps", grove.trees[0].depth);
        }
    }

    #[test]
    fn up_to_four_rules_form_a_leaf() {
        for (len, bits) in [(1, 0), (4, 0), (5, 1)] {
            let rows = rows((0..len).map(|value| (value, 7)));
            assert_eq!(root_bits(&grown(&rows, len as usize).0), bits, "{len} rules");
        }
    }

    #[test]
    fn a_leaf_takes_the_first_32_of_equal_rules() {
        for (len, over) in [(32, 0), (33, 1), (100, 68)] {
            let rows = rows((0..len).map(|_| (5, 7)));
            let (grove, left) = grown(&rows, len);
            assert_eq!(left, (32..32 + over).collect::<Vec<u32>>(), "{len} rules");
            // Eight blocks of four rules, after the empty block.
            assert_eq!((grove.branches.blocks.len(), grove.branches.slots.len()), (9, 9));
            assert_eq!(grove.branches.slots[8], [28, 29, 30, 31]);
            assert_eq!(grove.branches.entries[0].blocks(), 1..=8);
        }
    }

    #[test]
    fn a_tree_has_at_most_four_steps() {
        // Four nodes in a row separate 5, 4, 4 and 4 rules, and a leaf gets the remaining 47.
        let rows = rows((0..64).map(|bit| (1 << bit, u64::MAX)));
        let (grove, left) = grown(&rows, 64);
        assert_eq!(grove.trees[0].depth, 4);
        assert_eq!(left.len(), 47 - 32);
    }

    #[test]
    fn rules_that_leave_too_many_branching_bits_open_are_not_taken() {
        // 256 exact rules, and one rule with `open` open bits. The node branches on all of the eight bits
        // except one of the open bits.
        for (part, copies) in [(1, 4), (4, 4), (5, 5), (8, 8), (16, 16), (17, 16), (100, 16)] {
            for open in 1..=7 {
                let rules = (0..256).map(|value| (value, 0xff)).chain([(0, 0xff << open & 0xff)]);
                let rows = rows(rules);
                let (grove, left) = grown(&rows, part * 257);
                assert_eq!(root_bits(&grove), 7);
                let expected = if 1 << (open - 1) <= copies { vec![] } else { vec![256] };
                assert_eq!(left, expected, "{open} open bits, one of {part} rules");
            }
        }
    }

    #[test]
    fn there_are_few_more_blocks_than_rules_however_many_bits_rules_leave_open() {
        let mut rng = Rng::with_seed(2);
        for len in [1_000, 10_000] {
            let open = |rng: &mut Rng| (0..4).fold(0, |open, _| open | 1 << rng.u32(..16));
            let rows = rows((0..len).map(|_| (rng.u64(..), 0xffff & !open(&mut rng))));
            let (grove, left) = grown(&rows, len);
            assert!(left.len() < len, "the tree takes some rules");
            assert!(
                grove.branches.blocks.len() < len + len / 8,
                "{len} rules: {} blocks",
                grove.branches.blocks.len()
            );
        }
    }

    #[test]
    fn up_to_six_trees_are_built_and_a_removed_tree_leaves_nothing() {
        let rows = rows((0..100).map(|value| (value, 0xff)));
        let mut grove = Grove::new(Rules { rows: &rows, dense: 1 }, 100, None);
        for trees in 0..6 {
            assert!(grove.has_room(), "{trees} trees");
            let sizes = |grove: &Grove<'_>| {
                (grove.branches.entries.len(), grove.branches.blocks.len(), grove.branches.slots.len())
            };
            let before = sizes(&grove);
            grove.grow(&(10..100).collect::<Vec<_>>());
            assert_eq!((grove.trees.len(), grove.trees[trees].first), (trees + 1, 10));
            grove.fell();
            assert_eq!((grove.trees.len(), sizes(&grove)), (trees, before));
            grove.grow(&(0..100).collect::<Vec<_>>());
        }
        assert!(!grove.has_room());
    }

    #[test]
    fn the_64_bits_that_distinguish_most_rules_are_examined() {
        // 40 bits of one word and 24 of the other have both values equally often. Other bits have mostly one
        // value.
        let mut rng = Rng::with_seed(3);
        let good = [(1 << 40) - 1, (1 << 24) - 1];
        let rows: Vec<u64> = (0..1_000)
            .flat_map(|rule| {
                let others = if rule % 10 == 0 { u64::MAX } else { 0 };
                let [first, second] = good.map(|good| rng.u64(..) & good | others & !good);
                [first, second, u64::MAX, u64::MAX]
            })
            .collect();
        let mut grove = Grove::new(Rules { rows: &rows, dense: 2 }, 1_000, None);
        let pieces = grove.project(&(0..1_000).collect::<Vec<u32>>());
        let pieces: Vec<_> = pieces.iter().map(|piece| (piece.word, piece.shift, piece.mask)).collect();
        assert_eq!(pieces, [(0, 0, good[0]), (1, 40, good[1])]);
        for (projected, row) in grove.projected.iter().zip(rows.chunks_exact(4)) {
            assert_eq!(*projected, (row[0] & good[0] | (row[1] & good[1]) << 40, u64::MAX));
        }
    }

    #[test]
    fn the_bits_that_separate_most_rules_are_chosen_and_the_lowest_of_equal_ones() {
        let all = |count: u64| shares((0..count).map(|value| (value, u64::MAX)));
        assert_eq!(choose_in(&mut all(64), 4, 3, 1.0), 0b111);
        assert_eq!(choose_in(&mut all(64), 4, 14, 1.0), 0b11_1111, "no other bits distinguish rules");
        // Bit 1 equals bit 0, and a quarter of the rules have bit 2 set. Bit 3 is set in all rules, but only
        // half of them examine it.
        let rules = (0..64).map(|at| {
            let (half, quarter) = (at & 1, u64::from(at & 0b110 == 0));
            (0b1000 | quarter << 2 | half << 1 | half, if at < 32 { 0b1111 } else { 0b111 })
        });
        assert_eq!(choose_in(&mut shares(rules), 4, 2, 1.0), 0b101);
    }

    #[test]
    fn a_bit_is_chosen_if_it_separates_one_pair_per_50_rules() {
        for (len, cut) in [(50, 1), (51, 0), (2, 1)] {
            // Two rules examine the bit, one for each value.
            let rules = (0..len).map(|at| (at, u64::from(at < 2)));
            assert_eq!(choose_in(&mut shares(rules), 4, 1, 1.0), cut, "{len} rules");
        }
    }

    #[test]
    fn no_bit_is_chosen_if_children_would_have_fewer_than_two_rules() {
        let mut rng = Rng::with_seed(4);
        let exact: Vec<u64> = (0..64).map(|_| rng.u64(..1 << 20)).collect();
        let cut = |step: f32, open: u64| {
            let exact = exact.iter().map(|value| (*value, (1 << 20) - 1));
            // The `open` rules leave the bits of the exact rules open. Each would need more than the four
            // allowed copies if the node branched on more than two of these bits.
            let open = (0..open).map(|at| ((at % 2) << 20, 1 << 20));
            choose_in(&mut shares(exact.chain(open)), 4, 20, step).count_ones()
        };
        // Six bits leave fewer than two exact rules per child. The `open` rules add bit 20, which
        // distinguishes them.
        assert_eq!((cut(1.0, 0), cut(1.0, 192)), (6, 7));
        // Each rule of the sample stands for two or more rules, so further bits are worth choosing.
        assert_eq!([2.0, 3.0, 8.0].map(|step| (cut(step, 0), cut(step, 192))), [(8, 8); 3]);
    }

    #[test]
    fn a_rule_that_does_not_fit_into_several_leaves_is_left_once() {
        // The node branches on two bits. 40 rules leave one of them open, and are in half of the leaves.
        let exact = (0..64).map(|at| (at % 4, 0b11));
        let open = (0..40).map(|_| (0b01, 0b01));
        let rows = rows(open.chain(exact));
        let (_, left) = grown(&rows, 104);
        assert!(left.is_sorted_by(|a, b| a < b), "{left:?}");
        assert!(left.contains(&39), "the leaves take 32 rules");
    }
}
