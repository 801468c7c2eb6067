// SPDX-License-Identifier: Apache-2.0
//! Updates: the parts of an operation in the form in which one worker applies them.
//!
//! Applying an update takes short, bounded time and frees nothing. Replaced objects stay in the update, which
//! returns to the control thread.

use crate::bridge::Bridge;
use crate::express::{Express, PathChanges};
use crate::ffp::{Clean, Coherence, FastMode};
use crate::full_ports::FullPorts;
use crate::recorder::Recorder;
use actions::{Cells, CompiledPacketOut, GroupTable, MeterTable, Program, ProgramId};
use dataplane::PortTable;
use flow::{EntryId, HeldFlow, RuleVersion, Settings, TableId};
use keys::Extractor;
use stateless::StatelessForwarder;
use std::sync::Arc;
use tables::{Table, TableUpdate};

/// An operation for one worker, applied as a whole.
#[derive(Debug, Default)]
pub struct Updates {
    /// Version of the operation.
    pub version: RuleVersion,
    /// Parts of the operation, in order.
    pub parts: Vec<Update>,
}

impl Updates {
    /// Returns whether all hits of path records must be counted before the operation is applied, because it
    /// ends or resets counters, or replaces what the hits refer to.
    #[must_use]
    pub(crate) fn needs_counts(&self, cells: &Cells) -> bool {
        self.parts.iter().any(|part| part.needs_counts(cells))
    }
}

/// A part of an operation.
#[derive(Debug)]
pub enum Update {
    /// Changes a worker's view of a table without changing the layout of the table's keys.
    Table(TableId, TableUpdate),
    /// Replaces a worker's view of a table, and the table's key extractor.
    SwapTable(TableId, Option<Box<(Table, Extractor)>>),
    /// Replaces the method by which the fast-forwarding path passes a table.
    SwapFastMode(TableId, FastMode),
    /// Adjusts a table's LUT to a change of the table's rules. Must be in the same operation as the change.
    Clean(TableId, Coherence, Clean),
    /// Sets the maximum number of listed changes against which a record of a table's LUT is checked one by
    /// one. If more changes are listed for the record, it is checked by a table lookup.
    ListMax(TableId, u32),
    /// Sets or removes the program with this number.
    Program(ProgramId, Option<Arc<Program>>),
    /// Replaces all programs.
    SwapPrograms(Vec<Option<Arc<Program>>>),
    /// Makes an active entry run another program.
    Entry(EntryId, ProgramId),
    /// Resets the counters of an active entry.
    ResetCounts(EntryId),
    /// Replaces the settings.
    Settings(Settings),
    /// Replaces the pages of counter cells.
    SwapCells(Cells),
    /// Replaces the ports.
    SwapPorts(Arc<PortTable>),
    /// Replaces the groups.
    SwapGroups(Arc<GroupTable>),
    /// Replaces the stateless forwarder; `None` removes it.
    SwapStateless(Option<Arc<StatelessForwarder>>),
    /// Replaces the settings of the ports for NORMAL; `None` removes them.
    SwapBridge(Option<Arc<Bridge>>),
    /// Replaces the list of ports at which NORMAL learns no more addresses. Records of packets from unknown
    /// sources are verified before their next use.
    SwapFullPorts(Arc<FullPorts>),
    /// Replaces the meters.
    SwapMeters(Arc<MeterTable>),
    /// Replaces the express path; `None` turns it off. Must be in the same operation as the rules for which
    /// the new plan was made.
    SwapExpress(Option<Box<Express>>),
    /// Ends the use of the path records of an earlier plan. The records are left in the update, for the
    /// control thread to free.
    EndPrevious(Option<Box<Express>>),
    /// States whether the LUT of a table that packets can reach examines bits that the keys of the express
    /// path lack. A new express path begins with false.
    CoarseKeys(bool),
    /// Lists for the express path the entries that the operation changes. Must be in the same operation as
    /// the changes of the tables and programs.
    PathChanges(Arc<PathChanges>),
    /// Sends a packet-out of the controller once the whole operation is applied.
    PacketOut(Box<CompiledPacketOut>),
    /// Releases packets that wait for answers of the controller which will not come.
    EndWaits(Box<[HeldFlow]>),
    /// States that flows may change their lane or egress queue with this operation.
    Lanes {
        /// Whether normal flows may have become low-latency.
        promotes: bool,
        /// Whether flows may have moved to another egress queue.
        requeues: bool,
    },
    /// Installs a recorder; `None` removes it. This update is sent alone and does not change the version.
    Record(Option<Box<Recorder>>),
}

impl Update {
    /// Returns whether this part may change the path of any packet, so that all path records become outdated.
    /// Returns false for changes of tables, entries and programs, because records are verified against the
    /// [`Self::PathChanges`] of the operation.
    pub(crate) fn outdates_paths(&self) -> bool {
        match self {
            Self::Settings(_)
            | Self::SwapPorts(_)
            | Self::SwapGroups(_)
            | Self::SwapMeters(_)
            | Self::SwapBridge(_)
            | Self::SwapStateless(_) => true,
            Self::Table(..)
            | Self::SwapTable(..)
            | Self::Program(..)
            | Self::SwapPrograms(_)
            | Self::Entry(..)
            | Self::PathChanges(_)
            | Self::SwapFullPorts(_)
            | Self::SwapFastMode(..)
            | Self::Clean(..)
            | Self::ListMax(..)
            | Self::ResetCounts(_)
            | Self::SwapCells(_)
            | Self::SwapExpress(_)
            | Self::EndPrevious(_)
            | Self::CoarseKeys(_)
            | Self::PacketOut(_)
            | Self::EndWaits(_)
            | Self::Lanes { .. }
            | Self::Record(_) => false,
        }
    }

    /// Returns whether all hits of path records must be counted before this part is applied. See
    /// [`Updates::needs_counts`].
    fn needs_counts(&self, cells: &Cells) -> bool {
        match self {
            Self::PathChanges(changes) => changes.removes_recorded(cells),
            Self::ResetCounts(_)
            | Self::Entry(..)
            | Self::SwapCells(_)
            | Self::SwapExpress(_)
            | Self::EndPrevious(_) => true,
            Self::Table(..)
            | Self::SwapTable(..)
            | Self::SwapFastMode(..)
            | Self::Clean(..)
            | Self::ListMax(..)
            | Self::Program(..)
            | Self::SwapPrograms(_)
            | Self::Settings(_)
            | Self::SwapPorts(_)
            | Self::SwapGroups(_)
            | Self::SwapStateless(_)
            | Self::SwapBridge(_)
            | Self::SwapFullPorts(_)
            | Self::SwapMeters(_)
            | Self::CoarseKeys(_)
            | Self::PacketOut(_)
            | Self::EndWaits(_)
            | Self::Lanes { .. }
            | Self::Record(_) => false,
        }
    }

    /// Returns whether the part is a swap, whose cost does not depend on the size of the objects.
    #[must_use]
    pub fn is_swap(&self) -> bool {
        matches!(
            self,
            Self::SwapTable(..)
                | Self::SwapFastMode(..)
                | Self::SwapPrograms(_)
                | Self::SwapCells(_)
                | Self::SwapPorts(_)
                | Self::SwapGroups(_)
                | Self::SwapMeters(_)
                | Self::SwapStateless(_)
                | Self::SwapBridge(_)
                | Self::SwapFullPorts(_)
                | Self::SwapExpress(_)
        )
    }
}
