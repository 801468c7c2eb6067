// SPDX-License-Identifier: Apache-2.0
//! Inputs of a run: the switch, its traffic classes, and the load.

use crate::arrivals::Popularity;
use flow::{PortNo, StatelessConfig};
use model::{CookieMask, Learning};
use std::sync::Arc;
use tables::compile::Maker;

/// Criteria that make entries low-latency, in addition to the marks of the rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Entries whose cookie matches are low-latency.
    pub cookie: Option<CookieMask>,
    /// Parameters for learning low-latency marks from traffic.
    pub learning: Option<Learning>,
}

impl Marks {
    /// Returns a model configuration with these criteria.
    pub(super) fn model(self) -> model::ModelConfig {
        let Self { cookie, learning } = self;
        model::ModelConfig { low_latency_cookie: cookie, learning, ..model::ModelConfig::default() }
    }
}

/// A switch under load: one worker with its rules.
#[derive(Clone, Copy, Debug)]
pub struct Switch<'a> {
    /// Rules in the flow syntax, loaded as one bundle.
    pub rules: &'a str,
    /// Rules added one by one after `rules`.
    pub added: &'a str,
    /// Stateless forwarding, if the switch has it.
    pub stateless: Option<&'a StatelessConfig>,
    /// Number of ports; they are numbered from 1.
    pub ports: u32,
    /// Sizes of the worker, which also determine whether the fast-forwarding path is enabled.
    pub config: worker::WorkerSetConfig,
    /// Further criteria that make entries low-latency.
    pub marks: Marks,
    /// Alternative constructor of table engines, used for comparisons.
    pub maker: Option<Maker>,
}

/// Arrival process of a traffic class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Packets at constant intervals.
    Constant,
    /// Poisson process: independent arrivals.
    Poisson,
    /// Bursts of packets with short intervals. The starts of the bursts form a Poisson process.
    Bursts {
        /// Number of packets per burst.
        packets: u32,
        /// Interval between packets of a burst, in nanoseconds.
        spacing_ns: f64,
    },
    /// Intervals of the class's capture, scaled to the class's rate and repeated. Without a capture, the
    /// intervals are constant.
    AsCaptured,
}

/// Times and flows of captured packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Capture {
    /// Flow of each packet, as an index into the class's list.
    pub order: Box<[u32]>,
    /// Interval in nanoseconds from each packet to the next, and from the last packet to the first packet of
    /// the next repetition.
    pub gaps_ns: Box<[f64]>,
}

impl Capture {
    /// Returns the captured rate in packets/s, or 0 without packets.
    #[must_use]
    pub fn rate_pps(&self) -> f64 {
        let span_ns: f64 = self.gaps_ns.iter().sum();
        if span_ns > 0.0 { self.gaps_ns.len() as f64 * 1e9 / span_ns } else { 0.0 }
    }
}

/// A traffic class.
#[derive(Clone, Debug)]
pub struct Class {
    /// Name in reports.
    pub name: String,
    /// Ingress port of its packets.
    pub port: PortNo,
    /// One packet per flow, from the destination MAC address to the last byte before the FCS.
    pub flows: Arc<[Vec<u8>]>,
    /// For each flow, whether the rules make it low-latency. If empty, lanes are not reported.
    pub low_latency: Arc<[bool]>,
    /// Capture that determines the order or times of packets, if any.
    pub capture: Option<Arc<Capture>>,
    /// Distribution of the class's packets over its flows.
    pub popularity: Popularity,
    /// Arrival process.
    pub pattern: Pattern,
    /// Total rate of all flows of the class, in packets/s.
    pub rate_pps: f64,
    /// Time of the first arrival, in nanoseconds.
    pub begin_ns: f64,
    /// Whether each flow sends packets before the run, so that the worker learns the flow.
    pub known: bool,
    /// If set, the remote side sends each transmitted packet back once, without delay, to this port.
    pub comes_back: Option<PortNo>,
}

/// Load of a run: its traffic classes and common parameters.
#[derive(Clone, Debug)]
pub struct Load {
    /// Traffic classes.
    pub classes: Vec<Class>,
    /// Capacity of a port's receive ring in packets. A packet that arrives at a full ring is lost.
    pub ring: usize,
    /// Fixed I/O time in nanoseconds, part of each latency: from the wire to the ring, and from the doorbell
    /// to the wire.
    pub io_ns: f64,
    /// Warm-up time in nanoseconds. Packets that arrive earlier are not counted.
    pub warm_up_ns: f64,
    /// Time during which packets arrive after the warm-up, in nanoseconds.
    pub span_ns: f64,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Load {
    /// Returns the time at which the arrivals end, in nanoseconds.
    #[must_use]
    pub fn end_ns(&self) -> f64 {
        self.warm_up_ns + self.span_ns
    }
}
