// SPDX-License-Identifier: Apache-2.0
//! Metrics of all datapaths of the process, offered over HTTP.
//!
//! The thread that serves HTTP asks each control thread for a [`Snapshot`]: the reports that `shunt show`
//! prints, but no report of single flows. It then turns the snapshots into metrics. A control thread only
//! collects counters and never waits for the HTTP thread. Begin with [`start`].
//!
//! Each file of this folder defines the metrics of one report.

mod cache;
mod catalogue;
mod controllers;
mod express;
mod mirrors;
mod ports;
mod process;
mod snapshot;
mod store;
mod tables;
mod totals;

pub use snapshot::MetricsSource;
pub(crate) use snapshot::{Inlet, Snapshot};

use crate::sandbox::{self, ThreadKind};
use catalogue::Catalogue;
use metrics::{Family, Kind, Server, Value, encode};
use process::Process;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

/// Longest time that the datapaths together may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// Offers the metrics of these datapaths over HTTP. The server ends when the returned value is dropped.
///
/// # Errors
///
/// Returns an error if the system refuses the address or the thread.
pub fn start(address: SocketAddr, sources: Vec<MetricsSource>) -> io::Result<Server> {
    start_on(TcpListener::bind(address)?, sources)
}

/// Offers the metrics like [`start`] on a socket that listens already.
///
/// # Errors
///
/// Returns an error if the system refuses the thread.
pub fn start_on(listener: TcpListener, sources: Vec<MetricsSource>) -> io::Result<Server> {
    let process = Process::new();
    let begin = || sandbox::enter(ThreadKind::Metrics);
    Server::start_on(listener, begin, move || {
        // The values fit their families, so encoding does not fail.
        encode(collect(&process, &sources)).unwrap_or_default()
    })
}

/// Returns the metrics of the process and of all datapaths. A datapath that does not answer in time has only
/// the metric `shunt_datapath_up`.
fn collect(process: &Process, sources: &[MetricsSource]) -> Vec<Family> {
    let begin = Instant::now();
    let asked: Vec<_> = sources.iter().map(|source| (source, source.ask())).collect();
    let mut catalogue = Catalogue::default();
    for (source, answer) in asked {
        let left = ANSWER_LIMIT.saturating_sub(begin.elapsed());
        let snapshot = answer.and_then(|answer| answer.recv_timeout(left).ok());
        let labels = vec![("datapath", source.datapath_id().to_string())];
        let is_up = Value::Integer(snapshot.is_some().into());
        let help = "Whether the datapath has answered this scrape (1) or was busy for too long (0)";
        catalogue.add("shunt_datapath_up", None, Kind::Gauge, help, labels.clone(), is_up);
        if let Some(snapshot) = snapshot {
            describe(&snapshot, &labels, &mut catalogue);
        }
    }
    process.describe(&mut catalogue);
    let seconds = Value::Number(begin.elapsed().as_secs_f64());
    let help = "Time to collect the metrics of this scrape";
    catalogue.add("shunt_scrape_duration", Some("seconds"), Kind::Gauge, help, Vec::new(), seconds);
    catalogue.families()
}

fn describe(snapshot: &Snapshot, labels: &metrics::Labels, catalogue: &mut Catalogue) {
    ports::describe(&snapshot.ports, labels, catalogue);
    if let Some(mirrors) = &snapshot.mirrors {
        mirrors::describe(mirrors, labels, catalogue);
    }
    tables::describe(snapshot, labels, catalogue);
    if let Some(express) = &snapshot.express {
        express::describe(express, labels, catalogue);
    }
    if let Some(cache) = &snapshot.cache {
        cache::describe(cache, labels, catalogue);
    }
    if let Some(store) = &snapshot.store {
        store::describe(store, labels, catalogue);
    }
    totals::describe(snapshot, labels, catalogue);
    if let Some(device) = &snapshot.device {
        totals::describe_device(device, labels, catalogue);
    }
    controllers::describe(&snapshot.controllers, labels, catalogue);
}
