// SPDX-License-Identifier: Apache-2.0
//! Compiled rules of a table, immutable and shared by all workers.

use crate::exact::Exact;
use crate::lpm::Lpm;
use crate::mask::Mask;
use crate::prefetch::prefetch;
use crate::scan::Scan;
use crate::{BitSet, KeyPlan, NONE};
use flow::EntryId;
use std::fmt;
use std::sync::Arc;

/// Lookup structure of a base.
#[derive(Debug)]
pub enum Engine {
    /// For rules of one mask, and rules that match everything.
    Exact(Exact),
    /// For rules that are prefixes of one field.
    Lpm(Lpm),
    /// For arbitrary rules.
    Mask(Mask),
    /// For arbitrary rules of a small table.
    Scan(Scan),
    /// An engine from outside this crate, for comparison in benchmarks.
    Foreign(Box<dyn Lookup>),
}

/// An engine from outside this crate.
pub trait Lookup: fmt::Debug + Send + Sync {
    /// Looks up `slots.len()` keys. Stores for each key the best rule that is not in `tombstones`, as its
    /// index in the engine's rows, or [`crate::NONE`].
    fn lookup(&self, keys: &[u64], tombstones: &BitSet, slots: &mut [u32]);

    /// Returns the memory size in bytes.
    fn bytes(&self) -> usize;
}

/// Compiled rules in order of precedence. A slot is a rule's index in this order.
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
    /// Creates a base from an engine, and the entry ID and priority of each slot.
    #[must_use]
    pub fn new(plan: Arc<KeyPlan>, engine: Engine, ids: Vec<EntryId>, priorities: Vec<u16>) -> Self {
        debug_assert_eq!(ids.len(), priorities.len());
        Self { plan, engine, ids, priorities }
    }

    /// Returns the engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the layout of the keys.
    #[must_use]
    #[inline]
    pub fn plan(&self) -> &Arc<KeyPlan> {
        &self.plan
    }

    /// Looks up `slots.len()` keys. Stores for each key the slot of the best rule that is not in
    /// `tombstones`, or [`crate::NONE`].
    #[inline]
    pub fn lookup(&self, keys: &[u64], tombstones: &BitSet, slots: &mut [u32]) {
        match &self.engine {
            Engine::Exact(engine) => engine.lookup(keys, tombstones, slots),
            Engine::Lpm(engine) => engine.lookup(keys, tombstones, slots),
            Engine::Mask(engine) => engine.lookup(keys, tombstones, slots),
            Engine::Scan(engine) => engine.lookup(keys, tombstones, slots),
            Engine::Foreign(engine) => engine.lookup(keys, tombstones, slots),
        }
    }

    /// Returns the entry ID of a slot.
    #[must_use]
    #[inline]
    pub fn id(&self, slot: u32) -> EntryId {
        self.ids[slot as usize]
    }

    /// Stores the entry ID of each slot in `ids`. A slot of [`NONE`] gives [`EntryId::NONE`].
    #[inline]
    pub fn entries(&self, slots: &[u32], ids: &mut [EntryId]) {
        for (slot, id) in slots.iter().zip(ids) {
            *id = if *slot == NONE { EntryId::NONE } else { self.id(*slot) };
        }
    }

    /// Prefetches the entry IDs that [`Base::entries`] reads.
    #[inline]
    pub fn prefetch_ids(&self, slots: &[u32]) {
        let last = self.ids.len().saturating_sub(1);
        slots.iter().for_each(|slot| prefetch(&self.ids, last.min(*slot as usize)));
    }

    /// Returns the priority of a slot.
    #[must_use]
    #[inline]
    pub fn priority(&self, slot: u32) -> u16 {
        self.priorities[slot as usize]
    }

    /// Returns the number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Returns the engine `exact`, if the base uses it.
    #[must_use]
    pub fn exact(&self) -> Option<&Exact> {
        match &self.engine {
            Engine::Exact(engine) => Some(engine),
            _ => None,
        }
    }

    /// Returns the name of the engine.
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

    /// Returns the memory size in bytes.
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
