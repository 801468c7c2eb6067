// SPDX-License-Identifier: Apache-2.0
//! The switch as a controller sees it: turns messages, clock and worker events into operations and replies.
//!
//! [`Model`] owns tables, entries, ports, learned MACs and timers. It opens no socket, starts no thread and reads no
//! clock: the time comes in as `now`, changes go out as [`flow::Operation`]s to a [`DataPlane`], and what a controller
//! is to be told waits as a [`Notice`].

pub mod agent;
pub mod change;
pub mod config;
pub mod data_plane;
pub mod error;
pub mod flow_mod;
pub mod groups;
pub mod macs;
pub mod marking;
pub mod meters;
pub mod model;
pub mod notices;
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

pub use change::Change;
pub use config::{Config, Limits};
pub use data_plane::{
    DataPlane, EntryCounters, GroupCounters, MeterCounters, PortCounters, PortQueue, TableCounters, Totals,
};
pub use error::ModelError;
pub use flow_mod::Changed;
pub use groups::{GroupCommand, GroupStats};
pub use macs::Mac;
pub use marking::{Learning, Mark};
pub use meters::{MeterCommand, MeterStats};
pub use model::Model;
pub use notices::{FlowRemoved, Notice, NoticeDrops, PacketIn, PortReason, RemovedReason};
pub use pipeline_tables::TableSet;
pub use ports::{Port, PortConfig, PortDesc, PortMod};
pub use select::FlowFilter;
pub use stats::{Aggregate, FlowCursor, FlowStats, TableStats};
