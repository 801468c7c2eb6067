// SPDX-License-Identifier: Apache-2.0
//! Paths: the tables that a packet passes, and the entry that it hits in each.

use crate::plan::Permitted;
use actions::{HeaderChange, Program, Shift};
use flow::{EntryId, TableId};

/// Maximum number of tables on a path that is recorded.
pub const HOPS_MAX: usize = FIRST_HOPS + MORE_HOPS;

/// Number of tables (hops) for which every path has space.
const FIRST_HOPS: usize = 6;

/// Number of further tables, which few paths have.
const MORE_HOPS: usize = 18;

/// Count that stands for a path with more than [`HOPS_MAX`] tables.
const TOO_MANY: u8 = HOPS_MAX as u8 + 1;

/// A table that a packet passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathHop {
    /// Number of the table.
    pub table: TableId,
    /// Entry that the packet hits, or [`EntryId::NONE`] for a miss.
    pub entry: EntryId,
}

/// The first tables that a packet passes, in order, in half of a cache line.
#[derive(Clone, Copy, Debug)]
pub struct FirstHops {
    entries: [EntryId; FIRST_HOPS],
    /// The numbers of the first tables in the low bytes, and the count of all tables in the highest byte.
    tables: u64,
}

const _: () = assert!(size_of::<FirstHops>() == 32);

impl FirstHops {
    /// No hops.
    pub const NONE: Self = Self { entries: [EntryId::NONE; FIRST_HOPS], tables: 0 };

    #[inline]
    fn count(&self) -> usize {
        (self.tables >> COUNT_BIT) as usize
    }

    /// Returns the entry in the path's first table.
    #[must_use]
    #[inline]
    pub fn first_entry(&self) -> Option<EntryId> {
        (self.count() > 0).then_some(self.entries[0])
    }

    /// Returns whether the path has more tables than [`FirstHops`] holds.
    #[inline(always)]
    pub fn has_more(&self) -> bool {
        self.count() > FIRST_HOPS
    }
}

/// Hops after the first ones: the entries, two in each word, then the tables, eight in each word. A large
/// array of zero integers takes no memory until it is written.
pub type MoreHops = [u64; MORE_WORDS];

/// Number of words of the further entries.
const ENTRY_WORDS: usize = MORE_HOPS / 2;

const MORE_WORDS: usize = ENTRY_WORDS + MORE_HOPS.div_ceil(8);

/// No further hops.
pub const NO_MORE: MoreHops = [0; MORE_WORDS];

/// The tables that a packet passes, in order.
#[derive(Clone, Copy, Debug)]
pub struct Hops {
    /// The first hops, and the number of all hops.
    pub first: FirstHops,
    /// The hops after the first ones. They have no meaning if the path has no further hops.
    pub more: MoreHops,
}

/// Entries of the learned MAC addresses by which NORMAL forwards a packet. They are not hops, because the
/// packet does not pass their table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stations {
    /// Entry of the source address at the ingress port, or [`EntryId::NONE`]. With a destination and no
    /// source, the port has reached its limit of learned addresses.
    pub source: EntryId,
    /// Entry of the destination address, or [`EntryId::NONE`].
    pub destination: EntryId,
}

impl Stations {
    /// No addresses.
    pub const NONE: Self = Self { source: EntryId::NONE, destination: EntryId::NONE };

    /// Returns whether packets can leave by these addresses without another run of NORMAL.
    pub fn are_known(self) -> bool {
        self.destination != EntryId::NONE
    }

    /// Returns whether packets can leave, but depend on the fact that their port learns no more addresses.
    pub fn need_full_port(self) -> bool {
        self.are_known() && self.source == EntryId::NONE
    }
}

/// Result of a search: the entries that a packet hits in the tables.
#[derive(Clone, Copy, Debug)]
pub struct FoundPath {
    /// The entries.
    pub hops: Hops,
    /// Learned addresses by which NORMAL forwards the packet, if it does.
    pub stations: Stations,
}

/// Bit position of the count in `FirstHops::tables`.
const COUNT_BIT: u32 = 56;

impl Default for Hops {
    fn default() -> Self {
        Self::NONE
    }
}

impl Hops {
    /// No hops.
    pub const NONE: Self = Self { first: FirstHops::NONE, more: NO_MORE };

    /// Removes all hops.
    #[inline]
    pub fn clear(&mut self) {
        self.first.tables = 0;
    }

    /// Appends a hop. A path with more than [`HOPS_MAX`] hops is not [known](HopList::is_known).
    #[inline]
    pub fn push(&mut self, hop: PathHop) {
        let at = self.first.count();
        if at < FIRST_HOPS {
            self.first.entries[at] = hop.entry;
            self.first.tables |= u64::from(hop.table.0) << (8 * at);
            self.first.tables += 1 << COUNT_BIT;
        } else {
            self.push_more(at, hop);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_more(&mut self, at: usize, hop: PathHop) {
        if at >= HOPS_MAX {
            self.first.tables = u64::from(TOO_MANY) << COUNT_BIT;
            return;
        }
        let set = |word: &mut u64, bits: u32, number: usize, value: u64| {
            let (shift, mask) = (bits * number as u32, (1 << bits) - 1);
            *word = *word & !(mask << shift) | value << shift;
        };
        let at = at - FIRST_HOPS;
        set(&mut self.more[at / 2], 32, at % 2, u64::from(hop.entry.0));
        set(&mut self.more[ENTRY_WORDS + at / 8], 8, at % 8, u64::from(hop.table.0));
        self.first.tables += 1 << COUNT_BIT;
    }

    /// Returns all hops.
    #[inline(always)]
    pub fn list(&self) -> HopList<'_> {
        HopList { first: &self.first, more: &self.more }
    }

    /// Copies the hops of a list.
    #[inline(always)]
    pub fn set(&mut self, list: HopList<'_>) {
        self.first = *list.first;
        if list.first.has_more() {
            self.more = *list.more;
        }
    }

    /// Removes all hops and returns them.
    #[inline]
    pub fn take(&mut self) -> Self {
        let more = if self.first.has_more() { self.more } else { NO_MORE };
        Self { first: std::mem::replace(&mut self.first, FirstHops::NONE), more }
    }
}

/// The hops of a path, by reference.
#[derive(Clone, Copy, Debug)]
pub struct HopList<'a> {
    /// The first hops, and the number of all hops.
    pub first: &'a FirstHops,
    /// The hops after the first ones.
    pub more: &'a MoreHops,
}

impl<'a> HopList<'a> {
    /// Returns whether the path has at least one hop, and the list contains all hops of the path.
    pub fn is_known(self) -> bool {
        (1..=HOPS_MAX).contains(&self.first.count())
    }

    /// Returns whether two paths hit the same entries in the same tables.
    #[inline]
    pub fn is_same(self, other: HopList<'_>) -> bool {
        self.has_tables_of(other) && self.entries().eq(other.entries())
    }

    /// Returns whether two paths pass the same tables.
    #[inline(always)]
    pub fn has_tables_of(self, other: HopList<'_>) -> bool {
        let is_same = self.first.tables == other.first.tables;
        is_same && (!self.first.has_more() || self.tables().eq(other.tables()))
    }

    /// Returns the number of listed hops.
    #[inline]
    fn count(self) -> usize {
        let count = self.first.count();
        if count > HOPS_MAX { 0 } else { count }
    }

    #[inline]
    fn table(self, at: usize) -> TableId {
        let byte = if at < FIRST_HOPS {
            self.first.tables >> (8 * at)
        } else {
            self.more[ENTRY_WORDS + (at - FIRST_HOPS) / 8] >> (8 * ((at - FIRST_HOPS) % 8))
        };
        TableId(byte as u8)
    }

    #[inline]
    fn entry(self, at: usize) -> EntryId {
        match self.first.entries.get(at) {
            Some(entry) => *entry,
            None => EntryId((self.more[(at - FIRST_HOPS) / 2] >> (32 * ((at - FIRST_HOPS) % 2))) as u32),
        }
    }

    /// Returns the tables in order.
    #[inline]
    pub fn tables(self) -> impl Iterator<Item = TableId> + use<'a> {
        (0..self.count()).map(move |at| self.table(at))
    }

    /// Returns the entries in order.
    #[inline]
    pub fn entries(self) -> impl ExactSizeIterator<Item = EntryId> + use<'a> {
        (0..self.count()).map(move |at| self.entry(at))
    }

    /// Returns the listed hops in order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = PathHop> + use<'a> {
        (0..self.count()).map(move |at| PathHop { table: self.table(at), entry: self.entry(at) })
    }
}

/// Returns whether packets that run these programs, one in each table, can have a path record: their key must
/// determine which entries they hit. `None` is a table miss.
#[must_use]
pub fn is_recordable<'a>(
    programs: impl ExactSizeIterator<Item = Option<&'a Program>>,
    permitted: Permitted,
) -> bool {
    let last = programs.len().wrapping_sub(1);
    let (mut change, mut shift) = (HeaderChange::Nothing, Shift::Nothing);
    let fits = |(at, program): (usize, Option<&Program>)| match program {
        Some(program) if at == last => program.next.is_none(),
        Some(program) if program.shift > Shift::Nothing => {
            shift = shift.max(program.shift);
            program.next.is_some()
        }
        Some(program) => {
            change = change.max(program.change);
            program.next.is_some()
        }
        None => at == last,
    };
    if last >= HOPS_MAX || !programs.enumerate().all(fits) {
        return false;
    }
    // After bytes have been inserted or deleted, a field that an entry writes may be at any position of the
    // arriving packet. MAC addresses are at the start of the frame.
    let most = if shift == Shift::Resizes { HeaderChange::Macs } else { permitted.change };
    shift <= permitted.shift && change <= most.min(permitted.change)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(number: usize) -> PathHop {
        PathHop { table: TableId(200 - number as u8), entry: EntryId(u32::MAX - 7 * number as u32) }
    }

    #[test]
    fn a_path_is_known_unless_it_is_empty_or_too_long() {
        let mut hops = Hops::NONE;
        assert!(!hops.list().is_known());
        for round in 0..2 {
            for number in 0..HOPS_MAX {
                hops.push(hop(number + round));
                assert!(hops.list().is_known());
                let all: Vec<PathHop> = (0..=number).map(|number| hop(number + round)).collect();
                assert_eq!(hops.list().iter().collect::<Vec<_>>(), all);
                let entries: Vec<EntryId> = all.iter().map(|hop| hop.entry).collect();
                assert_eq!(hops.list().entries().collect::<Vec<_>>(), entries);
                assert!(hops.list().tables().eq(all.iter().map(|hop| hop.table)));
            }
            (0..300).for_each(|_| hops.push(hop(9)));
            assert!(!hops.list().is_known() && hops.list().iter().next().is_none());
            hops.clear();
            assert_eq!(hops.list().iter().count(), 0);
        }
    }

    #[test]
    fn paths_are_compared_whole() {
        for count in 1..=HOPS_MAX {
            let of = |changed: usize, change: fn(&mut PathHop)| {
                let mut hops = Hops::NONE;
                for number in 0..count {
                    let mut hop = hop(number);
                    if number == changed {
                        change(&mut hop);
                    }
                    hops.push(hop);
                }
                hops
            };
            let mut same = Hops::NONE;
            let whole = of(count, |_| {});
            same.set(whole.list());
            assert!(same.list().is_same(whole.list()) && same.take().list().is_same(whole.list()));
            assert_eq!(same.list().iter().count(), 0);
            for at in [0, count / 2, count - 1] {
                let [table, entry] = [of(at, |hop| hop.table.0 += 1), of(at, |hop| hop.entry.0 -= 1)];
                assert!(
                    !whole.list().has_tables_of(table.list()) && whole.list().has_tables_of(entry.list())
                );
                assert!(!whole.list().is_same(table.list()) && !whole.list().is_same(entry.list()));
            }
        }
    }
}
