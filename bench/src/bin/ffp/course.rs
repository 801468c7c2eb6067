// SPDX-License-Identifier: Apache-2.0
//! Runs a scenario's traffic through a switch with `mem` ports, and checks the output.

use dataplane::DataPlane;
use std::error::Error;
use std::sync::Arc;

use fastrand::Rng;
use frame::{Frame, HEADROOM_BYTES, TAILROOM_BYTES};
use pipeline::Probe;
use port::Queue;
use port::mem::LoopQueue;
use shunt_bench::rig::{Limited, Rig};
use shunt_bench::scenario::{Options, PORTS, Popularity, Scenario};
use shunt_bench::{Cached, Sources};
use tables::compile::Maker;

use crate::tape::{Tape, Tapped};

/// Number of packets per burst.
pub const BURST: usize = 32;

/// A running switch with its traffic.
pub struct Course<P: Probe = ()> {
    /// Switch under measurement.
    pub rig: Rig<P>,
    tape: Arc<Tape>,
    scenario: Arc<Scenario>,
    traffic: Vec<usize>,
    fast: u64,
    received: u64,
}

/// Returns a scenario from the best available rule sets.
pub fn scenario(options: &Options) -> Result<Arc<Scenario>, Box<dyn Error>> {
    let list = if options.rules > 1_000 { "acl1_10k" } else { "acl1_1k" };
    Ok(Arc::new(Scenario::new(options, &Sources::best(list)?)?))
}

/// Returns the number of frames whose buffers occupy this many bytes, rounded up to full bursts.
pub fn frames_in(bytes: usize, packet: usize) -> usize {
    let buffer = HEADROOM_BYTES + packet + TAILROOM_BYTES;
    bytes.div_ceil(buffer).next_multiple_of(BURST)
}

impl Course {
    /// Creates a switch that repeatedly receives `frames` packets on port 1. The packets of the scenario's
    /// low-latency flows follow Zipf's law, and their buffers are in random order. The maker, if given,
    /// creates the tables.
    pub fn new(
        scenario: &Arc<Scenario>,
        frames: usize,
        cached: Cached,
        maker: Option<Maker>,
    ) -> Result<Self, Box<dyn Error>> {
        Self::mixed(scenario, frames, (cached.lut_entries(), cached.express_records()), maker, (0, BURST))
    }
}

impl<P: Probe + Default> Course<P> {
    /// Like `new`, with given numbers of LUT records and path records, a share of packets from normal flows
    /// (in thousandths), and a maximum burst size.
    pub fn mixed(
        scenario: &Arc<Scenario>,
        frames: usize,
        (lut_entries, express_records): (usize, usize),
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
        let config = worker::WorkerSetConfig {
            lut_entries,
            express_records,
            clock,
            ..worker::WorkerSetConfig::default()
        };
        let rig = Rig::with_queues(&config, queues.collect(), &scenario.rules, maker)?;
        let scenario = Arc::clone(scenario);
        Ok(Self { rig, tape, scenario, traffic, fast: 0, received: 0 })
    }

    /// Returns the share of packets from normal flows.
    pub fn normal_share(&self) -> f64 {
        let normal = self.traffic.iter().filter(|at| !self.scenario.flows[**at].low_latency).count();
        normal as f64 / self.traffic.len() as f64
    }

    /// Sends all packets twice, so that LUTs learn them, and then once with a check of the output.
    pub fn prepare(&mut self) -> Result<(), Box<dyn Error>> {
        self.rig.warm_up(2 * self.traffic.len() / BURST);
        self.verify()
    }

    /// Sends all packets once and compares every sent byte with the expected output.
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
        let sent = self.tape.compare(expected)?;
        if sent as u64 != received {
            return Err(format!("{sent} packets sent of {received}").into());
        }
        let totals = self.rig.model.plane_mut().totals();
        (self.fast, self.received) = (totals.fast + totals.express, totals.received);
        Ok(())
    }

    /// Returns the share of packets since the last verification that stayed on the path in all tables, or
    /// that a path record forwarded.
    pub fn fast_share(&mut self) -> f64 {
        let totals = self.rig.model.plane_mut().totals();
        (totals.fast + totals.express - self.fast) as f64
            / ((totals.received - self.received) as f64).max(1.0)
    }
}
