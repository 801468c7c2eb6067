// SPDX-License-Identifier: Apache-2.0
//! Engine `index` for linear tables, whose entries are selected by an index: an array of entry IDs, private
//! to a worker.

use flow::EntryId;

/// Entries by index.
#[derive(Clone, Debug, Default)]
pub struct Index {
    ids: Box<[EntryId]>,
}

impl Index {
    /// Creates an array for indices 0 to `capacity` - 1, all free.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { ids: vec![EntryId::NONE; capacity].into_boxed_slice() }
    }

    /// Returns a copy with a capacity of at least `capacity` indices.
    #[must_use]
    pub fn longer(&self, capacity: usize) -> Self {
        let mut longer = Self::new(capacity.max(self.ids.len()));
        longer.ids[..self.ids.len()].copy_from_slice(&self.ids);
        longer
    }

    /// Sets the entry of an index, or [`EntryId::NONE`]. Ignores indices beyond the capacity.
    #[inline]
    pub fn set(&mut self, index: u32, id: EntryId) {
        if let Some(place) = self.ids.get_mut(index as usize) {
            *place = id;
        }
    }

    /// Returns the entry of an index, or [`EntryId::NONE`].
    #[must_use]
    #[inline]
    pub fn get(&self, index: u32) -> EntryId {
        self.ids.get(index as usize).copied().unwrap_or(EntryId::NONE)
    }

    /// Returns the capacity: the number of indices.
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
        index.set(3, EntryId(17));
        index.set(4, EntryId(18));
        assert_eq!((index.get(3), index.get(2), index.get(4)), (EntryId(17), EntryId::NONE, EntryId::NONE));
        index.set(3, EntryId::NONE);
        assert_eq!(index.get(3), EntryId::NONE);
    }
}
