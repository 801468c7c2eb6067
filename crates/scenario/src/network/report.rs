// SPDX-License-Identifier: Apache-2.0
//! Result of a simulated network, as text and as JSON.

use super::NetworkScenario;
use super::plan::Numberings;
use super::protection::{self, Protection};
use crate::figures::{Latency, thousandths};
use crate::report::CacheUse;
use config::PortCacheMode;
use serde::Serialize;
use sim::network::{
    BufferReport, Exposure, FailureReport, InstanceState, Layer, LayerReport, NetworkFigures, NetworkPlace,
    Node, Report,
};
use std::collections::BTreeMap;

/// Result of a simulated network. Times are virtual, in ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetworkOutcome {
    /// Path of the scenario file.
    pub scenario: String,
    /// Path of the plan's file.
    pub plan: String,
    /// Kind of the plan.
    pub kind: &'static str,
    /// Method by which switches forward: "plan" or "entries".
    pub forwarding: &'static str,
    /// Name of the network.
    pub network: String,
    /// Seed of the random generator.
    pub seed: u64,
    /// Switches, each with the peak size of its state during the run.
    pub switches: Vec<SwitchState>,
    /// Number of links between switches.
    pub links: usize,
    /// Number of hosts.
    pub hosts: usize,
    /// Number of pairs of a sending and a receiving host.
    pub pairs: usize,
    /// Number of flows. A pair with several paths has several flows.
    pub flows: usize,
    /// Number of packets sent, which is `delivered` + `lost`.
    pub sent: u64,
    /// Number of packets that arrived unchanged at the right host.
    pub delivered: u64,
    /// Number of packets that were sent but not delivered.
    pub lost: u64,
    /// Number of packets that arrived at a wrong host.
    pub misdelivered: u64,
    /// Number of packets that arrived changed at the right host.
    pub damaged: u64,
    /// Number of duplicates that arrived.
    pub duplicated: u64,
    /// Number of packets that crossed more links than allowed.
    pub over_budget: u64,
    /// Number of lost packets that encountered no failure that explains the loss. See `met`.
    pub lost_wrongly: u64,
    /// Whether all packets were handled correctly.
    pub right: bool,
    /// Requirements of the scenario that were not met, one sentence each.
    pub missed: Vec<String>,
    /// Numbers of lost packets by reason and place.
    pub reasons: Vec<LossReport>,
    /// Numbers of packets by the kind of failure that they encountered.
    pub met: Vec<Met>,
    /// Protection that the plan promises, and the part of it that the run exercised.
    pub protection: Protection,
    /// Failures in order of time.
    pub failures: Vec<FailureMet>,
    /// Numbers of delivered packets by the epoch of their keys, if the network is renumbered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_by: Option<ByEpochs>,
    /// Number of links crossed by each delivered packet.
    pub hops: Range,
    /// Number of links that delivered packets crossed beyond the length of the shortest path.
    pub hops_beyond_shortest: Range,
    /// Maximum number of links that the packets of a flow may cross.
    pub hop_budget: Range,
    /// Number of different paths of packets between hosts.
    pub paths: u64,
    /// Sizes of the headers that packets carry.
    pub header: LinkHeader,
    /// Summary of the switches' state.
    pub state: TableState,
    /// Latency from sending to arrival.
    pub latency_ns: Latency,
    /// Number of times that a switch forwarded a packet.
    pub forwarded: u64,
    /// Time at which the last packet arrived or was lost.
    pub end_ns: u64,
    /// Results of switches that forward by entries, after the warm-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_entries: Option<SwitchesOutcome>,
}

/// Results of switches that forward by entries, after the warm-up. `sent` equals `delivered` + the sum of
/// `lost`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SwitchesOutcome {
    /// Mode of the port caches.
    pub port_cache: &'static str,
    /// Duration of the warm-up in ns.
    pub warm_up_ns: u64,
    /// Number of packets that hosts sent.
    pub sent: u64,
    /// Number of those that were delivered.
    pub delivered: u64,
    /// Numbers of those that were lost, by reason.
    pub lost: BTreeMap<&'static str, u64>,
    /// Latency of those that were delivered.
    pub latency_ns: Latency,
    /// Number of times that a packet left a switch after a later packet of its flow, with the warm-up.
    pub overtaken: u64,
    /// Results by layer.
    pub layers: Vec<LayerOutcome>,
    /// Results of all switches.
    pub total: LayerOutcome,
}

/// Results of the switches of a layer. `offered` equals `received` + `lost["ring_full"]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerOutcome {
    /// Name of the layer, "total", or "none" for switches without a layer.
    pub layer: &'static str,
    /// Number of switches.
    pub switches: usize,
    /// Packets that arrived at receive rings.
    pub offered: u64,
    /// Packets that workers received from rings.
    pub received: u64,
    /// Counters of the port caches, unless they are off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_cache: Option<CacheUse>,
    /// Packets that were forwarded without a search of their own, in percent of `offered`.
    pub hit_rate_percent: f64,
    /// Packets that left.
    pub forwarded: u64,
    /// Packets that were lost in the switches, or because the queue of an outgoing link was full, by reason.
    pub lost: BTreeMap<&'static str, u64>,
    /// Time from the arrival of a packet at a switch until it left.
    pub delay_ns: Latency,
}

impl LayerOutcome {
    fn new(layer: &'static str, has_cache: bool, found: &LayerReport) -> Self {
        Self {
            layer,
            switches: found.switches,
            offered: found.offered,
            received: found.received,
            port_cache: has_cache.then(|| found.misses.into()),
            hit_rate_percent: thousandths(100.0 * found.express as f64 / found.offered.max(1) as f64),
            forwarded: found.forwarded,
            lost: found.dropped.clone(),
            delay_ns: (&found.delay).into(),
        }
    }
}

fn by_entries(scenario: &NetworkScenario, found: &BufferReport) -> Option<SwitchesOutcome> {
    let has_cache = scenario.port_cache != PortCacheMode::Off;
    let layer =
        |found: &LayerReport| LayerOutcome::new(found.layer.map_or("none", Layer::name), has_cache, found);
    Some(SwitchesOutcome {
        port_cache: scenario.port_cache.name(),
        warm_up_ns: scenario.network.buffers?.begin_ns.0,
        sent: found.sent,
        delivered: found.delivered,
        lost: found.lost.clone(),
        latency_ns: (&found.latency).into(),
        overtaken: found.overtaken,
        layers: found.layers.iter().map(layer).collect(),
        total: LayerOutcome::new("total", has_cache, &found.total()?),
    })
}

/// Number of packets lost for one reason at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LossReport {
    /// Name of the reason.
    pub reason: &'static str,
    /// Switch, link or host.
    pub place: String,
    /// Number of packets.
    pub packets: u64,
}

/// Numbers of packets that encountered one kind of failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Met {
    /// Kind of failure.
    pub failure: &'static str,
    /// Whether the protection covers this kind of failure. Packets may then be lost only for lack of buffer
    /// space.
    pub safe: bool,
    /// Number of packets that arrived.
    pub delivered: u64,
    /// Number of packets lost for reasons other than lack of buffer space.
    pub lost: u64,
    /// Number of packets lost for lack of buffer space.
    pub crowded_out: u64,
}

/// A failure of a link or switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailureMet {
    /// Name of the link or switch.
    pub part: String,
    /// Time of the failure in ns.
    pub at_ns: u64,
    /// Number of packets whose path crossed the failed part.
    pub packets: u64,
    /// Number of packets that were protected against the failure and encountered it after its detection.
    pub protected: u64,
}

/// Delivered packets by the epoch of their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ByEpochs {
    /// Number of packets without a key.
    pub none: u64,
    /// Number of packets with keys of epoch 0.
    pub epoch_0: u64,
    /// Number of packets with keys of epoch 1.
    pub epoch_1: u64,
    /// Number of packets whose key was changed at a waypoint to a key of the other epoch.
    pub both: u64,
}

/// Peak size of a switch's state during the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SwitchState {
    /// Name of the switch.
    pub name: String,
    /// Number of flow entries.
    pub entries: usize,
    /// Number of groups.
    pub groups: usize,
    /// Number of labels in all banks.
    pub labels: usize,
    /// Number of gates.
    pub gates: usize,
}

/// Minimum, mean and maximum of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Range {
    /// Minimum.
    pub min: u64,
    /// Mean.
    pub mean: f64,
    /// Maximum.
    pub max: u64,
}

/// Sizes of the headers that packets carry, in bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LinkHeader {
    /// Number of bits by which packets are longer on links between switches than at the sending host.
    pub on_links_bits: Range,
    /// Sizes in bits: of the largest key with the same IDs (KeyFlow), of the key itself (freeRtr), or of UP
    /// and DOWN together (tags).
    pub key_bits: Range,
}

/// Summary of the switches' state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TableState {
    /// Number of flow entries per switch.
    pub entries: Range,
    /// Number of groups per switch.
    pub groups: Range,
    /// Number of labels in all banks per switch.
    pub labels: Range,
    /// Number of gates per switch.
    pub gates: Range,
    /// Number of switches without entries.
    pub without_entries: usize,
}

impl From<NetworkFigures> for Range {
    fn from(figures: NetworkFigures) -> Self {
        Self { min: figures.min, mean: thousandths(figures.mean()), max: figures.max }
    }
}

/// Returns the figures of the table state of all switches.
fn table_state(all: &[InstanceState]) -> TableState {
    let states = |of: fn(&InstanceState) -> usize| all.iter().map(of).collect::<NetworkFigures>().into();
    TableState {
        entries: states(|state| state.entries),
        groups: states(|state| state.groups),
        labels: states(|state| state.labels),
        gates: states(|state| state.gates),
        without_entries: all.iter().filter(|state| state.entries == 0).count(),
    }
}

/// Converts the report of the simulation.
pub fn outcome(scenario: &NetworkScenario, found: &Report) -> NetworkOutcome {
    let NetworkScenario { path, plan_path, kind, graph, network, key_bits, pairs, numberings, .. } = scenario;
    let require = &scenario.require;
    let place = |place: &NetworkPlace| match place {
        NetworkPlace::Node(node) => network.nodes[*node].name.clone(),
        NetworkPlace::Link(link) => graph.links[*link].clone(),
        NetworkPlace::Host(host) => format!("host {}", network.hosts[*host].name),
    };
    let reasons = found.lost.iter().map(|((reason, at), packets)| LossReport {
        reason,
        place: place(at),
        packets: *packets,
    });
    let met = Exposure::ALL.iter().filter_map(|exposure| {
        let ends = found.ends.get(exposure)?;
        let (failure, safe) = (exposure.name(), exposure.is_safe());
        Some(Met { failure, safe, delivered: ends.delivered, lost: ends.lost, crowded_out: ends.crowded_out })
    });
    let switch = |(node, state): (&Node, &InstanceState)| {
        let InstanceState { entries, groups, labels, gates } = *state;
        SwitchState { name: node.name.clone(), entries, groups, labels, gates }
    };
    let failure = |failure: &FailureReport| FailureMet {
        part: place(&failure.part),
        at_ns: failure.from_ns.0,
        packets: failure.met,
        protected: failure.guarded,
    };
    let protection = protection::protection(network, found);
    let [none, epoch_0, epoch_1, both] = found.by_epochs;
    NetworkOutcome {
        scenario: path.display().to_string(),
        plan: plan_path.clone(),
        kind,
        forwarding: scenario.forwarding.name(),
        network: graph.network.clone(),
        seed: network.seed,
        switches: network.nodes.iter().zip(&found.states).map(switch).collect(),
        links: network.links.len(),
        hosts: network.hosts.len(),
        pairs: *pairs,
        flows: network.flows.len(),
        sent: found.sent,
        delivered: found.delivered,
        lost: found.lost(),
        misdelivered: found.misdelivered,
        damaged: found.damaged,
        duplicated: found.duplicated,
        over_budget: found.strayed,
        lost_wrongly: found.lost_wrongly(),
        right: found.is_right(),
        missed: protection::missed(require, *numberings, network, found, &protection, place),
        protection,
        failures: found.failures.iter().map(failure).collect(),
        delivered_by: (*numberings == Numberings::Both).then_some(ByEpochs { none, epoch_0, epoch_1, both }),
        reasons: reasons.collect(),
        met: met.collect(),
        hops: found.hops.into(),
        hops_beyond_shortest: found.detours.into(),
        hop_budget: found.hops_max.into(),
        paths: found.paths,
        header: LinkHeader {
            on_links_bits: found.added_bits.into(),
            key_bits: key_bits.iter().map(|bits| *bits as usize).collect::<NetworkFigures>().into(),
        },
        state: table_state(&found.states),
        latency_ns: (&found.latency).into(),
        forwarded: found.forwarded,
        end_ns: found.end_ns.0,
        by_entries: found.buffers.as_ref().and_then(|found| by_entries(scenario, found)),
    }
}
