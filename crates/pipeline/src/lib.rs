// SPDX-License-Identifier: Apache-2.0
//! Packet forwarding of one worker. Its results depend only on operations, packets and the clock.
//!
//! The crate does no I/O. Forwarding a packet takes no lock, allocates nothing, writes no log line and makes
//! no system call. Frames come from the caller and leave through the trait [`Egress`], which the caller
//! implements.
//!
//! Begin with `pipeline.rs`: [`Pipeline::forward`] lists the stages of a burst in order. Each stage has a
//! separate file. Each of the modules below uses only modules listed after it, roughly in the order in which
//! a packet passes them.

// Entry points: process a burst, the backlog, a packet-out or an operation.
mod pipeline;

// An operation, and its application to the rules between two bursts.
mod apply;

mod update;

// Stateless: tagged frames leave before any table lookup.
mod pass_stateless;

// Admit: frames become packets.
mod admit;

// Enqueue: packets that do not leave on the fast-forwarding path wait in the backlog.
mod enqueue;

// Tables: packets are looked up table by table.
mod run_tables;

// The express path: packets with a path record need no table lookup.
mod express;

// The fast-forwarding path. Its walk comes before the tables, which fill its LUTs.
mod ffp;

// Instructions of an entry, and the stages that they lead to.
mod instructions;

mod groups;

mod meters;

mod output;

mod normal;

// Finish: outputs leave, and the outcome is counted.
mod finish;

// Frames that leave directly, collected by port.
mod port_batches;

// State that the stages share: rules, counters and outputs.
mod context;

// Settings of the ports for NORMAL, which are a part of the rules.
mod bridge;

mod full_ports;

mod egress;

mod lanes;

// Instruments: the recorder of `shunt trace --live`, and the tracepoints that call it.
mod recorder;

mod probe;

// Packets and their slots.
mod slab;

mod packet;

pub use backlog::{BacklogShare, LaneLimits};
pub use bridge::Bridge;
pub use egress::Egress;
pub use engines::simd::set_portable;
pub use express::{BypassLimits, Express, ExpressSize, FrameCache, HitsToCount, PathChanges, Predecessor};
pub use ffp::{Clean, Coherence, FastMode, Inheritance, Lut};
pub use full_ports::{FullPorts, RefusalReports};
pub use lanes::LaneUsage;
pub use pipeline::{Pipeline, PipelineUsage, ReleasedPackets};
pub use probe::{Leaving, Probe, ProbeStep, Via};
pub use recorder::{RECORDER, Recorder};
pub use slab::{BURST, PacketSlot};
pub use update::{Update, Updates};
