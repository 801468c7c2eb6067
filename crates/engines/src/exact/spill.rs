// SPDX-License-Identifier: Apache-2.0
//! Values that found no place in their buckets, sorted for binary search. They exist only if the hash
//! function distributes values badly.

/// Spilled values of `words` words each, and their slots.
#[derive(Debug, Default)]
pub struct Spill {
    words: usize,
    rows: Vec<u64>,
    slots: Vec<u32>,
}

impl Spill {
    /// Creates the sorted list from values and their slots, given in any order.
    #[must_use]
    pub fn new(words: usize, mut values: Vec<(Vec<u64>, u32)>) -> Self {
        values.sort_unstable();
        let slots = values.iter().map(|(_, slot)| *slot).collect();
        Self { words, rows: values.into_iter().flat_map(|(row, _)| row).collect(), slots }
    }

    /// Returns whether there are no values.
    #[must_use]
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the slot of a value.
    #[must_use]
    pub fn find(&self, key: &[u64]) -> Option<u32> {
        let (mut low, mut high) = (0, self.slots.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.row(middle).cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(self.slots[middle]),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn row(&self, at: usize) -> &[u64] {
        &self.rows[at * self.words..][..self.words]
    }

    /// Returns all values and slots.
    pub fn iter(&self) -> impl Iterator<Item = (&[u64], u32)> {
        (0..).zip(&self.slots).map(|(at, slot)| (self.row(at), *slot))
    }

    /// Returns the memory size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows.len() * 8 + self.slots.len() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spilled_values_are_found() {
        let spill = Spill::new(2, (0..50).map(|i| (vec![i * 7 % 50, i], i as u32)).collect());
        assert!((0..50).all(|i| spill.find(&[i * 7 % 50, i]) == Some(i as u32)));
        assert_eq!(spill.find(&[1, 1]), None);
        assert_eq!(Spill::default().find(&[1, 1]), None);
        assert_eq!(spill.iter().count(), 50);
    }

    #[test]
    fn a_spilled_value_occupies_its_words_and_a_slot() {
        let spill = Spill::new(2, (0..50).map(|i| (vec![i, 0], i as u32)).collect());
        assert_eq!((spill.len(), spill.bytes()), (50, 50 * (2 * 8 + 4)));
        assert!(!spill.is_empty() && Spill::default().is_empty());
    }
}
