// SPDX-License-Identifier: Apache-2.0
//! Transactions. A request changes the rules step by step, and each step is logged. A valid request is
//! submitted to the data plane as one operation; an invalid request is rolled back.

use super::completed::{Before, Completed, Step};
use crate::async_messages::RemovedReason;
use crate::config::ModelConfig;
use crate::port::Port;
use crate::rules::records::Record;
use crate::rules::slot::Life;
use crate::rules::users::{Use, note_use, uses_any};
use crate::rules::{EntryOrigin, Mark, Rules, TableSet};
use flow::group::Group;
use flow::meter::Meter;
use flow::stateless::StatelessConfig;
use flow::{
    BridgeConfig, EntryChange, EntryId, FlowEntry, GroupId, Instructions, MeterId, Nanos, Operation, TableId,
};
use hashbrown::HashMap;
use std::sync::Arc;

/// An entry to add.
#[derive(Debug)]
pub(crate) struct NewEntry {
    /// The entry, whose ID is not set yet.
    pub entry: FlowEntry,
    /// Explicit low-latency mark of the flow-mod.
    pub explicit: Option<bool>,
    /// The identical entry that this one replaces.
    pub replaced: Option<EntryId>,
    /// Hash of priority and match in the table.
    pub hash: u32,
    /// Whether the counts of the replaced entry are kept.
    pub counts: Counts,
    /// What an earlier process recorded about the entry, if the entry is restored.
    pub origin: Option<EntryOrigin>,
}

/// Whether counts continue or start at 0 when an entry is replaced or modified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    Continue,
    Reset,
}

impl Counts {
    /// Returns whether counts continue, given the flag `reset_counts` of a flow-mod.
    pub fn by_flag(reset_counts: bool) -> Self {
        if reset_counts { Self::Reset } else { Self::Continue }
    }
}

/// A request in progress. It is ended by [`Transaction::complete`] or [`Transaction::roll_back`].
#[derive(Debug)]
pub(crate) struct Transaction<'a> {
    rules: &'a mut Rules,
    pub config: &'a ModelConfig,
    pub now: Nanos,
    work: Completed,
    /// By address: instructions of restored entries that use groups or meters, and the number of these
    /// entries that the groups and meters do not count as users yet.
    uncounted: HashMap<usize, (Arc<Instructions>, usize)>,
}

impl<'a> Transaction<'a> {
    pub fn new(rules: &'a mut Rules, config: &'a ModelConfig, now: Nanos) -> Self {
        Self { rules, config, now, work: Completed::default(), uncounted: HashMap::new() }
    }

    /// Returns the rules with the changes so far. The numbers of users of groups and meters may lack restored
    /// entries, which are counted later.
    pub fn rules(&self) -> &Rules {
        self.rules
    }

    /// Returns a shared copy of these instructions. No step is logged, because unused copies are discarded.
    pub fn share(&mut self, instructions: Instructions) -> Arc<Instructions> {
        self.rules.sharing.share(instructions)
    }

    /// Returns the shared copy of these instructions. If there is none yet, `instructions` becomes it.
    pub fn adopt(&mut self, instructions: &Arc<Instructions>) -> Arc<Instructions> {
        self.rules.sharing.adopt(instructions)
    }

    /// Reserves space for the changes of this many entries.
    pub fn reserve(&mut self, entries: usize) {
        self.work.changes.reserve(entries);
        self.work.log.reserve(entries);
    }

    /// Adds an entry to its table.
    pub fn add_entry(&mut self, new: NewEntry) -> EntryId {
        if let Some(old) = new.replaced {
            self.remove_entry(old, None);
        }
        let Rules { store, groups, meters, carried, .. } = &mut *self.rules;
        let instructions = &new.entry.instructions;
        if new.origin.is_none() {
            note_use(groups, meters, instructions, Use::Begins(1));
        } else if uses_any(instructions) {
            // Most restored entries share their instructions, so they are counted together.
            let address = Arc::as_ptr(instructions).addr();
            self.uncounted.entry(address).or_insert_with(|| (Arc::clone(instructions), 0)).1 += 1;
        }
        let learned = new.origin.is_some_and(|origin| origin.learned);
        let mark = Mark { explicit: new.explicit, learned };
        let created_ns = new.origin.map_or(self.now, |origin| origin.created_ns);
        let id = store.insert(new.entry, new.hash, mark, created_ns, new.origin.map(|origin| origin.serial));
        if let Some(old) = new.replaced.filter(|_| new.counts == Counts::Continue) {
            if let Some(Step::Removed { heir, .. }) = self.work.log.last_mut() {
                *heir = Some(id);
            }
            carried.inherit(id, old);
        }
        if let Some(entry) = store.entry(id) {
            self.work.changes.push(EntryChange::Add(Arc::clone(entry)));
        }
        self.work.log.push(Step::Added(id));
        self.work.changed.added += 1;
        id
    }

    /// Counts restored entries as users of their groups and meters. Must be called before anything reads or
    /// changes the numbers of users.
    fn count_users(&mut self) {
        let Rules { groups, meters, .. } = &mut *self.rules;
        for (_, (instructions, entries)) in self.uncounted.drain() {
            note_use(groups, meters, &instructions, Use::Begins(entries));
        }
    }

    /// Gives an entry new instructions. `explicit` is the mark that the flow-mod gives, if any.
    pub fn modify_entry(
        &mut self,
        id: EntryId,
        instructions: &Arc<Instructions>,
        explicit: Option<bool>,
        counts: Counts,
    ) {
        self.count_users();
        let Rules { store, groups, meters, carried, .. } = &mut *self.rules;
        let Some(slot) = store.slot(id) else { return };
        let (mark, Some(before)) = (slot.mark, slot.entry.clone()) else { return };
        let mut entry = FlowEntry::clone(&before);
        entry.instructions = Arc::clone(instructions);
        entry.low_latency = explicit.unwrap_or(before.low_latency);
        self.work.changes.push(EntryChange::Modify {
            id,
            table: entry.table,
            instructions: Arc::clone(instructions),
            low_latency: entry.low_latency,
            reset_counts: counts == Counts::Reset,
        });
        note_use(groups, meters, &before.instructions, Use::Ends);
        note_use(groups, meters, &entry.instructions, Use::Begins(1));
        store.set_entry(id, Arc::new(entry), mark.after(explicit));
        let step = Before { id, entry: before, mark, carried: carried.get(id) };
        self.work.log.push(Step::Modified(Box::new(step)));
        self.work.changed.modified += 1;
        if counts == Counts::Reset {
            // The data plane resets its own counters. The model discards only the counts inherited from
            // replaced entries.
            carried.forget(id);
        }
    }

    /// Sets the learned mark of an entry. Learning is never rolled back, so no step that can be undone is
    /// logged.
    pub fn set_learned(&mut self, id: EntryId, learned: bool) {
        let Some(slot) = self.rules.store.slot(id) else { return };
        self.set_mark(id, Mark { learned, ..slot.mark }, learned);
    }

    /// Sets the mark of an entry, and whether the entry is low-latency. No step is logged, because the change
    /// is never rolled back.
    pub fn set_mark(&mut self, id: EntryId, mark: Mark, low_latency: bool) {
        let Some(slot) = self.rules.store.slot(id) else { return };
        let Some(entry) = &slot.entry else { return };
        let mut entry = FlowEntry::clone(entry);
        entry.low_latency = low_latency;
        self.work.changes.push(EntryChange::Modify {
            id,
            table: entry.table,
            instructions: Arc::clone(&entry.instructions),
            low_latency,
            reset_counts: false,
        });
        self.rules.store.set_entry(id, Arc::new(entry), mark);
        self.work.learned.push(id);
    }

    /// Removes an entry from its table. `reason` is reported in the flow-removed message; with `None`, no
    /// message is sent.
    pub fn remove_entry(&mut self, id: EntryId, reason: Option<RemovedReason>) {
        let Some(was) = self.rules.store.slot(id).map(|s| s.life) else { return };
        self.rules.store.unlink(id);
        self.log_removal(id, was, reason);
    }

    /// Removes all entries of a table.
    pub fn empty_table(&mut self, table: TableId, reason: Option<RemovedReason>) {
        let ids = self.rules.store.unlink_all(table);
        self.reserve(ids.len());
        for (id, was) in ids {
            self.log_removal(id, was, reason);
        }
    }

    fn log_removal(&mut self, id: EntryId, was: Life, reason: Option<RemovedReason>) {
        self.count_users();
        let Rules { store, groups, meters, .. } = &mut *self.rules;
        let Some(entry) = store.entry(id) else { return };
        note_use(groups, meters, &entry.instructions, Use::Ends);
        self.work.changes.push(EntryChange::Remove { id, table: entry.table });
        self.work.log.push(Step::Removed { id, was, reason, heir: None });
        self.work.changed.removed += 1;
    }

    /// Removes the entries that `wanted` accepts. The scan stops once `limit` entries are found.
    pub fn remove_where(
        &mut self,
        limit: Option<usize>,
        wanted: impl Fn(&FlowEntry) -> bool,
        reason: Option<RemovedReason>,
    ) {
        let slots = self.rules.store.slots().iter().enumerate();
        let wanted = slots.filter(|(_, slot)| slot.listed().is_some_and(|entry| wanted(entry)));
        let ids: Vec<EntryId> =
            wanted.map(|(id, _)| EntryId(id as u32)).take(limit.unwrap_or(usize::MAX)).collect();
        for id in ids {
            self.remove_entry(id, reason);
        }
    }

    /// Adds or replaces a group. A replaced group keeps its number of users and its time of addition. The
    /// caller must then check the group with its chains.
    pub fn set_group(&mut self, group: &Arc<Group>) {
        self.count_users();
        let (id, groups) = (group.id, &mut self.rules.groups);
        let (since, users) = groups.get(id).map_or((self.now, 0), |old| (old.since, old.users));
        let old = groups.set(id, Some(Record { what: Arc::clone(group), since, users }));
        self.work.log.push(Step::Group(id, old));
        self.work.others.push(Operation::Group(Arc::clone(group)));
    }

    /// Removes a group to which no other group sends, and which no entry uses.
    pub fn remove_group(&mut self, id: GroupId) {
        self.count_users();
        self.work.log.push(Step::Group(id, self.rules.groups.set(id, None)));
        self.work.others.push(Operation::RemoveGroup(id));
    }

    /// Adds or replaces a meter. A replaced meter keeps its number of users and its time of addition.
    pub fn set_meter(&mut self, meter: Meter) {
        self.count_users();
        let (id, what) = (meter.id, Arc::new(meter));
        let meters = &mut self.rules.meters;
        let (since, users) = meters.get(&id).map_or((self.now, 0), |old| (old.since, old.users));
        let old = meters.insert(id, Record { what: Arc::clone(&what), since, users });
        self.work.log.push(Step::Meter(id, old));
        self.work.others.push(Operation::Meter(what));
    }

    /// Removes a meter that no entry uses.
    pub fn remove_meter(&mut self, id: MeterId) {
        self.count_users();
        self.work.log.push(Step::Meter(id, self.rules.meters.remove(&id)));
        self.work.others.push(Operation::RemoveMeter(id));
    }

    /// Changes an existing port.
    pub fn change_port(&mut self, port: flow::PortNo, change: impl FnOnce(&mut Port)) {
        let Some(port) = self.rules.ports.get_mut(&port) else { return };
        let before = port.clone();
        change(port);
        if *port == before {
            return;
        }
        if port.state() != before.state() {
            self.work.others.push(Operation::Port(port.state()));
        }
        self.work.log.push(Step::Port(Box::new(before)));
    }

    /// Replaces the settings of the ports for NORMAL. This step cannot be undone.
    pub fn set_bridge(&mut self, new: Option<Arc<BridgeConfig>>) {
        self.rules.bridge.clone_from(&new);
        self.work.others.push(Operation::Bridge(new));
    }

    /// Replaces the configuration of the stateless forwarder, or removes it.
    pub fn set_stateless(&mut self, new: Option<Arc<StatelessConfig>>) {
        let before = std::mem::replace(&mut self.rules.stateless, new);
        self.work.stateless_config.get_or_insert(before);
    }

    /// Changes the configuration of the stateless forwarder. If there is none, `edit` gets an empty
    /// configuration.
    pub fn edit_stateless(&mut self, edit: impl FnOnce(&mut StatelessConfig)) {
        let stateless = &mut self.rules.stateless;
        // The log shares the previous configuration with the rules, so the first edit of a transaction makes
        // a copy.
        self.work.stateless_config.get_or_insert_with(|| stateless.clone());
        edit(Arc::make_mut(stateless.get_or_insert_default()));
    }

    /// Replaces the set of pipeline tables, without removing entries.
    pub fn set_pipeline_tables(&mut self, tables: TableSet) {
        let before = std::mem::replace(&mut self.rules.pipeline_tables, tables);
        self.work.tables.get_or_insert(before);
    }

    /// Returns the changes of entries and the other operations so far.
    pub fn operations(&self) -> (&[EntryChange], &[Operation]) {
        (&self.work.changes, &self.work.others)
    }

    /// Ends the transaction and keeps its changes.
    pub fn complete(mut self) -> Completed {
        self.count_users();
        self.rules.store.tidy();
        self.work
    }

    /// Ends the transaction and restores the rules to their state before the transaction.
    pub fn roll_back(mut self) {
        self.count_users();
        let Rules { store, carried, groups, meters, ports, stateless, pipeline_tables, .. } = self.rules;
        if let Some(before) = self.work.stateless_config {
            *stateless = before;
        }
        if let Some(before) = self.work.tables {
            *pipeline_tables = before;
        }
        for step in self.work.log.into_iter().rev() {
            match step {
                Step::Added(id) => {
                    if let Some(entry) = store.entry(id) {
                        note_use(groups, meters, &entry.instructions, Use::Ends);
                    }
                    store.unlink(id);
                    store.release(id);
                    carried.forget(id);
                }
                Step::Removed { id, was, .. } => {
                    store.relink(id, was);
                    if let Some(entry) = store.entry(id) {
                        note_use(groups, meters, &entry.instructions, Use::Begins(1));
                    }
                }
                Step::Group(id, before) => drop(groups.set(id, before)),
                Step::Meter(id, Some(before)) => drop(meters.insert(id, before)),
                Step::Meter(id, None) => drop(meters.remove(&id)),
                Step::Port(before) => drop(ports.insert(before.desc.number, *before)),
                Step::Modified(before) => {
                    let Before { id, entry, mark, carried: counts } = *before;
                    if let Some(now) = store.entry(id) {
                        note_use(groups, meters, &now.instructions, Use::Ends);
                    }
                    note_use(groups, meters, &entry.instructions, Use::Begins(1));
                    store.set_entry(id, entry, mark);
                    carried.set(id, counts);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::group::GroupType;
    use flow::{Action, Field, FieldMatch, FlowMod, Match};

    fn add(transaction: &mut Transaction<'_>, number: u32) -> EntryId {
        add_with(transaction, number, Instructions::default(), None)
    }

    /// Adds an entry. `restored` makes it an entry of an earlier process, and has the entry that it replaces.
    fn add_with(
        transaction: &mut Transaction<'_>,
        number: u32,
        instructions: Instructions,
        restored: Option<Option<EntryId>>,
    ) -> EntryId {
        let matching = Match::new([FieldMatch::exact(Field::Metadata, number.into())]).unwrap_or_default();
        let flow = FlowMod { table: Some(TableId(0)), matching, instructions, ..FlowMod::default() };
        let entry = flow.into_entry(Arc::new).unwrap_or_else(|| unreachable!());
        let hash = transaction.rules().store.hash(&entry);
        let (serial, created_ns) = (transaction.rules().store.slots().len() as u64, Nanos(0));
        let origin = restored.map(|_| EntryOrigin { serial, created_ns, learned: false });
        let (replaced, counts) = (restored.flatten(), Counts::Reset);
        transaction.add_entry(NewEntry { entry, explicit: None, replaced, hash, counts, origin })
    }

    #[test]
    fn restored_entries_are_users_of_their_groups_and_meters() {
        const GROUP: GroupId = GroupId(1);
        const METER: MeterId = MeterId(2);
        let (mut rules, config) = (Rules::new(4), ModelConfig::default());
        let uses = || Instructions {
            meter: Some(METER),
            ..Instructions::apply(vec![Action::Group(GROUP), Action::Group(GROUP)])
        };
        let meter = || Meter { id: METER, packets: false, stats: false, burst: false, bands: Vec::new() };
        let group = Arc::new(Group { id: GROUP, kind: GroupType::Indirect, buckets: Vec::new() });
        let users = |rules: &Rules| {
            let of_meter = rules.meters.get(&METER).map(|record| record.users);
            (rules.groups.get(GROUP).map(|record| record.users), of_meter)
        };
        let mut transaction = Transaction::new(&mut rules, &config, Nanos(0));
        transaction.set_group(&group);
        transaction.set_meter(meter());
        let first = add_with(&mut transaction, 0, uses(), None);
        drop(transaction.complete());
        assert_eq!(users(&rules), (Some(1), Some(1)));
        let restore = |transaction: &mut Transaction<'_>, number| {
            add_with(transaction, number, uses(), Some(None));
        };
        // Groups and meters that replace others have their users, also if a transaction is rolled back.
        let mut transaction = Transaction::new(&mut rules, &config, Nanos(0));
        (1..3).for_each(|number| restore(&mut transaction, number));
        transaction.set_group(&group);
        transaction.set_meter(meter());
        (3..6).for_each(|number| restore(&mut transaction, number));
        transaction.roll_back();
        assert_eq!(users(&rules), (Some(1), Some(1)));
        let mut transaction = Transaction::new(&mut rules, &config, Nanos(0));
        (1..3).for_each(|number| restore(&mut transaction, number));
        transaction.remove_group(GROUP);
        transaction.remove_meter(METER);
        assert_eq!(users(transaction.rules()), (None, None));
        transaction.roll_back();
        assert_eq!(users(&rules), (Some(1), Some(1)));
        // If a restored entry replaces another one, only one of them is a user.
        let mut transaction = Transaction::new(&mut rules, &config, Nanos(0));
        let second = add_with(&mut transaction, 1, uses(), Some(None));
        add_with(&mut transaction, 1, uses(), Some(Some(second)));
        add_with(&mut transaction, 2, Instructions::default(), Some(None));
        drop(transaction.complete());
        assert_eq!(users(&rules), (Some(2), Some(2)));
        let mut transaction = Transaction::new(&mut rules, &config, Nanos(0));
        restore(&mut transaction, 3);
        transaction.remove_entry(first, None);
        assert_eq!(users(transaction.rules()), (Some(2), Some(2)));
        drop(transaction.complete());
        assert_eq!(users(&rules), (Some(2), Some(2)));
    }

    #[test]
    fn removed_entries_use_no_memory_after_a_transaction() {
        let (mut rules, config) = (Rules::new(4), ModelConfig::default());
        let places = |rules: &Rules| rules.store.table(TableId(0)).places();
        for round in 0..1_000 {
            let mut transaction = Transaction::new(&mut rules, &config, Nanos(0));
            let id = add(&mut transaction, round);
            drop(transaction.complete());
            let mut transaction = Transaction::new(&mut rules, &config, Nanos(0));
            match round % 2 {
                0 => transaction.remove_entry(id, None),
                _ => transaction.empty_table(TableId(0), None),
            }
            drop(transaction.complete());
            assert!(places(&rules) < 100, "round {round}: {}", places(&rules));
        }
        // The places stay while the transaction may be rolled back.
        let mut transaction = Transaction::new(&mut rules, &config, Nanos(0));
        for number in 0..500 {
            add(&mut transaction, number);
        }
        transaction.empty_table(TableId(0), None);
        assert!(transaction.rules().store.table(TableId(0)).places() >= 500);
        transaction.roll_back();
        assert_eq!(rules.store.table(TableId(0)).len(), 0);
        drop(Transaction::new(&mut rules, &config, Nanos(0)).complete());
        assert!(places(&rules) < 100, "{}", places(&rules));
    }
}
