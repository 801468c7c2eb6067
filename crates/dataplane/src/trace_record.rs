// SPDX-License-Identifier: Apache-2.0
//! Records of how a data plane processed individual packets, for `shunt trace --live`.
//!
//! A record has a fixed size, so a worker fills it without allocating. Lists that are too short keep their
//! first items, and a count next to each list holds the true number.

use arrayvec::ArrayVec;
use flow::{EntryId, Nanos, Outcome, PortNo};

/// Maximum number of bytes recorded of a packet: a frame of common length fits.
pub const RECORD_BYTES: usize = 2_048;

/// Maximum number of lookups recorded of a packet.
pub const RECORD_HITS: usize = 32;

/// Maximum number of copies recorded of a packet.
pub const RECORD_COPIES: usize = 32;

/// A lookup of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceHit {
    /// Number of the table.
    pub table: u8,
    /// Means by which the entry was found.
    pub by: By,
    /// Entry that was hit; `None` for a miss.
    pub entry: Option<EntryId>,
    /// Time since the packet's burst began, ns.
    pub after_ns: Nanos,
}

/// A copy given to a port or to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceCopy {
    /// Number of the port; `None` for the controller.
    pub port: Option<PortNo>,
    /// Length of the copy, bytes.
    pub len: u32,
    /// Hash of the copy's bytes: `wire::digest::fnv1a`.
    pub digest: u64,
}

/// Record of how a worker processed one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// Number of the worker that forwarded the packet.
    pub worker: u16,
    /// Version of the rules that the packet was forwarded by.
    pub version: u64,
    /// Ingress port.
    pub in_port: PortNo,
    /// Sequence number of the packet on its receive queue.
    pub sequence: u64,
    /// Length of the frame, bytes.
    pub len: u32,
    /// First bytes of the frame, as received.
    pub bytes: ArrayVec<u8, RECORD_BYTES>,
    /// Whether the sender left the checksum or the segmentation to hardware, so that the bytes differ from
    /// those on a wire.
    pub offloaded: bool,
    /// First [`RECORD_HITS`] lookups, in order.
    pub hits: ArrayVec<TraceHit, RECORD_HITS>,
    /// Total number of lookups.
    pub lookups: u32,
    /// Table whose LUT had no record of the packet's value, so that the packet left the fast-forwarding path.
    pub missed: Option<u8>,
    /// First [`RECORD_COPIES`] copies, in order. A copy may still have been dropped by the egress.
    pub copies: ArrayVec<TraceCopy, RECORD_COPIES>,
    /// Total number of copies.
    pub made: u32,
    /// Outcome of the packet.
    pub outcome: Outcome,
    /// Whether the packet passed the whole fast-forwarding path.
    pub fast: bool,
    /// Whether a packet or copy of the burst was dropped for lack of space up to this packet, possibly one of
    /// its own.
    pub scarce: bool,
    /// Time from the start of the burst until the packet left, ns. 0 without a clock, like all times.
    pub left_ns: Nanos,
}

/// Means by which a packet reached its entry in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The table's lookup.
    Table,
    /// The index that an instruction named in a linear table.
    Index,
    /// A LUT record.
    Lut,
    /// A LUT record that was verified first.
    Verified,
    /// A record of the previous LUT.
    Inherited,
    /// The table's lookup, on the fast-forwarding path.
    Shared,
    /// A LUT record of a normal entry.
    Known,
}
