// SPDX-License-Identifier: Apache-2.0
//! Engine `index` for linear tables, whose entries are selected by an index. It is an array of ids, private
//! to a worker, so that setting and clearing an index is one store.

use crate::NONE;

/// Entries by index.
#[derive(Clone, Debug, Default)]
pub struct Index {
    ids: Box<[u32]>,
}

impl Index {
    /// Creates an array for indices 0 to `capacity` - 1, all free.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { ids: vec![NONE; capacity].into_boxed_slice() }
    }

    /// Returns a copy with a capacity of at least `capacity` indices.
    #[must_use]
    pub fn longer(&self, capacity: usize) -> Self {
        let mut longer = Self::new(capacity.max(self.ids.len()));
        longer.ids[..self.ids.len()].copy_from_slice(&self.ids);
        longer
    }

    /// Sets the entry (or [`NONE`]) of an index. An index beyond the capacity is ignored.
    #[inline]
    pub fn set(&mut self, index: u32, id: u32) {
        if let Some(place) = self.ids.get_mut(index as usize) {
            *place = id;
        }
    }

    /// Returns the entry of an index, or [`NONE`].
    #[must_use]
    #[inline]
    pub fn get(&self, index: u32) -> u32 {
        self.ids.get(index as usize).copied().unwrap_or(NONE)
    }

    /// Returns the number of indices that fit.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.ids.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_number() {
        let mut index = Index::new(4);
        index.set(3, 17);
        index.set(4, 18);
        assert_eq!((index.get(3), index.get(2), index.get(4)), (17, NONE, NONE));
        index.set(3, NONE);
        assert_eq!(index.get(3), NONE);
    }
}
