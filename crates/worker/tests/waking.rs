// SPDX-License-Identifier: Apache-2.0
//! Wake-ups of sleeping workers for operations and for frames of other workers, and of the control thread for
//! events. Also tests the number of operations that wait for a worker that applies none.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use dataplane::DataPlane;
use flow::syntax::{ParseOptions, parse_flow};
use flow::{FlowModCommand, Nanos, Operation, PortNo, PortState};
use model::{Model, ModelConfig, PortDesc};
use port::Queue;
use port::mem::{self, MemHandle};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use worker::{PortQueues, Sleeper, Worker, WorkerSet, build};

/// Creates two workers, each with one port. The port number is the worker's number plus one.
fn switch(flows: &[&str]) -> (Model<WorkerSet>, Vec<Worker>, Vec<MemHandle>) {
    let (mut handles, mut ports) = (Vec::new(), Vec::new());
    for number in 1..=2 {
        let (queues, handle) = mem::pair(number, 1, 64);
        handles.push(handle);
        let owner = number as usize - 1;
        let queues = queues.into_iter().map(|queue| (owner, Box::new(queue) as Box<dyn Queue>)).collect();
        ports.push(PortQueues { number: PortNo(number), queues, egress: Vec::new() });
    }
    let config = worker::WorkerSetConfig {
        workers: 2,
        small_frames: 512,
        large_frames: 0,
        ..worker::WorkerSetConfig::default()
    };
    let (plane, mut workers) = build(&config, ports);
    let mut model = Model::new(ModelConfig::default(), plane, Nanos(0));
    for number in 1..=2 {
        let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
        model.add_port(Nanos(0), desc, true).unwrap();
    }
    for flow in flows {
        let flow = parse_flow(flow, FlowModCommand::Add, ParseOptions::default()).unwrap();
        model.flow_mod(Nanos(0), flow).unwrap();
    }
    for worker in &mut workers {
        while worker.apply() > 0 {}
    }
    (model, workers, handles)
}

#[test]
fn an_operation_wakes_the_workers_that_sleep() {
    let (mut model, workers, _handles) = switch(&[]);
    let woken = [0, 1].map(|_| Arc::new(AtomicUsize::new(0)));
    for (worker, count) in woken.iter().enumerate() {
        let count = Arc::clone(count);
        let waker = move || {
            count.fetch_add(1, Ordering::Relaxed);
        };
        model.plane_mut().set_waker(worker, Box::new(waker));
    }
    let wakes = |model: &mut Model<WorkerSet>| {
        model.plane_mut().submit(Operation::Port(PortState::up(PortNo(1))));
        woken.each_ref().map(|count| count.swap(0, Ordering::Relaxed))
    };
    assert_eq!(wakes(&mut model), [0, 0]);
    workers[1].sleeping().announce();
    assert_eq!(wakes(&mut model), [0, 1]);
    workers[0].sleeping().announce();
    assert_eq!(wakes(&mut model), [1, 1]);
    workers[1].sleeping().end();
    assert_eq!(wakes(&mut model), [1, 0]);
}

#[test]
fn a_worker_is_woken_until_it_has_taken_frames_of_another_worker() {
    for rule in ["actions=output:2", "low_latency,in_port=1,actions=output:2"] {
        let (_model, mut workers, mut handles) = switch(&[rule]);
        let is_awaited = |workers: &[Worker]| workers[0].handed_over().collect::<Vec<_>>();
        assert_eq!((is_awaited(&workers), workers[1].has_pending()), (vec![], false));
        assert!(handles[0].push(0, &[1; 60]));
        workers[0].turn(Nanos(1));
        assert_eq!((is_awaited(&workers), workers[1].has_pending()), (vec![1], true), "{rule}");
        workers[1].turn(Nanos(2));
        assert_eq!((is_awaited(&workers), workers[1].has_pending()), (vec![], false), "{rule}");
        assert!(handles[1].pop(0).is_some());
    }
}

#[test]
fn a_worker_reports_waiting_operations_packets_and_frames() {
    let (mut model, mut workers, mut handles) =
        switch(&["in_port=1,actions=IN_PORT", "in_port=2,actions=output:1"]);
    let state = |worker: &Worker| (worker.has_operations(), worker.has_pending(), worker.has_output());
    assert_eq!(state(&workers[0]), (false, false, false));
    model.plane_mut().submit(Operation::Port(PortState::up(PortNo(1))));
    assert_eq!(state(&workers[0]), (true, true, false));
    while workers[0].apply() > 0 {}
    assert_eq!(state(&workers[0]), (false, false, false));
    // The device has space for 64 frames, so the other frames wait for it.
    for _ in 0..3 {
        (0..32).for_each(|_| assert!(handles[0].push(0, &[1; 60])));
        workers[0].turn(Nanos(1));
    }
    assert_eq!(state(&workers[0]), (false, false, true));
    while handles[0].pop(0).is_some() {}
    workers[0].turn(Nanos(2));
    assert_eq!(state(&workers[0]), (false, false, false));
    // A frame for a port of the other worker waits in a ring.
    assert!(handles[1].push(0, &[1; 60]));
    workers[1].turn(Nanos(3));
    assert_eq!(state(&workers[1]), (false, false, true));
    assert_eq!(state(&workers[0]), (false, true, false));
}

#[test]
fn the_control_thread_must_be_woken_while_reports_wait() {
    let (mut model, mut workers, mut handles) = switch(&["actions=CONTROLLER:64"]);
    assert!(!workers[0].has_events());
    assert!(handles[0].push(0, &[1; 60]));
    workers[0].turn(Nanos(1));
    assert!(workers[0].has_events() && !workers[1].has_events());
    model.poll(Nanos(2));
    assert!(!workers[0].has_events());
}

#[test]
fn frames_of_reports_return_to_the_worker_that_sent_them() {
    let (mut model, mut workers, mut handles) = switch(&["actions=CONTROLLER:64"]);
    let waiting = |model: &mut Model<WorkerSet>, workers: &mut [Worker]| {
        workers.iter_mut().for_each(Worker::housekeeping);
        let usages = model.plane_mut().usages();
        let of_reports = usages.iter().filter(|(_, usage)| usage.name == "controller_frames");
        of_reports.map(|(_, usage)| usage.used).collect::<Vec<_>>()
    };
    for worker in 0..2 {
        (0..=worker).for_each(|_| assert!(handles[worker].push(0, &[1; 60])));
        workers[worker].turn(Nanos(1));
    }
    assert_eq!(waiting(&mut model, &mut workers), [1, 2]);
    model.poll(Nanos(2));
    let mut reported = 0;
    while let Some(message) = model.next_async_message() {
        if let model::AsyncMessage::PacketIn(packet_in) = message {
            model.recycle(packet_in.frame);
            reported += 1;
        }
    }
    assert_eq!(reported, 3);
    workers.iter_mut().for_each(|worker| assert_eq!(worker.turn(Nanos(3)).received, 0));
    assert_eq!(waiting(&mut model, &mut workers), [0, 0]);
}

#[test]
fn operations_that_a_worker_does_not_apply_are_counted_as_parked() {
    let (mut model, mut workers, _handles) = switch(&[]);
    let (idle, others) = workers.split_at_mut(1);
    let mut submit = |model: &mut Model<WorkerSet>| {
        model.plane_mut().submit(Operation::Port(PortState::up(PortNo(1))));
        while others[0].apply() > 0 {}
        model.plane_mut().parked()
    };
    // The ring to the idle worker has space for the first operations.
    let mut room = 0;
    while submit(&mut model) == 0 {
        room += 1;
        assert!(room < 100_000, "operations wait without a limit, and none counts as parked");
    }
    assert_eq!([submit(&mut model), submit(&mut model)], [2, 3]);
    while idle[0].apply() > 0 {
        model.plane_mut().applied();
    }
    assert_eq!(model.plane_mut().parked(), 0);
}
