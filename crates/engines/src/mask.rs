// SPDX-License-Identifier: Apache-2.0
//! Engine `mask`: rules of arbitrary masks and priorities (docs/adr/0025).
//!
//! The bits that distinguish rules are packed into a dense key ([`layout`]). If there are more than
//! [`LABELED_MAX`] rules, trees take the rules that fully specify the bits on which a tree branches
//! ([`trees`]). A step in a tree is one load, and a leaf compares four whole rules with one instruction.
//!
//! The remaining rules, most of which examine no long field, are found by labels ([`labels`]). There is one
//! label for each 16 bits of the key. Tables join labels until a single label identifies the rule
//! ([`joining`]). Where these tables would take too much memory, each label has a vector of the rules that it
//! matches instead. The AND of the vectors gives the rules that match the key.
//!
//! A lookup runs these steps in stages, each for all keys of a group, and returns the best rule found.
//!
//! Other rules are hashed in merged tuples ([`buckets`]). Such rules are constructed on purpose, or need more
//! than 512 bits to be distinguished.

use crate::parallel::halves;
use crate::simd::Level;
use crate::{BitSet, KeyPlan, NONE, RunInParallel};
use buckets::Buckets;
use labels::Labels;
use layout::{Group, Layout};
use simd::{COMPARED, DENSE_MAX, Kernel, MORE_SHIFT, Nodes, Width, Work};
use trees::{Branches, Grove, Rules};

mod bit_counts;
mod buckets;
mod ends;
mod joining;
mod labeling;
mod labels;
mod layout;
mod living;
mod met;
mod paging;
mod shares;
mod simd;
mod source;
mod trees;
mod vain;
mod whole;

pub use vain::Vain;

/// Maximum number of rules that use labels without trees. The bits of this many rules fit into four cache
/// lines.
const LABELED_MAX: usize = 2_048;

/// Number of keys processed in one pass.
const GROUP: usize = 32;

/// Flag in the slot of a rule that examines more words than blocks compare.
const PARTIAL: u32 = 1 << 31;

/// Bits of a dense word that are copied into a tree's word.
#[derive(Clone, Copy, Debug)]
struct Piece {
    word: usize,
    shift: u32,
    mask: u64,
}

/// A decision tree over one word of 64 bits, which is copied from the dense key.
#[derive(Debug)]
struct Tree {
    /// Pieces that the tree's word is built from.
    pieces: Vec<Piece>,
    root: u32,
    /// Number of steps to the deepest leaf.
    depth: u32,
    /// Best rule in the tree.
    first: u32,
}

/// Trees and labels, and the layout of the dense keys that both examine.
#[derive(Debug)]
struct Wide {
    width: Width,
    layout: Layout,
    /// Trees, beginning with the tree of the best rule.
    trees: Vec<Tree>,
    nodes: Nodes,
    /// Dense rules by slot, if rules have more bits than a block compares.
    rows: Vec<u64>,
    /// Labels of the rules that no tree took.
    labels: Option<Labels>,
}

/// Rules of arbitrary masks.
#[derive(Debug)]
pub struct Mask {
    wide: Option<Box<Wide>>,
    buckets: Option<Buckets>,
    vain: Vain,
}

impl Mask {
    /// Compiles `len` rules, in order of precedence. Each rule has one row in `values` and one in `masks`, in
    /// the layout of the plan.
    #[must_use]
    pub fn new(plan: &KeyPlan, len: usize, values: &[u64], masks: &[u64]) -> Self {
        Self::with_level(plan, len, values, masks, Level::found())
    }

    /// Compiles like [`Mask::new`], with instructions of at most `level`, which the core must support.
    #[must_use]
    pub fn with_level(plan: &KeyPlan, len: usize, values: &[u64], masks: &[u64], level: Level) -> Self {
        Self::again(plan, len, values, masks, level, Vain::default(), None)
    }

    /// Compiles rules that are similar to an earlier engine's rules. `vain` has that engine's failed joins,
    /// which are not retried. Compiles on two threads if `run_in_parallel` is given and there are many rules.
    #[must_use]
    pub fn again(
        plan: &KeyPlan,
        len: usize,
        values: &[u64],
        masks: &[u64],
        level: Level,
        mut vain: Vain,
        run_in_parallel: Option<RunInParallel>,
    ) -> Self {
        let all = || (0..len as u32).collect::<Vec<u32>>();
        let (wide, left) = match Wide::new(plan.words(), values, masks, level, &mut vain, run_in_parallel) {
            Some((wide, left)) => (Some(Box::new(wide)), left),
            None => (None, all()),
        };
        let buckets = (!left.is_empty()).then(|| Buckets::new(plan, &left, values, masks));
        Self { wide, buckets, vain }
    }

    /// Returns the record of joins that failed while this engine was compiled.
    #[must_use]
    pub fn vain(&self) -> Vain {
        self.vain
    }

    /// Looks up `slots.len()` keys, one row of words each. Stores for each key the slot of the best matching
    /// rule that is not in `tombstones`, or [`NONE`].
    pub fn lookup(&self, keys: &[u64], tombstones: &BitSet, slots: &mut [u32]) {
        match &self.buckets {
            None => slots.fill(NONE),
            Some(buckets) => buckets.lookup(keys, tombstones, slots),
        }
        if let Some(wide) = &self.wide {
            wide.width.run(Lookup { wide, keys, tombstones, slots });
        }
    }

    /// Returns the masks of the hash tables that lookups probe.
    pub fn masks(&self) -> impl Iterator<Item = &[u64]> {
        self.buckets.iter().flat_map(Buckets::masks)
    }

    /// Returns the number of rules that lookups compare one by one instead of hashing.
    #[must_use]
    pub fn walked(&self) -> usize {
        self.buckets.as_ref().map_or(0, Buckets::walked)
    }

    /// Returns the memory size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.wide.as_ref().map_or(0, |wide| wide.bytes()) + self.buckets.as_ref().map_or(0, Buckets::bytes)
    }
}

impl Wide {
    /// Compiles the rules. Also returns the rules that neither trees nor labels took. Returns `None` if no
    /// bits or too many bits distinguish the rules.
    fn new(
        words: usize,
        values: &[u64],
        masks: &[u64],
        level: Level,
        vain: &mut Vain,
        run_in_parallel: Option<RunInParallel>,
    ) -> Option<(Self, Vec<u32>)> {
        let layout = Layout::new(words, values, masks)?;
        let (len, dense) = (values.len() / words, layout.dense());
        let mut parts = halves(run_in_parallel, len, |part| {
            let part = part.start * words..part.end * words;
            layout.rows(&values[part.clone()], &masks[part])
        });
        let mut rows = parts.next().unwrap_or_default();
        rows.extend(parts.flatten());
        let mut left: Vec<u32> = (0..len as u32).collect();
        let mut grove = Grove::new(Rules { rows: &rows, dense }, len, run_in_parallel);
        let labels = loop {
            let labels = Labels::new(&left, &rows, dense, vain);
            let suits = |labels: &Labels| left.len() <= LABELED_MAX || labels.has_ends();
            if !grove.has_room() || labels.as_ref().is_some_and(suits) || left.is_empty() {
                break labels;
            }
            let before = left.len();
            let rest = grove.grow(&left);
            // A tree of only a few rules is not worth its steps.
            if labels.is_some() && rest.len() > before / 2 {
                grove.fell();
                break labels;
            }
            left = rest;
        };
        let Grove { branches: Branches { entries, blocks, slots, .. }, trees, .. } = grove;
        let nodes = Nodes::new(entries, blocks, slots)?;
        if labels.is_some() {
            left.clear();
        }
        if dense <= COMPARED {
            rows = Vec::new();
        }
        Some((Self { width: Width::new(level), layout, trees, nodes, rows, labels }, left))
    }

    fn bytes(&self) -> usize {
        let labels = self.labels.as_ref().map_or(0, Labels::bytes);
        self.nodes.bytes() + self.rows.len() * 8 + self.layout.bytes() + labels
    }
}

struct Lookup<'l> {
    wide: &'l Wide,
    keys: &'l [u64],
    tombstones: &'l BitSet,
    slots: &'l mut [u32],
}

impl Work for Lookup<'_> {
    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) {
        // Arrays must be cleared before use, so small groups use small ones.
        match self.slots.len() {
            0..=1 => self.groups::<K, 1>(kernel),
            2..=8 => self.groups::<K, 8>(kernel),
            _ => self.groups::<K, GROUP>(kernel),
        }
    }
}

impl Lookup<'_> {
    #[inline(always)]
    fn groups<K: Kernel, const G: usize>(self, kernel: K) {
        let words = self.wide.layout.words();
        let mut keys = self.keys;
        for slots in self.slots.chunks_mut(G) {
            let (group, others) = keys.split_at(slots.len() * words);
            self.wide.group::<K, G>(kernel, group, self.tombstones, slots);
            keys = others;
        }
    }
}

impl Wide {
    #[inline(always)]
    fn group<K: Kernel, const G: usize>(
        &self,
        kernel: K,
        keys: &[u64],
        tombstones: &BitSet,
        slots: &mut [u32],
    ) {
        let mut dense: Group<G> = [[0; G]; DENSE_MAX];
        let mut words = [0u64; G];
        let mut leaves = [0u32; G];
        let count = slots.len().min(G);
        self.layout.keys(kernel, keys, count, &mut dense);
        if let Some(labels) = &self.labels {
            labels.lookup(kernel, &dense, tombstones, slots);
        }
        for tree in &self.trees {
            if slots.iter().all(|found| *found < tree.first) {
                break;
            }
            tree.words(kernel, &dense, count, &mut words);
            self.nodes.descend(kernel, tree.root, tree.depth, &words[..count], &mut leaves[..count]);
            for (at, (leaf, found)) in leaves.iter().zip(&mut *slots).enumerate() {
                let key: [u64; COMPARED] = std::array::from_fn(|word| dense[word][at]);
                let slot = self.nodes.first(kernel, *leaf, key);
                // Slow path for further blocks, words that blocks do not compare, and deleted rules.
                if *leaf >> MORE_SHIFT != 0 || slot.wrapping_add(1) > PARTIAL || tombstones.contains(slot) {
                    *found = self.search(kernel, *leaf, &dense, at, tombstones, *found);
                } else {
                    *found = (*found).min(slot);
                }
            }
        }
    }

    /// Returns the best active rule of a leaf that matches the key if it beats `found`, else `found`.
    #[inline(always)]
    fn search<K: Kernel, const G: usize>(
        &self,
        kernel: K,
        leaf: u32,
        dense: &Group<G>,
        at: usize,
        tombstones: &BitSet,
        found: u32,
    ) -> u32 {
        let dense_words = self.layout.dense();
        let fits = |slot: u32| {
            let row = self.rows.get(slot as usize * 2 * dense_words..).unwrap_or_default();
            let Some((values, masks)) = row.get(..2 * dense_words).map(|row| row.split_at(dense_words))
            else {
                return false;
            };
            let mut differing = 0;
            for word in 0..dense_words.min(DENSE_MAX) {
                differing |= dense[word][at] & masks[word] ^ values[word];
            }
            differing == 0
        };
        // Rules are visited best first, so the first one that does not beat `found` ends the search.
        let wanted = |slot: u32| {
            let (partial, slot) = (slot & PARTIAL != 0, slot & !PARTIAL);
            slot >= found || ((!partial || fits(slot)) && !tombstones.contains(slot))
        };
        let key: [u64; COMPARED] = std::array::from_fn(|word| dense[word][at]);
        match self.nodes.first_wanted(kernel, leaf, key, wanted) {
            NONE => found,
            slot => found.min(slot & !PARTIAL),
        }
    }
}

impl Tree {
    #[inline(always)]
    fn words<K: Kernel, const G: usize>(
        &self,
        kernel: K,
        keys: &Group<G>,
        count: usize,
        words: &mut [u64; G],
    ) {
        words.fill(0);
        for piece in &self.pieces {
            for (word, key) in words.iter_mut().zip(&keys[piece.word % DENSE_MAX][..count]) {
                *word |= kernel.extract(*key, piece.mask) << piece.shift;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    /// Returns for rules of one word the number of trees, whether other rules have labels, and the number of
    /// rules in buckets.
    fn compiled(values: &[u64], mask: u64) -> (usize, bool, usize) {
        let masks = vec![mask; values.len()];
        let vain = &mut Vain::default();
        let (wide, left) = Wide::new(1, values, &masks, Level::found(), vain, None).unwrap();
        (wide.trees.len(), wide.labels.is_some(), left.len())
    }

    #[test]
    fn trees_grow_for_more_than_2048_rules() {
        let mut rng = Rng::with_seed(1);
        let mut different =
            |len: usize| compiled(&(0..len).map(|_| rng.u64(..)).collect::<Vec<_>>(), u64::MAX);
        assert_eq!(different(2_048), (0, true, 0));
        assert_eq!(different(2_049), (1, false, 0), "a tree takes all of them");
        assert_eq!(different(5_000), (1, false, 0));
    }

    #[test]
    fn a_tree_that_takes_less_than_half_is_not_kept_if_labels_take_all() {
        // Each tree takes 32 equal rules. Labels take at most 4,096 rules.
        let equal = |len: usize| compiled(&vec![5; len], 7);
        assert_eq!(equal(4_096), (0, true, 0));
        assert_eq!(equal(4_097), (1, true, 0));
        assert_eq!(equal(4_096 + 6 * 32), (6, true, 0));
        assert_eq!(equal(4_097 + 6 * 32), (6, false, 4_097));
    }

    #[test]
    fn two_threads_compile_an_engine_with_the_same_results() {
        let on_two_threads: RunInParallel = |other, this| {
            std::thread::scope(|scope| {
                scope.spawn(other);
                this();
            });
        };
        let plan = KeyPlan::new(&[flow::Field::Metadata]).unwrap();
        let mut rng = Rng::with_seed(2);
        // Rules of 20 bits, of which this many are open in any rule. Many are equal, so leaves overflow. The
        // last ones differ mostly in the upper half of their values, where the tree is therefore deeper.
        for (len, open, different) in
            [(10_000, 0, 1 << 20), (9_000, 2, 1 << 12), (5_000, 5, 1 << 20), (4_500, 1, 2), (5_000, 0, 0)]
        {
            let masks: Vec<u64> = (0..len)
                .map(|_| (0..rng.usize(..=open)).fold((1 << 20) - 1, |mask, _| mask & !(1 << rng.u32(..20))))
                .collect();
            let value = |rng: &mut Rng| match different {
                0 if rng.bool() => rng.u64(..64),
                0 => 1 << 19 | rng.u64(..1 << 19),
                _ => rng.u64(..different),
            };
            let values: Vec<u64> = masks.iter().map(|mask| value(&mut rng) & mask).collect();
            let compile =
                |run| Mask::again(&plan, len, &values, &masks, Level::found(), Vain::default(), run);
            let (alone, together) = (compile(None), compile(Some(on_two_threads)));
            let keys: Vec<u64> = (0..4_096).map(|_| value(&mut rng)).chain(values.iter().copied()).collect();
            let trees = |mask: &Mask| mask.wide.as_ref().unwrap().trees.len();
            assert!(trees(&together) > 0 && trees(&together) == trees(&alone), "{len} rules");
            for deleted in [0, len / 3] {
                let mut tombstones = BitSet::new(len);
                (0..deleted).for_each(|_| tombstones.insert(rng.u32(..len as u32)));
                let mut found = [vec![0; keys.len()], vec![0; keys.len()]];
                alone.lookup(&keys, &tombstones, &mut found[0]);
                together.lookup(&keys, &tombstones, &mut found[1]);
                let matches = |slot: usize, key: u64| key & masks[slot] == values[slot];
                let right = |key: &u64| {
                    (0..len).find(|slot| matches(*slot, *key) && !tombstones.contains(*slot as u32))
                };
                let right: Vec<u32> =
                    keys.iter().map(|key| right(key).map_or(NONE, |slot| slot as u32)).collect();
                assert!(found[0] == right && found[1] == right, "{len} rules with {open} open bits");
            }
        }
    }

    #[test]
    fn the_memory_size_is_reported() {
        let plan = KeyPlan::new(&[flow::Field::Metadata]).unwrap();
        // Six trees take 32 equal rules each. The others are too many for labels.
        let (values, masks) = (vec![5; 4_400], vec![7; 4_400]);
        let mask = Mask::new(&plan, 4_400, &values, &masks);
        let (wide, buckets) = (mask.wide.as_ref().unwrap(), mask.buckets.as_ref().unwrap());
        assert!(wide.labels.is_none() && wide.rows.is_empty());
        assert_eq!(wide.bytes(), wide.nodes.bytes() + wide.layout.bytes());
        assert_eq!(mask.bytes(), wide.bytes() + buckets.bytes());
        let few = Mask::new(&plan, 40, &values[..40], &masks[..40]);
        let wide = few.wide.as_ref().unwrap();
        assert_eq!(
            wide.bytes(),
            wide.nodes.bytes() + wide.layout.bytes() + wide.labels.as_ref().unwrap().bytes()
        );
        assert_eq!(few.bytes(), wide.bytes());
    }
}
