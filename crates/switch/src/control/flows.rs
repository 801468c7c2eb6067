// SPDX-License-Identifier: Apache-2.0
//! Answers the request for all flows, in parts.

use super::protocol::{FlowForm, FlowPart, FlowRow};
use crate::plane::Plane;
use flow::group::Group;
use flow::meter::Meter;
use flow::syntax::{self, FileLine, RecordCommand, format_entry, format_flow, format_line};
use flow::{GroupId, MeterId, Nanos};
use model::{FlowCursor, FlowFilter, FlowStats, Model};

/// Maximum number of entries per part of the answer.
const PART_ENTRIES: usize = 512;
const SECOND_NS: Nanos = Nanos(1_000_000_000);

/// Iterator over all flows. In a flow file, meters and groups come before the flows that use them.
#[derive(Debug)]
pub struct Walk {
    form: FlowForm,
    /// Meters and groups still to be sent, in reverse order, or `None` before the list is created.
    before: Option<Vec<Before>>,
    cursor: FlowCursor,
}

/// A meter or group. In a file it precedes the flows that refer to it.
#[derive(Debug)]
enum Before {
    Meter(MeterId),
    Group(GroupId),
}

impl Walk {
    pub fn new(form: FlowForm) -> Self {
        Self { form, before: None, cursor: FlowCursor::default() }
    }

    /// Returns the lines of the next meters and groups, or nothing if all of them are sent.
    fn next_before(&mut self, model: &mut Model<Plane>, now: Nanos) -> Vec<String> {
        let before = self.before.get_or_insert_with(|| {
            let groups = model.groups_in_order().into_iter().map(Before::Group);
            let mut all: Vec<Before> =
                model.meter_ids().into_iter().map(Before::Meter).chain(groups).collect();
            all.reverse();
            all
        });
        let mut lines = Vec::new();
        while lines.len() < PART_ENTRIES
            && let Some(next) = before.pop()
        {
            // Skip a meter or group that was deleted after the list was created.
            let line = match next {
                Before::Meter(id) => model
                    .meter(now, id)
                    .map(|stats| FileLine::Meter(RecordCommand::AddOrModify, Meter::clone(&stats.meter))),
                Before::Group(id) => model
                    .group(now, id)
                    .map(|stats| FileLine::Group(RecordCommand::AddOrModify, Group::clone(&stats.group))),
            };
            lines.extend(line.as_ref().map(format_line));
        }
        lines
    }

    /// Returns the next part, or `None` after the last one.
    pub fn next_part(&mut self, model: &mut Model<Plane>, now: Nanos) -> Option<FlowPart> {
        if self.form == FlowForm::File {
            let lines = self.next_before(model, now);
            if !lines.is_empty() {
                return Some(FlowPart::Lines(lines));
            }
        }
        if self.cursor.is_done() {
            return None;
        }
        let flows = model.flows(now, &FlowFilter::default(), &mut self.cursor, PART_ENTRIES);
        Some(match self.form {
            FlowForm::Lines => FlowPart::Lines(flows.iter().map(|flow| line(flow, now)).collect()),
            FlowForm::File => FlowPart::Lines(
                flows.iter().map(|flow| format_flow(&flow.entry.flow_mod(flow.mark.explicit))).collect(),
            ),
            FlowForm::Rows => FlowPart::Rows(flows.iter().map(row).collect()),
        })
    }
}

fn line(flow: &FlowStats, now: Nanos) -> String {
    // An entry that was never hit has been idle since it was added.
    let idle_ns = if flow.used_ns == Nanos(0) { flow.duration_ns } else { now.saturating_sub(flow.used_ns) };
    let stats = syntax::EntryStats {
        duration_ns: flow.duration_ns,
        packets: flow.packets,
        bytes: flow.bytes,
        idle_age_s: Some(idle_ns / SECOND_NS),
        learned: flow.mark.learned,
    };
    format_entry(&flow.entry, Some(&stats))
}

fn row(flow: &FlowStats) -> FlowRow {
    let entry = &flow.entry;
    FlowRow {
        table: entry.table,
        priority: entry.priority,
        cookie: format!("{:#x}", entry.cookie),
        packets: flow.packets,
        bytes: flow.bytes,
        duration_ms: flow.duration_ns / Nanos::MILLISECOND,
        idle_timeout_s: entry.idle_timeout_s,
        hard_timeout_s: entry.hard_timeout_s,
        low_latency: entry.low_latency,
        learned: flow.mark.learned,
        matching: if entry.matching.is_any() { String::new() } else { entry.matching.to_string() },
        actions: entry.instructions.to_string(),
    }
}
