// SPDX-License-Identifier: Apache-2.0
//! What arrives, and what it meets.

use crate::arrivals::Popularity;
use flow::PortNo;
use model::Learning;
use std::sync::Arc;
use tables::base::Maker;

/// Which entries are low-latency besides those of which the rules say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Those whose cookie has this value under this mask.
    pub cookie: Option<(u64, u64)>,
    /// Those that are learned to be.
    pub learning: Option<Learning>,
}

impl Marks {
    /// A model's settings with them.
    pub(super) fn model(self) -> model::Config {
        let Self { cookie, learning } = self;
        model::Config { low_latency_cookie: cookie, learning, ..model::Config::default() }
    }
}

/// The switch that packets meet: one worker.
#[derive(Clone, Copy, Debug)]
pub struct Switch<'a> {
    /// Its rules, in the syntax of flows.
    pub rules: &'a str,
    /// Rules that are added to them one by one.
    pub added: &'a str,
    /// Ports 1 to this.
    pub ports: PortNo,
    /// Sizes; the fast-forwarding path on or off.
    pub config: worker::Config,
    /// Which entries are low-latency besides.
    pub marks: Marks,
    /// Makes its tables in place of ours: for comparisons.
    pub maker: Option<Maker>,
}

/// When packets of a class arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// One as long after the other as before the next.
    Constant,
    /// Independently of one another.
    Poisson,
    /// So many close together, these bursts independently of one another.
    Bursts {
        /// Packets of a burst.
        packets: u32,
        /// From one of them to the next, ns.
        spacing_ns: f64,
    },
    /// As far apart as in the class's capture, at the class's rate, over and over. Without a capture, constant.
    AsCaptured,
}

/// When packets came, and of which flow each was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Capture {
    /// Places of their flows in the class's list.
    pub order: Box<[u32]>,
    /// From each packet to the next, from the last to the first of the next round, ns.
    pub gaps_ns: Box<[f64]>,
}

impl Capture {
    /// Packets a second, as captured; 0 of none.
    #[must_use]
    pub fn rate_pps(&self) -> f64 {
        let span_ns: f64 = self.gaps_ns.iter().sum();
        if span_ns > 0.0 { self.gaps_ns.len() as f64 * 1e9 / span_ns } else { 0.0 }
    }
}

/// Traffic of one sort.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its name in reports.
    pub name: String,
    /// The port it comes in by.
    pub port: PortNo,
    /// A packet of each of its flows, from the destination MAC address to the last byte before the FCS.
    pub flows: Arc<[Vec<u8>]>,
    /// Whether each flow is low-latency by the rules; empty: what becomes of lanes is not told.
    pub low_latency: Arc<[bool]>,
    /// The capture whose order or times the flows have, if they have.
    pub capture: Option<Arc<Capture>>,
    /// How often each of them sends.
    pub popularity: Popularity,
    /// When.
    pub pattern: Pattern,
    /// Packets a second, of all its flows together.
    pub rate_pps: f64,
    /// When it begins, ns.
    pub begin_ns: f64,
    /// Each flow passes, alone, before anything else arrives: what can be learned is.
    pub known: bool,
    /// The port that each of its packets comes back by, once, as soon as it was received on the far side.
    pub comes_back: Option<PortNo>,
}

/// All that arrives.
#[derive(Clone, Debug)]
pub struct Load {
    /// What arrives.
    pub classes: Vec<Class>,
    /// Packets that wait to be received at a port, at most: the next are lost.
    pub ring: usize,
    /// From the wire to the ring and from the doorbell to the wire together, ns; part of each latency.
    pub io_ns: f64,
    /// Packets that arrive before this time do not count, ns.
    pub warm_up_ns: f64,
    /// How long packets arrive after it, ns.
    pub span_ns: f64,
    /// Seed of all that is drawn.
    pub seed: u64,
}

impl Load {
    /// When the last packets arrive, ns.
    #[must_use]
    pub fn end_ns(&self) -> f64 {
        self.warm_up_ns + self.span_ns
    }
}
