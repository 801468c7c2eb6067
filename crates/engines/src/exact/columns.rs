// SPDX-License-Identifier: Apache-2.0
//! Selection of the words of a row that distinguish rules. A word that is equal in all rules, such as an
//! `EtherType`, is stored once. The other words are stored for each rule, masked and packed.

use super::lines::LINE;

/// Rows are stored whole if at least this many words distinguish rules, and if a row and its slot fit into a
/// cache line.
const WHOLE_MIN: usize = 4;

/// Classifies the words of a row by whether they distinguish rules.
#[derive(Debug)]
pub struct Columns {
    mask: Box<[u64]>,
    /// Values of the words that are equal in all rules, and 0 for each other word.
    common: Box<[u64]>,
    /// Indices of the examined words that are equal in all rules.
    alike: Box<[usize]>,
    /// Indices of the stored words, of which there is at least one.
    stored: Box<[usize]>,
}

impl Columns {
    /// Analyses masked rules of `mask.len()` words each.
    #[must_use]
    pub fn new(mask: &[u64], values: &[u64]) -> Self {
        let words = mask.len();
        let mut rows = values.chunks_exact(words.max(1));
        let mut common = rows.next().map_or_else(|| vec![0; words], <[u64]>::to_vec);
        let mut differing = vec![0; words];
        for row in rows {
            for ((differing, word), first) in differing.iter_mut().zip(row).zip(&common) {
                *differing |= word ^ first;
            }
        }
        let (mut alike, mut stored): (Vec<usize>, Vec<usize>) =
            (0..words).partition(|&word| differing[word] == 0);
        if stored.len() >= WHOLE_MIN && words < LINE {
            // A whole row fits into the line, and needs no selection of words before a comparison.
            stored = (0..words).collect();
            alike.clear();
        }
        if stored.is_empty() {
            stored.extend(alike.pop());
        }
        alike.retain(|&word| mask[word] != 0);
        stored.iter().for_each(|&word| common[word] = 0);
        Self { mask: mask.into(), common: common.into(), alike: alike.into(), stored: stored.into() }
    }

    /// Returns the mask of a row.
    #[must_use]
    pub fn mask(&self) -> &[u64] {
        &self.mask
    }

    /// Returns the length of a row in words.
    #[must_use]
    #[inline]
    pub fn words(&self) -> usize {
        self.mask.len()
    }

    /// Returns the indices of the stored words, in the order of storage.
    #[must_use]
    #[inline]
    pub fn stored(&self) -> &[usize] {
        &self.stored
    }

    /// Returns the values of the words that are not stored, and 0 for each stored word.
    #[must_use]
    pub fn common(&self) -> &[u64] {
        &self.common
    }

    /// Writes a row's stored words to `into`. Returns whether the other words match.
    #[inline(always)]
    pub fn pack(&self, row: &[u64], into: &mut [u64]) -> bool {
        for (into, &word) in into.iter_mut().zip(&self.stored) {
            *into = row[word] & self.mask[word];
        }
        self.has_common(row)
    }

    /// Returns the index and the mask of each of `W` stored words.
    #[inline(always)]
    pub fn picks<const W: usize>(&self) -> [(usize, u64); W] {
        std::array::from_fn(|at| match self.stored.get(at) {
            Some(&word) => (word, self.mask[word]),
            None => (0, 0),
        })
    }

    /// Returns whether the words of a row that are not stored match.
    #[inline(always)]
    pub fn has_common(&self, row: &[u64]) -> bool {
        self.alike
            .iter()
            .fold(0, |differing, &word| differing | (row[word] & self.mask[word] ^ self.common[word]))
            == 0
    }

    /// Reconstructs a row from its stored words.
    pub fn unpack(&self, stored: &[u64], row: &mut [u64]) {
        row.copy_from_slice(&self.common);
        for (value, &word) in stored.iter().zip(&self.stored) {
            row[word] = *value;
        }
    }

    /// Returns the memory size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.mask.len() + self.common.len() + self.alike.len() + self.stored.len()) * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_distinguish_rules_are_stored() {
        let columns = Columns::new(&[3, 0, 0xff, 7], &[1, 0, 5, 2, 1, 0, 6, 2]);
        let mut packed = [9];
        assert!(columns.pack(&[5, 77, 0x706, 10], &mut packed));
        assert_eq!((columns.stored(), packed), (&[2][..], [6]));
        assert!(
            !columns.pack(&[6, 77, 6, 10], &mut packed),
            "a word differs from the value that all rules require"
        );
        let mut row = [9; 4];
        columns.unpack(&[6], &mut row);
        assert_eq!(row, [1, 0, 6, 2]);
    }

    #[test]
    fn at_least_one_word_is_stored() {
        assert_eq!(Columns::new(&[1, 0], &[1, 0, 1, 0]).stored().len(), 1);
        assert_eq!(Columns::new(&[1, 0], &[]).stored().len(), 1);
    }

    #[test]
    fn rows_shorter_than_a_line_are_stored_whole_if_four_words_distinguish_rules() {
        let stored = |words: usize, differing: usize| {
            let mut values = vec![0; 2 * words];
            values[words..][..differing].fill(1);
            Columns::new(&vec![u64::MAX; words], &values).stored().len()
        };
        assert_eq!((stored(7, 3), stored(7, 4), stored(8, 4)), (3, 7, 4));
    }

    #[test]
    fn columns_report_their_memory_size() {
        // Two words are equal in all rules, and one word is stored.
        let columns = Columns::new(&[3, 0, 0xff, 7], &[1, 0, 5, 2, 1, 0, 6, 2]);
        assert_eq!(columns.bytes(), (4 + 4 + 2 + 1) * 8);
    }
}
