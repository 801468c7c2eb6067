// SPDX-License-Identifier: Apache-2.0
//! OpenMetrics text, and the HTTP server that offers it.
//!
//! The crate knows neither the switch nor its counters. The server limits the time, the memory and the
//! number of its connections, and runs on a thread of its own. Begin with [`Family`], then read
//! [`Server::start`].

mod exposition;
mod request;
mod server;

pub use exposition::{CONTENT_TYPE, Family, Histogram, Kind, Labels, Sample, Value, encode};
pub use server::{CONNECTIONS, REQUEST_LIMIT, Server};
