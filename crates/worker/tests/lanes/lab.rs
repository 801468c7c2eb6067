// SPDX-License-Identifier: Apache-2.0
//! One worker between in-memory ports.

use dataplane::DataPlane;
use flow::syntax::{ParseOptions, parse_flow};
use flow::{DropReason, Nanos, PortNo};
use model::{Model, ModelConfig, PortDesc};
use pipeline::LaneLimits;
use port::Queue;
use port::mem::{self, MemHandle};
use wire::PacketBuilder;
use worker::{PortQueues, Worker, WorkerSet, build};

pub struct Lab {
    pub model: Model<WorkerSet>,
    worker: Worker,
    ports: Vec<MemHandle>,
    now: Nanos,
}

impl Lab {
    pub fn new(lanes: LaneLimits, small_frames: usize, rules: &[&str]) -> Self {
        Self::with(
            &worker::WorkerSetConfig {
                small_frames,
                large_frames: 0,
                lanes,
                ..worker::WorkerSetConfig::default()
            },
            rules,
        )
    }

    pub fn with(config: &worker::WorkerSetConfig, rules: &[&str]) -> Self {
        Self::with_ports(4, 8_192, config, rules)
    }

    /// Creates a switch with ports 1 to `ports`. Each port has queues of `room` frames per direction.
    pub fn with_ports(ports: u32, room: usize, config: &worker::WorkerSetConfig, rules: &[&str]) -> Self {
        Self::with_slow(0, ports, room, config, rules)
    }

    /// Like `with_ports`, but the device of port `slow` accepts one normal frame at a time.
    pub fn with_slow(
        slow: u32,
        ports: u32,
        room: usize,
        config: &worker::WorkerSetConfig,
        rules: &[&str],
    ) -> Self {
        let (mut handles, mut queues) = (Vec::new(), Vec::new());
        for number in 1..=ports {
            let (mut made, handle) = mem::pair(number, 1, room);
            if number == slow {
                made.iter_mut().for_each(|queue| queue.set_outstanding(0));
            }
            handles.push(handle);
            let boxed = made.into_iter().map(|q| (0, Box::new(q) as Box<dyn Queue>)).collect();
            queues.push(PortQueues { number: PortNo(number), queues: boxed, egress: Vec::new() });
        }
        let (set, mut workers) = build(config, queues);
        let mut lab = Self {
            model: Model::new(ModelConfig::default(), set, Nanos(0)),
            worker: workers.remove(0),
            ports: handles,
            now: Nanos(1),
        };
        for number in 1..=ports {
            let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
            lab.model.add_port(Nanos(1), desc, true).unwrap();
        }
        for rule in rules {
            lab.rule(rule);
        }
        while lab.worker.apply() > 0 {}
        lab
    }

    pub fn rule(&mut self, rule: &str) {
        self.change(flow::FlowModCommand::Add, rule);
    }

    pub fn change(&mut self, command: flow::FlowModCommand, rule: &str) {
        let m = parse_flow(rule, command, ParseOptions::default()).unwrap();
        self.model.flow_mod(self.now, m).unwrap();
    }

    pub fn push(&mut self, port: usize, bytes: &[u8]) {
        assert!(self.ports[port - 1].push(0, bytes));
    }

    /// Fills a port's receive queue with this packet. Returns the number of packets accepted.
    pub fn fill(&mut self, port: usize, bytes: &[u8]) -> usize {
        std::iter::from_fn(|| self.ports[port - 1].push(0, bytes).then_some(())).count()
    }

    pub fn turn(&mut self) -> worker::Turn {
        let turn = self.turn_alone();
        self.model.poll(self.now);
        turn
    }

    pub fn housekeeping(&mut self) {
        self.worker.housekeeping();
    }

    /// Ends the worker.
    pub fn end(&mut self) -> worker::ShutdownLoss {
        self.worker.end()
    }

    /// Runs a poll iteration of the worker without the control thread.
    pub fn turn_alone(&mut self) -> worker::Turn {
        self.now += Nanos(5_000);
        self.worker.turn(self.now)
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Nanos) {
        self.now += time;
    }

    pub fn pop(&mut self, port: usize) -> Vec<Vec<u8>> {
        self.pop_some(port, usize::MAX)
    }

    /// Takes at most `most` of the frames that were sent to a port.
    pub fn pop_some(&mut self, port: usize, most: usize) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.ports[port - 1].pop(0)).take(most).collect()
    }

    /// Returns the number of packets and copies dropped for a reason.
    pub fn dropped(&mut self, reason: DropReason) -> u64 {
        let totals = self.model.plane_mut().totals();
        totals.dropped_in_all(reason)
    }
}

/// Returns a UDP packet whose last byte is `mark`.
pub fn udp(dst: [u8; 4], source_port: u16, ttl: u8, mark: u8) -> Vec<u8> {
    let b = PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let mut bytes = b.ipv4([192, 168, 0, 1], dst).ttl(ttl).udp(source_port, 2_000).pad_to(60).build();
    *bytes.last_mut().unwrap() = mark;
    bytes
}

/// The default limits of the daemon.
pub const USUAL: LaneLimits = LaneLimits { normal: 2_048, unknown: 1_024, hold: 256 };

/// Rules that send the tests' packets to port 3. 10.0.0.0/24 is low-latency, 10.1.0.0/16 is normal.
pub const RULES: &[&str] = &[
    "low_latency,priority=20,udp,nw_dst=10.0.0.0/24,actions=output:3",
    "low_latency,priority=20,udp,nw_dst=10.0.0.0/16,tp_dst=7,actions=output:3",
    "priority=10,udp,nw_dst=10.1.0.0/16,actions=output:3",
    "priority=5,tcp,actions=drop",
];

pub fn low(ttl: u8, mark: u8) -> Vec<u8> {
    udp([10, 0, 0, 9], 5, ttl, mark)
}

pub fn normal() -> Vec<u8> {
    udp([10, 1, 0, 1], 5, 64, 0)
}

/// Returns a packet of one of many low-latency flows of [`RULES`].
pub fn other_low(flow: u16) -> Vec<u8> {
    let b = PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    b.ipv4([192, 168, 0, 1], [10, 0, 0, 9]).udp(5, flow).pad_to(60).build()
}
