// SPDX-License-Identifier: Apache-2.0
//! The ports of a set of workers as the control thread knows them: which worker serves which port, and who
//! sends to it. The plan prepares the workers' parts at the start, and their changes while they run
//! (docs/adr/0059).

use crate::config::{PortQueues, WorkerSetConfig};
use crate::mirror::{MirrorCells, MirrorChange, MirrorId, MirrorSetup, Mirrors, Taps, WorkerMirror};
use crate::outbox::Outbox;
use crate::port_change::{PortChange, Served, ServedOutbox};
use crate::published::{PortReports, Published};
use crate::routes::{Route, Routes};
use actions::{PacketInLimits, PacketInRates};
use flow::mirror::MIRRORS_MAX;
use flow::{EgressQueue, PortNo};
use port::Outstanding;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

/// A change of the ports of running workers.
#[derive(Default)]
pub struct PortsUpdate {
    /// Ports to remove. Their queues are closed on the control thread.
    pub removed: Vec<PortNo>,
    /// Ports to add. A number may also be in `removed`; otherwise it must be new.
    pub added: Vec<PortQueues>,
    /// Ports that stay, with their new egress queues.
    pub egress: Vec<(PortNo, Vec<EgressQueue>)>,
    /// Ports that stay, with the new watermarks of their devices in bytes.
    pub outstanding: Vec<(PortNo, usize)>,
    /// Rate limits of packet-ins, if they change.
    pub packet_in_rates: Option<PacketInRates>,
    /// Mirrors to remove.
    pub mirrors_removed: Vec<MirrorId>,
    /// Mirrors to add. The ports of each mirror must exist after the change.
    pub mirrors_added: Vec<MirrorSetup>,
}

/// Shows whether a change of ports is complete: all workers have applied it, and the queues that they gave
/// back are closed.
#[derive(Clone, Debug)]
pub struct PortsChanged(Weak<()>);

impl PortsChanged {
    /// Returns whether the change is complete. The data plane must be polled in between
    /// ([`dataplane::DataPlane::applied`]).
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// A port of the plan.
struct PlannedPort {
    number: PortNo,
    /// Workers with a queue of the port. The first one sends for workers without a queue. If there are egress
    /// queues, it sends for all workers.
    workers: Vec<usize>,
    /// Egress queues, with the default queue; empty if the port has none.
    egress: Vec<EgressQueue>,
}

impl PlannedPort {
    fn of(port: &PortQueues) -> Self {
        let workers = port.queues.iter().map(|(worker, _)| *worker).collect();
        Self { number: port.number, workers, egress: EgressQueue::complete(port.egress.clone()) }
    }

    /// Returns whether worker `number`, if it has a queue at the port, may send through that queue.
    fn is_own(&self, number: usize) -> bool {
        self.egress.is_empty() || self.workers.first() == Some(&number)
    }
}

/// The ports of a set of workers.
pub(crate) struct PortPlan {
    ports: Vec<PlannedPort>,
    /// For each worker, the ports that it serves, in the order of its list of queues.
    served: Vec<Vec<PortNo>>,
    /// Maximum number of normal frames of an outbox.
    outbox_frames: usize,
    /// Number of frames of all workers together.
    frames: usize,
    rates: PacketInRates,
    mirrors: Vec<MirrorId>,
}

/// A prepared change of the ports.
pub(crate) struct PreparedPorts {
    /// The change of each worker.
    pub changes: Vec<PortChange>,
    /// The mailboxes of the added queues.
    pub reports: PortReports,
    /// The counters of the added mirrors.
    pub mirrors: MirrorReports,
    pub changed: PortsChanged,
}

/// The counters of each mirror in each worker.
pub(crate) type MirrorReports = Vec<(MirrorId, Vec<Arc<MirrorCells>>)>;

impl PortPlan {
    /// Creates the plan of these ports. `frames` is the number of frames of all workers together.
    pub fn of(ports: &[PortQueues], config: &WorkerSetConfig, frames: usize) -> Self {
        let mut plan = Self {
            ports: Vec::new(),
            served: vec![Vec::new(); config.workers],
            outbox_frames: config.outbox_frames,
            frames,
            rates: config.packet_in_rates,
            mirrors: Vec::new(),
        };
        ports.iter().for_each(|port| plan.add(port));
        plan
    }

    fn add(&mut self, port: &PortQueues) {
        let port = PlannedPort::of(port);
        for worker in &port.workers {
            self.served[*worker].push(port.number);
        }
        self.ports.push(port);
    }

    fn remove(&mut self, number: PortNo) {
        self.ports.retain(|port| port.number != number);
        self.served.iter_mut().for_each(|served| served.retain(|served| *served != number));
    }

    fn port(&self, number: PortNo) -> Option<&PlannedPort> {
        self.ports.iter().find(|port| port.number == number)
    }

    /// Returns the egress queues of each port that has any.
    pub fn egress(&self) -> BTreeMap<PortNo, Vec<EgressQueue>> {
        let with_queues = self.ports.iter().filter(|port| !port.egress.is_empty());
        with_queues.map(|port| (port.number, port.egress.clone())).collect()
    }

    /// Creates the limits of packet-ins, with full buckets.
    pub fn limits(&self) -> PacketInLimits {
        PacketInLimits::new(self.rates, self.ports.iter().map(|port| port.number).collect())
    }

    /// Returns the routes of worker `number`: its own queue, or else the port's first worker.
    pub fn routes(&self, number: usize) -> Routes {
        let route = |port: &PlannedPort| {
            let place = self.served[number].iter().position(|served| *served == port.number);
            let own = place.filter(|_| port.is_own(number)).map(|at| Route::Own(at as u16));
            let owner = port.workers.first().filter(|owner| **owner != number);
            let peer = owner.map(|owner| Route::Peer(*owner as u16));
            own.or(peer).map(|route| (port.number, route))
        };
        Routes::new(self.ports.iter().filter_map(route).collect())
    }

    /// Creates the outbox of worker `number` for a port, whose device has this watermark.
    pub fn outbox(&self, number: usize, port: PortNo, outstanding: Outstanding) -> Outbox {
        match self.port(port) {
            Some(port) if !port.egress.is_empty() && port.is_own(number) => {
                Outbox::behind(&port.egress, outstanding, self.outbox_frames, self.frames)
            }
            _ => Outbox::new(self.outbox_frames, self.frames),
        }
    }

    /// Changes the ports. Returns the change of each worker, and where the workers report.
    pub fn change(&mut self, update: PortsUpdate) -> PreparedPorts {
        let PortsUpdate {
            removed,
            added,
            egress,
            outstanding,
            packet_in_rates,
            mirrors_removed,
            mirrors_added,
        } = update;
        let (mut mirrors, mirror_reports) = self.change_mirrors(mirrors_removed, mirrors_added);
        let before: Vec<usize> = self.served.iter().map(Vec::len).collect();
        removed.iter().for_each(|number| self.remove(*number));
        added.iter().for_each(|port| self.add(port));
        let mut changed = Vec::new();
        for (number, queues) in egress {
            if let Some(port) = self.ports.iter_mut().find(|port| port.number == number) {
                port.egress = EgressQueue::complete(queues);
                changed.extend(port.workers.first().map(|owner| (*owner, number)));
            }
        }
        let is_limited = self.rates != PacketInRates::NONE && !(removed.is_empty() && added.is_empty());
        self.rates = packet_in_rates.unwrap_or(self.rates);
        let limits = (is_limited || packet_in_rates.is_some()).then(|| Arc::new(self.limits()));
        let (queues, reports) = share_queues(added, self.served.len());
        let alive = Arc::new(());
        let mut changes = Vec::with_capacity(self.served.len());
        for (worker, (queues, before)) in queues.into_iter().zip(before).enumerate() {
            let all = before + queues.len();
            let with_outbox = |served: Served| {
                let outbox = self.outbox(worker, served.number, served.queue.outstanding());
                ServedOutbox { served, outbox }
            };
            // The outbox that is replaced knows how much its device has not sent.
            let renewed = |number| self.outbox(worker, number, Outstanding::NONE);
            let of_worker = changed.iter().filter(|(owner, _)| *owner == worker);
            changes.push(PortChange {
                removed: removed.clone(),
                added: queues.into_iter().map(with_outbox).collect(),
                outboxes: of_worker.map(|(_, number)| (*number, renewed(*number))).collect(),
                outstanding: outstanding.clone(),
                routes: self.routes(worker),
                limits: limits.clone(),
                mirrors: mirrors.pop_front(),
                space: (Vec::with_capacity(all), Vec::with_capacity(all)),
                given_back: Vec::with_capacity(before),
                _alive: Arc::clone(&alive),
            });
        }
        let changed = PortsChanged(Arc::downgrade(&alive));
        PreparedPorts { changes, reports, mirrors: mirror_reports, changed }
    }

    /// Changes the mirrors. Returns the change of each worker, or an empty list if nothing changes, and the
    /// counters of the added mirrors.
    fn change_mirrors(
        &mut self,
        removed: Vec<MirrorId>,
        added: Vec<MirrorSetup>,
    ) -> (VecDeque<MirrorChange>, MirrorReports) {
        if removed.is_empty() && added.is_empty() {
            return (VecDeque::new(), Vec::new());
        }
        let before = self.mirrors.len();
        self.mirrors.retain(|id| !removed.contains(id));
        self.mirrors.extend(added.iter().map(|setup| setup.id));
        debug_assert!(self.mirrors.len() <= MIRRORS_MAX, "the configuration has a limit");
        let workers = self.served.len();
        let change = |_| MirrorChange {
            removed: removed.clone(),
            added: Vec::with_capacity(added.len()),
            space: Mirrors::with_space(self.mirrors.len()),
            given_back: Vec::with_capacity(before),
        };
        let mut changes: VecDeque<MirrorChange> = (0..workers).map(change).collect();
        let mut reports = Vec::with_capacity(added.len());
        for setup in added {
            let id = setup.id;
            let parts = WorkerMirror::for_workers(setup, workers);
            let mut cells = Vec::with_capacity(workers);
            for (change, (part, counters)) in changes.iter_mut().zip(parts) {
                change.added.push(part);
                cells.push(counters);
            }
            reports.push((id, cells));
        }
        (changes, reports)
    }
}

/// Assigns the queues of ports to workers. Gives each queue a mailbox for its worker's reports.
pub(crate) fn share_queues(ports: Vec<PortQueues>, workers: usize) -> (Vec<Vec<Served>>, PortReports) {
    let mut served: Vec<Vec<Served>> = (0..workers).map(|_| Vec::new()).collect();
    let mut port_reports: PortReports = Vec::new();
    for port in ports {
        for (worker, queue) in port.queues {
            let published = Published::default();
            port_reports.push((port.number, published.clone()));
            served[worker].push(Served { number: port.number, taps: Taps::default(), queue, published });
        }
    }
    (served, port_reports)
}
