// SPDX-License-Identifier: Apache-2.0
//! The control plane of the switch: turns controller requests, time and worker events into operations and
//! replies.
//!
//! [`Model`] owns flow tables, groups, meters, ports, learned MAC addresses and timers. It opens no socket,
//! starts no thread and reads no clock: the caller passes the time as `now`. Changes leave as
//! [`flow::Operation`]s through the trait [`dataplane::DataPlane`]; messages for controllers wait in a queue
//! as [`AsyncMessage`]s.
//!
//! Begin reading with [`Model`] in `model.rs`, then `change.rs` (how a request is staged and committed) and
//! `poll.rs` (events and timeouts). The module `agent` translates OpenFlow messages into calls of the model.

pub mod agent;
pub mod async_messages;
pub mod change;
pub mod config;
pub mod error;
pub mod flow_mod;
pub mod groups;
pub mod macs;
pub mod marking;
pub mod meters;
pub mod model;
mod packet_out;
mod pipeline_tables;
mod poll;
pub mod ports;
mod records;
pub mod select;
mod sharing;
mod stage;
mod stateless;
pub mod stats;
mod store;
mod table;
mod timers;
pub mod trace;

pub use async_messages::{AsyncMessage, AsyncMessageDrops, FlowRemoved, PacketIn, PortReason, RemovedReason};
pub use change::Change;
pub use config::{ModelConfig, ModelLimits};
pub use error::ModelError;
pub use flow_mod::Changed;
pub use groups::{GroupCommand, GroupStats};
pub use macs::Mac;
pub use marking::{Learning, Mark};
pub use meters::{MeterCommand, MeterStats};
pub use model::Model;
pub use pipeline_tables::TableSet;
pub use ports::{Port, PortConfig, PortDesc, PortMod};
pub use select::FlowFilter;
pub use stats::{Aggregate, FlowCursor, FlowStats, TableStats};
