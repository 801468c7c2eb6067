// SPDX-License-Identifier: Apache-2.0
//! Traces of real packets: what workers recorded, beside what the rules say.

use super::form::Trace;
use super::report::{describe, report, rule};
use super::{TraceError, port_names};
use flow::syntax::{ParseOptions, parse_match};
use flow::{Match, Nanos, Outcome};
use model::Model;
use model::trace::Verdict;
use pipeline::{By, Record};
use serde::{Deserialize, Serialize};
use worker::WorkerSet;

/// Packets of one trace at most.
const PACKETS_MAX: u64 = 100_000;
/// Longest trace.
const TIMEOUT_MS_MAX: u64 = 3_600_000;
const MS_NS: Nanos = 1_000_000;

/// What real packets to trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Live {
    /// Which packets, in flow syntax, as they come in; empty: all.
    #[serde(default)]
    pub filter: String,
    /// How many.
    pub count: u64,
    /// For how long, in milliseconds.
    pub timeout_ms: u64,
}

/// A real packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Real {
    /// The worker that forwarded it.
    pub worker: u16,
    /// The port it came in by.
    pub in_port: u32,
    /// The packet in flow syntax.
    pub packet: String,
    /// Its bytes on the wire.
    pub bytes: u32,
    /// The version of the rules that judged it.
    pub version: u64,
    /// Its lookups, in order.
    pub hits: Vec<RealHit>,
    /// The table at which a LUT did not know its value, so that it left the fast-forwarding path.
    pub missed: Option<u8>,
    /// Whether it went all the way over the fast-forwarding path.
    pub fast: bool,
    /// The ports that got a copy, in order.
    pub ports: Vec<u32>,
    /// Copies for the controller.
    pub packet_ins: usize,
    /// `forwarded`, `consumed` or `dropped`.
    pub outcome: String,
    /// The reason's name, if it was dropped.
    pub reason: Option<String>,
    /// From the beginning of its burst until it left, in nanoseconds.
    pub left_ns: Nanos,
    /// `agrees`, `changed` (the rules, since), `unclear` or `fault`.
    pub verdict: String,
    /// Why, where it does not agree.
    pub why: Vec<String>,
    /// What the rules say, as they are now.
    pub imagined: Trace,
}

/// A lookup of a real packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealHit {
    /// The table.
    pub table: u8,
    /// How it came to its entry: `table` (its lookup), `index`, `lut` (a record of the fast-forwarding path), `verified` (a
    /// record that was held against the table first), `inherited` (a record of the LUT before), `shared` (the table itself,
    /// on the fast-forwarding path), `known` (a record told a normal entry).
    pub by: String,
    /// The entry, where it can be told: the rules are still those that judged the packet.
    pub line: Option<String>,
    /// Whether an entry was hit.
    pub hit: bool,
    /// From the beginning of its burst, in nanoseconds.
    pub after_ns: Nanos,
}

/// The end of a trace of real packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Packets told of.
    pub recorded: u64,
    /// Of these, packets of which it could be told whether the worker was right.
    pub compared: u64,
    /// Of these, packets of which it was not.
    pub faults: u64,
    /// Packets that matched and found no room for their record.
    pub lost: u64,
}

/// A trace under way. Whoever has one gives it back with [`Watch::stop`].
#[derive(Debug)]
pub(crate) struct Watch {
    left: u64,
    end_ns: Nanos,
    summary: Summary,
}

impl Watch {
    /// Arms the workers.
    pub fn start(model: &mut Model<WorkerSet>, live: &Live, now: Nanos) -> Result<Self, TraceError> {
        let names = port_names(model);
        let matching =
            parse_match(&live.filter, ParseOptions { port_names: &|name| names.get(name).copied() })
                .map_err(|error| TraceError::Filter(error.to_string()))?;
        if live.count == 0 || live.count > PACKETS_MAX {
            return Err(TraceError::Count(live.count, PACKETS_MAX));
        }
        if live.timeout_ms == 0 || live.timeout_ms > TIMEOUT_MS_MAX {
            return Err(TraceError::Timeout(live.timeout_ms, TIMEOUT_MS_MAX));
        }
        if let Some(index) = matching.index() {
            return Err(TraceError::Field(
                format!("index={index}"),
                "picks an entry of a table; a packet has none",
            ));
        }
        if !arm(model, &matching, live.count) {
            return Err(TraceError::Busy);
        }
        Ok(Self {
            left: live.count,
            end_ns: now.saturating_add(live.timeout_ms * MS_NS),
            summary: Summary::default(),
        })
    }

    /// The next packet; none if there is none at the moment.
    pub fn next(&mut self, model: &mut Model<WorkerSet>) -> Option<Real> {
        if self.left == 0 {
            return None;
        }
        let record = model.plane_mut().next_record()?;
        self.left -= 1;
        let real = real(model, &record);
        self.summary.recorded += 1;
        self.summary.compared += u64::from(matches!(real.verdict.as_str(), "agrees" | "fault"));
        self.summary.faults += u64::from(real.verdict == "fault");
        Some(real)
    }

    /// Whether no more packets are to come.
    pub fn is_over(&self, now: Nanos) -> bool {
        self.left == 0 || now >= self.end_ns
    }

    /// Disarms the workers.
    pub fn stop(mut self, model: &mut Model<WorkerSet>) -> Summary {
        self.summary.lost = model.plane_mut().records_lost();
        model.plane_mut().stop_recording();
        self.summary
    }
}

fn arm(model: &mut Model<WorkerSet>, matching: &Match, count: u64) -> bool {
    model.plane_mut().record(matching, count)
}

/// A record in words.
fn real(model: &mut Model<WorkerSet>, record: &Record) -> Real {
    let (trace, verdict) = model.judge(record);
    let (verdict, why) = match verdict {
        Verdict::Agrees => ("agrees", Vec::new()),
        Verdict::Changed { then, now } => {
            ("changed", vec![format!("the rules have changed since, from version {then} to {now}")])
        }
        Verdict::Unclear(why) => ("unclear", vec![why.to_owned()]),
        Verdict::Disagrees(differences) => ("fault", differences),
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

fn by(by: By) -> &'static str {
    match by {
        By::Table => "table",
        By::Index => "index",
        By::Lut => "lut",
        By::Verified => "verified",
        By::Inherited => "inherited",
        By::Shared => "shared",
        By::Known => "known",
    }
}
