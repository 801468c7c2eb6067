// SPDX-License-Identifier: Apache-2.0
//! Results of a run.

use flow::DropReason;
use hdrhistogram::{CreationError, Histogram};
use pipeline::ProbeStep;
use port_cache::MissFigures;
use std::collections::BTreeMap;

/// Upper bound of the histograms in nanoseconds: ten seconds.
const LONGEST_NS: u64 = 10_000_000_000;

/// Loss reason of packets that arrive at a full receive ring.
pub(super) const RING_FULL: &str = "ring_full";

/// Distribution of times in nanoseconds. Quantiles have an error of at most 0.1 %; means are exact.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrivalTimes {
    histogram: Histogram<u64>,
    sum_ns: f64,
    squares: f64,
}

impl ArrivalTimes {
    pub(crate) fn new() -> Result<Self, CreationError> {
        Ok(Self { histogram: Histogram::new_with_bounds(1, LONGEST_NS, 3)?, sum_ns: 0.0, squares: 0.0 })
    }

    pub(crate) fn add(&mut self, ns: f64) {
        self.histogram.saturating_record(ns.round() as u64);
        self.sum_ns += ns;
        self.squares += ns * ns;
    }

    /// Adds the times of another run.
    pub fn merge(&mut self, other: &Self) {
        // Both histograms have the same bounds, so this cannot fail.
        let added = self.histogram.add(&other.histogram);
        debug_assert!(added.is_ok());
        self.sum_ns += other.sum_ns;
        self.squares += other.squares;
    }

    /// Returns the number of times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the quantile `part` (0 to 1) in nanoseconds, or 0 if there are no times.
    #[must_use]
    pub fn quantile_ns(&self, part: f64) -> f64 {
        if self.histogram.is_empty() { 0.0 } else { self.histogram.value_at_quantile(part) as f64 }
    }

    /// Returns the maximum in nanoseconds, or 0 if there are no times.
    #[must_use]
    pub fn max_ns(&self) -> f64 {
        self.histogram.max() as f64
    }

    /// Returns the mean in nanoseconds, or 0 if there are no times.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns / self.count().max(1) as f64
    }

    /// Returns the standard deviation in nanoseconds, or 0 if there are no times.
    #[must_use]
    pub fn deviation_ns(&self) -> f64 {
        let mean_ns = self.mean_ns();
        (self.squares / self.count().max(1) as f64 - mean_ns * mean_ns).max(0.0).sqrt()
    }
}

/// Results of one traffic class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassReport {
    /// Name of the class.
    pub name: String,
    /// Packets that arrived.
    pub offered: u64,
    /// Number of packets sent by a port. Packets that return count when they are sent for the second time.
    pub delivered: u64,
    /// Number of transmissions of packets that stayed on the fast-forwarding path.
    pub fast: u64,
    /// Number of transmissions of packets that a path record forwarded.
    pub express: u64,
    /// Lost packets by reason.
    pub lost: BTreeMap<&'static str, u64>,
    /// Packets sent after a later packet of their flow.
    pub overtaken: u64,
    /// Latency from arrival to the end of transmission, including the fixed I/O time. For packets that
    /// return, the latency covers both passes.
    pub latency: ArrivalTimes,
    /// Time from the arrival of a flow's first packet to the transmission of its first packet that stayed on
    /// the fast-forwarding path or had a path record, including the fixed I/O time. Flows sent before the run
    /// are not included.
    pub learning: ArrivalTimes,
}

impl ClassReport {
    pub(super) fn new(name: &str) -> Result<Self, CreationError> {
        Ok(Self {
            name: name.into(),
            offered: 0,
            delivered: 0,
            fast: 0,
            express: 0,
            lost: BTreeMap::new(),
            overtaken: 0,
            latency: ArrivalTimes::new()?,
            learning: ArrivalTimes::new()?,
        })
    }

    /// Returns the number of lost packets.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.values().sum()
    }

    /// Returns the number of packets lost for lack of space.
    #[must_use]
    pub fn crowded_out(&self) -> u64 {
        let is_scarcity =
            |name: &str| name == RING_FULL || DropReason::SCARCITY.iter().any(|reason| reason.name() == name);
        self.lost.iter().filter(|(name, _)| is_scarcity(name)).map(|(_, count)| count).sum()
    }

    /// Adds the results of the same class in another run.
    pub fn merge(&mut self, other: &Self) {
        self.offered += other.offered;
        self.delivered += other.delivered;
        self.fast += other.fast;
        self.express += other.express;
        self.overtaken += other.overtaken;
        other.lost.iter().for_each(|(name, count)| *self.lost.entry(name).or_default() += count);
        self.latency.merge(&other.latency);
        self.learning.merge(&other.learning);
    }
}

/// Durations of the worker's activity between two polls of the same port.
#[derive(Clone, Debug, PartialEq)]
pub struct Spans {
    /// Duration after a poll that returned packets: immediate processing of the burst.
    pub burst: ArrivalTimes,
    /// Duration after an empty poll: transmission and processing of the backlog.
    pub other: ArrivalTimes,
}

/// Results of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Results per class, in the order of the load.
    pub classes: Vec<ClassReport>,
    /// Results per lane: first low-latency flows, then normal flows; empty if no class states the lanes of
    /// its flows.
    pub lanes: Vec<ClassReport>,
    /// Number of poll iterations of the worker.
    pub turns: u64,
    /// Packets that the worker received, including the warm-up.
    pub received: u64,
    /// Durations between polls.
    pub spans: Spans,
    /// End of the run in nanoseconds of virtual time.
    pub end_ns: f64,
    /// Time during which the worker had packets, in nanoseconds.
    pub busy_ns: f64,
    /// Counters of the port cache, with the warm-up.
    pub misses: MissFigures,
    /// Steps that occurred and that cost nothing because the costs have no row for them, each with whether it
    /// occurred in the second pass through the tables.
    pub free_steps: Vec<(ProbeStep, bool)>,
}

impl Report {
    /// Returns the results of the class with this name.
    #[must_use]
    pub fn class(&self, name: &str) -> Option<&ClassReport> {
        self.classes.iter().find(|class| class.name == name)
    }

    /// Returns the packets received per second of busy time. This is the capacity if the worker was
    /// overloaded and no received packet was dropped.
    #[must_use]
    pub fn received_pps(&self) -> f64 {
        self.received as f64 * 1e9 / self.busy_ns.max(1.0)
    }

    /// Adds the results of another run of the same load with another seed.
    pub fn merge(&mut self, other: &Self) {
        self.classes.iter_mut().zip(&other.classes).for_each(|(class, other)| class.merge(other));
        self.lanes.iter_mut().zip(&other.lanes).for_each(|(lane, other)| lane.merge(other));
        self.turns += other.turns;
        self.received += other.received;
        self.spans.burst.merge(&other.spans.burst);
        self.spans.other.merge(&other.spans.other);
        let new = other.free_steps.iter().filter(|step| !self.free_steps.contains(step));
        self.free_steps.extend(new.copied().collect::<Vec<_>>());
        self.end_ns += other.end_ns;
        self.busy_ns += other.busy_ns;
    }
}
