// SPDX-License-Identifier: Apache-2.0
//! Control side: all rules of a table, the engine chosen from them, and for each change what the workers must
//! do. Small changes go to heads and dead sets. Many changes at once become one swap, of views with the same base as long
//! as they fit its head. A head that is full, or a rule that does not suit the base, means a new base.

use crate::additions::Additions;
use crate::base::{Engine, Maker};
use crate::choice::{Choice, choose};
use crate::exact::Exact;
use crate::head::Head;
use crate::index::Index;
use crate::lpm::{Lpm, Piece};
use crate::mask::Mask;
use crate::plan::PlanError;
use crate::scan::Scan;
use crate::shape::Shape;
use crate::{Base, KeyPlan, Place, Table, TableUpdate};
use flow::{EntryId, FlowEntry};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// More changes than this in one operation become swaps. An addition takes a worker 55 to 145 ns in a large table, so
/// many take 3 to 9 us.
const SINGLY: usize = 64;

/// A base is compiled for more changes at once than this part of it: then a change compiles no more than so many rules.
const COMPILED_PART: usize = 16;

/// Fewest additions a head has room for.
const HEAD_MIN: usize = 64;

/// A head has room for this part of the base: then adding n rules one by one compiles fewer than five times n rules.
const HEAD_PART: usize = 4;

/// Fewest dead rules for which a base is compiled anew; above it, half of its rules.
const DEAD_MIN: usize = 1024;

/// More dead rules of one match than this are not kept in a base: a lookup may meet them all, one by one. What else it
/// meets of the dead is bounded by how rules of different matches stand together.
const DEAD_EQUAL_MAX: u32 = 64;

#[derive(Debug)]
struct Rule {
    entry: Arc<FlowEntry>,
    /// The entry's, at hand for sorting.
    priority: u16,
    sequence: u64,
    place: Place,
}

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
    /// What each worker's view is when it has applied all updates.
    view: Table,
    /// What the heads hold; none before the first base.
    additions: Option<Additions>,
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
                RuleChange::Add(entry) => {
                    self.sequence += 1;
                    self.shape.add(&entry.matching, entry.priority);
                    let added = if compile { None } else { self.add_singly(entry) };
                    compile |= added.is_none();
                    let (place, update) = added.unzip();
                    let rule = Rule {
                        entry: Arc::clone(entry),
                        priority: entry.priority,
                        sequence: self.sequence,
                        place: place.unwrap_or(Place::Base(crate::NONE)),
                    };
                    self.rules.insert(entry.id, rule);
                    let Some(update) = update else { continue };
                    update
                }
                RuleChange::Remove(id) => {
                    let Some(rule) = self.rules.remove(id) else { continue };
                    self.shape.remove(&rule.entry.matching, rule.entry.priority);
                    compile |= self.leave(&rule);
                    TableUpdate::Remove(rule.place)
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
            let swap = || vec![TableUpdate::Swap(Box::new(self.view.clone()))];
            return Ok((0..workers).map(|_| swap()).collect());
        }
        Ok((0..workers).map(|_| updates.iter().map(copy_of).collect()).collect())
    }

    /// Where the rule goes without a new base, and how workers put it there; nowhere if it needs one.
    fn add_singly(&mut self, entry: &FlowEntry) -> Option<(Place, TableUpdate)> {
        if let Some(index) = entry.matching.index() {
            if index as usize >= self.view.index_capacity() {
                return None;
            }
            return Some((Place::Index(index), TableUpdate::AddIndex { index, id: entry.id }));
        }
        let plan = self.view.plan();
        let additions = self.additions.as_mut().filter(|_| plan.covers(&entry.matching))?;
        let (mut values, mut masks) = (Vec::new(), Vec::new());
        plan.encode(&entry.matching, &mut values, &mut masks);
        let (row, link, slot) = additions.add(entry.priority, &values, &masks)?;
        Some((Place::Head(slot), TableUpdate::Add { id: entry.id, priority: entry.priority, row, link }))
    }

    /// Notes that a rule leaves its place. True if the base should be compiled for it.
    fn leave(&mut self, rule: &Rule) -> bool {
        match (rule.place, &mut self.additions) {
            (Place::Base(_), _) => {
                let dead = self.dead_equal.entry(self.hasher.hash_one(&rule.entry.matching)).or_default();
                *dead += 1;
                *dead > DEAD_EQUAL_MAX
            }
            (Place::Head(slot), Some(additions)) => {
                additions.remove(slot);
                false
            }
            _ => false,
        }
    }

    /// Compiles all rules into a new base; heads start empty.
    fn compile(&mut self) -> Result<(), PlanError> {
        let plan = Arc::new(KeyPlan::new(&self.shape.fields())?);
        let mut order: Vec<&mut Rule> = self.rules.values_mut().collect();
        order.sort_unstable_by_key(|rule| (std::cmp::Reverse(rule.priority), rule.sequence));
        let words = plan.words();
        let choice = choose(&self.shape);
        let hashed = choice == Choice::Exact;
        let mut values = Vec::with_capacity(words * order.len());
        let mut masks = Vec::with_capacity(if hashed { words } else { words * order.len() });
        let mut ids = Vec::with_capacity(order.len());
        let mut priorities = Vec::with_capacity(order.len());
        let mut keyed = 0;
        let mut numbers = Vec::new();
        // Rows that stay as they were are not encoded again.
        let known = (hashed && *plan == *self.view.plan()).then(|| Arc::clone(self.view.base()));
        let known = known.as_ref().and_then(|base| base.exact()).map(Exact::rows);
        for rule in order {
            let entry = &rule.entry;
            if let Some(index) = entry.matching.index() {
                rule.place = Place::Index(index);
                numbers.push((index, entry.id));
                continue;
            }
            if !(hashed && entry.matching.is_any()) {
                let known = match (&known, rule.place) {
                    (Some(rows), Place::Base(slot)) if !masks.is_empty() => {
                        rows.get(slot as usize * words..).and_then(|rows| rows.get(..words))
                    }
                    _ => None,
                };
                match known {
                    Some(row) => values.extend_from_slice(row),
                    _ => {
                        if hashed {
                            masks.clear();
                        }
                        plan.encode(&entry.matching, &mut values, &mut masks);
                    }
                }
                keyed += 1;
            }
            rule.place = Place::Base(ids.len() as u32);
            ids.push(entry.id);
            priorities.push(rule.priority);
        }
        let foreign = self.maker.filter(|_| !hashed).and_then(|make| make(choice, &plan, &values, &masks));
        let engine = match (foreign, choice) {
            (Some(engine), _) => Engine::Foreign(engine),
            (None, Choice::Exact) => Engine::Exact(Exact::new(words, &masks, values, keyed, ids.len())),
            (None, Choice::Scan) => Engine::Scan(Scan::new(words, ids.len(), &values, &masks)),
            (None, Choice::Lpm(field)) => {
                Engine::Lpm(Lpm::new(words, &Piece::of_field(&plan, field), ids.len(), &values, &masks))
            }
            (None, Choice::Mask) => Engine::Mask(Mask::new(&plan, ids.len(), &values, &masks)),
        };
        let room = (ids.len() / HEAD_PART).max(HEAD_MIN);
        let additions = match &engine {
            Engine::Exact(engine) => Additions::new(&plan, room, [engine.mask()], ids.len() - keyed),
            Engine::Mask(engine) => Additions::new(&plan, room, engine.masks(), engine.walked()),
            Engine::Lpm(engine) => Additions::new(&plan, room, [], engine.catch_alls()),
            Engine::Scan(_) | Engine::Foreign(_) => Additions::new(&plan, room, [], ids.len()),
        };
        let head = Head::new(words, additions.capacity(), additions.masks());
        self.additions = Some(additions);
        let capacity = numbers.iter().map(|(index, _)| *index as usize + 1).max();
        let mut index = Index::new(capacity.map_or(0, |capacity| capacity.next_power_of_two().max(HEAD_MIN)));
        numbers.into_iter().for_each(|(number, id)| index.set(number, id));
        self.dead_equal.clear();
        self.compiled += 1;
        self.view = Table::new(Arc::new(Base::new(plan, engine, ids, priorities)), head, index);
        Ok(())
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
