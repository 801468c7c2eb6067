// SPDX-License-Identifier: Apache-2.0
//! Control side: how trees grow. A tree takes the rules that are exact enough in the bits it cuts; what is not goes to
//! the next tree, whose bits suit it better.

use super::layout::extract;
use super::simd::{Block, COMPARED, Entry, LANES, MORE_SHIFT};
use super::{PARTIAL, Piece, Tree};
use crate::NONE;

/// Trees of a table at most.
const TREES_MAX: usize = 6;

/// Steps from a tree's root to a leaf at most.
const DEPTH_MAX: u32 = 4;

/// Rules of a leaf at most; what is more goes to the next tree.
const LEAF_MAX: usize = 32;

/// Rules for which a leaf is not divided.
const LEAF_WANTED: usize = LANES;

/// A node cuts at most so many bits.
const BITS_MAX: u32 = 14;

/// Bits are chosen after looking at no more rules than this.
const SAMPLE: usize = 1_024;

/// Copies of a rule in a tree: one that is open in more of the bits than give so many goes to the next tree.
const COPIES_MIN: u32 = 4;
const COPIES_MAX: u32 = 16;

/// Blocks for each rule of a tree beyond which nothing is copied any more.
const BLOCKS_PART: usize = 1;

/// No more bits are chosen when groups have so few rules.
const GROUP_WANTED: f32 = 2.0;

/// A bit is worth choosing if it parts a pair for each so many rules.
const WORTH_MIN: f32 = 50.0;

/// Rules as dense rows: `dense` values, then as many masks.
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

/// Trees as they grow.
pub(super) struct Grove<'r> {
    rules: Rules<'r>,
    pub entries: Vec<Entry>,
    pub blocks: Vec<Block>,
    pub slots: Vec<[u32; LANES]>,
    pub trees: Vec<Tree>,
    expelled: Vec<u32>,
    /// For each rule its values and masks in the bits of the tree that grows.
    projected: Vec<(u64, u64)>,
    depth: u32,
    /// Blocks of the trees before the last.
    blocks_before: usize,
    /// Blocks beyond which nothing is copied any more.
    blocks_max: usize,
}

/// A rule, or a share of it, while bits are chosen.
#[derive(Clone, Copy)]
struct Share {
    value: u64,
    mask: u64,
    group: u32,
    weight: f32,
}

impl<'r> Grove<'r> {
    pub fn new(rules: Rules<'r>, len: usize) -> Self {
        Self {
            rules,
            entries: Vec::new(),
            blocks: vec![Block::EMPTY],
            slots: vec![[NONE; LANES]],
            trees: Vec::new(),
            expelled: Vec::new(),
            projected: vec![(0, 0); len],
            depth: 0,
            blocks_before: 0,
            blocks_max: 0,
        }
    }

    /// Whether another tree may grow.
    pub fn has_room(&self) -> bool {
        self.trees.len() < TREES_MAX
    }

    /// Grows a tree for these rules, in order of precedence. Returns what it did not take.
    pub fn grow(&mut self, rules: Vec<u32>) -> Vec<u32> {
        let first = rules.first().copied().unwrap_or(NONE);
        // The fewer rules are left, the more copies of each there is room for.
        let copies = (self.projected.len() / rules.len().max(1)) as u32;
        let pieces = self.project(&rules);
        let root = self.entries.len() as u32;
        self.entries.push(Entry::default());
        self.depth = 0;
        self.blocks_before = self.blocks.len();
        self.blocks_max = self.blocks.len() + rules.len() * BLOCKS_PART;
        let entry = self.node(root, rules, copies.clamp(COPIES_MIN, COPIES_MAX), 0);
        self.entries[root as usize] = entry;
        self.trees.push(Tree { pieces, root, depth: self.depth, first });
        let mut left = std::mem::take(&mut self.expelled);
        left.sort_unstable();
        left.dedup();
        left
    }

    /// Takes the tree away that has grown last.
    pub fn fell(&mut self) {
        if let Some(tree) = self.trees.pop() {
            self.entries.truncate(tree.root as usize);
            self.blocks.truncate(self.blocks_before);
            self.slots.truncate(self.blocks_before);
        }
    }

    fn node(&mut self, own: u32, rules: Vec<u32>, copies: u32, depth: u32) -> Entry {
        self.depth = self.depth.max(depth);
        if rules.len() <= LEAF_WANTED || depth == DEPTH_MAX {
            return self.leaf(own, &rules);
        }
        let copies = if self.blocks.len() > self.blocks_max { 1 } else { copies };
        let Some(cut) = self.choose(&rules, copies) else { return self.leaf(own, &rules) };
        let children = 1usize << cut.count_ones();
        let mut lists = vec![Vec::new(); children];
        for rule in rules {
            let (value, mask) = self.projected[rule as usize];
            let open = extract(!mask, cut);
            if 1u64 << open.count_ones() > u64::from(copies) {
                self.expelled.push(rule);
                continue;
            }
            let at = extract(value, cut);
            let mut more = 0u64;
            loop {
                lists[(at | more) as usize].push(rule);
                more = (more.wrapping_sub(open)) & open;
                if more == 0 {
                    break;
                }
            }
        }
        let base = self.entries.len();
        self.entries.resize(base + children, Entry::default());
        for (at, list) in lists.into_iter().enumerate() {
            self.entries[base + at] = self.node((base + at) as u32, list, copies, depth + 1);
        }
        Entry { mask: cut, next: base as u32, leaf: 0 }
    }

    fn leaf(&mut self, own: u32, rules: &[u32]) -> Entry {
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
                    let (value, mask) =
                        if word < self.rules.dense { self.rules.of(rule, word) } else { (0, 0) };
                    block.values[lane * COMPARED + word] = value;
                    block.masks[lane * COMPARED + word] = mask;
                }
                let partial = (COMPARED..self.rules.dense).any(|word| self.rules.of(rule, word).1 != 0);
                slots[lane] = if partial { rule | PARTIAL } else { rule };
            }
            self.blocks.push(block);
            self.slots.push(slots);
        }
        let more = self.blocks.len() as u32 - first - 1;
        Entry { mask: 0, next: own, leaf: more << MORE_SHIFT | first }
    }

    /// The bits to cut; none if nothing is won.
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

    /// The 64 bits that tell these rules apart best, and the rules' values and masks in them.
    fn project(&mut self, rules: &[u32]) -> Vec<Piece> {
        let mut counts = vec![(0u64, 0u64); self.rules.dense * 64];
        for &rule in rules {
            for word in 0..self.rules.dense {
                let (value, mut left) = self.rules.of(rule, word);
                while left != 0 {
                    let bit = left.trailing_zeros();
                    left &= left - 1;
                    let of = &mut counts[word * 64 + bit as usize];
                    of.0 += 1 - (value >> bit & 1);
                    of.1 += value >> bit & 1;
                }
            }
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
            let projected = &mut self.projected[rule as usize];
            *projected = (0, 0);
            for piece in &pieces {
                let (value, mask) = self.rules.of(rule, piece.word);
                projected.0 |= extract(value, piece.mask) << piece.shift;
                projected.1 |= extract(mask, piece.mask) << piece.shift;
            }
        }
        pieces
    }
}

/// The bits to cut.
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
