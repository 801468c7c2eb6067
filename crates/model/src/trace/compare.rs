// SPDX-License-Identifier: Apache-2.0
//! Compares how a worker handled a packet with what the rules require.

use super::Trace;
use super::counts::TraceCounts;
use crate::model::Model;
use dataplane::trace_record::{RECORD_COPIES, RECORD_HITS};
use dataplane::{DataPlane, TraceCopy, TraceRecord};
use flow::{Action, DropReason, EntryId, Instructions, Outcome, PortNo, RuleVersion, TableId};
use std::fmt::Write as _;
use wire::digest::fnv1a;

/// Maximum number of differences reported.
const DIFFERENCES: usize = 8;

/// Result of comparing a recorded packet with the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceComparison {
    /// The worker handled the packet as the rules require.
    Agrees,
    /// The rules have changed since the packet was forwarded.
    Changed {
        /// Version of the rules that the worker applied.
        then: RuleVersion,
        /// Current version of the rules.
        now: RuleVersion,
    },
    /// Worker and rules differ for a reason that is known and permitted.
    Unclear(&'static str),
    /// Worker and rules differ without a permitted reason, which is a fault.
    Disagrees(Vec<String>),
}

impl<D: DataPlane> Model<D> {
    /// Compares a recorded packet with a trace of this packet by the current rules.
    pub fn compare(&mut self, record: &TraceRecord) -> (Trace, TraceComparison) {
        // The end of the payload of long frames is not recorded. Zeros replace it.
        let mut frame = record.bytes.to_vec();
        frame.resize(record.len as usize, 0);
        let trace = self.trace(record.in_port, &frame);
        let comparison = compare_to_trace(record, &trace);
        self.trace_counts.recorded += 1;
        self.trace_counts.compared +=
            u64::from(matches!(comparison, TraceComparison::Agrees | TraceComparison::Disagrees(_)));
        self.trace_counts.faults += u64::from(matches!(comparison, TraceComparison::Disagrees(_)));
        (trace, comparison)
    }

    /// Returns the results of all comparisons so far.
    #[must_use]
    pub fn trace_counts(&self) -> TraceCounts {
        self.trace_counts
    }
}

fn compare_to_trace(record: &TraceRecord, trace: &Trace) -> TraceComparison {
    if record.version != trace.version {
        return TraceComparison::Changed { then: record.version, now: trace.version };
    }
    let differences = differences(record, trace);
    let passes = |is: fn(&Instructions) -> bool| {
        trace.steps.iter().any(|step| step.entry.as_ref().is_some_and(|entry| is(&entry.instructions)))
    };
    if differences.is_empty() {
        TraceComparison::Agrees
    } else if passes(|instructions| instructions.meter.is_some()) {
        TraceComparison::Unclear("it passes a meter, which drops or remarks packets above its rate")
    } else if !trace.processed.floods.is_empty() {
        TraceComparison::Unclear(
            "NORMAL floods it, and packets above the storm limit of its port are dropped",
        )
    } else if trace.processed.copy_drops.contains(&DropReason::NoBuffer) {
        TraceComparison::Unclear("it has more copies than a trace records")
    } else if record.offloaded && trace.processed.outcome == Outcome::Dropped(DropReason::OverMtu) {
        TraceComparison::Unclear(
            "its sender left segmentation to the switch, and an MTU applies to each segment",
        )
    } else if record.offloaded && passes(|instructions| instructions.apply.iter().any(is_edit)) {
        TraceComparison::Unclear(
            "its sender left a checksum or segmentation to the switch, and an entry edits its bytes",
        )
    } else if record.scarce {
        TraceComparison::Unclear("its burst ran out of space for copies, which the rules do not determine")
    } else {
        TraceComparison::Disagrees(differences)
    }
}

fn is_edit(action: &Action) -> bool {
    matches!(action, Action::Edit(_))
}

/// Describes each difference in a sentence.
fn differences(record: &TraceRecord, trace: &Trace) -> Vec<String> {
    let expected = &trace.processed;
    let mut found = Vec::new();
    let hits: Vec<(TableId, Option<EntryId>)> =
        record.hits.iter().map(|hit| (hit.table, hit.entry)).collect();
    for at in 0..hits.len().max(expected.hits.len().min(RECORD_HITS)) {
        let (did, should) = (hits.get(at), expected.hits.get(at));
        if did != should {
            found.push(format!(
                "lookup {}: the worker {}, by the rules it {}",
                at + 1,
                hit(did),
                hit(should)
            ));
            break;
        }
    }
    if found.is_empty() && record.lookups as usize != expected.hits.len() {
        found.push(format!(
            "the worker looked it up {} times, by the rules {} times",
            record.lookups,
            expected.hits.len()
        ));
    }
    if record.outcome != expected.outcome {
        found.push(format!(
            "the worker: {}, by the rules: {}",
            outcome(record.outcome),
            outcome(expected.outcome)
        ));
    }
    let did: Vec<PortNo> = record.copies.iter().filter_map(|copy| copy.port).collect();
    let should: Vec<PortNo> = expected.sent.iter().map(|copy| copy.port).collect();
    let reports = |copies: &[TraceCopy]| copies.iter().filter(|copy| copy.port.is_none()).count();
    let made = expected.sent.len() + expected.packet_ins.len();
    let all_recorded = made.max(record.made as usize) <= RECORD_COPIES;
    if record.made as usize != made
        || all_recorded && (did != should || reports(&record.copies) != expected.packet_ins.len())
    {
        found.push(format!(
            "the worker made copies for {} and {} for the controller, by the rules for {} and {}",
            ports(&did),
            reports(&record.copies),
            ports(&should),
            expected.packet_ins.len()
        ));
    } else if all_recorded && record.bytes.len() == record.len as usize && !record.offloaded {
        let sent = record.copies.iter().filter(|copy| copy.port.is_some()).zip(&expected.sent);
        for (did, should) in sent {
            if did.len as usize != should.bytes.len() || did.digest != fnv1a(&should.bytes) {
                found.push(format!("the copy for port {} has other bytes than by the rules", should.port));
            }
        }
    }
    if record.fast && !expected.low_latency {
        found.push(
            "the worker took it over the fast-forwarding path, by the rules it is not low-latency".into(),
        );
    }
    found.truncate(DIFFERENCES);
    found
}

fn hit(hit: Option<&(TableId, Option<EntryId>)>) -> String {
    match hit {
        None => "had no further lookup".into(),
        Some((table, None)) => format!("missed table {table}"),
        Some((table, Some(entry))) => format!("hit entry {entry} of table {table}"),
    }
}

fn outcome(outcome: Outcome) -> String {
    match outcome {
        Outcome::Forwarded => "forwarded".into(),
        Outcome::Consumed => "consumed".into(),
        Outcome::Dropped(reason) => format!("dropped ({})", reason.name()),
    }
}

fn ports(ports: &[PortNo]) -> String {
    let mut text = String::new();
    for port in ports {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{port}", if text.is_empty() { "ports " } else { ", " });
    }
    if text.is_empty() { "no port".into() } else { text }
}
