// SPDX-License-Identifier: Apache-2.0
//! Usage of all bounded resources of a set of workers.

use crate::egress::EgressUsage;
use crate::outbox::OutboxUsage;
use crate::published::WorkerUsage;
use crate::set::WorkerSet;
use dataplane::Usage;
use flow::{PortNo, QueueId, TableId};
use pipeline::{LaneUsage, PipelineUsage};
use std::fmt;

/// Owner of a bounded resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsagePlace {
    /// The worker with this number.
    Worker(usize),
    /// The queue through which a worker serves a port.
    Queue {
        /// Number of the port.
        port: PortNo,
        /// Number of the worker.
        worker: u16,
    },
    /// An egress queue.
    Egress {
        /// Number of the port.
        port: PortNo,
        /// Number of the queue.
        queue: QueueId,
    },
    /// The LUTs of a table in all workers.
    Table(TableId),
}

impl fmt::Display for UsagePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worker(worker) => write!(f, "worker {worker}"),
            Self::Queue { port, worker } => write!(f, "port {port}, worker {worker}"),
            Self::Egress { port, queue } => write!(f, "port {port}, queue {queue}"),
            Self::Table(table) => write!(f, "table {table}"),
        }
    }
}

impl WorkerSet {
    /// Returns the usage of all bounded resources. Most values are those that workers last published
    /// (`Worker::housekeeping`).
    pub fn usages(&self) -> Vec<(UsagePlace, Usage)> {
        let mut usages = Vec::new();
        for (worker, (reports, link)) in self.reporter.workers().zip(self.links.iter()).enumerate() {
            let place = UsagePlace::Worker(worker);
            if let Some(usage) = reports.published.get() {
                usages.extend(of_worker(&usage).map(|usage| (place, usage)));
            }
            usages.extend(link.usages().map(|usage| (place, usage)));
        }
        for (port, report) in self.reporter.ports() {
            if let Some(report) = report {
                let place = UsagePlace::Queue { port, worker: report.worker };
                usages.extend(of_outbox(report.outbox).map(|usage| (place, usage)));
            }
        }
        for port in self.reporter.ports_with_queues() {
            let queues = self.reporter.port_queues(port);
            usages.extend(queues.iter().map(|queue| {
                let limit = 2 * usize::from(queue.settings.limit_frames);
                let place = UsagePlace::Egress { port, queue: queue.settings.id };
                (place, Usage::of("queue_frames", queue.waiting, limit))
            }));
        }
        let records = self.lut_entries() * self.links.len();
        let luts = self.fast_tables().filter_map(|(table, lut)| Some((table, lut?)));
        usages.extend(luts.map(|(table, lut)| {
            (UsagePlace::Table(table), Usage::of("lut_records", lut.figures.records as usize, records))
        }));
        usages
    }
}

/// Returns the usage of a worker's resources, in the order in which commands show it.
fn of_worker(usage: &WorkerUsage) -> impl Iterator<Item = Usage> {
    let WorkerUsage { pipeline: PipelineUsage { lanes, copies }, egress, recorder } = *usage;
    let LaneUsage { backlog_normal, backlog_unknown, hold } = lanes;
    let EgressUsage {
        small_frames,
        large_frames,
        device_buffers,
        controller_frames,
        handovers_low_latency,
        handovers_normal,
    } = egress;
    let of_pipeline = [backlog_normal, backlog_unknown, hold, copies];
    let of_pools = [small_frames, large_frames, device_buffers, controller_frames];
    let others = [handovers_low_latency, handovers_normal, recorder];
    of_pipeline.into_iter().chain(of_pools).chain(others)
}

/// Returns the usage of an outbox, in the order in which commands show it.
fn of_outbox(usage: OutboxUsage) -> impl Iterator<Item = Usage> {
    let OutboxUsage { low_latency, normal, outstanding_bytes } = usage;
    [low_latency, normal, outstanding_bytes].into_iter()
}
