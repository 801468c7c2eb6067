// SPDX-License-Identifier: Apache-2.0
//! Control side: all rules of a table, the engine chosen from them, and for each change what the workers must
//! do. Small changes go to heads and dead sets. Many changes at once become one swap, of views with the same base as long
//! as they fit its head. A head that is full, or a rule that does not suit the base, means a new base.

use crate::base::Maker;
use crate::choice::choose;
use crate::compile::{Compiled, HEAD_MIN, Job, Row};
use crate::ground::{Ground, Rule};
use crate::index::Index;
use crate::plan::PlanError;
use crate::shape::Shape;
use crate::{KeyPlan, TableUpdate};
use flow::{EntryId, FlowEntry};
use std::collections::HashMap;
use std::sync::Arc;

/// More changes than this in one operation become swaps. An addition takes a worker 55 to 145 ns in a large table, so
/// many take 3 to 9 us.
const SINGLY: usize = 64;

/// A base is compiled for more changes at once than this part of it: then a change compiles no more than so many rules.
const COMPILED_PART: usize = 16;

/// Fewest dead rules for which a base is compiled anew; above it, half of its rules.
const DEAD_MIN: usize = 1024;

/// A base is worth being compiled aside once additions stand beside it that are this part of it, or as many of its rules are
/// dead: what lookups pay for them grows, and the head must not be full before the next base is there.
const ASIDE_PART: usize = 128;

/// Of what has changed while a base was compiled aside, so much is put beside it with each further change: more than one, so
/// that it ends, and few, so that no change waits for it.
const CATCH_UP: usize = 3;

/// The base that comes next.
#[derive(Debug)]
struct Next {
    /// What was added since the last base and goes into this one.
    added: Arc<Vec<Row>>,
    /// Of the last rule that does.
    sequence: u64,
    /// Rules in it that have gone since, by their entries' numbers.
    removed: Vec<EntryId>,
    /// Compiled, and about to know what else has changed.
    ground: Option<Ground>,
}

pub use crate::ground::Spent;

/// A change of the rules.
#[derive(Clone, Debug)]
pub enum RuleChange {
    /// A new rule.
    Add(Arc<FlowEntry>),
    /// A rule goes.
    Remove(EntryId),
}

/// A table's rules on the control side.
#[derive(Debug, Default)]
pub struct Master {
    rules: HashMap<EntryId, Rule>,
    shape: Shape,
    /// What workers have when they have applied all updates.
    now: Ground,
    /// What will be in its place, if that is being made.
    next: Option<Next>,
    /// What was added behind the last rule of the last base that was asked for, in order; none in the place of what has gone, and of
    /// entries of linear tables.
    log: Vec<Option<Row>>,
    /// Of that rule.
    log_from: u64,
    /// Of the last rule.
    sequence: u64,
    /// Changes so far.
    changes: u64,
    compiled: usize,
    compiled_aside: usize,
    spent: Vec<Spent>,
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
        self.changes += changes.len() as u64;
        let mut compile = changes.len() > SINGLY.max(self.now.view.base().len() / COMPILED_PART);
        let mut updates: Vec<TableUpdate> = Vec::new();
        for change in changes {
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
        compile |= self.now.view.dead().len() > DEAD_MIN.max(self.now.view.base().len() / 2);
        let arrived = !compile && self.step(CATCH_UP * changes.len())?;
        if compile {
            self.compile()?;
        }
        if compile || arrived || in_all > SINGLY {
            return Ok(self.swaps(workers));
        }
        Ok((0..workers).map(|_| updates.iter().map(copy_of).collect()).collect())
    }

    /// A swap for each worker to the view as it is now.
    fn swaps(&self, workers: usize) -> Vec<Vec<TableUpdate>> {
        (0..workers).map(|_| vec![TableUpdate::Swap(Box::new(self.now.view.clone()))]).collect()
    }

    /// Takes a rule in. How workers put it where it stands; none if that takes a new base, or one comes anyway.
    fn add(&mut self, entry: &Arc<FlowEntry>, compile: bool) -> Option<TableUpdate> {
        self.sequence += 1;
        let (id, sequence) = (entry.id, self.sequence);
        self.shape.add(&entry.matching, entry.priority);
        self.rules.insert(id, Rule { entry: Arc::clone(entry), sequence });
        if let Some(index) = entry.matching.index() {
            self.log.push(None);
            self.now.pass_over();
            let fits = self.now.view.make_room(index, HEAD_MIN);
            self.now.view.apply(&mut TableUpdate::AddIndex { index, id });
            // Workers get a longer one by a swap.
            return fits.then_some(TableUpdate::AddIndex { index, id });
        }
        self.log.push(Some(Row { entry: Arc::clone(entry), sequence }));
        if compile {
            self.now.pass_over();
            return None;
        }
        self.now.add(entry)
    }

    /// Takes a rule out that is none of `rules` any more. True if the base should be compiled for it.
    fn remove(&mut self, id: EntryId, rule: &Rule) -> (TableUpdate, bool) {
        self.shape.remove(&rule.entry.matching, rule.entry.priority);
        if let Some(at) = rule.sequence.checked_sub(self.log_from + 1)
            && let Some(row) = self.log.get_mut(at as usize)
        {
            *row = None;
        }
        match &mut self.next {
            Some(Next { ground: Some(ground), .. })
                if rule.sequence <= ground.sequence() && rule.entry.matching.index().is_none() =>
            {
                ground.remove(id, rule);
            }
            Some(Next { ground: None, removed, sequence, .. }) if rule.sequence <= *sequence => {
                removed.push(id);
            }
            _ => {}
        }
        self.now.remove(id, rule)
    }

    /// Compiles all rules into a new base; heads start empty. Whatever is being compiled aside is of no use any more.
    fn compile(&mut self) -> Result<(), PlanError> {
        let plan = KeyPlan::new(&self.shape.fields()).inspect_err(|_| self.now.close())?;
        let mut added: Vec<Row> = Vec::new();
        if let Some(next) = self.next.take() {
            let lives =
                |row: &&Row| self.rules.get(&row.entry.id).is_some_and(|rule| rule.sequence == row.sequence);
            added.extend(next.added.iter().filter(lives).cloned());
        }
        added.extend(self.log.drain(..).flatten());
        self.log_from = self.sequence;
        let compiled = self.job(plan, Arc::new(added)).run();
        let index = self.now.view.take_index();
        self.now = Ground::new(compiled, index);
        self.compiled += 1;
        Ok(())
    }

    fn job(&self, plan: KeyPlan, added: Arc<Vec<Row>>) -> Job {
        Job {
            plan: Arc::new(plan),
            choice: choose(&self.shape),
            maker: self.maker,
            base: Arc::clone(self.now.view.base()),
            rows: Arc::clone(&self.now.rows),
            dead: self.now.view.dead().clone(),
            added,
            sequence: self.sequence,
            compiled: self.compiled,
        }
    }

    /// A base that is worth being compiled on another thread: what was added or is dead (`least` rules or more) makes lookups
    /// slower, or there will soon be no room for more. None while one is under way. Rules may go on changing; what the job
    /// makes is for [`Master::install`].
    pub fn job_aside(&mut self, least: usize) -> Option<Job> {
        let part = self.now.view.base().len() / ASIDE_PART;
        if self.beside() < least.max(part) { None } else { self.job_at_rest() }
    }

    /// What was added since the base or is dead in it, whichever is more.
    fn beside(&self) -> usize {
        self.now.added().max(self.now.view.dead().len())
    }

    /// The same however little stands beside the base, if anything does: for a table that will not change for a while.
    pub fn job_at_rest(&mut self) -> Option<Job> {
        if self.next.is_some() || self.beside() == 0 {
            return None;
        }
        let plan = KeyPlan::new(&self.shape.fields()).ok()?;
        let added = Arc::new(self.log.drain(..).flatten().collect::<Vec<_>>());
        self.log_from = self.sequence;
        let next =
            Next { added: Arc::clone(&added), sequence: self.sequence, removed: Vec::new(), ground: None };
        self.next = Some(next);
        Some(self.job(plan, added))
    }

    /// Takes what a job has made. It is in force when it knows what has changed meanwhile, which it is told by and by, with
    /// each further change and by [`Master::catch_up`].
    pub fn install(&mut self, compiled: Compiled) {
        let is_wanted = compiled.compiled == self.compiled;
        let ground = Ground::new(compiled, Index::default());
        match &mut self.next {
            Some(next) if is_wanted => next.ground = Some(ground),
            _ => self.spent.push(Spent::new(ground, Arc::default())),
        }
    }

    /// Tells a base that was compiled aside more of what has changed meanwhile: the swaps for `workers` when it knows all.
    ///
    /// # Errors
    /// As for [`Master::change`].
    pub fn catch_up(&mut self, workers: usize) -> Result<Option<Vec<Vec<TableUpdate>>>, PlanError> {
        Ok(self.step(CATCH_UP)?.then(|| self.swaps(workers)))
    }

    /// So many steps of it; true if the base is in force.
    fn step(&mut self, steps: usize) -> Result<bool, PlanError> {
        let Some(Next { removed, ground: Some(ground), .. }) = &mut self.next else { return Ok(false) };
        for _ in 0..steps {
            if let Some(id) = removed.pop() {
                ground.remove_from_base(id);
                continue;
            }
            match self.log.get(ground.added()) {
                None => break,
                Some(None) => ground.pass_over(),
                Some(Some(row)) if ground.add(&row.entry).is_some() => {}
                // Rules that all came in no time, and have no place beside the new base.
                Some(Some(_)) => return self.compile().map(|()| true),
            }
        }
        if !removed.is_empty() || ground.added() < self.log.len() {
            return Ok(false);
        }
        if let Some(Next { ground: Some(mut ground), added, .. }) = self.next.take() {
            ground.view.put_index(self.now.view.take_index());
            self.spent.push(Spent::new(std::mem::replace(&mut self.now, ground), added));
            self.compiled += 1;
            self.compiled_aside += 1;
        }
        Ok(true)
    }

    /// What is no longer used since the last call: to free it takes long.
    pub fn take_spent(&mut self) -> Vec<Spent> {
        std::mem::take(&mut self.spent)
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

    /// How many changes there were.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// How many bases were compiled.
    #[must_use]
    pub fn compiled(&self) -> usize {
        self.compiled
    }

    /// How many of them were compiled aside.
    #[must_use]
    pub fn compiled_aside(&self) -> usize {
        self.compiled_aside
    }

    /// The bits of a row that some rule examines, in the layout of the base.
    #[must_use]
    pub fn examined(&self) -> Vec<u64> {
        let (mut values, mut masks) = (Vec::new(), Vec::new());
        let fields = self.examined_fields().into_iter();
        let fields = fields.map(|(field, mask)| flow::FieldMatch { field, value: 0, mask });
        self.now.view.plan().encode_fields(fields, &mut values, &mut masks);
        masks
    }

    /// Returns each field that some rule examines, in field order, with the bits of it that are examined.
    #[must_use]
    pub fn examined_fields(&self) -> Vec<(flow::Field, u128)> {
        self.shape.examined()
    }

    /// The layout of the base.
    #[must_use]
    pub fn plan(&self) -> &Arc<KeyPlan> {
        self.now.view.base().plan()
    }

    /// Name of the engine in use.
    #[must_use]
    pub fn engine_name(&self) -> &'static str {
        let base = self.now.view.base();
        if self.now.view.index_capacity() > 0 && base.is_empty() { "index" } else { base.engine_name() }
    }

    /// Bytes of the compiled base.
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
        // Views are made one by one, for the worker that gets them.
        TableUpdate::Swap(_) => TableUpdate::Swap(Box::default()),
    }
}
