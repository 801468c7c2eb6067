// SPDX-License-Identifier: Apache-2.0
//! Configuration and flow files: reads, checks and explains them.
//!
//! Every mistake becomes a sentence with its place, its key and a fix. The crate must not forward packets,
//! open devices or sockets, or start threads. Begin with the module for your task:
//! - [`Config::load`] reads the daemon's configuration; `check` checks it.
//! - [`flow_file`] reads flows, groups and meters, and loads them into a model.
//! - [`stateless_form`] is the text form of the stateless forwarder's settings.
//! - [`packet`] builds packets from text. [`trace`] explains how rules process packets.
//! - [`text`], [`mistakes`], [`value`] and [`forwarding`] are shared with other TOML files.

mod address;
mod cables;
mod cache;
mod channels;
mod check;
mod device;
mod difference;
pub mod edit;
mod endpoint;
pub mod file;
pub mod flow_file;
pub mod forwarding;
mod kept;
mod load;
mod machine;
mod mirror;
mod mirror_settings;
pub mod mistakes;
pub mod packet;
mod packet_in;
mod places;
mod ports;
mod process;
mod security;
mod settings;
pub mod socket;
pub mod stateless_form;
mod storm;
pub mod text;
mod tls;
pub mod trace;
pub mod value;
mod vlans;

pub use crate::device::{ConfiguredDevice, DeviceKind};
pub use cache::{PortCacheMode, check_pool};
pub use difference::{ConfigChange, Difference, EndpointChange, difference};
pub use endpoint::{ConnectionProtocol, Endpoint};
pub use kept::{Durable, KeptRules};
pub use load::ConfigError;
pub use machine::Scope;
pub use mirror_settings::{ConfiguredMirror, MirrorFile, MirrorOutput};
pub use mistakes::{FileMistakes, Mistake};
pub use packet_in::PacketIns;
pub use places::TextPlace;
pub use port_cache::SearcherKind;
pub use process::{LOG_MODULES, LogFormat, LogLevel, LogModule, LogSettings, ProcessSettings};
pub use security::{SeccompMode, SecuritySettings, SocketAccess};
pub use settings::{
    Config, ConfiguredPort, DEFAULT_CONTROL, Datapath, Idle, OpenFlow, Pace, Pof, PofMiss, TlsFiles,
    WorkerConfig,
};

#[cfg(test)]
mod tests;
