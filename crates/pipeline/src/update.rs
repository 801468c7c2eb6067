// SPDX-License-Identifier: Apache-2.0
//! Updates: what an operation means for one worker. Applying one takes bounded, short time and frees nothing: it
//! leaves in the update what is no longer used, and the whole goes back to the control thread.

use crate::cells::{Cells, ProgramId};
use crate::extract::Extractor;
use crate::ffp::{Clean, Manner, Way};
use crate::groups::GroupTable;
use crate::meters::MeterTable;
use crate::ports::PortTable;
use crate::program::{Program, Step};
use crate::record::Recorder;
use crate::stateless::StatelessLane;
use flow::{Action, EntryId, PortNo, Settings, operation, port_no};
use std::sync::Arc;
use tables::{Table, TableUpdate};

/// An operation for one worker, in force as a whole.
#[derive(Debug, Default)]
pub struct Updates {
    /// The operation's version.
    pub version: u64,
    /// The parts, in order.
    pub parts: Vec<Update>,
}

/// A packet of the controller's, compiled.
#[derive(Debug)]
pub struct PacketOut {
    pub(crate) in_port: PortNo,
    pub(crate) steps: Box<[Step]>,
    pub(crate) to_tables: bool,
    pub(crate) bytes: Vec<u8>,
}

impl PacketOut {
    /// Compiles a packet-out.
    #[must_use]
    pub fn compile(out: &operation::PacketOut) -> Self {
        let to_table = |action: &Action| matches!(action, Action::Output { port: port_no::TABLE, .. });
        let to_tables = out.actions.last().is_some_and(to_table);
        let actions = &out.actions[..out.actions.len() - usize::from(to_tables)];
        Self { in_port: out.in_port, steps: Step::applied(actions), to_tables, bytes: out.bytes.clone() }
    }
}

/// A part of an operation.
#[derive(Debug)]
pub enum Update {
    /// A change of a table's view that keeps its keys' layout.
    Table(u8, TableUpdate),
    /// A new view of a table, with what builds its keys.
    SwapTable(u8, Option<Box<(Table, Extractor)>>),
    /// Another way for the fast-forwarding path to pass a table.
    SwapWay(u8, Way),
    /// What a change of a table means for its LUT. Comes with the change, in the same operation.
    Clean(u8, Manner, Clean),
    /// How many changes a record of a table's LUT is held against one by one; it is looked up in the table for more.
    ListMax(u8, u32),
    /// A program (or none) at a number.
    Program(ProgramId, Option<Arc<Program>>),
    /// All programs.
    SwapPrograms(Vec<Option<Arc<Program>>>),
    /// A living entry runs another program.
    Entry(EntryId, ProgramId),
    /// A living entry counts from 0.
    ResetCounts(EntryId),
    /// Other settings.
    Settings(Settings),
    /// The pages of cells.
    SwapCells(Cells),
    /// The ports.
    SwapPorts(Arc<PortTable>),
    /// The groups.
    SwapGroups(Arc<GroupTable>),
    /// The stateless lane, or none.
    SwapStateless(Option<Arc<StatelessLane>>),
    /// The meters.
    SwapMeters(Arc<MeterTable>),
    /// A packet of the controller's, sent when the operation is in force.
    PacketOut(Box<PacketOut>),
    /// Flows may take another lane from now on.
    Lanes {
        /// Whether normal flows may have become low-latency.
        promotes: bool,
        /// Whether flows may have come to another egress queue.
        requeues: bool,
    },
    /// A recorder, or none. Stands alone: it is no operation and changes no version.
    Record(Option<Box<Recorder>>),
}

impl Update {
    /// True for the parts that swap, whatever the size of what they swap.
    #[must_use]
    pub fn is_swap(&self) -> bool {
        matches!(
            self,
            Self::SwapTable(..)
                | Self::SwapWay(..)
                | Self::SwapPrograms(_)
                | Self::SwapCells(_)
                | Self::SwapPorts(_)
                | Self::SwapGroups(_)
                | Self::SwapMeters(_)
                | Self::SwapStateless(_)
        )
    }
}
