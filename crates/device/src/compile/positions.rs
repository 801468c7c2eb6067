// SPDX-License-Identifier: Apache-2.0
//! Places of a PPU's entries. An entry with a lower index has precedence. Rows are in the order of their
//! priorities; rows of equal priority are in an order only if a packet can match both (ADR 0052).

use flow::EntryId;

use crate::action::ActionWord;
use crate::command::PpuCommand;
use crate::key::{KEY_BYTES, TernaryKey};

/// Precedence of a row. A row with a smaller rank precedes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// 0 for rows of program tags, 1 for entries, 2 for the table miss.
    pub class: u8,
    /// Complement of the entry's priority.
    pub priority: u16,
    /// Order of addition among entries of equal priority.
    pub sequence: u64,
    /// Complement of the number of modifications of the entry.
    pub version: u32,
    /// Order of the rows of one entry.
    pub part: u32,
}

/// A row of a PPU's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcamRow {
    /// Precedence.
    pub rank: Rank,
    /// Entry to which the row belongs, if any.
    pub owner: Option<EntryId>,
    /// Value and mask of the key.
    pub key: TernaryKey,
    /// What the row does.
    pub action: ActionWord,
}

/// Returns whether a packet can match both keys.
fn overlap(a: &TernaryKey, b: &TernaryKey) -> bool {
    // One comparison per byte would take most of the time of a change.
    let differ = |at: usize| (a.value[at] ^ b.value[at]) & a.mask[at] & b.mask[at];
    let [(a_value, a_mask), (b_value, b_mask)] =
        [a, b].map(|key| (first_bytes(&key.value), first_bytes(&key.mask)));
    (a_value ^ b_value) & a_mask & b_mask == 0 && (FIRST_BYTES..KEY_BYTES).all(|at| differ(at) == 0)
}

/// Bytes of a key that are compared at once.
const FIRST_BYTES: usize = 16;

fn first_bytes(bytes: &[u8; KEY_BYTES]) -> u128 {
    bytes.first_chunk::<FIRST_BYTES>().map_or(0, |bytes| u128::from_ne_bytes(*bytes))
}

/// Returns whether the places of two rows must be in the order of their ranks.
fn is_ordered(a: &TcamRow, b: &TcamRow) -> bool {
    (a.rank.class, a.rank.priority) != (b.rank.class, b.rank.priority) || overlap(&a.key, &b.key)
}

/// Maximum number of rows that make room for a row between others of equal priority.
const AWAY_MAX: usize = 64;

/// Rows of a PPU by index.
#[derive(Clone, Debug)]
pub struct Positions {
    rows: Vec<Option<TcamRow>>,
    free: usize,
}

impl Positions {
    /// Returns an empty table.
    #[must_use]
    pub fn new(entries: u16) -> Self {
        Self { rows: vec![None; entries.into()], free: entries.into() }
    }

    /// Returns the number of free places.
    #[must_use]
    pub fn free(&self) -> usize {
        self.free
    }

    /// Returns the rows with their indices.
    pub fn rows(&self) -> impl Iterator<Item = (u16, &TcamRow)> {
        self.rows.iter().enumerate().filter_map(|(index, row)| Some((index as u16, row.as_ref()?)))
    }

    /// Adds a row. Returns the commands; after each of them, every packet hits the row that it hit before,
    /// or the new one. Returns `None` if the table is full.
    pub fn insert(&mut self, row: TcamRow) -> Option<Vec<PpuCommand>> {
        let mut commands = Vec::new();
        let (mut low, mut high) = self.bounds(&row);
        if low > high {
            // Rows of equal priority that do not overlap each other stand in the wrong order for this one.
            let mut trial = self.clone();
            commands = trial.make_way(&row)?;
            *self = trial;
            (low, high) = self.bounds(&row);
        }
        let chain = match self.free_between(low, high) {
            Some(index) => vec![index],
            None => {
                let (up, down) = (self.chain(low, high, true), self.chain(low, high, false));
                match (up, down) {
                    (Some(up), Some(down)) if up.len() < down.len() => up,
                    (up, down) => down.or(up)?,
                }
            }
        };
        // The last place of the chain is free. Each row on the way moves one step along the chain.
        for pair in (1..chain.len()).rev() {
            let (from, to) = (chain[pair - 1], chain[pair]);
            let moved = self.rows[from]?;
            self.rows[to] = Some(moved);
            commands.push(write(to, &moved));
        }
        self.rows[chain[0]] = Some(row);
        commands.push(write(chain[0], &row));
        self.free -= 1;
        Some(commands)
    }

    /// Moves rows that follow `row` behind those that precede it.
    fn make_way(&mut self, row: &TcamRow) -> Option<Vec<PpuCommand>> {
        let mut commands = Vec::new();
        for _ in 0..AWAY_MAX {
            let (low, high) = self.bounds(row);
            if low <= high {
                return Some(commands);
            }
            // Of the rows that must move, the one that no other of them follows.
            let mut away: Vec<usize> = vec![high];
            let mut last = high;
            while let Some(at) = away.pop() {
                let follower = |index: &usize| {
                    let (one, other) = (self.rows[at].as_ref(), self.rows[*index].as_ref());
                    one.zip(other).is_some_and(|(one, other)| one.rank < other.rank && is_ordered(one, other))
                };
                if let Some(next) = (at + 1..low).find(follower) {
                    last = next;
                    away.push(next);
                }
            }
            let moved = self.rows[last]?;
            let (_, end) = self.bounds(&moved);
            let place = self.free_between(low, end)?;
            self.rows[place] = Some(moved);
            self.rows[last] = None;
            commands.extend([write(place, &moved), PpuCommand::Remove { index: last as u16 }]);
        }
        None
    }

    /// Puts a row that all others precede into the last place, which is free.
    pub fn insert_last(&mut self, row: TcamRow) -> Option<PpuCommand> {
        let index = self.rows.len().checked_sub(1)?;
        self.rows[index] = Some(row);
        self.free -= 1;
        Some(write(index, &row))
    }

    /// Removes the row of a rank.
    pub fn remove(&mut self, rank: Rank) -> Option<PpuCommand> {
        let index = self.index(rank)?;
        self.rows[index] = None;
        self.free += 1;
        Some(PpuCommand::Remove { index: index as u16 })
    }

    /// Replaces the action of the row of a rank.
    pub fn act(&mut self, rank: Rank, action: ActionWord) -> Option<PpuCommand> {
        let index = self.index(rank)?;
        let row = self.rows[index].as_mut()?;
        row.action = action;
        Some(PpuCommand::Act { index: index as u16, action })
    }

    /// Returns the row at an index.
    #[must_use]
    pub fn row(&self, index: u16) -> Option<&TcamRow> {
        self.rows.get(usize::from(index))?.as_ref()
    }

    /// Returns the index of the row of a rank.
    #[must_use]
    pub fn index(&self, rank: Rank) -> Option<usize> {
        self.rows.iter().position(|row| row.is_some_and(|row| row.rank == rank))
    }

    /// Returns the last index of rows that must precede, plus 1, and the first index of those that must
    /// follow.
    fn bounds(&self, new: &TcamRow) -> (usize, usize) {
        let (mut low, mut high) = (0, self.rows.len());
        for (index, row) in self.rows.iter().enumerate() {
            let Some(row) = row.filter(|row| is_ordered(row, new)) else { continue };
            if row.rank < new.rank {
                low = index + 1;
            } else if row.rank > new.rank {
                high = high.min(index);
            }
        }
        (low, high)
    }

    /// Returns the first of [`Self::bounds`] of a row that is at this index. Its nearest rows decide mostly.
    fn low(&self, index: usize, row: &TcamRow) -> usize {
        let precedes = |other: &TcamRow| other.rank < row.rank && is_ordered(other, row);
        let last = (0..index).rev().find(|at| self.rows[*at].as_ref().is_some_and(precedes));
        last.map_or(0, |last| last + 1)
    }

    /// Returns the second of [`Self::bounds`] of a row that is at this index.
    fn high(&self, index: usize, row: &TcamRow) -> usize {
        let follows = |other: &TcamRow| other.rank > row.rank && is_ordered(other, row);
        let first = (index + 1..self.rows.len()).find(|at| self.rows[*at].as_ref().is_some_and(follows));
        first.unwrap_or(self.rows.len())
    }

    /// Returns the free place that is nearest to the middle.
    fn free_between(&self, low: usize, high: usize) -> Option<usize> {
        let middle = (low + high) / 2;
        let distances = 0..=high.saturating_sub(low) / 2;
        let mut indices =
            distances.flat_map(|distance| [middle.checked_sub(distance), Some(middle + distance)]);
        indices.find_map(|index| {
            index.filter(|index| (low..high).contains(index) && self.rows[*index].is_none())
        })
    }

    /// Returns places, each of whose rows can move to the next one. The last place is free.
    fn chain(&self, low: usize, high: usize, up: bool) -> Option<Vec<usize>> {
        let mut chain = Vec::new();
        let (mut low, mut high) = (low, high);
        loop {
            let next =
                if up { low.checked_sub(1)? } else { Some(high).filter(|at| *at < self.rows.len())? };
            chain.push(next);
            let row = self.rows[next]?;
            (low, high) = if up { (self.low(next, &row), next) } else { (next + 1, self.high(next, &row)) };
            if let Some(free) = self.free_between(low, high) {
                chain.push(free);
                return Some(chain);
            }
        }
    }
}

fn write(index: usize, row: &TcamRow) -> PpuCommand {
    PpuCommand::Write { index: index as u16, key: row.key, action: row.action }
}
