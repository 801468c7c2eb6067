// SPDX-License-Identifier: Apache-2.0
//! A set of flow tables.

use flow::TableId;
/// A set of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSet([u64; 4]);

impl TableSet {
    /// The empty set.
    pub const NONE: Self = Self([0; 4]);
    /// The set of all tables.
    pub const ALL: Self = Self([u64::MAX; 4]);

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
