// SPDX-License-Identifier: Apache-2.0
//! Long answers, which are produced in several steps.

use super::context::Context;
use super::numbered::Numbered;
use super::table_features;
use crate::select::FlowFilter;
use crate::stats::{self, FlowCursor};
use dataplane::DataPlane;
use flow::{Instructions, TableId};
use openflow::multipart::flow_stats::{self, FlowQuery};
use openflow::multipart::parts::Parts;
use openflow::multipart::table_features::TableFeatures;
use openflow::multipart::{Answer, MultipartReply};
use openflow::stateless::StatelessReplies;
use openflow::{Message, Session};

/// Number of entries examined per step.
const ENTRIES_PER_STEP: usize = 256;
/// Number of tables described per step.
const TABLES_PER_STEP: u8 = 16;

/// A long answer in progress.
#[derive(Debug)]
pub enum Dump {
    Flows {
        parts: Parts<flow_stats::FlowStatsEntry>,
        filter: FlowFilter,
        cursor: FlowCursor,
        with_marks: bool,
    },
    Aggregate {
        xid: u32,
        filter: FlowFilter,
        cursor: FlowCursor,
        sum: stats::Aggregate,
    },
    TableFeatures {
        parts: Parts<TableFeatures>,
        next: u8,
    },
    Numbered(Numbered),
    /// Configuration of the stateless forwarder at the time of the request.
    Stateless(u32, StatelessReplies),
}

impl Dump {
    /// Starts flow statistics. With `with_marks`, the answer contains the explicit low-latency marks, which
    /// not all controllers can parse.
    pub fn flows(xid: u32, query: &FlowQuery, with_marks: bool) -> Self {
        let (filter, cursor) = (filter(query), FlowCursor::default());
        Self::Flows { parts: Parts::new(xid), filter, cursor, with_marks }
    }

    pub fn aggregate(xid: u32, query: &FlowQuery) -> Self {
        let (filter, cursor) = (filter(query), FlowCursor::default());
        Self::Aggregate { xid, filter, cursor, sum: stats::Aggregate::default() }
    }

    pub fn table_features(xid: u32) -> Self {
        Self::TableFeatures { parts: Parts::new(xid), next: 0 }
    }

    /// Produces the next part of the answer. Returns the remaining answer, or `None` at its end.
    pub fn advance<D: DataPlane>(self, session: &mut Session, context: &mut Context<'_, D>) -> Option<Self> {
        let out = session.output_mut()?;
        match self {
            Self::Flows { mut parts, filter, mut cursor, with_marks } => {
                for flow in context.model.flows(context.now, &filter, &mut cursor, ENTRIES_PER_STEP) {
                    // The description of an entry is not longer than the message that added the entry, so it
                    // fits into one message.
                    let _ = parts.push(&flow_stats(&flow, with_marks), out);
                }
                if cursor.is_done() {
                    parts.finish(out);
                    return None;
                }
                Some(Self::Flows { parts, filter, cursor, with_marks })
            }
            Self::Aggregate { xid, filter, mut cursor, mut sum } => {
                context.model.aggregate(&filter, &mut cursor, ENTRIES_PER_STEP, &mut sum);
                if !cursor.is_done() {
                    return Some(Self::Aggregate { xid, filter, cursor, sum });
                }
                let flows = u32::try_from(sum.flows).unwrap_or(u32::MAX);
                let answer = flow_stats::AggregateStats { packets: sum.packets, bytes: sum.bytes, flows };
                let reply = MultipartReply::from(Answer::Aggregate(answer));
                // An aggregate reply has a fixed length, so sending cannot fail.
                let _ = session.send(xid, &Message::MultipartReply(reply));
                None
            }
            Self::TableFeatures { mut parts, next } => {
                let limit = context.model.config().limits.entries;
                let able = context.model.table_capabilities();
                let end = next.saturating_add(TABLES_PER_STEP).min(able.tables);
                let pipeline = context.model.pipeline_tables();
                for table in (next..end).map(TableId).filter(|table| pipeline.contains(*table)) {
                    // The description of a table takes a few hundred bytes, so it fits into a message.
                    let _ = parts.push(&table_features::of(table, limit, pipeline, &able), out);
                }
                if end == able.tables {
                    parts.finish(out);
                    return None;
                }
                Some(Self::TableFeatures { parts, next: end })
            }
            Self::Numbered(list) => list.advance(out, context).map(Self::Numbered),
            Self::Stateless(xid, mut answer) => {
                let reply = answer.next()?;
                let more = reply.more;
                // Each reply was built to fit into one message.
                let _ = session.send(xid, &Message::StatelessReply(reply));
                more.then_some(Self::Stateless(xid, answer))
            }
        }
    }
}

fn filter(query: &FlowQuery) -> FlowFilter {
    FlowFilter {
        table: query.table,
        matching: query.matching.clone(),
        cookie: query.cookie,
        cookie_mask: query.cookie_mask,
        out_port: query.out_port,
        out_group: query.out_group,
    }
}

fn flow_stats(flow: &stats::FlowStats, with_marks: bool) -> flow_stats::FlowStatsEntry {
    let entry = &flow.entry;
    flow_stats::FlowStatsEntry {
        table: entry.table,
        duration_ns: flow.duration_ns,
        priority: entry.priority,
        idle_timeout_s: entry.idle_timeout_s,
        hard_timeout_s: entry.hard_timeout_s,
        flags: entry.flags,
        cookie: entry.cookie,
        packets: flow.packets,
        bytes: flow.bytes,
        matching: entry.matching.clone(),
        instructions: Instructions::clone(&entry.instructions),
        low_latency: flow.mark.explicit.filter(|_| with_marks),
    }
}
