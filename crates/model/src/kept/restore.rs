// SPDX-License-Identifier: Apache-2.0
//! A start with the state that an earlier process has kept.

use super::KeptChange;
use crate::changes::transaction::{Origin, Transaction};
use crate::changes::{self, GroupCommand, MeterCommand};
use crate::error::ModelError;
use crate::model::Model;
use crate::port::PortConfig;
use crate::rules::TableSet;
use dataplane::{DataPlane, MacSeen};
use flow::group::Group;
use flow::meter::Meter;
use flow::operation::MAC_TABLE;
use flow::stateless::StatelessConfig;
use flow::{FlowMod, GroupId, Nanos, PortNo, Settings, TableId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of refusals whose reasons are reported.
const REASONS_MAX: usize = 10;

/// A flow entry to restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredEntry {
    /// The flow-mod that adds the entry.
    pub flow: FlowMod,
    /// Serial number of the entry.
    pub serial: u64,
    /// Time at which the entry was added, by the clock of the new process.
    pub created_ns: Nanos,
    /// Whether the entry was low-latency because of its measured hit rate.
    pub learned: bool,
}

/// Kept state to restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptState {
    /// Flow entries in the order of their serial numbers.
    pub entries: Vec<RestoredEntry>,
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

impl<D: DataPlane> Model<D> {
    /// Replaces the entries, groups and meters of a fresh model by a kept state. Ports must have been added.
    ///
    /// An item that the model refuses, for example because its limits have changed, is left out. MACs of
    /// ports without a link are left out silently.
    pub fn restore(&mut self, now: Nanos, state: KeptState) -> RestoreReport {
        let mut report = RestoreReport::default();
        self.config.standalone &= state.standalone;
        self.set_settings(Settings { drop_fragments: state.drop_fragments, ..self.settings() });
        if let Some(stateless) = state.stateless
            && let Err(error) = self.set_stateless(now, stateless)
        {
            let kept = KeptChange::Stateless(self.rules.stateless.clone());
            report.refuse("stateless forwarding", &error, kept);
        }
        for (number, config) in state.ports {
            // A port that is no longer configured has no configuration to restore.
            let _ = self.set_port_config(now, number, config);
        }
        for meter in state.meters {
            let id = meter.id;
            match self.meter_mod(now, MeterCommand::AddOrModify, meter) {
                Ok(()) => report.meters += 1,
                Err(error) => report.refuse("meter", &error, KeptChange::MeterGone(id)),
            }
        }
        for group in referenced_first(state.groups) {
            let id = group.id;
            match self.group_mod(now, GroupCommand::AddOrModify, group) {
                Ok(()) => report.groups += 1,
                Err(error) => report.refuse("group", &error, KeptChange::GroupGone(id)),
            }
        }
        self.restore_entries(now, state.tables, state.entries, &mut report);
        self.restore_macs(now, &state.macs, &mut report);
        report
    }

    fn restore_entries(
        &mut self,
        now: Nanos,
        tables: Option<TableSet>,
        entries: Vec<RestoredEntry>,
        report: &mut RestoreReport,
    ) {
        let count = entries.len();
        self.rules.store.reserve(count);
        self.expiry.restart_idle(now);
        let begin = |transaction: &mut Transaction<'_>| {
            transaction.reserve(count);
            if let Some(tables) = tables {
                transaction.set_pipeline_tables(tables);
            }
            for table in TableId::of_controllers() {
                if transaction.rules().store.table(table).len() > 0 {
                    transaction.empty_table(table, None);
                }
            }
        };
        let mut refused = RestoreReport::default();
        let all = self.transact::<ModelError>(now, |transaction| {
            begin(transaction);
            for entry in &entries {
                add(transaction, entry, &mut refused);
            }
            Ok(())
        });
        if all.is_ok() {
            report.flows = count - refused.refused;
            report.refused += refused.refused;
            report.reasons.extend(refused.reasons);
            report.gone.extend(refused.gone);
            return;
        }
        // The data plane refuses the entries together, so find out which ones it refuses.
        let _ = self.transact::<ModelError>(now, |transaction| {
            begin(transaction);
            Ok(())
        });
        for entry in &entries {
            let done = self.transact(now, |transaction| restore_one(transaction, entry));
            match done {
                Ok(_) => report.flows += 1,
                Err(error) => report.refuse("flow", &error, KeptChange::EntryGone(entry.serial)),
            }
        }
    }

    fn restore_macs(&mut self, now: Nanos, macs: &[(u16, [u8; 6], PortNo)], report: &mut RestoreReport) {
        let plane = self.plane.get_mut();
        let mut transaction = Transaction::new(&mut self.rules, &self.config, now);
        for &(vid, mac, port) in macs {
            self.macs.learn(MacSeen { vid, mac, port }, &mut transaction, &mut self.expiry, plane);
        }
        let completed = transaction.complete();
        self.commit(now, completed);
        report.macs = self.rules.store.table(MAC_TABLE).len();
    }
}

/// Adds an entry, or reports why it is refused. A refused entry leaves no trace in the transaction.
fn add(transaction: &mut Transaction<'_>, entry: &RestoredEntry, report: &mut RestoreReport) {
    if let Err(error) = restore_one(transaction, entry) {
        report.refuse("flow", &error, KeptChange::EntryGone(entry.serial));
    }
}

fn restore_one(transaction: &mut Transaction<'_>, entry: &RestoredEntry) -> Result<(), ModelError> {
    let RestoredEntry { flow, serial, created_ns, learned } = entry;
    let origin = Origin { serial: *serial, created_ns: *created_ns, learned: *learned };
    changes::restore(transaction, flow.clone(), origin)
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
