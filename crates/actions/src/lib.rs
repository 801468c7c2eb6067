// SPDX-License-Identifier: Apache-2.0
//! Compiled actions: the changes that entries, groups and meters make to one packet.
//!
//! The control thread compiles instructions into a [`Program`]. A worker runs the steps of the program on a
//! [`PacketData`]. A [`Cell`] has the number of an entry's program and the entry's counters in one worker.
//! This crate does no lookups and sends no frames: the caller executes outputs and groups.
//!
//! Begin with `program.rs`: [`ProgramStep::rewrite`] names the file of each action.

mod action_set;
mod cells;
mod checksums;
mod edit;
mod field_write;
mod group;
mod group_table;
mod header_change;
mod mac_write;
mod meter;
mod meter_table;
mod packet_data;
mod packet_in_limits;
mod packet_out;
mod path_edits;
mod pending_outputs;
mod program;
mod retag;
mod shift;
pub mod stateless;
mod tags;
mod token_bucket;
mod ttl;

pub use action_set::ActionSet;
pub use cells::{Cell, CellPage, Cells, Counting, PAGE_CELLS, ProgramId};
pub use field_write::FieldWrite;
pub use group::CompiledGroup;
pub use group_table::{GroupCells, GroupTable};
pub use header_change::HeaderChange;
pub use mac_write::{MacReplacement, MacWrite};
pub use meter::MeterState;
pub use meter_table::MeterTable;
pub use packet_data::{PacketData, SliceBounds};
pub use packet_in_limits::{PacketInLimits, PacketInRate, PacketInRates};
pub use packet_out::CompiledPacketOut;
pub use path_edits::PathEdits;
pub use pending_outputs::{OutputList, PendingOutput, PendingOutputs};
pub use program::{Program, ProgramStep, Route};
pub use retag::Retag;
pub use shift::Shift;
pub use tags::FRAME_BYTES_MIN;
pub use token_bucket::TokenBucket;
pub use ttl::{FrameStart, TtlSpot};
