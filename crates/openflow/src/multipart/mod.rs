// SPDX-License-Identifier: Apache-2.0
//! Multipart requests and replies (section 7.3.5): type 16 bits, flags 16, zeros 32, body.

mod answer;
pub mod description;
pub mod flow_stats;
pub mod group_stats;
pub mod meter_stats;
pub mod parts;
pub mod port_stats;
mod query;
pub mod table_features;
pub mod table_features_property;

pub use answer::{Answer, MultipartReply};
pub use query::{MultipartRequest, Query};

use crate::bytes::Put;

pub(crate) mod kind {
    pub const DESC: u16 = 0;
    pub const FLOW: u16 = 1;
    pub const AGGREGATE: u16 = 2;
    pub const TABLE: u16 = 3;
    pub const PORT_STATS: u16 = 4;
    pub const QUEUE: u16 = 5;
    pub const GROUP: u16 = 6;
    pub const GROUP_DESC: u16 = 7;
    pub const GROUP_FEATURES: u16 = 8;
    pub const METER: u16 = 9;
    pub const METER_CONFIG: u16 = 10;
    pub const METER_FEATURES: u16 = 11;
    pub const TABLE_FEATURES: u16 = 12;
    pub const PORT_DESC: u16 = 13;
    pub const EXPERIMENTER: u16 = 0xffff;
}

/// Flag: another part follows this message (OFPMPF_REQ_MORE, OFPMPF_REPLY_MORE).
pub(crate) const MORE: u16 = 1;

pub(crate) fn put_multipart_header(number: u16, more: bool, out: &mut Vec<u8>) {
    out.put_u16(number);
    out.put_u16(if more { MORE } else { 0 });
    out.zeros(4);
}
