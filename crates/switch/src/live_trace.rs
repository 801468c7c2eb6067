// SPDX-License-Identifier: Apache-2.0
//! Traces of real packets: what a worker did with a packet, compared with the result that the rules give.

use crate::plane::Plane;
use config::flow_file::port_names;
use config::trace::{TraceForm, TracedPlane, describe, report, rule};
use dataplane::{CacheWait, FoundBy, TraceRecord};
use flow::syntax::{ParseOptions, parse_match};
use flow::{Nanos, Outcome, PortNo, RuleVersion, TableId};
use model::Model;
use model::trace::TraceComparison;
use serde::{Deserialize, Serialize};

/// Maximum number of packets of a trace.
const PACKETS_MAX: u64 = 100_000;
/// Maximum duration of a trace in ms.
const TIMEOUT_MS_MAX: u64 = 3_600_000;
const MS_NS: Nanos = Nanos(1_000_000);

/// Filter and limits of a trace of real packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Live {
    /// Filter in flow syntax on packets as received. An empty string accepts all packets.
    #[serde(default)]
    pub filter: String,
    /// Number of packets to trace.
    pub count: u64,
    /// Maximum duration in ms.
    pub timeout_ms: u64,
}

/// The trace of a real packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Real {
    /// Number of the worker that forwarded the packet.
    pub worker: u16,
    /// Ingress port.
    pub in_port: PortNo,
    /// Packet in flow syntax.
    pub packet: String,
    /// Length of the packet in bytes.
    pub bytes: u32,
    /// Version of the rules that processed the packet.
    pub version: RuleVersion,
    /// Lookups in order.
    pub hits: Vec<RealHit>,
    /// The table at which the packet left the fast-forwarding path because the LUT had no record.
    pub missed: Option<TableId>,
    /// Whether the packet left by the fast-forwarding path alone.
    pub fast: bool,
    /// Whether a path record forwarded the packet. The record names the entries of `hits`.
    pub express: bool,
    /// Role of the packet in the port cache, if it waited there: `new` (it started the search of its flow) or
    /// `merged` (it waited behind an earlier packet of its flow).
    pub waited: Option<String>,
    /// Ports that got a copy, in order.
    pub ports: Vec<PortNo>,
    /// Number of copies for the controller.
    pub packet_ins: usize,
    /// Outcome: `forwarded`, `consumed` or `dropped`.
    pub outcome: String,
    /// Name of the drop reason, if the packet was dropped.
    pub reason: Option<String>,
    /// Time from the start of the burst until the packet left, in ns.
    pub left_ns: Nanos,
    /// Result of the comparison: `agrees`, `changed` (the rules have changed since), `unclear` or `fault`.
    pub verdict: String,
    /// Reasons for the result, unless it is `agrees`.
    pub why: Vec<String>,
    /// Trace of the same packet by the rules at the time of the comparison.
    pub imagined: TraceForm,
}

/// A lookup of a real packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealHit {
    /// Table number.
    pub table: TableId,
    /// Source of the entry:
    ///
    /// - `table`: the table;
    /// - `index`: the index of a linear table;
    /// - `lut`: a LUT record on the fast-forwarding path;
    /// - `verified`: a LUT record that was first compared with the table;
    /// - `inherited`: a record of the table's previous LUT, which a new LUT replaced;
    /// - `shared`: the table itself, on the fast-forwarding path;
    /// - `known`: a LUT record of a normal entry;
    /// - `express`: a path record, which names the entries of all tables.
    pub by: String,
    /// Entry in flow syntax, if the rules have not changed since the lookup.
    pub line: Option<String>,
    /// Whether an entry was hit.
    pub hit: bool,
    /// Time from the start of the burst, in ns.
    pub after_ns: Nanos,
}

/// Summary at the end of a trace of real packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveSummary {
    /// Number of packets reported.
    pub recorded: u64,
    /// Number of reported packets that could be compared with the rules.
    pub compared: u64,
    /// Number of compared packets that the worker did not forward as the rules require.
    pub faults: u64,
    /// Number of packets that matched the filter but were not recorded, for lack of space.
    pub lost: u64,
}

/// Error of a trace of real packets.
#[derive(Debug, thiserror::Error)]
pub enum LiveTraceError {
    /// The filter cannot be parsed.
    #[error("the filter is not understood: {0}")]
    Filter(String),
    /// The filter has a field `index`, which packets do not have.
    #[error("the filter is not understood: index={0} selects an entry of a table; packets have no index")]
    Index(u32),
    /// The number of packets is out of range.
    #[error("{0} packets cannot be traced; ask for 1 to {1}")]
    Count(u64, u64),
    /// The duration is out of range.
    #[error("a trace cannot take {0} ms; give it 1 to {1}")]
    Timeout(u64, u64),
    /// Another client is tracing real packets. Only one trace can be active.
    #[error(
        "another client traces real packets, and only one client can do so at a time; wait until its trace ends"
    )]
    Busy,
    /// A device forwards the packets. It records none.
    #[error("a device forwards the packets of this datapath, and it cannot trace real packets")]
    Device,
}

/// A running trace of real packets. The owner must end it with [`Watch::stop`].
#[derive(Debug)]
pub(crate) struct Watch {
    left: u64,
    end_ns: Nanos,
    summary: LiveSummary,
}

impl Watch {
    /// Starts recording on all workers. Returns an error if a limit is invalid or another client is tracing.
    pub fn start(model: &mut Model<Plane>, live: &Live, now: Nanos) -> Result<Self, LiveTraceError> {
        let names = port_names(model);
        let matching =
            parse_match(&live.filter, ParseOptions { port_names: &|name| names.get(name).copied() })
                .map_err(|error| LiveTraceError::Filter(error.to_string()))?;
        if live.count == 0 || live.count > PACKETS_MAX {
            return Err(LiveTraceError::Count(live.count, PACKETS_MAX));
        }
        if live.timeout_ms == 0 || live.timeout_ms > TIMEOUT_MS_MAX {
            return Err(LiveTraceError::Timeout(live.timeout_ms, TIMEOUT_MS_MAX));
        }
        if let Some(index) = matching.index() {
            return Err(LiveTraceError::Index(index));
        }
        let workers = model.plane_mut().workers().ok_or(LiveTraceError::Device)?;
        if !workers.record(&matching, live.count) {
            return Err(LiveTraceError::Busy);
        }
        Ok(Self {
            left: live.count,
            end_ns: now.saturating_add(live.timeout_ms * MS_NS),
            summary: LiveSummary::default(),
        })
    }

    /// Returns the next packet, if one was recorded.
    pub fn next(&mut self, model: &mut Model<Plane>) -> Option<Real> {
        if self.left == 0 {
            return None;
        }
        let record = model.plane_mut().workers()?.next_record()?;
        self.left -= 1;
        let real = real(model, &record);
        self.summary.recorded += 1;
        self.summary.compared += u64::from(matches!(real.verdict.as_str(), "agrees" | "fault"));
        self.summary.faults += u64::from(real.verdict == "fault");
        Some(real)
    }

    /// Returns whether the trace has reached its number of packets or its end time.
    pub fn is_over(&self, now: Nanos) -> bool {
        self.left == 0 || now >= self.end_ns
    }

    /// Stops recording on all workers.
    pub fn stop(mut self, model: &mut Model<Plane>) -> LiveSummary {
        if let Some(workers) = model.plane_mut().workers() {
            self.summary.lost = workers.records_lost();
            workers.stop_recording();
        }
        self.summary
    }
}

/// Compares a record with the rules, and formats both results.
fn real(model: &mut Model<Plane>, record: &TraceRecord) -> Real {
    let (trace, verdict) = model.compare(record);
    let (verdict, why) = match verdict {
        TraceComparison::Agrees => ("agrees", Vec::new()),
        TraceComparison::Changed { then, now } => {
            ("changed", vec![format!("the rules have changed since, from version {then} to {now}")])
        }
        TraceComparison::Unclear(why) => ("unclear", vec![why.to_owned()]),
        TraceComparison::Disagrees(differences) => ("fault", differences),
    };
    let (outcome, reason) = match record.outcome {
        Outcome::Forwarded => ("forwarded", None),
        Outcome::Consumed => ("consumed", None),
        Outcome::Dropped(reason) => ("dropped", Some(reason.name().to_owned())),
    };
    let known = record.version == trace.version;
    let hits = record.hits.iter().map(|hit| RealHit {
        table: hit.table,
        by: by(hit.by).to_owned(),
        line: hit.entry.filter(|_| known).and_then(|id| model.entry(id)).map(|entry| rule(entry).line()),
        hit: hit.entry.is_some(),
        after_ns: hit.after_ns,
    });
    Real {
        worker: record.worker,
        in_port: record.in_port,
        packet: describe(record.in_port, &record.bytes),
        bytes: record.len,
        version: record.version,
        hits: hits.collect(),
        missed: record.missed,
        fast: record.fast,
        express: record.express,
        waited: record.waited.map(|waited| {
            let role = match waited {
                CacheWait::First => "new",
                CacheWait::Follower => "merged",
            };
            role.to_owned()
        }),
        ports: record.copies.iter().filter_map(|copy| copy.port).collect(),
        packet_ins: record.copies.iter().filter(|copy| copy.port.is_none()).count(),
        outcome: outcome.to_owned(),
        reason,
        left_ns: record.left_ns,
        verdict: verdict.to_owned(),
        why,
        imagined: report(model, &trace),
    }
}

fn by(by: FoundBy) -> &'static str {
    match by {
        FoundBy::Table => "table",
        FoundBy::Index => "index",
        FoundBy::Lut => "lut",
        FoundBy::Verified => "verified",
        FoundBy::Inherited => "inherited",
        FoundBy::Shared => "shared",
        FoundBy::Known => "known",
        FoundBy::Express => "express",
    }
}
