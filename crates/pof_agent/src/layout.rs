// SPDX-License-Identifier: Apache-2.0
//! Numbers of tables. POF numbers the tables of each type from 0, and all tables together: first those with
//! masks, then those with longest prefixes, exact matches and indexes.

use flow::TableId;
use pof::message::table::PofTableType;

/// Table types in the order of their global numbers.
pub const TYPES: [PofTableType; 4] =
    [PofTableType::Mask, PofTableType::LongestPrefix, PofTableType::Exact, PofTableType::Linear];

/// Number of tables of each type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLayout {
    counts: [u8; 4],
}

impl TableLayout {
    /// Returns the layout for the number of tables of each type, whose sum must be at most 255.
    #[must_use]
    pub fn new(counts: [u8; 4]) -> Self {
        debug_assert!(counts.iter().map(|&count| usize::from(count)).sum::<usize>() <= 255);
        Self { counts }
    }

    /// Returns the number of tables of a type.
    #[must_use]
    pub fn count(&self, kind: PofTableType) -> u8 {
        self.counts[place(kind)]
    }

    /// Returns the number of all tables.
    #[must_use]
    pub fn total(&self) -> u8 {
        self.counts.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// Returns the global number of a table, or `None` if there is no such table.
    #[must_use]
    pub fn global(&self, kind: PofTableType, number: u8) -> Option<TableId> {
        let place = place(kind);
        if number >= self.counts[place] {
            return None;
        }
        let before = self.counts[..place].iter().fold(0, |sum: u8, &count| sum.saturating_add(count));
        Some(TableId(before.saturating_add(number)))
    }

    /// Returns type and number of the table with this global number, or `None` if there is no such table.
    #[must_use]
    pub fn local(&self, table: TableId) -> Option<(PofTableType, u8)> {
        let mut number = table.0;
        for (kind, count) in TYPES.into_iter().zip(self.counts) {
            match number.checked_sub(count) {
                Some(rest) => number = rest,
                None => return Some((kind, number)),
            }
        }
        None
    }
}

/// Returns the index of a type in [`TYPES`].
fn place(kind: PofTableType) -> usize {
    match kind {
        PofTableType::Mask => 0,
        PofTableType::LongestPrefix => 1,
        PofTableType::Exact => 2,
        PofTableType::Linear => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_lower_types_come_first() {
        let layout = TableLayout::new([10, 10, 5, 20]);
        for (kind, number, global) in [
            (PofTableType::Mask, 0, Some(0)),
            (PofTableType::Mask, 9, Some(9)),
            (PofTableType::Mask, 10, None),
            (PofTableType::LongestPrefix, 0, Some(10)),
            (PofTableType::Exact, 4, Some(24)),
            (PofTableType::Exact, 5, None),
            (PofTableType::Linear, 0, Some(25)),
            (PofTableType::Linear, 19, Some(44)),
            (PofTableType::Linear, 255, None),
        ] {
            assert_eq!(layout.global(kind, number), global.map(TableId), "{kind:?} {number}");
        }
        assert_eq!((layout.total(), layout.local(TableId(45))), (45, None));
    }

    #[test]
    fn both_numbers_name_the_same_table() {
        for counts in [[10, 10, 5, 20], [0, 3, 0, 1], [255, 0, 0, 0], [0, 0, 0, 255], [0; 4]] {
            let layout = TableLayout::new(counts);
            for number in 0..=255 {
                let local = layout.local(TableId(number));
                assert_eq!(local.is_some(), number < layout.total(), "{counts:?} {number}");
                if let Some((kind, own)) = local {
                    assert_eq!(layout.global(kind, own), Some(TableId(number)));
                }
            }
        }
    }
}
