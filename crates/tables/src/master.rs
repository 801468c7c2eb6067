// SPDX-License-Identifier: Apache-2.0
//! Control side: all rules of a table, the engine chosen from them, and for each change what the workers must
//! do. Small changes go to heads and dead sets. Many changes at once become one swap, of views with the same base as long
//! as they fit its head. A head that is full, or a rule that does not suit the base, means a new base.

use crate::additions::{Additions, Link};
use crate::base::Maker;
use crate::choice::choose;
use crate::compile::{Compiled, HEAD_MIN, Job, Row};
use crate::head::Head;
use crate::plan::PlanError;
use crate::shape::Shape;
use crate::{KeyPlan, Place, Table, TableUpdate};
use flow::{EntryId, FlowEntry};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// More changes than this in one operation become swaps. An addition takes a worker 55 to 145 ns in a large table, so
/// many take 3 to 9 us.
const SINGLY: usize = 64;

/// A base is compiled for more changes at once than this part of it: then a change compiles no more than so many rules.
const COMPILED_PART: usize = 16;

/// Fewest dead rules for which a base is compiled anew; above it, half of its rules.
const DEAD_MIN: usize = 1024;

/// More dead rules of one match than this are not kept in a base: a lookup may meet them all, one by one. What else it
/// meets of the dead is bounded by how rules of different matches stand together.
const DEAD_EQUAL_MAX: u32 = 64;

/// A base is worth being compiled aside once so many additions stand beside it, or this part of it: what lookups pay for
/// them grows, and the head must not be full before the next base is there.
const ASIDE_MIN: usize = 48;
const ASIDE_PART: usize = 16;

/// A living rule.
#[derive(Debug)]
struct Rule {
    entry: Arc<FlowEntry>,
    sequence: u64,
    /// Its slot in the head, if it is none of the base's.
    head: u32,
}

/// A base that is being compiled aside.
#[derive(Debug)]
struct Aside {
    /// Additions before it.
    added: Arc<Vec<Row>>,
    /// Of the last rule that is in it.
    sequence: u64,
    /// Rules in it that are gone meanwhile.
    removed: Vec<EntryId>,
}

/// A change of the rules.
#[derive(Clone, Debug)]
pub enum RuleChange {
    /// A new rule.
    Add(Arc<FlowEntry>),
    /// A rule goes.
    Remove(EntryId),
}

/// What a table had on the control side before it got another base.
#[derive(Debug)]
pub struct Spent {
    _rows: Arc<Vec<Row>>,
    _slots: Vec<u32>,
}

/// A table's rules on the control side.
#[derive(Debug, Default)]
pub struct Master {
    rules: HashMap<EntryId, Rule>,
    shape: Shape,
    /// What each worker's view is when it has applied all updates.
    view: Table,
    /// The base's rules, dead ones too, and for each entry's number its slot.
    rows: Arc<Vec<Row>>,
    slots: Vec<u32>,
    /// Of the last rule that went into the base.
    base_sequence: u64,
    /// What the heads hold; none before the first base.
    additions: Option<Additions>,
    /// What was added since the base was asked for, in the order of the heads' slots; none in the place of what is gone.
    added: Vec<Option<Row>>,
    /// Slots of the heads before these: they went into the base that is being compiled.
    added_from: u32,
    aside: Option<Aside>,
    /// For the hash of each match how many rules of the base are dead.
    dead_equal: HashMap<u64, u32>,
    hasher: RandomState,
    sequence: u64,
    compiled: usize,
    /// Makes engines in place of ours.
    maker: Option<Maker>,
}

impl Master {
    /// Lets `maker` have a say in the engine of each base from now on. A table of one mask stays hashed.
    pub fn set_maker(&mut self, maker: Maker) {
        self.maker = Some(maker);
    }

    /// Takes the changes that one operation makes to this table and returns, for each of `workers`, the updates that
    /// bring its view along. `in_all` is how many changes the operation makes to all tables: a worker applies it as a
    /// whole, in one go.
    ///
    /// # Errors
    /// When the rules no longer fit one key. The changes are taken all the same; the caller asks first.
    pub fn change(
        &mut self,
        changes: &[RuleChange],
        in_all: usize,
        workers: usize,
    ) -> Result<Vec<Vec<TableUpdate>>, PlanError> {
        let mut compile = changes.len() > SINGLY.max(self.view.base().len() / COMPILED_PART);
        let mut updates: Vec<TableUpdate> = Vec::new();
        for change in changes {
            let mut update = match change {
                RuleChange::Add(entry) => match self.add(entry, compile) {
                    Some(update) => update,
                    None => {
                        compile = true;
                        continue;
                    }
                },
                RuleChange::Remove(id) => {
                    let Some(rule) = self.rules.remove(id) else { continue };
                    self.shape.remove(&rule.entry.matching, rule.entry.priority);
                    let place = self.place(*id, &rule);
                    compile |= self.leave(*id, &rule, place);
                    TableUpdate::Remove(place)
                }
            };
            self.view.apply(&mut update);
            updates.push(update);
        }
        compile |= self.view.dead_count() > DEAD_MIN.max(self.view.base().len() / 2);
        if compile {
            self.compile()?;
        }
        if compile || in_all > SINGLY {
            return Ok(self.swaps(workers));
        }
        Ok((0..workers).map(|_| updates.iter().map(copy_of).collect()).collect())
    }

    /// A swap for each worker to the view as it is now.
    fn swaps(&self, workers: usize) -> Vec<Vec<TableUpdate>> {
        (0..workers).map(|_| vec![TableUpdate::Swap(Box::new(self.view.clone()))]).collect()
    }

    /// Takes a rule in. How workers put it where it stands; none if that takes a new base, or one comes anyway.
    fn add(&mut self, entry: &Arc<FlowEntry>, compile: bool) -> Option<TableUpdate> {
        self.sequence += 1;
        let (id, sequence) = (entry.id, self.sequence);
        self.shape.add(&entry.matching, entry.priority);
        let rule = |head| Rule { entry: Arc::clone(entry), sequence, head };
        if let Some(index) = entry.matching.index() {
            self.rules.insert(id, rule(crate::NONE));
            let fits = self.view.make_room(index, HEAD_MIN);
            let mut update = TableUpdate::AddIndex { index, id };
            if fits {
                return Some(update);
            }
            // Workers get the longer one by a swap.
            self.view.apply(&mut update);
            return None;
        }
        let row = Row { entry: Arc::clone(entry), sequence };
        let link = if compile { None } else { self.link(entry) };
        // What has no place in the heads is in the base before anybody asks.
        let slot = self.added_from + self.added.len() as u32;
        self.rules.insert(id, rule(slot));
        self.added.push(Some(row));
        let (row, link, at) = link?;
        debug_assert_eq!(at, slot, "additions and heads count alike");
        Some(TableUpdate::Add { id, priority: entry.priority, row, link })
    }

    /// Where the heads put a rule; nowhere if it takes a new base.
    fn link(&mut self, entry: &FlowEntry) -> Option<(Box<[u64]>, Link, u32)> {
        let plan = self.view.plan();
        let additions = self.additions.as_mut().filter(|_| plan.covers(&entry.matching))?;
        let (mut values, mut masks) = (Vec::new(), Vec::new());
        plan.encode(&entry.matching, &mut values, &mut masks);
        additions.add(entry.priority, &values, &masks)
    }

    /// Where a rule stands.
    fn place(&self, id: EntryId, rule: &Rule) -> Place {
        match rule.entry.matching.index() {
            Some(index) => Place::Index(index),
            None if rule.sequence <= self.base_sequence => {
                Place::Base(self.slots.get(id as usize).copied().unwrap_or(crate::NONE))
            }
            None => Place::Head(rule.head),
        }
    }

    /// Notes that a rule leaves its place. True if the base should be compiled for it.
    fn leave(&mut self, id: EntryId, rule: &Rule, place: Place) -> bool {
        if let Some(aside) = self.aside.as_mut().filter(|aside| rule.sequence <= aside.sequence) {
            aside.removed.push(id);
        }
        match place {
            Place::Base(_) => self.leave_base(rule),
            Place::Head(slot) => {
                if let Some(row) =
                    slot.checked_sub(self.added_from).and_then(|at| self.added.get_mut(at as usize))
                {
                    *row = None;
                }
                self.additions.iter_mut().for_each(|additions| additions.remove(slot));
                false
            }
            Place::Index(_) => false,
        }
    }

    /// Notes that a rule of the base is dead. True if there are too many of its match.
    fn leave_base(&mut self, rule: &Rule) -> bool {
        let dead = self.dead_equal.entry(self.hasher.hash_one(&rule.entry.matching)).or_default();
        *dead += 1;
        *dead > DEAD_EQUAL_MAX
    }

    /// Compiles all rules into a new base; heads start empty.
    fn compile(&mut self) -> Result<(), PlanError> {
        let job = self.whole();
        if job.is_err() {
            // Nothing goes beside the last base any more.
            self.additions = None;
        }
        self.put(job?.run());
        Ok(())
    }

    /// All that is to be compiled now. Whatever is being compiled aside is of no use any more.
    fn whole(&mut self) -> Result<Job, PlanError> {
        let plan = Arc::new(KeyPlan::new(&self.shape.fields())?);
        let mut added: Vec<Row> = Vec::new();
        if let Some(aside) = self.aside.take() {
            let lives =
                |row: &&Row| self.rules.get(&row.entry.id).is_some_and(|rule| rule.sequence == row.sequence);
            added.extend(aside.added.iter().filter(lives).cloned());
        }
        added.extend(self.added.drain(..).flatten());
        Ok(self.job(plan, Arc::new(added)))
    }

    fn job(&self, plan: Arc<KeyPlan>, added: Arc<Vec<Row>>) -> Job {
        Job {
            plan,
            choice: choose(&self.shape),
            maker: self.maker,
            base: Arc::clone(self.view.base()),
            rows: Arc::clone(&self.rows),
            dead: self.view.dead().clone(),
            added,
            sequence: self.sequence,
            compiled: self.compiled,
        }
    }

    /// Puts a base in the place of the last one; heads start empty.
    fn put(&mut self, compiled: Compiled) {
        let Compiled { base, rows, slots, additions, sequence, .. } = compiled;
        let head = Head::new(base.plan().words(), additions.capacity(), additions.masks());
        (self.rows, self.slots, self.base_sequence) = (rows, slots, sequence);
        self.additions = Some(additions);
        (self.added_from, self.aside) = (0, None);
        self.dead_equal.clear();
        self.compiled += 1;
        let index = self.view.take_index();
        self.view = Table::new(base, head, index);
    }

    /// A base that is worth being compiled on another thread: what was added or is dead makes lookups slower, or there will soon
    /// be no room for more. None while one is under way. Rules may go on changing; what the job makes is for
    /// [`Master::install`].
    pub fn job_aside(&mut self) -> Option<Job> {
        let len = self.view.base().len();
        let added = self.added.len() >= ASIDE_MIN.max(len / ASIDE_PART);
        let dead = self.view.dead_count() > DEAD_MIN.max(len / 2) / 2;
        if self.aside.is_some() || !(added || dead) {
            return None;
        }
        let plan = KeyPlan::new(&self.shape.fields()).ok()?;
        self.added_from += self.added.len() as u32;
        let added = Arc::new(self.added.drain(..).flatten().collect::<Vec<_>>());
        let aside = Aside { added: Arc::clone(&added), sequence: self.sequence, removed: Vec::new() };
        self.aside = Some(aside);
        Some(self.job(Arc::new(plan), added))
    }

    /// Puts what a job has made in force: the swaps for `workers`, or none if the table has got another base meanwhile.
    /// What is no longer used is left in `spent`: to free it takes long.
    pub fn install(
        &mut self,
        compiled: Compiled,
        workers: usize,
        spent: &mut Vec<Spent>,
    ) -> Option<Vec<Vec<TableUpdate>>> {
        if compiled.compiled != self.compiled {
            spent.push(Spent { _rows: compiled.rows, _slots: compiled.slots });
            return None;
        }
        let removed = self.aside.take().map(|aside| aside.removed).unwrap_or_default();
        let since = std::mem::take(&mut self.added);
        let before = (Arc::clone(&self.rows), std::mem::take(&mut self.slots));
        self.put(compiled);
        spent.push(Spent { _rows: before.0, _slots: before.1 });
        for id in removed {
            // A rule that came later may have its number.
            let slot = self.slots.get(id as usize).copied().unwrap_or(crate::NONE);
            if let Some(row) = self.rows.get(slot as usize) {
                *self.dead_equal.entry(self.hasher.hash_one(&row.entry.matching)).or_default() += 1;
            }
            self.view.apply(&mut TableUpdate::Remove(Place::Base(slot)));
        }
        let mut fits = true;
        for row in since.into_iter().flatten() {
            let entry = Arc::clone(&row.entry);
            let link = if fits { self.link(&entry) } else { None };
            let slot = self.added.len() as u32;
            self.added.push(Some(row));
            if let Some(rule) = self.rules.get_mut(&entry.id) {
                rule.head = slot;
            }
            match link {
                Some((row, link, _)) => self.view.apply(&mut TableUpdate::Add {
                    id: entry.id,
                    priority: entry.priority,
                    row,
                    link,
                }),
                None => fits = false,
            }
        }
        // Rules that all came in no time, and have no place beside the new base.
        if !fits {
            self.compile().ok()?;
        }
        Some(self.swaps(workers))
    }

    /// Rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// True without rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// How many bases were compiled.
    #[must_use]
    pub fn compiled(&self) -> usize {
        self.compiled
    }

    /// The bits of a row that some rule examines, in the layout of the base.
    #[must_use]
    pub fn examined(&self) -> Vec<u64> {
        let (mut values, mut masks) = (Vec::new(), Vec::new());
        let fields = self.shape.examined().into_iter();
        let fields = fields.map(|(field, mask)| flow::FieldMatch { field, value: 0, mask });
        self.view.plan().encode_fields(fields, &mut values, &mut masks);
        masks
    }

    /// The layout of the base.
    #[must_use]
    pub fn plan(&self) -> &Arc<KeyPlan> {
        self.view.base().plan()
    }

    /// Name of the engine in use.
    #[must_use]
    pub fn engine_name(&self) -> &'static str {
        let base = self.view.base();
        if self.view.index_capacity() > 0 && base.is_empty() { "index" } else { base.engine_name() }
    }

    /// Bytes of the compiled base.
    #[must_use]
    pub fn base_bytes(&self) -> usize {
        self.view.base().bytes()
    }
}

fn copy_of(update: &TableUpdate) -> TableUpdate {
    match update {
        TableUpdate::Add { id, priority, row, link } => {
            TableUpdate::Add { id: *id, priority: *priority, row: row.clone(), link: *link }
        }
        TableUpdate::AddIndex { index, id } => TableUpdate::AddIndex { index: *index, id: *id },
        TableUpdate::Remove(place) => TableUpdate::Remove(*place),
        // Views are made one by one, for the worker that gets them.
        TableUpdate::Swap(_) => TableUpdate::Swap(Box::default()),
    }
}
