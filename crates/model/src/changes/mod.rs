// SPDX-License-Identifier: Apache-2.0
//! Requests that change the rules.
//!
//! A [`Transaction`] is one or several requests in progress. Each kind of request has a file with a function
//! `apply`, which checks the request and changes the rules through the transaction. `Model` submits the
//! complete transaction to the data plane.
//!
//! Begin with [`Change`] and [`apply`], then `transaction.rs` and `completed.rs`.

pub(crate) mod completed;
mod flow_mod;
mod group_mod;
mod meter_mod;
mod pipeline_tables;
mod port_mod;
pub(crate) mod stateless;
pub(crate) mod transaction;

pub use completed::Changed;
pub(crate) use flow_mod::{check_restored, restore};
pub use group_mod::GroupCommand;
pub use meter_mod::MeterCommand;
pub use port_mod::PortMod;

use crate::error::ModelError;
use crate::rules::{Rules, TableSet};
use flow::FlowMod;
use flow::group::Group;
use flow::meter::Meter;
use flow::stateless::StatelessChange;
use flow::syntax::{FileLine, RecordCommand};
use transaction::Transaction;

/// Number of entries above which a request is long.
pub(crate) const LONG_ENTRIES: usize = 4_096;

/// A request that changes the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A flow-mod.
    Flow(FlowMod),
    /// A group-mod. A delete uses only the group's number.
    Group(GroupCommand, Group),
    /// A meter-mod. A delete uses only the meter's number.
    Meter(MeterCommand, Meter),
    /// A port-mod.
    Port(PortMod),
    /// A change of the stateless forwarder.
    Stateless(StatelessChange),
    /// The set of tables in the pipeline.
    Tables(TableSet),
}

impl From<FlowMod> for Change {
    fn from(m: FlowMod) -> Self {
        Self::Flow(m)
    }
}

impl From<FileLine> for Change {
    fn from(line: FileLine) -> Self {
        match line {
            FileLine::Flow(m) => Self::Flow(m),
            FileLine::Group(command, group) => Self::Group(
                match command {
                    RecordCommand::Add => GroupCommand::Add,
                    RecordCommand::AddOrModify => GroupCommand::AddOrModify,
                    RecordCommand::Modify => GroupCommand::Modify,
                    RecordCommand::Delete => GroupCommand::Delete,
                    RecordCommand::DeleteAll => GroupCommand::DeleteAll,
                },
                group,
            ),
            FileLine::Meter(command, meter) => Self::Meter(
                match command {
                    RecordCommand::Add => MeterCommand::Add,
                    RecordCommand::AddOrModify => MeterCommand::AddOrModify,
                    RecordCommand::Modify => MeterCommand::Modify,
                    RecordCommand::Delete => MeterCommand::Delete,
                    RecordCommand::DeleteAll => MeterCommand::DeleteAll,
                },
                meter,
            ),
        }
    }
}

/// Checks a change and applies it to the rules.
///
/// # Errors
/// Returns the error by which OpenFlow 1.3 refuses the request. The caller must then roll back the
/// transaction.
pub(crate) fn apply(transaction: &mut Transaction<'_>, change: Change) -> Result<(), ModelError> {
    match change {
        Change::Flow(m) => flow_mod::apply(transaction, m),
        Change::Group(command, group) => group_mod::apply(transaction, command, group),
        Change::Meter(command, meter) => meter_mod::apply(transaction, command, meter),
        Change::Port(m) => port_mod::apply(transaction, &m),
        Change::Stateless(change) => stateless::apply(transaction, change),
        Change::Tables(tables) => {
            pipeline_tables::apply(transaction, tables);
            Ok(())
        }
    }
}

/// Estimates the number of entries that the changes examine or modify. Counting stops above [`LONG_ENTRIES`].
pub(crate) fn cost_of(rules: &Rules, changes: &[Change]) -> usize {
    let mut cost = changes.len();
    for change in changes {
        if cost > LONG_ENTRIES {
            break;
        }
        cost = cost.saturating_add(cost_of_one(rules, change));
        if let Change::Flow(m) = change
            && m.flags.check_overlap
        {
            // Entries added earlier in the same bundle may be examined as well.
            cost = cost.saturating_add(changes.len() - 1);
        }
    }
    cost
}

fn cost_of_one(rules: &Rules, change: &Change) -> usize {
    let all = rules.store.slots().len();
    let users_of_meters = || rules.meters.values().any(|record| record.users > 0);
    let users_of_groups = || rules.groups.records().values().any(|record| record.users > 0);
    // The users of a group or meter are found by a scan of all entries.
    let has_users = match change {
        Change::Flow(m) => return flow_mod::cost(rules, m),
        Change::Port(_) => false,
        // Entries that lead to a removed table are found by a scan of all entries.
        Change::Tables(_) => true,
        // The whole configuration of the stateless forwarder is copied, compared and compiled.
        Change::Stateless(change) => {
            return change.size()
                + rules.stateless.as_ref().map_or(0, |stateless_config| stateless_config.size());
        }
        Change::Group(GroupCommand::Delete, group) => {
            rules.groups.get(group.id).is_some_and(|record| record.users > 0)
        }
        Change::Meter(MeterCommand::Delete, meter) => {
            rules.meters.get(&meter.id).is_some_and(|record| record.users > 0)
        }
        Change::Group(GroupCommand::DeleteAll, _) => {
            return rules.groups.records().len() + if users_of_groups() { all } else { 0 };
        }
        Change::Meter(MeterCommand::DeleteAll, _) => {
            return rules.meters.len() + if users_of_meters() { all } else { 0 };
        }
        Change::Group(..) | Change::Meter(..) => false,
    };
    if has_users { all } else { 0 }
}
