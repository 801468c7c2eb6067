// SPDX-License-Identifier: Apache-2.0
//! Checks the memory that two workers write: each worker may write only its own cache lines, except for the
//! rings between the workers. Cache lines are examined in pairs, because cores prefetch 128 bytes.

#![allow(clippy::unwrap_used, clippy::panic)]

mod arena;
#[path = "../traffic/mod.rs"]
#[allow(dead_code, reason = "not all of the traffic is needed here")]
mod traffic;

use arena::Snapshot;
use flow::syntax::{ParseOptions, parse_flow};
use flow::{FlowMod, FlowModCommand, Nanos, PortNo};
use model::{AsyncMessage, Model, ModelConfig, PortDesc};
use pipeline::LaneLimits;
use port::Queue;
use port::mem::LoopQueue;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use worker::{PortQueues, Worker, WorkerSet, build};

#[global_allocator]
static ALLOCATOR: arena::Arena = arena::Arena;

const BLOCK_BYTES: usize = 128;
/// Returns offset and size of the memory of the rings for frames between workers.
const HANDOVERS: usize = 1_009;
const SMALL: usize = 1_000;
const LARGE: usize = 10;
const CONTROLLER: usize = 64;
/// Capacity of the rings that return frames.
const HOMES: usize = SMALL + LARGE + CONTROLLER + CONTROLLER / 16;
/// A port served by worker 1 alone. Worker 0 hands frames for this port off to worker 1.
const FAR_PORT: u32 = 4;
/// A port served by worker 0 alone.
const NEAR_PORT: u32 = 5;
const TURNS: usize = 400;

/// Serializes the tests, because the writes of another test would be detected as well.
static ALONE: Mutex<()> = Mutex::new(());

/// A worker that other threads can access, as in the daemon.
type Kept = Arc<Mutex<Worker>>;

struct Lab {
    model: Model<WorkerSet>,
    workers: Vec<Kept>,
    now: Nanos,
}

fn parse(text: &str) -> FlowMod {
    parse_flow(text, FlowModCommand::Add, ParseOptions::default())
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

impl Lab {
    fn new(lanes: LaneLimits) -> Self {
        let config = worker::WorkerSetConfig {
            workers: 2,
            small_frames: SMALL,
            large_frames: LARGE,
            controller_frames: CONTROLLER,
            handovers: HANDOVERS,
            lut_entries: 64,
            lanes,
            ..worker::WorkerSetConfig::default()
        };
        let ports = (1..=NEAR_PORT).map(|number| {
            let workers = match number {
                FAR_PORT => 1..2,
                NEAR_PORT => 0..1,
                _ => 0..2,
            };
            let queue = |worker| {
                (worker, Box::new(LoopQueue::new(number, traffic::frames(number))) as Box<dyn Queue>)
            };
            PortQueues { number: PortNo(number), queues: workers.map(queue).collect(), egress: Vec::new() }
        });
        let (plane, workers) = build(&config, ports.collect());
        let mut model = Model::new(ModelConfig::default(), plane, Nanos(0));
        for number in 1..=NEAR_PORT {
            let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
            model.add_port(Nanos(1), desc, true).unwrap();
        }
        let workers = workers.into_iter().map(|worker| Arc::new(Mutex::new(worker))).collect();
        let mut lab = Self { model, workers, now: Nanos(1) };
        let rules = traffic::rules().into_iter().chain(traffic::hashed_rules(2));
        lab.model.bundle(Nanos(1), rules.map(|line| parse(&line)).collect::<Vec<FlowMod>>()).unwrap();
        (0..TURNS).for_each(|_| (0..2).for_each(|worker| lab.turn(worker)));
        lab
    }

    fn turn(&mut self, worker: usize) {
        self.now += Nanos(1_000_000);
        self.workers[worker].lock().unwrap().turn(self.now);
        if self.now.0.is_multiple_of(10_000_000) {
            self.workers[worker].lock().unwrap().housekeeping();
        }
    }

    /// Does the control thread's work: takes all events.
    fn control(&mut self) {
        self.model.poll(self.now);
        while let Some(message) = self.model.next_async_message() {
            if let AsyncMessage::PacketIn(packet_in) = message {
                self.model.recycle(packet_in.frame);
            }
        }
    }

    /// Returns the blocks that a worker writes while no other thread runs.
    fn writes(&mut self, worker: usize) -> BTreeSet<usize> {
        let mut all = BTreeSet::new();
        for _ in 0..8 {
            let before = Snapshot::new();
            (0..TURNS / 8).for_each(|_| self.turn(worker));
            all.extend(before.changed(BLOCK_BYTES));
            drop(before);
            // The threads that normally empty the rings do so here, so that no ring fills up.
            self.control();
            self.turn(1 - worker);
        }
        all
    }
}

/// Returns the blocks that both workers write and that contain no part of a ring in `rings`.
fn shared(both: [&BTreeSet<usize>; 2], rings: &[(usize, usize)]) -> Vec<usize> {
    let is_ring =
        |block: usize| rings.iter().any(|(at, size)| block + BLOCK_BYTES > *at && block < at + size);
    both[0].intersection(both[1]).copied().filter(|block| !is_ring(*block)).collect()
}

/// Returns offset and size of the memory of the rings for frames between workers: their indices and their
/// slots.
fn rings(since: usize) -> Vec<(usize, usize)> {
    let large = arena::large(since);
    let is_places = |(_, size): &(usize, usize)| {
        [HANDOVERS, HOMES].iter().any(|count| size % count == 0 && (8..=40).contains(&(size / count)))
    };
    let places: Vec<_> = large.iter().copied().filter(is_places).collect();
    // The slots and the indices of a ring are allocated one directly after the other.
    let ends = large.windows(2).filter(|pair| is_places(&pair[0]) && pair[1].1 <= 512).map(|pair| pair[1]);
    places.iter().copied().chain(ends).collect()
}

#[test]
fn two_workers_write_common_blocks_only_in_rings() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for lanes in [LaneLimits::NONE, LaneLimits::USUAL] {
        let since = arena::large_so_far();
        let mut lab = Lab::new(lanes);
        let rings = rings(since);
        // Each direction has two rings, one per lane, and a third ring that returns frames.
        assert_eq!(rings.len(), 2 * 6, "{rings:?}");
        let writes = [lab.writes(0), lab.writes(1)];
        let in_rings = |blocks: &BTreeSet<usize>| {
            let inside = |block: usize| rings.iter().any(|(at, size)| (*at..at + size).contains(&block));
            blocks.iter().filter(|block| inside(**block)).count()
        };
        let counts = writes.each_ref().map(|blocks| (blocks.len(), in_rings(blocks)));
        println!("blocks written, and of these in rings: {counts:?}");
        assert!(counts.iter().all(|(all, in_rings)| *all > 1_000 && *in_rings > 1), "{counts:?}");
        let shared = shared([&writes[0], &writes[1]], &rings);
        let touches = |block: usize, at: usize, size: usize| block + BLOCK_BYTES > at && block < at + size;
        let near = |block: usize| {
            arena::large(0).into_iter().filter(|(at, size)| touches(block, *at, *size)).collect::<Vec<_>>()
        };
        let reported: Vec<_> = shared.iter().map(|block| (block, near(*block))).collect();
        assert!(shared.is_empty(), "written by both: {reported:?}");
    }
}

#[test]
fn shared_cache_lines_are_found() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    #[repr(align(128))]
    struct Both([u64; 32]);
    let mut both = Box::new(Both([0; 32]));
    let mut written = |at: usize| {
        let before = Snapshot::new();
        std::hint::black_box(&mut both.0)[at] += 1;
        before.changed(BLOCK_BYTES).into_iter().collect::<BTreeSet<_>>()
    };
    let [first, second] = [written(0), written(15)];
    let at = arena::offset(&both.0);
    assert!(shared([&first, &second], &[]).contains(&at));
    assert!(!shared([&first, &second], &[(at, 128)]).contains(&at));
    assert!(!first.contains(&(at + BLOCK_BYTES)));
}
