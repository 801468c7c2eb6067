// SPDX-License-Identifier: Apache-2.0
//! Records of how a data plane processed individual packets, for `shunt trace --live`.
//!
//! Records have a fixed size, so workers allocate nothing. A list that is too short has the first items. The
//! count next to each list is the total number of items.

use arrayvec::ArrayVec;
use flow::{EntryId, Nanos, Outcome, PortNo, RuleVersion, TableId};

/// Maximum number of bytes of a packet that are recorded.
pub const RECORD_BYTES: usize = 2_048;

/// Maximum number of lookups of a packet that are recorded.
pub const RECORD_HITS: usize = 32;

/// Maximum number of copies of a packet that are recorded.
pub const RECORD_COPIES: usize = 32;

/// A lookup of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceHit {
    /// Number of the table.
    pub table: TableId,
    /// Method by which the entry was found.
    pub by: FoundBy,
    /// Entry that was hit, or `None` for a miss.
    pub entry: Option<EntryId>,
    /// Time since the packet's burst began, in ns.
    pub after_ns: Nanos,
}

/// A copy given to a port or to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceCopy {
    /// Number of the port, or `None` for the controller.
    pub port: Option<PortNo>,
    /// Length of the copy, in bytes.
    pub len: u32,
    /// Hash of the copy's bytes: `wire::digest::fnv1a`.
    pub digest: u64,
}

/// Record of how a worker processed one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// Number of the worker that forwarded the packet.
    pub worker: u16,
    /// Version of the rules that forwarded the packet.
    pub version: RuleVersion,
    /// Ingress port.
    pub in_port: PortNo,
    /// Sequence number of the packet on its receive queue.
    pub sequence: u64,
    /// Length of the frame, in bytes.
    pub len: u32,
    /// First bytes of the frame, as received.
    pub bytes: ArrayVec<u8, RECORD_BYTES>,
    /// Whether the checksum or the segmentation was left to hardware, so that the bytes differ from those on
    /// a wire.
    pub offloaded: bool,
    /// Lookups in order, at most the first [`RECORD_HITS`].
    pub hits: ArrayVec<TraceHit, RECORD_HITS>,
    /// Total number of lookups.
    pub lookups: u32,
    /// Table whose LUT had no record for the packet, so that the packet left the fast-forwarding path.
    pub missed: Option<TableId>,
    /// Copies in order, at most the first [`RECORD_COPIES`]. The egress may have dropped some of them later.
    pub copies: ArrayVec<TraceCopy, RECORD_COPIES>,
    /// Total number of copies.
    pub made: u32,
    /// Outcome of the packet.
    pub outcome: Outcome,
    /// Whether the packet passed the whole fast-forwarding path.
    pub fast: bool,
    /// Whether a path record forwarded the packet, without any other lookup.
    pub express: bool,
    /// Role of the packet in the port cache, if it waited there.
    pub waited: Option<CacheWait>,
    /// Whether a packet or copy was dropped for lack of space in the burst in which this packet was finished.
    pub scarce: bool,
    /// Time in ns from the start of the burst until the packet left. Without a clock, all times are 0.
    pub left_ns: Nanos,
}

/// Role of a packet that waited in the port cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheWait {
    /// The packet started the search of its flow.
    First,
    /// The packet waited behind an earlier packet of its flow.
    Follower,
}

/// Method by which a packet reached its entry in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// The table's lookup.
    Table,
    /// An index of a linear table, given by an instruction.
    Index,
    /// A LUT record.
    Lut,
    /// A LUT record that was verified before it was used.
    Verified,
    /// A record of the LUT that the current LUT replaced.
    Inherited,
    /// The table's own lookup, while the packet was on the fast-forwarding path.
    Shared,
    /// A LUT record of a normal entry. The packet left the fast-forwarding path.
    Known,
    /// A record of the packet's whole path.
    Express,
}
