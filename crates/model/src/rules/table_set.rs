// SPDX-License-Identifier: Apache-2.0
//! A set of flow tables.

use flow::{Limits, TableId};

/// A set of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSet([u64; 4]);

impl TableSet {
    /// The empty set.
    pub const NONE: Self = Self([0; 4]);
    /// The set of all tables.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// Returns the set of the first `count` tables. If there are 255, the internal table is in the set, too.
    #[must_use]
    pub fn first(count: u8) -> Self {
        if usize::from(count) == Limits::TABLES {
            return Self::ALL;
        }
        let mut set = Self::NONE;
        (0..count).for_each(|table| set.insert(TableId(table)));
        set
    }

    /// Returns whether the set contains the table.
    #[must_use]
    pub fn contains(&self, table: TableId) -> bool {
        self.0[table.index() / 64] >> (table.index() % 64) & 1 == 1
    }

    /// Adds a table to the set.
    pub fn insert(&mut self, table: TableId) {
        self.0[table.index() / 64] |= 1 << (table.index() % 64);
    }
}
