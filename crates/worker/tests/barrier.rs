// SPDX-License-Identifier: Apache-2.0
//! Barriers with workers in their own threads. After the barrier reply, no worker may forward a packet by
//! older rules.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use flow::{Field, FieldMatch, FlowMod, FlowModCommand, Instructions, Match, Nanos, PortNo};
use model::{Model, ModelConfig, PortDesc};
use pipeline::LaneLimits;
use port::Queue;
use port::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use worker::{PortQueues, WorkerSet, build};

const WORKERS: usize = 2;
const ROUNDS: u64 = 10_000;

/// Time after which a packet counts as lost.
const LONGEST: Duration = Duration::from_secs(20);

fn to(port: u32) -> FlowMod {
    FlowMod {
        matching: Match::new([FieldMatch::exact(Field::InPort, 1)]).unwrap(),
        instructions: Instructions::apply(vec![flow::Action::output(PortNo(port))]),
        ..FlowMod::default()
    }
}

/// Changes the packets' output port. Each round uses another kind of change: a modify, a replacing add, or a
/// bundle with many other changes.
fn change(model: &mut Model<WorkerSet>, round: u64, port: u32) {
    let changed = match round % 3 {
        0 => model.flow_mod(Nanos(round), FlowMod { command: FlowModCommand::Modify, ..to(port) }).unwrap(),
        1 => model.flow_mod(Nanos(round), to(port)).unwrap(),
        _ => {
            let other = |n: u32| FlowMod {
                matching: Match::new([FieldMatch::exact(Field::InPort, u128::from(100 + n))]).unwrap(),
                ..to(9)
            };
            let mods: Vec<_> = (0..80).map(other).chain([to(port)]).collect();
            model.bundle(Nanos(round), mods).unwrap()
        }
    };
    assert!(changed.added + changed.modified > 0);
}

#[test]
fn after_a_barrier_every_worker_judges_by_the_new_rules() {
    judges_by_the_new_rules(LaneLimits::NONE, ROUNDS);
}

/// If an entry is low-latency, packets wait in the backlog, and operations wait until the backlog is empty.
#[test]
fn after_a_barrier_every_worker_judges_by_the_new_rules_with_lanes() {
    judges_by_the_new_rules(LaneLimits::USUAL, ROUNDS / 2);
}

fn judges_by_the_new_rules(lanes: LaneLimits, rounds: u64) {
    let mut handles = Vec::new();
    let mut ports = Vec::new();
    for number in 1..=3 {
        let (queues, handle) = mem::pair(number, WORKERS, 64);
        handles.push(handle);
        let boxed = queues.into_iter().enumerate().map(|(w, queue)| (w, Box::new(queue) as Box<dyn Queue>));
        ports.push(PortQueues { number: PortNo(number), queues: boxed.collect(), egress: Vec::new() });
    }
    let config = worker::WorkerSetConfig {
        workers: WORKERS,
        small_frames: 512,
        large_frames: 0,
        lanes,
        ..worker::WorkerSetConfig::default()
    };
    let (set, workers) = build(&config, ports);
    let mut model = Model::new(ModelConfig::default(), set, Nanos(0));
    for number in 1..=3 {
        model
            .add_port(
                Nanos(0),
                PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() },
                true,
            )
            .unwrap();
    }
    model.flow_mod(Nanos(0), to(2)).unwrap();
    if lanes.is_on() {
        let matching = Match::new([FieldMatch::exact(Field::InPort, 50)]).unwrap();
        model.flow_mod(Nanos(0), FlowMod { matching, low_latency: Some(true), ..to(2) }).unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = workers
        .into_iter()
        .map(|mut worker| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    if worker.turn(Nanos(1)).is_idle() {
                        // Workers busy-poll, but their threads and the control thread may share two cores.
                        thread::yield_now();
                    }
                }
            })
        })
        .collect();
    let mut wrong = Vec::new();
    for round in 1..=rounds {
        let port = 2 + (round % 2) as u32;
        change(&mut model, round, port);
        let version = model.barrier();
        while !model.is_applied(version) {
            thread::yield_now();
        }
        model.poll(Nanos(round));
        for worker in 0..WORKERS {
            assert!(handles[0].push(worker, &[round as u8; 60]));
        }
        for worker in 0..WORKERS {
            let pushed = Instant::now();
            let came_by = loop {
                assert!(
                    pushed.elapsed() < LONGEST,
                    "round {round}: a packet of worker {worker} was not forwarded"
                );
                if let Some(by) = (1..3).find(|at| handles[*at].pop(worker).is_some()) {
                    break by as u32 + 1;
                }
                thread::yield_now();
            };
            if came_by != port {
                wrong.push((round, worker));
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(wrong.is_empty(), "rounds and workers with packets forwarded by old rules: {wrong:?}");
}
