// SPDX-License-Identifier: Apache-2.0
//! What became of a network's packets, in rows.

use super::NetworkScenario;
use super::protection::{self, Protection};
use crate::scenario::report::Latency;
use serde::Serialize;
use sim::network::{Exposure, Failure, Figures, Node, Place, Report, State};

/// A run of a network. Times are ns of virtual time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetworkOutcome {
    /// The file.
    pub scenario: String,
    /// The plan's file.
    pub plan: String,
    /// What it plans.
    pub kind: &'static str,
    /// The network's name.
    pub network: String,
    /// The seed of all that was drawn.
    pub seed: u64,
    /// Switches, and what each has to keep at its most.
    pub switches: Vec<SwitchState>,
    /// Links between them.
    pub links: usize,
    /// Hosts.
    pub hosts: usize,
    /// Pairs of hosts of which the first sends to the second.
    pub pairs: usize,
    /// Flows: of a pair that chooses among paths there are several.
    pub flows: usize,
    /// Packets sent: delivered + lost.
    pub sent: u64,
    /// Packets that arrived at the right host as they were sent.
    pub delivered: u64,
    /// Packets that did not.
    pub lost: u64,
    /// Packets that came to another host.
    pub misdelivered: u64,
    /// Packets that came to the right one and were not as they were sent.
    pub damaged: u64,
    /// Packets that came once more.
    pub duplicated: u64,
    /// Packets that crossed more links than they may.
    pub over_budget: u64,
    /// Packets lost that should not have been, see `met`.
    pub lost_wrongly: u64,
    /// Nothing went wrong that must not.
    pub right: bool,
    /// What the scenario requires and was not so.
    pub missed: Vec<String>,
    /// Why packets were lost, and where.
    pub reasons: Vec<Lost>,
    /// Packets by the failures that they met.
    pub met: Vec<Met>,
    /// What the plan protects, and what of it was put to the test.
    pub protection: Protection,
    /// Failures, the earliest first.
    pub failures: Vec<FailureMet>,
    /// Packets delivered, by what led them; of a network that is renumbered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_by: Option<ByEpochs>,
    /// Links that delivered packets crossed.
    pub hops: Range,
    /// How many of these were beyond the fewest possible.
    pub hops_beyond_shortest: Range,
    /// What a packet may cross, of each flow.
    pub hop_budget: Range,
    /// Different paths of packets from one host to another.
    pub paths: u64,
    /// What packets carry.
    pub header: LinkHeader,
    /// What switches have to keep, each at its most, in short.
    pub state: TableState,
    /// From sending to arrival.
    pub latency_ns: Latency,
    /// How often switches forwarded.
    pub forwarded: u64,
    /// When the last packet was over.
    pub end_ns: u64,
}

/// Packets lost for one reason at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// The reason's name.
    pub reason: &'static str,
    /// The switch, link or host.
    pub place: String,
    /// How many.
    pub packets: u64,
}

/// Packets that met with failures in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Met {
    /// How.
    pub failure: &'static str,
    /// None of them may be lost, but for lack of room.
    pub safe: bool,
    /// Those that arrived.
    pub delivered: u64,
    /// Those lost, not for lack of room.
    pub lost: u64,
    /// Those lost for lack of room.
    pub crowded_out: u64,
}

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailureMet {
    /// The link or switch.
    pub part: String,
    /// When it failed.
    pub at_ns: u64,
    /// Packets that met it on their path.
    pub packets: u64,
    /// Those of them that are protected against it, and met it once it was detected.
    pub protected: u64,
}

/// Packets by the epochs of the keys that led them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ByEpochs {
    /// Those that had no key.
    pub none: u64,
    /// Keys of epoch 0.
    pub epoch_0: u64,
    /// Of epoch 1.
    pub epoch_1: u64,
    /// Of one after the other: at a waypoint.
    pub both: u64,
}

/// What a switch has to keep, at its most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SwitchState {
    /// Its name.
    pub name: String,
    /// Flow entries.
    pub entries: usize,
    /// Groups.
    pub groups: usize,
    /// Labels in its banks.
    pub labels: usize,
    /// Gates.
    pub gates: usize,
}

/// Least, mean and most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Range {
    /// The least.
    pub min: u64,
    /// Their mean.
    pub mean: f64,
    /// The most.
    pub max: u64,
}

/// Bits that packets carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LinkHeader {
    /// Bits by which packets are longer on links between switches than hosts sent them, as seen there.
    pub on_links_bits: Range,
    /// Bits of keys: what the plan says that keys with the same IDs have at most, which none is longer than; of freeRtr's, those they have. Of tags, bits that
    /// their UP and DOWN have.
    pub key_bits: Range,
}

/// What switches have to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TableState {
    /// Flow entries of a switch.
    pub entries: Range,
    /// Groups.
    pub groups: Range,
    /// Labels in its banks.
    pub labels: Range,
    /// Gates.
    pub gates: Range,
    /// Switches that have no entry.
    pub without_entries: usize,
}

impl From<Figures> for Range {
    fn from(figures: Figures) -> Self {
        Self { min: figures.min, mean: thousandths(figures.mean()), max: figures.max }
    }
}

fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Puts a run into rows.
pub fn outcome(scenario: &NetworkScenario, found: &Report) -> NetworkOutcome {
    let NetworkScenario { path, plan_path, kind, graph, network, key_bits, pairs, renumbered, require } =
        scenario;
    let place = |place: &Place| match place {
        Place::Node(node) => network.nodes[*node].name.clone(),
        Place::Link(link) => graph.links[*link].clone(),
        Place::Host(host) => format!("host {}", network.hosts[*host].name),
    };
    let reasons =
        found.lost.iter().map(|((reason, at), packets)| Lost { reason, place: place(at), packets: *packets });
    let met = Exposure::ALL.iter().filter_map(|exposure| {
        let ends = found.ends.get(exposure)?;
        let (failure, safe) = (exposure.name(), exposure.is_safe());
        Some(Met { failure, safe, delivered: ends.delivered, lost: ends.lost, crowded_out: ends.crowded_out })
    });
    let states = |of: fn(&State) -> usize| found.states.iter().map(of).collect::<Figures>().into();
    let latency = &found.latency;
    let switch = |(node, state): (&Node, &State)| {
        let State { entries, groups, labels, gates } = *state;
        SwitchState { name: node.name.clone(), entries, groups, labels, gates }
    };
    let failure = |failure: &Failure| FailureMet {
        part: place(&failure.part),
        at_ns: failure.from_ns,
        packets: failure.met,
        protected: failure.guarded,
    };
    let protection = protection::protection(network, found);
    let [none, epoch_0, epoch_1, both] = found.by_epochs;
    NetworkOutcome {
        scenario: path.display().to_string(),
        plan: plan_path.clone(),
        kind,
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
        missed: protection::missed(require, *renumbered, network, found, &protection, place),
        protection,
        failures: found.failures.iter().map(failure).collect(),
        delivered_by: renumbered.then_some(ByEpochs { none, epoch_0, epoch_1, both }),
        reasons: reasons.collect(),
        met: met.collect(),
        hops: found.hops.into(),
        hops_beyond_shortest: found.detours.into(),
        hop_budget: found.hops_max.into(),
        paths: found.paths,
        header: LinkHeader {
            on_links_bits: found.added_bits.into(),
            key_bits: key_bits.iter().map(|bits| *bits as usize).collect::<Figures>().into(),
        },
        state: TableState {
            entries: states(|state| state.entries),
            groups: states(|state| state.groups),
            labels: states(|state| state.labels),
            gates: states(|state| state.gates),
            without_entries: found.states.iter().filter(|state| state.entries == 0).count(),
        },
        latency_ns: Latency {
            p50: latency.quantile_ns(0.5),
            p99: latency.quantile_ns(0.99),
            p99_9: latency.quantile_ns(0.999),
            p99_99: latency.quantile_ns(0.9999),
            max: latency.max_ns(),
            mean: thousandths(latency.mean_ns()),
            deviation: thousandths(latency.deviation_ns()),
        },
        forwarded: found.forwarded,
        end_ns: found.end_ns,
    }
}
