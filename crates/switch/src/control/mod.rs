// SPDX-License-Identifier: Apache-2.0
//! The control socket: JSON objects, one per line, over a unix socket that only its owner may open.
//!
//! A request has a name, and an `id` that the client chooses and the answer repeats. A long answer has
//! several parts.
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
//! The server side is non-blocking I/O on the control thread, which owns the model. The module must not
//! change the model except through requests. Begin with [`ControlRequest`], then read `connection`.

mod change;
mod client;
mod connection;
mod flows;
mod latency;
pub(crate) mod mirrors;
mod protocol;
mod request;
pub(crate) mod show;

pub use change::ReloadReport;
pub(crate) use change::{ReloadResult, ReloadWork};
pub use client::{Client, ClientError};
pub use latency::{Buckets, LaneBuckets, LaneLatency, LatencyBuckets, LatencyFigures, microseconds};
pub use mirrors::{MirrorRow, MirrorsReport};
pub use protocol::{
    CacheCounts, CachePort, CacheReport, Changes, ConfigurationFile, ControlRequest, ControllerRow,
    ControllersReport, CountersReport, DeviceReport, ExaminedField, ExpressCounts, ExpressReport,
    ExpressWorker, FastTable, Ffp, FlowForm, FlowPart, FlowRow, Limit, MacRow, Macs, PlanForm, PortRow,
    Ports, QueueRow, StatelessReport, StoreReport, TableRow, Tables,
};

pub(crate) use connection::{Connection, ControlState, PARKED_MAX};

/// Maximum length of a request line in bytes.
pub const REQUEST_BYTES: usize = 1 << 20;
