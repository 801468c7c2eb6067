// SPDX-License-Identifier: Apache-2.0
//! The last changes of entries, in the layout of the keys of one plan. They show whether packets with a key
//! may take another path than at an earlier version of the rules.
//!
//! Added rules of one table that examine the same bits are of one *kind*. The changes are indexed by hash. An
//! added rule is hashed by its kind and value, and a removed or modified entry by its ID. The index has the
//! version of the last change with each hash. Each change has the version of the previous change with the
//! same hash. A comparison with all changes since a version takes one access for each entry of a path and for
//! each kind.

use crate::row::{Rewritten, RuleRow};
use flow::{EntryId, TableId};

/// Number of changes that are remembered.
const REMEMBERED: usize = 4_096;

/// Number of hashes in the index.
const BUCKETS: usize = 4_096;

/// Maximum number of kinds of added rules. A further kind replaces the one whose last rule is the oldest. All
/// changes up to that rule are then forgotten.
const KINDS: usize = 32;

/// Maximum number of changes that are compared. With more, the path counts as changed.
const COMPARED_MAX: u32 = 64;

/// Kind of a change that adds no rule.
const NO_KIND: u8 = u8::MAX;

const _: () = assert!(REMEMBERED.is_power_of_two() && BUCKETS.is_power_of_two() && KINDS < NO_KIND as usize);

/// A change, with the low 32 bits of versions.
#[derive(Clone, Copy, Debug)]
struct Change {
    /// The removed or modified entry, or [`EntryId::NONE`] for an added rule.
    id: EntryId,
    /// Version of the previous change with the same hash.
    same_hash: u32,
    /// Version of the previous change of the same kind.
    same_kind: u32,
    priority: u16,
    kind: u8,
}

impl Change {
    const NONE: Self = Self { id: EntryId::NONE, same_hash: 0, same_kind: 0, priority: 0, kind: NO_KIND };
}

/// Added rules of one table that examine the same bits.
#[derive(Clone, Copy, Debug)]
struct Kind {
    table: TableId,
    /// Whether packets match these rules only after entries have rewritten arbitrary bits.
    is_never: bool,
    /// Words of a key with examined bits: the first index, and the index after the last.
    words: (u8, u8),
    /// Version of the change that added the last rule of this kind.
    last: u64,
}

/// A kind of added rules: its number, and the table of its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindOfRules {
    number: u8,
    /// Table of the rules.
    pub table: TableId,
}

/// The last changes of the rules, in the layout of the keys of one plan. Each change increases the version
/// by 1. Only the creation allocates.
#[derive(Debug)]
pub struct RuleChanges {
    version: u64,
    /// Changes up to this version are forgotten.
    forgotten: u64,
    /// Version of the last removal or modification of an entry.
    last_removal: u64,
    /// Version of the last addition of a learned MAC address.
    last_station: u64,
    /// A ring of the last changes, by version.
    changes: Box<[Change]>,
    /// A ring of the values of added rules, by version.
    values: Box<[u64]>,
    /// For each hash, the low 32 bits of the version of the last change with this hash.
    last: Box<[u32]>,
    kinds: Vec<Kind>,
    /// For each kind, the mask, then the mask that applies after entries have rewritten MAC addresses or the
    /// TTL.
    masks: Box<[u64]>,
    key_words: usize,
}

impl RuleChanges {
    /// Creates an empty list for keys of `key_words` words.
    #[must_use]
    pub fn new(key_words: usize) -> Self {
        Self {
            version: 1,
            forgotten: 0,
            last_removal: 0,
            last_station: 0,
            changes: vec![Change::NONE; REMEMBERED].into_boxed_slice(),
            values: vec![0; REMEMBERED * key_words].into_boxed_slice(),
            last: vec![0; BUCKETS].into_boxed_slice(),
            kinds: Vec::with_capacity(KINDS),
            masks: vec![0; KINDS * 2 * key_words].into_boxed_slice(),
            key_words,
        }
    }

    /// Returns the version of the rules.
    #[must_use]
    #[inline(always)]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Notes that anything may have changed.
    pub fn forget_all(&mut self) {
        self.version += 1;
        self.forgotten = self.version;
    }

    /// Notes that an entry was removed or modified.
    pub fn remove_or_modify(&mut self, id: EntryId) {
        self.version += 1;
        self.last_removal = self.version;
        self.put(bucket_of_entry(id), Change { id, ..Change::NONE });
    }

    /// Notes that a MAC address was learned, or that other ports are at their limits of learned addresses.
    pub fn add_station(&mut self) {
        self.version += 1;
        self.last_station = self.version;
    }

    /// Notes that a rule was added to a table. `row` must have the layout of the keys.
    pub fn add(&mut self, table: TableId, priority: u16, row: RuleRow<'_>) {
        debug_assert_eq!(row.value().len(), self.key_words, "rows are as long as keys");
        self.version += 1;
        let number = self.kind(table, row);
        let kind = &mut self.kinds[number];
        let same_kind = std::mem::replace(&mut kind.last, self.version) as u32;
        let at = place_of(self.version as u32) * self.key_words;
        self.values[at..at + self.key_words].copy_from_slice(row.value());
        let bucket = self.bucket(number, row.value());
        let change = Change { same_kind, priority, kind: number as u8, ..Change::NONE };
        self.put(bucket, change);
    }

    /// Returns the changes since a version, or `None` if some of them are forgotten.
    #[must_use]
    #[inline]
    pub fn since(&self, version: u64) -> Option<ChangesSince<'_>> {
        let reach = self.version - version;
        let is_known = reach <= REMEMBERED as u64 && version >= self.forgotten;
        is_known.then_some(ChangesSince { changes: self, version, left: COMPARED_MAX })
    }

    /// Stores the change that made the current version.
    fn put(&mut self, bucket: usize, change: Change) {
        let same_hash = std::mem::replace(&mut self.last[bucket], self.version as u32);
        self.changes[place_of(self.version as u32)] = Change { same_hash, ..change };
    }

    /// Returns the number of a rule's kind. A new kind gets a free number, or replaces the oldest kind.
    fn kind(&mut self, table: TableId, row: RuleRow<'_>) -> usize {
        let is_never = row.is_never();
        let is_same = |(kind, masks): &(&Kind, &[u64])| {
            kind.table == table && kind.is_never == is_never && *masks == row.masks()
        };
        let known = self.kinds.iter().zip(self.masks.chunks_exact(2 * self.key_words));
        if let Some(number) = known.clone().position(|known| is_same(&known)) {
            return number;
        }
        let mask = row.masks().split_at(self.key_words).0;
        let first = mask.iter().position(|word| *word != 0).unwrap_or_default();
        let end = mask.iter().rposition(|word| *word != 0).map_or(first, |last| last + 1);
        let kind = Kind { table, is_never, words: (first as u8, end as u8), last: self.forgotten };
        let number = if self.kinds.len() < KINDS {
            self.kinds.push(kind);
            self.kinds.len() - 1
        } else {
            let oldest = (0..KINDS).min_by_key(|number| self.kinds[*number].last).unwrap_or_default();
            self.forgotten = self.forgotten.max(self.kinds[oldest].last);
            self.kinds[oldest] = kind;
            oldest
        };
        self.masks[number * 2 * self.key_words..][..2 * self.key_words].copy_from_slice(row.masks());
        number
    }

    /// Hashes the number of a kind, and the bits of `words` that its rules examine, to an index in `last`.
    #[inline]
    fn bucket(&self, number: usize, words: &[u64]) -> usize {
        let (first, end) = self.kinds[number].words;
        let range = usize::from(first)..usize::from(end);
        let masks = &self.masks[number * 2 * self.key_words..][range.clone()];
        let masked = words[range].iter().zip(masks).map(|(word, mask)| word & mask);
        masked.fold(mixed(number as u64), |hash, word| mixed(hash ^ word)) as usize % BUCKETS
    }
}

/// The changes since a version.
#[derive(Debug)]
pub struct ChangesSince<'a> {
    changes: &'a RuleChanges,
    version: u64,
    /// Number of changes that may still be compared.
    left: u32,
}

impl<'a> ChangesSince<'a> {
    /// Returns whether MAC addresses were learned, or other ports are at their limits of learned addresses.
    #[inline]
    pub fn have_stations(&self) -> bool {
        self.changes.last_station > self.version
    }

    /// Returns whether one of these entries may have been removed or modified.
    #[inline]
    pub fn remove_one_of(&mut self, entries: impl Iterator<Item = EntryId>) -> bool {
        if self.changes.last_removal <= self.version {
            return false;
        }
        for id in entries {
            let mut at = self.changes.last[bucket_of_entry(id)];
            while let Some(change) = self.next(at) {
                if change.kind == NO_KIND && change.id == id {
                    return true;
                }
                at = change.same_hash;
            }
        }
        self.is_undecided()
    }

    /// Returns the kinds of the added rules.
    #[inline]
    pub fn kinds(&self) -> impl Iterator<Item = KindOfRules> + use<'a> {
        let (kinds, version) = (self.changes.kinds.iter().enumerate(), self.version);
        let recent = kinds.filter(move |(_, kind)| kind.last > version);
        recent.map(|(number, kind)| KindOfRules { number: number as u8, table: kind.table })
    }

    /// Returns whether packets with this key may match an added rule of a kind, after earlier entries have
    /// rewritten the parts in `rewritten`. Ignores rules for whose priority `beats` returns false.
    #[inline]
    pub fn add_match(
        &mut self,
        rules: KindOfRules,
        key: &[u64],
        rewritten: Rewritten,
        beats: impl Fn(u16) -> bool,
    ) -> bool {
        let all = self.changes;
        let (number, words) = (usize::from(rules.number), all.key_words);
        let kind = &all.kinds[number];
        if kind.is_never && rewritten != Rewritten::Anything {
            return false;
        }
        let (mask, after_rewrites) = all.masks[number * 2 * words..][..2 * words].split_at(words);
        let by_hash =
            rewritten == Rewritten::Nothing || rewritten == Rewritten::MacsOrTtl && mask == after_rewrites;
        let mut at = if by_hash { all.last[all.bucket(number, key)] } else { kind.last as u32 };
        while let Some(change) = self.next(at) {
            let value = &all.values[place_of(at) * words..][..words];
            let mask = if rewritten == Rewritten::Nothing { mask } else { after_rewrites };
            let is_match = rewritten == Rewritten::Anything
                || key.iter().zip(value).zip(mask).fold(0, |all, ((a, b), mask)| all | (a ^ b) & mask) == 0;
            if change.kind == rules.number && is_match && beats(change.priority) {
                return true;
            }
            at = if by_hash { change.same_hash } else { change.same_kind };
        }
        self.is_undecided()
    }

    /// Returns whether too many changes would have to be compared.
    #[inline]
    fn is_undecided(&self) -> bool {
        self.left == 0
    }

    /// Returns the change that made a version, or `None` if the change is too old or no further change may be
    /// compared.
    ///
    /// The low 32 bits of versions repeat after 2^32 changes, so an old version may be taken for a recent
    /// one. Comparing the wrong change is harmless.
    #[inline]
    fn next(&mut self, version: u32) -> Option<&'a Change> {
        let changes = self.changes;
        let age = (changes.version as u32).wrapping_sub(version);
        if u64::from(age) >= changes.version - self.version || self.left == 0 {
            return None;
        }
        self.left -= 1;
        Some(&changes.changes[place_of(version)])
    }
}

/// Returns the place of the change that made a version.
#[inline(always)]
fn place_of(version: u32) -> usize {
    version as usize % REMEMBERED
}

#[inline(always)]
fn bucket_of_entry(id: EntryId) -> usize {
    mixed(u64::from(id.0) | 1 << 63) as usize % BUCKETS
}

/// Mixes the bits of a word.
#[inline(always)]
fn mixed(word: u64) -> u64 {
    let product = word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

#[cfg(test)]
mod tests;
