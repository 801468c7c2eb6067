// SPDX-License-Identifier: Apache-2.0
//! Workers and their control side: a worker's poll loop over its queues, and the set of workers as a
//! [`dataplane::DataPlane`].
//!
//! The crate starts no thread and opens no socket: the owner of a [`Worker`] calls [`Worker::turn`] on a
//! thread of its choice. A worker allocates no memory, takes no lock and writes no log for a packet.
//!
//! Begin with `worker.rs` (one poll iteration), then `egress.rs` (transmission) and `set.rs` (the control
//! thread's side, which uses `compiler.rs`, `link.rs`, `reporter.rs` and `recording.rs`). `wiring.rs`
//! connects both sides.

mod answered;
mod background_compile;
mod bypass;
mod cell_store;
mod change_ports;
mod clock;
mod compiler;
mod config;
mod consistency;
mod edit_lists;
mod egress;
mod entries;
mod express_caches;
mod express_planner;
mod groups;
mod handover;
mod instruments;
mod latency;
mod link;
mod lut_manager;
mod mac_limits;
mod meters;
mod mirror;
mod outbox;
mod port_change;
mod port_plan;
mod programs;
mod published;
mod quantum;
mod recording;
mod reporter;
mod requeues;
mod routes;
mod search;
mod set;
mod shaper;
mod sleep;
mod stopwatch;
mod sync;
mod table_compiler;
mod tsc;
mod usage;
mod wiring;
mod worker;

pub use actions::PacketInRates;
pub use background_compile::{BACKGROUND_ADDITIONS_MIN, BackgroundTask};
pub use clock::Clock;
pub use config::{PortQueues, WorkerSetConfig};
pub use consistency::Consistency;
pub use express_caches::ExpressState;
pub use latency::{LaneLatencies, Latencies, Spread};
pub use lut_manager::LutState;
pub use mirror::{
    CaptureInlet, CaptureOutlet, MirrorCounts, MirrorId, MirrorSetup, MirrorTarget, MirroredFrame,
    capture_rings,
};
pub use outbox::OutboxUsage;
pub use port_plan::{PortsChanged, PortsUpdate};
pub use published::PortReport;
pub use quantum::Quanta;
pub use search::{SearchEnd, SearchTurn, SearchWorker};
pub use set::WorkerSet;
pub use shaper::QueueReport;
pub use sleep::{Alarm, PublishFence, SharedWorker, SleepFlag, Sleeper, sleep_all};
pub use stopwatch::LookupCosts;
pub use tables::RunInParallel;
pub use usage::UsagePlace;
pub use wiring::{AllocatedFrames, build, build_from, build_with, without_workers};
pub use worker::{ShutdownLoss, Turn, Worker};
