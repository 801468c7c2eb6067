// SPDX-License-Identifier: Apache-2.0
//! The control socket: JSON objects, one a line, over a unix socket that only its owner may open.
//!
//! A request has an `id` of the client's choice and a name; the answer repeats the id. Long answers come in parts.
//!
//! ```text
//! > {"id":1,"request":"tables"}
//! < {"id":1,"done":{"tables":[{"table":0,"entries":1, ...}]}}
//! > {"id":2,"request":"flows","form":"lines"}
//! < {"id":2,"part":{"lines":[" cookie=0x0, duration=1.204s, ..."]}}
//! < {"id":2,"done":{}}
//! > {"id":3,"request":"load","text":"in_port=1,actions=output:2\n","last":true}
//! < {"id":3,"error":"..."}
//! ```
//!
//! The server side is plain non-blocking I/O in the control thread: that thread owns the model and every answer comes
//! from it, so an asynchronous runtime would only add a second thread and a channel between the two.

mod client;
mod connection;
mod flows;
mod latency;
mod protocol;
mod request;
mod show;

pub use client::{Client, ClientError};
pub use latency::{Buckets, Figures, Lane, LaneBuckets, Latencies, microseconds};
pub use protocol::{
    Changes, Counters, FastTable, Ffp, FlowForm, FlowPart, FlowRow, Limit, Mac, Macs, Port, Ports, Queue,
    Request, Stateless, Table, Tables,
};

pub(crate) use connection::{Connection, PARKED_MAX, State};

/// Longest line of a request, in bytes.
pub const REQUEST_BYTES: usize = 1 << 20;
