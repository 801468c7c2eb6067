// SPDX-License-Identifier: Apache-2.0
//! Requests that are not answered at once: FEATURES_REQUEST, sums of counters, and QUERYALL.

use crate::channel::PofChannel;
use crate::counters::{PofCounts, missing};
use crate::describe;
use crate::flow_mod::result;
use crate::group_mod::group_counts;
use crate::shared::Shared;
use dataplane::DataPlane;
use flow::{RuleVersion, TableId};
use model::EntryRef;
use model::agent::Context;
use pof::message::resource::{CounterCommand, PofCounter};
use pof::message::table::{PofTableMod, TableCommand};
use pof::value::PofCounterId;
use pof::{PofDialect, PofMessage};
use std::ops::Bound;

/// Maximum number of entries examined in one part.
const ENTRIES_PER_PART: usize = 1_024;
/// Maximum number of messages sent in one part.
const MESSAGES_PER_PART: usize = 64;

/// A request in progress.
#[derive(Debug)]
pub(crate) enum Job {
    /// The channel waits until the driver has applied the changes of the request.
    Offloaded,
    /// FEATURES_REQUEST with this transaction ID waits until the workers have applied this version.
    Features(u32, RuleVersion),
    Count(CountJob),
    QueryAll(QueryAllJob),
}

/// What follows when the counts of a counter are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountThen {
    Reply,
    Clear,
}

#[derive(Debug)]
pub(crate) struct CountJob {
    xid: u32,
    counter: PofCounterId,
    then: CountThen,
    /// The last entry whose counts are in the sum.
    after: Option<EntryRef>,
    /// Whether the entries are done and removed entries follow.
    is_at_removed: bool,
    sum: PofCounts,
}

#[derive(Debug)]
pub(crate) struct QueryAllJob {
    xid: u32,
    table: TableId,
    /// Index of the next entry, or `None` if the table itself is next.
    index: Option<u32>,
}

impl Job {
    /// Returns the job that adds up a counter.
    pub fn count(xid: u32, counter: PofCounterId, then: CountThen) -> Self {
        Self::Count(CountJob {
            xid,
            counter,
            then,
            after: None,
            is_at_removed: false,
            sum: PofCounts::default(),
        })
    }

    /// Returns the job that answers QUERYALL_REQUEST.
    pub fn query_all(xid: u32) -> Self {
        Self::QueryAll(QueryAllJob { xid, table: TableId(0), index: None })
    }

    /// Returns whether the job adds up a counter.
    pub fn is_count(&self) -> bool {
        matches!(self, Self::Count(_))
    }

    /// Returns whether the job waits for the driver.
    pub fn is_offloaded(&self) -> bool {
        matches!(self, Self::Offloaded)
    }

    /// Returns whether the job waits for the driver or the workers.
    pub fn waits(&self) -> bool {
        matches!(self, Self::Offloaded | Self::Features(..))
    }

    /// Executes a part of the job. Returns the rest, or `None` if it is done.
    pub fn advance<D: DataPlane>(
        self,
        channel: &mut PofChannel,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Option<Self> {
        match self {
            Self::Offloaded => Some(Self::Offloaded),
            Self::Features(_, version) if !context.model.is_applied(version) => Some(self),
            Self::Features(xid, _) => {
                let features = describe::features(&shared.config, context.model.ports().count());
                channel.reply(xid, &PofMessage::FeaturesReply(features));
                None
            }
            Self::Count(job) => job.advance(channel, shared, context).map(Self::Count),
            Self::QueryAll(job) => job.advance(channel, shared, context).map(Self::QueryAll),
        }
    }
}

impl CountJob {
    fn advance<D: DataPlane>(
        mut self,
        channel: &mut PofChannel,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Option<Self> {
        let Some(counter) = shared.counters.get_mut(self.counter) else {
            // Another controller has deleted the counter.
            channel.refuse(self.xid, &missing(self.counter));
            return None;
        };
        let users = if self.is_at_removed { &mut counter.removed } else { &mut counter.entries };
        let from = self.after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut users = users.range_mut((from, Bound::Unbounded));
        for (&entry, base) in users.by_ref().take(ENTRIES_PER_PART) {
            self.after = Some(entry);
            if let Some(counts) = context.model.kept_counts(entry) {
                self.visit(counts.into(), base);
            }
        }
        if users.next().is_some() {
            return Some(self);
        }
        if !self.is_at_removed && !counter.removed.is_empty() {
            (self.is_at_removed, self.after) = (true, None);
            return Some(self);
        }
        for (&group, base) in &mut counter.groups {
            self.visit(group_counts(context.model, context.now, group), base);
        }
        self.end(channel, shared);
        None
    }

    /// Adds the counts of a user, or makes them its base.
    fn visit(&mut self, counts: PofCounts, base: &mut PofCounts) {
        match self.then {
            CountThen::Clear => *base = counts,
            CountThen::Reply => self.sum = self.sum.plus(counts.since(*base)),
        }
    }

    fn end(self, channel: &mut PofChannel, shared: &mut Shared) {
        let Some(counter) = shared.counters.get_mut(self.counter) else { return };
        match self.then {
            CountThen::Clear => counter.retired = PofCounts::default(),
            CountThen::Reply => {
                let PofCounts { packets, bytes } = self.sum.plus(counter.retired);
                let has_bytes = shared.config.dialect != PofDialect::V1_2;
                let reply = PofCounter {
                    command: CounterCommand::Reply,
                    slot: 0,
                    counter: self.counter,
                    packets,
                    bytes: if has_bytes { bytes } else { 0 },
                };
                channel.reply(self.xid, &PofMessage::CounterReply(reply));
            }
        }
    }
}

impl QueryAllJob {
    fn advance<D: DataPlane>(
        mut self,
        channel: &mut PofChannel,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Option<Self> {
        let mut left = MESSAGES_PER_PART;
        while let Some((&table, found)) = shared.tables.range(self.table..).next() {
            if table != self.table {
                (self.table, self.index) = (table, None);
            }
            let first = self.index.unwrap_or_else(|| {
                let command = TableCommand::QueryResult;
                let definition = PofTableMod { command, ..(*found.definition).clone() };
                channel.reply(self.xid, &PofMessage::TableMod(definition));
                0
            });
            self.index = Some(first);
            for (index, record) in found.from(first) {
                if left == 0 {
                    self.index = Some(index);
                    return Some(self);
                }
                left -= 1;
                if context.model.is_present(record.entry) {
                    channel.reply(self.xid, &PofMessage::FlowMod(result(record)));
                }
            }
            (self.table, self.index) = (TableId(table.0.saturating_add(1)), None);
        }
        channel.reply(self.xid, &PofMessage::QueryAllFin);
        None
    }
}
