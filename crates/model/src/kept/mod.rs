// SPDX-License-Identifier: Apache-2.0
//! The state of a datapath that survives a restart, and the journal that keeps it.
//!
//! The model reports each change to a [`Journal`], which is written by another crate. If the journal asks for
//! it, the model also reports its whole state in parts, while it goes on changing. A [`KeptChange`] sets or
//! removes one item and contains its full value. So the parts, followed by the changes since the first part,
//! give the state after the last change.
//!
//! Begin with [`Journal`], then read `report.rs` (what is reported) and `restore.rs` (a start with kept
//! state).

mod report;
mod restore;

pub use restore::{
    KeptState, PartlyRestored, RestoreReport, RestoredEntries, RestoredEntry, RestoredInstructions,
    RestoredPart,
};

pub(crate) use report::changes_of;

use crate::port::PortConfig;
use crate::rules::TableSet;
use crate::rules::slot::{Mark, Slot};
use flow::group::Group;
use flow::meter::Meter;
use flow::stateless::StatelessConfig;
use flow::{FlowEntry, FlowMod, GroupId, MeterId, Nanos, PortNo, RuleVersion};
use std::fmt;
use std::sync::Arc;

/// A flow entry with what a restart must keep of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptEntry {
    /// The entry.
    pub entry: Arc<FlowEntry>,
    /// Serial number, which identifies the entry across restarts. Entries added later have higher numbers.
    pub serial: u64,
    /// Time at which the entry was added.
    pub created_ns: Nanos,
    /// Reasons that determine whether the entry is low-latency.
    pub mark: Mark,
}

impl KeptEntry {
    /// Returns the flow-mod that adds the entry.
    #[must_use]
    pub fn flow_mod(&self) -> FlowMod {
        self.entry.flow_mod(self.mark.explicit)
    }

    fn of(slot: &Slot) -> Option<Self> {
        let entry = Arc::clone(slot.entry.as_ref()?);
        Some(Self { entry, serial: slot.serial, created_ns: slot.created_ns, mark: slot.mark })
    }
}

/// A new value of one part of the kept state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptChange {
    /// A flow entry was added or modified.
    Entry(KeptEntry),
    /// The flow entry with this serial number was removed.
    EntryGone(u64),
    /// A MAC address was learned.
    Mac {
        /// VLAN ID, or 0 for untagged frames.
        vid: u16,
        /// MAC address.
        mac: [u8; 6],
        /// Port on which the address was learned.
        port: PortNo,
    },
    /// A learned MAC address was removed.
    MacGone {
        /// VLAN ID, or 0 for untagged frames.
        vid: u16,
        /// MAC address.
        mac: [u8; 6],
    },
    /// A group was added or replaced.
    Group(Arc<Group>),
    /// A group was removed.
    GroupGone(GroupId),
    /// A meter was added or replaced.
    Meter(Arc<Meter>),
    /// A meter was removed.
    MeterGone(MeterId),
    /// Configuration of a port.
    Port(PortNo, PortConfig),
    /// Configuration of the stateless forwarder.
    Stateless(Option<Arc<StatelessConfig>>),
    /// The set of tables in the pipeline.
    Tables(TableSet),
    /// Whether IP fragments are dropped.
    DropFragments(bool),
    /// Whether the datapath forwards as a learning switch because no controller is connected.
    Standalone(bool),
}

/// A request of the journal for the whole state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateRequest {
    /// Number of the request. A new number restarts the report.
    pub number: u64,
    /// Maximum number of entries to report now.
    pub entries: usize,
}

/// Part of a report of the whole state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatePart {
    /// Number of the request.
    pub number: u64,
    /// Values in this part.
    pub changes: Vec<KeptChange>,
    /// Whether this is the first part of the report.
    pub is_first: bool,
    /// Whether this is the last part of the report.
    pub is_last: bool,
}

/// Receiver of changes. No method may block, because the model calls them on the control thread.
pub trait Journal: fmt::Debug + Send {
    /// Takes the changes of one transaction, which are kept together or not at all. They are active at
    /// `version`.
    fn record(&mut self, now: Nanos, version: RuleVersion, changes: Vec<KeptChange>);

    /// Returns whether a barrier for this version may be answered.
    fn is_kept(&mut self, version: RuleVersion) -> bool;

    /// Returns a request for the whole state, if there is one and the journal has space for a part of it.
    fn state_request(&mut self) -> Option<StateRequest>;

    /// Takes a part of the state.
    fn state(&mut self, now: Nanos, part: StatePart);
}

/// The journal of a model, and the progress of the report of its state.
#[derive(Debug, Default)]
pub(crate) struct Keeping {
    journal: Option<Box<dyn Journal>>,
    /// Number of the request that is being answered, and the slot of the next entry to report.
    report: Option<(u64, usize)>,
}

impl Keeping {
    /// Returns whether there is a journal.
    pub fn is_on(&self) -> bool {
        self.journal.is_some()
    }

    /// Reports the changes of one transaction.
    pub fn record(&mut self, now: Nanos, version: RuleVersion, changes: Vec<KeptChange>) {
        if let Some(journal) = self.journal.as_mut().filter(|_| !changes.is_empty()) {
            journal.record(now, version, changes);
        }
    }

    /// Returns whether a barrier for this version may be answered.
    pub fn is_kept(&mut self, version: RuleVersion) -> bool {
        self.journal.as_mut().is_none_or(|journal| journal.is_kept(version))
    }
}
