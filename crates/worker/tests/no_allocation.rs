// SPDX-License-Identifier: Apache-2.0
//! A worker's thread must neither allocate nor free memory, for any packet or operation. The control thread
//! may do both.

#![allow(clippy::unwrap_used, clippy::panic)]

mod counting;
mod traffic;

use counting::Counted;
use dataplane::{DataPlane, LutFigures, Totals};
use flow::operation::MAC_TABLE;
use flow::syntax::{ParseOptions, parse_flow};
use flow::{
    DropReason, EgressQueue, FlowMod, FlowModCommand, Match, MirrorSelection, Nanos, PortNo, QueueId, TableId,
};
use model::{AsyncMessage, Model, ModelConfig, PortConfig, PortDesc};
use pipeline::LaneLimits;
use port::Queue;
use port::mem::{self, LoopQueue, MemHandle};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};
use worker::{
    Consistency, MirrorId, MirrorSetup, MirrorTarget, PortQueues, PortsUpdate, Quanta, Worker, WorkerSet,
    build, capture_rings,
};

#[global_allocator]
static ALLOCATOR: counting::Allocator = counting::Allocator;

/// Clock for the stopwatch.
fn elapsed() -> Nanos {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().into()
}

const WORKERS: usize = 2;

/// Number of packets per worker while its allocations are counted.
const PACKETS: usize = 100_000;

/// Virtual time of a poll iteration in nanoseconds. It is long enough for records to become idle.
const TURN_NS: Nanos = Nanos(20_000_000);

/// Number of poll iterations of a worker before allocations are counted.
const WARM_UP: usize = 300;

/// Workers track the changes of an operation one by one if it changes at most this many rules of a table.
const CHANGES_SINGLY: u32 = 64;

/// Minimum number of operations that must take effect during the test.
const OPERATIONS: u64 = 200;

/// Time limit for the expected events.
const PATIENCE: Duration = Duration::from_secs(120);

/// A port that only worker 1 serves. Worker 0 must hand frames for it to worker 1.
const FAR_PORT: u32 = 4;

/// An in-memory port served by worker 0. The control thread has its other end.
const PAIR_PORT: u32 = 5;

/// A port that both workers serve some of the time.
const NEW_PORT: u32 = 6;

struct Control {
    model: Model<WorkerSet>,
    pair: MemHandle,
    now: Nanos,
    turns: u32,
    packet_ins: usize,
    /// Number of recorded packets taken.
    recorded: u64,
}

fn make(consistency: Consistency, lanes: LaneLimits) -> (Control, Vec<Worker>) {
    let config = worker::WorkerSetConfig {
        workers: WORKERS,
        small_frames: 2_048,
        large_frames: 64,
        // There are fewer records than values, so records are displaced and some values get no record.
        lut_entries: 16,
        consistency,
        lanes,
        quanta: Quanta { small: 4, large: 16, quiet_ns: Nanos(0) },
        stopwatch: Some(elapsed),
        timed_bursts: 10,
        ..worker::WorkerSetConfig::default()
    };
    let mut ports: Vec<PortQueues> = Vec::new();
    for number in 1..=FAR_PORT {
        let workers = if number == FAR_PORT { 1..2 } else { 0..2 };
        let queue =
            |worker| (worker, Box::new(LoopQueue::new(number, traffic::frames(number))) as Box<dyn Queue>);
        ports.push(PortQueues {
            number: PortNo(number),
            queues: workers.map(queue).collect(),
            egress: Vec::new(),
        });
    }
    let (queues, pair) = mem::pair(PAIR_PORT, 1, 256);
    let queues = queues.into_iter().map(|queue| (0, Box::new(queue) as Box<dyn Queue>)).collect();
    let egress = vec![EgressQueue { max_rate_kbps: Some(1_000), ..EgressQueue::new(QueueId(0)) }];
    ports.push(PortQueues { number: PortNo(PAIR_PORT), queues, egress });
    let (plane, workers) = build(&config, ports);
    let model = Model::new(ModelConfig::default(), plane, Nanos(0));
    let mut control = Control { model, pair, now: Nanos(1), turns: 0, packet_ins: 0, recorded: 0 };
    for number in 1..=PAIR_PORT {
        let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
        control.model.add_port(Nanos(1), desc, true).unwrap();
    }
    (control, workers)
}

impl Control {
    fn flow(&mut self, text: &str) {
        let done = self.model.flow_mod(self.now, parse(text));
        assert!(done.is_ok(), "{text}: {done:?}");
    }

    fn bundle(&mut self, lines: impl IntoIterator<Item = String>) {
        let mods: Vec<_> = lines.into_iter().map(|line| parse(&line)).collect();
        self.model.bundle(self.now, mods).unwrap();
    }

    /// Takes packet-ins and learned addresses, and drains and refills the in-memory port.
    fn turn(&mut self) {
        self.now += Nanos(1_000_000);
        self.model.poll(self.now);
        while let Some(message) = self.model.next_async_message() {
            if let AsyncMessage::PacketIn(packet_in) = message {
                self.packet_ins += 1;
                self.model.recycle(packet_in.frame);
            }
        }
        while self.pair.pop_with(0, |_, _| ()).is_some() {}
        for frame in traffic::frames(PAIR_PORT) {
            self.pair.push_frame(0, &frame);
        }
        // Values are used for a while and are then idle, so that their records are displaced.
        self.turns += 1;
        self.pair.push_frame(0, &traffic::wanderer(self.turns / 40 % traffic::LISTED));
    }

    /// Makes changes of every kind: adds rules to linear tables and to hashed and scanned deltas, with bases
    /// of each engine; removes and modifies rules; deletes rules by a wildcard; changes so much that tables
    /// are swapped; and changes ports.
    fn change(&mut self, round: u32) {
        let (n, port) = (round % 50, 1 + round % 3);
        self.flow(&format!("table=1,priority=9,dl_dst=02:00:00:00:01:{n:02x},actions=output:{port}"));
        self.flow(&format!("table=0,priority=200,udp,tp_src={},actions=output:{port}", 7_000 + n));
        self.flow(&format!("table=3,index={},actions=output:{port}", 1 + n % 30));
        self.flow(&format!("delete_strict table=3,index={}", 1 + n % 30));
        self.flow(&format!("modify table=2,actions=write_metadata:{n},goto_table:4"));
        self.flow(&format!("delete_strict table=0,priority=200,udp,tp_src={}", 7_000 + n));
        // A rule that is added again goes to the delta. Its removal left a tombstone in the base.
        for rule in [traffic::route(8 + n % 24), traffic::listed(n * 2)] {
            let matching = rule.split(",actions").next().unwrap().replace("low_latency,", "");
            self.flow(&format!("delete_strict {matching}"));
            self.flow(&rule);
        }
        // Packets are recorded in some rounds.
        match round % 64 {
            2 => assert!(self.model.plane_mut().record(&Match::any(), u64::MAX)),
            5 => {
                while let Some(record) = self.model.plane_mut().next_record() {
                    self.recorded += u64::from(!record.bytes.is_empty());
                }
                self.model.plane_mut().stop_recording();
            }
            _ => {}
        }
        match round % 8 {
            // The bundle changes more rules of a table with a LUT than workers track one by one. The LUT's
            // records are therefore verified at their next hits.
            1 => self.bundle(more_listed()),
            2 => self.flow("delete table=6,udp,nw_src=10.1.0.0/16"),
            3 => self.flow("delete table=1"),
            4 => self.change_ports(round),
            5 => self.flow(&format!("modify table=1,actions=output:{port}")),
            // The bundle makes more changes than workers apply one by one, so tables, programs and pages of
            // cells are swapped.
            7 => {
                self.bundle(traffic::hashed_rules(port));
                assert_eq!(self.model.plane_mut().engine(TableId(1)).0, "exact");
            }
            _ => {}
        }
        let config = PortConfig { no_flood: n % 2 == 0, ..PortConfig::default() };
        self.model.set_port_config(self.now, PortNo(3), config).unwrap();
    }
}

impl Control {
    /// Adds or removes a port of both workers and two mirrors, and changes the egress queues of the in-memory
    /// port.
    fn change_ports(&mut self, round: u32) {
        let queue = |worker| {
            let queue = LoopQueue::new(NEW_PORT, traffic::frames(NEW_PORT));
            (worker, Box::new(queue) as Box<dyn Queue>)
        };
        let new =
            PortQueues { number: PortNo(NEW_PORT), queues: (0..2).map(queue).collect(), egress: Vec::new() };
        let count = round / 8 % 3;
        let egress =
            (0..count).map(|id| EgressQueue { max_rate_kbps: Some(1_000), ..EgressQueue::new(QueueId(id)) });
        let mut update =
            PortsUpdate { egress: vec![(PortNo(PAIR_PORT), egress.collect())], ..PortsUpdate::default() };
        let mirrors = [0, 1].map(|n| MirrorId(u64::from(round / 16 * 2 + n)));
        if (round / 8).is_multiple_of(2) {
            update.added.push(new);
            update.mirrors_added = mirrors.map(mirror).into();
        } else {
            update.removed.push(PortNo(NEW_PORT));
            update.mirrors_removed = mirrors.into();
        }
        self.model.plane_mut().change_ports(update);
    }
}

/// Returns a mirror: with an even number to a port of worker 1, with an odd one to rings that are soon full.
fn mirror(id: MirrorId) -> MirrorSetup {
    let target = match id.0 % 2 {
        0 => MirrorTarget::Port(PortNo(FAR_PORT)),
        _ => MirrorTarget::Capture(capture_rings(WORKERS, 1 << 16, 64).0),
    };
    let ports = |all: &[u32]| all.iter().copied().map(PortNo).collect();
    let selection = MirrorSelection { ingress: ports(&[1, 2]), egress: ports(&[3]), vlans: vec![0] };
    MirrorSetup { id, selection, target }
}

/// Returns additional rules for the access list. There are too many for workers to track them one by one. No
/// packet matches these rules.
fn more_listed() -> impl Iterator<Item = String> {
    let rule = |n| format!("low_latency,table=6,priority=5,udp,nw_src=10.1.{n}.0/24,actions=output:2");
    (0..=CHANGES_SINGLY).map(rule)
}

fn parse(text: &str) -> FlowMod {
    parse_flow(text, FlowModCommand::Add, ParseOptions::default())
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Runs a worker until all threads are done. The worker's own part is done when it has received `PACKETS`
/// packets while its allocations were counted.
fn run(mut worker: Worker, clock: &AtomicU64, running: &AtomicUsize) -> (Worker, Counted) {
    let turn =
        |worker: &mut Worker| worker.turn(Nanos(clock.fetch_add(TURN_NS.0, Ordering::Relaxed))).received;
    for _ in 0..WARM_UP {
        turn(&mut worker);
    }
    let before = counting::on_this_thread();
    let (mut received, mut reported) = (0, false);
    while running.load(Ordering::Relaxed) > 0 {
        received += turn(&mut worker);
        if received >= PACKETS && !reported {
            // If the control thread has failed, the count is 0 and stays 0.
            let _ = running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
            reported = true;
        }
    }
    let counted = counting::on_this_thread() - before;
    worker.housekeeping();
    (worker, counted)
}

#[test]
fn a_worker_neither_allocates_nor_frees_for_packets_and_operations() {
    let figures = |figures: &LutFigures| {
        [figures.hits, figures.learned, figures.verified, figures.evicted, figures.refused]
    };
    neither_allocates_nor_frees(Consistency::Auto, LaneLimits::NONE, figures);
}

#[test]
fn a_worker_neither_allocates_nor_frees_when_records_are_cleaned_immediately() {
    neither_allocates_nor_frees(Consistency::Eager, LaneLimits::NONE, |figures| {
        [figures.hits, figures.cleaned]
    });
}

#[test]
fn nor_with_lanes() {
    // There is so little space that packets are dropped and held.
    let lanes = LaneLimits { normal: 64, unknown: 64, hold: 8 };
    let figures = |figures: &LutFigures| [figures.hits, figures.learned];
    let totals = neither_allocates_nor_frees(Consistency::Auto, lanes, figures);
    assert!(totals.held_back > 0, "{totals:?}");
    for reason in [DropReason::BacklogNormal, DropReason::BacklogUnknown] {
        assert!(totals.dropped.of(reason) > 0, "nothing was dropped as {reason:?}");
    }
}

/// Runs until each counter that `figures` selects has been above 0. The counters of a recreated LUT start at
/// 0.
fn neither_allocates_nor_frees<const N: usize>(
    consistency: Consistency,
    lanes: LaneLimits,
    figures: fn(&LutFigures) -> [u64; N],
) -> Totals {
    let (mut control, workers) = make(consistency, lanes);
    control.bundle(traffic::rules());
    control.bundle(traffic::hashed_rules(2));
    let clock = AtomicU64::new(1);
    // Number of threads that are not done: the workers, and the control thread until its operations are
    // active.
    let running = AtomicUsize::new(WORKERS + 1);
    let first = control.model.barrier().0;
    let mut done = [0; N];
    // The workers return with their counts, so that they are freed on this thread.
    let ended: Vec<(Worker, Counted)> = std::thread::scope(|scope| {
        let _guard = StopWorkers(&running);
        let threads: Vec<_> =
            workers.into_iter().map(|worker| scope.spawn(|| run(worker, &clock, &running))).collect();
        let (mut reported, begun) = (false, Instant::now());
        let mut changes = 0;
        loop {
            // Stops waiting if a worker's thread has failed or an expected event does not occur.
            if threads.iter().any(ScopedJoinHandle::is_finished) {
                break;
            }
            let given_up = begun.elapsed() > PATIENCE;
            control.turn();
            if control.model.plane_mut().parked() == 0 {
                // Counts calls of `change`, not poll iterations, so that no call that stops a recording is
                // skipped.
                control.change(changes);
                changes += 1;
            }
            for (done, now) in done.iter_mut().zip(figures(&lut_figures(&mut control))) {
                *done = now.max(*done);
            }
            let enough = control.model.plane_mut().applied().0 > first + OPERATIONS
                && control.recorded > 0
                && done.iter().all(|done| *done > 0);
            if !reported && (enough || given_up) {
                running.fetch_sub(1, Ordering::Relaxed);
                reported = true;
            }
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (number, (_, counted)) in ended.iter().enumerate() {
        assert_eq!(*counted, Counted::default(), "worker {number}");
    }
    assert!(done.iter().all(|done| *done > 0), "{done:?}");
    everything_happened(&mut control);
    control.model.totals()
}

/// Ends the workers' loops if the control thread panics, because the scope waits for them before it reports
/// the panic.
struct StopWorkers<'a>(&'a AtomicUsize);

impl Drop for StopWorkers<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(0, Ordering::Relaxed);
        }
    }
}

/// Returns the counters of the current LUTs.
fn lut_figures(control: &mut Control) -> LutFigures {
    let mut sum = LutFigures::default();
    let luts = control.model.plane_mut().fast_tables().filter_map(|(_, lut)| lut);
    luts.for_each(|lut| sum.add(&lut.figures));
    sum
}

/// Checks that all operations of the test have taken place.
fn everything_happened(control: &mut Control) {
    let (packet_ins, recorded) = (control.packet_ins, control.recorded);
    let plane = control.model.plane_mut();
    let totals = plane.totals();
    assert!(recorded > 0, "no packet was recorded");
    assert!(totals.received as usize >= WORKERS * PACKETS);
    assert!(totals.copies > totals.forwarded && totals.consumed > 0 && packet_ins > 0, "{totals:?}");
    for reason in [
        DropReason::TableMiss,
        DropReason::NoOutput,
        DropReason::MissingVlan,
        DropReason::TtlExpired,
        DropReason::IngressPort,
    ] {
        let dropped = totals.dropped_in_all(reason);
        assert!(dropped > 0, "nothing was dropped as {reason:?}");
    }
    assert_eq!([0, 3, 5, 6].map(|table| plane.engine(TableId(table)).0), ["scan", "index", "lpm", "mask"]);
    assert!(plane.engine(MAC_TABLE).1 > 0, "no address was learned");
    for table in 1..=6 {
        assert!(plane.table_counters(TableId(table)).matches > 0, "table {table}");
    }
    for port in 1..=PAIR_PORT {
        let counters = plane.port_counters(PortNo(port)).unwrap();
        assert!(counters.rx_packets > 0 && counters.tx_packets > 0, "port {port}: {counters:?}");
    }
}

#[test]
fn allocations_and_frees_are_counted_per_thread() {
    let before = counting::on_this_thread();
    let mut bytes = std::hint::black_box(vec![1u8; 100]);
    bytes.reserve(10_000);
    drop(std::hint::black_box(bytes));
    let here = counting::on_this_thread() - before;
    assert_eq!((here.allocated, here.freed), (2, 2));
    let there = std::thread::spawn(|| {
        let before = counting::on_this_thread();
        drop(std::hint::black_box(vec![0u64; 9]));
        counting::on_this_thread() - before
    });
    assert_eq!(there.join().unwrap(), Counted { allocated: 1, freed: 1 });
}
