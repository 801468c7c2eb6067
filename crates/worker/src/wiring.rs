// SPDX-License-Identifier: Apache-2.0
//! Construction of workers and the rings between them.

use crate::clock::Clock;
use crate::consistency::Consistency;
use crate::egress::{STOCK, WorkerEgress};
use crate::handover::{self, CachePadded};
use crate::instruments::BurstInstruments;
use crate::latency::{LatencyCells, LatencyMonitor};
use crate::outbox::{OUTBOX_FRAMES, Outbox};
use crate::published::{PortReports, Published, WorkerUsage};
use crate::quantum::{Quanta, Quantum};
use crate::routes::{Route, Routes};
use crate::set::{Link, WorkerSet};
use crate::stopwatch::{Costs, Stopwatch};
use crate::worker::{Channel, Served, Worker};
use dataplane::Event;
use flow::{EgressQueue, Nanos, PortNo};
use frame::Frame;
use pipeline::{BURST, Counters, LaneLimits, Pipeline, Probe, Updates};
use port::{Pools, Queue};
use rtrb::{Consumer, Producer, RingBuffer};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Sizes and limits of a set of workers.
#[derive(Clone, Copy, Debug)]
pub struct WorkerSetConfig {
    /// Number of workers.
    pub workers: usize,
    /// Small frames per worker.
    pub small_frames: usize,
    /// Large frames per worker (GSO super-frames, jumbo frames).
    pub large_frames: usize,
    /// Frames per worker that refer to memory of a device.
    pub shells: usize,
    /// Frames per worker for packets to the controller.
    pub controller_frames: usize,
    /// Capacity of the ring for operations to each worker.
    pub operations: usize,
    /// Capacity of the ring for events from each worker.
    pub events: usize,
    /// Capacity of each ring for frames between two workers, per lane.
    pub handovers: usize,
    /// Maximum number of normal frames in an outbox. Low-latency frames have the same limit, separately.
    pub outbox_frames: usize,
    /// Limits of the two lanes. By default packets do not wait: each burst is finished before the next is
    /// received.
    pub lanes: LaneLimits,
    /// Budgets for working off the backlog.
    pub quanta: Quanta,
    /// Records of each LUT in each worker; 0 turns the fast-forwarding path off.
    pub lut_entries: usize,
    /// How LUT records are kept consistent with rule changes.
    pub consistency: Consistency,
    /// Clock for timing one burst in many, step by step; `None`: no timing. Forwarding itself never reads it.
    pub stopwatch: Option<fn() -> Nanos>,
    /// One of this many bursts is timed; 0 counts as 1.
    pub timed_bursts: u32,
    /// Clock for the latency of each frame. Forwarding itself never reads it.
    pub clock: Clock,
}

impl Default for WorkerSetConfig {
    fn default() -> Self {
        Self {
            workers: 1,
            small_frames: 8_192,
            large_frames: 256,
            shells: 0,
            controller_frames: 512,
            operations: 1_024,
            events: 1_024,
            handovers: 1_024,
            outbox_frames: OUTBOX_FRAMES,
            lanes: LaneLimits::default(),
            quanta: Quanta::default(),
            lut_entries: 4_096,
            stopwatch: None,
            consistency: Consistency::default(),
            timed_bursts: 1_024,
            clock: Clock::stopped(),
        }
    }
}

/// A port's queues, each with the number of the worker that serves it.
pub struct PortQueues {
    /// Port number.
    pub number: PortNo,
    /// Device queues with worker numbers. A worker has at most one queue per port.
    pub queues: Vec<(usize, Box<dyn Queue>)>,
    /// Egress queues with distinct numbers. If there are any, the first worker of the port sends for all
    /// workers, so that the rates apply to the whole port. If there are none, frames leave in order of
    /// arrival.
    pub egress: Vec<EgressQueue>,
}

/// Creates workers without instruments.
#[must_use]
pub fn build(config: &WorkerSetConfig, ports: Vec<PortQueues>) -> (WorkerSet, Vec<Worker>) {
    build_with(config, ports, || ())
}

/// Creates workers, each with a probe of its own from `probe`.
#[must_use]
pub fn build_with<P: Probe>(
    config: &WorkerSetConfig,
    ports: Vec<PortQueues>,
    mut probe: impl FnMut() -> P,
) -> (WorkerSet, Vec<Worker<P>>) {
    let workers = config.workers;
    let senders: Vec<Sender> = ports.iter().map(Sender::of).collect();
    let egress_queues = queues_by_port(&ports);
    let (served, port_reports) = share_queues(ports, workers);
    let stock_large = config.controller_frames / 16;
    let stock = config.controller_frames + stock_large;
    let all_frames = config.small_frames + config.large_frames + config.shells + stock;
    let in_all = workers * all_frames;
    let (mut peers, mut arrivals) = mesh(workers, || handover::pair(config.handovers));
    let (mut homes, mut returned) = mesh(workers, || {
        let (home, returned) = RingBuffer::<Frame>::new(all_frames.max(1));
        (CachePadded(home), CachePadded(returned))
    });
    let mut links = Vec::with_capacity(workers);
    let mut made = Vec::with_capacity(workers);
    for (number, served) in served.into_iter().enumerate() {
        let home = number as u16;
        let (link, WorkerEnd { channel, events, recycled, counters, costs, latencies, published }) =
            connect(config, stock);
        links.push(link);
        let mut returned: Vec<CachePadded<Consumer<Frame>>> = std::mem::take(&mut returned[number]);
        returned.push(CachePadded(recycled));
        let sizes = (config.outbox_frames, in_all);
        let outboxes = served.iter().map(|served| outbox(number, served, &senders, &egress_queues, sizes));
        let egress = WorkerEgress {
            number: home,
            routes: routes(number, &senders, &served),
            outboxes: outboxes.collect(),
            long: false,
            lanes: config.lanes.is_on(),
            epoch: 0,
            now: 0,
            peers: std::mem::take(&mut peers[number]),
            homes: std::mem::take(&mut homes[number]),
            returned,
            pools: Pools::new(home, config.small_frames, config.large_frames).with_shells(config.shells),
            stock: Pools::new(home | STOCK, config.controller_frames, stock_large),
            events,
        };
        made.push(Worker {
            pipeline: Pipeline::new(Arc::clone(&counters), config.lanes),
            counters,
            egress,
            served,
            arrivals: std::mem::take(&mut arrivals[number]),
            channel,
            published,
            burst: Vec::with_capacity(BURST),
            done: Vec::with_capacity((2 * config.outbox_frames).min(in_all)),
            now: 0,
            quantum: Quantum::new(config.quanta),
            first: 0,
            latency: LatencyMonitor::new(config.clock, latencies),
            probe: probe(),
            instruments: BurstInstruments::new(
                config.stopwatch.map(|clock| Stopwatch::new(clock, config.timed_bursts.max(1), costs)),
            ),
        });
    }
    (WorkerSet::new(links, port_reports, egress_queues, config), made)
}

/// What a worker has of the link between it and the control thread.
struct WorkerEnd {
    channel: Channel,
    events: Producer<Event>,
    recycled: Consumer<Frame>,
    counters: Arc<Counters>,
    costs: Arc<Costs>,
    latencies: Arc<LatencyCells>,
    published: Published<WorkerUsage>,
}

/// Creates both ends of the link between the control thread and a worker with `stock` frames for the
/// controller.
fn connect(config: &WorkerSetConfig, stock: usize) -> (Link, WorkerEnd) {
    let (request_in, requests) = RingBuffer::<Box<Updates>>::new(config.operations);
    let (retired, retired_out) = RingBuffer::new(config.operations);
    let (events, events_out) = RingBuffer::<Event>::new(config.events);
    let (recycle, recycled) = RingBuffer::new(stock.max(1));
    let end = WorkerEnd {
        channel: Channel { requests, retired, applied: Arc::default(), sleeping: Arc::default() },
        events,
        recycled,
        counters: Arc::default(),
        costs: Arc::default(),
        latencies: Arc::default(),
        published: Published::default(),
    };
    let link = Link {
        requests: request_in,
        retired: retired_out,
        events: events_out,
        recycle,
        applied: Arc::clone(&end.channel.applied),
        sleeping: Arc::clone(&end.channel.sleeping),
        counters: Arc::clone(&end.counters),
        costs: Arc::clone(&end.costs),
        latencies: Arc::clone(&end.latencies),
        published: end.published.clone(),
        parked: VecDeque::new(),
        waker: None,
    };
    (link, end)
}

/// Gives each worker its queues, and each queue a place where its worker reports.
fn share_queues(ports: Vec<PortQueues>, workers: usize) -> (Vec<Vec<Served>>, PortReports) {
    let mut served: Vec<Vec<Served>> = (0..workers).map(|_| Vec::new()).collect();
    let mut port_reports: PortReports = Vec::new();
    for port in ports {
        for (worker, queue) in port.queues {
            let published = Published::default();
            port_reports.push((port.number, published.clone()));
            served[worker].push(Served { number: port.number, queue, published });
        }
    }
    (served, port_reports)
}

/// Returns the ports' egress queues, for ports that have any.
fn queues_by_port(ports: &[PortQueues]) -> BTreeMap<PortNo, Vec<EgressQueue>> {
    let with_queues = ports.iter().filter(|port| !port.egress.is_empty());
    with_queues.map(|port| (port.number, EgressQueue::complete(port.egress.clone()))).collect()
}

/// Which workers send to a port.
struct Sender {
    port: PortNo,
    /// The first worker that has a queue of the port. It sends for workers without one.
    owner: Option<usize>,
    /// Whether the owner also sends for workers that have a queue of the port.
    alone: bool,
}

impl Sender {
    fn of(port: &PortQueues) -> Self {
        let owner = port.queues.first().map(|(worker, _)| *worker);
        Self { port: port.number, owner, alone: !port.egress.is_empty() }
    }

    /// Returns whether worker `number` may send by its own queue, if it has one.
    fn is_own(&self, number: usize) -> bool {
        !self.alone || self.owner == Some(number)
    }
}

/// Returns the routes of worker `number`: its own queue, or else the port's owner.
fn routes(number: usize, senders: &[Sender], served: &[Served]) -> Routes {
    let route = |sender: &Sender| {
        let place = served.iter().position(|served| served.number == sender.port);
        let own = place.filter(|_| sender.is_own(number)).map(|at| Route::Own(at as u16));
        let peer = sender.owner.filter(|owner| *owner != number).map(|owner| Route::Peer(owner as u16));
        own.or(peer).map(|route| (sender.port, route))
    };
    Routes::new(senders.iter().filter_map(route).collect())
}

/// Creates the outbox of worker `number` for a port, for at most `limit` normal frames. `frames` is the
/// number of frames of all workers.
fn outbox(
    number: usize,
    served: &Served,
    senders: &[Sender],
    egress: &BTreeMap<PortNo, Vec<EgressQueue>>,
    (limit, frames): (usize, usize),
) -> Outbox {
    let sends = senders.iter().any(|sender| sender.port == served.number && sender.is_own(number));
    match egress.get(&served.number) {
        Some(queues) if sends => Outbox::behind(queues, &*served.queue, limit, frames),
        _ => Outbox::new(limit, frames),
    }
}

/// Rings from each worker to each other worker: producers by sender, consumers by receiver.
type Mesh<In, Out> = (Vec<Vec<Option<In>>>, Vec<Vec<Out>>);

fn mesh<In, Out>(workers: usize, ring: impl Fn() -> (In, Out)) -> Mesh<In, Out> {
    let mut producers: Vec<Vec<Option<In>>> = (0..workers).map(|_| Vec::new()).collect();
    let mut consumers: Vec<Vec<Out>> = (0..workers).map(|_| Vec::new()).collect();
    for (from, producers) in producers.iter_mut().enumerate() {
        for (to, consumers) in consumers.iter_mut().enumerate() {
            if from == to {
                producers.push(None);
                continue;
            }
            let (producer, consumer) = ring();
            producers.push(Some(producer));
            consumers.push(consumer);
        }
    }
    (producers, consumers)
}
