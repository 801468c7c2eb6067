// SPDX-License-Identifier: Apache-2.0
//! Reasons for refusing a request, with the error types and codes of OpenFlow 1.3 (section 7.4.4, "Error
//! Message").

use dataplane::PlaneRefusal;
use flow::stateless::StatelessError;
use flow::validate::ValidateError;
use flow::{GroupId, MeterId, PortNo, TableId};

/// Error type OFPET_BAD_REQUEST.
const BAD_REQUEST: u16 = 1;
/// Error type OFPET_BAD_ACTION.
const BAD_ACTION: u16 = 2;
/// Error type OFPET_BAD_INSTRUCTION.
const BAD_INSTRUCTION: u16 = 3;
/// Error type OFPET_FLOW_MOD_FAILED.
const FLOW_MOD_FAILED: u16 = 5;
/// Error type OFPET_BAD_MATCH.
const BAD_MATCH: u16 = 4;
/// Error type OFPET_GROUP_MOD_FAILED.
const GROUP_MOD_FAILED: u16 = 6;
/// Error type OFPET_PORT_MOD_FAILED.
const PORT_MOD_FAILED: u16 = 7;
/// Error type OFPET_METER_MOD_FAILED.
const METER_MOD_FAILED: u16 = 12;
/// Error type OFPET_EXPERIMENTER, whose code is defined in docs/openflow-extensions.md.
const EXPERIMENTER: u16 = 0xffff;

/// Reason for refusing a request. A refused request changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The request is invalid independently of the state of the switch.
    #[error(transparent)]
    Invalid(#[from] ValidateError),
    /// The table was removed from the pipeline (OFPFMFC_BAD_TABLE_ID).
    #[error(
        "table {0} is not in the table features that a controller has set (TABLE_FEATURES); add it there first"
    )]
    RemovedTable(TableId),
    /// The next table was removed from the pipeline (OFPBIC_BAD_TABLE_ID).
    #[error(
        "next table {0} is not in the table features that a controller has set (TABLE_FEATURES); add it there first"
    )]
    RemovedNextTable(TableId),
    /// The limit of entries is reached (OFPFMFC_TABLE_FULL).
    #[error("{in_use} entries are in use and {limit} is the limit; delete entries or raise the limit")]
    TableFull {
        /// Number of entries that are in tables or wait for their release.
        in_use: usize,
        /// The limit that was reached.
        limit: usize,
    },
    /// Another entry of the same priority overlaps (OFPFMFC_OVERLAP).
    #[error(
        "an entry of table {table} with priority {priority} overlaps this one; change the match or priority of \
         one of them, or leave check_overlap out"
    )]
    Overlap {
        /// Table of both entries.
        table: TableId,
        /// Priority of both entries.
        priority: u16,
    },
    /// The index is beyond the limit of linear tables (OFPBMC_BAD_VALUE).
    #[error("index {index} is too large; the entries of linear tables are numbered 0 to {}", limit.saturating_sub(1))]
    IndexTooLarge {
        /// The index in the request.
        index: u32,
        /// The smallest index that is too large.
        limit: usize,
    },
    /// The index of a linear table is used by an entry of another priority (OFPFMFC_OVERLAP).
    #[error("index {index} of table {table} is taken by an entry of priority {priority}; delete it first")]
    IndexTaken {
        /// The linear table.
        table: TableId,
        /// The index in the request.
        index: u32,
        /// Priority of the entry at this index.
        priority: u16,
    },
    /// The table's lookup would examine too many different slices (OFPFMFC_TABLE_FULL).
    #[error(
        "the entries of table {table} would examine {slices} different slices; the maximum is {}, so use the same slices or another table",
        flow::Limits::SLICES_PER_TABLE
    )]
    TooManySlices {
        /// Table of the request.
        table: TableId,
        /// Number of slices that the table would examine.
        slices: usize,
    },
    /// An action outputs to a group that does not exist (OFPBAC_BAD_OUT_GROUP).
    #[error("group {0} does not exist; add it before the entries and groups that send to it")]
    NoSuchGroup(GroupId),
    /// A packet-out names an ingress port that does not exist (OFPBRC_BAD_PORT).
    #[error("{0:#x} cannot be the ingress port of a packet; give a port that exists, or CONTROLLER")]
    BadInPort(PortNo),
    /// A packet-out is too short for an Ethernet header (OFPBRC_BAD_PACKET).
    #[error("a packet of {0} bytes has no Ethernet header; the minimum is 14 bytes")]
    BadPacket(usize),
    /// The group to be added exists already (OFPGMFC_GROUP_EXISTS).
    #[error("group {0} exists already; modify or delete it instead")]
    GroupExists(GroupId),
    /// The group to be modified does not exist (OFPGMFC_UNKNOWN_GROUP).
    #[error("group {0} does not exist; add it instead")]
    UnknownGroup(GroupId),
    /// The group is invalid on its own (OFPGMFC_INVALID_GROUP).
    #[error("group {group}: {why}")]
    InvalidGroup {
        /// Number of the group.
        group: GroupId,
        /// Description of the fault and of the valid alternative.
        why: &'static str,
    },
    /// There are too many groups of one type (OFPGMFC_OUT_OF_GROUPS).
    #[error(
        "there are {} groups of this type, which is the maximum; delete some first",
        flow::Limits::GROUPS_PER_TYPE
    )]
    TooManyGroups,
    /// All groups together would have too many buckets (OFPGMFC_OUT_OF_BUCKETS).
    #[error(
        "with group {group} all groups have {buckets} buckets together; the maximum is {}",
        flow::Limits::BUCKETS
    )]
    NoRoomForBuckets {
        /// Number of the group in the request.
        group: GroupId,
        /// Number of buckets that all groups would have.
        buckets: usize,
    },
    /// Chained groups would multiply packets beyond the limit (OFPGMFC_OUT_OF_BUCKETS).
    #[error(
        "a packet would pass more than {} buckets in group {group} and in the groups to which it sends",
        flow::Limits::GROUP_PASSES
    )]
    TooManyPasses {
        /// Number of the group whose packets pass too many buckets.
        group: GroupId,
    },
    /// The group has too many buckets (OFPGMFC_OUT_OF_BUCKETS).
    #[error("group {group} has {buckets} buckets; the maximum is {}", flow::Limits::GROUP_BUCKETS)]
    TooManyBuckets {
        /// Number of the group.
        group: GroupId,
        /// Number of buckets in the request.
        buckets: usize,
    },
    /// The groups form a loop (OFPGMFC_LOOP).
    #[error("a chain of groups leads from group {0} back to the same group")]
    GroupLoop(GroupId),
    /// The chain of groups is too long (OFPGMFC_CHAINING_UNSUPPORTED).
    #[error("group {0} makes a chain of more than {most} groups", most = flow::Limits::GROUP_CHAIN)]
    GroupChain(GroupId),
    /// Another group sends to the group to be deleted, or watches it (OFPGMFC_CHAINED_GROUP).
    #[error("group {sender} sends to group {group} or watches it; change or delete group {sender} first")]
    ChainedGroup {
        /// Number of the group to be deleted.
        group: GroupId,
        /// Number of the group that sends to it or watches it.
        sender: GroupId,
    },
    /// The meter does not exist (OFPMMFC_UNKNOWN_METER).
    #[error("meter {0} does not exist; add it first")]
    NoSuchMeter(MeterId),
    /// The meter to be added exists already (OFPMMFC_METER_EXISTS).
    #[error("meter {0} exists already; modify or delete it instead")]
    MeterExists(MeterId),
    /// The meter is invalid on its own (OFPMMFC_INVALID_METER).
    #[error("meter {meter}: {why}")]
    InvalidMeter {
        /// Number of the meter.
        meter: MeterId,
        /// Description of the fault and of the valid alternative.
        why: &'static str,
    },
    /// The limit of meters is reached (OFPMMFC_OUT_OF_METERS).
    #[error("there are {} meters, which is the maximum; delete some first", flow::Limits::METERS)]
    TooManyMeters,
    /// The meter has too many bands (OFPMMFC_OUT_OF_BANDS).
    #[error("meter {meter} has {bands} bands; the maximum is {most}", most = flow::Limits::METER_BANDS)]
    TooManyBands {
        /// Number of the meter.
        meter: MeterId,
        /// Number of bands in the request.
        bands: usize,
    },
    /// A band has the rate 0 (OFPMMFC_BAD_RATE).
    #[error("meter {0} has a band of rate 0; give each band a rate above 0")]
    ZeroRate(MeterId),
    /// A DSCP remark band has an invalid precedence level (OFPMMFC_BAD_BAND_VALUE).
    #[error("meter {meter} has a remark band with prec_level {level}; the value must be 1 or 2")]
    BadPrecedence {
        /// Number of the meter.
        meter: MeterId,
        /// Precedence level of the band.
        level: u8,
    },
    /// The configuration of the stateless forwarder is invalid (experimenter error,
    /// docs/openflow-extensions.md).
    #[error("stateless forwarding: {0}")]
    Stateless(#[from] StatelessError),
    /// The port does not exist (OFPPMFC_BAD_PORT).
    #[error("port {0} does not exist")]
    NoSuchPort(PortNo),
    /// The MAC address in a port-mod differs from the port's address (OFPPMFC_BAD_HW_ADDR).
    #[error("the MAC address of port {0} differs from the one in the request")]
    PortMac(PortNo),
    /// A port-mod changes the advertised features (OFPPMFC_BAD_ADVERTISE).
    #[error("the advertised features of port {0} cannot be changed; use 0")]
    PortAdvertise(PortNo),
    /// The port number is reserved or 0.
    #[error("{0:#x} is not a port number; ports are numbered 1 to {max:#x}", max = flow::port_no::MAX)]
    BadPortNumber(PortNo),
    /// The port to be added exists already.
    #[error("port {0} exists already; give each port a different number")]
    PortExists(PortNo),
    /// The data plane cannot execute the request.
    #[error("{}", .0.text)]
    Plane(PlaneRefusal),
    /// The limit of ports is reached.
    #[error("{} ports exist already, which is the maximum of a datapath", flow::Limits::PORTS)]
    TooManyPorts,
}

impl ModelError {
    /// Returns the error type and code of OpenFlow 1.3.
    #[must_use]
    pub fn openflow(&self) -> (u16, u16) {
        match self {
            Self::Plane(refusal) => (refusal.kind, refusal.code),
            Self::RemovedTable(_) => (FLOW_MOD_FAILED, 2),
            Self::RemovedNextTable(_) => (BAD_INSTRUCTION, 2),
            Self::TableFull { .. } | Self::TooManySlices { .. } => (FLOW_MOD_FAILED, 1),
            Self::Overlap { .. } | Self::IndexTaken { .. } => (FLOW_MOD_FAILED, 3),
            Self::IndexTooLarge { .. } => (BAD_MATCH, 7),
            Self::Invalid(error) => of_validation(error),
            Self::BadInPort(_) => (BAD_REQUEST, 11),
            Self::BadPacket(_) => (BAD_REQUEST, 12),
            Self::NoSuchGroup(_) => (BAD_ACTION, 9),
            Self::GroupExists(_) => (GROUP_MOD_FAILED, 0),
            Self::InvalidGroup { .. } => (GROUP_MOD_FAILED, 1),
            Self::TooManyGroups => (GROUP_MOD_FAILED, 3),
            Self::TooManyBuckets { .. } | Self::NoRoomForBuckets { .. } | Self::TooManyPasses { .. } => {
                (GROUP_MOD_FAILED, 4)
            }
            Self::GroupChain(_) => (GROUP_MOD_FAILED, 5),
            Self::GroupLoop(_) => (GROUP_MOD_FAILED, 7),
            Self::UnknownGroup(_) => (GROUP_MOD_FAILED, 8),
            Self::ChainedGroup { .. } => (GROUP_MOD_FAILED, 9),
            Self::NoSuchMeter(_) => (METER_MOD_FAILED, 3),
            Self::MeterExists(_) => (METER_MOD_FAILED, 1),
            Self::InvalidMeter { .. } => (METER_MOD_FAILED, 2),
            Self::ZeroRate(_) => (METER_MOD_FAILED, 6),
            Self::BadPrecedence { .. } => (METER_MOD_FAILED, 9),
            Self::TooManyMeters => (METER_MOD_FAILED, 10),
            Self::TooManyBands { .. } => (METER_MOD_FAILED, 11),
            Self::Stateless(_) => (EXPERIMENTER, 1),
            Self::PortMac(_) => (PORT_MOD_FAILED, 1),
            Self::PortAdvertise(_) => (PORT_MOD_FAILED, 3),
            Self::NoSuchPort(_) | Self::BadPortNumber(_) | Self::PortExists(_) | Self::TooManyPorts => {
                (PORT_MOD_FAILED, 0)
            }
        }
    }
}

fn of_validation(error: &ValidateError) -> (u16, u16) {
    use ValidateError as V;
    match error {
        V::Table => (FLOW_MOD_FAILED, 2),
        V::Goto { .. } => (BAD_INSTRUCTION, 2),
        V::Prerequisite(_) => (BAD_MATCH, 9),
        V::Meter(_) => (METER_MOD_FAILED, 2),
        V::TooManyActions(_) => (BAD_ACTION, 7),
        V::OutPort(_) => (BAD_ACTION, 4),
        V::OutGroup(_) => (BAD_ACTION, 9),
        V::Queue => (BAD_ACTION, 8),
        V::SetType(_) => (BAD_ACTION, 13),
        V::SetArgument { .. } => (BAD_ACTION, 15),
        V::PushType { .. } | V::Key { .. } | V::Tf { .. } | V::Edit(_) => (BAD_ACTION, 5),
        V::Unordered(_) => (BAD_ACTION, 11),
    }
}
