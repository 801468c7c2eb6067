// SPDX-License-Identifier: Apache-2.0
//! A completed transaction: the operation for the data plane, and the log of steps by which it can be undone.

use crate::async_messages::RemovedReason;
use crate::port::Port;
use crate::rules::carried::Carried;
use crate::rules::records::Record;
use crate::rules::slot::Life;
use crate::rules::{Mark, Rules, TableSet};
use flow::group::Group;
use flow::meter::Meter;
use flow::stateless::StatelessConfig;
use flow::{EntryChange, EntryId, FlowEntry, GroupId, MeterId, Operation};
use std::sync::Arc;

/// Numbers of entries that a request changed. A replacement counts as one entry added and one removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Entries added.
    pub added: usize,
    /// Entries whose instructions changed.
    pub modified: usize,
    /// Entries removed.
    pub removed: usize,
}

/// One step of a request that can be undone.
#[derive(Debug)]
pub(crate) enum Step {
    Added(EntryId),
    Removed {
        id: EntryId,
        was: Life,
        reason: Option<RemovedReason>,
        heir: Option<EntryId>,
    },
    Modified(Box<Before>),
    /// Number of the group, and the group that had this number before.
    Group(GroupId, Option<Record<Group>>),
    Meter(MeterId, Option<Record<Meter>>),
    /// The port before the change.
    Port(Box<Port>),
}

/// State of an entry before it was modified.
#[derive(Debug)]
pub(crate) struct Before {
    pub id: EntryId,
    pub(super) entry: Arc<FlowEntry>,
    pub(super) mark: Mark,
    pub(super) carried: Option<Carried>,
}

/// A transaction that is complete and valid, ready to be submitted.
#[derive(Debug, Default)]
pub(crate) struct Completed {
    /// Changes of entries, in order.
    pub(super) changes: Vec<EntryChange>,
    /// Operations on groups, meters and ports, in order.
    pub(super) others: Vec<Operation>,
    /// All steps, in order.
    pub log: Vec<Step>,
    /// The previous configuration of the stateless forwarder. `None` if the request did not touch it.
    pub stateless_config: Option<Option<Arc<StatelessConfig>>>,
    /// The previous set of pipeline tables. `None` if the request did not touch it.
    pub tables: Option<TableSet>,
    /// Entries whose low-latency marks changed without a request.
    pub learned: Vec<EntryId>,
    pub changed: Changed,
}

impl Completed {
    /// Takes the operation for the data plane, or returns `None` if nothing needs to be submitted. `rules`
    /// are the rules after the transaction.
    pub fn take_operation(&mut self, rules: &Rules) -> Option<Operation> {
        let mut operations = std::mem::take(&mut self.others);
        // The configuration may have changed several times. Workers get only the last one.
        if self.stateless_config.take().is_some_and(|before| before != rules.stateless) {
            operations.push(Operation::Stateless(rules.stateless.clone()));
        }
        if !self.changes.is_empty() {
            operations.push(Operation::Entries(std::mem::take(&mut self.changes)));
        }
        if operations.len() > 1 { Some(Operation::All(operations)) } else { operations.pop() }
    }
}
