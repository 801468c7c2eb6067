// SPDX-License-Identifier: Apache-2.0
//! Egress queues, tested with complete workers: rates in virtual time, priorities with a slow device,
//! low-latency packets, ports of several workers, and the drop reasons of full queues.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use dataplane::DataPlane;
use flow::stateless::{Arithmetic, Bank, Label, NodeId, StatelessConfig};
use flow::syntax::{ParseOptions, parse_flow};
use flow::{DropReason, EgressQueue, FlowModCommand, Nanos, PortNo, QueueId};
use model::{Model, ModelConfig, PortDesc};
use pipeline::LaneLimits;
use port::Queue;
use port::mem::{self, MemHandle};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use worker::{PortQueues, Worker, WorkerSet, build};

const MS: Nanos = Nanos(1_000_000);
/// The last port, which has egress queues. Packets arrive on the other ports.
const OUT: u32 = 3;

struct Lab {
    model: Model<WorkerSet>,
    workers: Vec<Worker>,
    handles: Vec<MemHandle>,
    now: Nanos,
}

impl Lab {
    /// Creates two receiving ports and one port with egress queues. Each port has a device queue per worker.
    /// `outstanding_bytes` is the watermark of each device queue.
    fn new(workers: usize, small_frames: usize, outstanding_bytes: usize, egress: Vec<EgressQueue>) -> Self {
        let config = worker::WorkerSetConfig {
            workers,
            small_frames,
            large_frames: 0,
            lanes: LaneLimits::USUAL,
            ..worker::WorkerSetConfig::default()
        };
        let mut handles = Vec::new();
        let mut ports = Vec::new();
        for number in 1..=OUT {
            let (made, handle) = mem::pair(number, workers, 1_024);
            handles.push(handle);
            let queues = made.into_iter().enumerate().map(|(worker, mut queue)| {
                queue.set_outstanding(outstanding_bytes);
                (worker, Box::new(queue) as Box<dyn Queue>)
            });
            let egress = if number == OUT { egress.clone() } else { Vec::new() };
            ports.push(PortQueues { number: PortNo(number), queues: queues.collect(), egress });
        }
        let (plane, workers) = build(&config, ports);
        let mut lab = Self {
            model: Model::new(ModelConfig::default(), plane, Nanos(0)),
            workers,
            handles,
            now: Nanos(1),
        };
        for number in 1..=OUT {
            let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
            lab.model.add_port(Nanos(0), desc, true).unwrap();
        }
        lab
    }

    fn flow(&mut self, text: &str) {
        let flow = parse_flow(text, FlowModCommand::Add, ParseOptions::default()).unwrap();
        self.model.flow_mod(self.now, flow).unwrap();
        for worker in &mut self.workers {
            while worker.apply() > 0 {}
        }
    }

    /// Sends a packet of `len` bytes to a port, with `name` as its first byte.
    fn push(&mut self, port: u32, worker: usize, name: u8, len: usize) {
        let mut bytes = vec![0; len];
        bytes[0] = name;
        bytes[12..14].copy_from_slice(&[0x88, 0xb5]);
        assert!(self.handles[port as usize - 1].push(worker, &bytes));
    }

    /// Runs a poll iteration of each worker. Returns the time at which a worker must run again because of a
    /// queue's rate.
    fn turn(&mut self) -> Option<Nanos> {
        let turns: Vec<_> = self.workers.iter_mut().map(|worker| worker.turn(self.now)).collect();
        turns.iter().filter_map(|turn| turn.opens_ns).min()
    }

    /// Returns the frames that one worker passed to the port's device, as first byte and length.
    fn popped(&mut self, worker: usize) -> Vec<(u8, usize)> {
        let handle = &mut self.handles[OUT as usize - 1];
        std::iter::from_fn(|| handle.pop(worker)).map(|bytes| (bytes[0], bytes.len())).collect()
    }

    fn dropped(&mut self, reason: DropReason) -> u64 {
        let totals = self.model.totals();
        totals.dropped_in_all(reason)
    }
}

fn queue(id: u32, max_rate_kbps: Option<u32>, priority: u8) -> EgressQueue {
    EgressQueue { max_rate_kbps, priority, ..EgressQueue::new(QueueId(id)) }
}

#[test]
fn a_worker_that_sleeps_between_frames_keeps_the_rate() {
    let mut lab = Lab::new(1, 2_048, usize::MAX, vec![queue(1, Some(8_000), 0)]);
    lab.flow("in_port=1,actions=set_queue:1,output:3");
    let (mut bytes, mut turns) = (0, 0);
    while lab.now < 1_000 * MS {
        for _ in 0..32 {
            lab.push(1, 0, 1, 1_000);
        }
        let opens = lab.turn().unwrap();
        turns += 1;
        // The worker sleeps until the queue's rate permits the next frame.
        assert!(opens > lab.now);
        lab.now = opens;
        bytes += lab.popped(0).iter().map(|(_, len)| len).sum::<usize>();
    }
    // The rate is 1,000 bytes per millisecond.
    assert!(bytes.abs_diff(1_000_000) <= 20_000, "{bytes}");
    assert!(turns <= 1_100, "{turns} poll iterations for 1,000 frames");
    for worker in &mut lab.workers {
        worker.housekeeping();
    }
    let [default, one] = lab.model.plane_mut().queues(PortNo(OUT))[..] else { panic!("two queues") };
    assert_eq!((default.settings.id, default.tx_packets), (QueueId(0), 0));
    assert!(one.tx_bytes.abs_diff(1_000_000) <= 20_000 && one.waiting == 512, "{one:?}");
    assert_eq!(one.dropped, lab.dropped(DropReason::QueueFull));
    let counters = lab.model.port_counters(PortNo(OUT)).unwrap();
    assert_eq!((counters.tx_dropped, counters.by_name), (one.dropped, vec![("queue_full", one.dropped)]));
    let totals = lab.model.totals();
    assert_eq!(totals.received, totals.forwarded + totals.consumed + totals.dropped.sum() + totals.held);
    let rest = lab.workers[0].end();
    assert_eq!((rest.frames, lab.dropped(DropReason::Shutdown)), (512, 512));
}

#[test]
fn before_a_slow_device_the_higher_priority_goes_first() {
    let mut lab = Lab::new(1, 2_048, 2_000, vec![queue(1, None, 1), queue(2, None, 7)]);
    lab.flow("in_port=1,actions=set_queue:1,output:3");
    lab.flow("in_port=2,actions=set_queue:2,output:3");
    let mut order = String::new();
    for round in 0..60 {
        if round < 30 {
            lab.push(1, 0, b'l', 100);
            lab.push(1, 0, b'l', 100);
        }
        if round % 2 == 0 {
            lab.push(2, 0, b'h', 100);
        }
        lab.turn();
        // The device sends one frame.
        if let Some(bytes) = lab.handles[OUT as usize - 1].pop(0) {
            order.push(bytes[0].into());
        }
    }
    // A frame with the higher priority waits only for the frame that the device has already accepted.
    assert_eq!(order.matches('h').count(), 30, "{order}");
    assert!(!order.contains("hh") && !order.contains("lll"), "{order}");
}

#[test]
fn low_latency_packets_go_before_all_queues() {
    let mut lab = Lab::new(1, 2_048, 2_000, vec![queue(1, None, 0), queue(2, None, 7)]);
    lab.flow("in_port=1,actions=set_queue:2,output:3");
    lab.flow("low_latency,in_port=2,actions=set_queue:1,output:3");
    for _ in 0..20 {
        lab.push(1, 0, b'n', 100);
    }
    lab.turn();
    lab.push(2, 0, b'L', 100);
    lab.turn();
    let names: Vec<u8> = lab.popped(0).iter().map(|(name, _)| *name).collect();
    assert_eq!(names, b"nL", "one frame was with the device, the others wait");
}

#[test]
fn a_port_with_queues_is_sent_by_one_worker() {
    let mut lab = Lab::new(2, 2_048, usize::MAX, vec![queue(1, Some(8_000), 0)]);
    lab.flow("in_port=1,actions=set_queue:1,output:3");
    lab.flow("in_port=2,actions=output:3");
    let mut sent = [0; 2];
    while lab.now < 500 * MS {
        for worker in 0..2 {
            lab.push(1, worker, 1, 1_000);
            lab.push(2, worker, 2, 100);
        }
        lab.turn();
        lab.now += MS;
        assert!(lab.popped(1).is_empty(), "only worker 0 sends to this port");
        for (name, len) in lab.popped(0) {
            sent[usize::from(name) - 1] += len;
        }
    }
    assert!(sent[0].abs_diff(500_000) <= 15_000, "{sent:?}");
    assert!(sent[1] >= 98_000, "no frame of the default queue waits: {sent:?}");
}

#[test]
fn frames_in_queues_leave_frames_for_receiving() {
    let mut lab = Lab::new(1, 256, usize::MAX, vec![queue(1, Some(8), 0)]);
    lab.flow("in_port=1,actions=set_queue:1,output:3");
    lab.flow("in_port=2,actions=output:3");
    let mut others = 0;
    for _ in 0..100 {
        for _ in 0..32 {
            lab.push(1, 0, 1, 1_000);
            lab.push(2, 0, 2, 60);
        }
        lab.turn();
        lab.now += Nanos(1_000);
        others += lab.popped(0).iter().filter(|(name, _)| *name == 2).count();
    }
    assert_eq!((others, lab.dropped(DropReason::NoBuffer)), (3_200, 0));
    assert!(lab.dropped(DropReason::QueueFull) > 0);
}

#[test]
fn low_latency_frames_for_a_stuck_device_leave_frames_for_receiving() {
    let mut lab = Lab::new(1, 256, usize::MAX, vec![queue(1, None, 0)]);
    lab.flow("low_latency,in_port=1,actions=set_queue:1,output:3");
    lab.flow("in_port=2,actions=output:1");
    // The device of the port accepts 1,024 frames and then no more.
    for _ in 0..100 {
        for _ in 0..32 {
            lab.push(1, 0, 1, 60);
            lab.push(2, 0, 2, 60);
        }
        lab.turn();
        lab.now += Nanos(1_000);
        while lab.handles[0].pop(0).is_some() {}
    }
    assert_eq!(lab.model.totals().received, 6_400);
    assert!(lab.dropped(DropReason::QueueFull) > 1_000);
}

#[test]
fn a_burst_that_need_not_wait_passes_the_shortest_queue() {
    let short = EgressQueue { limit_frames: 1, ..queue(0, None, 0) };
    let mut lab = Lab::new(1, 2_048, usize::MAX, vec![short]);
    lab.flow("in_port=1,actions=output:3");
    for _ in 0..32 {
        lab.push(1, 0, 1, 60);
    }
    lab.turn();
    assert_eq!((lab.popped(0).len(), lab.dropped(DropReason::QueueFull)), (32, 0));
}

#[test]
fn a_flow_keeps_its_order_when_a_rule_brings_it_to_another_queue() {
    let mut lab = Lab::new(1, 2_048, 0, vec![queue(1, None, 0), queue(2, None, 7)]);
    let mut names = Vec::new();
    let mut number = 0;
    for round in 0..40 {
        // The rule changes only the queue; no flow becomes low-latency.
        lab.flow(&format!("priority={},in_port=1,actions=set_queue:{},output:3", 1 + round, 1 + round % 2));
        for _ in 0..5 {
            lab.push(1, 0, number, 100);
            number += 1;
        }
        lab.turn();
        names.extend(lab.handles[OUT as usize - 1].pop(0).map(|bytes| bytes[0]));
    }
    while names.len() < 200 {
        lab.turn();
        names.extend(lab.handles[OUT as usize - 1].pop(0).map(|bytes| bytes[0]));
    }
    assert!(names.is_sorted(), "{names:?}");
}

/// Packets that wait as normal packets must be sent before later packets of the same flow that use the
/// stateless forwarder.
#[test]
fn enabling_stateless_forwarding_keeps_the_order() {
    // The device accepts one frame at a time.
    let mut lab = Lab::new(1, 256, 1, Vec::new());
    lab.flow("in_port=1,actions=output:3");
    let push = |lab: &mut Lab, names: std::ops::Range<u8>| {
        for name in names {
            let mut bytes = vec![0; 60];
            // The packet has a KeyFlow header with key 0.
            bytes[..1].copy_from_slice(&[name]);
            bytes[12..17].copy_from_slice(&[0x88, 0xb5, 0x10, 9, 1]);
            assert!(lab.handles[0].push(0, &bytes));
        }
        lab.turn();
    };
    push(&mut lab, 0..8);
    let id = NodeId::new(Arithmetic::Integer, 5).unwrap();
    let bank = Bank { id, labels: BTreeMap::from([(0, Label::Port(PortNo(OUT)))]), backups: BTreeMap::new() };
    let stateless = StatelessConfig {
        banks: [Some(bank), None],
        trusted: BTreeSet::from([PortNo(1)]),
        ..StatelessConfig::default()
    };
    lab.model.set_stateless(lab.now, Some(Arc::new(stateless))).unwrap();
    while lab.workers[0].apply() > 0 {}
    push(&mut lab, 8..16);
    assert_eq!(lab.model.totals().stateless, 8);
    let mut names = Vec::new();
    for _ in 0..64 {
        names.extend(lab.popped(0).into_iter().map(|(name, _)| name));
        lab.turn();
    }
    assert_eq!(names, (0..16).collect::<Vec<u8>>());
}
