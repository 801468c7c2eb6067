// SPDX-License-Identifier: Apache-2.0
//! A scenario's traffic through a switch with `mem` ports, and what comes out held against what must.

use std::error::Error;
use std::sync::Arc;

use fastrand::Rng;
use frame::{Frame, HEADROOM_BYTES, TAILROOM_BYTES};
use model::DataPlane;
use pipeline::Probe;
use port::Queue;
use port::mem::LoopQueue;
use shunt_bench::Sources;
use shunt_bench::rig::{Limited, Rig};
use shunt_bench::scenario::{Options, PORTS, Popularity, Scenario};
use tables::base::Maker;

use crate::tape::{Tape, Tapped};

/// Packets of a burst.
pub const BURST: usize = 32;

/// What runs.
pub struct Course<P: Probe = ()> {
    /// The switch.
    pub rig: Rig<P>,
    tape: Arc<Tape>,
    scenario: Arc<Scenario>,
    traffic: Vec<usize>,
    fast: u64,
    received: u64,
}

/// A scenario, on the best rule sets there are.
pub fn scenario(options: &Options) -> Result<Arc<Scenario>, Box<dyn Error>> {
    let list = if options.rules > 1_000 { "acl1_10k" } else { "acl1_1k" };
    Ok(Arc::new(Scenario::new(options, &Sources::best(list)?)?))
}

/// Frames of which the buffers take up this many bytes, rounded up to whole bursts.
pub fn frames_in(bytes: usize, packet: usize) -> usize {
    let buffer = HEADROOM_BYTES + packet + TAILROOM_BYTES;
    bytes.div_ceil(buffer).next_multiple_of(BURST)
}

impl Course {
    /// A switch that receives `frames` packets by port 1 over and over, drawn from the scenario's low-latency flows by
    /// Zipf's law, each in a buffer of its own, the buffers in no order. `lut_entries` 0: without the path. With a maker,
    /// tables are of its making.
    pub fn new(
        scenario: &Arc<Scenario>,
        frames: usize,
        lut_entries: usize,
        maker: Option<Maker>,
    ) -> Result<Self, Box<dyn Error>> {
        Self::mixed(scenario, frames, lut_entries, maker, (0, BURST))
    }
}

impl<P: Probe + Default> Course<P> {
    /// The same, with so many packets of a thousand from normal flows, and in bursts of at most so many.
    pub fn mixed(
        scenario: &Arc<Scenario>,
        frames: usize,
        lut_entries: usize,
        maker: Option<Maker>,
        (normal_per_mille, burst): (u32, usize),
    ) -> Result<Self, Box<dyn Error>> {
        let traffic = scenario.traffic(frames, Popularity::Zipf(1.0), normal_per_mille, 1);
        let mut set: Vec<Frame> =
            traffic.iter().map(|at| Frame::from_bytes(&scenario.flows[*at].packet)).collect();
        Rng::with_seed(2).shuffle(&mut set);
        let (tape, mut set) = (Arc::new(Tape::default()), Some(set));
        let queues = (1..=1 + PORTS).map(|number| {
            let queue = Limited { queue: LoopQueue::new(number, set.take().unwrap_or_default()), burst };
            Box::new(Tapped { number, queue, tape: Arc::clone(&tape) }) as Box<dyn Queue>
        });
        let clock = worker::Clock::of_machine();
        let config = worker::Config { lut_entries, clock, ..worker::Config::default() };
        let rig = Rig::with_queues(&config, queues.collect(), &scenario.rules, maker)?;
        let scenario = Arc::clone(scenario);
        Ok(Self { rig, tape, scenario, traffic, fast: 0, received: 0 })
    }

    /// The share of packets that are of normal flows.
    pub fn normal_share(&self) -> f64 {
        let normal = self.traffic.iter().filter(|at| !self.scenario.flows[**at].low_latency).count();
        normal as f64 / self.traffic.len() as f64
    }

    /// Lets all packets through twice, so that what can be learned is; then once more, held against what must come out.
    pub fn prepare(&mut self) -> Result<(), Box<dyn Error>> {
        self.rig.warm_up(2 * self.traffic.len() / BURST);
        self.verify()
    }

    /// Lets all packets through once and holds every byte sent against what must be.
    pub fn verify(&mut self) -> Result<(), Box<dyn Error>> {
        self.tape.record(true);
        let mut received = 0;
        while received < self.traffic.len() as u64 {
            received += self.rig.turn();
        }
        self.tape.record(false);
        let flows: Vec<(u32, Vec<u8>)> =
            self.scenario.flows.iter().map(|flow| (flow.port, flow.sent())).collect();
        let expected = self.traffic.iter().map(|at| (flows[*at].0, flows[*at].1.as_slice()));
        let sent = self.tape.judge(expected)?;
        if sent as u64 != received {
            return Err(format!("{sent} packets sent of {received}").into());
        }
        let totals = self.rig.model.plane_mut().totals();
        (self.fast, self.received) = (totals.fast, totals.received);
        Ok(())
    }

    /// Of the packets since the last verification, the share that went all the way over the path.
    pub fn fast_share(&mut self) -> f64 {
        let totals = self.rig.model.plane_mut().totals();
        (totals.fast - self.fast) as f64 / ((totals.received - self.received) as f64).max(1.0)
    }
}
