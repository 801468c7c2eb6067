// SPDX-License-Identifier: Apache-2.0
//! What became of all that arrived.

use flow::DropReason;
use hdrhistogram::{CreationError, Histogram};
use std::collections::BTreeMap;

/// Longest time that is told apart, ns: ten seconds.
const LONGEST_NS: u64 = 10_000_000_000;

/// Under this name stands what arrived while the ring of its port was full.
pub(super) const RING_FULL: &str = "ring_full";

/// Times in ns; quantiles are off by a thousandth at most, means are not.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    histogram: Histogram<u64>,
    sum_ns: f64,
    squares: f64,
}

impl Times {
    pub(crate) fn new() -> Result<Self, CreationError> {
        Ok(Self { histogram: Histogram::new_with_bounds(1, LONGEST_NS, 3)?, sum_ns: 0.0, squares: 0.0 })
    }

    pub(crate) fn add(&mut self, ns: f64) {
        self.histogram.saturating_record(ns.round() as u64);
        self.sum_ns += ns;
        self.squares += ns * ns;
    }

    /// Takes in what another run found.
    pub fn merge(&mut self, other: &Self) {
        // Of the same bounds: it fits.
        let added = self.histogram.add(&other.histogram);
        debug_assert!(added.is_ok());
        self.sum_ns += other.sum_ns;
        self.squares += other.squares;
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// At most so long is this part of them, ns; 0 of none.
    #[must_use]
    pub fn quantile_ns(&self, part: f64) -> f64 {
        if self.histogram.is_empty() { 0.0 } else { self.histogram.value_at_quantile(part) as f64 }
    }

    /// The longest, ns; 0 of none.
    #[must_use]
    pub fn max_ns(&self) -> f64 {
        self.histogram.max() as f64
    }

    /// Their mean, ns; 0 of none.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns / self.count().max(1) as f64
    }

    /// Their standard deviation, ns; 0 of none.
    #[must_use]
    pub fn deviation_ns(&self) -> f64 {
        let mean_ns = self.mean_ns();
        (self.squares / self.count().max(1) as f64 - mean_ns * mean_ns).max(0.0).sqrt()
    }
}

/// What became of one class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassReport {
    /// Its name.
    pub name: String,
    /// Packets that arrived.
    pub offered: u64,
    /// Packets that left by a port; of those that come back, those that left for the second time.
    pub delivered: u64,
    /// How often packets left that went all the way over the fast-forwarding path.
    pub fast: u64,
    /// What was lost, by name.
    pub lost: BTreeMap<&'static str, u64>,
    /// Packets that left behind a later one of their flow.
    pub overtaken: u64,
    /// From arrival to the end of the transmission, and the fixed time of input and output; of packets that come back,
    /// both passes.
    pub latency: Times,
    /// From the arrival of a flow's first packet to the end of the transmission of its first one that went all the way over
    /// the fast-forwarding path, and the fixed time of input and output; of flows that were not known before.
    pub learning: Times,
}

impl ClassReport {
    pub(super) fn new(name: &str) -> Result<Self, CreationError> {
        Ok(Self {
            name: name.into(),
            offered: 0,
            delivered: 0,
            fast: 0,
            lost: BTreeMap::new(),
            overtaken: 0,
            latency: Times::new()?,
            learning: Times::new()?,
        })
    }

    /// All that was lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.values().sum()
    }

    /// What was lost for lack of room: not what rules drop, or send to the controller.
    #[must_use]
    pub fn crowded_out(&self) -> u64 {
        let is_scarcity =
            |name: &str| name == RING_FULL || DropReason::SCARCITY.iter().any(|reason| reason.name() == name);
        self.lost.iter().filter(|(name, _)| is_scarcity(name)).map(|(_, count)| count).sum()
    }

    /// Takes in what another run found of the same class.
    pub fn merge(&mut self, other: &Self) {
        self.offered += other.offered;
        self.delivered += other.delivered;
        self.fast += other.fast;
        self.overtaken += other.overtaken;
        other.lost.iter().for_each(|(name, count)| *self.lost.entry(name).or_default() += count);
        self.latency.merge(&other.latency);
        self.learning.merge(&other.learning);
    }
}

/// What the worker did between two polls of its ports.
#[derive(Clone, Debug, PartialEq)]
pub struct Spans {
    /// After a poll that brought packets: what it does at once with a burst.
    pub burst: Times,
    /// After one that brought none: what it sends, and works off.
    pub other: Times,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// In the order of the load's classes.
    pub classes: Vec<ClassReport>,
    /// The same by lanes, low-latency flows and normal ones; empty if no class told which are which.
    pub lanes: Vec<ClassReport>,
    /// Turns of the worker.
    pub turns: u64,
    /// Packets it received, those of the warm-up included.
    pub received: u64,
    /// What it did between polls.
    pub spans: Spans,
    /// When all was over, ns of virtual time.
    pub end_ns: f64,
    /// For how much of it the worker had packets, ns.
    pub busy_ns: f64,
}

impl Report {
    /// The class of this name.
    #[must_use]
    pub fn class(&self, name: &str) -> Option<&ClassReport> {
        self.classes.iter().find(|class| class.name == name)
    }

    /// Packets received a second while the worker had any: what it carries, if more arrived than that and nothing that was
    /// received was dropped.
    #[must_use]
    pub fn received_pps(&self) -> f64 {
        self.received as f64 * 1e9 / self.busy_ns.max(1.0)
    }

    /// Takes in what another run of the same load found, with another seed.
    pub fn merge(&mut self, other: &Self) {
        self.classes.iter_mut().zip(&other.classes).for_each(|(class, other)| class.merge(other));
        self.lanes.iter_mut().zip(&other.lanes).for_each(|(lane, other)| lane.merge(other));
        self.turns += other.turns;
        self.received += other.received;
        self.spans.burst.merge(&other.spans.burst);
        self.spans.other.merge(&other.spans.other);
        self.end_ns += other.end_ns;
        self.busy_ns += other.busy_ns;
    }
}
