// SPDX-License-Identifier: Apache-2.0
//! Control side: labels of a chunk's values. Values that match the same rules share a label, whose vector
//! lists these rules.

use super::joining::Side;
use super::paging::paged;
use super::simd::{Cut, DENSE_MAX, LINE_BITS, Line, SOURCES_MAX};
use super::source::{Kind, Source};
use super::whole::Whole;
use std::collections::BTreeMap;

/// Maximum number of lines of all vectors, which bounds the memory for hostile rules.
const LINES_MAX: usize = 1 << 17;

/// Maximum number of values examined while labels are made for all rules.
const STEPS_MAX: usize = 1 << 26;

/// Number of bits in a chunk.
const CHUNK_BITS: u32 = 16;

/// Number of low bits of a chunk that select an entry in a page. Few distinct pages remain, because most
/// pages have a single label.
const BLOCK_BITS: u32 = 8;

/// Maximum number of a chunk's values that are stored without pages.
const DIRECT: usize = 1 << 10;

/// A dense word is hashed if at least this many of its bits are examined, and if each rule examines all or
/// none of these bits.
const WHOLE_MIN: u32 = 24;

/// Builds the sources of labels, each with the vectors of its labels.
///
/// `slots` are the rules in order of precedence. `rows` has `dense` words of values and `dense` words of
/// masks for each slot. A vector has `length` lines. Returns `None` if the sources would take too much memory
/// or time.
pub(super) fn sources(
    slots: &[u32],
    rows: &[u64],
    dense: usize,
    length: usize,
) -> Option<Vec<(Source, Side)>> {
    let mut made: Vec<(Source, Side)> = Vec::new();
    let mut lines = 0;
    let mut steps = STEPS_MAX;
    let mut push = |(kind, mut side): (Kind, Side), word: usize, bits: u64| {
        lines += side.lines.len();
        side.covers[word] = bits;
        made.push((Source { word: word as u8, kind }, side));
        (lines <= LINES_MAX && made.len() <= SOURCES_MAX).then_some(())
    };
    for word in 0..dense {
        let of = |slot: &u32| {
            let at = *slot as usize * 2 * dense + word;
            (rows[at], rows[at + dense])
        };
        let asked: Vec<(u64, u64)> = slots.iter().map(of).collect();
        let all = asked.iter().fold(0, |all, (_, mask)| all | mask);
        if all.count_ones() > WHOLE_MIN
            && asked.iter().all(|(_, mask)| *mask == 0 || *mask == all)
            && let Some(made) = whole(all, &asked, length)
        {
            push(made, word, all)?;
            continue;
        }
        for shift in (0..64).step_by(CHUNK_BITS as usize) {
            let part = |bits: u64| bits >> shift & ((1 << CHUNK_BITS) - 1);
            if part(all) != 0 {
                let asked: Vec<(u64, u64)> = asked.iter().map(|(v, m)| (part(*v), part(*m))).collect();
                push(direct(shift, part(all), &asked, length, &mut steps)?, word, 0xffff << shift)?;
            }
        }
    }
    Some(made)
}

/// Groups the rules by mask and value, and returns a vector of rules for each group.
fn pairs(asked: &[(u64, u64)], length: usize) -> Vec<((u64, u64), Vec<Line>)> {
    let mut pairs: BTreeMap<(u64, u64), Vec<Line>> = BTreeMap::new();
    for (bit, (value, mask)) in asked.iter().enumerate() {
        let vector = pairs.entry((*mask, *value)).or_insert_with(|| vec![Line([0; 8]); length]);
        vector[bit / LINE_BITS as usize].0[bit / 64 % 8] |= 1 << (bit % 64);
    }
    pairs.into_iter().collect()
}

/// Builds a hashed source. Returns `None` if no hash function is found that separates the values.
fn whole(mask: u64, asked: &[(u64, u64)], length: usize) -> Option<(Kind, Side)> {
    let pairs = pairs(asked, length);
    let open = match pairs.first() {
        Some(((0, _), vector)) => vector.clone(),
        _ => vec![Line([0; 8]); length],
    };
    let mut lines = open.clone();
    let mut values = Vec::new();
    for ((_, value), vector) in pairs.iter().filter(|((mask, _), _)| *mask != 0) {
        lines.extend(either(vector, &open));
        values.push(*value);
    }
    Some((Kind::Whole(Whole::new(mask, &values)?), Side { lines, length, covers: [0; DENSE_MAX] }))
}

fn direct(
    shift: u32,
    mask: u64,
    asked: &[(u64, u64)],
    length: usize,
    steps: &mut usize,
) -> Option<(Kind, Side)> {
    let pairs = pairs(asked, length);
    let size = 1usize << (64 - mask.leading_zeros());
    let mut labels = vec![0u16; size];
    // Each pair divides every label into values that match the pair and others. Labels without values are
    // removed at the end.
    let mut vectors: Vec<Vec<Line>> = vec![vec![Line([0; 8]); length]];
    let mut counts = vec![size];
    // For each label, the last pair that divided it, and the label of the matching values.
    let mut divided = vec![(usize::MAX, 0u16)];
    for (number, ((mask, value), vector)) in pairs.iter().enumerate() {
        let open = !mask & (size as u64 - 1);
        *steps = steps.checked_sub(1usize << open.count_ones())?;
        let mut more = 0u64;
        loop {
            let at = (value | more) as usize;
            let old = labels[at];
            let (by, known) = divided[usize::from(old)];
            let new = if by == number {
                known
            } else {
                let new = u16::try_from(vectors.len()).ok()?;
                if vectors.len() * length > LINES_MAX {
                    return None;
                }
                vectors.push(either(&vectors[usize::from(old)], vector).collect());
                counts.push(0);
                divided.push((number, new));
                divided[usize::from(old)] = (number, new);
                new
            };
            labels[at] = new;
            counts[usize::from(old)] -= 1;
            counts[usize::from(new)] += 1;
            more = more.wrapping_sub(open) & open;
            if more == 0 {
                break;
            }
        }
    }
    let mut names = vec![0u16; vectors.len()];
    let mut lines = Vec::new();
    for (label, vector) in vectors.iter().enumerate().filter(|(label, _)| counts[*label] > 0) {
        names[label] = (lines.len() / length) as u16;
        lines.extend_from_slice(vector);
    }
    labels.iter_mut().for_each(|label| *label = names[usize::from(*label)]);
    // The mask removes the bits of other chunks.
    let cut = Cut { shift, mask: size as u32 - 1 };
    let kind = Kind::Chunk { cut, labels: paged(&labels, BLOCK_BITS, DIRECT)? };
    Some((kind, Side { lines, length, covers: [0; DENSE_MAX] }))
}

fn either<'l>(a: &'l [Line], b: &'l [Line]) -> impl Iterator<Item = Line> + 'l {
    a.iter().zip(b).map(|(a, b)| Line(std::array::from_fn(|at| a.0[at] | b.0[at])))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sources for rows of dense words: the word, whether it is hashed as a whole, and the number
    /// of labels.
    fn made(rows: &[Vec<(u64, u64)>]) -> Option<Vec<(u8, bool, usize)>> {
        let dense = rows[0].len();
        let flat: Vec<u64> = rows
            .iter()
            .flat_map(|row| {
                row.iter().map(|(value, mask)| value & mask).chain(row.iter().map(|(_, mask)| *mask))
            })
            .collect();
        let slots: Vec<u32> = (0..rows.len() as u32).collect();
        let length = rows.len().div_ceil(512);
        let sources = sources(&slots, &flat, dense, length)?;
        let each = |(source, side): &(Source, Side)| {
            (source.word, matches!(source.kind, Kind::Whole(_)), side.lines.len() / length)
        };
        Some(sources.iter().map(each).collect())
    }

    #[test]
    fn a_word_of_more_than_24_bits_that_rules_examine_whole_or_not_at_all_is_hashed() {
        let rows = |mask: u64, other: u64| -> Vec<Vec<(u64, u64)>> {
            let mask = |at: u64| [mask, 0, other][at as usize % 3];
            (0..30).map(|at| vec![(at * 0x0101_0101_0101_0101, mask(at))]).collect()
        };
        let bits = |count: u32| u64::MAX >> (64 - count);
        // Ten or twenty values have separate labels, and all others share one.
        assert_eq!(made(&rows(bits(25), 0)).unwrap(), [(0, true, 11)]);
        assert_eq!(made(&rows(bits(64), bits(64))).unwrap(), [(0, true, 21)]);
        assert_eq!(made(&rows(bits(24), 0)).unwrap(), [(0, false, 11), (0, false, 11)]);
        assert_eq!(
            made(&rows(bits(25), bits(24))).unwrap().len(),
            2,
            "one rule examines only a part of the word"
        );
    }

    #[test]
    fn chunks_of_16_bits_that_rules_examine_have_a_label_for_each_set_of_rules() {
        let mask = 0xff_0000_0000_00ff;
        // Each of two words has four values, in the first and the last chunk. All other values share one
        // label.
        let rows: Vec<Vec<(u64, u64)>> = (0..8)
            .map(|at| vec![(at % 4 * 0x0001_0000_0000_0001, mask), (0, 0), ((at / 2) << 32, 0xf << 32)])
            .collect();
        assert_eq!(made(&rows).unwrap(), [(0, false, 5), (0, false, 5), (2, false, 5)]);
        // Values that match the same rules share a label: the values below 4, and the others.
        let rows = vec![vec![(0, 0b1100)], vec![(4, 0b1100)], vec![(0, 0b1000)]];
        assert_eq!(made(&rows).unwrap(), [(0, false, 3)]);
    }

    #[test]
    fn the_longest_key_has_one_source_per_chunk() {
        let row = |at: u64| vec![(at * 0x0001_0001_0001_0001, u64::MAX << (at % 2)); DENSE_MAX];
        let rows: Vec<_> = (0..20).map(row).collect();
        assert_eq!(made(&rows).unwrap().len(), 32);
    }
}
