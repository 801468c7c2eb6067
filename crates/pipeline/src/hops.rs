// SPDX-License-Identifier: Apache-2.0
//! Paths: the tables that a packet passes, and the entry that it hits in each.

use actions::Program;
use flow::{EntryId, TableId};

/// Maximum number of tables on a path that has a record.
pub(crate) const HOPS_MAX: usize = 6;

/// Count that stands for a path with more than [`HOPS_MAX`] tables.
const TOO_MANY: u8 = HOPS_MAX as u8 + 1;

/// A table that a packet passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub table: TableId,
    /// Entry that the packet hits, or [`EntryId::NONE`] for a miss.
    pub entry: EntryId,
}

/// The tables that a packet passes, in order. It takes half of a cache line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hops {
    entries: [EntryId; HOPS_MAX],
    tables: Tables,
}

/// Tables in order. They are compared as one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
struct Tables {
    numbers: [TableId; HOPS_MAX],
    _unused: u8,
    count: u8,
}

const _: () = assert!(size_of::<Hops>() == 32);

impl Default for Hops {
    fn default() -> Self {
        Self { entries: [EntryId::NONE; HOPS_MAX], tables: Tables::default() }
    }
}

impl Hops {
    /// Removes all hops.
    #[inline]
    pub fn clear(&mut self) {
        self.tables = Tables::default();
    }

    /// Appends a hop. A path with more than [`HOPS_MAX`] hops is no longer [known](Self::is_known).
    #[inline]
    pub fn push(&mut self, hop: Hop) {
        let at = usize::from(self.tables.count);
        if at < HOPS_MAX {
            self.entries[at] = hop.entry;
            self.tables.numbers[at] = hop.table;
            self.tables.count += 1;
        } else {
            self.tables.count = TOO_MANY;
        }
    }

    /// Returns whether the path has hops, and all of them are listed.
    pub fn is_known(&self) -> bool {
        (1..TOO_MANY).contains(&self.tables.count)
    }

    /// Returns whether two paths pass the same tables.
    #[inline]
    pub fn has_tables_of(&self, other: &Self) -> bool {
        self.tables == other.tables
    }

    /// Returns the tables in order.
    #[inline]
    pub fn tables(&self) -> &[TableId] {
        self.tables.numbers.get(..self.len()).unwrap_or_default()
    }

    /// Returns the entries in order.
    #[inline]
    pub fn entries(&self) -> &[EntryId] {
        self.entries.get(..self.len()).unwrap_or_default()
    }

    #[inline]
    fn len(&self) -> usize {
        usize::from(self.tables.count)
    }

    /// Returns the listed hops in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Hop> + '_ {
        self.tables().iter().zip(self.entries()).map(|(table, entry)| Hop { table: *table, entry: *entry })
    }
}

/// Returns whether packets that run these programs, one in each table, can have a path record: the key must
/// determine which entries they hit. `None` is a miss.
#[must_use]
pub fn is_recordable<'a>(programs: impl ExactSizeIterator<Item = Option<&'a Program>>) -> bool {
    let last = programs.len().wrapping_sub(1);
    let fits = |(at, program): (usize, Option<&Program>)| match program {
        Some(program) if at == last => program.next.is_none(),
        Some(program) => program.passage.is_some(),
        None => at == last,
    };
    last < HOPS_MAX && programs.enumerate().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_known_unless_it_is_empty_or_too_long() {
        let mut hops = Hops::default();
        assert!(!hops.is_known());
        for number in 0..HOPS_MAX as u8 {
            hops.push(Hop { table: TableId(number), entry: EntryId(7) });
            assert!(hops.is_known() && hops.iter().count() == usize::from(number) + 1);
        }
        let mut other = hops;
        assert!(other.has_tables_of(&hops));
        (0..300).for_each(|_| hops.push(Hop { table: TableId(9), entry: EntryId(7) }));
        assert!(!hops.is_known());
        hops.clear();
        assert_eq!(hops.iter().count(), 0);
        for (table, same) in [(0, true), (1, false)] {
            hops.clear();
            other.clear();
            hops.push(Hop { table: TableId(0), entry: EntryId(7) });
            other.push(Hop { table: TableId(table), entry: EntryId(8) });
            assert_eq!(hops.has_tables_of(&other), same);
        }
    }
}
