// SPDX-License-Identifier: Apache-2.0
//! Multipart replies.

use super::description::Description;
use super::flow_stats::{AggregateStats, FlowStatsEntry, TableStatsEntry};
use super::group_stats::{GroupDescription, GroupFeatures, GroupStatsEntry};
use super::meter_stats::{MeterFeatures, MeterStatsEntry};
use super::parts::{self, Item, Parts};
use super::port_stats::{PortStats, QueueStats};
use super::table_features::TableFeatures;
use super::{MORE, kind, put_multipart_header};
use crate::bytes::Reader;
use crate::error::{self, DecodeError, TooLong};
use crate::port::PortDescription;
use flow::meter::Meter;

/// Contents of a multipart reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Textual description of the switch.
    Desc(Box<Description>),
    /// Statistics of flow entries.
    Flow(Vec<FlowStatsEntry>),
    /// Sums over flow entries.
    Aggregate(AggregateStats),
    /// Statistics of tables.
    Table(Vec<TableStatsEntry>),
    /// Statistics of ports.
    PortStats(Vec<PortStats>),
    /// Statistics of queues.
    Queue(Vec<QueueStats>),
    /// Statistics of groups.
    Group(Vec<GroupStatsEntry>),
    /// Descriptions of groups.
    GroupDesc(Vec<GroupDescription>),
    /// Capabilities and limits of groups.
    GroupFeatures(GroupFeatures),
    /// Statistics of meters.
    Meter(Vec<MeterStatsEntry>),
    /// Descriptions of meters.
    MeterConfig(Vec<Meter>),
    /// Capabilities and limits of meters.
    MeterFeatures(MeterFeatures),
    /// Capabilities of tables.
    TableFeatures(Vec<TableFeatures>),
    /// Descriptions of ports.
    PortDesc(Vec<PortDescription>),
}

/// Multipart reply. Encoding splits a reply that does not fit into one message. For very large replies, see
/// [`parts::Parts`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipartReply {
    /// Whether the reply continues in another message with the same transaction number.
    pub more: bool,
    /// Contents of the reply.
    pub answer: Answer,
}

impl From<Answer> for MultipartReply {
    /// Returns a complete reply.
    fn from(answer: Answer) -> Self {
        Self { more: false, answer }
    }
}

/// Evaluates the first expression for an answer that is a list, and the second for an answer that is a single
/// item.
macro_rules! on_answer {
    ($answer:expr, |$list:ident| $do_list:expr, |$number:ident, $one:ident| $do_one:expr) => {
        match $answer {
            Answer::Desc(one) => on_answer!(@ kind::DESC, one, $number, $one, $do_one),
            Answer::Aggregate(one) => on_answer!(@ kind::AGGREGATE, one, $number, $one, $do_one),
            Answer::GroupFeatures(one) => on_answer!(@ kind::GROUP_FEATURES, one, $number, $one, $do_one),
            Answer::MeterFeatures(one) => on_answer!(@ kind::METER_FEATURES, one, $number, $one, $do_one),
            Answer::Flow($list) => $do_list,
            Answer::Table($list) => $do_list,
            Answer::PortStats($list) => $do_list,
            Answer::Queue($list) => $do_list,
            Answer::Group($list) => $do_list,
            Answer::GroupDesc($list) => $do_list,
            Answer::Meter($list) => $do_list,
            Answer::MeterConfig($list) => $do_list,
            Answer::TableFeatures($list) => $do_list,
            Answer::PortDesc($list) => $do_list,
        }
    };
    (@ $kind:expr, $value:ident, $number:ident, $one:ident, $do_one:expr) => {{
        let ($number, $one) = ($kind, $value);
        $do_one
    }};
}

impl MultipartReply {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (number, flags) = (r.u16()?, r.u16()?);
        r.skip(4)?;
        let answer = match number {
            kind::DESC => Answer::Desc(Box::new(Description::decode(r)?)),
            kind::FLOW => Answer::Flow(parts::decode_all(r)?),
            kind::AGGREGATE => Answer::Aggregate(AggregateStats::decode(r)?),
            kind::TABLE => Answer::Table(parts::decode_all(r)?),
            kind::PORT_STATS => Answer::PortStats(parts::decode_all(r)?),
            kind::QUEUE => Answer::Queue(parts::decode_all(r)?),
            kind::GROUP => Answer::Group(parts::decode_all(r)?),
            kind::GROUP_DESC => Answer::GroupDesc(parts::decode_all(r)?),
            kind::GROUP_FEATURES => Answer::GroupFeatures(GroupFeatures::decode(r)?),
            kind::METER => Answer::Meter(parts::decode_all(r)?),
            kind::METER_CONFIG => Answer::MeterConfig(parts::decode_all(r)?),
            kind::METER_FEATURES => Answer::MeterFeatures(MeterFeatures::decode(r)?),
            kind::TABLE_FEATURES => Answer::TableFeatures(parts::decode_all(r)?),
            kind::PORT_DESC => Answer::PortDesc(parts::decode_all(r)?),
            _ => {
                return error::BAD_MULTIPART
                    .says(format!("multipart reply of type {number:#x} is not known"));
            }
        };
        Ok(Self { more: flags & MORE != 0, answer })
    }

    /// Writes the body of a single message that contains the whole reply.
    pub(crate) fn encode_one(&self, out: &mut Vec<u8>) {
        fn list<T: Item>(items: &[T], more: bool, out: &mut Vec<u8>) {
            put_multipart_header(T::KIND, more, out);
            items.iter().for_each(|item| item.encode(out));
        }
        on_answer!(&self.answer, |items| list(items, self.more, out), |number, one| {
            put_multipart_header(number, self.more, out);
            one.encode(out);
        });
    }

    /// Writes the reply as one or more messages.
    pub(crate) fn encode_parts(&self, xid: u32, out: &mut Vec<u8>) -> Result<(), TooLong> {
        fn list<T: Item>(items: &[T], more: bool, xid: u32, out: &mut Vec<u8>) -> Result<(), TooLong> {
            let mut parts = Parts::new(xid);
            items.iter().try_for_each(|item| parts.push(item, out))?;
            parts.end(more, out);
            Ok(())
        }
        on_answer!(&self.answer, |items| list(items, self.more, xid, out), |_number, _one| {
            crate::Message::MultipartReply(self.clone()).encode_one(xid, out);
            Ok(())
        })
    }
}
