// SPDX-License-Identifier: Apache-2.0
//! The POF agent: the channels of POF controllers over one [`model::Model`], without I/O.
//!
//! The crate must not open sockets or read clocks, and it forwards no packets. Its driver passes received
//! bytes to a [`PofChannel`], calls [`PofAgent::step`] and writes the channel's output. [`PofAgent::report`]
//! forwards a message of the model to the controllers. Memory is bounded. Each call does a bounded amount of
//! work, with two exceptions that take time for each record of an entry: [`PofAgent::finish`] after a
//! handshake, and a TABLE_MOD that deletes a table whose entries have expired.
//!
//! Begin with [`PofAgent`], then `channel.rs` (the state of a connection), `request.rs` (the function for
//! each message) and [`translate`] (POF in terms of the flow model).

mod agent;
mod async_message;
mod channel;
mod config;
mod counter_mod;
mod counters;
mod describe;
mod flow_mod;
mod group_mod;
mod job;
mod layout;
mod long;
mod meter_mod;
mod packet_out;
mod port_mod;
mod refusal;
mod request;
mod reset;
mod shared;
mod slot;
mod step;
mod table_mod;
mod tables;
pub mod translate;
mod work;

pub use agent::PofAgent;
pub use channel::{PofChannel, PofChannelEvent, PofProgress};
pub use config::{AgentConfig, Miss};
pub use layout::TableLayout;
pub use refusal::PofRefusal;
pub use work::{PofChannelId, PofDone, PofWork};
