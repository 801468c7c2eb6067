// SPDX-License-Identifier: Apache-2.0
//! Control side: joins the labels of two sources into one, repeatedly, until a single table identifies the
//! rule (recursive flow classification).
//!
//! A label of a join stands for the rules that match both operands. The next join is always the one with the
//! fewest resulting labels per combination of labels. This joins sources that belong together, such as the
//! halves of an address. Rules that cannot win are ignored when labels are compared.

use super::ends::{Ends, Node};
use super::layout::Dense;
use super::met::Met;
use super::paging::paged;
use super::shares::{Ranked, Shares};
use super::simd::Line;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Maximum number of label pairs in a table that leads to labels.
const PAIRS_MAX: usize = 1 << 19;

/// Maximum number of label pairs in the table that leads to rules.
const ENDS_MAX: usize = 1 << 22;

/// Number of labels of each operand in the sample that estimates the result of a join.
const SAMPLE: usize = 32;

/// Maximum number of entries in a table that is stored without pages.
const JOINS_DIRECT: usize = 1 << 14;

/// Maximum size of all tables in bytes.
const BYTES_MAX: usize = 1 << 21;

/// Maximum number of vector words and rules examined while sources are joined.
const STEPS_MAX: usize = 1 << 24;

/// Binary logarithm of the number of entries in a page; equal pages are stored once.
const BLOCK_BITS: u32 = 4;

/// Rules that the labels of a source match: one vector of `length` lines per label.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub lines: Vec<Line>,
    pub length: usize,
    /// Bits of a dense key that the source examines.
    pub covers: Dense,
}

impl Side {
    fn count(&self) -> usize {
        self.lines.len() / self.length
    }

    fn vectors(&self) -> impl Iterator<Item = &[Line]> {
        self.lines.chunks_exact(self.length)
    }
}

/// A source or join that has not been joined with another yet.
struct Open<'s> {
    node: Node,
    /// Serial number among all sources and joins.
    number: usize,
    side: Cow<'s, Side>,
}

/// Joins the sources of rules. Returns `None` if there is only one source, or if joining takes too much
/// memory or time.
pub(super) fn joined(sides: &[Side], rules: Ranked) -> Option<Ends> {
    let mut open: Vec<Open> = (0..)
        .zip(sides)
        .map(|(number, side)| Open { node: Node::Source(number as u8), number, side: Cow::Borrowed(side) })
        .collect();
    let mut numbers = open.len();
    let mut steps = STEPS_MAX;
    // For each join, the resulting labels per combination of labels, or `None` if the join is impossible.
    let mut known: BTreeMap<(usize, usize), Option<f64>> = BTreeMap::new();
    while open.len() > 2 {
        let mut best: Option<(f64, usize, usize)> = None;
        for (at, first) in open.iter().enumerate() {
            for (other, second) in open.iter().enumerate().skip(at + 1) {
                let part = known.entry((first.number, second.number));
                let part = part.or_insert_with(|| part_left(&first.side, &second.side, &mut steps));
                if let Some(part) = *part
                    && best.is_none_or(|(least, ..)| part < least)
                {
                    best = Some((part, at, other));
                }
            }
        }
        let (_, first, second) = best?;
        let Some((table, side)) = join(&open[first].side, &open[second].side, rules, &mut steps) else {
            known.insert((open[first].number, open[second].number), None);
            continue;
        };
        let second = open.remove(second);
        let first = open.remove(first);
        let table = paged(&table, BLOCK_BITS, JOINS_DIRECT)?;
        let node = Node::join(first.node, second.node, second.side.count() as u32, table);
        open.push(Open { node, number: numbers, side: Cow::Owned(side) });
        numbers += 1;
    }
    open.sort_by_key(|open| std::cmp::Reverse(open.side.count()));
    let (second, first) = (open.pop()?, open.pop()?);
    let scale = second.side.count().next_multiple_of(1 << BLOCK_BITS);
    let table = first_bits(&first.side, &second.side, scale, rules.len(), &mut steps)?;
    let table = paged(&table, BLOCK_BITS, JOINS_DIRECT)?;
    Ends::new(Node::join(first.node, second.node, scale as u32, table))
        .filter(|ends| ends.bytes() <= BYTES_MAX)
}

/// Estimates from a sample the ratio of a join's resulting labels to its pairs of labels. Returns `None` if
/// there are too many pairs, or if no steps are left.
fn part_left(a: &Side, b: &Side, steps: &mut usize) -> Option<f64> {
    if a.count() * b.count() > PAIRS_MAX {
        return None;
    }
    let some = |side: &Side| {
        let step = side.count().div_ceil(SAMPLE);
        let lines = side.vectors().step_by(step).flatten().copied().collect();
        Side { lines, length: side.length, covers: side.covers }
    };
    let (a, b) = (some(a), some(b));
    let (table, met) = meet(&a, &b, steps)?;
    Some(met.count() as f64 / table.len() as f64)
}

/// Returns the label of the join for each pair of labels, and the vectors of these labels. Returns `None` if
/// there are too many labels, or if no steps are left.
fn join(a: &Side, b: &Side, rules: Ranked, steps: &mut usize) -> Option<(Vec<u16>, Side)> {
    let (mut table, mut met) = meet(a, b, steps)?;
    let length = a.length;
    let covers = std::array::from_fn(|word| a.covers[word] | b.covers[word]);
    if let Some(shares) = Shares::new(rules, &covers) {
        let mut seen = Met::new(length);
        let mut names = Vec::with_capacity(met.count());
        for vector in met.lines.chunks_exact_mut(length) {
            *steps = steps.checked_sub(shares.hide(vector))?;
            let words = vector.iter().flat_map(|line| line.0).enumerate();
            let hash = words.fold(0u64, |hash, (at, word)| hash.wrapping_add(seen.hash(at, word)));
            names.push(seen.label(hash, vector)?);
        }
        table.iter_mut().for_each(|label| *label = names[usize::from(*label)]);
        met = seen;
    }
    Some((table, Side { lines: met.lines, length, covers }))
}

/// Joins like `join`, without ignoring any rules.
fn meet(a: &Side, b: &Side, steps: &mut usize) -> Option<(Vec<u16>, Met)> {
    let mut table = Vec::with_capacity(a.count() * b.count());
    let mut met = Met::new(a.length);
    for first in a.vectors() {
        let words = first.iter().flat_map(|line| line.0).enumerate();
        let words: Vec<(usize, u64)> = words.filter(|(_, word)| *word != 0).collect();
        *steps = steps.checked_sub(b.count() * (words.len() + 1))?;
        let mut both = vec![Line([0; 8]); a.length];
        for second in b.vectors() {
            let mut hash = 0u64;
            for (at, word) in &words {
                let word = word & second[at / 8].0[at % 8];
                both[at / 8].0[at % 8] = word;
                hash = hash.wrapping_add(met.hash(*at, word));
            }
            table.push(met.label(hash, &both)?);
        }
    }
    Some((table, met))
}

/// Returns for each pair of labels the first rule that both vectors contain, or `rules` if there is none. The
/// index of a pair is the label of `a` times `scale`, plus the label of `b`.
fn first_bits(a: &Side, b: &Side, scale: usize, rules: usize, steps: &mut usize) -> Option<Vec<u16>> {
    let size = a.count() * scale;
    let none = u16::try_from(rules).ok()?;
    if size > ENDS_MAX {
        return None;
    }
    // For each rule, a bitmap of the labels of `b` that match.
    let words = b.count().div_ceil(64);
    let mut suited = vec![0u64; rules * words];
    for (label, vector) in b.vectors().enumerate() {
        for bit in bits(vector) {
            suited[bit * words + label / 64] |= 1 << (label % 64);
        }
    }
    let mut table = vec![none; size];
    for (row, vector) in table.chunks_exact_mut(scale).zip(a.vectors()) {
        let mut open = vec![u64::MAX; words];
        if let (Some(last), rest @ 1..) = (open.last_mut(), b.count() % 64) {
            *last = (1 << rest) - 1;
        }
        for bit in bits(vector) {
            *steps = steps.checked_sub(words)?;
            let mut left = 0;
            for (word, (open, suited)) in open.iter_mut().zip(&suited[bit * words..][..words]).enumerate() {
                let mut taken = *open & suited;
                *open ^= taken;
                left |= *open;
                while taken != 0 {
                    row[word * 64 + taken.trailing_zeros() as usize] = bit as u16;
                    taken &= taken - 1;
                }
            }
            if left == 0 {
                break;
            }
        }
    }
    Some(table)
}

/// Returns the indices of the set bits of a vector.
fn bits(vector: &[Line]) -> impl Iterator<Item = usize> {
    let words = vector.iter().flat_map(|line| line.0).enumerate();
    words.flat_map(|(at, mut word)| {
        std::iter::from_fn(move || {
            let bit = (word != 0).then_some(word.trailing_zeros() as usize)?;
            word &= word - 1;
            Some(64 * at + bit)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::labels::Labels;
    use super::super::vain::Vain;
    use super::*;
    use fastrand::Rng;
    use std::collections::HashSet;

    /// Returns whether rules can be joined. A rule has up to three fields of 16 bits in one dense word.
    /// `None` matches every value.
    fn joinable(rules: impl Iterator<Item = [Option<u64>; 3]>) -> bool {
        let rows: Vec<u64> = rules
            .flat_map(|fields| {
                let at = |nth: usize| {
                    fields[nth].map_or((0, 0), |value| (value << (16 * nth), 0xffff << (16 * nth)))
                };
                (0..3).map(at).fold([0, 0], |[value, mask], (v, m)| [value | v, mask | m])
            })
            .collect();
        let slots: Vec<u32> = (0..rows.len() as u32 / 2).collect();
        Labels::new(&slots, &rows, 1, &mut Vain::default()).unwrap().has_ends()
    }

    /// Returns vectors of `length` lines, in which one of `one_in` bits is set on average.
    fn side(rng: &mut Rng, count: usize, length: usize, one_in: u32) -> Side {
        let line = |rng: &mut Rng| {
            let mut line = Line([0; 8]);
            for bit in (0..512).filter(|_| rng.u32(..one_in) == 0).collect::<Vec<usize>>() {
                line.0[bit / 64] |= 1 << (bit % 64);
            }
            line
        };
        Side { lines: (0..count * length).map(|_| line(rng)).collect(), length, covers: [0; 8] }
    }

    fn both(a: &[Line], b: &[Line]) -> Vec<[u64; 8]> {
        a.iter().zip(b).map(|(a, b)| std::array::from_fn(|word| a.0[word] & b.0[word])).collect()
    }

    #[test]
    fn a_pair_of_labels_leads_to_the_intersection_of_their_vectors() {
        let mut rng = Rng::with_seed(1);
        for (first, second, length, one_in) in [(1, 1, 1, 2), (7, 9, 2, 40), (30, 5, 3, 300)] {
            let (a, b) = (side(&mut rng, first, length, one_in), side(&mut rng, second, length, one_in));
            let mut steps = STEPS_MAX;
            let (table, met) = meet(&a, &b, &mut steps).unwrap();
            assert_eq!(table.len(), first * second);
            let pairs = a.vectors().flat_map(|a| b.vectors().map(move |b| both(a, b)));
            for (label, right) in table.iter().zip(pairs) {
                let found = &met.lines[usize::from(*label) * length..][..length];
                assert!(found.iter().map(|line| line.0).eq(right));
            }
            let different: HashSet<_> =
                a.vectors().flat_map(|a| b.vectors().map(move |b| both(a, b))).collect();
            assert_eq!(met.count(), different.len(), "each intersection has one label");
            // A join takes one step for each pair of a nonzero word of `a` and a vector of `b`, and one for
            // each pair of labels.
            let words = a.lines.iter().flat_map(|line| line.0).filter(|word| *word != 0).count();
            assert_eq!(STEPS_MAX - steps, (words + first) * second);
            assert!(meet(&a, &b, &mut ((words + first) * second - 1)).is_none(), "too few steps");
        }
    }

    #[test]
    fn the_first_bit_of_each_pair_is_found() {
        let mut rng = Rng::with_seed(2);
        for (first, second, scale, one_in) in
            [(1, 1, 16, 2), (5, 63, 64, 9), (9, 64, 64, 40), (4, 65, 80, 100)]
        {
            let (a, b) = (side(&mut rng, first, 2, one_in), side(&mut rng, second, 2, one_in));
            let table = first_bits(&a, &b, scale, 1_024, &mut STEPS_MAX.clone()).unwrap();
            for (row, a) in table.chunks_exact(scale).zip(a.vectors()) {
                for (found, b) in row.iter().zip(b.vectors()) {
                    let words = both(a, b).concat();
                    let right = words.iter().position(|word| *word != 0);
                    let right = right.map_or(1_024, |at| 64 * at as u32 + words[at].trailing_zeros());
                    assert_eq!(u32::from(*found), right);
                }
                assert!(
                    row[second..].iter().all(|found| *found == 1_024),
                    "entries after the last label hold no rule"
                );
            }
            assert_eq!(table.len(), first * scale);
        }
        let (a, b) = (side(&mut rng, 2, 1, 2), side(&mut rng, 2, 1, 2));
        assert!(first_bits(&a, &b, 16, 512, &mut 0).is_none(), "too few steps");
        assert!(first_bits(&a, &b, ENDS_MAX / 2, 512, &mut STEPS_MAX.clone()).is_some());
        assert!(
            first_bits(&a, &b, ENDS_MAX / 2 + 1, 512, &mut STEPS_MAX.clone()).is_none(),
            "too many pairs"
        );
    }

    #[test]
    fn fields_that_belong_together_are_joined() {
        let rule = |rule: u64| [Some(rule / 10), Some(rule % 7), (rule < 500).then_some(rule % 31)];
        assert!(joinable((0..1_000).map(rule)));
    }

    #[test]
    fn joins_that_would_take_too_much_memory_are_not_made() {
        let one = |rule: u64| std::array::from_fn(|nth| (rule % 3 == nth as u64).then_some(rule));
        assert!(!joinable((0..3_000).map(one)));
    }
}
