// SPDX-License-Identifier: Apache-2.0
//! Multipart requests.

use super::flow_stats::FlowQuery;
use super::parts::{self, private::Coded};
use super::table_features::TableFeatures;
use super::{MORE, kind, put_multipart_header};
use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError};
use flow::{GroupId, MeterId, PortNo, QueueId};

/// Contents of a multipart request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// Textual description of the switch.
    Desc,
    /// Statistics of flow entries.
    Flow(FlowQuery),
    /// Sums over flow entries.
    Aggregate(FlowQuery),
    /// Statistics of tables.
    Table,
    /// Statistics of ports.
    PortStats {
        /// Port number, or ANY for all ports.
        port: PortNo,
    },
    /// Statistics of queues.
    Queue {
        /// Port number, or ANY for all ports.
        port: PortNo,
        /// Queue number, or 0xffffffff for all queues.
        queue: QueueId,
    },
    /// Statistics of groups.
    Group {
        /// Group number, or `group::ALL` for all groups.
        group: GroupId,
    },
    /// Descriptions of groups.
    GroupDesc,
    /// Capabilities and limits of groups.
    GroupFeatures,
    /// Statistics of meters.
    Meter {
        /// Meter number, or `meter::ALL` for all meters.
        meter: MeterId,
    },
    /// Descriptions of meters.
    MeterConfig {
        /// Meter number, or `meter::ALL` for all meters.
        meter: MeterId,
    },
    /// Capabilities and limits of meters.
    MeterFeatures,
    /// Capabilities of tables. A non-empty list requests a change of the capabilities.
    TableFeatures(Vec<TableFeatures>),
    /// Descriptions of ports.
    PortDesc,
}

/// Multipart request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipartRequest {
    /// Whether the request continues in another message with the same transaction number. Only a request for
    /// table features can exceed one message.
    pub more: bool,
    /// Contents of the request.
    pub query: Query,
}

impl MultipartRequest {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (number, flags) = (r.u16()?, r.u16()?);
        r.skip(4)?;
        let padded = |r: &mut Reader<'_>| {
            let number = r.u32()?;
            r.skip(4)?;
            Ok(number)
        };
        let query = match number {
            kind::DESC => Query::Desc,
            kind::FLOW => Query::Flow(FlowQuery::decode(r)?),
            kind::AGGREGATE => Query::Aggregate(FlowQuery::decode(r)?),
            kind::TABLE => Query::Table,
            kind::PORT_STATS => Query::PortStats { port: PortNo(padded(r)?) },
            kind::QUEUE => Query::Queue { port: PortNo(r.u32()?), queue: QueueId(r.u32()?) },
            kind::GROUP => Query::Group { group: GroupId(padded(r)?) },
            kind::GROUP_DESC => Query::GroupDesc,
            kind::GROUP_FEATURES => Query::GroupFeatures,
            kind::METER => Query::Meter { meter: MeterId(padded(r)?) },
            kind::METER_CONFIG => Query::MeterConfig { meter: MeterId(padded(r)?) },
            kind::METER_FEATURES => Query::MeterFeatures,
            kind::TABLE_FEATURES => Query::TableFeatures(parts::decode_all(r)?),
            kind::PORT_DESC => Query::PortDesc,
            kind::EXPERIMENTER => {
                let id = r.u32()?;
                return error::BAD_EXPERIMENTER
                    .says(format!("multipart requests of experimenter {id:#x} are not known"));
            }
            _ => {
                return error::BAD_MULTIPART
                    .says(format!("multipart type {number}; OpenFlow 1.3 has types 0 to 13"));
            }
        };
        Ok(Self { more: flags & MORE != 0, query })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let number = match &self.query {
            Query::Desc => kind::DESC,
            Query::Flow(_) => kind::FLOW,
            Query::Aggregate(_) => kind::AGGREGATE,
            Query::Table => kind::TABLE,
            Query::PortStats { .. } => kind::PORT_STATS,
            Query::Queue { .. } => kind::QUEUE,
            Query::Group { .. } => kind::GROUP,
            Query::GroupDesc => kind::GROUP_DESC,
            Query::GroupFeatures => kind::GROUP_FEATURES,
            Query::Meter { .. } => kind::METER,
            Query::MeterConfig { .. } => kind::METER_CONFIG,
            Query::MeterFeatures => kind::METER_FEATURES,
            Query::TableFeatures(_) => kind::TABLE_FEATURES,
            Query::PortDesc => kind::PORT_DESC,
        };
        put_multipart_header(number, self.more, out);
        match &self.query {
            Query::Flow(query) | Query::Aggregate(query) => query.encode(out),
            Query::PortStats { port: PortNo(number) }
            | Query::Group { group: GroupId(number) }
            | Query::Meter { meter: MeterId(number) }
            | Query::MeterConfig { meter: MeterId(number) } => {
                out.put_u32(*number);
                out.zeros(4);
            }
            Query::Queue { port, queue } => {
                out.put_u32(port.0);
                out.put_u32(queue.0);
            }
            Query::TableFeatures(tables) => tables.iter().for_each(|table| table.encode(out)),
            _ => {}
        }
    }
}
