// SPDX-License-Identifier: Apache-2.0
//! Results of a network simulation.

use crate::arrivals::ArrivalTimes;
use crate::network::exposure::Exposure;
use crate::network::instance::InstanceState;
use crate::network::spec::Layer;
use flow::Nanos;
use hdrhistogram::CreationError;
use port_cache::MissFigures;
use std::collections::BTreeMap;

/// A place where packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NetworkPlace {
    /// Switch with this index.
    Node(usize),
    /// Link with this index.
    Link(usize),
    /// Host with this index.
    Host(usize),
}

/// Failure of a link or switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureReport {
    /// The link or switch that failed.
    pub part: NetworkPlace,
    /// Time of the failure.
    pub from_ns: Nanos,
    /// Number of packets that encountered the failure on their planned path.
    pub met: u64,
    /// Number of packets in `met` that the plan protects against the failure.
    pub guarded: u64,
}

/// Numbers of packets of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Packets delivered unchanged to their receiver.
    pub delivered: u64,
    /// Packets lost for reasons other than lack of space.
    pub lost: u64,
    /// Packets lost for lack of space.
    pub crowded_out: u64,
}

/// Count, sum, minimum and maximum of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkFigures {
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: u64,
    /// Minimum, or 0 without values.
    pub min: u64,
    /// Maximum, or 0 without values.
    pub max: u64,
}

impl NetworkFigures {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += value;
    }

    /// Returns the mean, or 0 without values.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }
}

impl FromIterator<usize> for NetworkFigures {
    fn from_iter<I: IntoIterator<Item = usize>>(values: I) -> Self {
        let mut figures = Self::default();
        values.into_iter().for_each(|value| figures.add(value as u64));
        figures
    }
}

/// Results of the switches of a layer: `received` and `misses` are counted when the time that is counted
/// begins and ends. The other values are about the packets that arrived in this time.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerReport {
    /// The layer, or `None` for switches without a layer.
    pub layer: Option<Layer>,
    /// Number of switches.
    pub switches: usize,
    /// Packets that arrived at receive rings.
    pub offered: u64,
    /// Packets that workers received from rings.
    pub received: u64,
    /// Packets that left by a path record, without a search of their own.
    pub express: u64,
    /// Counters of the port caches.
    pub misses: MissFigures,
    /// Packets that left.
    pub forwarded: u64,
    /// Packets that were lost in the switches, or because the queue of an outgoing link was full, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Time from the arrival of a packet at a switch until it left.
    pub delay: ArrivalTimes,
}

impl LayerReport {
    pub(super) fn new(layer: Option<Layer>, switches: usize) -> Result<Self, CreationError> {
        Ok(Self {
            layer,
            switches,
            offered: 0,
            received: 0,
            express: 0,
            misses: MissFigures::default(),
            forwarded: 0,
            dropped: BTreeMap::new(),
            delay: ArrivalTimes::new()?,
        })
    }

    /// Adds the results of other switches.
    pub fn merge(&mut self, other: &Self) {
        self.switches += other.switches;
        self.offered += other.offered;
        self.received += other.received;
        self.express += other.express;
        self.misses.add(&other.misses);
        self.forwarded += other.forwarded;
        other.dropped.iter().for_each(|(name, count)| *self.dropped.entry(name).or_default() += count);
        self.delay.merge(&other.delay);
    }

    /// Returns the number of lost packets.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.dropped.values().sum()
    }
}

/// Results of switches in which packets may wait, in the time that is counted.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferReport {
    /// Results by layer.
    pub layers: Vec<LayerReport>,
    /// Packets that hosts sent in the time that is counted. They are delivered or lost.
    pub sent: u64,
    /// Those that were delivered.
    pub delivered: u64,
    /// Those that were lost, by reason.
    pub lost: BTreeMap<&'static str, u64>,
    /// Latency of those that were delivered.
    pub latency: ArrivalTimes,
    /// Number of times that a packet left a switch after a later packet of its flow, in the whole run.
    pub overtaken: u64,
}

impl BufferReport {
    pub(super) fn new(layers: Vec<LayerReport>) -> Result<Self, CreationError> {
        let (lost, latency) = (BTreeMap::new(), ArrivalTimes::new()?);
        Ok(Self { layers, sent: 0, delivered: 0, lost, latency, overtaken: 0 })
    }

    /// Returns the results of all switches together, or `None` if there are no switches.
    #[must_use]
    pub fn total(&self) -> Option<LayerReport> {
        let (first, others) = self.layers.split_first()?;
        let mut total = LayerReport { layer: None, ..first.clone() };
        others.iter().for_each(|layer| total.merge(layer));
        Some(total)
    }
}

/// Results of a run. `sent` equals `delivered` + `lost`.
#[derive(Clone, Debug)]
pub struct Report {
    /// Packets sent by hosts.
    pub sent: u64,
    /// Packets delivered unchanged to their receiver.
    pub delivered: u64,
    /// Lost packets, by the reason and place at which their last copy was lost.
    pub lost: BTreeMap<(&'static str, NetworkPlace), u64>,
    /// Numbers of delivered and lost packets, by the failures that the packets encountered.
    pub ends: BTreeMap<Exposure, Ends>,
    /// All failures in order of time.
    pub failures: Vec<FailureReport>,
    /// Numbers of delivered packets by the keys that forwarded them: no KeyFlow key, epoch 0, epoch 1, both
    /// epochs.
    pub by_epochs: [u64; 4],
    /// Copies that arrived at a wrong host.
    pub misdelivered: u64,
    /// Copies that arrived at their receiver with changed contents.
    pub damaged: u64,
    /// Copies that arrived after the first copy of their packet.
    pub duplicated: u64,
    /// Packets that crossed more links than allowed.
    pub strayed: u64,
    /// Number of links crossed, per delivered packet.
    pub hops: NetworkFigures,
    /// Number of crossed links beyond the shortest path, per delivered packet.
    pub detours: NetworkFigures,
    /// Maximum number of links that packets may cross, per flow.
    pub hops_max: NetworkFigures,
    /// Number of distinct paths on which packets arrived.
    pub paths: u64,
    /// Additional bits per packet on links between switches, due to pushed headers.
    pub added_bits: NetworkFigures,
    /// Latency of delivered packets.
    pub latency: ArrivalTimes,
    /// Peak size of each switch's state.
    pub states: Vec<InstanceState>,
    /// Number of times that a switch received a packet or, if packets may wait in switches, that a packet
    /// left one.
    pub forwarded: u64,
    /// Time at which the last packet was delivered or lost.
    pub end_ns: Nanos,
    /// Results of switches in which packets may wait.
    pub buffers: Option<BufferReport>,
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
            hops: NetworkFigures::default(),
            detours: NetworkFigures::default(),
            hops_max: NetworkFigures::default(),
            paths: 0,
            added_bits: NetworkFigures::default(),
            latency: ArrivalTimes::new()?,
            states: vec![InstanceState::default(); nodes],
            forwarded: 0,
            end_ns: Nanos(0),
            buffers: None,
        })
    }

    /// Returns the number of lost packets.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.values().sum()
    }

    /// Returns the number of lost packets whose loss no failure excuses: there was no failure, none on the
    /// packet's path, or only failures against which the plan protects.
    #[must_use]
    pub fn lost_wrongly(&self) -> u64 {
        self.ends.iter().filter(|(exposure, _)| exposure.is_safe()).map(|(_, ends)| ends.lost).sum()
    }

    /// Returns whether the run shows no error: no wrong delivery, damage, duplicate or loop, no loss of
    /// protected packets, and no packet that overtook another one of its flow.
    #[must_use]
    pub fn is_right(&self) -> bool {
        let overtaken = self.buffers.as_ref().map_or(0, |buffers| buffers.overtaken);
        let wrong = [self.misdelivered, self.damaged, self.duplicated, self.strayed, self.lost_wrongly()];
        wrong == [0; 5] && overtaken == 0
    }
}
