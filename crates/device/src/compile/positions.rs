// SPDX-License-Identifier: Apache-2.0
//! Places of a PPU's entries. An entry with a lower index has precedence. Rows are in the order of their
//! priorities; rows of equal priority are in an order only if a packet can match both (ADR 0052).
//!
//! A row whose place is not free moves other rows one step each, up to the next free place. If that chain is
//! long, the rows of a window are spread, as in a packed memory array: the smallest window whose density is
//! below a limit, which falls with the window's size. Rows that are added in the order of their priorities
//! get all free places before they are needed.

use std::ops::Range;

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

/// Maximum number of places of a chain after which no rows are spread.
const CHAIN_MAX: usize = 8;

/// Number of places of the smallest window that is spread. Each further window is twice as large.
const WINDOW_MIN: usize = 16;

/// Number of commands within which an addition spreads rows. A longer chain exceeds it.
const COMMANDS_MAX: usize = 64;

/// Number of commands that spread rows after a long chain.
const COMMANDS_MIN: usize = 32;

/// Minimum number of places by which spreading moves a row for later additions.
const SHIFT_MIN: usize = 3;

/// Number of additions beside each other after which further ones are expected there.
const RUN_MIN: usize = 6;

/// Number of free places for expected additions below which rows make room for more.
const GAP_MIN: usize = 32;

/// Side of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// Where rows are added. They often come in the order of their priorities, rising or falling.
#[derive(Clone, Debug, Default)]
struct Trend {
    /// Ranks of the two rows that were added last, the newest first.
    recent: [Option<Rank>; 2],
    /// Side of the last added row on which the next one is expected.
    side: Option<Side>,
    /// Number of additions for which the expectation did not change.
    run: usize,
}

impl Trend {
    /// Records an addition between the rows of two ranks. Returns the side on which the next row is expected.
    fn record(&mut self, before: Option<Rank>, after: Option<Rank>, new: Rank) -> Option<Side> {
        let age = |rank: Option<Rank>| rank.and_then(|_| self.recent.iter().position(|other| *other == rank));
        let (before, after) = (age(before), age(after));
        let side = match (before, after) {
            (Some(before), Some(after)) if before < after => Some(Side::Before),
            (Some(_), _) => Some(Side::After),
            (None, Some(_)) => Some(Side::Before),
            (None, None) => None,
        };
        let is_same = side.is_some() && side == self.side || before.is_some() && after.is_some();
        self.run = if is_same { self.run + 1 } else { 0 };
        self.side = side;
        self.recent = [Some(new), self.recent[0]];
        side
    }

    /// Returns the side on which many rows are expected.
    fn growth(&self) -> Option<Side> {
        self.side.filter(|_| self.run >= RUN_MIN)
    }
}

/// Rows of a PPU by index.
#[derive(Clone, Debug)]
pub struct Positions {
    rows: Vec<Option<TcamRow>>,
    free: usize,
    trend: Trend,
}

impl Positions {
    /// Returns an empty table.
    #[must_use]
    pub fn new(entries: u16) -> Self {
        Self { rows: vec![None; entries.into()], free: entries.into(), trend: Trend::default() }
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
        let rank_at = |index: Option<usize>| Some(self.rows.get(index?)?.as_ref()?.rank);
        let (before, after) = (rank_at(low.checked_sub(1)), rank_at(Some(high)));
        let side = self.trend.record(before, after, row.rank);
        let chain = match self.free_beside(low, high, side) {
            Some(index) => vec![index],
            None => {
                let (up, down) = (self.chain(low, high, true), self.chain(low, high, false));
                match (up, down) {
                    (Some(up), Some(down)) if up.len() < down.len() => up,
                    (up, down) => down.or(up)?,
                }
            }
        };
        self.free -= 1;
        if chain.len() > CHAIN_MAX
            && let Some(more) = self.insert_spread(row, low, chain.len())
        {
            commands.extend(more);
            return Some(commands);
        }
        // The last place of the chain is free. Each row on the way moves one step along the chain.
        for pair in (1..chain.len()).rev() {
            let (from, to) = (chain[pair - 1], chain[pair]);
            let moved = self.rows[from]?;
            self.rows[to] = Some(moved);
            commands.push(write(to, &moved));
        }
        self.rows[chain[0]] = Some(row);
        commands.push(write(chain[0], &row));
        if chain.len() > CHAIN_MAX || self.gap(chain[0]) < GAP_MIN {
            let limit = COMMANDS_MAX.saturating_sub(commands.len()).max(COMMANDS_MIN);
            commands.extend(self.make_room(chain[0], limit));
        }
        Some(commands)
    }

    /// Adds a row before the rows from index `low` on, and spreads the rows of a window. Returns `None` if
    /// that needs many commands, and more than the chain.
    fn insert_spread(&mut self, row: TcamRow, low: usize, chain: usize) -> Option<Vec<PpuCommand>> {
        let growth = self.trend.growth();
        let window = if growth.is_some() { 0..self.end() } else { self.window(low) };
        let old: Vec<usize> = window.clone().filter(|index| self.rows[*index].is_some()).collect();
        let at = old.partition_point(|index| *index < low);
        let gap_at = growth.map(|side| at + usize::from(side == Side::After));
        let mut new = spread(&window, old.len() + 1, gap_at);
        let place = new.remove(at);
        let moving = old.iter().zip(&new).filter(|(from, to)| from != to).count();
        if 2 * moving >= COMMANDS_MAX.max(chain) {
            return None;
        }
        let mut commands = self.shift(&old, &new, 1, usize::MAX);
        commands.pop_if(|command| *command == remove(place));
        self.rows[place] = Some(row);
        commands.push(write(place, &row));
        Some(commands)
    }

    /// Spreads rows for later additions. Expected ones will be beside the row at `index`.
    fn make_room(&mut self, index: usize, limit: usize) -> Vec<PpuCommand> {
        let growth = self.trend.growth();
        let old: Vec<usize> = (0..self.end()).filter(|index| self.rows[*index].is_some()).collect();
        let hot = index + usize::from(growth == Some(Side::After));
        let new = spread(&(0..self.end()), old.len(), growth.map(|_| old.partition_point(|at| *at < hot)));
        // Near expected additions rows move seldom, but far.
        let least = if growth.is_some() { SHIFT_MIN.max(self.free / 2) } else { SHIFT_MIN };
        self.shift(&old, &new, least, limit)
    }

    /// Returns the number of free places for expected additions beside the row at `index`.
    fn gap(&self, index: usize) -> usize {
        let is_free = |index: &usize| self.rows[*index].is_none();
        match self.trend.growth() {
            None => usize::MAX,
            Some(Side::Before) => (0..index).rev().take_while(is_free).count(),
            Some(Side::After) => (index + 1..self.rows.len()).take_while(is_free).count(),
        }
    }

    /// Returns the end of the places of rows that may move. The row of the table miss remains in the last
    /// place.
    fn end(&self) -> usize {
        let is_miss = self.rows.last().is_some_and(|row| row.is_some_and(|row| row.rank.class == 2));
        self.rows.len() - usize::from(is_miss)
    }

    /// Returns the smallest window around a place that has enough free places, beside that of a new row.
    fn window(&self, at: usize) -> Range<usize> {
        let end = self.end();
        let levels = (end / WINDOW_MIN).max(1).ilog2() as usize + 1;
        let windows = (1..levels).map(|level| {
            let size = WINDOW_MIN << (level - 1);
            let start = (at / size * size).min(end - size);
            (level, start..start + size)
        });
        let mut wide = windows.filter(|(level, window)| {
            let free = self.rows[window.clone()].iter().filter(|row| row.is_none()).count();
            free > 0 && (free - 1) * end * levels >= window.len() * self.free.min(end / 2) * level
        });
        wide.next().map_or(0..end, |(_, window)| window)
    }

    /// Moves rows from old to new places in the same order, if they then move by at least `least` places,
    /// until there are `limit` commands.
    fn shift(&mut self, old: &[usize], new: &[usize], least: usize, limit: usize) -> Vec<PpuCommand> {
        let mut commands: Vec<PpuCommand> = Vec::new();
        let mut places = old.to_vec();
        // Rows that move to later places begin with the last one, others with the first one.
        let later = (0..old.len()).rev().filter(|number| new[*number] > old[*number]);
        let earlier = (0..old.len()).filter(|number| new[*number] < old[*number]);
        for number in later.chain(earlier) {
            if limit - commands.len() < 2 {
                break;
            }
            let from = places[number];
            let to = if new[number] > from {
                places.get(number + 1).map_or(new[number], |next| new[number].min(next - 1))
            } else {
                number.checked_sub(1).map_or(new[number], |last| new[number].max(places[last] + 1))
            };
            if from.abs_diff(to) < least {
                continue;
            }
            let Some(moved) = self.rows[from].take() else { continue };
            self.rows[to] = Some(moved);
            places[number] = to;
            // A place that is written at once need not be left before.
            commands.pop_if(|command| *command == remove(to));
            commands.extend([write(to, &moved), remove(from)]);
        }
        commands
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
            commands.extend([write(place, &moved), remove(last)]);
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
        Some(remove(index))
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

    /// Returns the free place that is farthest from the side on which the next row is expected.
    fn free_beside(&self, low: usize, high: usize, side: Option<Side>) -> Option<usize> {
        let mut places = low..high;
        match side {
            None => self.free_between(low, high),
            Some(Side::Before) => places.rfind(|index| self.rows[*index].is_none()),
            Some(Side::After) => places.find(|index| self.rows[*index].is_none()),
        }
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

fn remove(index: usize) -> PpuCommand {
    PpuCommand::Remove { index: index as u16 }
}

/// Returns places for rows in a window, with equal distances. With a gap, all free places are before the row
/// of this number.
fn spread(window: &Range<usize>, rows: usize, gap_at: Option<usize>) -> Vec<usize> {
    let free = window.len() - rows;
    let place = |row: usize| match gap_at {
        None => (row * window.len() + window.len() / 2) / rows,
        Some(gap_at) => row + if row >= gap_at { free } else { 0 },
    };
    (0..rows).map(|row| window.start + place(row)).collect()
}
