// SPDX-License-Identifier: Apache-2.0
//! A set of flow tables.

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
    pub fn contains(&self, table: u8) -> bool {
        self.0[usize::from(table / 64)] >> (table % 64) & 1 == 1
    }

    /// Adds a table to the set.
    pub fn insert(&mut self, table: u8) {
        self.0[usize::from(table / 64)] |= 1 << (table % 64);
    }
}
