// SPDX-License-Identifier: Apache-2.0
//! Interface between the control plane (`model`) and a data plane: the trait [`DataPlane`] and the plain
//! types of its parameters and results.
//!
//! `worker` implements the trait with its set of workers. Hardware or the reference interpreter could
//! implement it without any code of the fast path. [`flow::Operation`], the type of all changes, is in
//! `flow`, because `reference` applies operations too.
//!
//! Begin with [`DataPlane`] in `data_plane.rs`, which is the whole contract. [`counters`] has the counters
//! that it returns, [`Counters`], [`ExpressCounters`] and [`LutCounters`] those that a worker writes,
//! [`event`] the reports of workers, [`usage`] the usage of bounded resources, and [`trace_record`] the
//! records of individual packets. [`PortTable`] has the ports of the datapath as forwarding looks them up.

pub mod counters;
mod data_plane;
mod drop_counts;
pub mod event;
mod express_counters;
mod lut_counters;
mod ports;
mod table_capabilities;
pub mod trace_record;
pub mod usage;
mod worker_counters;

pub use counters::{
    EntryCounters, GroupCounters, MeterCounters, PortCounters, PortQueue, TableCounters, Totals, TrafficCount,
};
pub use data_plane::{DataPlane, PlaneRefusal};
pub use drop_counts::DropCounts;
pub use event::{Event, MacSeen, PacketInEvent, Question, SearcherEvent, StormEvent};
pub use express_counters::{ExpressCounters, ExpressFigures};
pub use lut_counters::{LutCounters, LutFigures};
pub use ports::PortTable;
pub use table_capabilities::TableCapabilities;
pub use trace_record::{CacheWait, FoundBy, TraceCopy, TraceHit, TraceRecord};
pub use usage::Usage;
pub use worker_counters::{BurstCounters, Counters};
