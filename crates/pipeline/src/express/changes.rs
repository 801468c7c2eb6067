// SPDX-License-Identifier: Apache-2.0
//! Changes of entries, against which path records are verified. Path records are not touched when rules
//! change. At its next hit, a record is compared with the changes since its version.
//!
//! The control side sends the changes of an operation, with their rules in the layout of each key plan in use
//! ([`PathChanges`]). The worker keeps the last [`REMEMBERED`] changes ([`RecentChanges`]).

use super::path::RecordedPath;
use crate::context::BurstContext;
use flow::operation::MAC_TABLE;
use flow::{EntryId, FlowEntry, TableId};
use keys::HOPS_MAX;
use keys::{ExpressKey, ExpressPlan, PlanVersion, Rewritten, RuleRow};

/// Number of changes that a worker remembers. A record must be renewed if more changes were made since its
/// version.
pub(super) const REMEMBERED: usize = 64;

/// Effect of a change on the paths of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangeKind {
    /// Packets that match the entry may hit it.
    Added,
    /// The entry no longer exists, or packets that hit it may take another path.
    RemovedOrModified,
}

/// A change of an entry, without its rule.
#[derive(Clone, Copy, Debug)]
struct PathChange {
    kind: ChangeKind,
    table: TableId,
    priority: u16,
    id: EntryId,
}

impl PathChange {
    const NONE: Self =
        Self { kind: ChangeKind::RemovedOrModified, table: TableId(0), priority: 0, id: EntryId::NONE };
}

/// Rules of added entries in the layout of a plan's keys. Other changes have rows of zeros.
#[derive(Debug)]
struct PlanRows {
    plan: PlanVersion,
    row_words: usize,
    words: Vec<u64>,
}

/// Changes of entries that one operation makes, in order.
#[derive(Debug)]
pub struct PathChanges {
    changes: Vec<PathChange>,
    rows: Vec<PlanRows>,
    /// Whether there are more changes than workers remember.
    is_overflown: bool,
}

impl PathChanges {
    /// Starts a list of changes. `plans` are the plans of the records in use.
    #[must_use]
    pub fn new(plans: &[&ExpressPlan]) -> Self {
        let rows_of = |plan: &&ExpressPlan| {
            let row_words = plan.row_words()?;
            Some(PlanRows { plan: plan.version(), row_words, words: Vec::new() })
        };
        let rows = plans.iter().filter_map(rows_of).collect();
        Self { changes: Vec::new(), rows, is_overflown: false }
    }

    /// Appends an added entry.
    pub fn add(&mut self, entry: &FlowEntry, plans: &[&ExpressPlan]) {
        // Packets reach an indexed entry only by its index, whatever its priority is. With priority 0, the
        // change concerns only paths with a miss in this table.
        let priority = if entry.matching.index().is_some() { 0 } else { entry.priority };
        let change = PathChange { kind: ChangeKind::Added, table: entry.table, priority, id: entry.id };
        if self.push(change) {
            for rows in &mut self.rows {
                let plan = plans.iter().find(|plan| plan.version() == rows.plan);
                plan.iter().for_each(|plan| plan.append_row(&entry.matching, &mut rows.words));
            }
        }
    }

    /// Appends an entry that was removed, or whose instructions were modified.
    pub fn remove_or_modify(&mut self, id: EntryId) {
        if self.push(PathChange { id, ..PathChange::NONE }) {
            for rows in &mut self.rows {
                rows.words.resize(rows.words.len() + rows.row_words, 0);
            }
        }
    }

    /// Returns whether an entry is removed or modified.
    pub(crate) fn removes(&self) -> bool {
        self.is_overflown || self.changes.iter().any(|change| change.kind == ChangeKind::RemovedOrModified)
    }

    /// Returns whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Appends a change without its rows. Returns false if there are too many.
    fn push(&mut self, change: PathChange) -> bool {
        self.is_overflown |= self.changes.len() == REMEMBERED;
        if !self.is_overflown {
            self.changes.push(change);
        }
        !self.is_overflown
    }
}

/// The last changes of the rules, in the layout of the keys of one plan. Each change increases the version by
/// 1.
#[derive(Debug)]
pub(super) struct RecentChanges {
    plan: PlanVersion,
    version: u64,
    changes: [PathChange; REMEMBERED],
    rows: Box<[u64]>,
    row_words: usize,
}

impl RecentChanges {
    /// Creates an empty list for records of a plan. `key_words` is the length of their keys.
    pub fn new(plan: PlanVersion, key_words: usize) -> Self {
        let row_words = RuleRow::length(key_words);
        let rows = vec![0; REMEMBERED * row_words].into_boxed_slice();
        Self { plan, version: 1, changes: [PathChange::NONE; REMEMBERED], rows, row_words }
    }

    /// Returns the version of the rules.
    #[inline(always)]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Notes that anything may have changed. All records must be renewed.
    pub fn forget_all(&mut self) {
        self.version += REMEMBERED as u64 + 1;
    }

    /// Appends the changes of an operation.
    pub fn append(&mut self, all: &PathChanges) {
        let rows = all.rows.iter().find(|rows| rows.plan == self.plan && rows.row_words == self.row_words);
        let Some(rows) = rows.filter(|_| !all.is_overflown) else { return self.forget_all() };
        for (change, row) in all.changes.iter().zip(rows.words.chunks_exact(self.row_words)) {
            self.version += 1;
            let at = place_of(self.version);
            self.changes[at] = *change;
            self.rows[at * self.row_words..][..self.row_words].copy_from_slice(row);
        }
    }

    /// Returns whether packets with this key still take this path, which was right for version `of_version`.
    /// Returns false if that is not certain.
    pub fn uphold<E>(
        &self,
        context: &BurstContext<'_, E>,
        key: &ExpressKey,
        path: RecordedPath<'_>,
        of_version: u64,
    ) -> bool {
        let mut outdated = Outdated { context, key: key.words(), path, rewritten: None };
        self.version - of_version <= REMEMBERED as u64
            && !(of_version + 1..=self.version).any(|version| {
                let at = place_of(version);
                let row = RuleRow::of(&self.rows[at * self.row_words..][..self.row_words]);
                outdated.is_concerned(self.changes[at], row)
            })
    }
}

/// A record of an older version, which is compared with changes.
struct Outdated<'a, 'b, E> {
    context: &'a BurstContext<'b, E>,
    key: &'a [u64],
    path: RecordedPath<'a>,
    /// What the entries before each hop rewrite. Computed when it is first needed.
    rewritten: Option<[Rewritten; HOPS_MAX]>,
}

impl<E> Outdated<'_, '_, E> {
    /// Returns whether packets that hit the record may take another path because of a change. `row` is the
    /// rule of an added entry.
    #[inline]
    fn is_concerned(&mut self, change: PathChange, row: RuleRow<'_>) -> bool {
        let PathChange { kind, table, priority, id } = change;
        if kind == ChangeKind::RemovedOrModified {
            return self.path.depends_on(id);
        }
        if table == MAC_TABLE {
            return self.path.awaits_stations();
        }
        let Some(number) = self.path.hops.tables().position(|passed| passed == table) else {
            return false;
        };
        if !row.may_match(self.key, self.rewritten_before(number)) {
            return false;
        }
        // Any entry beats a miss. Among equal priorities, the entry added first is hit.
        let entry = self.path.hops.entries().nth(number).unwrap_or(EntryId::NONE);
        self.context.cells.get(entry).is_none_or(|cell| cell.priority() < priority)
    }

    /// Returns what the entries before a hop rewrite.
    fn rewritten_before(&mut self, number: usize) -> Rewritten {
        if number == 0 {
            return Rewritten::Nothing;
        }
        let (context, hops) = (self.context, self.path.hops);
        let rewritten = self.rewritten.get_or_insert_with(|| {
            let mut so_far = Rewritten::Nothing;
            let mut before = [Rewritten::Nothing; HOPS_MAX];
            for (before, entry) in before.iter_mut().zip(hops.entries()) {
                *before = so_far;
                so_far = so_far.max(rewritten_by(context, entry));
            }
            before
        });
        rewritten.get(number).copied().unwrap_or(Rewritten::Anything)
    }
}

/// Returns what an entry rewrites before the next table.
fn rewritten_by<E>(context: &BurstContext<'_, E>, entry: EntryId) -> Rewritten {
    match context.entry(entry) {
        Some((_, program)) if program.passage.is_some() && program.route.is_none() => Rewritten::Nothing,
        Some((_, program)) if program.passage.is_some() => Rewritten::MacsOrTtl,
        _ => Rewritten::Anything,
    }
}

/// Returns the place of the change that made a version.
#[inline(always)]
fn place_of(version: u64) -> usize {
    version as usize % REMEMBERED
}
