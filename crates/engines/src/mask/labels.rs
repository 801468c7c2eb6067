// SPDX-License-Identifier: Apache-2.0
//! Lookup of up to a few thousand rules by labels.
//!
//! In each chunk of a dense key, values that match the same rules share a label. Tables join the labels of
//! two chunks into one, repeatedly. The last table gives the rule.
//!
//! Each label also has a vector of the rules it matches, one bit each, best first. The AND of the chunks'
//! vectors gives the rules that a key matches, and its first bit is the best of them. Vectors are used if the
//! rule found is deleted, or if the tables would take too much memory.
//!
//! A dense word that every rule examines completely or not at all (such as an IPv6 interface identifier) is
//! hashed as a whole.

use super::ends::Ends;
use super::joining::{Side, joined};
use super::labeling;
use super::layout::Group;
use super::living::Living;
use super::shares::Ranked;
use super::simd::{DENSE_MAX, Found, Kernel, LINE_BITS, Line, SOURCES_MAX, Vectors};
use super::source::Source;
use super::vain::Vain;
use crate::{BitSet, NONE};

/// Maximum number of rules.
pub(super) const RULES_MAX: usize = LENGTH_MAX * LINE_BITS as usize;

/// Maximum number of lines in a vector.
const LENGTH_MAX: usize = 8;

/// Maximum number of keys in a pass that uses vectors. Tables are faster only for more keys.
const ALONE_MAX: usize = 1;

/// Labels of rules of arbitrary masks.
#[derive(Debug)]
pub(super) struct Labels {
    sources: Vec<Source>,
    ends: Option<Ends>,
    vectors: Vectors,
    /// Slot of each bit, followed by [`NONE`].
    slots: Vec<u32>,
    living: Living,
}

impl Labels {
    /// Compiles rules. Returns `None` if there are too many rules, or if they would take too much memory.
    ///
    /// `slots` are the rules in order of precedence. `rows` has `dense` words of values and `dense` words of
    /// masks for each slot. `vain` decides whether joins are tried, and records a failure.
    pub fn new(slots: &[u32], rows: &[u64], dense: usize, vain: &mut Vain) -> Option<Self> {
        if slots.is_empty() || slots.len() > RULES_MAX {
            return None;
        }
        let length = slots.len().div_ceil(LINE_BITS as usize);
        let (sources, sides): (Vec<Source>, Vec<Side>) =
            labeling::sources(slots, rows, dense, length)?.into_iter().unzip();
        let ends = if vain.suits(slots.len()) {
            let ends = joined(&sides, Ranked { slots, rows, dense });
            if ends.is_none() {
                vain.note(slots.len());
            }
            ends
        } else {
            None
        };
        let mut lines = Vec::new();
        let mut bases = Vec::new();
        for side in &sides {
            bases.push(lines.len() as u32);
            lines.extend_from_slice(&side.lines);
        }
        let vectors = Vectors::new(lines, length as u32, bases)?;
        let living = Living::new(slots);
        let slots = slots.iter().copied().chain([NONE]).collect();
        Some(Self { sources, ends, vectors, slots, living })
    }

    /// Returns whether tables find rules without vectors.
    pub fn has_ends(&self) -> bool {
        self.ends.is_some()
    }

    /// Stores for each key the best active rule that it matches, if this rule beats the one in `slots`.
    #[inline(always)]
    pub fn lookup<K: Kernel, const G: usize>(
        &self,
        kernel: K,
        keys: &Group<G>,
        tombstones: &BitSet,
        slots: &mut [u32],
    ) {
        let Some(ends) = self.ends.as_ref().filter(|_| G > ALONE_MAX) else {
            return self
                .search(kernel, keys, tombstones, slots.len(), |at, slot| slots[at] = slots[at].min(slot));
        };
        let len = slots.len();
        let found = ends.find(kernel, |source, labels| {
            if let Some(source) = self.sources.get(usize::from(source)) {
                source.labels(kernel, keys, len, labels);
            }
        });
        let found = found.iter().map(|bit| self.slots[(*bit as usize).min(self.slots.len() - 1)]);
        if tombstones.is_empty() {
            for (slot, found) in slots.iter_mut().zip(found) {
                *slot = found.min(*slot);
            }
            return;
        }
        // Vectors are used for keys whose rule is deleted.
        let (mut again, mut which, mut count) = ([[0; G]; DENSE_MAX], [0; G], 0);
        for (at, found) in found.enumerate().take(slots.len()) {
            if found >= slots[at] {
                continue;
            }
            if !tombstones.contains(found) {
                slots[at] = found;
                continue;
            }
            again.iter_mut().zip(keys).for_each(|(again, keys)| again[count] = keys[at]);
            which[count] = at;
            count += 1;
        }
        if count > 0 {
            self.search(kernel, &again, tombstones, count, |at, slot| {
                let known = &mut slots[which[at]];
                *known = slot.min(*known);
            });
        }
    }

    /// Calls `found` for each of `len` keys that matches an active rule, with the best such rule. Uses
    /// vectors.
    #[inline(always)]
    fn search<K: Kernel, const G: usize>(
        &self,
        kernel: K,
        keys: &Group<G>,
        tombstones: &BitSet,
        len: usize,
        mut found: impl FnMut(usize, u32),
    ) {
        let mut starts: Found<G> = [[0; G]; SOURCES_MAX];
        for (nth, (source, starts)) in self.sources.iter().zip(&mut starts).enumerate() {
            source.labels(kernel, keys, len, starts);
            self.vectors.starts(nth, starts);
        }
        let wanted = |bit: u32| tombstones.is_empty() || !tombstones.contains(self.slots[bit as usize]);
        // Active rules of each line, computed once per group when the first rule of a key is deleted.
        let (mut lines, mut known) = ([Line([0; 8]); LENGTH_MAX], 0u32);
        let living = |line: u32| {
            let at = line as usize % LENGTH_MAX;
            if known >> at & 1 == 0 {
                lines[at] = self.living.line(kernel, line, tombstones);
                known |= 1 << at;
            }
            lines[at]
        };
        self.vectors.lookup(kernel, &starts, len, wanted, living, |at, bit| {
            found(at, self.slots[bit as usize]);
        });
    }

    /// Returns the memory size in bytes.
    pub fn bytes(&self) -> usize {
        let sources: usize = self.sources.iter().map(Source::bytes).sum();
        sources
            + self.ends.as_ref().map_or(0, Ends::bytes)
            + self.vectors.bytes()
            + self.slots.len() * 4
            + self.living.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::Kind;
    use super::*;

    #[test]
    fn up_to_4096_rules_have_labels() {
        for (len, some) in [(0, false), (1, true), (4_096, true), (4_097, false)] {
            let rows: Vec<u64> = (0..len).flat_map(|rule| [rule / 8, 0x1fff]).collect();
            let slots: Vec<u32> = (0..len as u32).collect();
            let labels = Labels::new(&slots, &rows, 1, &mut Vain::default());
            assert_eq!(labels.is_some(), some, "{len} rules");
        }
    }

    #[test]
    fn failed_joins_are_recorded_and_not_retried() {
        // Three fields with 1,000 values each. Each rule examines a single field.
        let rows: Vec<u64> =
            (0..3_000).flat_map(|rule| [rule << (16 * (rule % 3)), 0xffff << (16 * (rule % 3))]).collect();
        let slots: Vec<u32> = (0..3_000).collect();
        let mut vain = Vain::default();
        assert!(!Labels::new(&slots, &rows, 1, &mut vain).unwrap().has_ends());
        assert!(!vain.suits(3_000) && vain.suits(2_000));
        // The record says that a join is not worth trying.
        let few = &slots[..2];
        assert!(Labels::new(few, &rows, 1, &mut Vain::default()).unwrap().has_ends());
        let mut known = Vain::default();
        known.note(2);
        assert!(!Labels::new(few, &rows, 1, &mut known).unwrap().has_ends());
    }

    #[test]
    fn labels_report_their_memory_size() {
        // Each rule examines a chunk and a hashed word.
        let rows: Vec<u64> = (0..40).flat_map(|rule| [rule, rule << 20, 0xffff, u64::MAX]).collect();
        let slots: Vec<u32> = (0..40).collect();
        let labels = Labels::new(&slots, &rows, 2, &mut Vain::default()).unwrap();
        let [Kind::Chunk { labels: chunk, .. }, Kind::Whole(whole)] =
            [&labels.sources[0].kind, &labels.sources[1].kind]
        else {
            panic!("one source of each kind");
        };
        let ends = labels.ends.as_ref().unwrap();
        let slots = 41 * 4;
        let held = [
            chunk.bytes(),
            whole.bytes(),
            ends.bytes(),
            labels.vectors.bytes(),
            slots,
            labels.living.bytes(),
        ];
        assert!(held.iter().all(|bytes| *bytes > 0));
        assert_eq!(labels.bytes(), held.iter().sum::<usize>());
        // Each label has a vector of one line. One label stands for all values outside the 40.
        assert_eq!(labels.vectors.bytes(), 2 * 41 * 64);
    }
}
