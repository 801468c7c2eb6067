// SPDX-License-Identifier: Apache-2.0
//! Answers to multipart requests.

use super::channel::{Channel, Job};
use super::context::{Context, Refusal};
use super::dump::Dump;
use super::layout::Part;
use super::long::Then;
use super::numbered::Numbered;
use super::shared::Shared;
use super::{describe, group, meter};
use crate::{Change, TableSet};
use dataplane::DataPlane;
use flow::{PortNo, port_no};
use openflow::multipart::flow_stats::TableStatsEntry;
use openflow::multipart::port_stats::PortStats;
use openflow::multipart::{Answer, MultipartReply, MultipartRequest, Query};
use openflow::{Message, Request, error};

impl Channel {
    pub(super) fn multipart<D: DataPlane>(
        &mut self,
        request: &Request,
        asked: &MultipartRequest,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Result<Option<Message>, Refusal> {
        let xid = request.xid;
        let answer = match &asked.query {
            Query::Desc => Answer::Desc(Box::new(describe::description(
                context.model.config(),
                &context.model.table_capabilities(),
            ))),
            Query::Flow(query) => return self.begin_dump(Dump::flows(xid, query, self.knows_marks)),
            Query::Aggregate(query) => return self.begin_dump(Dump::aggregate(xid, query)),
            Query::TableFeatures(tables) => {
                let part = Part { xid, tables, more: asked.more };
                let limit = context.model.config().limits.entries;
                let Some(tables) = self.layout.add(part, limit, &context.model.table_capabilities())? else {
                    return Ok(None);
                };
                if tables == TableSet::NONE {
                    return self.begin_dump(Dump::table_features(xid));
                }
                // A last part without tables looks like a query, which every role may send. The role is
                // therefore checked here for the whole request.
                if let Some(refusal) = self.barred(shared) {
                    return Err(refusal);
                }
                let change = vec![Change::Tables(tables)];
                return self.apply(request, change, Then::ReportTables(xid), shared, context);
            }
            Query::Table => Answer::Table(tables(context)),
            Query::PortStats { port } => Answer::PortStats(port_stats(*port, context)?),
            Query::PortDesc => Answer::PortDesc(context.model.ports().map(describe::port).collect()),
            Query::Queue { port, queue } => Answer::Queue(super::queues::stats(*port, *queue, context)?),
            Query::Group { group } => return self.begin_list(Numbered::group_stats(xid, *group)),
            Query::GroupDesc => return self.begin_list(Numbered::groups(xid)),
            Query::GroupFeatures => {
                Answer::GroupFeatures(group::features(&context.model.table_capabilities()))
            }
            Query::Meter { meter } => {
                meter::known(context, *meter)?;
                return self.begin_list(Numbered::meter_stats(xid, *meter));
            }
            Query::MeterConfig { meter } => {
                meter::known(context, *meter)?;
                return self.begin_list(Numbered::meters(xid, *meter));
            }
            Query::MeterFeatures => {
                Answer::MeterFeatures(meter::features(&context.model.table_capabilities()))
            }
        };
        Ok(Some(Message::MultipartReply(MultipartReply::from(answer))))
    }

    fn begin_list(&mut self, list: Numbered) -> Result<Option<Message>, Refusal> {
        self.begin_dump(Dump::Numbered(list))
    }

    fn begin_dump(&mut self, dump: Dump) -> Result<Option<Message>, Refusal> {
        self.begin(Job::Dump(Box::new(dump)));
        Ok(None)
    }
}

fn tables<D: DataPlane>(context: &mut Context<'_, D>) -> Vec<TableStatsEntry> {
    let row = |stats: crate::TableStats| TableStatsEntry {
        table: stats.table,
        active: u32::try_from(stats.active).unwrap_or(u32::MAX),
        lookups: stats.lookups,
        matches: stats.matches,
    };
    let pipeline = *context.model.pipeline_tables();
    context.model.tables().into_iter().filter(|stats| pipeline.contains(stats.table)).map(row).collect()
}

fn port_stats<D: DataPlane>(port: PortNo, context: &mut Context<'_, D>) -> Result<Vec<PortStats>, Refusal> {
    (context.refresh)();
    let now = context.now;
    let ports: Vec<_> =
        context.model.ports().filter(|p| port == port_no::ANY || p.desc.number == port).cloned().collect();
    if ports.is_empty() && port != port_no::ANY {
        return Err(Refusal::new(error::BAD_PORT, format!("port {port} does not exist")));
    }
    let row = |port: &crate::Port| {
        let counters = context.model.port_counters(port.desc.number).unwrap_or_default();
        describe::port_stats(port, &counters, now)
    };
    Ok(ports.iter().map(row).collect())
}
