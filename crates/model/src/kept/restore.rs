// SPDX-License-Identifier: Apache-2.0
//! A start with the state that an earlier process has kept.

use super::{KeptChange, KeptEntry};
use crate::changes::transaction::Transaction;
use crate::changes::{self, Change, GroupCommand, MeterCommand};
use crate::error::ModelError;
use crate::model::Model;
use crate::port::PortConfig;
use crate::rules::slot::Life;
use crate::rules::{EntryOrigin, TableSet};
use dataplane::{DataPlane, MacSeen};
use flow::group::Group;
use flow::meter::Meter;
use flow::operation::MAC_TABLE;
use flow::stateless::StatelessConfig;
use flow::validate::{ValidateError, validate_instructions};
use flow::{EntryFlags, EntryId, FlowEntry, GroupId, Instructions, Match, Nanos, PortNo, Settings, TableId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Maximum number of refusals whose reasons are reported.
const REASONS_MAX: usize = 10;

/// A flow entry to restore. The model sets its ID and whether it is low-latency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredEntry {
    /// Priority.
    pub priority: u16,
    /// Match.
    pub matching: Match,
    /// Index of the entry's table and instructions in the list with the number [`RestoredPart::list`].
    pub instructions: usize,
    /// Idle timeout in seconds, or 0 for none.
    pub idle_timeout_s: u16,
    /// Hard timeout in seconds after `origin.created_ns`, or 0 for none.
    pub hard_timeout_s: u16,
    /// Cookie.
    pub cookie: u64,
    /// Flags of the flow-mod that added the entry.
    pub flags: EntryFlags,
    /// What the earlier process recorded.
    pub origin: EntryOrigin,
}

/// Instructions of entries to restore, and the table of these entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredInstructions {
    /// Table.
    pub table: TableId,
    /// The instructions.
    pub instructions: Arc<Instructions>,
    /// Low-latency mark of the flow-mods that added the entries.
    pub explicit: Option<bool>,
    /// Why the instructions are invalid by the rules of [`flow::validate`], or `None` if they are valid. The
    /// thread that decodes them must check them, because the model does not.
    pub invalid: Option<ValidateError>,
}

/// Some of the flow entries to restore.
///
/// Many entries have equal instructions. Each thread that decodes entries makes a list of distinct
/// instructions, and entries have an index into it. Reference counts would be slower, because two threads
/// would change them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoredPart {
    /// Number of the list to which this part adds instructions, and to which its entries refer. Parts of one
    /// list must come in the order in which they were decoded.
    pub list: usize,
    /// Instructions that are added to the list.
    pub instructions: Vec<RestoredInstructions>,
    /// Entries by ascending serial number.
    pub entries: Vec<RestoredEntry>,
}

/// Flow entries to restore.
pub struct RestoredEntries {
    /// Number of kept entries. Entries that are missing in `parts` cannot be decoded.
    pub count: usize,
    /// Entries by ascending serial number, in parts of any size. They may be decoded while the model restores
    /// those before them.
    pub parts: Box<dyn Iterator<Item = RestoredPart> + Send>,
}

impl Default for RestoredEntries {
    fn default() -> Self {
        Self { count: 0, parts: Box::new(std::iter::empty()) }
    }
}

impl fmt::Debug for RestoredEntries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestoredEntries").field("count", &self.count).finish_non_exhaustive()
    }
}

impl From<Vec<RestoredPart>> for RestoredEntries {
    fn from(parts: Vec<RestoredPart>) -> Self {
        Self { count: parts.iter().map(|part| part.entries.len()).sum(), parts: Box::new(parts.into_iter()) }
    }
}

/// Kept state to restore.
#[derive(Debug, Default)]
pub struct KeptState {
    /// Flow entries.
    pub entries: RestoredEntries,
    /// Learned MACs: VLAN ID, address and port.
    pub macs: Vec<(u16, [u8; 6], PortNo)>,
    /// Groups in any order.
    pub groups: Vec<Group>,
    /// Meters.
    pub meters: Vec<Meter>,
    /// Configurations of ports.
    pub ports: Vec<(PortNo, PortConfig)>,
    /// Configuration of the stateless forwarder; `None` leaves it unchanged.
    pub stateless: Option<Option<Arc<StatelessConfig>>>,
    /// Tables of the pipeline; `None` leaves them unchanged.
    pub tables: Option<TableSet>,
    /// Whether IP fragments are dropped.
    pub drop_fragments: bool,
    /// Whether the datapath forwarded as a learning switch.
    pub standalone: bool,
}

/// Result of restoring a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// Flow entries restored.
    pub flows: usize,
    /// Learned MACs restored.
    pub macs: usize,
    /// Groups restored.
    pub groups: usize,
    /// Meters restored.
    pub meters: usize,
    /// Flow entries that cannot be decoded. They are lost.
    pub undecodable: usize,
    /// Number of items that the datapath refused. They are lost.
    pub refused: usize,
    /// The first refusals, with their reasons.
    pub reasons: Vec<String>,
    /// The refused items, as changes for the journal that kept them.
    pub gone: Vec<KeptChange>,
}

impl RestoreReport {
    fn refuse(&mut self, what: &str, error: &ModelError, gone: KeptChange) {
        self.refused += 1;
        self.gone.push(gone);
        if self.reasons.len() < REASONS_MAX {
            self.reasons.push(format!("{what}: {error}"));
        }
    }
}

/// The part of a kept state that depends on the ports, and the report about the other part.
#[derive(Debug)]
#[must_use]
pub struct PartlyRestored {
    report: RestoreReport,
    ports: Vec<(PortNo, PortConfig)>,
    macs: Vec<(u16, [u8; 6], PortNo)>,
}

impl<D: DataPlane> Model<D> {
    /// Replaces the entries, groups and meters of a fresh model by a kept state. Ports must have been added.
    ///
    /// An item that the model refuses, for example because its limits have changed, is left out. MACs of
    /// ports without a link, or with more MACs than their limits allow, are left out silently.
    pub fn restore(&mut self, now: Nanos, state: KeptState) -> RestoreReport {
        let partly = self.restore_rules(now, state);
        self.restore_ports(now, partly)
    }

    /// Restores a kept state in a fresh model, except the configurations of ports and the learned MACs. The
    /// caller adds the ports before or after this call. Then it calls [`Model::restore_ports`], and only then
    /// attaches a journal.
    pub fn restore_rules(&mut self, now: Nanos, state: KeptState) -> PartlyRestored {
        let mut report = RestoreReport::default();
        self.config.standalone &= state.standalone;
        self.set_settings(Settings { drop_fragments: state.drop_fragments, ..self.settings() });
        if let Some(stateless) = state.stateless
            && let Err(error) = self.set_stateless(now, stateless)
        {
            let kept = KeptChange::Stateless(self.rules.stateless.clone());
            report.refuse("stateless forwarding", &error, kept);
        }
        report.meters = self.restore_all(now, state.meters, &mut report, |meter| {
            let gone = KeptChange::MeterGone(meter.id);
            (Change::Meter(MeterCommand::AddOrModify, meter), "meter", gone)
        });
        report.groups = self.restore_all(now, referenced_first(state.groups), &mut report, |group| {
            let gone = KeptChange::GroupGone(group.id);
            (Change::Group(GroupCommand::AddOrModify, group), "group", gone)
        });
        self.restore_entries(now, state.tables, state.entries, &mut report);
        PartlyRestored { report, ports: state.ports, macs: state.macs }
    }

    /// Restores the configurations of the ports and the learned MACs. Restarts the idle timeouts of all
    /// entries, because no packet could hit an entry before. Returns the report about the whole state.
    pub fn restore_ports(&mut self, now: Nanos, partly: PartlyRestored) -> RestoreReport {
        let PartlyRestored { mut report, ports, macs } = partly;
        self.expiry.restart_idle(now);
        for (number, config) in ports {
            // A port that is no longer configured has no configuration to restore.
            let _ = self.set_port_config(now, number, config);
        }
        self.restore_macs(now, &macs, &mut report);
        report
    }

    /// Restores items together, because each operation on a group or meter replaces the workers' table of all
    /// groups or meters. If an item is refused, restores them one by one. Returns the number of restored
    /// items.
    fn restore_all<T: Clone>(
        &mut self,
        now: Nanos,
        items: Vec<T>,
        report: &mut RestoreReport,
        change: impl Fn(T) -> (Change, &'static str, KeptChange),
    ) -> usize {
        let count = items.len();
        if self.bundle(now, items.iter().cloned().map(|item| change(item).0)).is_ok() {
            return count;
        }
        let mut restored = 0;
        for item in items {
            let (change, what, gone) = change(item);
            match self.change(now, change) {
                Ok(_) => restored += 1,
                Err(error) => report.refuse(what, &error, gone),
            }
        }
        restored
    }

    fn restore_entries(
        &mut self,
        now: Nanos,
        tables: Option<TableSet>,
        RestoredEntries { count, parts }: RestoredEntries,
        report: &mut RestoreReport,
    ) {
        self.rules.store.reserve(count);
        self.expiry.restart_idle(now);
        let mut transaction = Transaction::new(&mut self.rules, &self.config, now);
        transaction.reserve(count);
        clear(&mut transaction, tables);
        let (mut decoded, mut added) = (0, 0);
        let mut lists: BTreeMap<usize, Vec<ListedInstructions>> = BTreeMap::new();
        for RestoredPart { list, instructions, entries } in parts {
            let list = lists.entry(list).or_default();
            list.extend(instructions.into_iter().map(ListedInstructions::from));
            for entry in entries {
                let Some(instructions) = list.get_mut(entry.instructions) else { continue };
                decoded += 1;
                let serial = entry.origin.serial;
                match instructions.restore(&mut transaction, entry) {
                    Ok(()) => added += 1,
                    Err(error) => report.refuse("flow", &error, KeptChange::EntryGone(serial)),
                }
            }
        }
        report.undecodable = count.saturating_sub(decoded);
        let (changes, others) = transaction.operations();
        if self.plane.get_mut().check(changes, others).is_ok() {
            let completed = transaction.complete();
            self.commit(now, completed);
            report.flows = added;
            return;
        }
        // The data plane refuses the entries together, so find out which ones it refuses.
        let entries = added_entries(&transaction);
        transaction.roll_back();
        let cleared = self.transact::<ModelError>(now, |transaction| {
            clear(transaction, tables);
            Ok(())
        });
        // A data plane accepts removals.
        debug_assert!(cleared.is_ok());
        // Their instructions have passed the checks, and no group, meter or set of tables has changed since.
        for KeptEntry { entry, serial, created_ns, mark } in entries {
            let origin = EntryOrigin { serial, created_ns, learned: mark.learned };
            let entry = FlowEntry::clone(&entry);
            let restore = |transaction: &mut Transaction<'_>| {
                changes::restore(transaction, entry, mark.explicit, origin)
            };
            match self.transact(now, restore) {
                Ok(_) => report.flows += 1,
                Err(error) => report.refuse("flow", &error, KeptChange::EntryGone(serial)),
            }
        }
    }

    pub(crate) fn restore_macs(
        &mut self,
        now: Nanos,
        macs: &[(u16, [u8; 6], PortNo)],
        report: &mut RestoreReport,
    ) {
        let mut counts: BTreeMap<PortNo, u32> = BTreeMap::new();
        macs.iter().for_each(|(_, _, port)| *counts.entry(*port).or_default() += 1);
        // As after a change of the settings, a port with more MACs than its limit allows loses all of them.
        let bridge = self.rules.bridge.clone();
        let exceeds = |port: &PortNo| {
            let limit = bridge.as_ref().and_then(|bridge| bridge.ports.get(port)?.mac_limit);
            limit.is_some_and(|limit| counts.get(port).is_some_and(|count| *count > limit))
        };
        let plane = self.plane.get_mut();
        let mut transaction = Transaction::new(&mut self.rules, &self.config, now);
        for &(vid, mac, port) in macs.iter().filter(|(_, _, port)| !exceeds(port)) {
            self.macs.learn(MacSeen { vid, mac, port }, &mut transaction, &mut self.expiry, plane);
        }
        let completed = transaction.complete();
        self.commit(now, completed);
        report.macs = self.rules.store.table(MAC_TABLE).len();
        // The store must forget the others, or the next restart finds them again.
        let lost = macs.iter().filter(|(vid, mac, _)| self.macs.get(*vid, *mac).is_none());
        report.gone.extend(lost.map(|&(vid, mac, _)| KeptChange::MacGone { vid, mac }));
    }
}

/// Sets the tables of the pipeline, and removes the entries of a fresh model.
fn clear(transaction: &mut Transaction<'_>, tables: Option<TableSet>) {
    if let Some(tables) = tables {
        transaction.set_pipeline_tables(tables);
    }
    for table in TableId::of_controllers() {
        if transaction.rules().store.table(table).len() > 0 {
            transaction.empty_table(table, None);
        }
    }
}

/// Instructions of a list. They are checked for each entry until they pass.
struct ListedInstructions {
    restored: RestoredInstructions,
    /// The model's shared copy, if the instructions have passed the checks.
    shared: Option<Arc<Instructions>>,
}

impl From<RestoredInstructions> for ListedInstructions {
    fn from(restored: RestoredInstructions) -> Self {
        Self { restored, shared: None }
    }
}

impl ListedInstructions {
    /// Restores an entry with these instructions. A refused entry leaves no trace in the transaction.
    fn restore(
        &mut self,
        transaction: &mut Transaction<'_>,
        restored: RestoredEntry,
    ) -> Result<(), ModelError> {
        let RestoredInstructions { table, instructions, explicit, invalid } = &self.restored;
        if let Some(error) = invalid {
            return Err(error.clone().into());
        }
        let shared = match &self.shared {
            Some(shared) => shared,
            None => {
                debug_assert!(validate_instructions(*table, instructions).is_ok());
                self.shared.insert(changes::check_restored(transaction, instructions)?)
            }
        };
        let entry = FlowEntry {
            id: EntryId::default(),
            table: *table,
            priority: restored.priority,
            matching: restored.matching,
            instructions: Arc::clone(shared),
            idle_timeout_s: restored.idle_timeout_s,
            hard_timeout_s: restored.hard_timeout_s,
            cookie: restored.cookie,
            flags: restored.flags,
            low_latency: false,
        };
        changes::restore(transaction, entry, *explicit, restored.origin)
    }
}

/// Returns the entries that a transaction has added, by ascending serial number.
fn added_entries(transaction: &Transaction<'_>) -> Vec<KeptEntry> {
    let slots = transaction.rules().store.slots().iter();
    let mut added: Vec<_> = slots.filter(|slot| slot.life == Life::Fresh).filter_map(KeptEntry::of).collect();
    added.sort_by_key(|entry| entry.serial);
    added
}

/// Sorts groups so that each comes after the groups that it refers to. Groups of a loop come last.
fn referenced_first(groups: Vec<Group>) -> Vec<Group> {
    let mut waiting: BTreeMap<GroupId, Group> = groups.into_iter().map(|group| (group.id, group)).collect();
    let mut sorted = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let is_ready = |group: &Group| group.references().all(|other| !waiting.contains_key(&other));
        let ready: Vec<GroupId> =
            waiting.values().filter(|group| is_ready(group)).map(|group| group.id).collect();
        if ready.is_empty() {
            sorted.extend(std::mem::take(&mut waiting).into_values());
        }
        sorted.extend(ready.iter().filter_map(|id| waiting.remove(id)));
    }
    sorted
}
