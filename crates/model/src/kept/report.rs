// SPDX-License-Identifier: Apache-2.0
//! Reports to the journal: the changes of a transaction, and the whole state in parts.

use super::{Journal, Keeping, KeptChange, KeptEntry, StatePart};
use crate::changes::completed::{Completed, Step};
use crate::macs;
use crate::model::Model;
use crate::port::PortConfig;
use crate::rules::Rules;
use crate::rules::slot::{Life, Slot};
use dataplane::DataPlane;
use flow::operation::MAC_TABLE;
use flow::{EntryId, FlowEntry, Nanos};
use std::sync::Arc;

/// Returns the changes of a complete transaction that has not been submitted yet. `rules` are the rules after
/// the transaction. The last value of an item that changed several times may be reported several times.
pub(crate) fn changes_of(completed: &Completed, rules: &Rules) -> Vec<KeptChange> {
    let mut changes = Vec::with_capacity(completed.log.len());
    for step in &completed.log {
        changes.extend(match step {
            Step::Added(id) => entry(rules, *id),
            Step::Modified(before) => entry(rules, before.id),
            // The journal does not know an entry that the same transaction added.
            Step::Removed { was: Life::Fresh, .. } => None,
            Step::Removed { id, .. } => rules.store.slot(*id).and_then(gone),
            Step::Group(id, _) => Some(match rules.groups.get(*id) {
                Some(record) => KeptChange::Group(Arc::clone(&record.what)),
                None => KeptChange::GroupGone(*id),
            }),
            Step::Meter(id, _) => Some(match rules.meters.get(id) {
                Some(record) => KeptChange::Meter(Arc::clone(&record.what)),
                None => KeptChange::MeterGone(*id),
            }),
            Step::Port(before) => {
                let after = rules.ports.get(&before.desc.number);
                let changed = after.filter(|after| after.config != before.config);
                changed.map(|after| KeptChange::Port(after.desc.number, after.config))
            }
        });
    }
    changes.extend(completed.learned.iter().filter_map(|id| entry(rules, *id)));
    if completed.stateless_config.as_ref().is_some_and(|before| *before != rules.stateless) {
        changes.push(KeptChange::Stateless(rules.stateless.clone()));
    }
    if completed.tables.is_some_and(|before| before != rules.pipeline_tables) {
        changes.push(KeptChange::Tables(rules.pipeline_tables));
    }
    changes
}

/// Returns the value of an entry that is in its table.
fn entry(rules: &Rules, id: EntryId) -> Option<KeptChange> {
    value(rules.store.slot(id)?)
}

fn value(slot: &Slot) -> Option<KeptChange> {
    let entry = slot.listed()?;
    if entry.table != MAC_TABLE {
        return KeptEntry::of(slot).map(KeptChange::Entry);
    }
    let (vid, mac) = macs::address(entry);
    Some(KeptChange::Mac { vid, mac, port: macs::port(entry)? })
}

fn gone(slot: &Slot) -> Option<KeptChange> {
    let entry: &FlowEntry = slot.entry.as_ref()?;
    Some(match entry.table {
        MAC_TABLE => {
            let (vid, mac) = macs::address(entry);
            KeptChange::MacGone { vid, mac }
        }
        _ => KeptChange::EntryGone(slot.serial),
    })
}

impl<D: DataPlane> Model<D> {
    /// Attaches a journal, which gets all later changes. `first` are changes that it must get before them.
    pub fn attach_journal(&mut self, now: Nanos, journal: Box<dyn Journal>, first: Vec<KeptChange>) {
        self.keeping = Keeping { journal: Some(journal), report: None };
        self.keeping.record(now, self.plane.version(), first);
    }

    /// Returns whether a barrier for this version may be answered: the version is active on all workers, and
    /// its changes are kept if the journal promises that.
    pub fn is_settled(&mut self, version: flow::RuleVersion) -> bool {
        self.is_applied(version) && self.keeping.is_kept(version)
    }

    /// Returns the whole state that a restart must keep. Entries come in the order of their addition.
    #[must_use]
    pub fn kept_state(&self) -> Vec<KeptChange> {
        let mut changes = self.kept_settings();
        let slots = self.rules.store.slots();
        let mut listed: Vec<&Slot> = slots.iter().filter(|slot| slot.listed().is_some()).collect();
        listed.sort_by_key(|slot| slot.serial);
        changes.extend(listed.into_iter().filter_map(value));
        changes
    }

    /// Returns the kept state except for entries.
    fn kept_settings(&self) -> Vec<KeptChange> {
        let rules = &self.rules;
        let mut changes = vec![
            KeptChange::Stateless(rules.stateless.clone()),
            KeptChange::Tables(rules.pipeline_tables),
            KeptChange::DropFragments(self.settings().drop_fragments),
            KeptChange::Standalone(self.config.standalone),
        ];
        let ports = rules.ports.values().filter(|port| port.config != PortConfig::default());
        changes.extend(ports.map(|port| KeptChange::Port(port.desc.number, port.config)));
        changes.extend(rules.meters.values().map(|record| KeptChange::Meter(Arc::clone(&record.what))));
        let groups = rules.groups.records().values();
        changes.extend(groups.map(|record| KeptChange::Group(Arc::clone(&record.what))));
        changes
    }

    /// Reports the next part of the state, if the journal has asked for it. Returns whether more parts
    /// remain.
    pub(crate) fn report_state(&mut self, now: Nanos) -> bool {
        let Some(journal) = &mut self.keeping.journal else { return false };
        let Some(request) = journal.state_request() else { return false };
        let begun = self.keeping.report.filter(|(number, _)| *number == request.number);
        let is_first = begun.is_none();
        let mut changes = if is_first { self.kept_settings() } else { Vec::new() };
        let begin = begun.map_or(0, |(_, next)| next);
        let slots = self.rules.store.slots();
        let end = slots.len().min(begin.saturating_add(request.entries.max(1)));
        changes.extend(slots.get(begin..end).unwrap_or_default().iter().filter_map(value));
        let is_last = end == slots.len();
        // The slots of entries that are added later are beyond `end`, or were free. The journal gets such
        // entries as changes.
        self.keeping.report = (!is_last).then_some((request.number, end));
        if let Some(journal) = &mut self.keeping.journal {
            journal.state(now, StatePart { number: request.number, changes, is_first, is_last });
        }
        !is_last
    }
}
