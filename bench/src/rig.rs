// SPDX-License-Identifier: Apache-2.0
//! Test harness: a worker on endless in-memory ports, with its rules installed.

use dataplane::DataPlane;
use std::sync::atomic::{AtomicU64, Ordering};

use flow::syntax::{ParseOptions, parse_flows};
use flow::{Nanos, PortNo};
use frame::{Frame, Stamp};
use model::{Model, ModelConfig, PortDesc};
use pipeline::Probe;
use port::mem::LoopQueue;
use port::{Pools, Queue};
use tables::compile::Maker;
use worker::{PortQueues, Worker, WorkerSet, build_with};

use crate::Error;

/// Number of poll iterations before the first window, in which addresses are learned and caches filled.
const WARM_UP: usize = 1_000;

/// Virtual time per poll iteration in nanoseconds.
const TURN_NS: Nanos = Nanos(2_000);

/// A set of rules, and the packets to which they are applied.
pub struct Case {
    /// Name of the case in the report.
    pub name: String,
    /// Rules in the syntax of ovs-ofctl.
    pub flows: String,
    /// Number of ports; they are numbered from 1.
    pub ports: u32,
    /// Packets that each port receives repeatedly.
    pub sources: Vec<(u32, Vec<Vec<u8>>)>,
    /// Maximum number of packets that a queue returns at once.
    pub burst: usize,
    /// Whether each packet is sent to one port. If false, all packets are dropped.
    pub forwards: bool,
    /// Number of records of each LUT of the fast-forwarding path; 0 disables the path.
    pub lut_entries: usize,
    /// Number of path records, or 0 without the express path.
    pub express_records: usize,
}

/// Worker and its control side, in one thread.
pub struct Rig<P: Probe = ()> {
    /// The worker.
    pub worker: Worker<P>,
    /// The control side.
    pub model: Model<WorkerSet>,
    now: Nanos,
}

impl Rig {
    /// Creates a worker with the case's rules and the machine's clock, and warms it up.
    ///
    /// # Errors
    /// Returns an error if a rule is refused, or if packets are not treated as the case specifies.
    pub fn new(case: &Case) -> Result<Self, Error> {
        Self::with_clock(case, worker::Clock::of_machine())
    }

    /// Creates a worker with the case's rules and a clock that advances 100 ns per reading, and warms it up.
    /// The worker does the same in each run.
    ///
    /// # Errors
    /// Returns an error if a rule is refused, or if packets are not treated as the case specifies.
    pub fn repeatable(case: &Case) -> Result<Self, Error> {
        static NOW: AtomicU64 = AtomicU64::new(0);
        Self::with_clock(case, worker::Clock::counting_ns(|| NOW.fetch_add(100, Ordering::Relaxed)))
    }

    fn with_clock(case: &Case, clock: worker::Clock) -> Result<Self, Error> {
        let queues = (1..=case.ports).map(|number| {
            let set = case.sources.iter().find(|(port, _)| *port == number).map(|(_, set)| set.as_slice());
            let set = set.unwrap_or_default().iter().map(|bytes| Frame::from_bytes(bytes)).collect();
            Box::new(Limited { queue: LoopQueue::new(number, set), burst: case.burst }) as Box<dyn Queue>
        });
        let config = worker::WorkerSetConfig {
            lut_entries: case.lut_entries,
            express_records: case.express_records,
            clock,
            ..worker::WorkerSetConfig::default()
        };
        let mut rig = Self::with_queues(&config, queues.collect(), &case.flows, None)?;
        rig.warm_up(WARM_UP);
        rig.check(case)?;
        Ok(rig)
    }

    /// Checks that packets are treated as the case specifies, because wrongly dropped packets would improve
    /// the figure.
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
    /// Creates a worker with one queue for each of ports 1, 2, and so on. Its rules are applied after a few
    /// poll iterations. `maker`, if given, creates the table engines.
    ///
    /// # Errors
    /// Returns an error if a rule is refused.
    pub fn with_queues(
        config: &worker::WorkerSetConfig,
        queues: Vec<Box<dyn Queue>>,
        rules: &str,
        maker: Option<Maker>,
    ) -> Result<Self, Error> {
        let ports = (1..).zip(queues).map(|(number, queue)| PortQueues {
            number: PortNo(number),
            queues: vec![(0, queue)],
            egress: Vec::new(),
        });
        let ports: Vec<PortQueues> = ports.collect();
        let numbers = 1..=ports.len() as u32;
        let (mut plane, mut workers) = build_with(config, ports, P::default);
        maker.into_iter().for_each(|maker| plane.set_maker(maker));
        let worker = workers.pop().ok_or_else(|| Error::Contender("no worker was created".into()))?;
        let mut rig =
            Self { worker, model: Model::new(ModelConfig::default(), plane, Nanos(0)), now: Nanos(1) };
        let refused =
            |what: String, error: &dyn std::fmt::Display| Error::Contender(format!("{what}: {error}"));
        for number in numbers {
            let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
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

    /// Runs poll iterations of the worker, and lets the model process their events.
    pub fn warm_up(&mut self, turns: usize) {
        for _ in 0..turns {
            self.turn();
            while self.model.poll(self.now) {}
        }
    }

    /// Runs one poll iteration. Returns the number of packets received.
    pub fn turn(&mut self) -> u64 {
        self.now += TURN_NS;
        self.worker.turn(self.now).received as u64
    }
}

/// Queue that returns a limited number of packets at once.
pub struct Limited {
    /// Underlying queue.
    pub queue: LoopQueue,
    /// Maximum number of packets per burst.
    pub burst: usize,
}

impl Queue for Limited {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        self.queue.receive(pools, burst, max.min(self.burst), stamp)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        self.queue.transmit(frames, done)
    }

    crate::as_wrapped_queue!(queue);
}
