// SPDX-License-Identifier: Apache-2.0
//! Paths: the tables that a packet passes, and the entry that it hits in each.

use actions::{HeaderChange, Program};
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
    /// The tables in the lowest bytes, and their number in the highest byte. One comparison of words compares
    /// the tables of two paths.
    tables: u64,
}

const _: () = assert!(size_of::<Hops>() == 32);

/// Entries of the learned MAC addresses by which NORMAL forwards a packet. NORMAL reads them outside of the
/// packet's path, so they are no hops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stations {
    /// Entry of the source address, or [`EntryId::NONE`]. It was learned at the ingress port.
    pub source: EntryId,
    /// Entry of the destination address, or [`EntryId::NONE`].
    pub destination: EntryId,
}

impl Stations {
    /// No addresses.
    pub const NONE: Self = Self { source: EntryId::NONE, destination: EntryId::NONE };

    /// Returns whether both addresses are known.
    pub fn are_known(self) -> bool {
        self.source != EntryId::NONE && self.destination != EntryId::NONE
    }

    /// Returns whether one of the entries is this one.
    pub fn have(self, id: EntryId) -> bool {
        self.source == id || self.destination == id
    }
}

/// Position of the number of tables.
const COUNT_BIT: u32 = 56;

impl Default for Hops {
    fn default() -> Self {
        Self::NONE
    }
}

impl Hops {
    /// No hops.
    pub const NONE: Self = Self { entries: [EntryId::NONE; HOPS_MAX], tables: 0 };

    /// Removes all hops.
    #[inline]
    pub fn clear(&mut self) {
        self.tables = 0;
    }

    /// Appends a hop. A path with more than [`HOPS_MAX`] hops is no longer [known](Self::is_known).
    #[inline]
    pub fn push(&mut self, hop: Hop) {
        let at = self.count();
        if at < HOPS_MAX {
            self.entries[at] = hop.entry;
            self.tables |= u64::from(hop.table.0) << (8 * at);
            self.tables += 1 << COUNT_BIT;
        } else {
            self.tables = u64::from(TOO_MANY) << COUNT_BIT;
        }
    }

    /// Returns whether the path has hops, and all of them are listed.
    pub fn is_known(&self) -> bool {
        (1..=HOPS_MAX).contains(&self.count())
    }

    /// Returns whether two paths hit the same entries in the same tables.
    #[inline]
    pub fn is_same(&self, other: &Self) -> bool {
        self.tables == other.tables && self.entries().eq(other.entries())
    }

    /// Returns whether two paths pass the same tables.
    #[inline(always)]
    pub fn has_tables_of(&self, other: &Self) -> bool {
        self.tables == other.tables
    }

    /// Returns the tables in order.
    #[inline]
    pub fn tables(&self) -> impl Iterator<Item = TableId> + use<> {
        let Self { tables, .. } = *self;
        let count = if self.is_known() { self.count() } else { 0 };
        (0..count).map(move |at| TableId((tables >> (8 * at)) as u8))
    }

    /// Returns the entries in order.
    #[inline]
    pub fn entries(&self) -> impl ExactSizeIterator<Item = EntryId> + '_ {
        self.entries.iter().take(self.count()).copied()
    }

    #[inline]
    fn count(&self) -> usize {
        (self.tables >> COUNT_BIT) as usize
    }

    /// Returns the listed hops in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Hop> + '_ {
        self.tables().zip(self.entries()).map(|(table, entry)| Hop { table, entry })
    }
}

/// Returns whether packets that run these programs, one in each table, can have a path record: the key must
/// determine which entries they hit. `None` is a miss. `permitted` is the greatest change before a table that
/// the plan of the keys permits.
#[must_use]
pub fn is_recordable<'a>(
    programs: impl ExactSizeIterator<Item = Option<&'a Program>>,
    permitted: HeaderChange,
) -> bool {
    let last = programs.len().wrapping_sub(1);
    let fits = |(at, program): (usize, Option<&Program>)| match program {
        Some(program) if at == last => program.next.is_none(),
        Some(program) => program.next.is_some() && program.change <= permitted,
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
