// SPDX-License-Identifier: Apache-2.0
//! What arrives, and what it meets.

use crate::arrivals::Popularity;
use flow::PortNo;
use std::sync::Arc;
use tables::base::Maker;

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
