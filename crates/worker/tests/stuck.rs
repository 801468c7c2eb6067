// SPDX-License-Identifier: Apache-2.0
//! A device that accepts no frames must not block other ports. A port to which many ports send must not lose
//! frames that its device would accept.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use dataplane::DataPlane;
use flow::operation::{EntryChange, Operation, PortState};
use flow::{
    Action, DropReason, EntryId, Field, FieldMatch, FlowEntry, Instructions, Match, Nanos, PortNo, TableId,
};
use pipeline::LaneLimits;
use port::mem::{self, MemHandle};
use port::{Faults, Faulty, Queue};
use std::sync::Arc;
use worker::{PortQueues, Worker, WorkerSet, WorkerSetConfig, build};

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

/// Creates workers with `ports` in-memory ports, some of which accept no frames. `owner` returns the worker
/// of each port.
fn switch(
    lanes: LaneLimits,
    ports: u32,
    refusing: &[u32],
    owner: impl Fn(u32) -> usize,
    entries: Vec<EntryChange>,
) -> (WorkerSet, Vec<Worker>, Vec<MemHandle>) {
    let workers = (1..=ports).map(&owner).max().unwrap_or_default() + 1;
    let config = WorkerSetConfig {
        workers,
        small_frames: 1_024,
        large_frames: 0,
        lanes,
        ..WorkerSetConfig::default()
    };
    let mut handles = Vec::new();
    let mut queues = Vec::new();
    for number in 1..=ports {
        let (made, handle) = mem::pair(number, 1, 1_024);
        handles.push(handle);
        let wrapped = made.into_iter().map(|queue| {
            let faults = Faults {
                refuse_per_mille: if refusing.contains(&number) { 1_000 } else { 0 },
                ..Faults::default()
            };
            (owner(number), Box::new(Faulty::new(queue, faults)) as Box<dyn Queue>)
        });
        queues.push(PortQueues { number: PortNo(number), queues: wrapped.collect(), egress: Vec::new() });
    }
    let (mut set, mut workers) = build(&config, queues);
    for number in 1..=ports {
        set.submit(Operation::Port(PortState::up(PortNo(number))));
    }
    set.submit(Operation::Entries(entries));
    for worker in &mut workers {
        while worker.apply() > 0 {}
    }
    (set, workers, handles)
}

/// Limits without lanes, and limits with lanes.
const LANES: [LaneLimits; 2] = [LaneLimits::NONE, LaneLimits::USUAL];

fn counts(set: &mut WorkerSet, reason: DropReason) -> u64 {
    let totals = set.totals();
    totals.dropped_in_all(reason)
}

#[test]
fn a_stuck_device_does_not_stop_the_others() {
    for lanes in LANES {
        the_others_go_on(lanes, |_| 0);
    }
}

#[test]
fn a_stuck_device_of_another_worker_does_not_stop_the_others() {
    for lanes in LANES {
        the_others_go_on(lanes, |port| usize::from((5..=7).contains(&port)));
    }
}

/// With lanes, the second flow is low-latency and must not lose a packet.
fn the_others_go_on(lanes: LaneLimits, owner: impl Fn(u32) -> usize) {
    // Port 1 sends to three ports whose devices accept no frames. The outboxes of these ports could together
    // hold more frames than exist.
    let entries = vec![
        entry(
            1,
            1,
            vec![Action::output(PortNo(5)), Action::output(PortNo(6)), Action::output(PortNo(7))],
            false,
        ),
        entry(2, 9, vec![Action::output(PortNo(8))], lanes.is_on()),
    ];
    let (mut set, mut workers, mut handles) = switch(lanes, 9, &[5, 6, 7], owner, entries);
    let frame = [7; 60];
    let mut arrived = 0;
    for _ in 0..200 {
        for _ in 0..32 {
            assert!(handles[0].push(0, &frame) && handles[8].push(0, &frame));
        }
        for worker in &mut workers {
            worker.turn(Nanos(1));
        }
        while handles[7].pop(0).is_some() {
            arrived += 1;
        }
    }
    assert_eq!(arrived, 200 * 32, "every packet of the other ports");
    let full = counts(&mut set, DropReason::TransmitFull);
    assert!(full > 0 && counts(&mut set, DropReason::NoBuffer) == 0, "{full}");
    let totals = set.totals();
    assert_eq!(totals.received, totals.forwarded + totals.consumed + totals.dropped.sum() + totals.held);
}

#[test]
fn bursts_from_many_ports_to_one_fast_port_lose_nothing() {
    for lanes in LANES {
        many_lose_nothing(lanes);
    }
}

fn many_lose_nothing(lanes: LaneLimits) {
    let ports = 40;
    let to_one = |port| entry(port, port, vec![Action::output(PortNo(ports))], lanes.is_on());
    let entries = (1..ports).map(to_one).collect();
    let (mut set, mut workers, mut handles) = switch(lanes, ports, &[], |_| 0, entries);
    let mut arrived = 0;
    for _ in 0..20 {
        for handle in &mut handles[..39] {
            for _ in 0..20 {
                assert!(handle.push(0, &[7; 60]));
            }
        }
        workers[0].turn(Nanos(1));
        while handles[39].pop(0).is_some() {
            arrived += 1;
        }
    }
    assert_eq!((arrived, counts(&mut set, DropReason::TransmitFull)), (20 * 39 * 20, 0));
}
