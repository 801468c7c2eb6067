// SPDX-License-Identifier: Apache-2.0
//! Changes of entries. When rules change, path records are not touched. At its next hit, a record is compared
//! with the changes since its version.
//!
//! The control side sends the changes of an operation, with their rules in the layout of each key plan in use
//! ([`PathChanges`]). The worker keeps the last changes for each plan ([`RecentChanges`]).

use super::path::RecordedPath;
use crate::context::BurstContext;
use actions::{Cell, Cells};
use flow::operation::MAC_TABLE;
use flow::{EntryId, FlowEntry, TableId};
use keys::{
    ChangesSince, ExpressKey, ExpressPlan, HOPS_MAX, KindOfRules, PlanVersion, Rewritten, RuleChanges,
    RuleRow,
};

/// Maximum number of changes of one operation that a worker remembers, so that an operation is applied in
/// bounded time. After an operation with more changes, all records must be renewed.
const CHANGES_MAX: usize = 64;

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
    /// Whether there are more than [`CHANGES_MAX`] changes.
    is_overflown: bool,
    /// Whether an entry was added.
    adds: bool,
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
        Self { changes: Vec::new(), rows, is_overflown: false, adds: false }
    }

    /// Appends an added entry.
    pub fn add(&mut self, entry: &FlowEntry, plans: &[&ExpressPlan]) {
        self.adds = true;
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

    /// Returns whether an entry of a recorded path is removed or modified.
    pub(crate) fn removes_recorded(&self, cells: &Cells) -> bool {
        let removes = |change: &PathChange| {
            change.kind == ChangeKind::RemovedOrModified && is_recorded(change.id, cells)
        };
        self.is_overflown || self.changes.iter().any(removes)
    }

    /// Returns whether the list stays the same, whatever is appended.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.is_overflown && self.adds
    }

    /// Returns whether an entry was added.
    pub(crate) fn adds(&self) -> bool {
        self.adds
    }

    /// Returns whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Appends a change without its rows. Returns false if there are too many.
    fn push(&mut self, change: PathChange) -> bool {
        self.is_overflown |= self.changes.len() == CHANGES_MAX;
        if !self.is_overflown {
            self.changes.push(change);
        }
        !self.is_overflown
    }
}

/// The last changes of the rules, for records of one plan.
#[derive(Debug)]
pub(super) struct RecentChanges {
    plan: PlanVersion,
    row_words: usize,
    all: RuleChanges,
}

impl RecentChanges {
    /// Creates an empty list for records of a plan. `key_words` is the length of their keys.
    pub fn new(plan: PlanVersion, key_words: usize) -> Self {
        Self { plan, row_words: RuleRow::length(key_words), all: RuleChanges::new(key_words) }
    }

    /// Returns the version of the rules.
    #[inline(always)]
    pub fn version(&self) -> u64 {
        self.all.version()
    }

    /// Notes that anything may have changed. All records must be renewed.
    pub fn forget_all(&mut self) {
        self.all.forget_all();
    }

    /// Notes that other ports are at their limits of learned addresses. Records that await or lack a learned
    /// source are compared again.
    pub fn note_full_ports(&mut self) {
        self.all.add_station();
    }

    /// Appends the changes of an operation, except removals of entries on which no record depends.
    pub fn append(&mut self, changes: &PathChanges, cells: &Cells) {
        let rows =
            changes.rows.iter().find(|rows| rows.plan == self.plan && rows.row_words == self.row_words);
        let Some(rows) = rows.filter(|_| !changes.is_overflown) else { return self.all.forget_all() };
        for (change, row) in changes.changes.iter().zip(rows.words.chunks_exact(self.row_words)) {
            match change.kind {
                ChangeKind::RemovedOrModified if is_recorded(change.id, cells) => {
                    self.all.remove_or_modify(change.id);
                }
                ChangeKind::RemovedOrModified => {}
                ChangeKind::Added if change.table == MAC_TABLE => self.all.add_station(),
                ChangeKind::Added => self.all.add(change.table, change.priority, RuleRow::of(row)),
            }
        }
    }

    /// Returns whether packets with this key may hit a rule that was added since version `of_version`, if no
    /// entry of an earlier table changes them.
    pub fn may_concern(&self, key: &ExpressKey, of_version: u64) -> bool {
        let Some(mut changes) = self.all.since(of_version) else { return true };
        changes.kinds().any(|rules| changes.add_match(rules, key.words(), Rewritten::Nothing, |_| true))
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
        let Some(changes) = self.all.since(of_version) else { return false };
        !Outdated { context, key: key.words(), path, changes, rewritten: None }.is_concerned()
    }
}

/// A record of an older version, which is compared with changes.
struct Outdated<'a, 'b, E> {
    context: &'a BurstContext<'b, E>,
    key: &'a [u64],
    path: RecordedPath<'a>,
    changes: ChangesSince<'a>,
    /// What the first entries of the path rewrite, by the number of these entries. Computed at the first use.
    rewritten: Option<[Rewritten; HOPS_MAX]>,
}

impl<E> Outdated<'_, '_, E> {
    /// Returns whether packets that hit the record may take another path because of a change.
    fn is_concerned(&mut self) -> bool {
        self.changes.remove_one_of(self.path.entries())
            || self.path.awaits_stations() && self.changes.have_stations()
            || self.changes.kinds().any(|rules| self.is_beaten_by(rules))
    }

    /// Returns whether packets that hit the record may hit an added rule of this kind.
    #[inline]
    fn is_beaten_by(&mut self, rules: KindOfRules) -> bool {
        let Some(number) = self.path.hops.tables().position(|passed| passed == rules.table) else {
            return false;
        };
        let rewritten = self.rewritten_before(number);
        // Any added rule has precedence over a table miss. Among entries of equal priority, packets hit the
        // entry that was added first.
        let entry = self.path.hops.entries().nth(number).unwrap_or(EntryId::NONE);
        let cells = self.context.cells;
        let beats = |priority| cells.get(entry).is_none_or(|cell| cell.priority() < priority);
        self.changes.add_match(rules, self.key, rewritten, beats)
    }

    /// Returns what the first `number` entries of the path rewrite.
    fn rewritten_before(&mut self, number: usize) -> Rewritten {
        if number == 0 {
            return Rewritten::Nothing;
        }
        let (context, hops) = (self.context, self.path.hops);
        let rewritten = self.rewritten.get_or_insert_with(|| {
            let mut before = [Rewritten::Nothing; HOPS_MAX];
            // What the last entry rewrites does not matter, so its program is not read.
            let last = hops.entries().len().saturating_sub(1);
            for (at, entry) in hops.entries().take(last).enumerate() {
                before[at + 1] = before[at].max(rewritten_by(context, entry));
            }
            before
        });
        rewritten.get(number).copied().unwrap_or(Rewritten::Anything)
    }
}

/// Returns whether a path with this entry was recorded.
fn is_recorded(id: EntryId, cells: &Cells) -> bool {
    cells.get(id).is_some_and(Cell::is_recorded)
}

/// Returns what an entry rewrites before the next table.
fn rewritten_by<E>(context: &BurstContext<'_, E>, entry: EntryId) -> Rewritten {
    match context.entry(entry) {
        Some((_, program)) if program.passage.is_some() && program.route.is_none() => Rewritten::Nothing,
        Some((_, program)) if program.passage.is_some() => Rewritten::MacsOrTtl,
        _ => Rewritten::Anything,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_list_is_full_when_it_overflows_and_has_an_addition() {
        let flow = flow::FlowMod { table: Some(TableId(0)), ..flow::FlowMod::default() };
        let entry = flow.into_entry(Arc::new).unwrap();
        let mut removals = PathChanges::new(&[]);
        (0..=CHANGES_MAX as u32).for_each(|id| removals.remove_or_modify(EntryId(id)));
        // The list must still learn of an addition, which releases packets that wait for the controller.
        assert!(removals.is_overflown && !removals.is_full() && !removals.adds());
        removals.add(&entry, &[]);
        assert!(removals.is_full() && removals.adds());
        let mut additions = PathChanges::new(&[]);
        (0..CHANGES_MAX).for_each(|_| additions.add(&entry, &[]));
        assert!(additions.adds() && !additions.is_full());
        additions.remove_or_modify(EntryId(1));
        assert!(additions.is_full());
    }
}
