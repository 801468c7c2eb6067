// SPDX-License-Identifier: Apache-2.0
//! An entry with its bookkeeping.

use flow::{FlowEntry, Nanos};
use std::sync::Arc;

/// Life cycle of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// The ID is free.
    Free,
    /// The entry was added by a request that has not been submitted to the data plane yet.
    Fresh,
    /// The entry is in its table and has been submitted to the data plane.
    Live,
    /// The entry was removed from its table. Workers may still hit and count it.
    Dying,
}

/// Reasons that determine whether an entry is low-latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Mark that a flow-mod set explicitly. If `None`, the cookie or the measured hit rate decides.
    pub explicit: Option<bool>,
    /// Whether the entry is low-latency because of its measured hit rate.
    pub learned: bool,
}

impl Mark {
    /// Returns the mark after a modify command. An explicit mark of the command replaces the previous one.
    pub(crate) fn after(self, explicit: Option<bool>) -> Self {
        if explicit.is_some() { Self { explicit, learned: false } } else { self }
    }
}

/// What an earlier process recorded about a flow entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryOrigin {
    /// Serial number of the entry.
    pub serial: u64,
    /// Time at which the entry was added, by the clock of the new process.
    pub created_ns: Nanos,
    /// Whether the entry was low-latency because of its measured hit rate.
    pub learned: bool,
}

/// An entry and its bookkeeping in the model.
#[derive(Debug)]
pub(crate) struct Slot {
    pub entry: Option<Arc<FlowEntry>>,
    /// Serial number. It increases with each added entry of any table and is never reused.
    pub serial: u64,
    pub created_ns: Nanos,
    /// Hash of priority and match.
    pub hash: u32,
    /// Index of the entry among the entries of the same priority and shape in `Table`. The index is valid
    /// while the entry is in its table.
    pub place: u32,
    pub life: Life,
    pub mark: Mark,
}

impl Slot {
    /// Returns the entry if it is in its table.
    pub fn listed(&self) -> Option<&Arc<FlowEntry>> {
        self.entry.as_ref().filter(|_| matches!(self.life, Life::Fresh | Life::Live))
    }
}
