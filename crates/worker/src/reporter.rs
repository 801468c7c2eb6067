// SPDX-License-Identifier: Apache-2.0
//! Reports that workers deliver without a ring: counters, latencies, and published snapshots.

use crate::clock::Clock;
use crate::latency::{Latencies, LatencyCells};
use crate::mirror::{MirrorCounts, MirrorId};
use crate::port_plan::MirrorReports;
use crate::published::{PortReport, PortReports, Published, WorkerUsage};
use dataplane::{Counters, PortCounters, PortQueue, TableCounters, Totals};
use flow::{DropReason, EgressQueue, PortNo, TableId};
use port_cache::{MissCounters, MissFigures, MissUsage};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Shared data through which one worker reports.
pub(crate) struct WorkerReports {
    pub counters: Arc<Counters>,
    pub latencies: Arc<LatencyCells>,
    pub misses: Arc<MissCounters>,
    pub published: Published<WorkerUsage>,
}

/// The reports of all workers and of their ports.
pub(crate) struct Reporter {
    workers: Vec<WorkerReports>,
    ports: PortReports,
    mirrors: MirrorReports,
    /// Egress queues of each port that has any, by port number.
    egress: BTreeMap<PortNo, Vec<EgressQueue>>,
    /// Clock for latencies.
    clock: Clock,
}

impl Reporter {
    pub fn new(
        workers: Vec<WorkerReports>,
        ports: PortReports,
        egress: BTreeMap<PortNo, Vec<EgressQueue>>,
        clock: Clock,
    ) -> Self {
        Self { workers, ports, mirrors: Vec::new(), egress, clock }
    }

    /// Forgets the ports in `removed`, and reads the reports of added queues. `egress` has the egress queues
    /// of all ports that have any.
    pub fn change_ports(
        &mut self,
        removed: &[PortNo],
        added: PortReports,
        egress: BTreeMap<PortNo, Vec<EgressQueue>>,
    ) {
        self.ports.retain(|(number, _)| !removed.contains(number));
        self.ports.extend(added);
        self.egress = egress;
    }

    /// Forgets the mirrors in `removed`, and reads the counters of added ones.
    pub fn change_mirrors(&mut self, removed: &[MirrorId], added: MirrorReports) {
        self.mirrors.retain(|(id, _)| !removed.contains(id));
        self.mirrors.extend(added);
    }

    /// Returns the counters of a mirror, summed over the workers, or `None` if there is no such mirror.
    pub fn mirror_counts(&self, id: MirrorId) -> Option<MirrorCounts> {
        let (_, cells) = self.mirrors.iter().find(|(known, _)| *known == id)?;
        let mut sum = MirrorCounts::default();
        cells.iter().for_each(|cells| sum.add(&cells.read()));
        Some(sum)
    }

    /// Returns each worker's reports.
    pub fn workers(&self) -> impl Iterator<Item = &WorkerReports> {
        self.workers.iter()
    }

    /// Returns the last report of each port queue, with its port.
    pub fn ports(&self) -> impl Iterator<Item = (PortNo, Option<PortReport>)> {
        self.ports.iter().map(|(number, published)| (*number, published.get()))
    }

    /// Returns the numbers of the ports that have egress queues.
    pub fn ports_with_queues(&self) -> impl Iterator<Item = PortNo> {
        self.egress.keys().copied()
    }

    /// Returns the latencies of frames in the switch, by lane.
    pub fn latencies(&self) -> Latencies {
        Latencies::over(&self.clock, self.workers.iter().map(|worker| &*worker.latencies))
    }

    /// Returns the counters of the port caches, summed over the workers.
    pub fn miss_figures(&self) -> MissFigures {
        let mut sum = MissFigures::default();
        self.workers.iter().for_each(|worker| sum.add(&worker.misses.read()));
        sum
    }

    /// Returns each worker's counters of the port cache, by port.
    pub fn port_caches(&self) -> impl Iterator<Item = (usize, PortNo, MissFigures, MissUsage)> {
        self.workers.iter().enumerate().flat_map(|(worker, reports)| {
            let ports = reports.misses.read_ports();
            ports.map(move |(port, figures, usage)| (worker, port, figures, usage))
        })
    }

    /// Returns the last known link state of each port. A port is up if all its queues report that it is up.
    /// Ports with a queue that has not reported yet are omitted.
    pub fn port_links(&self) -> BTreeMap<PortNo, port::Link> {
        let mut links: BTreeMap<PortNo, port::Link> = BTreeMap::new();
        let mut unknown = Vec::new();
        for (number, report) in self.ports() {
            match report {
                Some(PortReport { link, .. }) => {
                    let join = |known: &mut port::Link| {
                        known.up &= link.up;
                        known.index = known.index.filter(|_| known.index == link.index);
                    };
                    links.entry(number).and_modify(join).or_insert(link);
                }
                None => unknown.push(number),
            }
        }
        links.retain(|number, _| !unknown.contains(number));
        links
    }

    /// Returns a table's counters, summed over all workers.
    pub fn table_counters(&self, table: TableId) -> TableCounters {
        let mut sum = TableCounters::default();
        for worker in &self.workers {
            let (lookups, matches) = worker.counters.table(table);
            sum.lookups += lookups;
            sum.matches += matches;
        }
        sum
    }

    /// Returns a port's counters, or `None` if no worker serves it.
    pub fn port_counters(&self, port: PortNo) -> Option<PortCounters> {
        let mut sum = port::Statistics::default();
        let (mut known, mut queue_full) = (false, 0);
        for (_, report) in self.ports().filter(|(number, _)| *number == port) {
            let report = report.unwrap_or_default();
            sum.add(&report.statistics);
            queue_full += report.queues.iter().map(|queue| queue.dropped).sum::<u64>();
            known = true;
        }
        let queue_drop = (queue_full > 0).then_some((DropReason::QueueFull.name(), queue_full));
        known.then(|| PortCounters {
            rx_packets: sum.rx_packets,
            rx_bytes: sum.rx_bytes,
            tx_packets: sum.tx_packets,
            tx_bytes: sum.tx_bytes,
            rx_dropped: sum.rx_dropped(),
            tx_dropped: sum.tx_dropped() + queue_full,
            by_name: sum.named_drops().filter(|(_, count)| *count != 0).chain(queue_drop).collect(),
        })
    }

    /// Returns a port's egress queues, in order of their numbers.
    pub fn port_queues(&self, port: PortNo) -> Vec<PortQueue> {
        let idle = |settings: &EgressQueue| PortQueue {
            settings: *settings,
            tx_packets: 0,
            tx_bytes: 0,
            dropped: 0,
            waiting: 0,
        };
        let mut queues: Vec<PortQueue> = self.egress.get(&port).into_iter().flatten().map(idle).collect();
        let reports = self.ports().filter(|(number, _)| *number == port);
        for report in reports.filter_map(|(_, report)| report) {
            for queue in &mut queues {
                let Some(reported) = report.queues.get(queue.settings.id.0 as usize) else { continue };
                queue.tx_packets += reported.tx_packets;
                queue.tx_bytes += reported.tx_bytes;
                queue.dropped += reported.dropped;
                queue.waiting += reported.waiting;
            }
        }
        queues
    }

    /// Returns the counters of all packets, summed over all workers.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for worker in &self.workers {
            worker.counters.add_to(&mut totals);
        }
        totals
    }
}
