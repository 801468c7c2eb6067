// SPDX-License-Identifier: Apache-2.0
//! Control side: all rules of a table, the engine chosen for these rules, and the updates for workers that
//! result from each change.
//!
//! Small changes are applied to deltas and tombstones. Many changes at once become one swap of the whole
//! view. A new base is needed only if the delta is full, or if a rule does not suit the base.

use crate::TableUpdate;
use crate::choice::choose;
use crate::compile::{Compiled, HEAD_MIN, Job, Maker, Row};
use crate::id_map::IdMap;
use crate::shadow_view::{Rule, ShadowView};
use crate::shape::Shape;
use engines::KeyPlan;
use engines::index::Index;
use engines::parallel::{PARALLEL_MIN, RunInParallel};
use engines::plan::KeyPlanError;
use flow::{EntryId, Field, FlowEntry};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of changes in one operation that workers apply one by one. With more changes, workers get a
/// new view by a swap. 64 additions take a worker 3 to 9 us in a large table.
const SINGLY: usize = 64;

/// A new base is compiled at once if one operation changes more than this fraction (1/16) of the base's
/// rules. At most 16 rules are then compiled per change.
const COMPILED_PART: usize = 16;

/// Minimum number of deleted rules for which a base is recompiled. In large bases, it is half of the rules.
const TOMBSTONES_MIN: usize = 1024;

/// Fraction of a base (1/128) that must be added or deleted before it is compiled in the background. It is
/// small, so that the next base is ready before the delta is full.
const BACKGROUND_PART: usize = 128;

/// Number of queued changes that are replayed into the new base per rule change. It is above 1, so that the
/// queue becomes empty, and small, so that no change takes long.
const CATCH_UP: usize = 3;

/// Number of changes of a table for which its keys keep a field that no rule examines. Adding a missing field
/// compiles all rules, so rules that come and go should not change the fields.
const KEPT_CHANGES: u64 = 16_384;

/// The next base, compiled in the background.
#[derive(Debug)]
struct Next {
    /// Rules that are in the next base but not in the current base.
    added: Arc<Vec<Row>>,
    /// Sequence number of the last rule of the next base.
    sequence: u64,
    /// Entry IDs of rules of the next base that were removed after its compilation began.
    removed: Vec<EntryId>,
    /// The compiled base while it catches up with later changes, or `None` until it is compiled.
    shadow: Option<ShadowView>,
}

pub use crate::shadow_view::Retired;

/// A change of the rules.
#[derive(Clone, Debug)]
pub enum RuleChange {
    /// Adds a rule.
    Add(Arc<FlowEntry>),
    /// Removes the rule of this entry.
    Remove(EntryId),
}

impl RuleChange {
    /// Returns the entry of an added rule.
    fn added(&self) -> Option<&Arc<FlowEntry>> {
        match self {
            Self::Add(entry) => Some(entry),
            Self::Remove(_) => None,
        }
    }
}

/// Returns whether there are only additions, and so many that a second thread is worthwhile.
fn has_many_additions_only(changes: &[RuleChange]) -> bool {
    changes.len() >= PARALLEL_MIN && changes.iter().all(|change| change.added().is_some())
}

/// Rules of a table on the control side.
#[derive(Debug, Default)]
pub struct RuleTable {
    rules: IdMap<Rule>,
    shape: Shape,
    /// State of the workers' views after all updates.
    now: ShadowView,
    /// The next base, while it is compiled.
    next: Option<Next>,
    /// Rules added since the last base was requested, in order. `None` stands for removed rules and entries
    /// of linear tables.
    log: Vec<Option<Row>>,
    /// Sequence number of the last rule before `log`.
    log_from: u64,
    /// Sequence number of the last rule.
    sequence: u64,
    /// Number of changes so far.
    changes: u64,
    /// Fields of removed rules that were the last ones with their masks, and the number of changes before the
    /// removal.
    removed: BTreeMap<Field, u64>,
    compiled: usize,
    compiled_in_background: usize,
    retired: Vec<Retired>,
    /// Function that creates engines instead of crate `engines`.
    maker: Option<Maker>,
    /// Runs parts of large changes on another thread, if that is permitted.
    run_in_parallel: Option<RunInParallel>,
}

impl RuleTable {
    /// Installs a function that may create the engine of each later base. Tables of one mask always use
    /// `exact`.
    pub fn set_maker(&mut self, maker: Maker) {
        self.maker = Some(maker);
    }

    /// Sets whether parts of large changes may run on another thread.
    pub fn set_run_in_parallel(&mut self, run_in_parallel: Option<RunInParallel>) {
        self.run_in_parallel = run_in_parallel;
    }

    /// Applies the changes that one operation makes to this table. Returns the updates for each of `workers`
    /// workers.
    ///
    /// `in_all` is the number of changes that the operation makes to all tables.
    ///
    /// # Errors
    /// Returns an error if the rules do not fit one key. The changes are applied nevertheless, so callers
    /// must check beforehand.
    pub fn change(
        &mut self,
        changes: &[RuleChange],
        in_all: usize,
        workers: usize,
    ) -> Result<Vec<Vec<TableUpdate>>, KeyPlanError> {
        self.changes += changes.len() as u64;
        let mut compile = changes.len() > SINGLY.max(self.now.view.base().len() / COMPILED_PART);
        let mut updates: Vec<TableUpdate> = Vec::new();
        if compile {
            let added = changes.iter().filter_map(RuleChange::added).count();
            self.rules.reserve(added);
            self.log.reserve(added);
        }
        let in_parallel = self.run_in_parallel.filter(|_| compile && has_many_additions_only(changes));
        if let Some(run_in_parallel) = in_parallel {
            self.add_all(changes, run_in_parallel);
        }
        for change in changes.iter().filter(|_| in_parallel.is_none()) {
            match change {
                RuleChange::Add(entry) => match self.add(entry, compile) {
                    Some(update) => updates.push(update),
                    None => compile = true,
                },
                RuleChange::Remove(id) => {
                    let Some(rule) = self.rules.remove(id) else { continue };
                    let (update, many) = self.remove(*id, &rule);
                    updates.push(update);
                    compile |= many;
                }
            }
        }
        compile |= self.now.view.tombstones().len() > TOMBSTONES_MIN.max(self.now.view.base().len() / 2);
        let arrived = !compile && self.step(CATCH_UP * changes.len())?;
        if compile {
            self.compile()?;
        }
        if compile || arrived || in_all > SINGLY {
            return Ok(self.swaps(workers));
        }
        Ok((0..workers).map(|_| updates.iter().map(copy_of).collect()).collect())
    }

    /// Returns for each worker a swap to the current view.
    fn swaps(&self, workers: usize) -> Vec<Vec<TableUpdate>> {
        (0..workers).map(|_| vec![TableUpdate::Swap(Box::new(self.now.view.clone()))]).collect()
    }

    /// Adds many rules, which will be compiled into a new base, on two threads.
    fn add_all(&mut self, changes: &[RuleChange], run_in_parallel: RunInParallel) {
        let added = || changes.iter().filter_map(RuleChange::added);
        let mut rules = std::mem::take(&mut self.rules);
        let first = self.sequence + 1;
        let mut insert = || {
            let rules_of = (first..).zip(added());
            rules.extend(
                rules_of.map(|(sequence, entry)| (entry.id, Rule { entry: Arc::clone(entry), sequence })),
            );
        };
        run_in_parallel(&mut insert, &mut || {
            for entry in added() {
                self.list(entry, true);
            }
        });
        debug_assert!(added().all(|entry| rules.contains_key(&entry.id)), "both functions have run");
        self.rules = rules;
    }

    /// Adds a rule. Returns the update for workers, or `None` if a new base is needed or will be compiled
    /// anyway.
    fn add(&mut self, entry: &Arc<FlowEntry>, compile: bool) -> Option<TableUpdate> {
        let rule = Rule { entry: Arc::clone(entry), sequence: self.sequence + 1 };
        self.rules.insert(entry.id, rule);
        self.list(entry, compile)
    }

    /// Adds a rule like [`RuleTable::add`], except to `rules`.
    fn list(&mut self, entry: &Arc<FlowEntry>, compile: bool) -> Option<TableUpdate> {
        self.sequence += 1;
        let (id, sequence) = (entry.id, self.sequence);
        self.shape.add(&entry.matching, entry.priority);
        if let Some(index) = entry.matching.index() {
            self.log.push(None);
            self.now.pass_over();
            let fits = self.now.view.make_room(index, HEAD_MIN);
            self.now.view.apply(&mut TableUpdate::AddIndex { index, id });
            // Workers get a longer array by a swap.
            return fits.then_some(TableUpdate::AddIndex { index, id });
        }
        self.log.push(Some(Row::new(entry, sequence)));
        if compile {
            self.now.pass_over();
            return None;
        }
        self.now.add(entry)
    }

    /// Removes a rule from the views, after it was removed from `rules`. Returns the update, and whether the
    /// base should be recompiled.
    fn remove(&mut self, id: EntryId, rule: &Rule) -> (TableUpdate, bool) {
        if self.shape.remove(&rule.entry.matching, rule.entry.priority) {
            let fields = rule.entry.matching.fields().map(|condition| (condition.field, self.changes));
            self.removed.extend(fields);
        }
        if let Some(at) = rule.sequence.checked_sub(self.log_from + 1)
            && let Some(row) = self.log.get_mut(at as usize)
        {
            *row = None;
        }
        match &mut self.next {
            Some(Next { shadow: Some(shadow), .. })
                if rule.sequence <= shadow.sequence() && rule.entry.matching.index().is_none() =>
            {
                shadow.remove(id, rule);
            }
            Some(Next { shadow: None, removed, sequence, .. }) if rule.sequence <= *sequence => {
                removed.push(id);
            }
            _ => {}
        }
        self.now.remove(id, rule)
    }

    /// Compiles all rules into a new base with empty deltas, on this thread. Discards a background
    /// compilation.
    fn compile(&mut self) -> Result<(), KeyPlanError> {
        let plan = self.key_plan().inspect_err(|_| self.now.close())?;
        let mut added: Vec<Row> = Vec::new();
        if let Some(next) = self.next.take() {
            let lives =
                |row: &&Row| self.rules.get(&row.entry.id).is_some_and(|rule| rule.sequence == row.sequence);
            added.extend(next.added.iter().filter(lives).cloned());
        }
        added.extend(self.log.drain(..).flatten());
        self.log_from = self.sequence;
        let job = Job { run_in_parallel: self.run_in_parallel, ..self.job(plan, Arc::new(added)) };
        let compiled = job.run();
        let index = self.now.view.take_index();
        self.now = ShadowView::new(compiled, index);
        self.compiled += 1;
        Ok(())
    }

    /// Returns a layout of the keys with the fields that rules examine or have examined lately.
    fn key_plan(&mut self) -> Result<KeyPlan, KeyPlanError> {
        let changes = self.changes;
        self.removed.retain(|_, at| changes - *at <= KEPT_CHANGES);
        let exact = self.shape.fields();
        let mut fields: Vec<Field> = exact.iter().copied().chain(self.removed.keys().copied()).collect();
        fields.sort_unstable();
        fields.dedup();
        KeyPlan::new(&fields).or_else(|_| KeyPlan::new(&exact))
    }

    fn job(&self, plan: KeyPlan, added: Arc<Vec<Row>>) -> Job {
        Job {
            plan: Arc::new(plan),
            choice: choose(&self.shape),
            maker: self.maker,
            // Background jobs run beside packets, so they get no second thread.
            run_in_parallel: None,
            base: Arc::clone(self.now.view.base()),
            rows: Arc::clone(&self.now.rows),
            tombstones: self.now.view.tombstones().clone(),
            added,
            sequence: self.sequence,
            compiled: self.compiled,
        }
    }

    /// Returns a job for background compilation, or `None` if it is not worthwhile yet or in progress.
    ///
    /// It is worthwhile if at least `least` rules were added, or at least `least` rules of the base are
    /// deleted. Rules may change while the job runs. Pass its result to [`RuleTable::install`].
    pub fn background_job(&mut self, least: usize) -> Option<Job> {
        let part = self.now.view.base().len() / BACKGROUND_PART;
        if self.beside() < least.max(part) || self.next.is_some() {
            return None;
        }
        let plan = self.key_plan().ok()?;
        Some(self.next_job(plan))
    }

    /// Returns the number of rules added since the base was compiled, or of deleted rules in the base,
    /// whichever is greater.
    fn beside(&self) -> usize {
        self.now.added().max(self.now.view.tombstones().len())
    }

    /// Returns a job for background compilation of a table that has not changed for a while. Returns `None`
    /// if a job is in progress, or if the base is up to date.
    pub fn job_at_rest(&mut self) -> Option<Job> {
        if self.next.is_some() || self.beside() == 0 && self.removed.is_empty() {
            return None;
        }
        self.removed.clear();
        let fields = self.shape.fields();
        if self.beside() == 0 && *self.plan().fields() == *fields {
            return None;
        }
        let plan = KeyPlan::new(&fields).ok()?;
        Some(self.next_job(plan))
    }

    /// Returns a job for the next base, which has the current rules.
    fn next_job(&mut self, plan: KeyPlan) -> Job {
        let added = Arc::new(self.log.drain(..).flatten().collect::<Vec<_>>());
        self.log_from = self.sequence;
        let next =
            Next { added: Arc::clone(&added), sequence: self.sequence, removed: Vec::new(), shadow: None };
        self.next = Some(next);
        self.job(plan, added)
    }

    /// Takes the result of a job. The new base becomes active once it has caught up with the changes made
    /// since, by further changes and by [`RuleTable::catch_up`].
    pub fn install(&mut self, compiled: Compiled) {
        let is_wanted = compiled.compiled == self.compiled;
        let shadow = ShadowView::new(compiled, Index::default());
        match &mut self.next {
            Some(next) if is_wanted => next.shadow = Some(shadow),
            _ => self.retired.push(Retired::new(shadow, Arc::default())),
        }
    }

    /// Replays queued changes into a base compiled in the background. Returns swaps for `workers` workers
    /// once the base has caught up.
    ///
    /// # Errors
    /// Returns an error like [`RuleTable::change`].
    pub fn catch_up(&mut self, workers: usize) -> Result<Option<Vec<Vec<TableUpdate>>>, KeyPlanError> {
        Ok(self.step(CATCH_UP)?.then(|| self.swaps(workers)))
    }

    /// Replays at most `steps` changes. Returns whether the new base is active.
    fn step(&mut self, steps: usize) -> Result<bool, KeyPlanError> {
        let Some(Next { removed, shadow: Some(shadow), .. }) = &mut self.next else { return Ok(false) };
        for _ in 0..steps {
            if let Some(id) = removed.pop() {
                shadow.remove_from_base(id);
                continue;
            }
            match self.log.get(shadow.added()) {
                None => break,
                Some(None) => shadow.pass_over(),
                Some(Some(row)) if shadow.add(&row.entry).is_some() => {}
                // The new base's delta has no space for this many rules.
                Some(Some(_)) => return self.compile().map(|()| true),
            }
        }
        if !removed.is_empty() || shadow.added() < self.log.len() {
            return Ok(false);
        }
        if let Some(Next { shadow: Some(mut shadow), added, .. }) = self.next.take() {
            shadow.view.put_index(self.now.view.take_index());
            self.retired.push(Retired::new(std::mem::replace(&mut self.now, shadow), added));
            self.compiled += 1;
            self.compiled_in_background += 1;
        }
        Ok(true)
    }

    /// Returns the data that has become unused since the last call. Freeing it takes a long time.
    pub fn take_retired(&mut self) -> Vec<Retired> {
        std::mem::take(&mut self.retired)
    }

    /// Returns the number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Returns whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the number of changes so far.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the number of bases compiled so far.
    #[must_use]
    pub fn compiled(&self) -> usize {
        self.compiled
    }

    /// Returns the number of bases compiled in the background.
    #[must_use]
    pub fn compiled_in_background(&self) -> usize {
        self.compiled_in_background
    }

    /// Returns the mask of the bits that any rule examines, in the layout of the base.
    #[must_use]
    pub fn examined(&self) -> Vec<u64> {
        let (mut values, mut masks) = (Vec::new(), Vec::new());
        let fields = self.examined_fields().into_iter();
        let fields = fields.map(|(field, mask)| flow::FieldMatch { field, value: 0, mask });
        self.now.view.plan().encode_fields(fields, &mut values, &mut masks);
        masks
    }

    /// Returns each field that any rule examines, in field order, with the examined bits.
    #[must_use]
    pub fn examined_fields(&self) -> Vec<(Field, u128)> {
        self.shape.examined()
    }

    /// Returns the layout of the base.
    #[must_use]
    pub fn plan(&self) -> &Arc<KeyPlan> {
        self.now.view.base().plan()
    }

    /// Returns the name of the engine in use.
    #[must_use]
    pub fn engine_name(&self) -> &'static str {
        let base = self.now.view.base();
        if self.now.view.index_capacity() > 0 && base.is_empty() { "index" } else { base.engine_name() }
    }

    /// Returns the size of the compiled base in bytes.
    #[must_use]
    pub fn base_bytes(&self) -> usize {
        self.now.view.base().bytes()
    }
}

fn copy_of(update: &TableUpdate) -> TableUpdate {
    match update {
        TableUpdate::Add { id, priority, row, link } => {
            TableUpdate::Add { id: *id, priority: *priority, row: row.clone(), link: *link }
        }
        TableUpdate::AddIndex { index, id } => TableUpdate::AddIndex { index: *index, id: *id },
        TableUpdate::Remove(place) => TableUpdate::Remove(*place),
        // Each worker gets its own clone.
        TableUpdate::Swap(_) => TableUpdate::Swap(Box::default()),
    }
}
