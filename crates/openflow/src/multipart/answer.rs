// SPDX-License-Identifier: Apache-2.0
//! Multipart replies.

use super::description::Description;
use super::flow_stats::{Aggregate, FlowStats, TableStats};
use super::group_stats::{GroupDescription, GroupFeatures, GroupStats};
use super::meter_stats::{MeterFeatures, MeterStats};
use super::parts::{self, Item, Parts};
use super::port_stats::{PortStats, QueueStats};
use super::table_features::TableFeatures;
use super::{MORE, kind, put_multipart_header};
use crate::bytes::Reader;
use crate::error::{self, DecodeError, TooLong};
use crate::port::Port;
use flow::meter::Meter;

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// What the switch is, in words.
    Desc(Box<Description>),
    /// Entries.
    Flow(Vec<FlowStats>),
    /// Sums over entries.
    Aggregate(Aggregate),
    /// Tables' counters.
    Table(Vec<TableStats>),
    /// Ports' counters.
    PortStats(Vec<PortStats>),
    /// Queues' counters.
    Queue(Vec<QueueStats>),
    /// Groups' counters.
    Group(Vec<GroupStats>),
    /// Groups.
    GroupDesc(Vec<GroupDescription>),
    /// What groups there can be.
    GroupFeatures(GroupFeatures),
    /// Meters' counters.
    Meter(Vec<MeterStats>),
    /// Meters.
    MeterConfig(Vec<Meter>),
    /// What meters there can be.
    MeterFeatures(MeterFeatures),
    /// What tables can do.
    TableFeatures(Vec<TableFeatures>),
    /// Ports.
    PortDesc(Vec<Port>),
}

/// A multipart reply. Encoding makes several messages of it if one does not hold it; for more than fits memory
/// well, see [`parts::Parts`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultipartReply {
    /// The reply goes on in another message with the same transaction number.
    pub more: bool,
    /// What is answered.
    pub answer: Answer,
}

impl From<Answer> for MultipartReply {
    /// A whole reply.
    fn from(answer: Answer) -> Self {
        Self { more: false, answer }
    }
}

/// Calls a function on the list in an answer that is a list, or another on the one thing in it.
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
            kind::AGGREGATE => Answer::Aggregate(Aggregate::decode(r)?),
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

    /// Writes the body of the one message that holds all of it.
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

    /// Writes as many messages as it takes.
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
