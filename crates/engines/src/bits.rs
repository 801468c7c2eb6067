// SPDX-License-Identifier: Apache-2.0
//! A fixed-size set of slots.

/// A set of slot numbers below a fixed capacity. It allocates only in `new`.
#[derive(Clone, Debug, Default)]
pub struct BitSet {
    words: Box<[u64]>,
    count: usize,
}

impl BitSet {
    /// Creates an empty set for slots 0 to `capacity` - 1.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { words: vec![0; capacity.div_ceil(64)].into_boxed_slice(), count: 0 }
    }

    /// Inserts a slot. Ignores slots beyond the capacity.
    #[inline]
    pub fn insert(&mut self, slot: u32) {
        if let Some(word) = self.words.get_mut(slot as usize / 64) {
            let bit = 1 << (slot % 64);
            self.count += usize::from(*word & bit == 0);
            *word |= bit;
        }
    }

    /// Returns whether the set contains a slot.
    #[must_use]
    #[inline]
    pub fn contains(&self, slot: u32) -> bool {
        self.words.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 != 0)
    }

    /// Returns the membership of slots `64 * at` to `64 * at + 63`, as a bitmap.
    #[must_use]
    #[inline]
    pub(crate) fn word(&self, at: u32) -> u64 {
        self.words.get(at as usize).copied().unwrap_or_default()
    }

    /// Returns the number of slots in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether the set is empty. Every lookup calls this.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_go_in_once() {
        let mut set = BitSet::new(65);
        assert!(set.is_empty() && !set.contains(64));
        set.insert(64);
        set.insert(64);
        set.insert(1_000);
        assert!(set.contains(64) && !set.contains(63) && !set.contains(1_000));
        assert_eq!(set.len(), 1);
    }
}
