// SPDX-License-Identifier: Apache-2.0
//! Control side: all rules of a table, the engine chosen from them, and for each change what the workers must
//! do. Small changes go to heads and dead sets; a head that is full, a rule that does not suit the base, or many
//! changes at once become one new base and one swap.

use crate::additions::Additions;
use crate::base::Engine;
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
use std::sync::Arc;

/// More changes than this in one operation become a swap: a worker applies as many singly in about a microsecond.
const SINGLY: usize = 64;

/// Fewest additions a head has room for.
const HEAD_MIN: usize = 64;

/// A head has room for this part of the base: then adding n rules one by one compiles fewer than five times n rules.
const HEAD_PART: usize = 4;

/// Fewest dead rules for which a base is compiled anew; above it, half of its rules.
const DEAD_MIN: usize = 1024;

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
    base: Arc<Base>,
    /// Rules of the base that went.
    base_dead: usize,
    /// What the heads hold; none before the first base.
    additions: Option<Additions>,
    index_capacity: usize,
    sequence: u64,
}

impl Master {
    /// Takes changes of one operation and returns, for each of `workers`, the updates that bring its view along.
    ///
    /// # Errors
    /// When the rules no longer fit one key. The changes are taken all the same; the caller asks first.
    pub fn change(
        &mut self,
        changes: &[RuleChange],
        workers: usize,
    ) -> Result<Vec<Vec<TableUpdate>>, PlanError> {
        let singly = changes.len() <= SINGLY;
        let mut updates: Vec<TableUpdate> = Vec::new();
        let mut swap = !singly;
        for change in changes {
            match change {
                RuleChange::Add(entry) => {
                    self.sequence += 1;
                    self.shape.add(&entry.matching, entry.priority);
                    let place = if swap { None } else { self.add_singly(entry, &mut updates) };
                    swap |= place.is_none();
                    let rule = Rule {
                        entry: Arc::clone(entry),
                        priority: entry.priority,
                        sequence: self.sequence,
                        place: place.unwrap_or(Place::Base(crate::NONE)),
                    };
                    self.rules.insert(entry.id, rule);
                }
                RuleChange::Remove(id) => {
                    let Some(rule) = self.rules.remove(id) else { continue };
                    self.shape.remove(&rule.entry.matching, rule.entry.priority);
                    self.leave(rule.place);
                    updates.push(TableUpdate::Remove(rule.place));
                }
            }
        }
        if swap || self.base_dead > DEAD_MIN.max(self.base.len() / 2) {
            self.compile()?;
            return Ok((0..workers).map(|_| vec![TableUpdate::Swap(Box::new(self.view()))]).collect());
        }
        Ok((0..workers).map(|_| updates.iter().map(copy_of).collect()).collect())
    }

    /// Where the rule goes without a new base; nowhere if it needs one.
    fn add_singly(&mut self, entry: &FlowEntry, updates: &mut Vec<TableUpdate>) -> Option<Place> {
        if let Some(index) = entry.matching.index() {
            if index as usize >= self.index_capacity {
                return None;
            }
            updates.push(TableUpdate::AddIndex { index, id: entry.id });
            return Some(Place::Index(index));
        }
        let additions = self.additions.as_mut().filter(|_| self.base.plan().covers(&entry.matching))?;
        let (mut values, mut masks) = (Vec::new(), Vec::new());
        self.base.plan().encode(&entry.matching, &mut values, &mut masks);
        let (row, link, slot) = additions.add(entry.priority, &values, &masks)?;
        updates.push(TableUpdate::Add { id: entry.id, priority: entry.priority, row, link });
        Some(Place::Head(slot))
    }

    fn leave(&mut self, place: Place) {
        match place {
            Place::Base(_) => self.base_dead += 1,
            Place::Head(slot) => {
                if let Some(additions) = &mut self.additions {
                    additions.remove(slot);
                }
            }
            Place::Index(_) => {}
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
        let mut numbers = 0;
        // Rows that stay as they were are not encoded again.
        let known = (hashed && *plan == **self.base.plan()).then(|| Arc::clone(&self.base));
        let known = known.as_ref().and_then(|base| base.exact());
        for rule in order {
            let entry = &rule.entry;
            if let Some(index) = entry.matching.index() {
                rule.place = Place::Index(index);
                numbers = numbers.max(index as usize + 1);
                continue;
            }
            if !(hashed && entry.matching.is_any()) {
                match (known, rule.place) {
                    (Some(exact), Place::Base(slot)) if !masks.is_empty() && slot != crate::NONE => {
                        values.extend_from_slice(exact.row(slot));
                    }
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
        let engine = match choice {
            Choice::Exact => Engine::Exact(Exact::new(words, &masks, values, keyed, ids.len())),
            Choice::Scan => Engine::Scan(Scan::new(words, ids.len(), &values, &masks)),
            Choice::Lpm(field) => {
                Engine::Lpm(Lpm::new(words, &Piece::of_field(&plan, field), ids.len(), &values, &masks))
            }
            Choice::Mask => Engine::Mask(Mask::new(&plan, ids.len(), &values, &masks)),
        };
        let room = (ids.len() / HEAD_PART).max(HEAD_MIN);
        self.additions = Some(match &engine {
            Engine::Exact(engine) => Additions::new(&plan, room, [engine.mask()], 0),
            Engine::Mask(engine) => Additions::new(&plan, room, engine.masks(), engine.walked()),
            Engine::Lpm(_) | Engine::Scan(_) => Additions::new(&plan, room, [], 0),
        });
        self.base = Arc::new(Base::new(plan, engine, ids, priorities));
        self.base_dead = 0;
        self.index_capacity = if numbers == 0 { 0 } else { numbers.next_power_of_two().max(HEAD_MIN) };
        Ok(())
    }

    /// A worker's view of the compiled rules.
    fn view(&self) -> Table {
        let head = self.additions.as_ref().map_or_else(Head::default, |additions| {
            Head::new(self.base.plan().words(), additions.capacity(), additions.masks())
        });
        let mut index = Index::new(self.index_capacity);
        if self.index_capacity > 0 {
            for (id, rule) in &self.rules {
                if let Place::Index(at) = rule.place {
                    index.set(at, *id);
                }
            }
        }
        Table::new(Arc::clone(&self.base), head, index)
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

    /// Name of the engine in use.
    #[must_use]
    pub fn engine_name(&self) -> &'static str {
        if self.index_capacity > 0 && self.base.is_empty() { "index" } else { self.base.engine_name() }
    }

    /// Bytes of the compiled base.
    #[must_use]
    pub fn base_bytes(&self) -> usize {
        self.base.bytes()
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
