// SPDX-License-Identifier: Apache-2.0
//! What became of a network's packets.

use crate::arrivals::Times;
use crate::network::instance::State;
use crate::network::outages::Exposure;
use flow::Nanos;
use hdrhistogram::CreationError;
use std::collections::BTreeMap;

/// Where packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// At a switch.
    Node(usize),
    /// On a link.
    Link(usize),
    /// At a host.
    Host(usize),
}

/// A failure of a link or switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What failed.
    pub part: Place,
    /// When.
    pub from_ns: Nanos,
    /// Packets that met it on the path that was planned for them.
    pub met: u64,
    /// Those of them to which it was promised not to matter.
    pub guarded: u64,
}

/// Packets of one sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Delivered as they were sent, where they were to.
    pub delivered: u64,
    /// Lost, not for lack of room.
    pub lost: u64,
    /// Lost for lack of room.
    pub crowded_out: u64,
}

/// Sum, count and extremes of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The least; 0 of none.
    pub min: u64,
    /// The most; 0 of none.
    pub max: u64,
}

impl Figures {
    /// Takes one more in.
    pub fn add(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += value;
    }

    /// Their mean; 0 of none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }
}

impl FromIterator<usize> for Figures {
    fn from_iter<I: IntoIterator<Item = usize>>(values: I) -> Self {
        let mut figures = Self::default();
        values.into_iter().for_each(|value| figures.add(value as u64));
        figures
    }
}

/// What became of a network's packets: sent = delivered + lost.
#[derive(Clone, Debug)]
pub struct Report {
    /// Packets sent.
    pub sent: u64,
    /// Packets that arrived where they were to, as they were sent.
    pub delivered: u64,
    /// Packets that did not, by reason and place of their last copy.
    pub lost: BTreeMap<(&'static str, Place), u64>,
    /// All packets, by the failures that they met.
    pub ends: BTreeMap<Exposure, Ends>,
    /// All failures, the earliest first.
    pub failures: Vec<Failure>,
    /// Packets delivered by what led them: no key of KeyFlow, keys of epoch 0, keys of epoch 1, keys of both.
    pub by_epochs: [u64; 4],
    /// Copies that arrived at another host.
    pub misdelivered: u64,
    /// Copies that arrived where they were to, but not as they were sent.
    pub damaged: u64,
    /// Copies that arrived after the first.
    pub duplicated: u64,
    /// Packets that crossed more links than they may.
    pub strayed: u64,
    /// Links that delivered packets crossed.
    pub hops: Figures,
    /// How many of these were beyond the fewest.
    pub detours: Figures,
    /// What a packet may cross at most, of each flow.
    pub hops_max: Figures,
    /// Different paths on which packets arrived: of one pair of hosts, or of several.
    pub paths: u64,
    /// Bits that packets were longer on links between switches than hosts sent them.
    pub added_bits: Figures,
    /// From sending to arrival, of delivered packets.
    pub latency: Times,
    /// What switches have to keep, each at its most.
    pub states: Vec<State>,
    /// Times that switches were given packets.
    pub forwarded: u64,
    /// When the last packet was over.
    pub end_ns: Nanos,
}

impl Report {
    pub(super) fn new(nodes: usize) -> Result<Self, CreationError> {
        Ok(Self {
            sent: 0,
            delivered: 0,
            lost: BTreeMap::new(),
            ends: BTreeMap::new(),
            failures: Vec::new(),
            by_epochs: [0; 4],
            misdelivered: 0,
            damaged: 0,
            duplicated: 0,
            strayed: 0,
            hops: Figures::default(),
            detours: Figures::default(),
            hops_max: Figures::default(),
            paths: 0,
            added_bits: Figures::default(),
            latency: Times::new()?,
            states: vec![State::default(); nodes],
            forwarded: 0,
            end_ns: 0,
        })
    }

    /// Packets lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.values().sum()
    }

    /// Packets lost that should not have been: nothing had failed, or nothing on their path, or what may fail without loss.
    #[must_use]
    pub fn lost_wrongly(&self) -> u64 {
        self.ends.iter().filter(|(exposure, _)| exposure.is_safe()).map(|(_, ends)| ends.lost).sum()
    }

    /// Whether nothing went wrong that must not.
    #[must_use]
    pub fn is_right(&self) -> bool {
        let wrong = [self.misdelivered, self.damaged, self.duplicated, self.strayed, self.lost_wrongly()];
        wrong == [0; 5]
    }
}
