// SPDX-License-Identifier: Apache-2.0
//! A worker on endless in-memory ports, with its rules in force.

use std::collections::VecDeque;
use std::os::fd::RawFd;

use flow::Nanos;
use flow::syntax::{ParseOptions, parse_flows};
use frame::Frame;
use model::{Config, DataPlane, Model, PortDesc};
use pipeline::Probe;
use port::mem::LoopQueue;
use port::{Capabilities, Link, Pools, Queue, Statistics};
use tables::base::Maker;
use worker::{PortQueues, Worker, WorkerSet, build_with};

use crate::Error;

/// Turns before the first window: every source learned, every cache warm.
const WARM_UP: usize = 1_000;

/// Virtual time of a turn, ns.
const TURN_NS: Nanos = 2_000;

/// One set of rules, and the packets that meet them.
pub struct Case {
    /// Its name in the report.
    pub name: String,
    /// The rules, in the syntax of ovs-ofctl.
    pub flows: String,
    /// Ports 1 to this.
    pub ports: u32,
    /// The packets that ports receive, over and over.
    pub sources: Vec<(u32, Vec<Vec<u8>>)>,
    /// Packets that a queue hands out at once.
    pub burst: usize,
    /// Each packet leaves by one port; else each is dropped.
    pub forwards: bool,
    /// Records of each LUT of the fast-forwarding path; 0: without it.
    pub lut_entries: usize,
}

/// A worker and its control side, in one thread.
pub struct Rig<P: Probe = ()> {
    /// The worker.
    pub worker: Worker<P>,
    /// The control side.
    pub model: Model<WorkerSet>,
    now: Nanos,
}

impl Rig {
    /// A worker that forwards by the case's rules, warmed up.
    ///
    /// # Errors
    /// When a rule is refused, or packets do not fare as the case says.
    pub fn new(case: &Case) -> Result<Self, Error> {
        let queues = (1..=case.ports).map(|number| {
            let set = case.sources.iter().find(|(port, _)| *port == number).map(|(_, set)| set.as_slice());
            let set = set.unwrap_or_default().iter().map(|bytes| Frame::from_bytes(bytes)).collect();
            Box::new(Limited { queue: LoopQueue::new(number, set), burst: case.burst }) as Box<dyn Queue>
        });
        let clock = worker::Clock::of_machine();
        let config = worker::Config { lut_entries: case.lut_entries, clock, ..worker::Config::default() };
        let mut rig = Self::with_queues(&config, queues.collect(), &case.flows, None)?;
        rig.warm_up(WARM_UP);
        rig.check(case)?;
        Ok(rig)
    }

    /// Packets must fare as the case says: a figure of packets dropped by mistake would be a fine one.
    fn check(&mut self, case: &Case) -> Result<(), Error> {
        let before = self.model.plane_mut().totals();
        let mut received = 0;
        for _ in 0..16 {
            received += self.turn();
        }
        let after = self.model.plane_mut().totals();
        let copies = after.copies - before.copies;
        let expected = if case.forwards { received } else { 0 };
        if received == 0 || copies != expected {
            let fault = format!("{}: {copies} copies of {received} packets, not {expected}", case.name);
            return Err(Error::Contender(fault));
        }
        Ok(())
    }
}

impl<P: Probe + Default> Rig<P> {
    /// A worker with one queue for each of ports 1, 2, ..., whose rules are in force after a few turns. With a maker, engines are its.
    ///
    /// # Errors
    /// When a rule is refused.
    pub fn with_queues(
        config: &worker::Config,
        queues: Vec<Box<dyn Queue>>,
        rules: &str,
        maker: Option<Maker>,
    ) -> Result<Self, Error> {
        let ports = (1..).zip(queues).map(|(number, queue)| PortQueues {
            number,
            queues: vec![(0, queue)],
            egress: Vec::new(),
        });
        let ports: Vec<PortQueues> = ports.collect();
        let numbers = 1..=ports.len() as u32;
        let (mut plane, mut workers) = build_with(config, ports, P::default);
        maker.into_iter().for_each(|maker| plane.set_maker(maker));
        let worker = workers.pop().ok_or_else(|| Error::Contender("no worker was made".into()))?;
        let mut rig = Self { worker, model: Model::new(Config::default(), plane, 0), now: 1 };
        let refused =
            |what: String, error: &dyn std::fmt::Display| Error::Contender(format!("{what}: {error}"));
        for number in numbers {
            let desc = PortDesc { number, name: format!("p{number}"), ..PortDesc::default() };
            rig.model
                .add_port(rig.now, desc, true)
                .map_err(|error| refused(format!("port {number}"), &error))?;
        }
        let mods = parse_flows(rules, ParseOptions::default()).collect::<Result<Vec<_>, _>>();
        let mods = mods.map_err(|error| refused("flows".into(), &error))?;
        let done = rig.model.bundle(rig.now, mods);
        done.map_err(|(at, error)| refused(format!("flow {}", at + 1), &error))?;
        Ok(rig)
    }

    /// Turns the worker, and lets the model follow.
    pub fn warm_up(&mut self, turns: usize) {
        for _ in 0..turns {
            self.turn();
            while self.model.poll(self.now) {}
        }
    }

    /// One turn of the worker's loop; returns the packets it received.
    pub fn turn(&mut self) -> u64 {
        self.now += TURN_NS;
        self.worker.turn(self.now).received as u64
    }
}

/// A queue that hands out at most so many packets at once.
pub struct Limited {
    /// The queue.
    pub queue: LoopQueue,
    /// Packets of a burst at most.
    pub burst: usize,
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
