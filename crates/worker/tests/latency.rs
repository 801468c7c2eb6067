// SPDX-License-Identifier: Apache-2.0
//! Each frame that a device accepts must be counted in its lane, with the time since the poll that received
//! it.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use dataplane::DataPlane;
use flow::operation::{EntryChange, Operation, PortState};
use flow::{Action, EntryId, Field, FieldMatch, FlowEntry, Instructions, Match, Nanos, PortNo, TableId};
use port::mem::{self, MemHandle};
use port::{Faults, Faulty, Queue};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use worker::{Clock, PortQueues, Spread, Worker, WorkerSet, WorkerSetConfig, build};

fn entry(id: u32, in_port: u32, actions: Vec<Action>, low_latency: bool) -> EntryChange {
    EntryChange::Add(Arc::new(FlowEntry {
        id: EntryId(id),
        table: TableId(0),
        priority: 1,
        matching: Match::new([FieldMatch::exact(Field::InPort, in_port.into())]).unwrap(),
        instructions: Arc::new(Instructions::apply(actions)),
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        cookie: 0,
        flags: flow::EntryFlags::default(),
        low_latency,
    }))
}

/// Creates ports 1 and 2 on worker 0, and port 3 on worker 1. With `refuses`, the device of port 2 accepts no
/// frames.
fn switch(read: fn() -> u64, refuses: bool) -> (WorkerSet, Vec<Worker>, Vec<MemHandle>) {
    let clock = Clock::counting_ns(read);
    let config = WorkerSetConfig {
        workers: 2,
        small_frames: 256,
        large_frames: 0,
        clock,
        ..WorkerSetConfig::default()
    };
    let mut handles = Vec::new();
    let ports = [(1, 0), (2, 0), (3, 1)].map(|(number, worker)| {
        let (mut queues, handle) = mem::pair(number, 1, 64);
        handles.push(handle);
        let refuse_per_mille = if refuses && number == 2 { 1_000 } else { 0 };
        let queue = Faulty::new(queues.remove(0), Faults { refuse_per_mille, ..Faults::default() });
        PortQueues {
            number: PortNo(number),
            queues: vec![(worker, Box::new(queue) as Box<dyn Queue>)],
            egress: Vec::new(),
        }
    });
    let (mut set, mut workers) = build(&config, ports.into());
    (1..=3).for_each(|number| {
        set.submit(Operation::Port(PortState::up(PortNo(number))));
    });
    set.submit(Operation::Entries(vec![
        entry(1, 1, vec![Action::output(PortNo(3))], true),
        entry(2, 2, vec![Action::output(PortNo(1)), Action::output(PortNo(3))], false),
    ]));
    for worker in &mut workers {
        while worker.apply() > 0 {}
    }
    (set, workers, handles)
}

fn spread(buckets: &[(Nanos, u64)], max_ns: Nanos) -> Spread {
    Spread { buckets: buckets.to_vec(), max_ns }
}

#[test]
fn a_frame_that_is_handed_over_keeps_its_stamp() {
    static NOW: AtomicU64 = AtomicU64::new(5_000_000);
    let (set, mut workers, mut handles) = switch(|| NOW.load(Ordering::Relaxed), false);
    // Both packets go to the port of worker 1. One is low-latency; the other is a copy of a normal packet.
    assert!(handles[0].push(0, &[1; 60]) && handles[1].push(0, &[2; 60]));
    workers[0].turn(Nanos(1));
    let reported = set.latencies();
    assert_eq!(reported.normal.whole, spread(&[(Nanos(0), 1)], Nanos(0)), "the copy for its own port");
    assert_eq!(reported.low_latency.whole.frames(), 0);
    NOW.fetch_add(50, Ordering::Relaxed);
    workers[1].turn(Nanos(2));
    let reported = set.latencies();
    assert_eq!(reported.normal.whole, spread(&[(Nanos(0), 1), (Nanos(50), 1)], Nanos(50)));
    assert_eq!(reported.low_latency.whole, spread(&[(Nanos(50), 1)], Nanos(50)));
    assert_eq!((reported.gaps, reported.low_latency.in_gaps.frames()), (0, 0));
}

#[test]
fn a_packet_out_is_not_counted() {
    let (mut set, mut workers, mut handles) = switch(|| 1_000, false);
    set.submit(Operation::PacketOut(Arc::new(flow::operation::PacketOut {
        in_port: flow::port_no::CONTROLLER,
        actions: vec![Action::output(PortNo(2))],
        bytes: vec![3; 60],
        releases: flow::operation::Releases::SameFlow,
    })));
    workers[0].turn(Nanos(1));
    assert_eq!(handles[1].pop(0), Some(vec![3; 60]));
    let reported = set.latencies();
    assert_eq!((reported.normal.whole.frames(), reported.low_latency.whole.frames()), (0, 0));
}

#[test]
fn a_frame_that_its_device_does_not_take_is_not_counted_yet() {
    let (set, mut workers, mut handles) = switch(|| 1_000, true);
    assert!(handles[1].push(0, &[2; 60]));
    for turn in 1..10 {
        workers[0].turn(Nanos(turn));
    }
    // The frame for port 1 is accepted.
    assert_eq!(set.latencies().normal.whole.frames(), 1);
}

#[test]
fn stolen_time_is_reported_separately() {
    static NOW: AtomicU64 = AtomicU64::new(1);
    let (set, mut workers, mut handles) = switch(|| NOW.fetch_add(100, Ordering::Relaxed), false);
    // Warm up without operations, because an iteration with an operation may take longer.
    for turn in 0..200 {
        assert!(handles[1].push(0, &[2; 60]));
        workers[0].turn(Nanos(turn));
        workers[1].turn(Nanos(turn));
        while handles[0].pop(0).is_some() || handles[2].pop(0).is_some() {}
    }
    assert_eq!(set.latencies().gaps, 0);
    // There is a gap between two poll iterations: a frame was handed to a worker that was not running.
    assert!(handles[1].push(0, &[2; 60]));
    workers[0].turn(Nanos(200));
    NOW.fetch_add(30_000_000, Ordering::Relaxed);
    workers[1].turn(Nanos(200));
    let reported = set.latencies();
    assert_eq!((reported.gaps, reported.normal.in_gaps.frames()), (1, 1));
    assert!(
        reported.stolen_ns >= Nanos(30_000_000) && reported.normal.in_gaps.max_ns >= Nanos(30_000_000),
        "{reported:?}"
    );
    assert!(reported.normal.whole.max_ns < Nanos(10_000), "{reported:?}");
    // No operation was applied, so even a short time counts as a gap.
    NOW.fetch_add(30_000, Ordering::Relaxed);
    workers[1].turn(Nanos(200));
    assert_eq!(set.latencies().gaps, 2);
    // The workers slept, so there is no gap.
    NOW.fetch_add(30_000_000, Ordering::Relaxed);
    workers.iter_mut().for_each(Worker::rest);
    workers[0].turn(Nanos(201));
    workers[1].turn(Nanos(201));
    assert_eq!(set.latencies().gaps, 2);
}
