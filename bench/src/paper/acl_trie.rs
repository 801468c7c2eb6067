// SPDX-License-Identifier: Apache-2.0
//! Trie for ternary rules with priorities, of the same kind as scalar `rte_acl`: eight bits per step,
//! deterministic, with the result chosen by priority. If one trie would be too large, the rules are split
//! over several tries, all of which are walked.
//!
//! A state of a trie is the list of rules that a key may still match. The rules' remaining conditions
//! determine all further steps, so states can be reduced. Rules with the same id and equal remaining
//! conditions count as one, such as the prefixes of a port range. Rules after a rule without further
//! conditions are dropped. States with equal lists are merged. Bytes that no rule of the state examines are
//! skipped.

use std::collections::{HashMap, HashSet};

use super::NONE;
use super::automaton::{Automaton, Builder, Edge, LANES};

/// Rules as rows of `words` words, best first.
#[derive(Clone, Copy, Debug)]
pub struct TernaryRows<'r> {
    /// Number of words per row, 1 to 8.
    pub words: usize,
    /// Values; bits outside the masks are ignored.
    pub values: &'r [u64],
    /// Masks of the values.
    pub masks: &'r [u64],
    /// Ids of the rules, below [`NONE`]. Rows may share an id: a rule with a port range has several rows.
    pub ids: &'r [u32],
}

/// Returns the maximum number of edges in the tries for `rows` rows. With more edges, the rules are split.
fn edges_max(rows: usize) -> usize {
    (rows * 256).max(1 << 15)
}

/// Returns the maximum number of rules that all states may list while a trie is built, to bound time and
/// memory.
fn listed_max(rows: usize) -> usize {
    (rows * 1_024).max(1 << 18)
}

/// Tries of one table.
#[derive(Debug)]
pub struct AclTrie {
    words: usize,
    tries: Vec<Trie>,
    ids: Box<[u32]>,
}

#[derive(Debug)]
struct Trie {
    automaton: Automaton,
    root: Edge,
    /// Best rule of the trie.
    best: u32,
}

impl AclTrie {
    /// Builds the tries. Returns `None` if a row has no words or more than eight words, if the slices have
    /// unequal lengths, or if an id equals [`NONE`].
    #[must_use]
    pub fn new(rows: &TernaryRows<'_>) -> Option<Self> {
        let lengths = rows.ids.len().checked_mul(rows.words)?;
        let fits = (1..=8).contains(&rows.words)
            && (rows.values.len(), rows.masks.len()) == (lengths, lengths)
            && !rows.ids.contains(&NONE);
        if !fits {
            return None;
        }
        let mut tries = Vec::new();
        let mut waiting = vec![(0..u32::try_from(rows.ids.len()).ok()?).collect::<Vec<_>>()];
        while let Some(part) = waiting.pop() {
            match Trie::new(rows, &part) {
                Some(trie) => tries.push(trie),
                None => waiting.extend(divide(rows, &part)),
            }
        }
        tries.sort_by_key(|trie| trie.best);
        Some(Self { words: rows.words, tries, ids: rows.ids.into() })
    }

    /// Looks up the rows of `keys`. Writes the id of the best rule that each key matches, or [`NONE`].
    pub fn lookup(&self, keys: &[u64], out: &mut [u32]) {
        let mut keys = keys.chunks_exact(self.words * LANES);
        let (out, rest) = out.as_chunks_mut::<LANES>();
        for (keys, out) in keys.by_ref().zip(out) {
            *out = self.best(keys);
        }
        for (key, out) in keys.remainder().chunks_exact(self.words).zip(rest) {
            [*out] = self.best(key);
        }
    }

    #[inline(always)]
    fn best<const KEYS: usize>(&self, keys: &[u64]) -> [u32; KEYS] {
        let mut best = [NONE; KEYS];
        for trie in &self.tries {
            if best.iter().all(|best| *best < trie.best) {
                break;
            }
            let found = trie.automaton.walk([trie.root; KEYS], keys, self.words);
            for (best, found) in best.iter_mut().zip(found) {
                *best = found.min(*best);
            }
        }
        best.map(|row| self.ids.get(row as usize).copied().unwrap_or(NONE))
    }

    /// Returns the number of tries.
    #[must_use]
    pub fn tries(&self) -> usize {
        self.tries.len()
    }

    /// Returns the size of the tries in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.tries.iter().map(|trie| trie.automaton.bytes()).sum::<usize>() + self.ids.len() * 4
    }
}

/// Splits rules into those that examine most bits of one byte and the others, as evenly as possible.
fn divide(rows: &TernaryRows<'_>, part: &[u32]) -> [Vec<u32>; 2] {
    let asks = |byte: usize, row: u32| condition(rows, row, byte).1.count_ones() >= 4;
    let evenness = |byte: usize| {
        let asking = part.iter().filter(|row| asks(byte, **row)).count();
        asking.min(part.len() - asking)
    };
    let byte = (0..rows.words * 8).max_by_key(|byte| evenness(*byte)).unwrap_or(0);
    if evenness(byte) * 16 < part.len() {
        let (first, second) = part.split_at(part.len() / 2);
        return [first.to_vec(), second.to_vec()];
    }
    let (asking, others) = part.iter().partition(|row| asks(byte, **row));
    [asking, others]
}

/// Returns a row's condition on a byte: value and mask.
fn condition(rows: &TernaryRows<'_>, row: u32, byte: usize) -> (u8, u8) {
    let (at, shift) = (row as usize * rows.words + byte / 8, 56 - byte % 8 * 8);
    (((rows.values[at] & rows.masks[at]) >> shift) as u8, (rows.masks[at] >> shift) as u8)
}

impl Trie {
    /// Builds a trie, or returns `None` if it would be too large.
    fn new(rows: &TernaryRows<'_>, part: &[u32]) -> Option<Self> {
        let mut growth = Growth::new(rows, part);
        let root = growth.state(0, (0..part.len() as u32).collect())?;
        Some(Self { automaton: growth.builder.finish(), root, best: part.first().copied().unwrap_or(NONE) })
    }
}

/// Trie under construction. Rules are identified by their index in the part.
struct Growth<'p> {
    part: &'p [u32],
    /// Bytes that at least one rule examines, in the order of the steps.
    order: Vec<usize>,
    /// Condition of each rule on each byte. The first index is the position in `order`, the second is the
    /// rule.
    asked: Vec<Vec<(u8, u8)>>,
    /// For each position and rule, the first rule with equal remaining conditions.
    same: Vec<Vec<u32>>,
    /// For each position and rule, the next position that the rule examines.
    next: Vec<Vec<u8>>,
    builder: Builder,
    /// For each rule, the last state that listed the rule.
    seen: Vec<u64>,
    stamp: u64,
    conditions: HashSet<(u8, u8)>,
    states: HashMap<(u8, Box<[u32]>), Edge>,
    listed: usize,
}

impl<'p> Growth<'p> {
    fn new(rows: &TernaryRows<'_>, part: &'p [u32]) -> Self {
        let asks = |byte: &usize| part.iter().any(|row| condition(rows, *row, *byte).1 != 0);
        let order: Vec<usize> = (0..rows.words * 8).filter(asks).collect();
        let asked: Vec<Vec<(u8, u8)>> =
            order.iter().map(|byte| part.iter().map(|row| condition(rows, *row, *byte)).collect()).collect();
        let mut same = vec![Vec::new(); order.len() + 1];
        let mut next = vec![vec![order.len() as u8; part.len()]; order.len() + 1];
        let first_of = |keys: Vec<(u32, (u8, u8))>| {
            let mut first = HashMap::new();
            (0u32..).zip(keys).map(|(rule, key)| *first.entry(key).or_insert(rule)).collect::<Vec<u32>>()
        };
        same[order.len()] = first_of(part.iter().map(|row| (rows.ids[*row as usize], (0, 0))).collect());
        for place in (0..order.len()).rev() {
            same[place] =
                first_of(same[place + 1].iter().copied().zip(asked[place].iter().copied()).collect());
            for (rule, (_, mask)) in asked[place].iter().enumerate() {
                next[place][rule] = if *mask != 0 { place as u8 } else { next[place + 1][rule] };
            }
        }
        Self {
            part,
            order,
            asked,
            same,
            next,
            builder: Builder::new(),
            seen: vec![0; part.len()],
            stamp: 0,
            conditions: HashSet::new(),
            states: HashMap::new(),
            listed: 0,
        }
    }

    /// Returns the state at position `place` in which these rules, best first, may still match. Returns
    /// `None` if the trie is too large.
    fn state(&mut self, place: usize, mut rules: Vec<u32>) -> Option<Edge> {
        let end = self.order.len();
        self.stamp += 1;
        let (same, seen, stamp) = (&self.same[place], &mut self.seen, self.stamp);
        rules.retain_mut(|rule| {
            *rule = same[*rule as usize];
            std::mem::replace(&mut seen[*rule as usize], stamp) != stamp
        });
        if let Some(last) = rules.iter().position(|rule| usize::from(self.next[place][*rule as usize]) == end)
        {
            rules.truncate(last + 1);
        }
        let place = rules.iter().map(|rule| self.next[place][*rule as usize]).min();
        let place = place.map_or(end, usize::from);
        if place == end {
            let held = rules.first().map_or(NONE, |rule| self.part[*rule as usize]);
            return Some(self.builder.leaf(held));
        }
        let key = (place as u8, rules.into_boxed_slice());
        if let Some(edge) = self.states.get(&key) {
            return Some(*edge);
        }
        self.listed += key.1.len();
        if self.listed > listed_max(self.part.len()) || self.builder.len() > edges_max(self.part.len()) {
            return None;
        }
        let classes = self.classes(place, &key.1);
        let mut targets = [self.builder.leaf(NONE); 256];
        let mut known = [None; 256];
        for (byte, class) in (0..=u8::MAX).zip(classes) {
            let known = &mut known[usize::from(class)];
            let target = match *known {
                Some(target) => target,
                None => {
                    let asked = &self.asked[place];
                    let fits = |rule: &u32| byte & asked[*rule as usize].1 == asked[*rule as usize].0;
                    let left = key.1.iter().copied().filter(fits).collect();
                    self.state(place + 1, left)?
                }
            };
            *known = Some(target);
            targets[usize::from(byte)] = target;
        }
        let edge = self.builder.node(self.order[place], &targets)?;
        self.states.insert(key, edge);
        Some(edge)
    }

    /// Returns the equivalence class of each value of the byte at a position. No rule distinguishes values of
    /// one class.
    fn classes(&mut self, place: usize, rules: &[u32]) -> [u8; 256] {
        let mut classes = [0_u8; 256];
        let mut count = 1_u8;
        self.conditions.clear();
        for rule in rules {
            let (value, mask) = self.asked[place][*rule as usize];
            if mask == 0 || !self.conditions.insert((value, mask)) {
                continue;
            }
            if mask == u8::MAX {
                // A value that is already alone in its class stays in this class.
                if classes.iter().filter(|class| **class == classes[usize::from(value)]).count() > 1 {
                    classes[usize::from(value)] = count;
                    count = count.wrapping_add(1);
                }
                continue;
            }
            let mut parted = [None; 256];
            let mut left = [false; 256];
            for (byte, class) in (0..=u8::MAX).zip(&classes) {
                left[usize::from(*class)] |= byte & mask != value;
            }
            for (byte, class) in (0..=u8::MAX).zip(&mut classes) {
                if byte & mask == value && left[usize::from(*class)] {
                    *class = *parted[usize::from(*class)].get_or_insert_with(|| {
                        count = count.wrapping_add(1);
                        count.wrapping_sub(1)
                    });
                }
            }
        }
        classes
    }
}
