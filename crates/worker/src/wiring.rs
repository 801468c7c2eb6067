// SPDX-License-Identifier: Apache-2.0
//! Construction of workers and the rings between them.

use crate::answered::AnsweredUntil;
use crate::compiler::OperationCompiler;
use crate::config::{PortQueues, WorkerSetConfig};
use crate::egress::{ASIDE, STOCK, WorkerEgress};
use crate::handover::{self, Arrivals, CachePadded, Peer};
use crate::instruments::BurstInstruments;
use crate::latency::{LatencyCells, LatencyMonitor};
use crate::link::{Link, Links};
use crate::lut_manager::LutManager;
use crate::mirror::Mirrors;
use crate::port_change::{Request, Served};
use crate::port_plan::{PortPlan, share_queues};
use crate::published::{Published, WorkerUsage};
use crate::quantum::Quantum;
use crate::reporter::{Reporter, WorkerReports};
use crate::requeues::Requeues;
use crate::search::{self, SearchLink, SearchState, SearchWorker, Watch};
use crate::set::WorkerSet;
use crate::stopwatch::{Costs, Stopwatch};
use crate::table_compiler::TableCompiler;
use crate::worker::{Channel, Worker};
use actions::PacketInLimits;
use dataplane::{Counters, Event};
use flow::Nanos;
use frame::Frame;
use pipeline::{BURST, Express, Pipeline, Probe};
use port::Pools;
use port_cache::{MissCounters, PortCache};
use rtrb::{Consumer, Producer, RingBuffer};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Creates a set of workers without a probe.
#[must_use]
pub fn build(config: &WorkerSetConfig, ports: Vec<PortQueues>) -> (WorkerSet, Vec<Worker>) {
    build_with(config, ports, || ())
}

/// Creates a set without workers, for a model that forwards no packets.
#[must_use]
pub fn without_workers() -> WorkerSet {
    let config = WorkerSetConfig { workers: 0, ..WorkerSetConfig::default() };
    let (set, _) = build(&config, Vec::new());
    set
}

/// Creates a set of workers. `probe` creates a separate probe for each of them.
#[must_use]
pub fn build_with<P: Probe>(
    config: &WorkerSetConfig,
    ports: Vec<PortQueues>,
    probe: impl FnMut() -> P,
) -> (WorkerSet, Vec<Worker<P>>) {
    build_from(config, ports, AllocatedFrames::new(config), probe)
}

/// Creates a set of workers like [`build_with`], with frames that have been allocated for the same `config`.
/// They can be allocated before the ports are open.
#[must_use]
pub fn build_from<P: Probe>(
    config: &WorkerSetConfig,
    ports: Vec<PortQueues>,
    frames: AllocatedFrames,
    mut probe: impl FnMut() -> P,
) -> (WorkerSet, Vec<Worker<P>>) {
    debug_assert_eq!(frames.counts, frame_counts(config), "the frames have another configuration");
    let sizes = Sizes::of(config, ports.len());
    let plan = PortPlan::of(&ports, config, sizes.in_all);
    let wiring = Wiring { config, sizes, limits: Arc::new(plan.limits()), plan };
    let (served, port_reports) = share_queues(ports, config.workers);
    let (mut links, mut reports, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    let mut workers = Vec::with_capacity(config.workers);
    let (mut search, search_worker) = wiring.search();
    let parts = served.into_iter().zip(wiring.rings()).zip(frames.of_workers);
    for (number, ((served, rings), frames)) in parts.enumerate() {
        let (control, end) = wiring.connect(&served);
        links.push(control.link);
        reports.push(control.reports);
        costs.push(control.costs);
        let worker = wiring.worker(number, served, rings, frames, end, probe());
        workers.push(Worker { search: search.next(), ..worker });
    }
    let search_worker = search_worker.map(|(link, worker)| {
        links.push(link);
        worker
    });
    let luts = |tables| LutManager::new(config.lut_entries, config.consistency, config.workers, tables);
    let egress = wiring.plan.egress();
    let requeues = Requeues::new(!egress.is_empty());
    let compiler = OperationCompiler::new(TableCompiler::new(costs, luts), requeues, config);
    let reporter = Reporter::new(reports, port_reports, egress, config.clock);
    let links = Links::new(links, config.workers);
    (WorkerSet::new(links, reporter, compiler, wiring.plan, config, search_worker), workers)
}

/// Frames of all workers, except those for packets in port caches. Allocating them takes 10 to 25 ms, because
/// the kernel clears their memory.
#[derive(Debug)]
pub struct AllocatedFrames {
    /// Result of [`frame_counts`].
    counts: [usize; 4],
    of_workers: Vec<WorkerFrames>,
}

/// Returns the numbers of workers and of their frames, which determine what is allocated.
fn frame_counts(config: &WorkerSetConfig) -> [usize; 4] {
    [config.workers, config.small_frames, config.large_frames, config.controller_frames]
}

/// Frames of a worker, and its frames for the controller.
#[derive(Debug)]
struct WorkerFrames {
    pools: Pools,
    stock: Pools,
}

impl AllocatedFrames {
    /// Allocates the frames of a set of workers that will have this configuration.
    #[must_use]
    pub fn new(config: &WorkerSetConfig) -> Self {
        let of_worker = |number: usize| {
            let home = number as u16;
            WorkerFrames {
                pools: Pools::new(home, config.small_frames, config.large_frames),
                stock: Pools::new(home | STOCK, config.controller_frames, Sizes::stock_large(config)),
            }
        };
        Self { counts: frame_counts(config), of_workers: (0..config.workers).map(of_worker).collect() }
    }
}

/// Data that is needed to construct each worker.
struct Wiring<'c> {
    config: &'c WorkerSetConfig,
    sizes: Sizes,
    plan: PortPlan,
    limits: Arc<PacketInLimits>,
}

impl Wiring<'_> {
    /// Creates both ends of the connection between the control thread and a worker.
    fn connect(&self, served: &[Served]) -> (ControlEnd, WorkerEnd) {
        let (request_in, requests) = RingBuffer::<Box<Request>>::new(self.config.operations);
        let (retired, retired_out) = RingBuffer::new(self.config.operations);
        let (events, events_out) = RingBuffer::<Event>::new(self.config.events);
        let (recycle, recycled) = RingBuffer::new(self.sizes.stock.max(1));
        let end = WorkerEnd {
            channel: Channel {
                requests,
                retired,
                applied: Arc::default(),
                requested: Arc::default(),
                counted_until: Arc::new(AtomicU64::new(u64::MAX)),
                sleeping: Arc::default(),
                answered: AnsweredUntil::default(),
            },
            events,
            recycled,
            counters: Arc::default(),
            costs: Arc::default(),
            latencies: Arc::default(),
            misses: Arc::new(MissCounters::new(served.iter().map(|served| served.number))),
            published: Published::default(),
        };
        let link = Link {
            requests: request_in,
            retired: retired_out,
            events: events_out,
            recycle,
            applied: Arc::clone(&end.channel.applied),
            requested: Arc::clone(&end.channel.requested),
            counted_until: Arc::clone(&end.channel.counted_until),
            sleeping: Arc::clone(&end.channel.sleeping),
            parked: VecDeque::new(),
            waker: None,
            search: None,
            watch: Watch::default(),
        };
        let reports = WorkerReports {
            counters: Arc::clone(&end.counters),
            latencies: Arc::clone(&end.latencies),
            misses: Arc::clone(&end.misses),
            published: end.published.clone(),
        };
        (ControlEnd { link, reports, costs: Arc::clone(&end.costs) }, end)
    }

    /// Creates the search worker, if there is one, and each worker's link to it. Also returns the control
    /// thread's link to it.
    fn search(&self) -> (std::vec::IntoIter<SearchLink>, Option<(Link, SearchWorker)>) {
        let Some(config) = self.config.port_cache.filter(|_| self.config.has_search_worker()) else {
            return (Vec::new().into_iter(), None);
        };
        let state = Arc::<SearchState>::default();
        let numbers = 0..self.config.workers as u16;
        let link = |number| search::links(number, &config.limits, &state);
        let (links, clients): (Vec<_>, Vec<_>) = numbers.map(link).unzip();
        let (control, end) = self.connect(&[]);
        let worker = SearchWorker::new(&config, clients, end.channel, Arc::clone(&state));
        (links.into_iter(), Some((Link { search: Some(state), ..control.link }, worker)))
    }

    /// Creates the rings between all workers.
    fn rings(&self) -> Vec<WorkerRings> {
        let (peers, arrivals) = mesh(self.config.workers, || handover::pair(self.config.handovers));
        let (homes, returned) = mesh(self.config.workers, || {
            let (home, returned) = RingBuffer::<Frame>::new(self.sizes.per_worker.max(1));
            (CachePadded(home), CachePadded(returned))
        });
        let handovers = peers.into_iter().zip(arrivals);
        let returns = homes.into_iter().zip(returned);
        let rings = |((peers, arrivals), (homes, returned))| WorkerRings { peers, arrivals, homes, returned };
        handovers.zip(returns).map(rings).collect()
    }

    /// Creates a worker from its queues, its rings and its end of the connection to the control thread.
    fn worker<P: Probe>(
        &self,
        number: usize,
        served: Vec<Served>,
        rings: WorkerRings,
        WorkerFrames { pools, stock }: WorkerFrames,
        end: WorkerEnd,
        probe: P,
    ) -> Worker<P> {
        let Self { config, sizes, plan, limits } = self;
        let WorkerRings { peers, arrivals, homes, mut returned } = rings;
        let WorkerEnd { channel, events, recycled, counters, costs, latencies, misses, published } = end;
        returned.push(CachePadded(recycled));
        let home = number as u16;
        let outboxes =
            served.iter().map(|served| plan.outbox(number, served.number, served.queue.outstanding()));
        let egress = WorkerEgress {
            number: home,
            routes: plan.routes(number),
            outboxes: outboxes.collect(),
            long: false,
            lanes: config.lanes.is_on(),
            epoch: 0,
            now: Nanos(0),
            peers,
            homes,
            returned,
            pools,
            stock,
            aside: Pools::new(home | ASIDE, sizes.aside, sizes.aside_large),
            events,
        };
        let stopwatch =
            config.stopwatch.map(|clock| Stopwatch::new(clock, config.timed_bursts.max(1), costs));
        let records = Express::places(config.express_records);
        let cache = config.port_cache.filter(|_| config.express_records > 0).map(|config| {
            let ports = served.iter().map(|served| served.number).collect();
            PortCache::new(&config, ports, BURST, records, misses).for_worker(home)
        });
        Worker {
            pipeline: Pipeline::new(Arc::clone(&counters), config.lanes)
                .with_port_cache(cache)
                .with_packet_in_limits(Arc::clone(limits)),
            counters,
            egress,
            served,
            arrivals,
            mirrors: Mirrors::default(),
            channel,
            search: None,
            published,
            burst: Vec::with_capacity(BURST),
            done: Vec::with_capacity((2 * config.outbox_frames).min(sizes.in_all)),
            now: Nanos(0),
            quantum: Quantum::new(config.quanta),
            received: 0,
            idle_turns: 0,
            first: 0,
            latency: LatencyMonitor::new(config.clock, latencies),
            probe,
            instruments: BurstInstruments::new(stopwatch),
        }
    }
}

/// Numbers of frames that are allocated.
struct Sizes {
    /// Number of a worker's frames for the controller, small and large.
    stock: usize,
    /// Number of a worker's small and large frames for packets in the port cache.
    aside: usize,
    /// Number of a worker's large frames for packets in the port cache.
    aside_large: usize,
    /// Number of a worker's frames, including those for the controller and the port cache.
    per_worker: usize,
    /// Number of frames of all workers together.
    in_all: usize,
}

impl Sizes {
    /// Returns the number of a worker's large frames for the controller.
    fn stock_large(config: &WorkerSetConfig) -> usize {
        config.controller_frames / 16
    }

    fn of(config: &WorkerSetConfig, ports: usize) -> Self {
        let stock = config.controller_frames + Self::stock_large(config);
        let waits = config.port_cache.filter(|cache| cache.waits() && config.express_records > 0);
        let aside = waits.map_or(0, |cache| ports * cache.limits.packets());
        let aside_large = aside.min(config.large_frames) / 4;
        let per_worker = config.small_frames + config.large_frames + stock + aside + aside_large;
        Self { stock, aside, aside_large, per_worker, in_all: config.workers * per_worker }
    }
}

/// The control thread's part of a connection to a worker.
struct ControlEnd {
    link: Link,
    reports: WorkerReports,
    costs: Arc<Costs>,
}

/// The worker's part of its connection to the control thread.
struct WorkerEnd {
    channel: Channel,
    events: Producer<Event>,
    recycled: Consumer<Frame>,
    counters: Arc<Counters>,
    costs: Arc<Costs>,
    latencies: Arc<LatencyCells>,
    misses: Arc<MissCounters>,
    published: Published<WorkerUsage>,
}

/// A worker's ends of the rings to and from other workers. The lists of sending ends are indexed by the
/// receiving worker.
struct WorkerRings {
    /// Rings to the workers that transmit frames on behalf of this worker.
    peers: Vec<Option<Peer>>,
    /// Rings from the workers on whose behalf this worker transmits frames.
    arrivals: Vec<Arrivals>,
    /// Rings that return frames to the workers that own them.
    homes: Vec<Option<CachePadded<Producer<Frame>>>>,
    /// Rings on which this worker's frames return.
    returned: Vec<CachePadded<Consumer<Frame>>>,
}

/// Rings from each worker to every other worker: producers by sender, consumers by receiver.
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

#[cfg(test)]
mod tests {
    use super::*;
    use dataplane::DataPlane;
    use flow::operation::{PacketOut, Releases};
    use flow::{Action, DropReason, Operation, PortNo};

    #[test]
    fn packet_outs_without_workers_are_counted_as_dropped() {
        let packet = PacketOut {
            in_port: PortNo(0),
            actions: vec![Action::output(PortNo(1))],
            bytes: vec![0; 60],
            releases: Releases::SameFlow,
        };
        let mut set = without_workers();
        for _ in 0..3 {
            let version = set.submit(Operation::PacketOut(Arc::new(packet.clone())));
            assert_eq!(set.applied(), version);
        }
        let totals = set.totals();
        let dropped = totals.dropped.of(DropReason::NoWorker);
        assert_eq!((totals.received, dropped, totals.dropped.sum()), (3, 3, 3));
    }
}
