// SPDX-License-Identifier: Apache-2.0
//! A worker on endless in-memory ports, with its rules in force.

use std::collections::VecDeque;
use std::error::Error;
use std::os::fd::RawFd;

use flow::Nanos;
use flow::syntax::{ParseOptions, parse_flows};
use frame::Frame;
use model::{Config, DataPlane, Model, PortDesc};
use port::mem::LoopQueue;
use port::{Capabilities, Link, Pools, Queue, Statistics};
use worker::{PortQueues, Worker, WorkerSet, build};

use crate::cases::Case;

/// Turns before the first window: every source learned, every cache warm.
const WARM_UP: usize = 1_000;

/// Virtual time of a turn, ns.
const TURN_NS: Nanos = 2_000;

/// A worker and its control side, in one thread.
pub struct Rig {
    worker: Worker,
    model: Model<WorkerSet>,
    now: Nanos,
}

impl Rig {
    /// A worker that forwards by the case's rules, warmed up.
    pub fn new(case: &Case) -> Result<Self, Box<dyn Error>> {
        let ports = (1..=case.ports).map(|number| {
            let set = case.sources.iter().find(|(port, _)| *port == number).map(|(_, set)| set.as_slice());
            let set = set.unwrap_or_default().iter().map(|bytes| Frame::from_bytes(bytes)).collect();
            let queue = Limited { queue: LoopQueue::new(number, set), burst: case.burst };
            PortQueues { number, queues: vec![(0, Box::new(queue) as Box<dyn Queue>)] }
        });
        let (plane, mut workers) = build(
            &worker::Config { lut_entries: case.lut_entries, ..worker::Config::default() },
            ports.collect(),
        );
        let worker = workers.pop().ok_or("no worker was made")?;
        let mut rig = Self { worker, model: Model::new(Config::default(), plane, 0), now: 1 };
        for number in 1..=case.ports {
            let desc = PortDesc { number, name: format!("p{number}"), ..PortDesc::default() };
            rig.model.add_port(rig.now, desc, true)?;
        }
        let mods = parse_flows(&case.flows, ParseOptions::default()).collect::<Result<Vec<_>, _>>()?;
        rig.model.bundle(rig.now, mods).map_err(|(at, error)| format!("flow {}: {error}", at + 1))?;
        for _ in 0..WARM_UP {
            rig.turn();
            while rig.model.poll(rig.now) {}
        }
        rig.check(case)?;
        Ok(rig)
    }

    /// Packets must fare as the case says: a figure of packets dropped by mistake would be a fine one.
    fn check(&mut self, case: &Case) -> Result<(), String> {
        let before = self.model.plane_mut().totals();
        let mut received = 0;
        for _ in 0..16 {
            received += self.turn();
        }
        let after = self.model.plane_mut().totals();
        let copies = after.copies - before.copies;
        let expected = if case.forwards { received } else { 0 };
        if received == 0 || copies != expected {
            return Err(format!("{}: {copies} copies of {received} packets, not {expected}", case.name));
        }
        Ok(())
    }

    /// One turn of the worker's loop; returns the packets it received.
    pub fn turn(&mut self) -> u64 {
        self.now += TURN_NS;
        self.worker.turn(self.now).received as u64
    }
}

/// A queue that hands out at most so many packets at once.
struct Limited {
    queue: LoopQueue,
    burst: usize,
}

impl Queue for Limited {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize) -> usize {
        self.queue.receive(pools, burst, max.min(self.burst))
    }

    fn transmit(&mut self, frames: &mut VecDeque<Frame>, done: &mut Vec<Frame>) -> usize {
        self.queue.transmit(frames, done)
    }

    fn capabilities(&self) -> Capabilities {
        self.queue.capabilities()
    }

    fn descriptor(&self) -> Option<RawFd> {
        self.queue.descriptor()
    }

    fn statistics(&self) -> Statistics {
        self.queue.statistics()
    }

    fn poll_link(&mut self) -> Link {
        self.queue.poll_link()
    }
}
