// SPDX-License-Identifier: Apache-2.0
//! A table with the views of its workers, and a plain list of the same rules for comparison.

use crate::packet::Packet;
use fastrand::Rng;
use flow::{EntryId, FlowEntry, Match, TableId};
use std::collections::BTreeMap;
use std::sync::Arc;
use tables::compile::Job;
use tables::rule_table::RuleChange;
use tables::{RuleTable, Table, TableUpdate};

const WORKERS: usize = 2;

/// Number of additions that starts a background compilation.
const LEAST: usize = 12;

/// A table under test.
#[derive(Default)]
pub struct Rig {
    /// Control side of the table.
    pub rule_table: RuleTable,
    views: [Table; WORKERS],
    /// Rules by ID. IDs are in the order of addition.
    pub entries: BTreeMap<EntryId, Arc<FlowEntry>>,
    next_id: EntryId,
    operations: usize,
    /// Number of operations that were sent as swaps.
    pub swaps: usize,
    /// Number of operations that a background compilation takes, or `None` without background compilations.
    background: Option<usize>,
    job: Option<(usize, Job)>,
}

impl Rig {
    /// Creates a table. `background` is the number of operations that a background compilation takes.
    pub fn with_background_jobs(background: Option<usize>) -> Self {
        Self { background, ..Self::default() }
    }

    /// Adds rules as one operation.
    pub fn add(&mut self, rules: impl IntoIterator<Item = (u16, Match)>) -> Vec<EntryId> {
        let mut ids = Vec::new();
        let mut changes = Vec::new();
        for (priority, matching) in rules {
            let entry = Arc::new(entry(self.next_id, priority, matching));
            ids.push(self.next_id);
            changes.push(RuleChange::Add(Arc::clone(&entry)));
            self.entries.insert(self.next_id, entry);
            self.next_id.0 += 1;
        }
        self.apply(&changes);
        ids
    }

    /// Removes entries as one operation.
    pub fn remove(&mut self, ids: &[EntryId]) {
        ids.iter().for_each(|id| drop(self.entries.remove(id)));
        self.apply(&ids.iter().map(|id| RuleChange::Remove(*id)).collect::<Vec<_>>());
    }

    fn apply(&mut self, changes: &[RuleChange]) {
        // Every third operation also changes many rules in other tables.
        self.operations += 1;
        let in_all = if self.operations.is_multiple_of(3) { 1_000 } else { changes.len() };
        let updates = self.rule_table.change(changes, in_all, WORKERS).unwrap();
        self.swaps += usize::from(updates[0].iter().any(|update| matches!(update, TableUpdate::Swap(_))));
        self.apply_updates(updates);
        let Some(later) = self.background else { return };
        if let Some((_, job)) = self.job.take_if(|(due, _)| *due <= self.operations) {
            self.rule_table.install(job.run());
        }
        if let Some(updates) = self.rule_table.catch_up(WORKERS).unwrap() {
            self.apply_updates(updates);
        }
        if self.job.is_none() {
            self.job = self.rule_table.background_job(LEAST).map(|job| (self.operations + later, job));
        }
    }

    fn apply_updates(&mut self, updates: Vec<Vec<TableUpdate>>) {
        for (view, updates) in self.views.iter_mut().zip(updates) {
            for mut update in updates {
                view.apply(&mut update);
            }
        }
    }

    /// Looks up packets in all views, which must agree.
    pub fn lookup(&self, packets: &[Packet]) -> Vec<EntryId> {
        let plan = self.views[0].plan();
        let keys: Vec<u64> = packets.iter().flat_map(|packet| packet.key(plan)).collect();
        let mut found = vec![EntryId::NONE; packets.len()];
        let mut again = found.clone();
        self.views[0].lookup(&keys, &mut found);
        self.views[1].lookup(&keys, &mut again);
        assert_eq!(found, again, "the views return different entries");
        found
    }

    /// Compares lookups with a linear search.
    pub fn check(&self, packets: &[Packet], what: &str) {
        let found = self.lookup(packets);
        for (packet, id) in packets.iter().zip(found) {
            let right = plain_best(self.entries.values(), packet);
            let show = |id| self.entries.get(&id).map(|entry| (id, entry.priority, &entry.matching));
            assert_eq!(
                id,
                right,
                "{what}: {} found {:?}, expected {:?} for {packet:x?}",
                self.rule_table.engine_name(),
                show(id),
                show(right)
            );
        }
    }

    /// Returns a random active rule.
    pub fn any_entry(&self, rng: &mut Rng) -> Option<&Arc<FlowEntry>> {
        let from = EntryId(rng.u32(..self.next_id.0.max(1)));
        self.entries.range(from..).chain(self.entries.range(..from)).next().map(|(_, entry)| entry)
    }

    /// Returns packets close to the rules: each matches a rule, may have the headers of another rule, and has
    /// some flipped bits.
    pub fn packets(&self, rng: &mut Rng, count: usize) -> Vec<Packet> {
        (0..count)
            .map(|_| {
                let mut packet = self
                    .any_entry(rng)
                    .map_or_else(Packet::default, |entry| Packet::matching(rng, &entry.matching));
                if let Some(other) = self.any_entry(rng).filter(|_| rng.bool()).cloned() {
                    let other = Packet::matching(rng, &other.matching);
                    packet.headers |= other.headers;
                    for (field, value) in other.values {
                        packet.values.entry(field).or_insert(value);
                    }
                }
                for (field, value) in &mut packet.values {
                    if rng.u8(..4) == 0 {
                        *value ^= 1 << rng.u32(..u32::from(field.location().length_bits));
                    }
                }
                if rng.u8(..16) == 0 {
                    packet.headers &= rng.u32(..);
                    let headers = packet.headers;
                    packet
                        .values
                        .retain(|field, _| headers & field.location().needs == field.location().needs);
                }
                packet
            })
            .collect()
    }
}

/// Returns the matching entry with the highest priority, or the first of several. `entries` must be in the
/// order of addition.
pub fn plain_best<'e>(entries: impl Iterator<Item = &'e Arc<FlowEntry>>, packet: &Packet) -> EntryId {
    let fits = |entry: &FlowEntry| {
        let mut conditions = entry.matching.fields();
        conditions.all(|c| packet.value(c.field).is_some_and(|value| value & c.mask == c.value))
    };
    let mut best: Option<&FlowEntry> = None;
    for entry in entries.filter(|entry| fits(entry)) {
        if best.is_none_or(|best| entry.priority > best.priority) {
            best = Some(entry);
        }
    }
    best.map_or(EntryId::NONE, |entry| entry.id)
}

/// Returns an entry without instructions.
pub fn entry(id: EntryId, priority: u16, matching: Match) -> FlowEntry {
    FlowEntry {
        id,
        table: TableId(0),
        priority,
        matching,
        instructions: Arc::default(),
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        cookie: 0,
        flags: flow::EntryFlags::default(),
        low_latency: false,
    }
}
