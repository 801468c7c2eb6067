// SPDX-License-Identifier: Apache-2.0
//! Groups by number, and their counters in one worker.

use crate::{Cell, CompiledGroup};
use flow::GroupId;
use std::sync::Arc;

/// Counters of a group and its buckets in one worker.
#[derive(Debug)]
pub struct GroupCells {
    /// Counters of the group.
    pub total: Cell,
    /// Counters of each bucket.
    pub buckets: Box<[Cell]>,
}

impl GroupCells {
    /// Creates cells for a group of `buckets` buckets.
    #[must_use]
    pub fn new(buckets: usize) -> Self {
        Self { total: Cell::default(), buckets: (0..buckets).map(|_| Cell::default()).collect() }
    }
}

/// All groups of one worker, sorted by number.
#[derive(Clone, Debug, Default)]
pub struct GroupTable {
    groups: Vec<(GroupId, Arc<CompiledGroup>, Arc<GroupCells>)>,
}

impl GroupTable {
    /// Creates a table of groups, which must be sorted by number.
    #[must_use]
    pub fn new(groups: Vec<(GroupId, Arc<CompiledGroup>, Arc<GroupCells>)>) -> Self {
        debug_assert!(groups.is_sorted_by_key(|(id, ..)| *id));
        Self { groups }
    }

    /// Returns the group of this number, with its counters.
    #[must_use]
    #[inline]
    pub fn get(&self, id: GroupId) -> Option<(&CompiledGroup, &GroupCells)> {
        let at = self.groups.binary_search_by_key(&id, |(id, ..)| *id).ok()?;
        Some((&self.groups[at].1, &self.groups[at].2))
    }
}
