// SPDX-License-Identifier: Apache-2.0
//! The control plane of the switch: turns controller requests, time and worker events into operations and
//! replies.
//!
//! [`Model`] owns flow tables, groups, meters, ports, learned MAC addresses and timers. It opens no socket,
//! starts no thread and reads no clock: the caller passes the time as `now`. Changes leave as
//! [`flow::Operation`]s through the trait [`dataplane::DataPlane`]; messages for controllers wait in a queue
//! as [`AsyncMessage`]s.
//!
//! Begin reading with [`Model`] in `model.rs`, then `changes` (how a request is checked and applied) and
//! `poll.rs` (events and timeouts). The module `agent` translates OpenFlow messages into calls of the model.

pub mod agent;
mod async_messages;
mod changes;
mod config;
mod error;
mod expiry;
mod handover;
mod kept;
mod kept_counts;
mod macs;
mod marking;
mod model;
mod poll;
mod port;
mod port_changes;
mod queries;
mod removals;
mod requests;
mod rules;
mod select;
mod settings;
mod stats;
mod storms;
mod timers;
pub mod trace;
mod versioned_plane;

pub use async_messages::{AsyncMessage, AsyncMessageDrops, FlowRemoved, PacketIn, PortReason, RemovedReason};
pub use changes::{Change, Changed, GroupCommand, MeterCommand, PortMod};
pub use config::{CookieMask, Learning, ModelConfig, ModelLimits};
pub use error::ModelError;
pub use kept::{
    Journal, KeptChange, KeptEntry, KeptState, PartlyRestored, RestoreReport, RestoredEntries, RestoredEntry,
    RestoredInstructions, RestoredPart, StatePart, StateRequest,
};
pub use kept_counts::EntryRef;
pub use macs::Mac;
pub use model::Model;
pub use port::{Port, PortConfig, PortDesc};
pub use queries::{GroupStats, MeterStats};
pub use rules::{EntryOrigin, Mark, TableSet};
pub use select::FlowFilter;
pub use stats::{Aggregate, FlowCursor, FlowStats, TableStats};
pub use storms::StormNotice;
