// SPDX-License-Identifier: Apache-2.0
//! A table's compiled rules: immutable, shared by all workers. A new engine is a new file and a variant here.

use crate::choice::Choice;
use crate::exact::Exact;
use crate::lpm::Lpm;
use crate::mask::Mask;
use crate::prefetch::prefetch;
use crate::scan::Scan;
use crate::{BitSet, KeyPlan, NONE};
use flow::EntryId;
use std::fmt;
use std::sync::Arc;

/// The engine a base was compiled with.
#[derive(Debug)]
pub enum Engine {
    /// One mask for all rules but those that match everything.
    Exact(Exact),
    /// Prefixes of one field.
    Lpm(Lpm),
    /// Any rules.
    Mask(Mask),
    /// Any rules, if few.
    Scan(Scan),
    /// One of the caller's: what benchmarks compare with.
    Foreign(Box<dyn Lookup>),
}

/// An engine from outside of this crate.
pub trait Lookup: fmt::Debug + Send + Sync {
    /// Looks up `slots.len()` keys: for each the best rule that is not dead, by its place among the rows that the engine
    /// was made of, or [`crate::NONE`].
    fn lookup(&self, keys: &[u64], dead: &BitSet, slots: &mut [u32]);

    /// Bytes held.
    fn bytes(&self) -> usize;
}

/// Makes an engine of rows of values and masks, best first, or leaves it to ours. The choice is what we would take.
pub type Maker = fn(Choice, &KeyPlan, &[u64], &[u64]) -> Option<Box<dyn Lookup>>;

/// Compiled rules in order of precedence: a rule's slot is its place in it.
#[derive(Debug)]
pub struct Base {
    plan: Arc<KeyPlan>,
    engine: Engine,
    ids: Vec<EntryId>,
    priorities: Vec<u16>,
}

impl Default for Base {
    fn default() -> Self {
        Self {
            plan: Arc::default(),
            engine: Engine::Scan(Scan::default()),
            ids: Vec::new(),
            priorities: Vec::new(),
        }
    }
}

impl Base {
    /// Puts an engine and its slots' ids and priorities together.
    #[must_use]
    pub fn new(plan: Arc<KeyPlan>, engine: Engine, ids: Vec<EntryId>, priorities: Vec<u16>) -> Self {
        debug_assert_eq!(ids.len(), priorities.len());
        Self { plan, engine, ids, priorities }
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The layout of the keys.
    #[must_use]
    pub fn plan(&self) -> &Arc<KeyPlan> {
        &self.plan
    }

    /// Looks up `slots.len()` keys: for each the best rule that is not dead, or [`crate::NONE`].
    #[inline]
    pub fn lookup(&self, keys: &[u64], dead: &BitSet, slots: &mut [u32]) {
        match &self.engine {
            Engine::Exact(engine) => engine.lookup(keys, dead, slots),
            Engine::Lpm(engine) => engine.lookup(keys, dead, slots),
            Engine::Mask(engine) => engine.lookup(keys, dead, slots),
            Engine::Scan(engine) => engine.lookup(keys, dead, slots),
            Engine::Foreign(engine) => engine.lookup(keys, dead, slots),
        }
    }

    /// The entry of a slot.
    #[must_use]
    #[inline]
    pub fn id(&self, slot: u32) -> EntryId {
        self.ids[slot as usize]
    }

    /// Makes the entries of slots, where there are any.
    #[inline]
    pub(crate) fn name(&self, slots: &mut [u32]) {
        for slot in slots.iter_mut().filter(|slot| **slot != NONE) {
            *slot = self.id(*slot);
        }
    }

    /// Prefetches what [`Base::name`] reads.
    #[inline]
    pub(crate) fn ask(&self, slots: &[u32]) {
        let last = self.ids.len().saturating_sub(1);
        slots.iter().for_each(|slot| prefetch(&self.ids, last.min(*slot as usize)));
    }

    /// The priority of a slot.
    #[must_use]
    #[inline]
    pub fn priority(&self, slot: u32) -> u16 {
        self.priorities[slot as usize]
    }

    /// Rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True without rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The engine `exact`, if the rules are looked up by it.
    #[must_use]
    pub(crate) fn exact(&self) -> Option<&Exact> {
        match &self.engine {
            Engine::Exact(engine) => Some(engine),
            _ => None,
        }
    }

    /// The engine's name.
    #[must_use]
    pub fn engine_name(&self) -> &'static str {
        match self.engine {
            Engine::Exact(_) => "exact",
            Engine::Lpm(_) => "lpm",
            Engine::Mask(_) => "mask",
            Engine::Scan(_) => "scan",
            Engine::Foreign(_) => "foreign",
        }
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let engine = match &self.engine {
            Engine::Exact(engine) => engine.bytes(),
            Engine::Lpm(engine) => engine.bytes(),
            Engine::Mask(engine) => engine.bytes(),
            Engine::Scan(engine) => engine.bytes(),
            Engine::Foreign(engine) => engine.bytes(),
        };
        engine + self.ids.len() * 4 + self.priorities.len() * 2
    }
}
