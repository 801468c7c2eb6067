// SPDX-License-Identifier: Apache-2.0
//! Forwarding of one worker: a function of operations, packets and the clock.
//!
//! The crate does no I/O. Forwarding a packet takes no lock, allocates nothing, writes no log line and makes
//! no system call. Frames come from the caller and leave through the trait [`Egress`], which the caller
//! implements.
//!
//! Begin reading with [`Pipeline::forward`], through which a burst enters, and [`burst`], which processes it
//! table by table. Continue with [`extract`] (keys), `execute` (instructions) and `output`. [`ffp`] is the
//! fast-forwarding path, [`lanes`] the backlog, and [`update`] the operations of the control thread.

mod action_set;
mod bits;
pub mod burst;
pub mod cells;
mod checksums;
pub mod counters;
mod egress;
pub mod event;
mod execute;
pub mod extract;
pub mod ffp;
mod field_write;
pub mod filter;
mod forward;
pub mod groups;
pub mod lanes;
mod mac_write;
pub mod meters;
mod normal;
mod output;
mod packet;
mod pending_outputs;
pub mod ports;
pub mod probe;
pub mod program;
pub mod record;
mod simd;
mod slab;
pub mod stateless;
mod tags;
mod ttl;
pub mod update;
pub mod usage;

pub use burst::Pipeline;
pub use cells::{Cell, CellPage, Cells, PAGE_CELLS, ProgramId};
pub use counters::{BurstCounters, Counters};
pub use egress::Egress;
pub use event::{Event, MacSeen, PacketInEvent};
pub use extract::Extractor;
pub use ffp::{Clean, Coherence, FastMode, Inheritance, Lut, LutCounters, LutFigures};
pub use field_write::FieldWrite;
pub use filter::Filter;
pub use groups::{CompiledGroup, GroupCells, GroupTable};
pub use lanes::LaneLimits;
pub use mac_write::MacWrite;
pub use meters::{MeterState, MeterTable};
pub use ports::PortTable;
pub use probe::{By, Leaving, Probe, ProbeStep};
pub use program::Program;
pub use record::{Copied, Hit, RECORDER, Record, Recorder};
pub use slab::BURST;
pub use stateless::StatelessForwarder;
pub use tables::simd::set_portable;
pub use update::{CompiledPacketOut, Update, Updates};
pub use usage::Usage;
